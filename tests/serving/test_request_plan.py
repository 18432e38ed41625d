"""Requests are checked, ways found, and answers put together."""

from dataclasses import replace

import pytest
from tests.serving.small_service import ask
from tests.serving.test_language_pairs import make_models

from dragoman.decoding.translator import Translator
from dragoman.serving.language_pairs import ServedModels
from dragoman.serving.options import ServeOptions
from dragoman.serving.request_plan import (
    check_request,
    choose_formality,
    join_pivot_translations,
    plan_texts,
    split_planned,
    write_answer,
)
from dragoman.serving.sentence_translation import Candidate, SentenceTranslation
from dragoman.serving.service_types import ServiceError

MODELS = make_models("fr-en", "en-es", "fr-en")


def detect(texts):
    return [[("es", 0.6), ("fr", 0.3), ("en", 0.1)]] * len(texts)


def plan(request):
    return plan_texts(request, MODELS, detect)[0]


def error_of(call):
    with pytest.raises(ServiceError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize(
    ("request_", "kind", "message", "details"),
    [
        (
            ask(*["a"] * 5), "too_many_texts", "the request has 5 texts, but 4 are the most",
            {"limit": 4, "length": 5},
        ),
        (
            ask("a" * 60, "b" * 41), "too_long",
            "the request has 101 characters, but 100 are the most", {"limit": 100, "length": 101},
        ),
        (ask("a", num_alternatives=8), "bad_request", "8 alternatives: must be from 0 to 7", {}),
        (ask("a", num_alternatives=-1), "bad_request", "-1 alternatives: must be from 0 to 7", {}),
        (ask("a", beam_size=9), "bad_request", "a beam of 9: must be from 1 to 8", {}),
        (ask("a", beam_size=0), "bad_request", "a beam of 0: must be from 1 to 8", {}),
        (
            ask("a", "b", prefix="x"), "bad_request",
            "a beginning can be given for a single text without tags only", {},
        ),
        (
            ask("a", prefix="x", markup="html"), "bad_request",
            "a beginning can be given for a single text without tags only", {},
        ),
        *(
            (
                request, "bad_request",
                "the text has half a surrogate pair, which is no character; leave it out", {},
            )
            for request in (
                ask("a\ud83d"), ask("a", prefix="\udc00"), ask("a", terms=(("a", "\ud800"),))
            )
        ),
    ],
)  # fmt: skip
def test_impossible_requests_are_refused(request_, kind, message, details):
    options = ServeOptions(max_texts=4, max_characters=100, max_beam_size=8)
    error = error_of(lambda: check_request(request_, options))
    assert (error.kind, error.message, error.details) == (kind, message, details)


def test_requests_at_the_limits_are_accepted():
    options = ServeOptions(max_texts=2, max_characters=4, max_beam_size=8)
    check_request(ask("ab", "cd", num_alternatives=7, beam_size=8), options)
    check_request(ask(), options)


@pytest.mark.parametrize(
    ("request_", "names", "source", "confidence"),
    [
        (ask("x", source="fr", target="en"), ["m0"], "fr", None),
        (ask("x", source="FR-ca", target="EN_us"), ["m0"], "fr", None),
        (ask("x", source="fr", target="es"), ["m0", "m1"], "fr", None),
        (ask("x", source="fr", target="fr"), [], "fr", None),
        (ask("x", source=None, target="en"), ["m0"], "fr", 0.3),  # Spanish has no way to English
        (ask("x", source=None, target="es"), [], "es", 0.6),
        (ask("x", source=None, target="en", model="m2"), ["m2"], "fr", None),
        (ask("x", source="fr", target="en", model="m2"), ["m2"], "fr", None),
    ],
)
def test_ways_are_found(request_, names, source, confidence):
    found = plan(request_)
    assert [model.name for model in found.path] == names
    assert (found.source, found.confidence) == (source, confidence)


@pytest.mark.parametrize(
    ("request_", "kind", "message", "details"),
    [
        (
            ask("x", source="zz", target="en"), "unknown_language", "zz is not supported",
            {"language": "zz", "parameter": "source"},
        ),
        (
            ask("x", source="fr", target="zz"), "unknown_language", "zz is not supported",
            {"language": "zz", "parameter": "target"},
        ),
        (
            ask("x", source="es", target="en"), "unknown_language",
            "no model translates es to en", {"language": "en", "parameter": "target"},
        ),
        (
            ask("x", source=None, target="fr", model="m9"), "not_found",
            "no model is called “m9”; there are m0, m1, m2", {},
        ),
        (
            ask("x", source=None, target="es", model="m0"), "bad_request",
            "model m0 translates fr to en, not fr to es", {},
        ),
        (
            ask("x", source="en", target="en", model="m0"), "bad_request",
            "model m0 translates fr to en, not en to en", {},
        ),
    ],
)  # fmt: skip
def test_ways_that_there_are_not_are_named(request_, kind, message, details):
    error = error_of(lambda: plan(request_))
    assert (error.kind, error.message, error.details) == (kind, message, details)


def test_a_text_in_no_language_from_which_there_is_a_way():
    request = ask("x", source=None, target="en")
    found = [("es", 0.95), ("fr", 0.04), ("en", 0.01)]
    error = error_of(lambda: plan_texts(request, MODELS, lambda _: [found]))
    assert error.kind == "unknown_language"
    assert error.message == (
        "the text seems to be Spanish (es), which no model translates to en; "
        "give its source language"
    )
    assert error.details == {"language": "es", "parameter": "source"}


@pytest.mark.parametrize(
    ("is_single", "splits", "sentences"),
    [
        (True, True, ("A dog.", "A tree.", "The end")),
        (None, True, ("A dog.", "A tree.", "The end")),
        (False, True, ("A dog. A tree.", "The end")),
        (True, False, ("A dog. A tree.\nThe end",)),
    ],
)
def test_a_text_is_split_as_the_first_model_of_a_way_has_it(
    tiny_folder, is_single, splits, sentences
):
    facts = replace(tiny_folder.folder.facts, one_sentence_a_line=is_single)
    folder = replace(tiny_folder.folder, facts=facts)
    model = replace(MODELS.all[0], translator=Translator(folder, tiny_folder.model, "cpu"))
    request = ask("A dog. A tree.\nThe end", source="fr", target="en", splits_sentences=splits)
    models = ServedModels([model])
    found = plan_texts(request, models, list)[0]
    assert found.layouts[0].sentences == sentences
    parts = split_planned(request.texts[0], request, models, str)
    assert tuple(part.strip() for part in parts) == sentences
    assert "".join(parts) == request.texts[0]


def translation(*texts, notes=(), spans=()):
    return SentenceTranslation(tuple(Candidate(text, spans) for text in texts), notes, len(texts))


def test_an_answer_has_the_white_space_of_its_text():
    request = ask(" Un deux.\n\nTrois. ", source="fr", target="en", num_alternatives=2)
    made = [translation("A.", "B.", "C."), translation("D.", notes=("n", "n"))]
    answer = write_answer(plan(request), made, request)
    assert answer.text == " A.\n\nD. "
    assert answer.alternatives == (" B.\n\nD. ", " C.\n\nD. ")
    assert (answer.source, answer.confidence, answer.path) == ("fr", None, ("fr", "en"))
    assert (answer.notes, answer.num_characters) == (("n",), 18)


def test_equal_alternatives_are_given_once():
    request = ask("Un.", source="fr", target="en", num_alternatives=3)
    answer = write_answer(plan(request), [translation("A.", "A.", "B.")], request)
    assert answer.alternatives == ("B.",)


def test_a_pivot_and_an_unused_glossary_are_said():
    request = ask("Un.", source="fr", target="es", terms=(("a", "b"),))
    answer = write_answer(plan(request), [translation("A.", notes=("n",))], request)
    assert answer.path == ("fr", "en", "es")
    assert answer.notes == (
        "translated through English (en)",
        "translated without the glossary: it has no terms of that language",
        "n",
    )


def test_a_text_in_its_target_language_stays_as_it_is():
    request = ask("  Salut !\n", source="fr", target="fr", num_alternatives=2)
    answer = write_answer(plan(request), [], request)
    assert (answer.text, answer.alternatives, answer.path) == ("  Salut !\n", (), ("fr",))


def test_text_without_words_stays_as_it_is():
    request = ask(" 🙂 —\n", source="fr", target="en", num_alternatives=1)
    answer = write_answer(plan(request), [], request)
    assert (answer.text, answer.alternatives) == (" 🙂 —\n", ())


def test_alignment_counts_from_the_beginning_of_the_text():
    request = ask("Un. Deux.", source="fr", target="en", wants_alignment=True)
    made = [translation("One.", spans=((0, 3, 0, 4),)), translation("Two.", spans=((0, 5, 0, 4),))]
    answer = write_answer(plan(request), made, request)
    assert answer.alignment == ((0, 3, 0, 4), (4, 9, 5, 9))
    assert (
        write_answer(plan(request), made, ask("Un. Deux.", source="fr", target="en")).alignment
        == ()
    )


def test_tags_stay_in_their_places():
    request = ask("<p>Un <b>deux</b>.</p><p>Trois &amp; plus.</p>", source="fr", target="en",
                  markup="html", num_alternatives=1)  # fmt: skip
    found = plan(request)
    assert found.sentences == ["Un deux.", "Trois & plus."]
    links = ((0, 2, 0, 3), (3, 8, 4, 8))
    made = [
        SentenceTranslation((Candidate("One two.", links), Candidate("Two one.", links))),
        translation("Three & more."),
    ]
    answer = write_answer(found, made, request)
    assert answer.text == "<p>One <b>two</b>.</p><p>Three &amp; more.</p>"
    assert answer.alternatives == ("<p>Two <b>one</b>.</p><p>Three &amp; more.</p>",)
    assert answer.alignment == ()


def test_two_legs_are_joined_where_they_meet():
    first = translation("between", notes=("a",), spans=((0, 2, 0, 3), (3, 5, 4, 7)))
    second = SentenceTranslation(
        (Candidate("x", ((0, 3, 5, 9), (4, 7, 0, 4))), Candidate("y", ((2, 5, 0, 1),))), ("b",), 5
    )
    joined = join_pivot_translations(first, second)
    assert joined.candidates == (
        Candidate("x", ((0, 2, 5, 9), (3, 5, 0, 4))),
        Candidate("y", ((0, 2, 0, 1), (3, 5, 0, 1))),
    )
    assert (joined.notes, joined.num_tokens) == (("a", "b"), 6)


def test_two_legs_are_good_if_both_are():
    first = SentenceTranslation((Candidate("between", (), 0.5),))
    second = SentenceTranslation((Candidate("x", (), 0.8), Candidate("y", (), None)))
    found = join_pivot_translations(first, second).candidates
    assert [each.confidence for each in found] == [0.4, None]


def test_a_text_is_as_sure_as_the_mean_of_its_sentences():
    request = ask("Un. Deux.", source="fr", target="en", wants_confidence=True)
    shares = [(0.5, 0.9), (0.5, None), (None, None)]
    found = [
        write_answer(
            plan(request),
            [SentenceTranslation((Candidate("x", (), each),)) for each in some],
            request,
        ).translation_confidence
        for some in shares
    ]
    assert found == [0.7, None, None]


def test_long_names_of_languages_are_not_sent_back_whole():
    error = error_of(lambda: plan(ask("x", source="z" * 10_000, target="en")))
    assert error.message == "z" * 80 + "… is not supported"


@pytest.mark.parametrize(
    ("has", "wanted", "chosen"),
    [
        (("more", "less"), "more", "more"), (("more", "less"), "prefer_less", "less"),
        (("more",), "prefer_less", None), ((), "prefer_more", None), (("more",), None, None),
    ],
)  # fmt: skip
def test_formality_is_of_the_model_that_writes(has, wanted, chosen):
    first, second = MODELS.find_path("fr", "es")
    path = (
        replace(first, formality=frozenset(("more",))),
        replace(second, formality=frozenset(has)),
    )
    assert choose_formality(wanted, path) == chosen
    assert choose_formality(wanted, ()) is None


@pytest.mark.parametrize("wanted", ["more", "less"])
def test_formality_that_is_demanded_in_vain_is_refused_before_anything_is_translated(wanted):
    error = error_of(lambda: plan(ask("a", source="fr", target="en", formality=wanted)))
    assert error.kind == "bad_request"
    assert error.message == "Target language EN does not support formality."
    assert plan(ask("a", source="fr", target="en", formality=f"prefer_{wanted}")).path
