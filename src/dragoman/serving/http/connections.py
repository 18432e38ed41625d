"""Connections: refuse ambiguous or endless request heads before parsing."""

import asyncio
from collections.abc import Callable
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from dragoman.serving.http.request_heads import is_ambiguous

LARGEST_HEAD = 32_768
_STATUS = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
_TOO_LARGE = _STATUS + b"content-length: 0\r\nconnection: close\r\n\r\n"


def make_parser(
    config: uvicorn.Config,
    server_state: ServerState,
    app_state: dict[str, Any],
    loop: asyncio.AbstractEventLoop | None,
) -> H11Protocol:
    """Make an HTTP parser that refuses heads which proxies may read differently.

    Notes
    -----
    h11 takes a bare line feed for the end of a line, and joins a line that begins with white space
    to the one before it. A proxy that does neither would find other headers, and perhaps another
    end of the request, in the same bytes. Uvicorn would take httptools where that is installed,
    which refuses other things: one parser is what is tested.
    """
    protocol = H11Protocol(config, server_state, app_state, loop)
    connection = protocol.conn
    parse_on = connection.next_event

    def next_event() -> Any:  # noqa: ANN401
        try:
            if connection.their_state is h11.IDLE and is_ambiguous(connection.trailing_data[0]):
                raise h11.RemoteProtocolError("a line is folded, or ends in a line feed alone")
            return parse_on()
        except h11.RemoteProtocolError:
            cycle = protocol.cycle
            if cycle is not None and not cycle.response_complete:
                # The protocol writes the error, or ends the response in progress.
                cycle.disconnected = True
                cycle.message_event.set()
                if cycle.response_started:
                    protocol.transport.close()
                    return h11.NEED_DATA
            raise

    connection.next_event = next_event  # type: ignore[method-assign]
    return protocol


class HeadGuard(asyncio.Protocol):
    """Forwards data to the parser, with a limit on the time and size of a request head.

    Parameters
    ----------
    protocol : Any
        What parses it, as uvicorn has it.
    refuse : Callable[[bytes, str], bytes | None]
        Answers what may be one whole request, or does not; it is given where it came from.
    """

    def __init__(
        self,
        protocol: Any,  # noqa: ANN401
        refuse: Callable[[bytes, str], bytes | None],
    ) -> None:
        self._protocol = protocol
        self._refuse = refuse
        self._address = ""
        self._transport: Any = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start with a new connection."""
        self._transport = transport
        self._address = (transport.get_extra_info("peername") or ("",))[0]
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Forward received data, or answer it at once."""
        if not self._head_bytes and self._is_between():
            refusal = self._refuse(data, self._address)
            if refusal is not None:
                self._transport.write(refusal)
                return
        self._protocol.data_received(data)
        self._head_bytes = self._head_bytes + len(data) if self._is_between() else 0
        if self._head_bytes > LARGEST_HEAD and not self._transport.is_closing():
            self._transport.write(_TOO_LARGE)
            self._transport.close()

    def _is_between(self) -> bool:
        """Return whether the connection is idle between requests."""
        cycle = self._protocol.cycle
        return cycle is None or cycle.response_complete

    def eof_received(self) -> bool | None:
        """Forward the end of input."""
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forward the end of the connection."""
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Forward that the write buffer is full."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Forward that the write buffer has drained."""
        self._protocol.resume_writing()
