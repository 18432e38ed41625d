"""The recorded tree of a search, against the search itself, teacher forcing and brute force."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decoding.random_model import EOS, PAD, SIZE, UNK, RandomModel

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.decoding.search.candidates import BeamChooser
from dragoman.errors import DataError
from dragoman.insight.beam_tree import RecordingChooser, grow_tree
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import token_log_probabilities

SENTENCES = ["The old dog sees.", "A tree", "The house likes the garden."]
VOCABULARY = Vocabulary(SIZE, SIZE, PAD, EOS)
WORDS = (UNK, 3, 4)


def path_to(nodes, index):
    """The subwords from the beginning to a node."""
    path = []
    while index >= 0:
        path.append(nodes[index].token_id)
        index = nodes[index].parent
    return path[::-1]


@pytest.mark.parametrize("beam", [1, 2, 4, 8])
@pytest.mark.parametrize("source", SENTENCES)
def test_tree_has_what_the_search_found(translator, source, beam):
    tree = grow_tree(translator, source, beam)
    options = replace(translator.options, beam_size=beam, search_again=False)
    plain = translator.translate(source, options=options)
    assert tree.text == plain.text
    assert tree.best.score == pytest.approx(plain.score, abs=1e-4)
    (end,) = [node for node in tree.nodes if node.is_best and node.fate == "ended"]
    assert end.score == pytest.approx(tree.best.score, abs=1e-6)
    assert end.total == pytest.approx(tree.best.log_probability, abs=1e-6)
    eos_id = translator.folder.vocabularies.eos_id
    assert path_to(tree.nodes, tree.nodes.index(end)) == [*tree.best.tokens, eos_id]
    best = [node.log_probability for node in tree.nodes if node.is_best]
    assert best == pytest.approx(tree.best.token_log_probabilities, abs=1e-5)
    assert max(node.score for node in tree.nodes if node.score is not None) == end.score


def test_every_node_has_the_probability_of_teacher_forcing(translator):
    tree = grow_tree(translator, SENTENCES[0], 3)
    vocabularies = translator.folder.vocabularies
    source_ids = translator.encode(SENTENCES[0])
    for index, node in enumerate(tree.nodes):
        ids = path_to(tree.nodes, index)
        batch = make_batch(flatten([source_ids]), flatten([ids]), vocabularies.pad_id)
        with torch.no_grad():
            logs = token_log_probabilities(translator.model, batch)[0]
        assert node.log_probability == pytest.approx(logs[-1].item(), abs=2e-4)
        assert node.total == pytest.approx(logs.sum().item(), abs=1e-3)


@pytest.mark.parametrize("beam", [1, 2, 5])
def test_each_step_keeps_the_best_of_what_it_tried(translator, beam):
    tree = grow_tree(translator, SENTENCES[0], beam)
    for step in range(max(node.step for node in tree.nodes) + 1):
        tried = [node for node in tree.nodes if node.step == step]
        assert [node.total for node in tried] == sorted(
            (node.total for node in tried), reverse=True
        )
        kept = [node.total for node in tried if node.fate == "kept"]
        assert len(kept) <= beam
        pruned = [node.total for node in tried if node.fate == "pruned"]
        assert not kept or not pruned or beam == 1 or min(kept) >= max(pruned)
    assert all(tree.nodes[node.parent].fate == "kept" for node in tree.nodes if node.parent >= 0)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.0, 0.6, 1.0]))
def test_wide_tree_has_every_translation_with_its_score(seed, alpha):
    """With a beam that holds every prefix, its ends are all translations there are."""
    model, source, most = RandomModel(seed), (3, 4, EOS), 3
    options = SearchOptions(beam_size=64, length_penalty=alpha, max_extra_tokens=0)
    chooser = RecordingChooser(inner=BeamChooser(64, EOS), alpha=alpha)
    sources = pad_sequences(flatten([source]), PAD)
    ((best,),) = search(model, sources, options, VOCABULARY, chooser=chooser)
    ends = {
        tuple(path_to(chooser.nodes, index)): node
        for index, node in enumerate(chooser.nodes)
        if node.fate == "ended"
    }
    for words, node in ends.items():
        log = sum(
            model.log_probability(source, words[:place], word) for place, word in enumerate(words)
        )
        assert node.total == pytest.approx(log, abs=1e-4)
        assert node.score == pytest.approx(log / ((5 + len(words)) / 6) ** alpha, abs=1e-4)
    every = {(*words, EOS) for length in range(most) for words in product(WORDS, repeat=length)}
    assert ends.keys() <= every
    # The search may stop before it has tried what can no longer win.
    assert max(ends, key=lambda words: ends[words].score) == (*best.tokens, EOS)
    scores = {
        words: sum(model.log_probability(source, words[:place], word)
                   for place, word in enumerate(words)) / ((5 + len(words)) / 6) ** alpha
        for words in every
    }  # fmt: skip
    assert best.score == pytest.approx(max(scores.values()), abs=1e-4)
    assert all(math.isfinite(node.total) for node in chooser.nodes)


def test_greedy_search_tells_what_it_did_not_follow(translator):
    tree = grow_tree(translator, SENTENCES[0], 1)
    first = [node for node in tree.nodes if node.step == 0]
    assert [node.fate for node in first] == ["kept", "pruned", "pruned"]


def test_empty_sentence_is_refused(translator):
    with pytest.raises(DataError, match="the sentence to translate is empty"):
        grow_tree(translator, "", 4)
