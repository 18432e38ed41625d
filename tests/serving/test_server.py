"""A real server: slow, silent and leaving clients, and a stop that loses nothing."""

import contextlib
import http.client
import importlib.util
import json
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.serving.queue.test_model_queue import Obstacle
from tests.serving.small_service import make_service
from tests.serving.test_metrics import read

from dragoman.errors import OptionError
from dragoman.serving import server as module
from dragoman.serving.app import build_app
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.language_pairs import ServedModels
from dragoman.serving.options import ServeOptions
from dragoman.serving.page.page_runs import WatchedRuns
from dragoman.serving.server import Server, listen, name_url
from dragoman.serving.service import Service


class Running:
    """A server in a thread, and its address."""

    def __init__(self, path, server=None, **options):
        options = {"client_seconds": 1.0, "wait_milliseconds": 0.0} | options
        keys = ApiKeys()
        if server is None:
            self.service = make_service([path], **options)
            app = build_app(self.service, keys)
        else:
            app, self.service = server
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
        model_queue = self.service._model_queues["tiny"]
        self._submit(model_queue.run_side_task(obstacle))
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
        "dragoman.decoding.translator.search_again",
        lambda parts, *_: list(parts),
    )


@pytest.fixture(scope="module")
def path(tiny_folder):
    return tiny_folder.path


@pytest.fixture(scope="module")
def attacks():
    """Give the module that makes odd requests."""
    place = Path(__file__).parents[2] / "benchmarks" / "attacks" / "odd_requests.py"
    specification = importlib.util.spec_from_file_location("odd_requests", place)
    module = importlib.util.module_from_spec(specification)
    sys.modules["odd_requests"] = module
    specification.loader.exec_module(module)
    return module


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
        body.sendall(
            b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
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
        model_queue = running.service._model_queues["tiny"]
        running.wait_until(lambda: model_queue.num_waiting == 5)
        for each in leaving:
            each.close()
        running.wait_until(lambda: model_queue.num_waiting == 0)
        obstacle.may_end.set()
        assert running.translate()[0] == 200
        figures = read(running.service.metrics)
        assert figures["dragoman_batch_sentences_sum", "tiny"] == 1
        assert figures["dragoman_requests_total", "/translate", "499"] == 5
        running.wait_until(lambda: running.server.limiter.num_in_progress == 0)


def test_overload_is_refused_at_once_and_passes(path):
    with Running(path, queue_tokens=60) as running, ThreadPoolExecutor(40) as pool:
        obstacle = running.hold_up()
        asked = [pool.submit(running.translate, f"A dog sees {n}.") for n in range(40)]
        model_queue = running.service._model_queues["tiny"]
        running.wait_until(
            lambda: sum(each.done() for each in asked) + model_queue.num_waiting == 40
        )
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
        model_queue = running.service._model_queues["tiny"]
        running.wait_until(lambda: model_queue.num_waiting == 10)
        running.server.stop()
        running.wait_until(lambda: running.server.limiter._is_closed)
        assert running.translate()[0] == 503
        assert running.status("/health") == 200
        assert running.status("/ready") == 503
        assert running.thread.is_alive()
        obstacle.may_end.set()
        assert [each.result()[0] for each in accepted] == [200] * 10
        running.thread.join(20)
        assert not running.thread.is_alive()


def test_a_request_that_was_sent_just_before_a_stop_is_answered(path, monkeypatch):
    monkeypatch.setattr(module, "LATE_SECONDS", 1000.0)  # it is late when the test says so
    with Running(path) as running:
        running.server.stop()
        running.wait_until(lambda: running.status("/ready") == 503)
        assert running.translate()[0] == 200
        monkeypatch.setattr(module, "LATE_SECONDS", 0.0)
        running.thread.join(20)
        assert not running.thread.is_alive()


def test_a_stop_does_not_wait_for_ever(path):
    with Running(path, stop_seconds=0.1) as running, ThreadPoolExecutor(2) as pool:
        obstacle = running.hold_up()
        stuck = pool.submit(running.status, "/languages")
        stuck.result()
        waiting = running.connect()
        waiting.sendall(written("A dog."))
        running.wait_until(lambda: running.service._model_queues["tiny"].num_waiting == 1)
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
        running.wait_until(lambda: running.service._model_queues["tiny"].num_waiting == 1)
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
            running.server.limiter._app.state.keys._requests_per_minute = 1
            body = json.dumps({"q": "A dog.", "source": "en", "target": "fr"})
            found = [
                running.ask(
                    "POST", "/translate", body,
                    {"Content-Type": "application/json", "X-Forwarded-For": f"10.0.0.{number}"},
                )[0]
                for number in (1, 2)
            ]  # fmt: skip
            assert found == statuses


def test_a_name_that_is_not_the_server_s_is_refused(path):
    with Running(path) as running:
        for host, status in (("evil.example", 421), (f"localhost:{running.port}", 200)):
            assert running.ask("GET", "/languages", headers={"Host": host})[0] == status
        told = json.loads(running.ask("GET", "/page/api/page", headers={"Host": "evil.example"})[1])
    assert told == {
        "error": "this server is not known as evil.example; start it with --allow-host evil.example"
    }


POST = b"POST /translate HTTP/1.1\r\nHost: localhost\r\n"
HIDDEN = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
AMBIGUOUS = {
    "both": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": POST + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    "length with sign": POST + b"Content-Length: +0\r\n\r\n",
    "other coding": POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two codings": POST + b"Transfer-Encoding: chunked\r\n" * 2 + b"\r\n0\r\n\r\n",
    "space before colon": POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "folded": POST + b"X: a\r\n Content-Length: 5\r\nContent-Length: 0\r\n\r\n",
    "folded coding": POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "line feed": POST + b"X: a\nContent-Length: 0\r\n\r\n",
    "line feeds": b"POST /translate HTTP/1.1\nHost: localhost\nContent-Length: 0\n\n",
    "line feed at the end": POST + b"Content-Length: 0\r\n\n",
    "carriage return": POST + b"X: a\rContent-Length: 5\r\nContent-Length: 0\r\n\r\n",
    "nul": POST + b"X: a\0b\r\nContent-Length: 0\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: a\r\n\r\n",
    "version": b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "chunk": POST + b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
}


def read_all(connection):
    """Read until the server closes the connection."""
    answer = b""
    connection.settimeout(20)
    while part := connection.recv(65536):
        answer += part
    return answer


@pytest.fixture(scope="module")
def patient(path):
    """Give a server that never closes a connection for being slow while these tests run."""
    with Running(path, client_seconds=60.0) as running:
        yield running


@pytest.mark.parametrize("first", [b"", HIDDEN], ids=["alone", "after another"])
@pytest.mark.parametrize("name", AMBIGUOUS)
def test_ambiguous_requests_are_refused_and_nothing_after_them_is_read(patient, name, first):
    connection = patient.connect()
    connection.sendall(first + AMBIGUOUS[name] + HIDDEN)
    answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 200") == bool(first)
    assert answer.count(b"HTTP/1.1 400") == 1
    assert answer.count(b"HTTP/1.1 ") == 1 + bool(first)


@pytest.mark.parametrize("end", [b"0\r\n\r\n", b"0\r\n\n", b"0\r\nX: y\n\n", b"0;a=b\r\n\r\n"])
def test_nothing_after_chunks_is_read(patient, end):
    body = json.dumps({"q": "A dog.", "source": "en", "target": "fr"}).encode()
    head = POST + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    connection = patient.connect()
    connection.sendall(head + b"%x\r\n%s\r\n" % (len(body), body) + end + HIDDEN)
    answer = read_all(connection)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"translatedText" in answer or b"HTTP/1.1 400" in answer


def test_what_is_wrong_in_the_middle_of_an_answer_ends_it_quietly(patient, caplog):
    """The head is refused at once; what comes then cannot be answered again."""
    connection = patient.connect()
    connection.sendall(POST + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
    assert b"HTTP/1.1 400" in connection.recv(65536)
    with contextlib.suppress(ConnectionError):
        connection.sendall(b"no chunk\r\n")
        read_all(connection)
    patient.wait_until(lambda: patient.server.limiter.num_in_progress == 0)
    assert patient.status("/health") == 200
    assert not [each for each in caplog.records if each.exc_info]


def test_odd_requests_are_answered(patient, attacks, caplog):
    outcome = attacks.attack(patient.port, 5, 700, 120)
    assert outcome.num_tried == 700
    assert (outcome.failures, outcome.hangs) == ([], [])
    assert outcome.statuses[200] > 20
    assert not [each for each in caplog.records if each.exc_info]


def test_odd_requests_to_a_server_of_runs_are_answered(attacks, tmp_path, caplog):
    log = '{"event": "update", "step": 1, "loss": NaN}\n{"event": "end", "why": "\\ud800"}\n'
    (tmp_path / "metrics.jsonl").write_text(log)
    options = ServeOptions(client_seconds=60.0)
    service = Service(ServedModels([]), options)
    app = build_app(service, ApiKeys(), WatchedRuns([tmp_path]))
    with Running(None, server=(app, service)) as running:
        outcome = attacks.attack(running.port, 6, 500, 120)
        assert running.ask("GET", "/page/api/runs/0")[0] == 200
        assert running.status("/frontend/settings") == 404
    assert (outcome.num_tried, outcome.failures, outcome.hangs) == (500, [], [])
    assert not [each for each in caplog.records if each.exc_info]


def test_every_route_is_attacked(patient, attacks):
    app = patient.server.limiter._app
    assert {route.path for route in app.routes} == set(attacks.PATHS)


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
