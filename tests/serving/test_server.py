"""A real server: slow, silent and leaving clients, and a stop that loses nothing."""

import http.client
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.serving.small_service import make_service
from tests.serving.test_lane import Obstacle
from tests.serving.test_metrics import read

from dragoman.errors import OptionError
from dragoman.serving import server as module
from dragoman.serving.app import build_app
from dragoman.serving.keys import Keys
from dragoman.serving.server import Server, listen, name_url


class Running:
    """A server in a thread, and its address."""

    def __init__(self, path, **options):
        options = {"client_seconds": 1.0, "wait_milliseconds": 0.0} | options
        self.service = make_service([path], **options)
        keys = Keys()
        app = build_app(self.service, keys)
        self.listener = listen("127.0.0.1", 0)
        self.port = self.listener.getsockname()[1]
        self.server = Server(app, self.service, self.service.options, keys)
        self.thread = threading.Thread(target=self.server.run, args=(self.listener,), daemon=True)

    def __enter__(self):
        self.thread.start()
        until = time.monotonic() + 20
        while self.status("/ready") != 200:
            assert time.monotonic() < until
            time.sleep(0.02)
        return self

    def __exit__(self, *arguments):
        self.server.stop()
        self.thread.join(20)
        assert not self.thread.is_alive()

    def status(self, path):
        try:
            return self.ask("GET", path)[0]
        except OSError:
            return None

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def translate(self, text="A dog."):
        body = json.dumps({"q": text, "source": "en", "target": "fr"})
        return self.ask("POST", "/translate", body, {"Content-Type": "application/json"})

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def hold_up(self):
        """Hold the model up until the obstacle goes."""
        obstacle = Obstacle()
        lane = self.service._lanes["tiny"]
        self._submit(lane.run_beside(obstacle))
        assert obstacle.has_begun.wait(20)
        return obstacle

    def _submit(self, coroutine):
        import asyncio

        return asyncio.run_coroutine_threadsafe(coroutine, self.server._loop)

    def wait_until(self, condition, seconds=20.0):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "SWEEP_SECONDS", 0.1)
    monkeypatch.setattr(
        "dragoman.serving.sentence_translation.search_again",
        lambda _, translations, *__: list(translations),
    )


@pytest.fixture(scope="module")
def path(tiny_folder):
    return tiny_folder.path


REQUEST = (
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s"
)


def written(text):
    body = json.dumps({"q": text, "source": "en", "target": "fr"}).encode()
    return REQUEST % (len(body), body)


def is_closed_within(connection, seconds):
    connection.settimeout(seconds)
    try:
        while connection.recv(1000):
            pass
    except TimeoutError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_translates(path):
    with Running(path) as running:
        status, body = running.translate()
    assert status == 200
    assert set(json.loads(body)) == {"translatedText"}


def test_who_says_nothing_or_half_a_head_is_closed(path):
    with Running(path) as running:
        silent, half = running.connect(), running.connect()
        half.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nX-A:")
        again = running.connect()
        again.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert again.recv(1000).startswith(b"HTTP/1.1 200")
        again.sendall(b"GET /hea")  # half a head after a whole request
        began = time.monotonic()
        assert all(is_closed_within(each, 10) for each in (silent, half, again))
        assert time.monotonic() - began > 0.5
        assert running.status("/health") == 200


def test_who_sends_a_body_too_slowly_is_told(path):
    with Running(path) as running:
        slow = running.connect()
        slow.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        slow.settimeout(20)
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")


def test_endless_heads_and_bodies_are_cut_off(path):
    with Running(path, max_body_bytes=10_000) as running:
        head = running.connect()
        head.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises(OSError):  # noqa: PT012 - it is one of these that fails
            for _ in range(1000):
                head.sendall(b"X-A: " + b"a" * 10_000 + b"\r\n")
        body = running.connect()
        body.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
        for _ in range(4):
            body.sendall(chunk)
        assert body.recv(1000).startswith(b"HTTP/1.1 413")


def test_an_upload_that_is_too_large_is_told_so_at_once(path):
    with Running(path, max_body_bytes=1000) as running:
        status, body = running.ask("POST", "/translate", b"x" * 1_000_000)
    assert (status, json.loads(body)) == (413, {"error": "the request is larger than 1,000 bytes"})


def test_who_leaves_costs_nothing_further(path):
    with Running(path) as running:
        obstacle = running.hold_up()
        leaving = [running.connect() for _ in range(5)]
        for number, each in enumerate(leaving):
            each.sendall(written(f"A dog sees {number}."))
        lane = running.service._lanes["tiny"]
        running.wait_until(lambda: lane.num_waiting == 5)
        for each in leaving:
            each.close()
        running.wait_until(lambda: lane.num_waiting == 0)
        obstacle.may_end.set()
        assert running.translate()[0] == 200
        figures = read(running.service.metrics)
        assert figures["dragoman_batch_sentences_sum", "tiny"] == 1
        assert figures["dragoman_requests_total", "/translate", "499"] == 5
        running.wait_until(lambda: running.server.gate.num_in_progress == 0)


def test_overload_is_refused_at_once_and_passes(path):
    with Running(path, queue_tokens=60) as running, ThreadPoolExecutor(40) as pool:
        obstacle = running.hold_up()
        asked = [pool.submit(running.translate, f"A dog sees {n}.") for n in range(40)]
        lane = running.service._lanes["tiny"]
        running.wait_until(lambda: sum(each.done() for each in asked) + lane.num_waiting == 40)
        refused = [each.result() for each in asked if each.done()]
        assert {status for status, _ in refused} == {429}
        assert json.loads(refused[0][1])["error"].startswith("Slowdown")
        obstacle.may_end.set()
        statuses = [each.result()[0] for each in asked]
        assert statuses.count(200) == 40 - len(refused) > 0
        assert running.translate()[0] == 200


def test_a_stop_answers_what_was_accepted_and_refuses_the_rest(path):
    with Running(path) as running, ThreadPoolExecutor(12) as pool:
        obstacle = running.hold_up()
        accepted = [pool.submit(running.translate, f"A dog sees {n}.") for n in range(10)]
        lane = running.service._lanes["tiny"]
        running.wait_until(lambda: lane.num_waiting == 10)
        running.server.stop()
        running.wait_until(lambda: running.translate()[0] == 503)
        assert running.status("/health") == 200
        assert running.status("/ready") == 503
        assert running.thread.is_alive()
        obstacle.may_end.set()
        assert [each.result()[0] for each in accepted] == [200] * 10
        running.thread.join(20)
        assert not running.thread.is_alive()


def test_a_stop_does_not_wait_for_ever(path):
    with Running(path, stop_seconds=0.1) as running, ThreadPoolExecutor(2) as pool:
        obstacle = running.hold_up()
        stuck = pool.submit(running.status, "/languages")
        stuck.result()
        waiting = running.connect()
        waiting.sendall(written("A dog."))
        running.wait_until(lambda: running.service._lanes["tiny"].num_waiting == 1)
        running.server.stop()
        running.thread.join(4)
        assert not running.thread.is_alive()
        answer = waiting.recv(65536)
        assert answer.startswith(b"HTTP/1.1 503 ")
        assert b"the server has stopped" in answer
        obstacle.may_end.set()


def test_who_is_told_twice_stops_at_once(path):
    with Running(path) as running:
        obstacle = running.hold_up()
        waiting = running.connect()
        waiting.sendall(written("A dog."))
        running.wait_until(lambda: running.service._lanes["tiny"].num_waiting == 1)
        running.server.stop()
        running.server.stop()
        running.thread.join(15)
        assert not running.thread.is_alive()
        obstacle.may_end.set()


def test_a_server_that_has_ended_can_be_stopped_again(path):
    running = Running(path)
    running.server.stop()  # before it began: nothing to stop
    with running:
        pass
    running.server.stop()


def test_forwarded_addresses_are_believed_of_a_known_proxy_only(path):
    for proxy, statuses in ((None, [200, 429]), ("127.0.0.1", [200, 200])):
        with Running(path, proxy=proxy) as running:
            running.server.gate._app.state.keys._requests_per_minute = 1
            body = json.dumps({"q": "A dog.", "source": "en", "target": "fr"})
            found = [
                running.ask(
                    "POST", "/translate", body,
                    {"Content-Type": "application/json", "X-Forwarded-For": f"10.0.0.{number}"},
                )[0]
                for number in (1, 2)
            ]  # fmt: skip
            assert found == statuses


def test_a_port_that_is_taken_is_named():
    with listen("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(OptionError) as caught:
            listen("127.0.0.1", port)
    assert str(caught.value) == (
        f"cannot listen at 127.0.0.1, port {port}: Address already in use; give another --port or "
        "--host"
    )


def test_a_host_that_is_nowhere_is_named():
    with pytest.raises(OptionError, match=r"host is “no such host”: .*; give an address"):
        listen("no such host", 0)


def test_urls_can_be_opened():
    with listen("127.0.0.1", 0) as listener:
        assert name_url(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}/"
    if socket.has_ipv6:
        with listen("::1", 0) as listener:
            assert name_url(listener) == f"http://[::1]:{listener.getsockname()[1]}/"
