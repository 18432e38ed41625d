"""Beam search against exhaustive search, a plain rewriting of itself, and rescoring."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decoding.random_model import EOS, PAD, SIZE, UNK, RandomModel, RandomState

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.errors import OptionError
from dragoman.kernels.cuda_search.beam_step import farthest_end
from dragoman.models.build import build_model
from dragoman.models.interface import TranslationModel, Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions

WORDS = (UNK, 3, 4)
VOCABULARY = Vocabulary(SIZE, SIZE, PAD, EOS)
WIDE = 64


def penalty(num_words, alpha):
    return ((5 + num_words + 1) / 6) ** alpha


def final_score(model, source, words, log, options):
    score = log / penalty(len(words), options.length_penalty)
    if options.coverage_penalty:
        covered = model.coverage(source, words)
        score += options.coverage_penalty * sum(math.log(min(each, 1.0)) for each in covered)
    return score


def search_exhaustively(model, source, options, prefix=(), banned=()):
    """Score every possible translation; give (words, log-probability, score), best first."""
    source = tuple(source)
    most = len(source) + options.max_extra_tokens + len(prefix) - 1
    found = []
    for length in range(most + 1):
        for words in product(WORDS, repeat=length):
            is_forced = len(words) >= len(prefix) and all(
                forced in (-1, word) for forced, word in zip(prefix, words, strict=False)
            )
            if not is_forced or set(words) & set(banned):
                continue
            log = sum(
                model.log_probability(source, words[:place], word)
                for place, word in enumerate((*words, EOS))
            )
            found.append((words, log, final_score(model, source, words, log, options)))
    return sorted(found, key=lambda each: -each[2])


def search_plainly(model, source, options, num_best):
    """Beam search for one sentence as its description says it, without tensors."""
    source = tuple(source)
    limit = len(source) + options.max_extra_tokens
    alive, finished = [((), 0.0)], []
    for length in range(limit):
        words = (EOS,) if length + 1 == limit else (EOS, *WORDS)
        extended = [
            (prefix, word, log + model.log_probability(source, prefix, word))
            for prefix, log in alive
            for word in words
        ]
        extended = sorted(extended, key=lambda each: -each[2])[: 2 * options.beam_size]
        for prefix, word, log in extended:
            if word == EOS:
                finished.append((prefix, log, final_score(model, source, prefix, log, options)))
        finished = sorted(finished, key=lambda each: -each[2])[:num_best]
        alive = [((*prefix, word), log) for prefix, word, log in extended if word != EOS]
        alive = alive[: options.beam_size]
        best = max((log for _, log in alive), default=-math.inf)
        farthest = min(limit, farthest_end(length + 1))
        bound = best / penalty(farthest - 1, options.length_penalty)
        if len(finished) == num_best and finished[-1][2] >= bound:
            break
    return finished


def run_search(model, sources, options, **rest):
    return search(model, pad_sequences(flatten(sources), PAD), options, VOCABULARY, **rest)


def assert_same(found, expected):
    assert [each.tokens for each in found] == [words for words, _, _ in expected]
    logs, scores = [each[1] for each in expected], [each[2] for each in expected]
    assert [each.log_probability for each in found] == pytest.approx(logs, abs=1e-4)
    assert [each.score for each in found] == pytest.approx(scores, abs=1e-4)


sources_strategy = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=2).map(lambda words: [*words, EOS]),
    min_size=1,
    max_size=3,
)
alphas = st.sampled_from([0.0, 0.6, 1.0])
betas = st.sampled_from([0.1, 0.5, 3.0])


def test_the_random_model_satisfies_the_seam():
    assert isinstance(RandomModel(0), TranslationModel)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), sources=sources_strategy, alpha=alphas, extra=st.integers(0, 1))
def test_wide_beam_finds_the_best_of_all(seed, sources, alpha, extra):
    model = RandomModel(seed)
    options = SearchOptions(beam_size=WIDE, length_penalty=alpha, max_extra_tokens=extra)
    found = run_search(model, sources, options)
    for source, hypotheses in zip(sources, found, strict=True):
        assert_same(hypotheses, search_exhaustively(model, source, options)[:1])


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    alpha=alphas,
    num_best=st.integers(2, WIDE),
)
def test_wide_beam_finds_the_best_in_order(seed, sources, alpha, num_best):
    model = RandomModel(seed)
    options = SearchOptions(beam_size=WIDE, length_penalty=alpha, max_extra_tokens=0)
    found = run_search(model, sources, options, num_best=num_best)
    for source, hypotheses in zip(sources, found, strict=True):
        assert_same(hypotheses, search_exhaustively(model, source, options)[:num_best])


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    alpha=alphas,
    banned=st.booleans(),
    data=st.data(),
)
def test_wide_beam_finds_the_best_with_a_prefix(seed, sources, alpha, banned, data):
    model = RandomModel(seed)
    banned_ids = (UNK,) if banned else ()
    allowed = [word for word in WORDS if word not in banned_ids]
    width = data.draw(st.integers(1, 2))
    # What is free comes after what is forced, as where prefixes have different lengths.
    prefixes = [
        (forced + [-1] * width)[:width]
        for forced in (
            data.draw(st.lists(st.sampled_from(allowed), max_size=width)) for _ in sources
        )
    ]
    options = SearchOptions(beam_size=WIDE, length_penalty=alpha, max_extra_tokens=0)
    found = run_search(
        model, sources, options, num_best=4, prefixes=torch.tensor(prefixes), banned_ids=banned_ids
    )
    for source, prefix, hypotheses in zip(sources, prefixes, found, strict=True):
        forced = tuple(word for word in prefix if word >= 0)
        expected = search_exhaustively(model, source, options, forced, banned_ids)
        assert_same(hypotheses, expected[:4])


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    alpha=alphas,
    beam_size=st.integers(2, 5),
    extra=st.integers(0, 4) | st.just(40),
    data=st.data(),
)
def test_narrow_beam_equals_a_plain_rewriting(seed, sources, alpha, beam_size, extra, data):
    model = RandomModel(seed)
    num_best = data.draw(st.integers(1, beam_size))
    options = SearchOptions(beam_size=beam_size, length_penalty=alpha, max_extra_tokens=extra)
    found = run_search(model, sources, options, num_best=num_best)
    for source, hypotheses in zip(sources, found, strict=True):
        assert_same(hypotheses, search_plainly(model, source, options, num_best))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), sources=sources_strategy, alpha=alphas, extra=st.integers(0, 5))
def test_beam_of_one_takes_the_most_probable_word_each_time(seed, sources, alpha, extra):
    model = RandomModel(seed)
    options = SearchOptions(beam_size=1, length_penalty=alpha, max_extra_tokens=extra)
    found = run_search(model, sources, options)
    for source, (hypothesis,) in zip(sources, found, strict=True):
        words = ()
        while len(words) < len(source) + extra - 1:
            logits = model.logits(tuple(source), words)
            word = max((EOS, *WORDS), key=lambda each: logits[each])
            if word == EOS:
                break
            words = (*words, word)
        assert hypothesis.tokens == words


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    beam_size=st.integers(1, 4),
    data=st.data(),
)
def test_company_and_order_change_nothing(seed, sources, beam_size, data):
    model = RandomModel(seed)
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=3)
    order = data.draw(st.permutations(range(len(sources))))
    alone = [run_search(model, [source], options, num_best=beam_size)[0] for source in sources]
    together = run_search(model, [sources[index] for index in order], options, num_best=beam_size)
    for index, hypotheses in zip(order, together, strict=True):
        assert_same(
            hypotheses, [(each.tokens, each.log_probability, each.score) for each in alone[index]]
        )


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    beam_size=st.integers(1, 6),
    extra=st.integers(0, 3),
    banned=st.sampled_from([(), (UNK,), (UNK, 3)]),
)
def test_what_never_happens(seed, sources, beam_size, extra, banned):
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=extra)
    found = run_search(
        RandomModel(seed, 3.0), sources, options, num_best=beam_size, banned_ids=banned
    )
    for source, hypotheses in zip(sources, found, strict=True):
        assert 1 <= len(hypotheses) <= beam_size
        tokens = [each.tokens for each in hypotheses]
        assert len(set(tokens)) == len(tokens)
        scores = [each.score for each in hypotheses]
        assert scores == sorted(scores, reverse=True)
        for words in tokens:
            assert len(words) + 1 <= len(source) + extra
            assert not {PAD, EOS, *banned} & set(words)


# Coverage


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    alpha=alphas,
    beta=betas,
    extra=st.integers(0, 1),
    num_best=st.sampled_from([1, 1, 5]),
)
def test_wide_beam_finds_the_best_with_coverage(seed, sources, alpha, beta, extra, num_best):
    model = RandomModel(seed, has_attention=True)
    options = SearchOptions(
        beam_size=WIDE, length_penalty=alpha, coverage_penalty=beta, max_extra_tokens=extra
    )
    found = run_search(model, sources, options, num_best=num_best)
    for source, hypotheses in zip(sources, found, strict=True):
        assert_same(hypotheses, search_exhaustively(model, source, options)[:num_best])


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    alpha=alphas,
    beta=betas,
    beam_size=st.integers(2, 5),
    extra=st.integers(0, 4),
)
def test_narrow_beam_with_coverage_equals_a_plain_rewriting(
    seed, sources, alpha, beta, beam_size, extra
):
    model = RandomModel(seed, has_attention=True)
    options = SearchOptions(
        beam_size=beam_size, length_penalty=alpha, coverage_penalty=beta, max_extra_tokens=extra
    )
    found = run_search(model, sources, options, num_best=2)
    for source, hypotheses in zip(sources, found, strict=True):
        assert_same(hypotheses, search_plainly(model, source, options, 2))


def test_coverage_changes_what_is_best():
    plain = SearchOptions(beam_size=WIDE, max_extra_tokens=1)
    heeding = replace(plain, coverage_penalty=1.0)
    best = [
        [run_search(RandomModel(seed, has_attention=True), [[3, 4, EOS]], each)[0][0].tokens
         for each in (plain, heeding)]
        for seed in range(10)
    ]  # fmt: skip
    assert any(one != other for one, other in best)


def test_nobody_asks_for_coverage_without_a_penalty(monkeypatch):
    def fail(_):
        raise AssertionError("asked for coverage")

    monkeypatch.setattr(RandomState, "coverage", property(fail))
    run_search(RandomModel(1, has_attention=True), [[3, EOS]], SearchOptions(max_extra_tokens=2))


def test_model_without_coverage_refuses_the_penalty_by_name():
    options = SearchOptions(coverage_penalty=0.2)
    message = (
        "coverage_penalty is 0.2, but the model has not one attention to the source by which to "
        "tell what is covered; leave it 0"
    )
    with pytest.raises(OptionError) as caught:
        run_search(RandomModel(1), [[3, EOS]], options)
    assert str(caught.value) == message


def test_transformer_refuses_the_penalty(transformer):
    with pytest.raises(OptionError, match="but the model has not one attention"):
        run_search(transformer, [[3, EOS]], SearchOptions(coverage_penalty=0.2))


# On the real model


@pytest.fixture(scope="module")
def transformer():
    torch.manual_seed(3)
    options = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=2, model_dim=16, feed_forward_dim=16, num_heads=2
    )
    model = build_model(options, Vocabulary(12, 12, PAD, EOS)).eval()
    with torch.no_grad():
        model.output.words.mul_(4)
    return model


SOURCES = [[3, 4, 5, 6, EOS], [7, EOS], [8, 9, 3, EOS], [10, 11, 4, 4, 5, 9, EOS]]


@pytest.mark.parametrize("beam_size", [1, 3, 8])
@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_scores_equal_rescoring(transformer, beam_size, alpha):
    options = SearchOptions(beam_size=beam_size, length_penalty=alpha, max_extra_tokens=5)
    source = pad_sequences(flatten(SOURCES), PAD)
    found = search(
        transformer, source, options, Vocabulary(12, 12, PAD, EOS), num_best=beam_size,
        banned_ids=(UNK,),
    )  # fmt: skip
    pairs = [
        (ids, hypothesis)
        for ids, hypotheses in zip(SOURCES, found, strict=True)
        for hypothesis in hypotheses
    ]
    assert len(pairs) >= len(SOURCES)
    targets = [[*hypothesis.tokens, EOS] for _, hypothesis in pairs]
    batch = make_batch(flatten([ids for ids, _ in pairs]), flatten(targets), PAD)
    with torch.no_grad():
        logs = token_log_probabilities(transformer, batch).sum(1).tolist()
    for log, target, (_, hypothesis) in zip(logs, targets, pairs, strict=True):
        assert hypothesis.log_probability == pytest.approx(log, abs=1e-4)
        expected = log / ((5 + len(target)) / 6) ** alpha
        assert hypothesis.score == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("order", [[3, 1, 0, 2], [2], [1, 3]])
def test_company_changes_nothing_on_the_real_model(transformer, order):
    options = SearchOptions(beam_size=4, max_extra_tokens=5)
    vocabulary = Vocabulary(12, 12, PAD, EOS)

    def translate(sources):
        source = pad_sequences(flatten(sources), PAD)
        return search(transformer, source, options, vocabulary, num_best=3)

    everything = translate(SOURCES)
    some = translate([SOURCES[index] for index in order])
    for index, hypotheses in zip(order, some, strict=True):
        expected = [(each.tokens, each.log_probability, each.score) for each in everything[index]]
        assert_same(hypotheses, expected)


def test_forced_words_come_first_on_the_real_model(transformer):
    options = SearchOptions(beam_size=3, max_extra_tokens=2)
    source = pad_sequences(flatten(SOURCES[:2]), PAD)
    prefixes = torch.tensor([[5, 6, 7], [8, -1, -1]])
    found = search(
        transformer, source, options, Vocabulary(12, 12, PAD, EOS), num_best=3, prefixes=prefixes
    )
    assert all(each.tokens[:3] == (5, 6, 7) for each in found[0])
    assert all(each.tokens[:1] == (8,) for each in found[1])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_log_probabilities_of_tokens_are_those_of_rescoring(transformer, beam_size):
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=5)
    source = pad_sequences(flatten(SOURCES), PAD)
    vocabulary = Vocabulary(12, 12, PAD, EOS)
    found = search(transformer, source, options, vocabulary, num_best=beam_size)
    for ids, hypotheses in zip(SOURCES, found, strict=True):
        for each in hypotheses:
            batch = make_batch(flatten([ids]), flatten([[*each.tokens, EOS]]), PAD)
            with torch.no_grad():
                expected = token_log_probabilities(transformer, batch)[0].tolist()
            assert each.token_log_probabilities == pytest.approx(expected, abs=1e-4)
            assert sum(each.token_log_probabilities) == pytest.approx(each.log_probability)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_greedy_search_finds_the_same_without_scores(transformer, beam_size):
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=5)
    source = pad_sequences(flatten(SOURCES), PAD)
    vocabulary = Vocabulary(12, 12, PAD, EOS)
    scored, plain = (
        search(transformer, source, options, vocabulary, is_scored=is_scored)
        for is_scored in (True, False)
    )
    assert [row[0].tokens for row in plain] == [row[0].tokens for row in scored]
    assert all(math.isnan(row[0].score) == (beam_size == 1) for row in plain)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    sources=sources_strategy,
    beam_size=st.integers(1, 4),
    between=st.integers(2, 7),
    extra=st.sampled_from([4, 40]),
)
def test_looking_less_often_changes_nothing(seed, sources, beam_size, between, extra):
    model = RandomModel(seed)
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=extra)
    often = run_search(model, sources, options, num_best=beam_size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.decoding.search.beam.STEPS_BETWEEN_LOOKS", {"cpu": between})
        seldom = run_search(model, sources, options, num_best=beam_size)
    for one, other in zip(often, seldom, strict=True):
        assert_same(one, [(each.tokens, each.log_probability, each.score) for each in other])


class EndsAtOnce(RandomModel):
    """Probably says nothing; if it says something, it goes on for long, and is sure of it."""

    def __init__(self):
        super().__init__(1)
        self.num_steps = 0

    def logits(self, source, prefix):  # noqa: ARG002
        first = [math.log(0.8), -20.0, -20.0, math.log(0.2), -20.0]
        return [-20.0, -20.0, -20.0, 0.0, -20.0] if prefix else first

    def step(self, tokens, state):
        self.num_steps += 1
        return super().step(tokens, state)


def test_a_search_does_not_wait_for_what_could_only_come_at_an_improbable_length():
    model = EndsAtOnce()
    options = SearchOptions(beam_size=2, length_penalty=0.6, max_extra_tokens=200)
    ((found,),) = run_search(model, [[3, EOS]], options)
    assert found.tokens == ()
    assert math.log(0.2) / penalty(200, 0.6) > found.score  # two hundred words would overtake it
    assert model.num_steps == 1
