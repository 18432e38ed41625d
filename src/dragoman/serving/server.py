"""Server: uvicorn on a socket with graceful shutdown."""

import asyncio
import contextlib
import socket
import sys
import time
import weakref
from collections.abc import Sequence
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from dragoman.errors import OptionError
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.http.connections import LARGEST_HEAD, HeadGuard, make_parser
from dragoman.serving.http.load_shedding import LoadShedder, SecondsUntilRoom
from dragoman.serving.http.request_heads import HeadCheck
from dragoman.serving.http.request_limits import RequestLimiter
from dragoman.serving.http.socket_guard import SocketGuard
from dragoman.serving.options import ServeOptions
from dragoman.serving.service import Service

BACKLOG = 1024
KEEP_ALIVE_SECONDS = 20
SWEEP_SECONDS = 1.0
# Seconds for writing buffered responses at the end of a shutdown.
LAST_SECONDS = 1
# Requests sent before the shutdown began arrive within this time.
LATE_SECONDS = 0.25


class Server:
    """Runs an ASGI application until a signal, then shuts down gracefully.

    Parameters
    ----------
    app : ASGIApp
        The application.
    service : Service
        What translates, for it to be started and stopped.
    options : ServeOptions
        How to serve.
    keys : ApiKeys | None
        Tells clients apart; with them, who would be refused for want of room is refused at little
        cost.
    other_names : Sequence[str]
        Names by which clients and proxies know the server, besides where it listens.

    Notes
    -----
    After SIGTERM or an interruption ``/ready`` says so at once. Requests that were sent before it
    still arrive for a moment and are accepted; later ones are answered with status 503. What was
    accepted is answered, for as long as ``stop_seconds`` allows, and what is left then is refused
    with the same status; then the server ends, within some seconds. Who cannot wait sends the
    signal twice.
    """

    def __init__(
        self,
        app: ASGIApp,
        service: Service,
        options: ServeOptions,
        keys: ApiKeys | None = None,
        other_names: Sequence[str] = (),
    ) -> None:
        self._service = service
        self._options = options

        load_shedder = LoadShedder(options, service.metrics, _find_room(service, keys))
        heads = HeadCheck(options.host, other_names)
        self.limiter = RequestLimiter(app, options, service.metrics, load_shedder, keys, heads)

        def connect(
            config: uvicorn.Config,
            server_state: ServerState,
            app_state: dict[str, Any],
            _loop: asyncio.AbstractEventLoop | None = None,
        ) -> HeadGuard:
            parser = make_parser(config, server_state, app_state, _loop)
            return HeadGuard(parser, load_shedder.refuse)

        self._server = uvicorn.Server(
            uvicorn.Config(
                self.limiter,
                http=connect,  # type: ignore[arg-type]
                ws=partial(  # type: ignore[arg-type]
                    SocketGuard, client_seconds=options.client_seconds
                ),
                ws_max_size=options.max_body_bytes,
                # Bounds of their own: see `SocketGuard` and `IDLE_SECONDS`.
                ws_ping_interval=None,
                ws_per_message_deflate=False,
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=options.proxy is not None,
                forwarded_allow_ips=options.proxy or "",
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=LAST_SECONDS,
                h11_max_incomplete_event_size=LARGEST_HEAD,
            )
        )
        self._server.handle_exit = self._handle_signal  # type: ignore[method-assign]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None

    def run(self, listener: socket.socket) -> None:
        """Serve until stopped."""
        asyncio.run(self._serve(listener))

    def stop(self) -> None:
        """Start a graceful shutdown; callable from any thread."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._begin_stop)

    async def _serve(self, listener: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        self._service.start()
        sweeper = asyncio.create_task(self._close_stalled_connections())
        try:
            await self._server.serve(sockets=[listener])
        finally:
            sweeper.cancel()
            self._service.stop(1.0)

    def _handle_signal(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.stop()

    def _begin_stop(self) -> None:
        if self._stopping is not None:
            self._server.should_exit = self._server.force_exit = True
            return
        self._service.begin_stop()
        self._stopping = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        """Accept what was sent before the stop, refuse the rest, wait for what is in progress."""
        began = time.monotonic()
        while (seconds := time.monotonic() - began) < self._options.stop_seconds:
            if seconds > LATE_SECONDS:
                self.limiter.close()
            # Refused for as long: connections are told to close before they are closed.
            if seconds > 2 * LATE_SECONDS and not self.limiter.num_in_progress:
                break
            await asyncio.sleep(0.02)
        self.limiter.close()
        self._service.stop_accepting()
        self.limiter.cancel_all()
        await asyncio.sleep(0.02)
        self._server.should_exit = True

    async def _close_stalled_connections(self) -> None:
        """Close connections that send or read nothing for too long."""
        since: weakref.WeakKeyDictionary[Any, tuple[object, float]] = weakref.WeakKeyDictionary()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = time.monotonic()
            for connection in list(self._server.server_state.connections):
                state = _stalled_state(connection)
                known, began = since.get(connection, (None, now))
                if state is None or known != state:
                    since[connection] = (state, now)
                elif now - began > self._options.client_seconds:
                    connection.transport.abort()


def _find_room(service: Service, keys: ApiKeys | None) -> SecondsUntilRoom | None:
    """Make the function that estimates the wait of an address."""
    if keys is None:
        return None
    return lambda address, num_tokens: service.seconds_until_room(
        keys.name_address(address), num_tokens
    )


def listen(host: str, port: int) -> socket.socket:
    """Bind a listening socket."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise OptionError(f"host is “{host}”: {error.strerror}; give an address") from None
    try:
        if sys.platform != "win32":  # there it would let two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise OptionError(
            f"cannot listen at {host}, port {port}: {error.strerror}; give another --port or --host"
        ) from None
    return listener


def name_url(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _stalled_state(connection: Any) -> object:  # noqa: ANN401
    """Return the state in which a connection may be stalled; None: it is idle or active."""
    if connection.transport.is_closing():
        return "to be read"
    if isinstance(connection, WebSocketsSansIOProtocol):
        return None  # a guard of its own looks after it
    cycle = connection.cycle
    if cycle is None:
        return "first request"
    if cycle.response_complete and connection.timeout_keep_alive_task is None:
        return id(cycle)  # the rest of the next request's head
    return None
