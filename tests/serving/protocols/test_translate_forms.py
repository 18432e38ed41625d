"""Requests of DeepLX, Immersive Translate and Microsoft's clients, as they send them."""

import json

import httpx
import pytest
from tests.serving.fake_service import FakeService, fail, talk_to
from tests.serving.running_server import KEY, make_keys, serve, without_second_look
from tests.serving.small_service import copy_folder

from dragoman.decoding.translator import Translator


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service):
    with talk_to(service) as client:
        yield client


DEEPLX = {"text": "A dog.", "source_lang": "EN", "target_lang": "FR"}
IMMERSIVE = {"text_list": ["A dog.", "A tree."], "source_lang": "auto", "target_lang": "fr"}
MICROSOFT = [{"Text": "A dog."}, {"text": "A tree."}]


def test_the_form_of_a_request_says_which_protocol_it_is(client):
    libre = client.post("/translate", json={"q": "A dog.", "source": "en", "target": "fr"})
    assert libre.json() == {"translatedText": "A DOG."}
    deeplx = client.post("/translate", json=DEEPLX).json()
    assert deeplx.pop("id") >= 0
    assert deeplx == {
        "code": 200,
        "data": "A DOG.",
        "alternatives": ["A Dog."] * 3,
        "source_lang": "EN",
        "target_lang": "FR",
        "method": "Free",
    }
    assert client.post("/translate", json=IMMERSIVE).json() == {
        "translations": [
            {"detected_source_lang": "en", "text": "A DOG."},
            {"detected_source_lang": "en", "text": "A TREE."},
        ]
    }
    query = {"api-version": "3.0", "to": ["fr", "pt"]}
    assert client.post("/translate", json=MICROSOFT, params=query).json() == [
        {
            "translations": [{"text": text, "to": "fr"}, {"text": text, "to": "pt"}],
            "detectedLanguage": {"language": "en", "score": 0.88},
        }
        for text in ("A DOG.", "A TREE.")
    ]
    assert (
        "detectedLanguage"
        not in client.post("/translate", json=MICROSOFT, params={"from": "en", "to": "fr"}).text
    )


def test_a_real_server_translates_all_forms_alike(tiny_folder, tmp_path):
    folder = copy_folder(tiny_folder.path, tmp_path, "en", "fr")
    with without_second_look():
        expected = Translator.load(folder, "cpu").translate("The old dog.").text
    with serve([folder]) as url, httpx.Client(base_url=url, timeout=30) as client:
        texts = {"text": "The old dog.", "source_lang": "en", "target_lang": "fr"}
        found = [client.post("/translate", json=texts).json()["data"]]
        sent = {"text_list": ["The old dog."], "source_lang": "en", "target_lang": "fr"}
        found.append(client.post("/translate", json=sent).json()["translations"][0]["text"])
        listed = client.post("/translate?from=en&to=fr", json=[{"Text": "The old dog."}]).json()
        found.append(listed[0]["translations"][0]["text"])
        opus = {"from": "en", "to": "fr", "source": "The old dog."}
        found.append(client.post("/api/translate", json=opus).json()["translation"])
        refused = client.post("/api/translate", json=opus | {"to": "de"})
        assert client.get("/api/ready").status_code == 204
    assert found == [expected] * 4
    assert (refused.status_code, refused.json()) == (400, {"error": "de is not supported"})


def test_placeholders_of_a_page_are_tags_and_the_rest_is_plain(client, service):
    texts = ["R&D <b0>is</b0> 1 < 2", "A &amp; B"]
    found = client.post("/translate", json=IMMERSIVE | {"text_list": texts}).json()
    assert service.requests[-1].markup == "html"
    assert service.requests[-1].texts == ("R&amp;D <b0>is</b0> 1 &lt; 2", "A &amp;amp; B")
    texts = [each["text"] for each in found["translations"]]
    assert texts == ["R&D <B0>IS</B0> 1 < 2", "A &AMP; B"]
    plain = client.post("/translate", json=IMMERSIVE | {"text_list": ["1 < 2 & 3"]})
    assert plain.json()["translations"][0]["text"] == "1 < 2 & 3"
    assert service.requests[-1].markup == "text"


def test_settings_of_the_forms(client, service):
    client.post("/translate", json=DEEPLX | {"source_lang": "auto", "tag_handling": "xml"})
    assert (service.requests[-1].source, service.requests[-1].markup) == (None, "xml")
    client.post("/translate?to=fr&textType=html", json=MICROSOFT)
    assert service.requests[-1].markup == "html"
    service.options = FakeService(max_beam_size=2).options
    client.post("/translate", json=DEEPLX)
    assert service.requests[-1].num_alternatives == 1


@pytest.mark.parametrize(
    ("body", "query", "status", "found"),
    [
        (DEEPLX | {"text": ""}, "", 400, {"code": 400, "message": "Invalid request payload: text"}),
        (
            DEEPLX | {"target_lang": ""},
            "",
            400,
            {"code": 400, "message": "Invalid request payload"},
        ),
        (
            DEEPLX | {"tag_handling": "tex"},
            "",
            400,
            {"code": 400, "message": "Invalid tag_handling"},
        ),
        (DEEPLX | {"text": ["a"]}, "", 400, {"code": 400, "message": "Invalid request: text must"}),
        (IMMERSIVE | {"target_lang": ""}, "", 400, {"error": "Invalid request: missing target_l"}),
        (IMMERSIVE | {"text_list": [1]}, "", 400, {"error": "Invalid request: text_list must be"}),
        ([], "to=fr", 400, {"error": {"code": 400000, "message": "the body has no texts"}}),
        ([1], "to=fr", 400, {"error": {"code": 400000, "message": "item 0 of the body is not"}}),
        ([{"x": "a"}], "to=fr", 400, {"error": {"code": 400000, "message": "item 0 of the body"}}),
        (MICROSOFT, "", 400, {"error": {"code": 400036, "message": "the target language is miss"}}),
        (
            MICROSOFT,
            "to=fr&textType=x",
            400,
            {"error": {"code": 400000, "message": "textType must be plain or html"}},
        ),
        (
            MICROSOFT,
            "to=fr&toScript=Latn",
            400,
            {"error": {"code": 400000, "message": "toScript is not supported"}},
        ),
        (
            MICROSOFT,
            "to=fr&includeAlignment=true",
            400,
            {"error": {"code": 400000, "message": "includeAlignment is not supported"}},
        ),
        (
            MICROSOFT * 40,
            "to=fr&to=pt",
            400,
            {"error": {"code": 400072, "message": "too many texts for so many languages"}},
        ),
    ],
)
def test_wrong_requests_are_refused_in_the_words_of_their_protocol(
    client, body, query, status, found
):
    answer = client.post(f"/translate?{query}", json=body)
    assert answer.status_code == status
    assert begins(found, answer.json())


def begins(expected, found):
    """Compare two values of JSON, of texts their beginning."""
    if isinstance(expected, dict):
        return expected.keys() == found.keys() and all(
            begins(expected[name], found[name]) for name in expected
        )
    return found.startswith(expected) if isinstance(expected, str) else found == expected


@pytest.mark.parametrize(
    ("kind", "statuses"),
    [
        ("unknown_language", (400, 400, 400)),
        ("too_long", (413, 413, 400)),
        ("quota", (403, 403, 403)),
        ("overloaded", (429, 429, 429)),
        ("not_ready", (503, 503, 503)),
        ("failed", (500, 500, 500)),
    ],
)
def test_errors_of_the_service(client, service, kind, statuses):
    service.error = fail(kind)
    service.error.retry_after = 3.2
    answers = [
        client.post(f"/translate{query}", json=body)
        for body, query in ((DEEPLX, ""), (IMMERSIVE, ""), (MICROSOFT, "?to=fr"))
    ]
    assert tuple(answer.status_code for answer in answers) == statuses
    assert {answer.headers["retry-after"] for answer in answers} == {"4"}
    assert answers[2].json()["error"]["code"] // 1000 == statuses[2]


def test_a_source_that_is_not_served_has_a_code_of_its_own(client, service):
    service.error = fail("unknown_language", parameter="source")
    found = client.post("/translate?to=fr&from=zz", json=MICROSOFT).json()
    assert found["error"]["code"] == 400035


def test_keys_are_found_where_each_client_puts_them(service):
    ways = [
        ("/translate", DEEPLX, {"Authorization": f"Bearer {KEY}"}),
        ("/translate", DEEPLX, {"Authorization": f"DeepL-Auth-Key {KEY}"}),
        (f"/translate?token={KEY}", DEEPLX, {}),
        (f"/translate?token={KEY}", IMMERSIVE, {}),
        ("/translate", IMMERSIVE, {"Authorization": f"Bearer {KEY}"}),
        ("/translate?to=fr", MICROSOFT, {"Ocp-Apim-Subscription-Key": KEY}),
        ("/translate?to=fr", MICROSOFT, {"Authorization": f"Bearer {KEY}"}),
        (
            "/api/translate",
            {"from": "en", "to": "fr", "source": "a"},
            {"Authorization": f"Bearer {KEY}"},
        ),
    ]
    with talk_to(service, make_keys(characters_per_month=1000)) as client:
        for path, body, headers in ways:
            assert client.post(path, json=body, headers=headers).status_code == 200
            assert client.post(path.replace(KEY, "wrong"), json=body).status_code == 401
        usage = client.get("/v2/usage", headers={"Authorization": f"DeepL-Auth-Key {KEY}"}).json()
    assert usage["character_count"] == 3 * 6 + 4 * 13 + 1


def test_lists_are_for_microsoft_s_clients_alone(client):
    for path in ("/detect", "/v2/translate", "/api/translate"):
        answer = client.post(
            path, content=json.dumps(MICROSOFT), headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 400
        assert "must be an object of JSON" in answer.text
