"""ASGI middleware: limits the size, speed and number of requests; cancels on disconnection."""

import asyncio
import logging
import time
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.http.error_responses import cors_headers, is_open, write_error_response
from dragoman.serving.http.load_shedding import FILE_PATHS, LoadShedder
from dragoman.serving.http.request_heads import HeadCheck
from dragoman.serving.http.socket_limits import SocketLimiter
from dragoman.serving.http.uploads import UploadCheck
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions
from dragoman.serving.service_types import OVERLOADED_MESSAGE, format_pivot_paths, reset_pivot_paths

# Answered also while the server is stopping or full.
HEALTH_PATHS = frozenset({"/health", "/ready", "/metrics"})
# Slowest upload in bytes a second, after the first `client_seconds`.
SLOWEST = 16_384
# After a rejection the body is discarded for so long; closing at once would lose the response.
LINGER_SECONDS = 1.0
GONE = 499

_log = logging.getLogger("dragoman.serving")


class RejectedError(Exception):
    """A request that is rejected before the application sees it.

    Parameters
    ----------
    status : int
        The answer's status.
    message : str
        One line for people.
    retry_after : float | None
        Seconds after which to try again.
    is_coming : bool
        Whether the client may still be sending the request.
    """

    def __init__(
        self,
        status: int,
        message: str,
        retry_after: float | None = None,
        *,
        is_coming: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after
        self.is_coming = is_coming


class ClientGoneError(Exception):
    """A client that has closed its connection."""


@dataclass
class _Progress:
    """State of the response to a request."""

    status: int = 0
    is_over: bool = False


class RequestLimiter:
    """Middleware that limits requests and cancels those whose client has gone.

    Parameters
    ----------
    app : ASGIApp
        The application.
    options : ServeOptions
        With the limits.
    metrics : Metrics
        Takes figures.
    load_shedder : LoadShedder | None
        Refuses requests for which there is no room; None: there is always some.
    keys : ApiKeys | None
        Says whose files need not be read; None: nobody's.
    heads : HeadCheck | None
        Refuses requests that are for another server; None: for one without names.

    Notes
    -----
    A request is read whole before the application sees it, so that its size and its client's speed
    are limited in one place, and so that somebody listens for the client's going away while its
    answer is being made: then the task is cancelled, and what it had waiting leaves the queues.
    """

    def __init__(
        self,
        app: ASGIApp,
        options: ServeOptions,
        metrics: Metrics,
        load_shedder: LoadShedder | None = None,
        keys: ApiKeys | None = None,
        heads: HeadCheck | None = None,
    ) -> None:
        self._app = app
        self._load_shedder = (
            LoadShedder(options, metrics, None) if load_shedder is None else load_shedder
        )
        self._options = options
        self._metrics = metrics
        self._keys = keys
        self._heads = HeadCheck(options.host) if heads is None else heads
        self._is_closed = self._is_cancelled = False
        self._running: set[asyncio.Task[object]] = set()
        self._num_requests = 0
        self._sockets = SocketLimiter(app, options, metrics, self._heads)

    @property
    def num_in_progress(self) -> int:
        """How many requests, and messages of WebSockets, are being answered."""
        return self._num_requests + self._sockets.num_in_progress

    def close(self) -> None:
        """Reject new requests, except to the health paths."""
        self._is_closed = True
        self._sockets.close()

    def cancel_all(self) -> None:
        """Cancel all requests in progress with status 503."""
        self._is_cancelled = True
        for task in self._running:
            task.cancel()
        self._sockets.cancel_all()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "websocket":
            await self._sockets(scope, receive, send, self._num_requests)
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        progress = _Progress()
        answer = self._wrap_send(send, progress, scope)
        reset_pivot_paths()
        self._num_requests += 1
        self._metrics.count_request()
        try:
            body = await self._read(scope, receive)
            self._check_room(scope, len(body))
            if scope["method"] == "OPTIONS" and is_open(scope["path"], self._options.allow_origin):
                await answer({"type": "http.response.start", "status": 204, "headers": []})
                await answer({"type": "http.response.body", "body": b""})
            else:
                await self._run(scope, body, receive, answer)
        except RejectedError as refusal:
            if not progress.status:
                await self._write_error(scope, refusal, receive, answer)
        except ClientGoneError:
            progress.status = progress.status if progress.is_over else GONE
        except Exception as error:
            _log.error("%s failed: %s", _route(scope), _describe(error))
            if progress.status:
                raise
            await self._write_error(scope, RejectedError(500, "internal error"), receive, answer)
        finally:
            self._num_requests -= 1
            seconds = time.perf_counter() - began
            self._metrics.record_response(_route(scope), progress.status or GONE, seconds)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """Read a request's body; reject it as soon as it is too large or too slow."""
        path = scope["path"]
        wrong = self._heads.find_refusal(scope)
        if wrong is not None:
            raise RejectedError(*wrong, is_coming=True)
        if path not in HEALTH_PATHS:
            if self._is_closed:
                raise RejectedError(503, "the server is stopping", 1.0)
            if self._num_requests + self._sockets.num_open > self._options.max_connections:
                raise RejectedError(429, "Slowdown: too many requests at once", 1.0)
        is_file = path in FILE_PATHS
        most = self._options.max_file_bytes if is_file else self._options.max_body_bytes
        too_large = f"the request is larger than {most:,} bytes"
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > most:
            raise RejectedError(413, too_large, is_coming=True)
        check = UploadCheck(self._keys, scope) if is_file and self._keys is not None else None
        await _refuse_file(check, [])
        until = time.monotonic() + self._options.client_seconds
        chunks: list[bytes] = []
        size = 0
        while True:
            try:
                async with asyncio.timeout(until + size / SLOWEST - time.monotonic()):
                    message = await receive()
            except TimeoutError:
                slow = "the request came too slowly"
                raise RejectedError(408, slow, is_coming=True) from None
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            is_coming = message.get("more_body", False)
            if size > most:
                raise RejectedError(413, too_large, is_coming=is_coming)
            if is_coming:
                await _refuse_file(check, chunks)
            else:
                return b"".join(chunks)

    def _check_room(self, scope: Scope, size: int) -> None:
        """Reject a request for which the queues are full before the application parses it."""
        address, _ = scope.get("client") or ("", 0)
        seconds = self._load_shedder.estimate_wait(scope["path"], address, size)
        if seconds is not None:
            raise RejectedError(429, OVERLOADED_MESSAGE, seconds)

    async def _run(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Run the application; cancel it if the client disconnects."""
        task = asyncio.current_task()
        assert task is not None
        gone = asyncio.Event()
        is_read = False

        async def replay() -> Message:
            nonlocal is_read
            if not is_read:
                is_read = True
                return {"type": "http.request", "body": body, "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()
            task.cancel()

        watcher = asyncio.create_task(watch())
        self._running.add(task)
        try:
            await self._app(scope, replay, send)
        except asyncio.CancelledError:
            if not gone.is_set() and not self._is_cancelled:
                raise
            task.uncancel()
            if gone.is_set():
                raise ClientGoneError from None
            raise RejectedError(503, "the server has stopped; try again", 1.0) from None
        finally:
            self._running.discard(task)
            watcher.cancel()

    def _wrap_send(self, send: Send, progress: _Progress, scope: Scope) -> Send:
        """Wrap send with a timeout, extra headers and a record of the status."""
        seconds = self._options.client_seconds
        extra = cors_headers(scope["path"], self._options.allow_origin)
        if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
            # Close after chunked bodies: proxies may disagree where they end (request smuggling).
            extra.append((b"connection", b"close"))

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                progress.status = message["status"]
                headers = [*message.get("headers", []), *extra]
                if through := format_pivot_paths():
                    headers.append((b"x-translated-through", through.encode()))
                message = {**message, "headers": headers}
                await send(message)
                return
            try:
                async with asyncio.timeout(seconds):
                    await send(message)
            except TimeoutError:
                raise ClientGoneError from None
            progress.is_over = not message.get("more_body")

        return answer

    async def _write_error(
        self, scope: Scope, refusal: RejectedError, receive: Receive, send: Send
    ) -> None:
        """Send an error response and discard the rest of the request body."""
        headers, content = write_error_response(
            scope["path"], refusal.status, refusal.message, retry_after=refusal.retry_after
        )
        if refusal.is_coming or refusal.status == 503:
            headers.append((b"connection", b"close"))
        try:
            await send(
                {"type": "http.response.start", "status": refusal.status, "headers": headers}
            )
            if refusal.is_coming:
                await send({"type": "http.response.body", "body": content, "more_body": True})
                await self._discard_body(receive)
                content = b""
            await send({"type": "http.response.body", "body": content})
        except ClientGoneError:
            return

    async def _discard_body(self, receive: Receive) -> None:
        """Discard incoming data, limited in time and size."""
        left = self._options.max_file_bytes
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return
        except TimeoutError:
            return


async def _refuse_file(check: UploadCheck | None, chunks: list[bytes]) -> None:
    """Reject an upload as soon as its client is known to have no quota left."""
    found = None if check is None else await check.find_refusal(chunks)
    if found is not None:
        status, error = found
        raise RejectedError(status, error.message, error.retry_after, is_coming=True)


def _route(scope: Scope) -> str:
    """Return the route’s path template, for metrics and logs."""
    return getattr(scope.get("route"), "path", "other")


def _describe(error: BaseException) -> str:
    """Describe an error by type and place; its message may contain a client’s text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" in {trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}"
    return f"{type(error).__name__}{place}"
