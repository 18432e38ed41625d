import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from dragoman.serving.detection import MOST_CHARACTERS, LanguageDetector, choose_source
from dragoman.serving.service_types import ServiceError

SENTENCES = {
    "en": "The old dog sees a small house in the garden.",
    "fr": "Le vieux chien voit une petite maison dans le jardin.",
    "es": "El perro viejo ve una casa pequeña en el jardín.",
    "de": "Der alte Hund sieht ein kleines Haus im Garten.",
}


@pytest.fixture(scope="module")
def detector():
    return LanguageDetector(["en", "fr", "es", "de"])


@pytest.mark.parametrize("code", SENTENCES)
def test_each_language_is_found(detector, code):
    (best, confidence), *others = detector.detect(SENTENCES[code])
    assert best == code
    assert confidence > max(other for _, other in others)


def test_shares_are_those_of_the_identifier_restricted_to_the_same_languages(detector):
    oracle = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    oracle.set_languages(list(SENTENCES))
    for text in SENTENCES.values():
        expected = oracle.rank(text)
        found = detector.detect(text)
        assert [code for code, _ in found] == [code for code, _ in expected]
        assert [share for _, share in found] == pytest.approx(
            [share for _, share in expected], abs=1e-5
        )


def test_only_served_languages_are_found():
    codes = [code for code, _ in LanguageDetector(["es", "de"]).detect(SENTENCES["fr"])]
    assert sorted(codes) == ["de", "es"]


def test_detectors_do_not_restrict_each_other(detector):
    LanguageDetector(["es"])
    assert detector.detect(SENTENCES["fr"])[0][0] == "fr"


@given(text=st.text(max_size=60))
@settings(max_examples=60)
def test_any_text_has_all_languages_with_shares_that_sum_to_one(detector, text):
    found = detector.detect(text)
    assert {code for code, _ in found} == set(SENTENCES)
    assert sum(share for _, share in found) == pytest.approx(1, abs=1e-4)
    assert [share for _, share in found] == sorted((share for _, share in found), reverse=True)


@pytest.mark.parametrize("text", ["", "  \n", "12 345", "😀😀", "…!"])
def test_a_text_without_letters_is_any_language_in_the_given_order(detector, text):
    assert detector.detect(text) == [(code, 0.25) for code in ("en", "fr", "es", "de")]


def test_a_language_that_the_identifier_does_not_know_comes_last():
    assert LanguageDetector(["qqq", "fr"]).detect(SENTENCES["fr"]) == [("fr", 1.0), ("qqq", 0.0)]
    assert LanguageDetector(["qqq"]).detect("some text") == [("qqq", 0.0)]


def test_regions_share_their_language():
    shares = dict(
        LanguageDetector(["pt-BR", "pt_PT", "en"]).detect("Eu não sei onde está o meu cão.")
    )
    assert shares["pt-BR"] == shares["pt_PT"] > shares["en"]


def test_what_is_looked_at_is_bounded(detector):
    head = SENTENCES["fr"] * (MOST_CHARACTERS // len(SENTENCES["fr"]) + 1)
    assert detector.detect(head + SENTENCES["de"] * 1000) == detector.detect(head)


def test_a_lone_surrogate_is_no_failure(detector):
    assert len(detector.detect("\ud800 le chien")) == 4


@pytest.mark.parametrize(
    ("text", "fitting", "source"),
    [
        (SENTENCES["fr"], {"fr", "en"}, "fr"),
        ("Restaurant", {"fr", "en"}, "fr"),  # Spanish is likelier, but not by much.
        ("", {"es", "fr"}, "fr"),
        ("12 345 !", {"de"}, "de"),
        ("OK", {"de"}, "de"),
    ],
)
def test_a_source_is_likely_and_can_be_translated(detector, text, fitting, source):
    assert choose_source(detector.detect(text), fitting, "en")[0] == source


@pytest.mark.parametrize("text", [SENTENCES["es"], "El perro viejo ve", "información"])
def test_no_source_is_chosen_only_because_it_can_be_translated(detector, text):
    with pytest.raises(ServiceError) as caught:
        choose_source(detector.detect(text), {"fr", "en"}, "en")
    assert caught.value.kind == "unknown_language"
    assert caught.value.details == {"language": "es", "parameter": "source"}
    assert "give its source language" in caught.value.message


def test_a_language_that_the_identifier_does_not_know_can_be_the_only_one():
    assert choose_source(LanguageDetector(["qqq"]).detect("some text"), {"qqq"}, "en") == (
        "qqq",
        0.0,
    )
