"""What the page asks is checked before any work is done."""

import asyncio
import contextlib
import json
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from dragoman.decoding.translator import Translator
from dragoman.insight.ablation import Head
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.page import page_request
from dragoman.serving.page.page_request import (
    JsonFields,
    SentencePair,
    charge,
    check_length,
    check_work,
    find_model,
    identify,
    read_fields,
    read_pair,
    service_of,
)
from dragoman.serving.service_types import ServiceError


def make_request(body=b"", headers=(), **state) -> Request:
    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/page/api/x",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
        "client": ("192.0.2.7", 1),
        "app": SimpleNamespace(state=SimpleNamespace(**state)),
    }
    return Request(scope, receive)


JSON = [("content-type", "application/json; charset=utf-8")]


@contextlib.contextmanager
def refuse(kind, match):
    with pytest.raises(ServiceError, match=match) as caught:
        yield
    assert caught.value.kind == kind


@pytest.mark.parametrize("body", [b"", b"[1]", b"{", b"\xff", b"null", b"[" * 100_000])
def test_body_must_be_an_object(body):
    with refuse("bad_request", "the request must be a JSON object"):
        asyncio.run(read_fields(make_request(body, JSON)))


def test_texts():
    body = json.dumps({"a": "é", "b": None}).encode()
    fields = asyncio.run(read_fields(make_request(body, JSON)))
    assert (fields.text("a"), fields.text("b", "x"), fields.text("c", "")) == ("é", "x", "")
    for name in ("b", "c"):
        with refuse("bad_request", f"“{name}” must be a text"):
            fields.text(name)
    with refuse("bad_request", "“a” must be a text"):
        JsonFields({"a": 3}).text("a", "default")
    with refuse("bad_request", "“a” has half a character in it"):
        JsonFields({"a": "\ud800"}).text("a")


@pytest.mark.parametrize("value", [0, 9, 2.5, "3", True, [], 10**400])
def test_numbers_have_limits(value):
    with refuse("bad_request", "“n” must be from 1 to 8"):
        JsonFields({"n": value}).number("n", 1, 8, 5)
    assert JsonFields({"n": 8}).number("n", 1, 8, 5) == 8
    assert JsonFields({}).number("n", 1, 8, 5) == 5


@pytest.mark.parametrize(
    "value",
    ["cross", [1], [["cross", 1]], [["cross", 1, "2"]], [[1, 1, 1]], [["cross", True, 1]],
     [["cross", 1, 1]] * 300],
)  # fmt: skip
def test_heads_are_a_list(value):
    with refuse("bad_request", "“off” must be a list like"):
        JsonFields({"off": value}).heads("off")


def test_heads_are_read_once_each():
    heads = JsonFields({"off": [["cross", 1, 2], ["cross", 1, 2], ["encoder", 2, 1]]}).heads("off")
    assert heads == (Head("cross", 1, 2), Head("encoder", 2, 1))
    assert JsonFields({}).heads("off") == ()


def test_pairs():
    assert read_pair(JsonFields({"model": "m", "source": "a", "translation": "b"})) == SentencePair(
        "m", "a", "b"
    )
    with refuse("bad_request", "“model” must be a text"):
        read_pair(JsonFields({"source": "a"}))


def test_models_are_found_by_name():
    model = SimpleNamespace(name="fr-en")
    service = SimpleNamespace(models=lambda: [model])
    assert find_model(service, "fr-en") is model
    with refuse("not_found", "no model is called “xx”"):
        find_model(service, "xx")


def test_service_may_be_missing():
    service = SimpleNamespace(models=lambda: ["a model"])
    assert service_of(make_request(service=service)) is service
    for nothing in ({}, {"service": None}, {"service": SimpleNamespace(models=list)}):
        with refuse("not_found", "no models are served here, only training runs"):
            service_of(make_request(**nothing))


def test_key_is_taken_from_the_header_and_counted():
    seen = []

    async def authenticate(key, address):
        seen.append((key, address))
        return "client"

    async def count(client, num_characters):
        seen.append((client, num_characters))

    keys = SimpleNamespace(authenticate=authenticate, charge=count)
    request = make_request(headers=[("authorization", "Bearer  k ")], keys=keys)
    assert asyncio.run(charge(request, 5)) == "client"
    request = make_request(headers=[("authorization", "Basic k")], keys=keys)
    assert asyncio.run(identify(request)) == "client"
    assert seen == [("k", "192.0.2.7"), ("client", 5), (None, "192.0.2.7")]
    assert asyncio.run(identify(make_request(keys=ApiKeys()))).name


def test_long_sentences_are_refused(tiny_folder):
    translator = Translator.load(tiny_folder.path, "cpu")
    short = SentencePair("m", "The dog.", "Le chien.")
    total = check_length(translator, short)
    encode = translator.folder.vocabularies.source.encode
    assert total == sum(len(ids) + 1 for ids in encode([short.source, short.translation]))
    with refuse("too_long", "the sentence is too long to look into: more than 159 subwords"):
        check_length(translator, short._replace(source="dog " * 100_000))
    with refuse("too_long", "the translation is too long to look into"):
        check_length(translator, short._replace(translation="chien " * 200))


def test_work_is_limited():
    check_work(4000, 100)
    with refuse("bad_request", "“masks” must be at most 2000 for a sentence of this length"):
        check_work(2001, 200)
    assert page_request.MOST_WORK == 400_000
