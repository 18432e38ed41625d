"""RISE against planted dependencies, exact enumeration, exact occlusion and its own errors."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight import rise as rise_module
from dragoman.insight.rise import MaskedScorer, Rise, minimum_masks, occlude, regress
from dragoman.insight.word_groups import WordGroups, group_words
from dragoman.models.build import build_model
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import RNNsearchOptions

EOS, PAD, SIZE = 0, 2, 30


def groups(ids, word_of=None) -> WordGroups:
    """Words with ids, one token each unless said otherwise, and the end."""
    word_of = tuple(range(len(ids))) if word_of is None else tuple(word_of)
    num_words = max(word_of, default=-1) + 1
    names = tuple(map(str, range(num_words + 1)))
    return WordGroups((*ids, EOS), names, names, (*word_of, num_words))


class PlantedModel(nn.Module):
    """Says target word j gladly where the source words that it needs are there, in any place."""

    def __init__(self, needs, *, is_any=False):
        super().__init__()
        self.needs = needs
        self.is_any = is_any

    def forward(self, batch):
        rows = []
        for ids in batch.source.ids.tolist():
            there = [
                [(word in ids) * weight for word, weight in needed.items()] for needed in self.needs
            ]
            rows.append([max(each, default=0) if self.is_any else sum(each) for each in there])
        strength = torch.tensor(rows).double()
        # The score of the target word and the end, against one word whose score is zero.
        return Output(torch.stack([strength, torch.zeros_like(strength)], dim=-1), None)

    @staticmethod
    def output(hidden):
        logits = torch.full((*hidden.shape[:-1], SIZE), -torch.inf).double()
        logits[..., 9] = hidden[..., 0]
        logits[..., EOS] = logits[..., 9]
        logits[..., 8] = hidden[..., 1]
        return logits

    def encode(self, source):
        raise NotImplementedError

    def start(self, memory, capacity):
        raise NotImplementedError

    def step(self, tokens, state):
        raise NotImplementedError


def gain(weight: float) -> float:
    """How much log-probability a planted word gains where the source word that it needs is there.

    Three words can be said: with it two have the score `weight`, else all have the score zero.
    """
    return float(np.log(3) - np.log(2 + np.exp(-weight)))


def scorer_of(model, source, num_targets=3, word_of=None) -> MaskedScorer:
    target = groups([9] * (num_targets - 1))
    return MaskedScorer(
        model, groups(source, word_of), target, pad_id=PAD, vocabulary_size=SIZE,
        device=torch.device("cpu"),
    )  # fmt: skip


def spearman(one, other) -> float:
    """Correlate ranks; equal numbers share the mean of theirs."""
    ranks = []
    for each in (np.ravel(one).round(9), np.ravel(other).round(9)):
        _, places, counts = np.unique(each, return_inverse=True, return_counts=True)
        ranks.append((np.cumsum(counts) - (counts - 1) / 2)[places])
    return float(np.corrcoef(*ranks)[0, 1])


def make_scorer(seed, num_words, family="transformer"):
    """A model with random weights that makes clear choices."""
    torch.manual_seed(seed)
    shape = {
        "transformer": TransformerOptions(
            num_encoder_layers=1, num_decoder_layers=1, model_dim=16, feed_forward_dim=16,
            num_heads=2, dropout=0.0, tied_embeddings="none", norm_position="pre",
        ),
        "rnnsearch": RNNsearchOptions(model_dim=8, embedding_dim=8, maxout_dim=8),
    }[family]  # fmt: skip
    model = build_model(shape, Vocabulary(SIZE, SIZE, PAD, EOS)).eval()
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.2)
        model.source_embedding.words[PAD] = 0
    ids = torch.randperm(SIZE - 3)[: num_words + 4] + 3
    source, target = ids[:num_words].tolist(), ids[num_words:].tolist()
    return MaskedScorer(
        model, groups(source), groups(target), pad_id=PAD, vocabulary_size=SIZE,
        device=torch.device("cpu"),
    )  # fmt: skip


def test_planted_dependency_is_recovered():
    """Each target word needs one source word; which one is known."""
    needs = [{14: 3.0}, {11: 2.0}, {17: 4.0}]
    source = list(range(10, 22))
    found = Rise(scorer_of(PlantedModel(needs), source), 100).estimate()
    assert not found.is_exact
    expected = np.zeros((3, 12))
    for row, needed in enumerate(needs):
        for word, weight in needed.items():
            expected[row, source.index(word)] = gain(weight)
    np.testing.assert_allclose(found.values, expected, atol=1e-6)
    np.testing.assert_allclose(found.errors, 0, atol=1e-9)


def test_two_words_that_say_the_same_are_found_where_occlusion_finds_neither():
    needs = [{12: 3.0, 15: 3.0}, {}, {}]
    scorer = scorer_of(PlantedModel(needs, is_any=True), list(range(10, 20)))
    assert not occlude(scorer).any()
    found = Rise(scorer, 200).estimate()
    assert set(np.argsort(-found.values[0])[:2]) == {2, 5}
    assert found.values[0, [2, 5]].min() > 5 * found.errors[0].max()
    others = np.delete(found.values[0], [2, 5])
    assert np.abs(others).max() < 4 * np.delete(found.errors[0], [2, 5]).max()


def test_subwords_of_a_word_are_hidden_together():
    needs = [{11: 1.0, 12: 1.0}, {}, {}]
    scorer = scorer_of(PlantedModel(needs), [10, 11, 12, 13], word_of=[0, 1, 1, 2])
    found = Rise(scorer, 8).estimate()
    assert found.values.shape == (3, 3)
    assert found.values[0, 1] == pytest.approx(gain(2.0))
    assert found.values[0, [0, 2]] == pytest.approx([0, 0])


@pytest.mark.parametrize("family", ["transformer", "rnnsearch"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ranks_are_those_of_exact_occlusion(family, seed):
    """Both of every way to hide words, tried one by one, and of each word hidden alone."""
    scorer = make_scorer(seed, 8, family)
    found = Rise(scorer, 200, seed=seed).estimate()
    exact = Rise(scorer, 1 << 8).estimate()
    assert (found.is_exact, exact.is_exact) == (False, True)
    assert spearman(found.values, exact.values) >= 0.9
    few = Rise(scorer, 1 << 8, hidden_share=0.02).estimate()
    assert spearman(few.values, occlude(scorer)) >= 0.9


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ranks_agree_with_hiding_each_word_alone(seed):
    """Where words depend on a few others, more or less, and less on each the more are there."""
    random = np.random.default_rng(seed)
    source = list(range(10, 18))
    needs = [
        dict(zip(random.choice(source, 3, replace=False).tolist(), weights, strict=True))
        for weights in random.uniform(0.3, 2.5, (4, 3)).tolist()
    ]
    scorer = scorer_of(PlantedModel(needs), source, num_targets=4)
    found = Rise(scorer, 200, seed=seed).estimate()
    assert not found.is_exact
    # What may be chance is nothing, as on the page.
    sure = np.where(np.abs(found.values) > 2 * found.errors + 1e-9, found.values, 0.0)
    assert spearman(sure, occlude(scorer)) >= 0.9


def test_all_ways_weighted_by_their_probability_are_the_definition():
    scorer, share = make_scorer(4, 4), 0.3
    found = Rise(scorer, 16, hidden_share=share).estimate()
    assert (found.is_exact, found.num_masks) == (True, 16)
    assert not found.errors.any()
    means = {}
    for index, is_there in itertools.product(range(4), (False, True)):
        total, weight = 0.0, 0.0
        for mask in itertools.product((False, True), repeat=4):
            if mask[index] == is_there:
                chance = np.prod([1 - share if each else share for each in mask])
                total, weight = total + chance * scorer.score(np.array([mask]))[0], weight + chance
        means[index, is_there] = total / weight
    expected = [means[index, True] - means[index, False] for index in range(4)]
    np.testing.assert_allclose(found.values, np.transpose(expected), atol=1e-6)


def test_errors_are_as_large_as_they_say():
    scorer = make_scorer(5, 8)
    exact = Rise(scorer, 1 << 8).estimate().values
    estimates = [Rise(scorer, 120, seed=seed).estimate() for seed in range(12)]
    off = np.array([(each.values - exact) / each.errors for each in estimates])
    assert 0.75 < np.sqrt((off**2).mean()) < 1.25
    assert (np.abs(off) < 2).mean() > 0.9


def test_explaining_words_together_leaves_less_to_chance():
    scorer = make_scorer(6, 9)
    together, apart = [], []
    for seed in range(12):
        visible = np.random.default_rng(seed).random((100, 9)) > 0.25
        scores = scorer.score(visible)
        together.append(regress(visible, scores).values)
        apart.append([scores[one].mean(0) - scores[~one].mean(0) for one in visible.T])
    assert np.var(together, axis=0).mean() < 0.7 * np.var(apart, axis=0).mean()


def test_errors_fall_with_the_root_of_the_masks():
    scorer = make_scorer(7, 12)
    first, *_, last = Rise(scorer, 800, seed=3).estimates(block_size=50)
    assert (first.num_masks, last.num_masks) == (50, 800)
    assert last.errors.mean() == pytest.approx(first.errors.mean() / 4, rel=0.35)


def test_words_are_hidden_equally_often_in_a_block():
    rise = Rise(make_scorer(8, 10), 100)
    hidden = ~rise._draw(64)
    assert hidden.sum(0).tolist() == [16] * 10
    counts = np.array([(~rise._draw(10)).sum(0) for _ in range(200)])
    assert set(counts.ravel()) == {2, 3}
    assert counts.mean() == pytest.approx(2.5, abs=0.1)


def test_the_same_seed_tries_the_same_masks():
    scorer = make_scorer(9, 10)
    one, same, other = (Rise(scorer, 60, seed=seed).estimate().values for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_batches_change_nothing(monkeypatch):
    scorer = make_scorer(10, 7)
    visible = np.random.default_rng(1).random((40, 7)) > 0.4
    together = scorer.score(visible)
    monkeypatch.setattr(rise_module, "_MOST_ROWS", 1)
    np.testing.assert_allclose(scorer.score(visible), together, atol=1e-5)


def test_scores_are_log_probabilities_of_the_shortened_sentence(tiny_folder):
    translator = Translator.load(tiny_folder.path, "cpu")
    scorer = MaskedScorer.of(translator, "The old dog sees.", "Le vieux chien.")
    assert scorer.num_words == 4
    found = scorer.score(np.array([[True, False, True, True]]))
    shorter = MaskedScorer.of(translator, "The dog sees.", "Le vieux chien.")
    np.testing.assert_allclose(found, shorter.score(np.ones((1, 3), bool)), atol=1e-5)
    words = group_words(translator.folder.vocabularies.target, "Le vieux chien.").words
    assert found.shape == (1, len(words))
    assert (found < 0).all()


def test_not_all_ways_are_tried_where_they_are_many():
    assert Rise(make_scorer(1, 8), 1000).is_exact
    assert not Rise(make_scorer(1, 9), 1000).is_exact


def test_all_words_can_be_hidden():
    assert np.isfinite(make_scorer(11, 3).score(np.zeros((1, 3), bool))).all()


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(DataError, match="the sentence to explain is empty; give at least one word"):
        scorer_of(PlantedModel([{}] * 3), [])
    scorer = make_scorer(12, 12)
    with pytest.raises(OptionError, match="hidden_share is 1: must be between 0 and 1"):
        Rise(scorer, 100, hidden_share=1)
    assert minimum_masks(12) == 26
    with pytest.raises(OptionError, match="--masks is 20: 12 source words need at least 26"):
        Rise(scorer, 20)
