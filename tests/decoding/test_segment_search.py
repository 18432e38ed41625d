"""Translations that do what is demanded, on an untrained model."""

import re
from dataclasses import replace

import pytest
import torch

from dragoman.decoding.constraints.constraints import Constraints, prepare_constraints
from dragoman.decoding.constraints.glossary import ForbiddenPhrase, Glossary, Term
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine
from dragoman.decoding.engines.cuda.cuda_engine import CudaEngine
from dragoman.decoding.engines.search_engine import MOST_BEAMS
from dragoman.decoding.options import SamplingOptions, SearchOptions
from dragoman.decoding.search import batched_search as general_search
from dragoman.decoding.segment_search import SegmentSearch
from dragoman.decoding.translator import Translator
from dragoman.weights import vocabulary_of

TEXTS = ["The dog sees a house.", "A small tree.", "The old dog likes the dog!", "dog", "a b c"]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def translator(tiny_folder):
    return Translator.load(tiny_folder.path, device="cpu", precision="float32")


def constrain(translator, terms=(), forbidden=(), **rest):
    pairs = [Term(*pair, f"g:{number}") for number, pair in enumerate(terms, start=1)]
    phrases = tuple(ForbiddenPhrase(each, f"f:{each}") for each in forbidden)
    glossary = Glossary(pairs) if pairs else None
    prepared = prepare_constraints(
        translator.folder.vocabularies.target, glossary=glossary, phrases=phrases, **rest
    )
    assert not prepared.warnings
    return prepared.constraints


def count(word, text):
    """Count a word, which may begin with a capital."""
    return len(re.findall(rf"(?<!\w)[{word[0]}{word[0].upper()}]{word[1:]}(?!\w)", text))


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("num_best", [1, 3])
def test_every_translation_has_its_terms_and_others_are_as_before(translator, beam_size, num_best):
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=8, search_again=False)
    terms = [("dog", "teckel"), ("house", "vieux jardin")]
    constraints = constrain(translator, terms)
    plain = translator.translate_all(TEXTS, options=options, num_best=num_best)
    found = translator.translate_all(
        TEXTS, options=options, num_best=num_best, constraints=constraints
    )
    for text, before, after in zip(TEXTS, plain, found, strict=True):
        assert after.notes == ()
        for each in (after, *after.alternatives):
            for source, target in terms:
                assert count(target, each.text) >= count(source, text)
        if "dog" not in text and "house" not in text:
            assert after.text == before.text


def test_company_and_order_change_nothing(translator):
    constraints = constrain(translator, [("dog", "teckel")], ["le", "un"])
    together = [each.text for each in translator.translate_all(TEXTS, constraints=constraints)]
    backwards = translator.translate_all(TEXTS[::-1], constraints=constraints)
    assert [each.text for each in backwards][::-1] == together
    assert [translator.translate(text, constraints=constraints).text for text in TEXTS] == together


def test_a_term_that_is_there_anyway_changes_nothing(translator):
    plain = translator.translate(TEXTS[0], prefix="Le chien un")
    constraints = constrain(translator, [("dog", "chien")])
    assert translator.translate(TEXTS[0], prefix="Le chien un", constraints=constraints) == plain


def test_forbidden_words_are_never_there_but_in_longer_ones(translator):
    plain = translator.translate_all(TEXTS, num_best=3)
    said = {
        word
        for best in plain
        for each in (best, *best.alternatives)
        for word in re.findall(r"\w+", each.text)
    }
    forbidden = sorted(said)[:6]
    found = translator.translate_all(
        TEXTS, num_best=3, constraints=constrain(translator, forbidden=forbidden)
    )
    for best in found:
        for each in (best, *best.alternatives):
            assert not set(map(str.lower, forbidden)) & set(re.findall(r"\w+", each.text.lower()))


def test_prefix_terms_and_forbidden_words_together(translator):
    constraints = constrain(translator, [("dog", "teckel")], ["arbre"])
    found = translator.translate_all(
        TEXTS[:3], prefix="Le petit", num_best=2, constraints=constraints
    )
    for text, best in zip(TEXTS, found, strict=False):
        for each in (best, *best.alternatives):
            assert each.text.startswith("Le petit")
            assert count("teckel", each.text) >= count("dog", text)
            assert not count("arbre", each.text)


@pytest.mark.parametrize("has_own_search", [True, False])
def test_a_prefix_may_say_what_is_said_no_third_time(translator, has_own_search):
    engine = translator.cpu_engine if has_own_search else translator.model
    search = SegmentSearch(
        model=engine, vocabularies=translator.folder.vocabularies, device=CPU, max_length=None,
        options=SearchOptions(), num_best=1, constraints=Constraints(), is_unrepeated=True,
        prefix_ids=translator._prefix_ids("le le le le"),
    )  # fmt: skip
    pieces = translator._splitter.segments(
        [f"{TEXTS[0]} {TEXTS[1]}"], translator.options, lambda _: 1
    )
    first, second = search.find(
        [replace(pieces[0], is_first=True), replace(pieces[0], is_first=False)]
    )
    (said, free) = (
        translator.folder.vocabularies.target.decode([each.hypotheses[0].tokens])[0]
        for each in (first, second)
    )
    assert said.startswith("le le le le")
    assert not said.startswith("le le le le le ")
    assert not free.startswith("le le le")
    assert first.notes == ()


def test_where_nothing_is_found_the_translation_is_empty_and_that_is_told(translator, monkeypatch):
    monkeypatch.setattr(general_search, "search", lambda *_, **__: [[]])
    found = Translator(translator.folder, translator.model, CPU).translate(TEXTS[0])
    assert (found.text, found.notes) == ("", ("found no translation",))
    assert len(found.tokens) == len(found.log_probabilities) == 1


def test_what_does_not_fit_is_left_out_and_told(translator):
    constraints = constrain(translator, [("dog", "teckel")])
    options = SearchOptions(max_extra_tokens=0, search_again=False)
    (found,) = translator.translate_all(["dog"], options=options, constraints=constraints)
    (note,) = found.notes
    assert re.fullmatch(
        r"its terms take \d+ subwords, but the translation may have 1; translated without “teckel” "
        r"\(g:1\)",
        note,
    )
    assert found.text == translator.translate("dog", options=options).text


def test_what_cannot_be_is_given_up_and_told(translator, monkeypatch):
    find = CpuEngine.find

    def find_nothing_with_constraints(self, sources, limits, request, *rest):
        if request.forbidden is not None:
            return [[] for _ in sources]
        return find(self, sources, limits, request, *rest)

    monkeypatch.setattr(CpuEngine, "find", find_nothing_with_constraints)
    constraints = constrain(translator, [("dog", "teckel")], ["le"])
    options = replace(translator.options, search_again=False)
    found = translator.translate_all(TEXTS[:2], options=options, constraints=constraints)
    plain = translator.translate_all(TEXTS[:2], options=options)
    assert [each.text for each in found] == [each.text for each in plain]
    end = "a way around the forbidden words; translated without that demand"
    assert found[0].notes == (f"found no translation with “teckel”, {end}",)
    assert found[1].notes == (f"found no translation with {end}",)


def test_samples_are_repeated_by_seed_and_none_is_dropped(translator):
    def draw(texts, seed=3, num_best=4):
        constraints = constrain(translator, sampling=SamplingOptions(seed=seed, temperature=2.0))
        found = translator.translate_all(texts, num_best=num_best, constraints=constraints)
        return [[best.text, *(each.text for each in best.alternatives)] for best in found]

    together = draw(TEXTS)
    assert all(len(row) == 4 for row in together)
    assert draw(TEXTS[::-1])[::-1] == together
    assert draw(TEXTS[1:2]) == together[1:2]
    assert draw(TEXTS, seed=4) != together
    cold = constrain(translator, sampling=SamplingOptions(top_k=1))
    same = translator.translate_all(TEXTS[:2], num_best=3, constraints=cold)
    assert all(best.text == each.text for best in same for each in best.alternatives)
    assert all(len(best.alternatives) == 2 for best in same)


def test_scores_are_left_out_only_where_nobody_asks(translator):
    options = SearchOptions(beam_size=1, max_extra_tokens=6, search_again=False)
    scored = translator.translate_all(TEXTS, options=options)
    plain = translator.translate_all(
        TEXTS, options=options, constraints=constrain(translator, is_scored=False)
    )
    assert [each.text for each in plain] == [each.text for each in scored]
    for each in scored:
        assert len(each.tokens) == len(each.log_probabilities)
        assert sum(each.log_probabilities) / ((5 + len(each.tokens)) / 6) ** 0.6 == pytest.approx(
            each.score, rel=1e-4
        )


# An engine with a search of its own


@pytest.fixture(scope="module")
def own(tiny_folder, translator):
    folder = tiny_folder.folder
    engine = CudaEngine(tiny_folder.model, vocabulary_of(folder.vocabularies), CPU)
    return Translator(folder, None, CPU, engine)


@pytest.mark.parametrize("prefix", ["", "Le chien"])
@pytest.mark.parametrize(("beam_size", "num_best"), [(1, 1), (3, 2)])
def test_an_engine_s_own_search_is_asked_and_finds_the_same(
    own, translator, monkeypatch, prefix, beam_size, num_best
):
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=8, search_again=False)
    expected = translator.translate_all(TEXTS, options=options, num_best=num_best, prefix=prefix)
    monkeypatch.setattr(
        "dragoman.decoding.search.batched_search.search", None
    )  # must not be called
    found = own.translate_all(TEXTS, options=options, num_best=num_best, prefix=prefix)
    assert [each.text for each in found] == [each.text for each in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.score == pytest.approx(theirs.score, abs=1e-4)
        assert len(ours.alternatives) == len(theirs.alternatives)


@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(beam_size=MOST_BEAMS + 1, max_extra_tokens=2, search_again=False),
        SearchOptions(beam_size=1, max_extra_tokens=2, search_again=False),
    ],
)
def test_other_demands_are_met_by_the_general_search(own, translator, monkeypatch, options):
    monkeypatch.setattr(CudaEngine, "find", None)  # must not be called
    constraints = constrain(translator, forbidden=["le"]) if options.beam_size == 1 else None
    found, expected = (
        each.translate_all(TEXTS[:2], options=options, constraints=constraints)
        for each in (own, translator)
    )
    assert [each.text for each in found] == [each.text for each in expected]


def test_no_translation_is_longer_than_the_model_can_write(own, monkeypatch):
    seen = []

    def find(self, sources, limits, request, prefixes):
        seen.extend(limits)
        return [[] for _ in sources]

    monkeypatch.setattr(CudaEngine, "find", find)
    pieces = own._splitter.segments(["The dog sees a house."], own.options, lambda _: 1)
    search = SegmentSearch(
        model=own.engine,
        vocabularies=own.folder.vocabularies,
        device=CPU,
        max_length=9,
        options=SearchOptions(),
        num_best=1,
        prefix_ids=[],
        constraints=Constraints(),
    )
    search.find(pieces)
    assert seen[0] == 9
