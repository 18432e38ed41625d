"""Load shedding: answer 429 before parsing while the queues are full."""

import re
from collections.abc import Callable

from dragoman.serving.http.error_responses import cors_headers, write_error_response
from dragoman.serving.http.request_heads import is_ambiguous
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions
from dragoman.serving.service_types import OVERLOADED_MESSAGE

# Paths that accept file uploads.
FILE_PATHS = frozenset({"/translate_file", "/v2/document"})
# Paths whose requests are rejected unread while the queues are full.
TRANSLATING_PATHS = FILE_PATHS | {
    "/translate",
    "/v2/translate",
    "/language/translate/v2",
    "/api/translate",
    "/page/api/translate",
}
# Bytes of a request per subword, at most.
TOKEN_BYTES = 8

# Request line, from which the path is known before the rest is read.
_POST = re.compile(rb"POST ([^ ?\r\n]+)[^ \r\n]* HTTP/1\.1\r\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d{1,7})\r\n", re.IGNORECASE)
_UNUSUAL = re.compile(
    rb"\r\n(?:transfer-encoding|expect|connection|upgrade) *:"
    rb"|\r\ncontent-length.*\r\ncontent-length",
    re.IGNORECASE | re.DOTALL,
)

SecondsUntilRoom = Callable[[str, int], float | None]


class LoadShedder:
    """Rejects requests to translate while every model queue is full.

    Parameters
    ----------
    options : ServeOptions
        How to serve.
    metrics : Metrics
        Takes figures.
    seconds_until_room : Callable[[str, int], float | None] | None
        Says of an address how long it must wait until some subwords of it are accepted; None if it
        need not wait. None in its place: there is always room.

    Notes
    -----
    A server that is asked four times as much as it can do spends its time on saying no. A request
    that came in one piece, as small ones do, is answered before it is parsed, which costs a tenth
    of what it would later.
    """

    def __init__(
        self, options: ServeOptions, metrics: Metrics, seconds_until_room: SecondsUntilRoom | None
    ) -> None:
        self._options = options
        self._metrics = metrics
        self._seconds_until_room = seconds_until_room

    def estimate_wait(self, path: str, address: str, size: int) -> float | None:
        """Return the seconds until a request of this size would be accepted; None: now."""
        if self._seconds_until_room is None or path not in TRANSLATING_PATHS:
            return None
        num_tokens = 1 if path in FILE_PATHS else 1 + size // TOKEN_BYTES
        seconds = self._seconds_until_room(address, num_tokens)
        if seconds is not None:
            self._metrics.count_failure("overloaded")
        return seconds

    def refuse(self, data: bytes, address: str) -> bytes | None:
        """Answer a complete request with 429 if the queues are full; None: parse it as usual."""
        begin = _POST.match(data)
        if begin is None or self._seconds_until_room is None or self._options.proxy is not None:
            return None
        path = begin[1].decode("latin-1")
        if path not in TRANSLATING_PATHS:
            return None
        head_end = data.find(b"\r\n\r\n")
        length = _LENGTH.search(data, 0, head_end + 2)
        is_whole = length is not None and int(length[1]) == len(data) - head_end - 4
        if head_end < 0 or not is_whole or _UNUSUAL.search(data, 0, head_end + 2):
            return None
        if is_ambiguous(data):
            return None
        seconds = self.estimate_wait(path, address, len(data))
        if seconds is None:
            return None
        self._metrics.count_request()
        self._metrics.record_response("other", 429, 0.0)
        headers, content = write_error_response(path, 429, OVERLOADED_MESSAGE, retry_after=seconds)
        headers += cors_headers(path, self._options.allow_origin)
        lines = [b"HTTP/1.1 429 Too Many Requests", *(b": ".join(each) for each in headers)]
        return b"\r\n".join([*lines, b"", content])
