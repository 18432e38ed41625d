"""A client that costs little, so that on two cores the server is what is measured."""

import asyncio
import time
from types import TracebackType
from typing import NamedTuple

REFUSED, BROKEN = -1, -2


class Answer(NamedTuple):
    """When a request was sent, how long its answer took, and its status.

    The status is `REFUSED` if there was no connection to send it by, and `BROKEN` if the server
    closed the connection without an answer.
    """

    began: float
    seconds: float
    status: int


class Client:
    """A connection that is kept open, and opened again where the server closes it.

    Parameters
    ----------
    port : int
        Of the server, on loopback.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._writer is not None

    async def open(self) -> "Client":
        """Connect, if the server lets one.

        Returns
        -------
        Client
            Itself.
        """
        try:
            self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            self._reader = self._writer = None
        return self

    def close(self) -> None:
        """Go away."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    async def __aenter__(self) -> "Client":
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, body: bytes) -> None:
        """Send a request to LibreTranslate's protocol.

        Parameters
        ----------
        body : bytes
            JSON.
        """
        if self._writer is not None:
            self._writer.write(_request("POST", "/translate", body))

    async def ask(self, body: bytes) -> Answer:
        """Send a request and wait for the answer.

        Parameters
        ----------
        body : bytes
            JSON.

        Returns
        -------
        Answer
            What came back.
        """
        began = time.perf_counter()
        if not self.is_open:
            await self.open()
        if self._reader is None:
            await asyncio.sleep(0.05)
            return Answer(began, time.perf_counter() - began, REFUSED)
        self.send(body)
        try:
            status, is_kept, _ = await _read(self._reader)
        except (OSError, asyncio.IncompleteReadError):
            status, is_kept = BROKEN, False
        if not is_kept:
            self.close()
        return Answer(began, time.perf_counter() - began, status)


async def ask_once(port: int, method: str, path: str) -> bytes:
    """Ask by a connection of its own.

    Parameters
    ----------
    port : int
        Of the server, on loopback.
    method : str
        Such as GET.
    path : str
        What to ask for.

    Returns
    -------
    bytes
        The answer's body.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_request(method, path, b""))
    _, _, body = await _read(reader)
    writer.close()
    return body


def _request(method: str, path: str, body: bytes) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _read(reader: asyncio.StreamReader) -> tuple[int, bool, bytes]:
    """Read the status, whether the connection stays, and the body."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    fields = dict(line.split(b": ", 1) for line in lines[1:] if line)
    body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
    return int(lines[0].split()[1]), fields.get(b"connection") != b"close", body
