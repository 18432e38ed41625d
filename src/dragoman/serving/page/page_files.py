"""The files of the web page, served one by one."""

from starlette.requests import Request
from starlette.responses import Response

from dragoman.serving.page.page_document import ASSETS, read_asset

# What the page may do: run its own scripts, speak to its own server, and nothing else.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "Vary": "Accept-Encoding",
}


def give_index(request: Request) -> Response:
    """Answer with the page."""
    return _give(request, "index.html")


def give_asset(request: Request) -> Response:
    """Answer with a file that the page asks for."""
    name = request.path_params["name"]
    if name not in ASSETS:
        return Response("there is no such file", status_code=404, media_type="text/plain")
    return _give(request, name)


def _give(request: Request, name: str) -> Response:
    asset = read_asset(name)
    headers = _HEADERS | {"ETag": asset.tag}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    content = asset.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        content = asset.compressed
        headers["Content-Encoding"] = "gzip"
    return Response(content, headers=headers, media_type=asset.media_type)
