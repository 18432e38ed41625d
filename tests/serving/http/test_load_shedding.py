"""What cannot be accepted is refused at once, and nothing else is."""

import email.parser
import json

import pytest
from tests.serving.test_metrics import read

from dragoman.serving.http.load_shedding import OVERLOADED_MESSAGE, LoadShedder
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions

HEAD = b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"


def make_shedder(wait=2.5, **options):
    asked = []

    def seconds_until_room(address, num_tokens):
        asked.append((address, num_tokens))
        return wait

    load_shedder = LoadShedder(ServeOptions(**options), Metrics(), seconds_until_room)
    return load_shedder, asked


def test_a_whole_request_is_refused_in_the_words_of_its_protocol():
    for path, key in ((b"/translate", "error"), (b"/v2/translate?x=y", "message")):
        load_shedder, asked = make_shedder()
        answer = load_shedder.refuse(HEAD.replace(b"/translate", path) + b"x" * 9, "1.2.3.4")
        status, _, rest = answer.partition(b"\r\n")
        head, _, body = rest.partition(b"\r\n\r\n")
        headers = email.parser.BytesParser().parsebytes(head)
        assert status == b"HTTP/1.1 429 Too Many Requests"
        assert headers["Retry-After"] == "3"
        assert headers["Access-Control-Allow-Origin"] == "*"
        assert int(headers["Content-Length"]) == len(body)
        assert json.loads(body) == {key: OVERLOADED_MESSAGE}
        assert asked == [("1.2.3.4", 1 + (len(HEAD) - len(b"/translate") + len(path) + 9) // 8)]
        figures = read(load_shedder._metrics)
        assert figures["dragoman_requests_total", "429", "other"] == 1
        assert figures["dragoman_failures_total", "overloaded"] == 1
        assert figures["dragoman_requests_in_progress",] == 0


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEAD,
        HEAD + b"x" * 8,
        HEAD + b"x" * 10,
        HEAD[:-4],
        HEAD.replace(b"POST", b"GET") + b"x" * 9,
        HEAD.replace(b"/translate", b"/languages") + b"x" * 9,
        HEAD.replace(b"/translate", b"/translate/more") + b"x" * 9,
        HEAD.replace(b"1.1", b"1.0") + b"x" * 9,
        HEAD.replace(b"Content-Length: 9", b"Transfer-Encoding: chunked") + b"x" * 9,
        HEAD.replace(b"Host", b"expect: 100-continue\r\nHost") + b"x" * 9,
        HEAD.replace(b"Host", b"Connection: close\r\nHost") + b"x" * 9,
        HEAD.replace(b": 9", b": 99999999") + b"x" * 9,
        HEAD.replace(b": 9", b": -9") + b"x" * 9,
        HEAD.replace(b"Host", b"Content-Length: 9\r\nHost") + b"x" * 9,
        HEAD.replace(b"Host", b"X: y\nTransfer-Encoding: chunked\r\nHost") + b"x" * 9,
        HEAD.replace(b"Host", b"X: y\r\n Transfer-Encoding: chunked\r\nHost") + b"x" * 9,
    ],
)
def test_whatever_is_less_plain_is_left_to_others(data):
    load_shedder, asked = make_shedder()
    assert load_shedder.refuse(data, "1.2.3.4") is None
    assert asked == []


def test_where_there_is_room_nothing_is_refused():
    load_shedder, asked = make_shedder(wait=None)
    assert load_shedder.refuse(HEAD + b"x" * 9, "1.2.3.4") is None
    assert len(asked) == 1
    always = LoadShedder(ServeOptions(), Metrics(), None)
    assert always.refuse(HEAD + b"x" * 9, "1.2.3.4") is None
    assert always.estimate_wait("/translate", "1.2.3.4", 9) is None


def test_behind_a_proxy_nobody_knows_yet_who_asks():
    load_shedder, asked = make_shedder(proxy="1.2.3.4")
    assert load_shedder.refuse(HEAD + b"x" * 9, "1.2.3.4") is None
    assert asked == []


def test_files_count_little_until_somebody_has_looked_at_them():
    load_shedder, asked = make_shedder()
    assert load_shedder.estimate_wait("/translate_file", "1.2.3.4", 10**6) == 2.5
    assert load_shedder.estimate_wait("/health", "1.2.3.4", 1) is None
    assert asked == [("1.2.3.4", 1)]
