import json
import urllib.parse

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from tests.serving.fake_service import FakeService, TestClient, talk_to

from dragoman.serving.protocols.request_parameters import (
    MOST_FIELDS,
    RequestParameters,
    make_route,
    read_bearer,
    read_parameters,
)
from dragoman.serving.service_types import ServiceError

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


async def echo(request):
    sent = await read_parameters(request)
    return JSONResponse({"values": dict(sent.values), "lists": sorted(sent.lists)})


def refuse(error):
    return JSONResponse({"error": error.message}, status_code=418)


@pytest.fixture(scope="module")
def client():
    app = Starlette(routes=[make_route("/", echo, ["GET", "POST"], refuse)])
    app.state.service = FakeService(max_body_bytes=1000)
    return TestClient(app)


def send(client, content, kind, method="POST", query=b""):
    url = "/?" + query.decode("latin-1") if query else "/"
    answer = client.request(method, url, content=content, headers={"Content-Type": kind})
    return answer.json()


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=10)


@given(pairs=st.lists(st.tuples(TEXTS.filter(bool), TEXTS), max_size=6), method=st.booleans())
@settings(max_examples=30)
def test_forms_are_read_in_bodies_and_addresses(client, pairs, method):
    expected = {}
    for name, value in pairs:
        expected.setdefault(name, []).append(value)
    encoded = urllib.parse.urlencode(pairs).encode()
    name = "GET" if method else "POST"
    assert send(client, encoded, FORM, name)["values"] == expected
    assert send(client, b"", "", name, encoded)["values"] == expected


@given(
    value=st.dictionaries(TEXTS, TEXTS | st.lists(TEXTS, max_size=3) | st.integers(), max_size=4)
)
@settings(max_examples=30)
def test_json_is_read(client, value):
    found = send(client, json.dumps(value).encode(), f"{JSON}; charset=utf-8")
    lists = sorted(name for name, each in value.items() if isinstance(each, list))
    assert found["lists"] == lists
    assert found["values"] == {
        name: each if isinstance(each, list) else [each] for name, each in value.items()
    }


def test_a_body_counts_more_than_an_address_and_null_is_nothing(client):
    body = json.dumps({"a": "body", "b": None}).encode()
    found = send(client, body, "application/vnd.api+json", query=b"a=1&b=2&c=3")
    assert found["values"] == {"a": ["body"], "b": ["2"], "c": ["3"]}


@pytest.mark.parametrize(
    ("content", "kind", "message"),
    [
        (b"\xff\xfe", JSON, "the body is not UTF-8"),
        ('{"q": "a"}'.encode("utf-16"), JSON, "the body is not UTF-8"),
        (b'{"q": "\\ud800"}', JSON, "the text has half a surrogate pair, which is no character"),
        (b'{"q": ["a", "\\udc00x"]}', JSON, "the text has half a surrogate pair"),
        (b'{"q": "a\\u0000"}', JSON, "the text has a NUL character; leave it out"),
        (b"{", JSON, "the body is no JSON"),
        (b"[" * 100_000, JSON, "the body is no JSON"),
        (b'{"a":' * 100_000, JSON, "the body is no JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", JSON, "the body is no JSON"),
        (b"[]", JSON, "the body must be an object of JSON"),
        (b'"q"', JSON, "the body must be an object of JSON"),
        (b"q=%ff", FORM, "the form is not UTF-8"),
        (b"q=\xff", FORM, "the form is not UTF-8"),
        (b"q=%00", FORM, "the text has a NUL character; leave it out"),
        (b"q=%ed%a0%80", FORM, "the form is not UTF-8"),
        (b"a&" * (MOST_FIELDS + 2), FORM, "the form has too many fields"),
        (b"text", "text/plain", "the body is neither JSON nor a form; say which in Content-Type"),
        (b"text", "", "the body is neither JSON nor a form"),
    ],
)
def test_hostile_bodies_are_refused(client, content, kind, message):
    assert send(client, content, kind)["error"].startswith(f"Invalid request: {message}")


@pytest.mark.parametrize("query", [b"q=%ff", b"q=%00"])
def test_hostile_addresses_are_refused(client, query):
    assert send(client, b"", "", query=query)["error"].startswith("Invalid request: the ")


@pytest.mark.parametrize(
    "content", [b"", b"--x", b"--x\r\nA: b\r\n\r\n", b"\0" * 50, b"--x\r\n\r\n" * 500]
)
def test_hostile_forms_with_files_are_refused(content):
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = talk_to(FakeService()).post("/translate_file", content=content, headers=headers)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)
    headers = {"Content-Type": "multipart/form-data"}
    answer = talk_to(FakeService()).post("/v2/document", content=content, headers=headers)
    assert answer.status_code == 400
    assert isinstance(answer.json()["message"], str)


@pytest.mark.parametrize("charset", ["undefined", "idna", "utf-7", "utf-16", "x; charset=rot13"])
def test_forms_with_files_in_other_encodings_are_refused(client, charset):
    part = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n%s\r\n--x--\r\n'
    kind = "multipart/form-data; boundary=x; charset="
    message = {"error": "Invalid request: the form is not UTF-8"}
    assert send(client, part % b"a", kind + charset) == message
    assert send(client, part % b"caf\xe9", kind + "utf-8") == message
    assert send(client, part % "café".encode(), kind + "UTF-8")["values"] == {"q": ["café"]}


def test_two_files_are_refused():
    files = [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]
    answer = talk_to(FakeService()).post("/translate_file", files=files)
    assert answer.status_code == 400


PARAMETERS = RequestParameters(
    values={
        "one": ["a"],
        "two": ["a", "b, c,,d"],
        "list": ["a"],
        "number": [-3],
        "digits": [" 12 "],
        "true": [True],
        "1": ["1"],
        "false": ["FALSE"],
        "0": [0],
        "half": [0.5],
        "wide": ["１２"],
        "huge": ["9" * 20],
    },
    lists=frozenset({"list"}),
)


def test_kinds_of_parameters():
    assert PARAMETERS.text("one") == "a"
    assert PARAMETERS.text("none") is None
    assert PARAMETERS.texts("two") == ["a", "b, c,,d"]
    assert PARAMETERS.words("two") == {"a", "b", "c", "d"}
    assert PARAMETERS.number("number", 7) == -3
    assert PARAMETERS.number("digits", 7) == 12
    assert PARAMETERS.number("none", 7) == 7
    assert [PARAMETERS.flag(name, False) for name in ("true", "1")] == [True, True]
    assert [PARAMETERS.flag(name, True) for name in ("false", "0", "none")] == [False, False, True]


def test_objects_of_json_and_of_forms():
    sent = RequestParameters(values={"of": [{"a": "b"}, {"a": ["c", "d"]}]})
    assert [each.texts("a") for each in sent.objects("of")] == [["b"], ["c", "d"]]
    form = {"of[10].a": ["c", "d"], "of[2].a": ["b"], "of[2].e": ["f"], "on[0].a": ["g"]}
    found = RequestParameters(values=form).objects("of")
    assert [each.values for each in found] == [{"a": ["b"], "e": ["f"]}, {"a": ["c", "d"]}]
    for name in ("of", "of[].a", "of[-1].a", "of[99999].a", "of[1]", "of[1].a.b", "of[١].a"):
        assert RequestParameters(values={name: []}).objects("of") == []
    with pytest.raises(ServiceError, match="Invalid request: of must be objects of JSON"):
        RequestParameters(values={"of": ["a"]}).objects("of")


@pytest.mark.parametrize(
    ("call", "name", "message"),
    [
        (PARAMETERS.text, "two", "two must be one text, not a list"),
        (PARAMETERS.text, "list", "list must be one text, not a list"),
        (PARAMETERS.text, "number", "number must be text"),
        *(
            (lambda name: PARAMETERS.number(name, 0), name, f"{name} must be a whole number")
            for name in ("one", "two", "list", "half", "wide", "huge", "true")
        ),
        *(
            (lambda name: PARAMETERS.flag(name, True), name, f"{name} must be true or false")
            for name in ("one", "two", "list", "half")
        ),
    ],
)
def test_wrong_kinds(call, name, message):
    with pytest.raises(ServiceError, match=f"Invalid request: {message}") as caught:
        call(name)
    assert caught.value.details == {"parameter": name}


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", None),
        ("Bearer", None),
        ("Bearer ", None),
        ("", None),
        ("Bearer a b", "a b"),
    ],
)
def test_keys_in_headers(header, key):
    app = Starlette()
    with TestClient(app) as client:
        request = client.build_request("GET", "/", headers={"Authorization": header})
    assert read_bearer(request, "Bearer") == key
