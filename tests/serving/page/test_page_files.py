"""The page's files: as they are, compressed, unchanged or not there."""

import asyncio
import gzip

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from dragoman.serving.page.page_document import ASSETS, read_asset
from dragoman.serving.page.page_files import CONTENT_SECURITY_POLICY, give_asset, give_index

APP = Starlette(routes=[Route("/", give_index), Route("/page/{name}", give_asset)])


def get(path, **headers) -> httpx.Response:
    """Ask for something, and keep the answer as it came."""

    async def ask():
        transport = httpx.ASGITransport(APP)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.get(path, headers=named)

    return asyncio.run(ask())


@pytest.mark.parametrize("name", ASSETS)
def test_files_are_given(name):
    answer = get(f"/page/{name}")
    assert answer.status_code == 200
    assert answer.content == read_asset(name).content
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    kinds = {"js": "text/javascript", "css": "text/css", "html": "text/html",
             "svg": "image/svg+xml"}  # fmt: skip
    assert answer.headers["content-type"].startswith(kinds[name.rsplit(".", 1)[1]])


def test_page_is_at_the_root():
    assert get("/").content == read_asset("index.html").content


def test_files_are_compressed_for_who_can_read_it():
    answer = get("/page/app.js", accept_encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content == read_asset("app.js").content
    assert int(answer.headers["content-length"]) == len(read_asset("app.js").compressed)
    plain = get("/page/app.js", accept_encoding="identity")
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(read_asset("app.js").compressed) == plain.content


def test_unchanged_files_are_not_sent_again():
    tag = get("/page/app.js").headers["etag"]
    again = get("/page/app.js", if_none_match=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert get("/page/app.js", if_none_match='"x"').status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/page/none.js", "/page/__init__.py", "/page/..%2fpage_api.py", "/page/%2e%2e%2foptions.py",
     "/page/app.js%00.css", "/page//app.js"],
)  # fmt: skip
def test_nothing_else_is_given(path):
    answer = get(path)
    assert answer.status_code == 404
    assert b"import" not in answer.content


def test_policy_allows_only_the_page_itself():
    for part in CONTENT_SECURITY_POLICY.split("; "):
        assert "unsafe" not in part
        assert "http" not in part
        assert "*" not in part
