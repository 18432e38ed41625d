"""WebSocket connections: bound the time, size and pieces of a message before it is whole."""

import asyncio
import time
from typing import Any

import uvicorn
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.frames import DATA_OPCODES, CloseCode, Frame
from websockets.protocol import State

from dragoman.serving.http.request_limits import SLOWEST

MOST_FRAGMENTS = 1024
"""Of one message; empty ones would otherwise cost nothing to send and something to keep."""
MOST_PONGS = 65_536
"""Bytes of answers to pings that wait for a client who does not read."""
_BAD_HEAD = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class SocketGuard(asyncio.Protocol):
    """Forwards data to the parser of WebSocket frames, and ends connections that wear it out.

    Parameters
    ----------
    config : uvicorn.Config
        With the largest message.
    server_state : ServerState
        What uvicorn knows of all connections.
    app_state : dict[str, Any]
        Likewise of the application.
    client_seconds : float
        How long a message, or the reading of an answer, may take.

    Notes
    -----
    The parser bounds the size of a message, not its time, nor the number of its fragments, and
    answers every ping whether the client reads the answers or not. A client that sends or reads
    too slowly has its connection ended without a word: it could not read one.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        *,
        client_seconds: float,
    ) -> None:
        self._protocol = WebSocketsSansIOProtocol(config, server_state, app_state)
        self._protocol.close_timeout = min(self._protocol.close_timeout, client_seconds)
        self._client_seconds = client_seconds
        self._most = config.ws_max_size
        self._transport: Any = None
        self._num_frames = self._num_messages = 0
        self._began: float | None = None
        self._size = 0
        self._full_size: int | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._count_frames()
        self._mark_refusals()
        self._refuse_broken_text()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start with a connection whose head has been read."""
        self._transport = transport
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Forward received data; abort on too many fragments or unread answers to pings."""
        is_head = not self._protocol.handshake_initiated
        num_frames, num_messages = self._num_frames, self._num_messages
        self._protocol.data_received(data)
        if is_head:
            if not (self._protocol.handshake_initiated or self._transport.is_closing()):
                self._transport.write(_BAD_HEAD)
                self._transport.close()
            return
        has_flood = (
            self._full_size is not None
            and self._transport.get_write_buffer_size() > self._full_size + MOST_PONGS
        )
        if has_flood or len(self._protocol.frames) > MOST_FRAGMENTS:
            self._transport.abort()
            return
        is_between = self._num_frames > num_frames and self._protocol.conn.current_size is None
        if is_between or self._num_messages > num_messages:
            self._began, self._size = None, 0
            self._stop_timer("reading")
            return
        self._size += len(data)
        if self._began is None:
            self._began = time.monotonic()
            self._start_timer("reading", self._client_seconds)

    def eof_received(self) -> bool | None:
        """Forward the end of input."""
        self._protocol.eof_received()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        """Forward the end of the connection."""
        for name in list(self._timers):
            self._stop_timer(name)
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Forward that the write buffer is full, and let it be so for a time only."""
        self._full_size = self._transport.get_write_buffer_size()
        self._start_timer("writing", self._client_seconds)
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Forward that the write buffer has drained."""
        self._full_size = None
        self._stop_timer("writing")
        self._protocol.resume_writing()

    def _count_frames(self) -> None:
        """Have the parser count the frames and messages that are whole."""
        take = self._protocol.conn.events_received

        def events_received() -> list[Any]:
            events = take()
            frames = [each for each in events if isinstance(each, Frame)]
            self._num_frames += len(frames)
            self._num_messages += sum(each.fin and each.opcode in DATA_OPCODES for each in frames)
            return events

        self._protocol.conn.events_received = events_received  # type: ignore[method-assign]

    def _mark_refusals(self) -> None:
        """Have a refused handshake count as over; the parser would log it as forgotten."""
        send = self._protocol.send

        async def send_and_mark(message: Any) -> None:  # noqa: ANN401
            await send(message)
            if self._protocol.close_sent:
                self._protocol.handshake_complete = True

        self._protocol.send = send_and_mark  # type: ignore[method-assign]

    def _refuse_broken_text(self) -> None:
        """Close the connection for what is not UTF-8; the parser fails if it is closing already."""
        protocol = self._protocol
        pass_on = protocol.send_receive_event_to_app

        def send_receive_event_to_app() -> None:
            try:
                if protocol.curr_msg_data_type == "text":
                    b"".join(protocol.frames).decode()
            except UnicodeDecodeError:
                protocol.frames = []
                if protocol.conn.state is State.OPEN:
                    protocol.conn.send_close(CloseCode.INVALID_DATA, "the text is not UTF-8")
                    protocol.handle_parser_exception()
                return
            pass_on()

        protocol.send_receive_event_to_app = (  # type: ignore[method-assign]
            send_receive_event_to_app
        )

    def _start_timer(self, name: str, seconds: float) -> None:
        self._stop_timer(name)
        loop = asyncio.get_running_loop()
        self._timers[name] = loop.call_later(seconds, self._check_time, name)

    def _stop_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()

    def _check_time(self, name: str) -> None:
        """End the connection unless much has come meanwhile."""
        left = 0.0
        if name == "reading" and self._began is not None:
            seconds = self._client_seconds + min(self._size, self._most) / SLOWEST
            left = self._began + seconds - time.monotonic()
        if left > 0:
            self._start_timer(name, left)
        else:
            self._transport.abort()
