"""ASGI middleware: limits WebSockets and their messages as requests are limited."""

import asyncio
import logging
import time
import urllib.parse

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.http.error_responses import write_error_response
from dragoman.serving.http.request_heads import HeadCheck
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions

IDLE_SECONDS = 300.0
"""Without a message a connection is kept for so long."""
SOCKET_SHARE = 0.5
"""Of all that `max_connections` allows: idle ones must not keep requests out."""
# Codes with which a connection is closed (RFC 6455).
GOING_AWAY, FAILED = 1001, 1011
# A message that nobody got an answer to, in the metrics, as of requests.
GONE = 499
ROUTE = "WebSocket"

_log = logging.getLogger("dragoman.serving")


class SocketLimiter:
    """Middleware that limits WebSockets, and ends those whose client has gone.

    Parameters
    ----------
    app : ASGIApp
        The application.
    options : ServeOptions
        With the limits.
    metrics : Metrics
        Takes figures, of each message as of a request.
    heads : HeadCheck
        Refuses requests that are for another server.

    Notes
    -----
    A connection counts as one request in progress whether it is idle or not. Messages are answered
    one by one; one more is read meanwhile, so that a client's going away is noticed.
    """

    def __init__(
        self, app: ASGIApp, options: ServeOptions, metrics: Metrics, heads: HeadCheck
    ) -> None:
        self._app = app
        self._options = options
        self._metrics = metrics
        self._heads = heads
        self._is_closed = False
        self._open: set[_Conversation] = set()

    @property
    def num_open(self) -> int:
        """How many connections there are."""
        return len(self._open)

    @property
    def num_in_progress(self) -> int:
        """How many messages are being answered."""
        return sum(each.is_busy for each in self._open)

    def close(self) -> None:
        """Refuse new connections and messages; close those that are idle."""
        self._is_closed = True
        for each in list(self._open):
            each.stop()

    def cancel_all(self) -> None:
        """Close all connections, also those that wait for an answer."""
        for each in list(self._open):
            each.stop(is_patient=False)

    async def __call__(
        self, scope: Scope, receive: Receive, send: Send, num_requests: int = 0
    ) -> None:
        """Serve a connection, unless it is refused.

        Parameters
        ----------
        scope : Scope
            The handshake.
        receive : Receive
            Gives messages.
        send : Send
            Takes messages.
        num_requests : int
            How many requests are in progress besides connections.
        """
        refusal = self._find_refusal(scope, num_requests)
        conversation = _Conversation(self._options, self._metrics, receive, send)
        if refusal is not None:
            await conversation.refuse(*refusal)
            return
        self._open.add(conversation)
        try:
            await conversation.run(self._app, scope)
        finally:
            self._open.discard(conversation)

    def _find_refusal(
        self, scope: Scope, num_requests: int
    ) -> tuple[int, str, float | None] | None:
        """Return status, message and seconds to wait if a handshake is refused, else None."""
        wrong = self._heads.find_refusal(scope)
        if wrong is not None:
            return *wrong, None
        headers = dict(scope["headers"])
        if headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers:
            return 400, "a request for a WebSocket has no body; leave it out", None
        if not is_origin_allowed(headers, self._options.allow_origin):
            return 403, "web pages of this origin may not use the server", None
        if self._is_closed:
            return 503, "the server is stopping", 1.0
        most = self._options.max_connections
        if self.num_open >= max(1, most * SOCKET_SHARE) or self.num_open + num_requests >= most:
            return 429, "Slowdown: too many connections at once", 1.0
        return None


class _Conversation:
    """One WebSocket: wraps what the application receives and sends."""

    def __init__(
        self, options: ServeOptions, metrics: Metrics, receive: Receive, send: Send
    ) -> None:
        self._options = options
        self._metrics = metrics
        self._receive = receive
        self._send = send
        self._incoming: asyncio.Queue[Message] = asyncio.Queue(maxsize=1)
        self._task: asyncio.Task[object] | None = None
        self._is_accepted = self._is_closed = False
        self._is_stopping = self._is_gone = False
        self._began: float | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a message is being answered."""
        return self._began is not None

    def stop(self, *, is_patient: bool = True) -> None:
        """Close the connection; if patient, after the answer that is being made."""
        self._is_stopping = True
        if self._task is not None and not (is_patient and self.is_busy):
            self._task.cancel()

    async def run(self, app: ASGIApp, scope: Scope) -> None:
        """Let the application serve the connection until either side closes it."""
        self._task = asyncio.current_task()
        assert self._task is not None
        pump = asyncio.create_task(self._pump())
        try:
            await app(scope, self._next, self._answer)
        except asyncio.CancelledError:
            if not (self._is_gone or self._is_stopping):
                raise
            self._task.uncancel()
        except _ClosedError:
            pass
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told
            _log.error("a WebSocket failed: %s", type(error).__name__)
            await self._close(FAILED, "internal error")
        finally:
            pump.cancel()
            if self._is_stopping:
                await self._close(GOING_AWAY, "the server is stopping")
            self._finish(GONE)

    async def refuse(self, status: int, message: str, retry_after: float | None = None) -> None:
        """Answer a handshake as a request that is refused."""
        headers, content = write_error_response("", status, message, retry_after=retry_after)
        start = {"type": "websocket.http.response.start", "status": status, "headers": headers}
        await self._answer(start)
        await self._answer({"type": "websocket.http.response.body", "body": content})

    async def _pump(self) -> None:
        """Read ahead, so that the end of the connection is seen while an answer is made."""
        while True:
            message = await self._receive()
            if message["type"] == "websocket.disconnect":
                self._is_gone = True
                if self._task is not None:
                    self._task.cancel()
                return
            await self._incoming.put(message)

    async def _next(self) -> Message:
        """Give the application the next message."""
        self._finish(200)
        if self._is_stopping:
            raise _ClosedError
        try:
            async with asyncio.timeout(IDLE_SECONDS):
                message = await self._incoming.get()
        except TimeoutError:
            await self._close(GOING_AWAY, "no message came for a long time")
            raise _ClosedError from None
        if message["type"] == "websocket.receive":
            self._began = time.perf_counter()
            self._metrics.count_request()
        return message

    async def _answer(self, message: Message) -> None:
        """Send what the application sends, within the time that a client may take to read it."""
        kind = message["type"]
        if kind == "websocket.close" and not self._is_accepted:
            await self.refuse(404, "no WebSocket is here; /translate is one")
            return
        if kind == "websocket.accept":
            self._is_accepted = True
        elif kind == "websocket.close":
            self._is_closed = True
            self._finish(message.get("code", 1000))
        elif kind == "websocket.http.response.start":
            self._is_closed = True
            self._metrics.count_request()
            self._metrics.record_response(ROUTE, message["status"], 0.0)
        try:
            async with asyncio.timeout(self._options.client_seconds):
                await self._send(message)
        except (OSError, RuntimeError, TimeoutError):  # As the server tells that it is closed.
            self._is_closed = True
            raise _ClosedError from None

    async def _close(self, code: int, reason: str) -> None:
        """Close the connection, if it was accepted and is still open."""
        if self._is_accepted and not (self._is_closed or self._is_gone):
            await self._answer({"type": "websocket.close", "code": code, "reason": reason})

    def _finish(self, status: int) -> None:
        """Record the answer of a message."""
        if self._began is not None:
            self._metrics.record_response(ROUTE, status, time.perf_counter() - self._began)
            self._began = None


class _ClosedError(Exception):
    """A connection that was closed."""


def is_origin_allowed(headers: dict[bytes, bytes], allowed: str | None) -> bool:
    """Return whether the page that opens a WebSocket may.

    Parameters
    ----------
    headers : dict[bytes, bytes]
        Of the handshake. Programs that are no browsers send no origin, and may.
    allowed : str | None
        The origin that may, besides the server's own; ``*`` for any; None: none.

    Notes
    -----
    Browsers let every page open a WebSocket to every server, and say only where the page is from.
    """
    origin = headers.get(b"origin")
    if origin is None or allowed == "*":
        return True
    text = origin.decode("latin-1").lower()
    if allowed is not None and text == allowed.lower().rstrip("/"):
        return True
    host = headers.get(b"host", b"").decode("latin-1").lower()
    return bool(host) and urllib.parse.urlsplit(text).netloc == host
