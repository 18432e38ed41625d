"""Files of those who have nothing left are not read."""

import asyncio
import json

import pytest
from tests.serving.asked import Asked
from tests.serving.fake_service import FakeService, talk_to
from tests.serving.http.test_request_limits import Exchange, echo
from tests.serving.running_server import KEY, make_keys

from dragoman.serving.documents import documents
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.http.request_limits import RequestLimiter
from dragoman.serving.http.uploads import BEGINNING, UploadCheck
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions

PART = b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
FILE = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
PATHS = {"/translate_file": ("Bearer", b"api_key", 403), "/v2/document": (
    "DeepL-Auth-Key", b"auth_key", 456)}  # fmt: skip


def scope_of(path, key=None, query=b""):
    headers = [] if key is None else [(b"authorization", f"{PATHS[path][0]} {key}".encode())]
    return {
        "type": "http", "path": path, "method": "POST", "headers": headers,
        "query_string": query, "client": ("1.2.3.4", 5),
    }  # fmt: skip


def use_up(**limits):
    keys = make_keys(**limits)
    asked = Asked(keys)
    asked.charge(asked.authenticate(KEY, ""), 10)
    return keys


def send(keys, scope, *chunks):
    exchange = Exchange(*chunks)
    limiter = RequestLimiter(echo, ServeOptions(), Metrics(), keys=keys)
    asyncio.run(limiter(scope, exchange.receive, exchange.send))
    return exchange


@pytest.mark.parametrize("path", PATHS)
def test_a_key_in_the_head_that_has_nothing_left_is_refused_unread(path):
    _, field, status = PATHS[path]
    keys = use_up(characters_per_month=10)
    for scope in (scope_of(path, KEY), scope_of(path, query=field + b"=" + KEY.encode())):
        check = Asked(UploadCheck(keys, scope))
        found = check.find_refusal()
        assert (found[0], found[1].kind) == (status, "quota")
        exchange = send(keys, scope, b"abc", b"def")
        body = json.loads(exchange.body)
        assert exchange.status == status
        assert "10 characters a month are used up" in (body.get("error") or body["message"])


@pytest.mark.parametrize("path", PATHS)
def test_a_key_before_the_file_that_has_nothing_left_is_refused_at_once(path):
    _, field, status = PATHS[path]
    keys = use_up(requests_per_minute=1)
    begin = PART % (field, KEY.encode()) + FILE
    check = Asked(UploadCheck(keys, scope_of(path)))
    assert check.find_refusal() is None
    assert check.find_refusal([begin[:30]]) is None
    status, error = check.find_refusal([begin[:30], begin[30:]])
    assert (status, error.kind) == (429, "too_many_requests")
    exchange = send(keys, scope_of(path), begin, b"x")
    assert exchange.status == 429
    assert int(exchange.headers[b"retry-after"]) > 1


def test_a_wrong_key_is_refused_unread():
    check = Asked(UploadCheck(make_keys(), scope_of("/v2/document", "wrong")))
    assert check.find_refusal()[0] == 403


def test_addresses_that_ask_too_often_are_refused_unread():
    keys = ApiKeys(requests_per_minute=1)
    scope = scope_of("/translate_file")
    assert send(keys, scope, b"abc").status == 200
    asked = Asked(keys)
    asked.charge(asked.authenticate(None, "1.2.3.4"), 0)
    assert send(keys, scope, b"abc").status == 429


def test_who_has_something_left_or_is_not_known_yet_is_read():
    keys = make_keys(characters_per_month=10, requests_per_minute=1)
    assert send(keys, scope_of("/translate_file", KEY), b"ab", b"cd").body == b"abcd"
    check = Asked(UploadCheck(keys, scope_of("/translate_file")))
    late = [FILE + b"x" * BEGINNING, PART % (b"api_key", b"wrong")]
    assert check.find_refusal(late[:1]) is None
    assert check.find_refusal(late) is None  # only the beginning is looked at


@pytest.mark.parametrize("path", PATHS)
def test_a_file_is_not_taken_apart_for_who_has_nothing_left(path, monkeypatch):
    monkeypatch.setattr(documents, "read_text", None)
    client = talk_to(FakeService(), use_up(characters_per_month=10, requests_per_minute=2))
    _, field, status = PATHS[path]
    form = {field.decode(): KEY, "source": "en", "target": "fr", "target_lang": "FR"}
    answer = client.post(path, data=form, files={"file": ("a.txt", b"A dog.")})
    assert answer.status_code == status


@pytest.mark.parametrize("path", PATHS)
def test_a_file_for_which_too_little_is_left_counts_as_a_request(path):
    client = talk_to(FakeService(), use_up(characters_per_month=12, requests_per_minute=3))
    _, field, status = PATHS[path]
    form = {field.decode(): KEY, "source": "en", "target": "fr", "target_lang": "FR"}
    files = {"file": ("a.txt", b"A dog sees.")}
    statuses = [client.post(path, data=form, files=files).status_code for _ in range(3)]
    assert statuses == [status, status, 429]
