"""A server on a free port of loopback, in a thread, for clients to talk to."""

import contextlib
import hashlib
import threading
import time
import unittest.mock
import urllib.error
import urllib.request
from collections.abc import Iterator

from tests.serving.small_service import make_service

from dragoman.serving.app import build_app
from dragoman.serving.http.api_keys import ApiKey, ApiKeys
from dragoman.serving.page.broken_models import BrokenModels
from dragoman.serving.page.page_runs import WatchedRuns
from dragoman.serving.server import Server, listen, name_url
from dragoman.serving.service_types import Client

KEY = "a key of eight characters or more"


def make_keys(**limits) -> ApiKeys:
    """Make keys of which one is `KEY`."""
    client = Client(name="key somebody", has_key=True, **limits)
    return ApiKeys([ApiKey(digest=hashlib.sha256(KEY.encode()).digest(), client=client)])


@contextlib.contextmanager
def without_second_look() -> Iterator[None]:
    """Have odd translations taken as they are: a tiny model makes only such."""
    place = "dragoman.decoding.translator.search_again"
    with unittest.mock.patch(place, lambda parts, *_: list(parts)):
        yield


@contextlib.contextmanager
def serve(
    paths,
    keys: ApiKeys | None = None,
    broken: BrokenModels | None = None,
    listen_port: int = 0,
    names: tuple[str, ...] = (),
    **options,
) -> Iterator[str]:
    """Serve models, and give the address without a slash at its end."""
    service = make_service(paths, **options)
    app = build_app(service, ApiKeys() if keys is None else keys, broken=broken)
    with run_app(service, app, listen_port, names) as url:
        yield url


@contextlib.contextmanager
def watch(folders) -> Iterator[str]:
    """Show training runs, as “dragoman watch” does, and give the address."""
    service = make_service([])
    with run_app(service, build_app(service, ApiKeys(), WatchedRuns(folders))) as url:
        yield url


@contextlib.contextmanager
def run_app(service, app, listen_port: int = 0, names: tuple[str, ...] = ()) -> Iterator[str]:
    """Run an application on a free port, or on the one named."""
    with without_second_look(), listen("127.0.0.1", listen_port) as listener:
        server = Server(app, service, service.options, other_names=names)
        url = name_url(listener).rstrip("/")
        thread = threading.Thread(target=server.run, args=(listener,), daemon=True)
        thread.start()
        try:
            _wait(url)
            yield url
        finally:
            server.stop()
            thread.join(20)
    assert not thread.is_alive()


def _wait(url: str) -> None:
    until = time.monotonic() + 20
    while True:
        try:
            urllib.request.urlopen(f"{url}/ready", timeout=5)
            return
        except (urllib.error.URLError, OSError):
            assert time.monotonic() < until
            time.sleep(0.05)
