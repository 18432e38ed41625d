"""Sentences are translated as the translator would, alone or together, with what was asked for."""

import pytest
from tests.decoding.made_calibration import copy_calibrated

from dragoman.decoding.constraints.constraints import Constraints
from dragoman.decoding.output.alignments import Aligner
from dragoman.decoding.translation import Translation
from dragoman.decoding.translator import Translator
from dragoman.serving.sentence_translation import (
    SentenceTask,
    SentenceTranslator,
    TranslationSettings,
    find_spans,
)
from dragoman.serving.service_types import ServiceError

TEXTS = ["House a old old sees.", "A garden.", "Finds house likes dog."]


@pytest.fixture(scope="module")
def translator(tiny_folder):
    return Translator.load(tiny_folder.path, "cpu")


@pytest.fixture
def work(translator):
    return SentenceTranslator(translator)


def render(work, *texts, **settings):
    return work([SentenceTask(text, TranslationSettings(**settings)) for text in texts])


def test_translates_as_the_translator_does(work, translator):
    expected = [translator.translate(text).text for text in TEXTS]
    found = render(work, *TEXTS)
    assert [each.candidates[0].text for each in found] == expected
    assert all(len(each.candidates) == 1 and each.candidates[0].spans == () for each in found)
    tokens = [len(translator.translate(text).tokens) for text in TEXTS]
    assert [each.num_tokens for each in found] == tokens


def test_alternatives_and_beams_are_the_translator_s(work, translator):
    (found,) = render(work, TEXTS[0], num_best=3, beam_size=5)
    best = translator.translate(
        TEXTS[0], num_best=3, options=translator.options_with({"beam_size": 5})
    )
    texts = [each.text for each in (best, *best.alternatives)]
    assert [each.text for each in found.candidates] == texts


@pytest.mark.parametrize("wants_alignment", [False, True])
def test_confidence_is_the_translator_s_and_only_on_request(tiny_folder, tmp_path, wants_alignment):
    translator = Translator.load(copy_calibrated(tiny_folder.path, tmp_path / "model"), "cpu")
    settings = {"beam_size": 1, "wants_alignment": wants_alignment}  # greedy has no scores unasked
    options = translator.options_with({"beam_size": 1})
    expected = [translator.translate(text, options=options).confidence for text in TEXTS]
    for wants in (False, True):
        found = render(SentenceTranslator(translator), *TEXTS, wants_confidence=wants, **settings)
        told = [each.candidates[0].confidence for each in found]
        assert told == (pytest.approx(expected) if wants else [None] * len(TEXTS))


def test_what_comes_twice_is_translated_once(translator, monkeypatch):
    seen = []
    original = Translator.translate_all

    def spy(self, texts, **options):
        seen.append(list(texts))
        return original(self, texts, **options)

    monkeypatch.setattr(Translator, "translate_all", spy)
    work = SentenceTranslator(translator)
    found = render(work, TEXTS[0], TEXTS[1], TEXTS[0])
    assert seen[0] == TEXTS[:2]
    assert found[0] == found[2] != found[1]


def test_a_prefix_begins_the_translation(work):
    (found,) = render(work, TEXTS[0], prefix="le jardin")
    assert found.candidates[0].text.startswith("le jardin")


def test_a_prefix_that_cannot_be_written_is_the_client_s_mistake(work, monkeypatch, translator):
    def refuse(*arguments, **options):
        from dragoman.errors import OptionError

        raise OptionError("prefix: “x” has characters or words that the model cannot write")

    monkeypatch.setattr(translator, "_prefix_ids", refuse)
    with pytest.raises(ServiceError, match="the model cannot write") as caught:
        render(work, TEXTS[0], prefix="x")
    assert caught.value.kind == "bad_request"


def test_terms_appear(work):
    (found,) = render(work, TEXTS[0], terms=(("house", "jardin"), ("dog", "arbre")))
    words = found.candidates[0].text.split()
    assert "jardin" in words
    assert "arbre" not in words


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ((("dog", " "),), "glossary: a term is empty; leave it out"),
        (
            (("dog", "chien"), ("Dog", "maison")),
            "glossary: “Dog” is “maison” and “chien”; keep one",
        ),
    ],
)
def test_impossible_glossaries_are_the_client_s_mistake(work, terms, message):
    with pytest.raises(ServiceError) as caught:
        render(work, TEXTS[0], terms=terms)
    assert (caught.value.kind, caught.value.message) == ("bad_request", message)


def test_few_glossaries_are_kept_ready(work, monkeypatch):
    monkeypatch.setattr("dragoman.serving.sentence_translation.MOST_GLOSSARIES", 2)
    for number in (0, 1, 0, 2):
        render(work, "A dog.", terms=((f"word{number}", "chien"),))
    assert list(work._prepared) == [(("word0", "chien"),), (("word2", "chien"),)]


def test_alignments_are_the_aligner_s_as_characters(work, translator):
    (found,) = render(work, TEXTS[0], num_best=2, wants_alignment=True)
    best = translator.translate(TEXTS[0], num_best=2, constraints=Constraints(is_aligned=True))
    for candidate, translation in zip(found.candidates, (best, *best.alternatives), strict=True):
        (links,) = Aligner.of(translator).align_translations([TEXTS[0]], [translation])
        words = TEXTS[0].split(), translation.text.split()
        expected = {(words[0][one], words[1][other]) for one, other in links}
        spans = candidate.spans
        pairs = {(TEXTS[0][a:b], candidate.text[c:d]) for a, b, c, d in spans}
        assert pairs == expected
        assert len(spans) == len(links)
        assert list(spans) == sorted(spans, key=lambda span: (span[2], span[0]))


def test_a_model_without_attention_says_so(work, monkeypatch):
    from dragoman.errors import OptionError

    def refuse(translator):
        raise OptionError("no attention")

    monkeypatch.setattr(Aligner, "of", refuse)
    (found,) = render(work, TEXTS[0], wants_alignment=True)
    assert found.candidates[0].spans == ()
    assert found.notes[0] == "this model has no attention by which to align words"


def test_what_is_said_of_a_translation_is_passed_on(work, translator, monkeypatch):
    def babble(texts, **options):
        return [Translation(text="le le", score=0.0, notes=("odd",)) for _ in texts]

    monkeypatch.setattr(translator, "translate_all", babble)
    (found,) = render(work, TEXTS[0])
    assert (found.candidates[0].text, found.notes) == ("le le", ("odd",))


@pytest.mark.parametrize("splits", [True, False])
def test_what_has_become_several_sentences_is_split_unless_the_client_forbids(
    work, translator, splits
):
    text = " ".join(TEXTS)
    (found,) = render(work, text, splits_sentences=splits)
    how = translator.options_with({} if splits else {"split_sentences": "off"})
    expected = translator.translate(text, options=how)
    assert found.candidates[0].text == expected.text
    assert len(expected.parts) == (3 if splits else 1)


def test_spans_count_words_as_white_space_parts_them():
    source, target = " un\u00a0deux  trois", "one\ttwo three"
    links = frozenset({(0, 0), (1, 1), (2, 2)})
    found = find_spans(source, target, links)
    assert [(source[a:b], target[c:d]) for a, b, c, d in found] == [
        ("un", "one"),
        ("deux", "two"),
        ("trois", "three"),
    ]
