"""Refusals that are no protocol's own business, in the words of the protocol that was spoken."""

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

Headers = list[tuple[bytes, bytes]]


def write_refusal(
    path: str, status: int, message: str, *, retry_after: float | None = None
) -> tuple[Headers, bytes]:
    """Write an answer that refuses a request.

    Parameters
    ----------
    path : str
        What was asked for; it tells the protocol.
    status : int
        The status.
    message : str
        One line for people.
    retry_after : float | None
        Seconds after which to try again; None: nothing is said of that.

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
