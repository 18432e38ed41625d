import contextlib
import io
import json
import shutil
import subprocess
import time
from pathlib import Path

import deepl
import httpx
import pytest
from tests.serving.fake_service import FakeService, fail, talk_to
from tests.serving.running_server import KEY, make_keys, serve, without_second_look
from tests.serving.small_service import copy_folder
from tests.work import grows_linearly

from dragoman.decoding.translator import Translator
from dragoman.serving.protocols.deepl.deepl import _join_lines
from dragoman.serving.service_types import ServiceError


@pytest.fixture(scope="module")
def folders(tiny_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return [copy_folder(tiny_folder.path, folder, *pair) for pair in (("en", "fr"), ("fr", "en"))]


def mark_folder(path, folder):
    """Copy a model folder as one that was trained with marks of formality."""
    marked = folder / "en-fr"
    shutil.copytree(path, marked)
    facts = json.loads((marked / "dragoman.json").read_text())
    facts |= {"formality": {"more": "<formal>", "less": "<casual>"}, "digest": None}
    (marked / "dragoman.json").write_text(json.dumps(facts))
    return marked


@pytest.fixture(scope="module")
def url(folders):
    with serve(folders, max_characters=300) as address:
        yield address


@pytest.fixture(autouse=True)
def no_retries(monkeypatch):
    """Have the client give up at once, by the setting that it has for that."""
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)


@pytest.fixture
def translator(url):
    with contextlib.closing(deepl.Translator("any key", server_url=url)) as client:
        yield client


class TestWithTheRealClient:
    def test_texts_are_translated(self, translator, folders):
        texts = ["The old dog sees a house.", "A tree."]
        expected = [each.text for each in Translator.load(folders[0], "cpu").translate_all(texts)]
        found = translator.translate_text(texts, source_lang="EN", target_lang="FR")
        assert [each.text for each in found] == expected
        assert [each.billed_characters for each in found] == [len(each) for each in texts]
        assert {each.detected_source_lang for each in found} == {"EN"}
        one = translator.translate_text(texts[0], target_lang="fr")
        assert (one.text, one.detected_source_lang) == (expected[0], "EN")

    def test_both_kinds_of_english(self, translator):
        for code in ("EN-US", "EN-GB"):
            found = translator.translate_text("Le chien.", target_lang=code)
            assert found.detected_source_lang == "FR"

    def test_languages_are_listed(self, translator):
        source = translator.get_source_languages()
        assert [(each.code, each.name) for each in source] == [("EN", "English"), ("FR", "French")]
        target = translator.get_target_languages()
        assert [each.code for each in target] == ["EN-GB", "EN-US", "FR"]
        assert [each.supports_formality for each in target] == [False] * 3
        pairs = translator.get_glossary_languages()
        assert [(each.source_lang, each.target_lang) for each in pairs] == [
            ("en", "fr"),
            ("fr", "en"),
        ]

    def test_tags_survive(self, translator):
        text = 'The <x id="7"></x> dog <b>sees <i>a</i> house</b>.'
        found = translator.translate_text(
            text,
            source_lang="EN",
            target_lang="FR",
            tag_handling="xml",
            ignore_tags=["x"],
            split_sentences="nonewlines",
        ).text
        for tag in ('<x id="7"></x>', "<b>", "</b>", "<i>", "</i>"):
            assert found.count(tag) == 1
        split = translator.translate_text(
            "<a>The dog.</a><b>The tree.</b>",
            source_lang="EN",
            target_lang="FR",
            tag_handling="xml",
            outline_detection=False,
            splitting_tags="b",
            non_splitting_tags=["a"],
        )
        assert split.text.startswith("<a>")
        assert split.billed_characters == 31

    def test_an_unknown_language(self, translator):
        with pytest.raises(deepl.DeepLException, match="'target_lang' not supported") as caught:
            translator.translate_text("Hello.", target_lang="ZZ")
        assert caught.value.http_status_code == 400
        with pytest.raises(deepl.DeepLException, match="'source_lang' not supported"):
            translator.translate_text("Hello.", source_lang="ZZ", target_lang="FR")

    def test_texts_without_letters_are_given_back(self, translator):
        found = translator.translate_text([" ", "…", "😀"], target_lang="FR")
        assert [each.text for each in found] == [" ", "…", "😀"]

    def test_a_text_that_is_too_long(self, translator):
        with pytest.raises(deepl.DeepLException, match="Unexpected status code: 413") as caught:
            translator.translate_text("a " * 200, source_lang="EN", target_lang="FR")
        assert "300 are the most" in str(caught.value)

    def test_formality(self, translator):
        with pytest.raises(deepl.DeepLException, match="Target language FR does not support forma"):
            translator.translate_text("Hello.", target_lang="FR", formality="more")
        assert translator.translate_text("The dog.", target_lang="FR", formality="prefer_more").text

    def test_formality_of_a_model_that_knows_it(self, folders, tmp_path):
        """The clients get what the mark before the text gives, and are told that they may ask."""
        marked = mark_folder(folders[0], tmp_path)
        text = "The old dog sees a house."
        with without_second_look():
            model = Translator.load(marked, "cpu")
            expected = {
                name: model.translate(f"{mark}{text}").text
                for name, mark in (
                    ("default", ""), ("more", "<formal> "), ("prefer_more", "<formal> "),
                    ("less", "<casual> "), ("prefer_less", "<casual> "),
                )
            }  # fmt: skip
        assert len(set(expected.values())) == 3
        with serve([marked, folders[1]]) as address:
            translator = deepl.Translator("any key", server_url=address)
            listed = {
                each.code: each.supports_formality for each in translator.get_target_languages()
            }
            found = {
                name: translator.translate_text(
                    text, source_lang="EN", target_lang="FR", formality=name
                ).text
                for name in expected
            }
            written = io.BytesIO()
            handle = translator.translate_document_upload(
                text, source_lang="EN", target_lang="FR", filename="a.txt", formality="less"
            )
            while not translator.translate_document_get_status(handle).done:
                time.sleep(0.02)
            translator.translate_document_download(handle, written)
            with pytest.raises(deepl.DeepLException, match="EN-GB does not support formality"):
                translator.translate_text("Le chien.", target_lang="EN-GB", formality="more")
            translator.close()
        assert listed == {"EN-GB": False, "EN-US": False, "FR": True}
        assert found == expected
        assert written.getvalue().decode() == expected["less"]

    def test_keys_usage_quota_and_too_many_requests(self, folders):
        keys = make_keys(requests_per_minute=4, characters_per_month=20)
        with serve(folders[:1], keys) as address:
            with pytest.raises(deepl.AuthorizationException):
                deepl.Translator("wrong", server_url=address).translate_text("A.", target_lang="FR")
            with pytest.raises(deepl.AuthorizationException):
                deepl.Translator("wrong", server_url=address).get_usage()
            client = deepl.Translator(KEY, server_url=address)
            client.translate_text("The old dog.", source_lang="EN", target_lang="FR")
            usage = client.get_usage()
            assert (usage.character.count, usage.character.limit) == (12, 20)
            with pytest.raises(deepl.QuotaExceededException):
                client.translate_text("The old dog.", source_lang="EN", target_lang="FR")
            for _ in range(2):
                client.translate_text("A.", source_lang="EN", target_lang="FR")
            with pytest.raises(deepl.TooManyRequestsException):
                client.translate_text("A.", source_lang="EN", target_lang="FR")


def test_a_form_over_http(url):
    """As Mastodon and most other clients of DeepL send it."""
    form = {"text": ["The dog.", "A tree."], "target_lang": "FR", "source_lang": "EN"}
    header = {"Authorization": "DeepL-Auth-Key whatever"}
    answer = httpx.post(f"{url}/v2/translate", data=form, headers=header, timeout=30)
    assert answer.status_code == 200
    assert [set(each) for each in answer.json()["translations"]] == [
        {"detected_source_language", "text"}
    ] * 2
    languages = httpx.get(f"{url}/v2/languages", params={"type": "target"})
    assert languages.json()[-1] == {
        "language": "FR",
        "name": "French",
        "supports_formality": False,
    }


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service):
    with talk_to(service) as client:
        yield client


def ask_for(client, **change):
    body = {"text": ["one"], "source_lang": "EN", "target_lang": "FR", **change}
    return client.post("/v2/translate", json={k: v for k, v in body.items() if v is not None})


def test_what_the_service_is_asked(client, service):
    ask_for(
        client,
        text=["a\n b", "<x>c</x>"],
        tag_handling="xml",
        ignore_tags="x, y",
        split_sentences="0",
        model_type="latency_optimized",
    )
    (request,) = service.requests
    assert request.texts == ("a\n b", "<x>c</x>")
    assert (request.source, request.target) == ("en", "fr")
    assert (request.markup, request.ignore_tags) == ("xml", {"x", "y"})
    assert (request.splits_sentences, request.beam_size) == (False, 1)


def test_what_is_answered(client):
    assert ask_for(client).json() == {
        "translations": [{"detected_source_language": "EN", "text": "ONE"}]
    }
    more = ask_for(client, show_billed_characters=True, model_type="prefer_quality_optimized")
    assert more.json()["translations"] == [
        {
            "detected_source_language": "EN",
            "text": "ONE",
            "billed_characters": 3,
            "model_type_used": "quality_optimized",
        }
    ]


def test_line_breaks_may_mean_nothing(client, service):
    ask_for(client, text=["one\n  two\n"], split_sentences="nonewlines")
    ask_for(client, text=["one\n  two\n"], split_sentences="1")
    assert [request.texts for request in service.requests] == [("one two",), ("one\n  two\n",)]
    assert all(request.splits_sentences for request in service.requests)
    ask_for(client, text=[" " * 19_000 + "a"], split_sentences="nonewlines")
    assert service.requests[-1].texts == ("a",)


def test_the_cost_of_joining_lines_is_linear():
    assert _join_lines(" \n a") == "a"
    assert grows_linearly(lambda n: _join_lines(" " * n + "a"), 2500)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": None}, "Parameter 'text' not specified."),
        ({"text": []}, "Parameter 'text' not specified."),
        ({"text": [1]}, "Invalid request: text must be text"),
        ({"target_lang": None}, "Parameter 'target_lang' not specified."),
        ({"target_lang": "ZZ"}, "Value for 'target_lang' not supported."),
        ({"source_lang": "ZZ"}, "Value for 'source_lang' not supported."),
        ({"formality": "less"}, "Target language FR does not support formality."),
        ({"formality": "odd"}, "Value for 'formality' not supported."),
        ({"tag_handling": "pdf"}, "Value for 'tag_handling' not supported."),
        ({"tag_handling_version": "v3"}, "Value for 'tag_handling_version' not supported."),
        ({"split_sentences": "2"}, "Value for 'split_sentences' not supported."),
        ({"split_sentences": ["1", "0"]}, "Value for 'split_sentences' not supported."),
        ({"model_type": "best"}, "Value for 'model_type' not supported."),
        (
            {"outline_detection": "perhaps"},
            "Invalid request: outline_detection must be true or false",
        ),
        ({"style_id": "x"}, "Parameter 'style_id' is not supported by this server; leave it out."),
        ({"custom_instructions": ["x"]}, "Parameter 'custom_instructions' is not supported"),
        ({"translation_memory_id": "x"}, "Parameter 'translation_memory_id' is not supported"),
        (
            {"glossary_id": "x", "glossary_ids": ["y"]},
            "Send either 'glossary_id' or 'glossary_ids'.",
        ),
        ({"glossary_ids": list("abcdef")}, "More than 5 values for 'glossary_ids'."),
        ({"glossary_id": "x", "source_lang": None}, "A glossary needs parameter 'source_lang'."),
        ({"glossary_id": "x"}, "Invalid or missing glossary id"),
    ],
)
def test_wrong_parameters(client, change, message):
    answer = ask_for(client, **change)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(message)
    assert set(answer.json()) <= {"message", "detail"}


def test_wrong_kind_of_languages(client):
    answer = client.get("/v2/languages", params={"type": "both"})
    assert answer.json() == {"message": "Value for 'type' not supported."}
    listed = client.request("GET", "/v2/languages", data={"type": "target"})
    assert [each["language"] for each in listed.json()] == [
        "EN-GB",
        "EN-US",
        "FR",
        "PT-BR",
        "PT-PT",
    ]


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        ("bad_request", 400, "it is bad_request"),
        ("unknown_language", 400, "Value for 'target_lang' not supported."),
        ("too_long", 413, "Request Entity Too Large: it is too_long"),
        ("too_many_texts", 400, "it is too_many_texts"),
        ("missing_key", 403, "it is missing_key"),
        ("bad_key", 403, "it is bad_key"),
        ("forbidden", 403, "it is forbidden"),
        ("quota", 456, "it is quota"),
        ("not_found", 404, "it is not_found"),
        ("too_many_requests", 429, "it is too_many_requests"),
        ("overloaded", 429, "it is overloaded"),
        ("not_ready", 503, "it is not_ready"),
        ("cancelled", 503, "it is cancelled"),
        ("failed", 500, "it is failed"),
    ],
)
def test_refusals(client, service, kind, status, message):
    service.error = fail(kind)
    answer = ask_for(client)
    assert answer.status_code == status
    assert answer.json()["message"] == message


def test_a_language_that_could_not_be_found_is_to_be_given(client, service):
    service.error = ServiceError(
        "unknown_language", "give its source language", details={"parameter": "source"}
    )
    assert ask_for(client, source_lang=None).json() == {
        "message": "Value for 'source_lang' not supported.",
        "detail": "give its source language",
    }


def test_keys_in_header_and_body(service):
    client = talk_to(service, make_keys())
    assert ask_for(client).status_code == 403
    assert ask_for(client, auth_key=KEY).status_code == 200
    header = {"Authorization": f"DeepL-Auth-Key {KEY}"}
    assert client.get("/v2/usage", headers=header).status_code == 200
    wrong = {"Authorization": f"Bearer {KEY}"}
    assert client.get("/v2/usage", headers=wrong).status_code == 403
    assert (
        client.get("/v2/usage", headers={"Authorization": b"DeepL-Auth-Key \xe9"}).status_code
        == 403
    )


def test_no_limit_is_a_large_one(client):
    assert client.get("/v2/usage").json() == {"character_count": 0, "character_limit": 10**12}


class TestSpecialTags:
    def test_limits_and_charges(self):
        service = FakeService(max_texts=2, max_characters=20)
        keys = make_keys(characters_per_month=30)
        client = talk_to(service, keys)
        said = {"tag_handling": "xml", "outline_detection": False, "auth_key": KEY}
        many = ask_for(client, text=["a", "b", "c"], **said)
        assert (many.status_code, many.json()["message"]) == (
            400,
            "the request has 3 texts, but 2 are the most",
        )
        assert ask_for(client, text=["abc" * 7], **said).status_code == 413
        service.error = fail("failed")
        assert ask_for(client, text=["<a>b</a>"], **said).status_code == 500
        service.error = None
        assert ask_for(client, text=["<a>b</a>"], **said).json()["translations"] == [
            {"detected_source_language": "EN", "text": "<a>B</a>"}
        ]
        header = {"Authorization": f"DeepL-Auth-Key {KEY}"}
        assert client.get("/v2/usage", headers=header).json()["character_count"] == 8

    def test_the_language_is_found(self, client):
        answer = ask_for(
            client, text=["<a>b</a>"], source_lang=None, tag_handling="html", splitting_tags="a"
        )
        assert answer.json()["translations"][0]["detected_source_language"] == "EN"


@pytest.mark.parametrize(
    ("texts", "status", "message"),
    [
        (["<b>a</b>" * 10_000], 413, "the request has 80,000 characters, but 20,000 are the most"),
        (["a"] * 129, 400, "the request has 129 texts, but 128 are the most"),
    ],
)
def test_too_much_is_refused_before_terms_are_looked_for(
    client, monkeypatch, texts, status, message
):
    monkeypatch.setattr("dragoman.serving.protocols.deepl.deepl.parse_markup", None)
    glossary = {"name": "a", "entries": "a\tb", "entries_format": "tsv"}
    made = client.post(
        "/v2/glossaries", json={**glossary, "source_lang": "en", "target_lang": "fr"}
    )
    said = {"tag_handling": "html", "glossary_id": made.json()["glossary_id"]}
    answer = ask_for(client, text=texts, **said)
    assert answer.status_code == status
    assert answer.json()["message"].endswith(message)


def test_texts_in_an_address_are_translated(client, service):
    sent = {"text": ["A dog.", "A tree."], "source_lang": "EN", "target_lang": "FR"}
    asked, posted = (
        client.request("GET", "/v2/translate", params=sent),
        client.post("/v2/translate", json=sent),
    )
    assert asked.status_code == 200
    assert asked.json() == posted.json()
    assert service.requests[0] == service.requests[1]


@pytest.mark.parametrize("path", ["/v2/languages", "/v2/usage"])
def test_only_what_is_declared_may_be_posted(client, path):
    assert client.post(path).status_code == 405


NODE_CLIENT = "deepl-node@1.28.0"
NODE_SCRIPT = Path(__file__).with_name("node_client.js")


@pytest.mark.slow
def test_the_client_of_node(folders, tmp_path):
    """What DeepL's client in JavaScript sends, of texts, glossaries and documents."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip("node and npm are not installed")
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(tmp_path)]
    done = subprocess.run([*install, NODE_CLIENT], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install {NODE_CLIENT}")
    script, output = tmp_path / "client.js", tmp_path / "out.txt"
    shutil.copy(NODE_SCRIPT, script)
    with serve(folders) as address:
        ran = subprocess.run(
            [node, script, address, output], capture_output=True, text=True, check=False
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    found = json.loads(ran.stdout)
    with without_second_look():
        expected = Translator.load(folders[0], "cpu").translate_all(["The old dog.", "A tree."])
    assert found["texts"] == [each.text for each in expected]
    assert output.read_text() == found["texts"][0]
    assert found["detected"] == "fr"
    assert found["tags"].count("<b>") == found["tags"].count("</b>") == 1
    assert found["targets"] == ["en-GB", "en-US", "fr"]
    assert found["usage"] == 0
    assert found["dictionaries"] == [["en", 1], ["fr", 1]]
    assert "jardin" in found["term"]
    assert sorted(found["edited"]) == [["en", 2], ["fr", 1]]
    assert found["entries"] == {"dog": "jardin", "tree": "chien"}
    assert (found["glossaries"], found["status"]) == (0, "done")
    assert "Source and target language are equal" in found["same"]
    assert "file extension" in found["odd"]
    assert "does not support formality" in found["formality"]
