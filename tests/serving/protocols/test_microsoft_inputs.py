"""Microsoft Translator's requests of 2026, by its own client."""

import pytest
from azure.ai.translation.text import TextTranslationClient
from azure.ai.translation.text.models import TranslateInputItem, TranslationTarget
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from tests.serving.fake_service import FakeService, talk_to
from tests.serving.running_server import KEY, make_keys, serve, without_second_look
from tests.serving.small_service import copy_folder

from dragoman.decoding.translator import Translator


def connect(url, key=KEY):
    return TextTranslationClient(
        endpoint=url, credential=AzureKeyCredential(key), retry_total=0, enforce_https=False
    )


def item(text, *targets, **more):
    return TranslateInputItem(
        text=text, targets=[TranslationTarget(language=each) for each in targets], **more
    )


def test_the_real_client_translates(tiny_folder, tmp_path):
    pairs = (("en", "fr"), ("fr", "en"), ("en", "es"))
    folders = [copy_folder(tiny_folder.path, tmp_path, *pair) for pair in pairs]
    text = "The old dog sees a small house."
    with without_second_look():
        expected = Translator.load(folders[0], "cpu").translate(text).text
    keys = make_keys(characters_per_month=200)
    with serve(folders, keys) as url, connect(url) as client:
        first, second = client.translate(
            body=[item(text, "fr", "es"), item(text, "fr", language="en", text_type="Html")]
        )
        (plain,) = client.translate(body=[text], to_language=["fr"], from_language="en")
        with pytest.raises(HttpResponseError) as caught:
            client.translate(body=[text], to_language=["zz"], from_language="en")
        with connect(url, "wrong") as stranger, pytest.raises(ClientAuthenticationError):
            stranger.translate(body=[text], to_language=["fr"])
        with pytest.raises(HttpResponseError) as over:
            client.translate(body=[text] * 5, to_language=["fr"], from_language="en")
    assert [(each.language, each.text) for each in first.translations] == [
        ("fr", expected), ("es", expected),
    ]  # fmt: skip
    assert first.detected_language.language == "en"
    assert 0 < first.detected_language.score <= 1
    assert second.detected_language is None
    assert second.translations[0].text == plain.translations[0].text == expected
    assert plain.translations[0].source_characters == len(text)
    assert (caught.value.status_code, caught.value.error.code) == (400, "400036")
    assert caught.value.error.message == "zz is not supported"
    assert (over.value.status_code, over.value.error.code) == (403, "403001")


@pytest.fixture
def service():
    return FakeService(max_texts=6, max_characters=100)


@pytest.fixture
def client(service):
    with talk_to(service) as client:
        yield client


def send(client, *inputs):
    return client.post("/translate?api-version=2026-06-06", json={"inputs": list(inputs)})


FRENCH = {"language": "fr"}


def test_texts_of_one_way_are_translated_together(client, service):
    found = send(
        client,
        {"text": "a", "targets": [FRENCH, {"language": "pt", "tone": "formal"}]},
        {"text": "b", "targets": [FRENCH, FRENCH], "textType": "Plain"},
        {"text": "c", "targets": [{**FRENCH, "tone": "Informal"}], "language": "en"},
    ).json()["value"]
    assert [[each["text"] for each in one["translations"]] for one in found] == [
        ["A", "A"], ["B", "B"], ["C"],
    ]  # fmt: skip
    assert [(each.texts, each.target, each.formality) for each in service.requests] == [
        (("a", "b"), "fr", None), (("a",), "pt", "more"), (("c",), "fr", "less"),
    ]  # fmt: skip


def test_what_asks_for_nothing_is_let_through(client):
    harmless = {"profanityAction": "NoAction", "gender": "neutral", "deploymentName": "general"}
    sent = {"text": "a", "targets": [{**FRENCH, **harmless, "allowFallback": True, "script": None}]}
    assert send(client, sent).status_code == 200


@pytest.mark.parametrize(
    ("inputs", "code", "message"),
    [
        ([], "400000", "the body has no inputs"),
        ([{"targets": [FRENCH]}], "400000", "item 0 of the inputs has no text"),
        ([{"text": "a"}], "400036", "the target language is missing; say it in targets"),
        ([{"text": "a", "targets": [{}]}], "400036", "the target language is missing"),
        ([{"text": "a", "targets": ["fr"]}], "400000", "Invalid request: targets must be objects"),
        (["a"], "400000", "Invalid request: inputs must be objects"),
        ([{"text": ["a"], "targets": [FRENCH]}], "400000", "Invalid request: text must be one"),
        (
            [{"text": "a", "targets": [FRENCH], "textType": "x"}],
            "400000",
            "textType must be plain or html",
        ),
        (
            [{"text": "a", "targets": [{**FRENCH, "tone": "x"}]}],
            "400000",
            "tone must be formal, informal or neutral",
        ),
        (
            [{"text": "a", "targets": [{**FRENCH, "gender": "female"}]}],
            "400000",
            "gender is not supported by this server",
        ),
        (
            [{"text": "a", "targets": [{**FRENCH, "referenceTextPairs": [{"source": "a"}]}]}],
            "400000",
            "referenceTextPairs is not supported",
        ),
        ([{"text": "a", "targets": [FRENCH], "script": "Latn"}], "400000", "script is not"),
        ([{"text": "a", "targets": [FRENCH] * 7}], "400072", "too many texts for so many"),
        ([{"text": "a" * 51, "targets": [FRENCH] * 2}], "400050", "too long texts for so many"),
    ],
)
def test_wrong_requests_are_refused(client, service, inputs, code, message):
    answer = send(client, *inputs)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, code)
    assert error["message"].startswith(message)
    assert service.requests == []
