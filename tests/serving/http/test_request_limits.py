"""Requests too large, too slow or too many are rejected; disconnected ones are cancelled."""

import asyncio
import json
import logging

import pytest
from tests.serving.test_metrics import read

from dragoman.serving.http import request_limits as limits
from dragoman.serving.http.load_shedding import LoadShedder
from dragoman.serving.http.request_limits import RequestLimiter
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions
from dragoman.serving.service_types import OVERLOADED_MESSAGE, record_pivot_paths


def scope_of(path="/translate", method="POST", headers=()):
    return {"type": "http", "path": path, "method": method, "headers": list(headers)}


class Exchange:
    """A request as it comes, and the answer to it."""

    def __init__(self, *chunks, pauses=0.0, goes_away=False):
        self.messages = [
            {"type": "http.request", "body": chunk, "more_body": index < len(chunks) - 1}
            for index, chunk in enumerate(chunks or (b"",))
        ]
        self.pauses = pauses
        self.goes_away = goes_away
        self.sent = []
        self.num_received = 0

    async def receive(self):
        await asyncio.sleep(self.pauses)
        if self.messages:
            self.num_received += 1
            return self.messages.pop(0)
        if not self.goes_away:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(self, message):
        self.sent.append(message)

    @property
    def status(self):
        return self.sent[0]["status"] if self.sent else None

    @property
    def headers(self):
        return dict(self.sent[0]["headers"])

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.sent[1:])


async def echo(scope, receive, send):
    """Answer with what came."""
    message = await receive()
    assert message["more_body"] is False
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def pass_through(
    exchange, app=echo, scope=None, metrics=None, close=False, seconds_until_room=None, **more
):
    metrics, options = metrics or Metrics(), ServeOptions(**more)
    limiter = RequestLimiter(
        app, options, metrics, LoadShedder(options, metrics, seconds_until_room)
    )
    if close:
        limiter.close()

    async def run():
        await asyncio.wait_for(limiter(scope or scope_of(), exchange.receive, exchange.send), 20)
        assert limiter.num_in_progress == 0

    asyncio.run(run())
    return exchange


def refusal_of(exchange):
    return exchange.status, json.loads(exchange.body)["error"]


def test_a_request_comes_through_whole():
    exchange = pass_through(Exchange(b"ab", b"", b"cd"))
    assert (exchange.status, exchange.body) == (200, b"abcd")


def test_what_says_that_it_is_too_large_is_not_read():
    exchange = Exchange(b"x" * 101)
    pass_through(
        exchange, scope=scope_of(headers=[(b"content-length", b"101")]), max_body_bytes=100
    )
    assert refusal_of(exchange) == (413, "the request is larger than 100 bytes")
    assert exchange.headers[b"connection"] == b"close"


def test_what_does_not_say_how_large_it_is_is_read_only_so_far(monkeypatch):
    monkeypatch.setattr(limits, "LINGER_SECONDS", 0.0)
    exchange = pass_through(Exchange(*[b"x" * 40] * 50), max_body_bytes=100)
    assert refusal_of(exchange)[0] == 413
    assert exchange.num_received <= 4


def test_after_a_refusal_the_rest_is_thrown_away_so_that_the_client_reads_it():
    exchange = pass_through(Exchange(*[b"x" * 40] * 50), max_body_bytes=100)
    assert exchange.status == 413
    assert exchange.num_received == 50


def test_throwing_away_ends(monkeypatch):
    monkeypatch.setattr(limits, "LINGER_SECONDS", 0.05)
    exchange = pass_through(Exchange(*[b"x"] * 10_000, pauses=0.01), max_body_bytes=1)
    assert exchange.status == 413
    assert exchange.num_received < 100


@pytest.mark.parametrize("length", [b"-1", b"1e9", b"", b"\xb2"])
def test_lengths_that_are_no_numbers_are_refused(length):
    exchange = pass_through(Exchange(b"x"), scope=scope_of(headers=[(b"content-length", length)]))
    assert exchange.status == 413


@pytest.mark.parametrize("path", ["/translate_file", "/v2/document"])
def test_files_may_be_larger(path):
    options = {"max_body_bytes": 10, "max_file_bytes": 1000}
    exchange = pass_through(Exchange(b"x" * 500), scope=scope_of(path), **options)
    assert exchange.status == 200
    exchange = pass_through(Exchange(b"x" * 1001), scope=scope_of(path), **options)
    assert exchange.status == 413


def test_who_sends_too_slowly_is_refused():
    exchange = pass_through(Exchange(*[b"x"] * 100, pauses=0.05), client_seconds=0.2)
    assert refusal_of(exchange) == (408, "the request came too slowly")


def test_who_sends_enough_may_take_longer(monkeypatch):
    monkeypatch.setattr(limits, "SLOWEST", 100)
    exchange = pass_through(Exchange(*[b"x" * 20] * 20, pauses=0.02), client_seconds=0.2)
    assert exchange.status == 200


def test_who_does_not_read_the_answer_is_given_up():
    class Stuck(Exchange):
        async def send(self, message):
            await super().send(message)
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

    metrics = Metrics()
    pass_through(Stuck(b"x"), metrics=metrics, client_seconds=0.1)
    assert read(metrics)["dragoman_requests_total", "499", "other"] == 1


def test_an_answer_that_is_being_made_stops_when_its_client_goes():
    stopped = []

    async def work(scope, receive, send):
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    metrics = Metrics()
    exchange = pass_through(Exchange(b"x", goes_away=True), work, metrics=metrics)
    assert stopped == [True]
    assert exchange.sent == []
    assert read(metrics)["dragoman_requests_total", "499", "other"] == 1


def test_who_goes_while_sending_is_forgotten():
    exchange = Exchange(b"x", b"y", goes_away=True)
    exchange.messages.pop()
    pass_through(exchange)
    assert exchange.sent == []


def test_the_application_hears_of_a_client_that_goes():
    heard = []

    async def listen(scope, receive, send):
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            heard.append((await receive())["type"])
        except asyncio.CancelledError:
            heard.append("cancelled")
            raise

    pass_through(Exchange(b"x", goes_away=True), listen)
    assert heard in (["http.disconnect"], ["cancelled"])


def test_a_cancelled_server_stays_cancelled():
    async def run():
        has_begun = asyncio.Event()

        async def wait(scope, receive, send):
            has_begun.set()
            await asyncio.Event().wait()

        limiter = RequestLimiter(wait, ServeOptions(), Metrics())
        exchange = Exchange(b"x")
        task = asyncio.create_task(limiter(scope_of(), exchange.receive, exchange.send))
        await has_begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())


def test_a_failing_application_is_answered_without_its_words(caplog):
    async def fail(scope, receive, send):
        raise ValueError("somebody's secret text")

    with caplog.at_level(logging.ERROR):
        exchange = pass_through(Exchange(b"x"), fail)
    assert refusal_of(exchange) == (500, "internal error")
    assert "ValueError in fail, line" in caplog.text
    assert "secret" not in caplog.text


def test_an_answer_that_fails_half_way_is_broken_off():
    async def fail(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("x")

    with pytest.raises(ValueError, match="x"):
        pass_through(Exchange(b"x"), fail)


def test_too_many_at_once_are_refused_and_health_is_not():
    async def run():
        may_end = asyncio.Event()

        async def wait(scope, receive, send):
            await may_end.wait()
            await echo(scope, receive, send)

        limiter = RequestLimiter(wait, ServeOptions(max_connections=2), Metrics())
        exchanges = [Exchange(b"x") for _ in range(3)]
        tasks = [
            asyncio.create_task(limiter(scope_of(), each.receive, each.send)) for each in exchanges
        ]
        health = Exchange()
        tasks.append(
            asyncio.create_task(limiter(scope_of("/health", "GET"), health.receive, health.send))
        )
        await tasks[2]
        assert exchanges[2].status == 429
        may_end.set()
        await asyncio.gather(*tasks)
        return [each.status for each in exchanges], refusal_of(exchanges[2]), health.status

    statuses, refusal, health = asyncio.run(run())
    assert statuses == [200, 200, 429]
    assert refusal[1] == "Slowdown: too many requests at once"
    assert health == 200


def test_where_there_is_no_room_requests_to_translate_are_not_even_looked_at():
    async def never(scope, receive, send):
        raise AssertionError

    metrics = Metrics()
    asked = []

    def seconds_until_room(address, num_tokens):
        asked.append((address, num_tokens))
        return 2.5

    scope = scope_of() | {"client": ("1.2.3.4", 5)}
    exchange = Exchange(b"x" * 80)
    pass_through(exchange, never, scope, metrics, seconds_until_room=seconds_until_room)
    assert refusal_of(exchange) == (429, OVERLOADED_MESSAGE)
    assert exchange.headers[b"retry-after"] == b"3"
    assert b"connection" not in exchange.headers
    assert asked == [("1.2.3.4", 11)]
    assert read(metrics)["dragoman_failures_total", "overloaded"] == 1
    other = pass_through(
        Exchange(b"x"), scope=scope_of("/languages"), seconds_until_room=seconds_until_room
    )
    assert other.status == 200
    there_is = pass_through(Exchange(b"x"), seconds_until_room=lambda *_: None)
    assert there_is.status == 200


def test_a_closed_gate_refuses_all_but_signs_of_life():
    exchange = pass_through(Exchange(b"x"), close=True)
    assert refusal_of(exchange) == (503, "the server is stopping")
    assert exchange.headers[b"connection"] == b"close"
    for path in ("/health", "/ready", "/metrics"):
        assert pass_through(Exchange(), close=True, scope=scope_of(path, "GET")).status == 200


def test_other_pages_may_use_the_protocols_but_not_the_page_s_own():
    answer = pass_through(Exchange(b"x"))
    assert answer.headers[b"access-control-allow-origin"] == b"*"
    assert answer.headers[b"access-control-allow-methods"] == b"DELETE, GET, PATCH, POST, PUT"
    allowed = answer.headers[b"access-control-allow-headers"].split(b", ")
    for name in (
        b"Authorization",
        b"Content-Type",
        b"Ocp-Apim-Subscription-Key",
        b"X-Goog-Api-Key",
    ):
        assert name in allowed
    own = pass_through(Exchange(b"x"), scope=scope_of("/page/api/translate"))
    assert b"access-control-allow-origin" not in own.headers
    assert own.headers[b"x-content-type-options"] == b"nosniff"


def test_preflights_are_answered():
    asked = pass_through(Exchange(), scope=scope_of(method="OPTIONS"))
    assert (asked.status, asked.body) == (204, b"")
    assert asked.headers[b"access-control-allow-origin"] == b"*"
    own = pass_through(Exchange(b"x"), scope=scope_of("/page/api/x", "OPTIONS"))
    assert own.status == 200  # as the application says
    off = pass_through(Exchange(b"x"), scope=scope_of(method="OPTIONS"), allow_origin=None)
    assert off.status == 200


def test_a_way_through_a_third_language_is_said_in_a_header():
    async def through(scope, receive, send):
        record_pivot_paths([("fr", "en", "es")])
        await echo(scope, receive, send)

    assert pass_through(Exchange(b"x"), through).headers[b"x-translated-through"] == b"fr-en-es"
    assert b"x-translated-through" not in pass_through(Exchange(b"x")).headers


def test_what_is_no_request_goes_by():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    asyncio.run(RequestLimiter(app, ServeOptions(), Metrics())({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]
