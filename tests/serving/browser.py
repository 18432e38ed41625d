"""A browser for tests of the page, which complains of everything that a user should not see."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
DESK = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}
SMALL = {"width": 320, "height": 640}


def find_chromium() -> str:
    """Find the system's browser, or skip the tests that need it, saying so."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    pytest.skip(
        "NO CHROMIUM HERE: the tests of the web page did not run; install one (Debian: apt install "
        "chromium)"
    )


@contextmanager
def open_browser(*args: str) -> Iterator[Browser]:
    """Start a browser without a window."""
    path = find_chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", *args])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def open_page(
    browser: Browser, address: str, *, allow_absence: bool = False, **more
) -> Iterator[Page]:
    """Open a page; nothing may fail in it, and it may ask only its own server, or none at all."""
    context = browser.new_context(**{"viewport": DESK, "accept_downloads": True} | more)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.set_default_timeout(10_000)
    troubles: list[str] = []
    allowed = (address, "blob:", "data:")

    def note_request(request):
        if not request.url.startswith(allowed):
            troubles.append(f"asked for {request.url}")

    def note_message(message):
        is_refusal = "the server responded with a status of 4" in message.text
        is_refusal |= allow_absence and bool(
            re.search("ERR_CONNECTION_REFUSED|status of 503", message.text)
        )
        if message.type in ("error", "warning") and not is_refusal:
            troubles.append(f"{message.type}: {message.text}")

    page.on("request", note_request)
    page.on("console", note_message)
    page.on("pageerror", lambda error: troubles.append(f"threw {error}"))
    try:
        yield page
    finally:
        context.close()
    if troubles:
        pytest.fail("\n".join(troubles))
