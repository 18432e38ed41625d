"""WebSocket frames from clients that mean harm, to a real server over raw connections."""

import random
import socket
import struct
import time

import pytest
import websocket
from tests.serving.test_server import Running, is_closed_within

from dragoman.serving.http import socket_guard as module

HANDSHAKE = (
    b"GET /translate HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n%s\r\n"
)
CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10


@pytest.fixture(scope="module")
def running(tiny_folder):
    with Running(tiny_folder.path, max_body_bytes=100_000) as running:
        yield running


def frame(payload=b"", opcode=TEXT, *, is_last=True, is_masked=True, flags=0):
    """Write a frame."""
    head = bytes([(0x80 if is_last else 0) | flags | opcode])
    mask = 0x80 if is_masked else 0
    size = len(payload)
    if size < 126:
        head += bytes([mask | size])
    elif size < 1 << 16:
        head += bytes([mask | 126]) + struct.pack(">H", size)
    else:
        head += bytes([mask | 127]) + struct.pack(">Q", size)
    return head + (b"\0\0\0\0" if is_masked else b"") + payload


def connect(running, extra=b""):
    """Open a WebSocket by hand."""
    connection = running.connect()
    connection.sendall(HANDSHAKE % extra)
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += connection.recv(1)
    assert head.startswith(b"HTTP/1.1 101 "), head
    return connection


def read_frame(connection):
    """Read a short frame: opcode and payload."""
    head = read_exactly(connection, 2)
    size = head[1]
    if size == 126:
        size = struct.unpack(">H", read_exactly(connection, 2))[0]
    return head[0] & 15, read_exactly(connection, size)


def read_exactly(connection, size):
    found = b""
    while len(found) < size:
        some = connection.recv(size - len(found))
        assert some
        found += some
    return found


def closing_code(connection):
    opcode, payload = read_frame(connection)
    assert opcode == CLOSE
    return struct.unpack(">H", payload[:2])[0]


def test_fragments_are_one_message_and_pings_between_them_are_answered(running):
    with connect(running) as connection:
        connection.sendall(frame("A dö".encode()[:4], is_last=False))
        connection.sendall(frame(b"hello", PING))
        connection.sendall(frame("ö".encode()[1:], CONTINUED, is_last=False))
        connection.sendall(frame(b"", CONTINUED, is_last=False) + frame(b"g.", CONTINUED))
        assert read_frame(connection) == (PONG, b"hello")
        opcode, answer = read_frame(connection)
        assert opcode == TEXT
        connection.sendall(frame("A dög.".encode()))
        assert read_frame(connection) == (TEXT, answer)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(b"\xff\xfe"), 1007),
        (frame(b"abc", BINARY), 1003),
        (frame(b"abc", is_masked=False), 1002),
        (frame(b"abc", opcode=5), 1002),
        (frame(b"abc", flags=0x40), 1002),
        (frame(b"abc", CONTINUED), 1002),
        (frame(b"abc", PING, is_last=False), 1002),
        (frame(b"a" * 126, PING), 1002),
        (frame(b"a" * 100_001), 1009),
        (frame(b"a" * 60_000, is_last=False) + frame(b"a" * 60_000, CONTINUED), 1009),
        (frame(b"a" * 30_000), 1009),
        (frame(b"a\n" * 200), 1009),
        (b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff", 1009),
        (b"\x81\xff\x00\x00\x00\x7f\xff\xff\xff\xff", 1009),
        (frame(struct.pack(">H", 1000), CLOSE), 1000),
    ],
)
def test_what_is_wrong_closes_the_connection_with_a_code(running, sent, code):
    with connect(running) as connection:
        connection.sendall(sent)
        assert closing_code(connection) == code
        assert is_closed_within(connection, 12)
    assert running.translate()[0] == 200


def test_too_many_fragments_end_the_connection(running):
    many = frame(b"a", is_last=False) + frame(b"", CONTINUED, is_last=False) * (
        module.MOST_FRAGMENTS + 1
    )
    with connect(running) as connection:
        connection.sendall(many)
        assert is_closed_within(connection, 10)


@pytest.mark.parametrize(
    "begin",
    [
        b"\x81",
        frame(b"A dog.")[:-1],
        frame(b"A dog.", is_last=False),
        frame(b"A dog.", is_last=False) + frame(b"", PING),
    ],
)
def test_a_message_that_does_not_become_whole_ends_the_connection(running, begin):
    with connect(running) as connection:
        began = time.monotonic()
        connection.sendall(begin)
        assert is_closed_within(connection, 15)
        assert time.monotonic() - began >= 0.9


def test_who_pings_and_reads_stays(running):
    with connect(running) as connection:
        until = time.monotonic() + 2.0  # twice `client_seconds`
        while time.monotonic() < until:
            connection.sendall(frame(b"x", PING))
            assert read_frame(connection) == (PONG, b"x")
            time.sleep(0.1)
        connection.sendall(frame(b"A dog."))
        assert read_frame(connection)[0] == TEXT


def is_ended(connection, sent):
    """Send without reading, and return whether that comes to an end."""
    try:
        for _ in range(2000):
            connection.sendall(sent)
    except (BrokenPipeError, ConnectionResetError):
        return True
    return False


def test_who_pings_and_does_not_read_is_ended(running):
    flood = frame(b"p" * 125, PING) * 500
    with connect(running) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        assert is_ended(connection, flood)
    assert running.translate()[0] == 200


def test_who_does_not_read_answers_is_ended(running):
    """Answers fill the buffers of both sides; then sending one takes too long."""
    with connect(running) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(20)
        message = frame(b"-" * 19_000)  # No word, which is as it was.
        assert is_ended(connection, message)
    assert running.translate()[0] == 200


@pytest.mark.parametrize(
    ("extra", "status"),
    [
        (b"Content-Length: 5\r\n", b"400"),
        (b"Host: other\r\n", b"400"),
        (b"X-Long: " + b"a" * 10_000 + b"\r\n", b"400"),
        (b"".join(b"X-%d: a\r\n" % number for number in range(200)), b"400"),
        (b"X: \xff\r\n", b"101"),
        (b"Sec-WebSocket-Extensions: permessage-deflate\r\n", b"101"),
    ],
)
def test_odd_handshakes(running, extra, status):
    with running.connect() as connection:
        connection.sendall(HANDSHAKE % extra)
        answer = connection.recv(4096)
        assert answer.split(b" ")[1] == status
        assert b"permessage-deflate" not in answer
    assert running.translate()[0] == 200


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Host: localhost", b"Host: evil.example"),
        (b"GET", b"POST"),
        (b"/translate", b"/page/api/translate"),
        (b"/translate", b"/v2/translate"),
        (b"Version: 13", b"Version: 99"),
        (b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", b"Sec-WebSocket-Key: x"),
    ],
)
def test_handshakes_that_are_none_are_refused(running, old, new):
    with running.connect() as connection:
        connection.sendall((HANDSHAKE % b"").replace(old, new))
        assert connection.recv(4096).startswith((b"HTTP/1.1 4",))


def test_any_frames_leave_the_server_well(running, caplog):
    """Random frames, whole and broken, in random pieces."""
    generator = random.Random(1)
    for _ in range(400):
        connection = connect(running)
        sent = b"".join(odd_frame(generator) for _ in range(generator.randint(1, 12)))
        try:
            while sent:
                size = generator.choice([1, 7, 100, 4000])
                connection.sendall(sent[:size])
                sent = sent[size:]
        except OSError:
            pass  # It was ended meanwhile.
        connection.close()
    running.wait_until(lambda: running.server.limiter._sockets.num_open == 0)
    assert running.translate()[0] == 200
    assert not caplog.records
    address = f"ws://127.0.0.1:{running.port}/translate"
    well = websocket.create_connection(address, timeout=20)
    well.send("A dog.")
    assert well.recv()
    well.close()


def odd_frame(generator):
    """Write a frame that may be anything."""
    if generator.random() < 0.1:
        return generator.randbytes(generator.randint(1, 30))
    return frame(
        generator.choice([b"A dog.", b"", b"\xc3", "é".encode(), generator.randbytes(200)]),
        opcode=generator.choice([CONTINUED, TEXT, TEXT, BINARY, PING, PONG, CLOSE, 3]),
        is_last=generator.random() < 0.7,
        is_masked=generator.random() < 0.95,
        flags=generator.choice([0] * 15 + [0x10]),
    )
