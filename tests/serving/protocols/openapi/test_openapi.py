import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.routing import Route, WebSocketRoute
from tests.serving.fake_service import FakeService, talk_to
from tests.serving.running_server import serve

from dragoman.serving.app import PROTOCOLS, build_app
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.protocols.openapi.openapi import describe

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def quick(num_examples):
    return settings(
        max_examples=num_examples,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def configure(schema):
    """Have it send what is described, and what is not."""
    schema.config.generation.update(modes=list(GenerationMode))
    return schema


fake = configure(schemathesis.openapi.from_asgi("/spec", build_app(FakeService(), ApiKeys())))


@fake.parametrize()
@quick(6)
def test_answers_are_as_described_and_never_a_failure(case):
    case.call_and_validate(checks=CHECKS)


@pytest.fixture(scope="module")
def url(tiny_folder):
    with serve([tiny_folder.path], max_body_bytes=50_000, max_file_bytes=60_000) as address:
        yield address


PATHS = ["/translate", "/v2/translate", "/language/translate/v2", "/translate_file", "/v2/document"]


@pytest.mark.parametrize("mode", GenerationMode)
def test_a_real_server_never_fails(url, mode):
    schema = schemathesis.openapi.from_url(f"{url}/spec").include(path=PATHS)
    for result in schema.get_all_operations():

        @given(case=result.ok().as_strategy(generation_mode=mode))
        @quick(4)
        def check(case):
            case.call_and_validate(checks=CHECKS)

        check()


def test_all_routes_are_described_and_nothing_else():
    described = {
        (path, method.upper())
        for path, methods in describe(FakeService())["paths"].items()
        for method in methods
    }
    own = {"/health", "/ready", "/metrics"}
    served = {
        (route.path.replace(":path}", "}"), method)
        for protocol in PROTOCOLS
        for route in protocol.routes()
        if isinstance(route, Route)
        for method in route.methods - {"HEAD"}
    }
    assert served == {each for each in described if each[0] not in own}


def test_websockets_are_named_where_they_cannot_be_described():
    named = describe(FakeService())["info"]["description"]
    places = [
        route.path
        for protocol in PROTOCOLS
        for route in protocol.routes()
        if isinstance(route, WebSocketRoute)
    ]
    assert len(places) == 2
    for place in places:
        assert f"{place} " in named


def test_every_status_is_described():
    """A protocol's own, and those of requests that are refused before it."""
    paths = describe(FakeService())["paths"]
    for path, status in (("/translate", 429), ("/v2/translate", 456), ("/suggest", 403)):
        described = paths[path]["post"]["responses"]
        assert "default" not in described
        assert {str(status), "400", "413", "421", "503"} <= set(described)


def test_the_bounds_of_alternatives_are_those_of_the_server():
    service = FakeService(max_beam_size=5)
    sent = describe(service)["paths"]["/translate"]["post"]["requestBody"]["content"]
    form = sent["application/x-www-form-urlencoded"]["schema"]
    for schema in (sent["application/json"]["schema"]["anyOf"][0], form):
        assert schema["properties"]["alternatives"]["maximum"] == 4


def test_the_page_s_own_protocol_is_said_to_be_private():
    spec = describe(FakeService())
    assert "under /page is private" in spec["info"]["description"]
    assert not [path for path in spec["paths"] if path.startswith("/page")]


def test_the_description_is_found_by_both_its_names():
    client = talk_to(FakeService())
    spec = client.get("/spec").json()
    assert spec == client.get("/openapi.json").json()
    assert spec["openapi"].startswith("3.")
    target = spec["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]
    assert target["schema"]["anyOf"][0]["properties"]["target"]["enum"] == ["en", "fr", "pt"]


HOSTILE = {
    "deep html": "<b>" * 5000 + "x",
    "deep blocks": "<div>" * 3000,
    "bomb": '<!DOCTYPE a [<!ENTITY b "bb"><!ENTITY c "&b;&b;&b;">]><a>&c;</a>',
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_markup_is_refused(url, text):
    with httpx.Client(base_url=url, timeout=30) as client:
        body = {"q": text, "source": "en", "target": "fr", "format": "html"}
        assert client.post("/translate", json=body).status_code == 400
        for kind in ("xml", "html"):
            body = {"text": [text], "target_lang": "FR", "tag_handling": kind}
            answer = client.post("/v2/translate", json=body)
            assert answer.status_code == 400
            assert answer.json()["message"].startswith("Tag handling parsing failed")
        body = {"q": text, "target": "fr"}
        assert client.post("/language/translate/v2", json=body).status_code == 400
        files = {"file": ("a.html", text.encode())}
        form = {"source": "en", "target": "fr"}
        assert client.post("/translate_file", data=form, files=files).status_code == 400


def test_what_is_too_large_is_refused_in_the_words_of_its_protocol(url):
    large = "a" * 60_000
    with httpx.Client(base_url=url, timeout=30) as client:
        answers = [
            client.post("/translate", json={"q": large}),
            client.post("/v2/translate", json={"text": [large]}),
            client.post("/language/translate/v2", json={"q": large}),
            client.post("/translate_file", files={"file": ("a.txt", large + large)}),
            client.post("/v2/document", files={"file": ("a.txt", large + large)}),
        ]
    assert [answer.status_code for answer in answers] == [413] * 5
    fields = ["error", "message", "error", "error", "message"]
    for answer, field in zip(answers, fields, strict=True):
        assert field in answer.json()


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": b"DeepL-Auth-Key \xff\xfe"},
        {"Content-Type": "application/json\tx"},
        {"Content-Type": b"application/\xff"},
        {"Content-Type": "multipart/form-data; boundary=" + "x" * 5000},
        {"Host": "evil.example/<script>"},
        {"X-Forwarded-For": "1.2.3.4, evil"},
    ],
)
@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/language/translate/v2"])
def test_odd_headers_are_no_failure(url, path, headers):
    answer = httpx.post(url + path, content=b"{}", headers=headers, timeout=30)
    assert 400 <= answer.status_code < 500


def test_one_client_does_not_see_what_another_sends(url):
    """Refusals name what is wrong, not what others, or they themselves, have sent."""
    secret = "my secret text"
    with httpx.Client(base_url=url, timeout=30) as client:
        sent = {"q": secret, "source": "en", "target": "fr"}
        assert client.post("/translate", json=sent).status_code == 200
        answers = [
            client.get("/metrics"),
            client.get("/spec"),
            client.get("/v2/glossaries"),
            client.post("/translate", json={**sent, "target": "zz"}),
            client.post("/translate", json={**sent, "q": f"{secret}\0"}),
        ]
    assert not [answer for answer in answers if secret in answer.text]
