import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from dragoman.serving.detection import (
    MOST_CHARACTERS,
    SMALLEST_SERVED,
    SURE,
    LanguageDetector,
    choose_source,
)
from dragoman.serving.service_types import ServiceError

SENTENCES = {
    "en": "The old dog sees a small house in the garden.",
    "fr": "Le vieux chien voit une petite maison dans le jardin.",
    "es": "El perro viejo ve una casa pequeña en el jardín.",
    "de": "Der alte Hund sieht ein kleines Haus im Garten.",
}


_SERVED_BY_LIBRETRANSLATE = """
ar az bg bn ca cs da de el en eo es et eu fa fi fr ga gl he hi hu id it ja ko
ky lt lv ms nb nl pl pt ro ru sk sl sq sr sv th tl tr uk ur vi zh
"""


@pytest.fixture(scope="module")
def detector():
    return LanguageDetector(["en", "fr", "es", "de"])


def detect(detector, text):
    return detector.detect_all([text])[0]


@pytest.mark.parametrize("code", SENTENCES)
def test_each_language_is_found(detector, code):
    (best, confidence), *others = detect(detector, SENTENCES[code])
    assert best == code
    assert confidence > max(other for _, other in others)


def test_of_clear_texts_the_identifier_of_all_languages_says_the_same(detector):
    oracle = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    for text in SENTENCES.values():
        assert detect(detector, text)[0][0] == oracle.rank(text)[0][0]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("hello handsome", "en"),
        ("Hello.", "en"),
        ("thank you", "en"),
        ("bonjour", "fr"),
        ("Il pleut.", "fr"),
        ("gracias", "es"),
        ("Danke schön", "de"),
        ("Привет", "ru"),
        ("jeg elsker deg", "nb"),
        ("你好，世界", "zh"),
    ],
)
def test_short_texts_where_many_languages_are_served(text, code):
    assert detect(LanguageDetector(_SERVED_BY_LIBRETRANSLATE.split()), text)[0][0] == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (SENTENCES["de"], "de"),
        ("Danke schön", "de"),
        ("buongiorno", "it"),
        ("Привет", "ru"),
        ("こんにちは", "ja"),
        ("tack så mycket", "sv"),
    ],
)
def test_a_text_in_no_served_language_is_said_to_be_in_its_own(text, code):
    found = detect(LanguageDetector(["en", "fr", "es"]), text)
    assert found[0][0] == code
    with pytest.raises(ServiceError) as caught:
        choose_source(found, {"en", "fr", "es"}, "en")
    assert caught.value.details == {"language": code, "parameter": "source"}


@pytest.mark.parametrize("name", ["Paul Dupont", "Angela Merkel", "Berlin", "Maria", "OK"])
def test_a_name_is_in_a_served_language_but_not_surely(name):
    found = detect(LanguageDetector(["en", "fr", "es"]), name)
    assert {code for code, _ in found} == {"en", "fr", "es"}
    assert found[0][1] < SURE


def test_short_texts_are_in_the_language_of_those_sent_with_them(detector):
    long = "Bonjour à tous, comment allez-vous aujourd'hui ?"
    assert detect(detector, "Berlin")[0][0] == "en"
    together = detector.detect_all([long, "Berlin", "Paul"])
    assert [found[0][0] for found in together] == ["fr", "fr", "fr"]


def test_of_a_mixed_batch_each_text_keeps_its_language(detector):
    texts = [*SENTENCES.values(), "", "Danke schön"]
    found = detector.detect_all(texts)
    assert [each[0][0] for each in found] == [*SENTENCES, "en", "de"]
    assert found[4] == [(code, 0.25) for code in SENTENCES]


def test_varieties_count_as_the_served_language():
    text = "Eg veit ikkje kvar hunden min er i dag."
    assert detect(LanguageDetector(["en", "nb"]), text)[0][0] == "nb"
    assert detect(LanguageDetector(["nn", "nb"]), text)[0][0] == "nn"


def test_detectors_do_not_restrict_each_other(detector):
    LanguageDetector(["es"])
    assert detect(detector, SENTENCES["fr"])[0][0] == "fr"


@given(text=st.text(max_size=60))
@settings(max_examples=60)
def test_any_text_has_all_served_languages_and_another_only_if_none_is_likely(detector, text):
    found = detect(detector, text)
    served = {code: share for code, share in found if code in SENTENCES}
    assert set(served) == set(SENTENCES)
    assert sum(share for _, share in found) <= 1 + 1e-4
    assert [share for _, share in found] == sorted((share for _, share in found), reverse=True)
    others = {code: share for code, share in found if code not in SENTENCES}
    assert len(others) <= 1
    for share in others.values():
        assert share > SURE or sum(served.values()) < SMALLEST_SERVED


@pytest.mark.parametrize("text", ["", "  \n", "12 345", "😀😀", "…!"])
def test_a_text_without_letters_is_any_language_in_the_given_order(detector, text):
    assert detect(detector, text) == [(code, 0.25) for code in ("en", "fr", "es", "de")]


def test_a_language_that_the_identifier_does_not_know_comes_last():
    """Then the text may be in it, whatever it looks like."""
    found = detect(LanguageDetector(["qqq", "fr"]), SENTENCES["de"])
    assert found == [("fr", 1.0), ("qqq", 0.0)]
    assert detect(LanguageDetector(["qqq"]), "some text") == [("qqq", 0.0)]


def test_regions_share_their_language():
    text = "Eu não sei onde está o meu cão."
    shares = dict(detect(LanguageDetector(["pt-BR", "pt_PT", "en"]), text))
    assert shares["pt-BR"] == shares["pt_PT"] > shares["en"]
    assert shares["pt-BR"] < 0.51


def test_what_is_looked_at_is_bounded(detector):
    head = SENTENCES["fr"] * (MOST_CHARACTERS // len(SENTENCES["fr"]) + 1)
    assert detect(detector, head + SENTENCES["de"] * 1000) == detect(detector, head)


def test_a_lone_surrogate_is_no_failure(detector):
    assert len(detect(detector, "\ud800 le chien")) == 4


@pytest.mark.parametrize(
    ("text", "fitting", "source"),
    [
        (SENTENCES["fr"], {"fr", "en"}, "fr"),
        ("Restaurant", {"fr"}, "fr"),  # English and Spanish are likelier, but not by much.
        ("", {"es", "fr"}, "fr"),
        ("12 345 !", {"de"}, "de"),
        ("OK", {"de"}, "de"),
    ],
)
def test_a_source_is_likely_and_can_be_translated(detector, text, fitting, source):
    assert choose_source(detect(detector, text), fitting, "en")[0] == source


@pytest.mark.parametrize("text", [SENTENCES["es"], "El perro viejo ve", "información"])
def test_no_source_is_chosen_only_because_it_can_be_translated(detector, text):
    with pytest.raises(ServiceError) as caught:
        choose_source(detect(detector, text), {"fr", "en"}, "en")
    assert caught.value.kind == "unknown_language"
    assert caught.value.details == {"language": "es", "parameter": "source"}
    assert "give its source language" in caught.value.message


def test_a_language_that_the_identifier_does_not_know_can_be_the_only_one():
    found = detect(LanguageDetector(["qqq"]), "some text")
    assert choose_source(found, {"qqq"}, "en") == ("qqq", 0.0)
