"""Heads end somewhere, and what is refused is not parsed."""

from types import SimpleNamespace

import pytest

from dragoman.serving.http.connections import LARGEST_HEAD, HeadGuard


class Transport:
    """A connection that remembers."""

    def __init__(self):
        self.written = b""
        self.is_closed = False

    def write(self, data):
        self.written += data

    def close(self):
        self.is_closed = True

    def is_closing(self):
        return self.is_closed

    def get_extra_info(self, name):
        assert name == "peername"
        return ("1.2.3.4", 5)


class Parser:
    """What uvicorn has in its place, as far as the guard looks at it."""

    def __init__(self):
        self.cycle = None
        self.heard = []

    def __getattr__(self, name):
        return lambda *arguments: self.heard.append((name, *arguments))


@pytest.fixture
def guard():
    guard = HeadGuard(Parser(), lambda data, _: b"no" if data == b"refused" else None)
    guard.connection_made(Transport())
    return guard


def test_everything_is_passed_on(guard):
    guard.data_received(b"x")
    guard.pause_writing()
    guard.resume_writing()
    guard.eof_received()
    guard.connection_lost(None)
    assert guard._protocol.heard == [
        ("connection_made", guard._transport),
        ("data_received", b"x"),
        ("pause_writing",),
        ("resume_writing",),
        ("eof_received",),
        ("connection_lost", None),
    ]


def test_a_head_that_does_not_end_ends_the_connection(guard):
    for _ in range(LARGEST_HEAD // 1000 + 1):
        assert not guard._transport.is_closed
        guard.data_received(b"x" * 1000)
    assert guard._transport.is_closed
    assert guard._transport.written.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("is_answered", [False, True])
def test_bodies_do_not_count_and_every_head_counts_anew(guard, is_answered):
    for _ in range(3):
        guard.data_received(b"x" * (LARGEST_HEAD - 10))
        guard._protocol.cycle = SimpleNamespace(response_complete=False)
        guard.data_received(b"x" * 1_000_000)
        assert not guard._transport.is_closed
        guard._protocol.cycle.response_complete = is_answered
    guard.data_received(b"x" * LARGEST_HEAD)
    guard.data_received(b"x")
    assert guard._transport.is_closed == is_answered


def test_what_is_refused_is_not_parsed(guard):
    guard.data_received(b"refused")
    assert guard._transport.written == b"no"
    assert len(guard._protocol.heard) == 1
    guard.data_received(b"half a head, ")
    guard.data_received(b"refused")  # is the rest of it
    assert guard._transport.written == b"no"
    guard._protocol.cycle = SimpleNamespace(response_complete=False)
    guard.data_received(b"the end of the head")
    guard.data_received(b"refused")  # is its body
    assert guard._transport.written == b"no"
    guard._protocol.cycle.response_complete = True
    guard.data_received(b"refused")
    assert guard._transport.written == b"nono"


def test_says_where_a_request_came_from():
    asked = []
    guard = HeadGuard(Parser(), lambda _, address: asked.append(address))
    guard.connection_made(Transport())
    guard.data_received(b"x")
    assert asked == ["1.2.3.4"]
