"""WebSockets too many, of other origins, idle, or in the way of a stop."""

import asyncio
import json
import threading

import pytest
import websocket
from tests.serving.small_service import make_service
from tests.serving.test_metrics import read
from tests.serving.test_server import Running

from dragoman.serving.app import build_app
from dragoman.serving.http import socket_limits as limits
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.http.request_heads import HeadCheck
from dragoman.serving.http.socket_limits import SocketLimiter, is_origin_allowed
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions


def open_socket(running, path="/translate", **more):
    address = f"ws://127.0.0.1:{running.port}{path}"
    return websocket.create_connection(address, timeout=20, **more)


def refusal_of(running, **more):
    with pytest.raises(websocket.WebSocketBadStatusException) as caught:
        open_socket(running, **more)
    return caught.value.status_code, json.loads(caught.value.resp_body)["error"]


def closing_of(socket):
    """Read on to the frame that closes the connection."""
    opcode, payload = socket.recv_data()
    assert opcode == websocket.ABNF.OPCODE_CLOSE
    return int.from_bytes(payload[:2], "big"), payload[2:].decode()


@pytest.fixture
def path(tiny_folder):
    return tiny_folder.path


def test_half_of_the_connections_may_be_idle_ones(path):
    with Running(path, max_connections=4) as running:
        sockets = [open_socket(running) for _ in range(2)]
        assert refusal_of(running) == (429, "Slowdown: too many connections at once")
        assert running.translate()[0] == 200
        sockets.pop().close()
        running.wait_until(lambda: running.server.limiter._sockets.num_open == 1)
        sockets.append(open_socket(running))
        for each in sockets:
            each.send("A dog.")
            assert each.recv()
            each.close()


def test_idle_connections_count_among_the_requests_at_once(path):
    with Running(path, max_connections=2) as running:
        socket, obstacle = open_socket(running), running.hold_up()
        first = threading.Thread(target=running.translate)
        first.start()
        running.wait_until(lambda: running.server.limiter.num_in_progress == 1)
        assert running.translate()[0] == 429
        obstacle.may_end.set()
        first.join()
        socket.close()


def test_names_of_other_servers_are_refused(path):
    with Running(path) as running:
        status, error = refusal_of(running, host="evil.example")
    assert (status, error[:38]) == (421, "this server is not known as evil.examp")


@pytest.mark.parametrize(
    ("allow_origin", "origin", "is_allowed"),
    [
        ("*", "https://evil.example", True),
        (None, "https://evil.example", False),
        (None, "null", False),
        (None, None, True),
        ("https://good.example", "https://good.example", True),
        ("https://good.example", "https://good.example.evil.example", False),
        ("https://good.example", "http://good.example", False),
    ],
)
def test_web_pages_of_other_origins(path, allow_origin, origin, is_allowed):
    more = {"suppress_origin": True} if origin is None else {"origin": origin}
    with Running(path, allow_origin=allow_origin) as running:
        if is_allowed:
            socket = open_socket(running, **more)
            socket.send("A dog.")
            assert socket.recv()
            socket.close()
        else:
            assert refusal_of(running, **more)[0] == 403


def test_the_server_s_own_pages_are_of_its_origin():
    own = {b"host": b"localhost:5000", b"origin": b"http://localhost:5000"}
    assert is_origin_allowed(own, None)
    for host in (b"localhost:5001", b"localhost", b""):
        assert not is_origin_allowed({**own, b"host": host}, None)
    assert not is_origin_allowed({b"origin": b""}, None)


def test_there_are_no_other_websockets(path):
    with Running(path) as running:
        for place in ("/", "/v2/translate", "/page/api/translate", "/translate/"):
            status, error = refusal_of(running, path=place)
            assert (status, error) == (404, "no WebSocket is here; /translate is one")


def test_who_sends_nothing_for_a_long_time_is_closed(path, monkeypatch):
    monkeypatch.setattr(limits, "IDLE_SECONDS", 0.2)
    with Running(path) as running:
        socket = open_socket(running)
        assert closing_of(socket) == (1001, "no message came for a long time")


def test_who_goes_away_takes_what_waits_out_of_the_queue(path):
    with Running(path, processes=0) as running:
        obstacle = running.hold_up()
        queue = running.service._model_queues["tiny"]._queue
        socket = open_socket(running)
        socket.send("The old dog.")
        running.wait_until(lambda: queue.num_sentences == 1)
        socket.sock.close()
        running.wait_until(lambda: queue.num_sentences == 0)
        running.wait_until(lambda: running.server.limiter.num_in_progress == 0)
        obstacle.may_end.set()
        figures = read(running.service.metrics)
    assert figures["dragoman_requests_total", "499", "WebSocket"] == 1


def test_messages_sent_at_once_are_answered_in_order(path):
    lines = [f"{'dog ' * number}." for number in (9, 1, 5, 2, 7)]
    with Running(path) as running:
        socket = open_socket(running)
        alone = []
        for each in lines:
            socket.send(each)
            alone.append(socket.recv())
        for each in lines:
            socket.send(each)
        assert [socket.recv() for _ in lines] == alone
        socket.close()


def test_messages_of_an_address_are_counted(path):
    """Where nobody needs a key, each message counts as a request of its address."""
    service = make_service([path], requests_per_minute=3)
    app = build_app(service, ApiKeys(requests_per_minute=3))
    with Running(None, server=(app, service)) as running:
        first, second = open_socket(running), open_socket(running)
        for socket in (first, second, first):
            socket.send("A dog.")
            assert socket.recv()
        second.send("A dog.")
        assert closing_of(second) == (1013, "Slowdown: 3 per 1 minute")
        assert running.translate()[0] == 429


def test_a_full_queue_closes_the_connection_until_later(path):
    with Running(path, processes=0, queue_tokens=40) as running:
        obstacle = running.hold_up()
        waiting = [open_socket(running) for _ in range(4)]
        for number, each in enumerate(waiting):
            each.send(f"The old dog sees the house {number}.")
        late = open_socket(running)
        late.send("The small tree likes the old garden and the house of the dog.\n" * 5)
        code, reason = closing_of(late)
        obstacle.may_end.set()
    assert (code, reason[:32]) == (1013, "Slowdown: too many texts are wai")


def test_a_stop_answers_what_was_sent_and_closes_the_rest(path):
    with Running(path, processes=0) as running:
        idle, busy = open_socket(running), open_socket(running)
        obstacle = running.hold_up()
        busy.send("The old dog.")
        running.wait_until(lambda: running.server.limiter.num_in_progress == 1)
        running.server.stop()
        assert closing_of(idle) == (1001, "the server is stopping")
        assert refusal_of(running) == (503, "the server is stopping")
        obstacle.may_end.set()
        assert busy.recv()
        assert closing_of(busy) == (1001, "the server is stopping")
        running.thread.join(20)
        assert not running.thread.is_alive()


def test_a_stop_does_not_wait_for_ever(path):
    with Running(path, processes=0, stop_seconds=0.5) as running:
        busy = open_socket(running)
        obstacle = running.hold_up()
        busy.send("The old dog.")
        running.wait_until(lambda: running.server.limiter.num_in_progress == 1)
        running.server.stop()
        assert closing_of(busy) == (1001, "the server is stopping")
        obstacle.may_end.set()


class Conversation:
    """A WebSocket without a network."""

    def __init__(self, *messages):
        self.messages = [{"type": "websocket.connect"}, *messages]
        self.sent = []

    async def receive(self):
        if not self.messages:
            await asyncio.Event().wait()
        return self.messages.pop(0)

    async def send(self, message):
        self.sent.append(message)


def converse(app, conversation, **options):
    metrics = Metrics()
    limiter = SocketLimiter(app, ServeOptions(**options), metrics, HeadCheck("127.0.0.1"))
    scope = {"type": "websocket", "path": "/", "headers": []}

    async def run():
        call = limiter(scope, conversation.receive, conversation.send)
        await asyncio.wait_for(call, 20)

    asyncio.run(run())
    assert (limiter.num_open, limiter.num_in_progress) == (0, 0)
    return read(metrics)


def test_what_fails_closes_the_connection_and_is_logged_without_its_text(caplog):
    async def fail(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        raise ValueError("secret text")

    conversation = Conversation({"type": "websocket.receive", "text": "secret text"})
    figures = converse(fail, conversation)
    assert conversation.sent[-1] == {
        "type": "websocket.close",
        "code": 1011,
        "reason": "internal error",
    }
    assert [record.getMessage() for record in caplog.records] == ["a WebSocket failed: ValueError"]
    assert figures["dragoman_requests_total", "1011", "WebSocket"] == 1


def test_who_takes_no_answer_is_left():
    async def answer(scope, receive, send):
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        await send({"type": "websocket.send", "text": "a"})
        raise AssertionError("the answer was taken")

    conversation = Conversation({"type": "websocket.receive", "text": "a"})
    take = conversation.send

    async def send(message):
        await take(message)
        if message["type"] == "websocket.send":
            await asyncio.Event().wait()

    conversation.send = send
    figures = converse(answer, conversation, client_seconds=0.05)
    assert figures["dragoman_requests_total", "499", "WebSocket"] == 1
