"""Search with required terms against exhaustive search among all that have them."""

import re
from itertools import permutations, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decoding.random_model import EOS, PAD, UNK, RandomModel
from tests.decoding.small_vocabulary import SmallVocabulary

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.constraints.constrained_beam import ConstrainedBeamChooser
from dragoman.decoding.constraints.term_automaton import count_subwords
from dragoman.decoding.constraints.term_speller import TermSpeller, count_beams
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.models.interface import Vocabulary

TARGET = SmallVocabulary("▁a", "b", "▁b", ".", "▁.")
SIZE = len(TARGET)
WORDS = range(3, SIZE)
CPU = torch.device("cpu")
CPU = torch.device("cpu")
VOCABULARY = Vocabulary(SIZE, SIZE, PAD, EOS)
SPELLER = TermSpeller(TARGET)
TERMS = ["a", "b", "ab", "a b", "b b", ".", "b.", "bb", "a."]


def occurs(term, text):
    """Count the places where a term stands as whole words, overlapping ones included."""
    before = r"(?<!\w)" if term[0].isalpha() else ""
    after = r"(?!\w)" if term[-1].isalpha() else ""
    return len(re.findall(f"(?={before}{re.escape(term)}{after})", text))


def has_all(terms, text):
    return all(occurs(term, text) >= sum(occurs(term, other) for other in terms) for term in terms)


def search_exhaustively(model, source, options, terms, prefix=()):
    source = tuple(source)
    most = len(source) + options.max_extra_tokens + len(prefix) - 1
    found = []
    for length in range(len(prefix), most + 1):
        for rest in product(WORDS, repeat=length - len(prefix)):
            words = (*prefix, *rest)
            if has_all(terms, TARGET.decode([words])[0]):
                log = sum(
                    model.log_probability(source, words[:place], word)
                    for place, word in enumerate((*words, EOS))
                )
                score = log / ((5 + len(words) + 1) / 6) ** options.length_penalty
                found.append((words, log, score))
    return sorted(found, key=lambda each: -each[2])


def run(model, sources, options, terms, **rest):
    requirements = [SPELLER.require(each) for each in terms]
    chooser = ConstrainedBeamChooser(
        requirements, SPELLER, beam_size=options.beam_size, eos_id=EOS, device=CPU
    )
    source = pad_sequences(flatten(sources), PAD)
    return search(model, source, options, VOCABULARY, banned_ids=(UNK,), chooser=chooser, **rest)


def same(found, expected):
    assert [each.tokens for each in found] == [each[0] for each in expected]
    scores = [each[2] for each in expected]
    assert [each.score for each in found] == pytest.approx(scores, abs=1e-4)


sources_strategy = st.lists(
    st.lists(st.sampled_from([3, 4]), max_size=1).map(lambda words: [*words, EOS]),
    min_size=1,
    max_size=3,
)


def overlap(one, other):
    """Say whether the end of a term can be the beginning of another, or all of it."""
    lengths = range(1, max(len(one), len(other)))
    return other in one[:-1] or any(one[-length:] == other[:length] for length in lengths)


# Room is reserved as if terms were written apart: where it is scarce, that leaves translations
# out in which they overlap. There is a test of such terms below.
terms_strategy = st.lists(st.sampled_from(TERMS), max_size=2).filter(
    lambda terms: not any(overlap(*pair) for pair in permutations(terms, 2))
)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), sources=sources_strategy, data=st.data())
def test_wide_beam_finds_the_best_of_all_that_have_the_terms(seed, sources, data):
    model = RandomModel(seed, size=SIZE)
    options = SearchOptions(beam_size=130, max_extra_tokens=2)
    terms = [data.draw(terms_strategy) for _ in sources]
    found = run(model, sources, options, terms, num_best=3)
    for source, wanted, hypotheses in zip(sources, terms, found, strict=True):
        same(hypotheses, search_exhaustively(model, source, options, wanted)[:3])


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    source=st.just([3, EOS]),
    terms=terms_strategy,
    prefix=st.lists(st.sampled_from(list(WORDS)), min_size=1, max_size=2),
)
def test_a_prefix_and_terms_together(seed, source, terms, prefix):
    model = RandomModel(seed, size=SIZE)
    options = SearchOptions(beam_size=40, max_extra_tokens=1)
    (found,) = run(model, [source], options, [terms], prefixes=torch.tensor([prefix]))
    same(found, search_exhaustively(model, source, options, terms, tuple(prefix))[:1])


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    terms=st.lists(st.sampled_from(["a", "b", "ab", "a b", "b."]), min_size=1, max_size=3),
    beam_size=st.integers(1, 4),
    extra=st.integers(0, 8),
)
def test_narrow_beams_have_every_term_wherever_there_is_room(seed, terms, beam_size, extra):
    requirements = SPELLER.require(terms)
    source = [3] * count_subwords(requirements) + [EOS]
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=extra)
    found = run(RandomModel(seed, 3.0, size=SIZE), [source], options, [terms], num_best=beam_size)
    assert found[0]
    for each in found[0]:
        assert has_all(terms, TARGET.decode([each.tokens])[0])
        assert len(each.tokens) + 1 <= len(source) + extra


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    beam_size=st.integers(1, 4),
    data=st.data(),
)
def test_company_changes_nothing_and_sentences_without_terms_are_searched_plainly(
    seed, sources, beam_size, data
):
    model = RandomModel(seed, size=SIZE)
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=6)
    terms = [data.draw(st.lists(st.sampled_from(["a", "ab", "b."]), max_size=2)) for _ in sources]
    together = run(model, sources, options, terms, num_best=beam_size)
    for source, wanted, hypotheses in zip(sources, terms, together, strict=True):
        if wanted:
            (alone,) = run(model, [source], options, [wanted], num_best=beam_size)
        else:
            padded = pad_sequences(flatten([source]), PAD)
            (alone,) = search(
                model, padded, options, VOCABULARY, num_best=beam_size, banned_ids=(UNK,)
            )
        same(hypotheses, [(each.tokens, each.log_probability, each.score) for each in alone])


def test_no_translation_where_terms_do_not_fit():
    options = SearchOptions(max_extra_tokens=0)
    assert run(RandomModel(1, size=SIZE), [[3, EOS]], options, [["a b"]]) == [[]]


def test_terms_double_the_beam_and_many_subwords_widen_it_further():
    assert count_subwords(SPELLER.require(["a b", "b"])) == 4
    assert count_beams(3, ()) == 3
    assert count_beams(5, SPELLER.require(["a b", "b"])) == 10
    assert count_beams(1, SPELLER.require(["a b", "b"])) == 8
    many = ["a b"] * 7
    assert count_beams(5, SPELLER.require(many)) == 5 + count_subwords(SPELLER.require(many)) == 19
    assert count_beams(5, SPELLER.require(["a b"] * 30)) == 40


@settings(max_examples=60)
@given(
    terms=st.lists(st.sampled_from(TERMS), max_size=3),
    words=st.lists(st.sampled_from(list(WORDS)), max_size=6),
)
def test_whether_terms_are_met_is_what_the_text_says(terms, words):
    is_there = has_all(terms, TARGET.decode([words])[0])
    assert SPELLER.is_met(SPELLER.require(terms), words) == is_there
