"""Error responses in the format of each protocol, and CORS headers."""

import json
import math

_GOOGLE_WORDS = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}

OPEN_METHODS = (b"DELETE", b"GET", b"PATCH", b"POST", b"PUT")
"""The methods of all that web pages of other servers may use."""
OPEN_HEADERS = (
    b"Authorization",
    b"Content-Type",
    b"Ocp-Apim-Subscription-Key",
    b"Ocp-Apim-Subscription-Region",
    b"X-ClientTraceId",
    b"X-Ms-Client-Request-Id",
    b"X-Ms-Useragent",
    b"X-Goog-Api-Key",
    b"X-Goog-Api-Client",
)
"""The headers that clients of the protocols send."""

Headers = list[tuple[bytes, bytes]]


def write_error_response(
    path: str, status: int, message: str, *, retry_after: float | None = None
) -> tuple[Headers, bytes]:
    """Write an error response in the format of the path’s protocol.

    Returns
    -------
    tuple[Headers, bytes]
        Headers and body: ``{"message": …}`` as DeepL's clients read it, an object with code and
        status as Google's do, otherwise ``{"error": …}`` as those of LibreTranslate do.
    """
    body: dict[str, object]
    if path.startswith("/v2/") or path.startswith("/v3/"):
        body = {"message": message}
    elif path.startswith("/language/"):
        body = {
            "error": {
                "code": status,
                "message": message,
                "status": _GOOGLE_WORDS.get(status, "UNKNOWN"),
                "errors": [{"message": message, "domain": "global", "reason": "refused"}],
            }
        }
    else:
        body = {"error": message}
    content = json.dumps(body, ensure_ascii=False).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    ]
    if retry_after is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(retry_after))).encode()))
    return headers, content


def is_open(path: str, origin: str | None) -> bool:
    """Return whether a path allows cross-origin requests.

    Parameters
    ----------
    path : str
        What is asked for. What is under ``/page`` is for the server's own page alone, and figures
        are for nobody's page.
    origin : str | None
        The origin that may use it, ``*`` for any; None: none.
    """
    return origin is not None and path.split("/")[1:2] not in (["page"], ["metrics"])


def cors_headers(path: str, origin: str | None) -> Headers:
    """Return the CORS headers of a response."""
    headers = [(b"x-content-type-options", b"nosniff")]
    if origin is None or not is_open(path, origin):
        return headers
    headers += [
        (b"access-control-allow-origin", origin.encode()),
        (b"access-control-allow-headers", b", ".join(OPEN_HEADERS)),
        (b"access-control-allow-methods", b", ".join(OPEN_METHODS)),
        (b"access-control-max-age", b"1728000"),
    ]
    return headers if origin == "*" else [*headers, (b"vary", b"Origin")]
