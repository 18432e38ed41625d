"""A model kept from saying the same over and over, against a plain statement of the rule."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.decoding.search.repetition import BlockedOutput, RepetitionBlocker
from dragoman.weights import vocabulary_of

SOURCES = ["The dog sees a house.", "A red tree.", "Old garden near the big house!"]


def third_times(words):
    """The phrases that come three times in a row at the end."""
    return [
        period
        for period in range(1, len(words) // 3 + 1)
        if words[-period:] == words[-2 * period : -period] == words[-3 * period : -2 * period]
    ]


@given(st.lists(st.integers(0, 3), max_size=14))
def test_exactly_what_would_be_a_third_time_is_ruled_out(words):
    output = BlockedOutput(lambda _: torch.zeros(1, 1, 4))
    output.past = torch.tensor([[[9, *words]]])
    scores = output(torch.zeros(1, 1, 2))[0, 0]
    for word in range(4):
        assert (scores[word] == -torch.inf) == bool(third_times([*words, word]))


def test_what_is_forced_is_not_ruled_out():
    output = BlockedOutput(lambda _: torch.zeros(1, 1, 4), num_forced=4)
    scores = []
    for count in range(2, 6):
        output.past = torch.tensor([[[9, *[1] * count]]])
        scores.append(output(torch.zeros(1, 1, 2))[0, 0, 1].item())
    assert scores == [0, 0, -torch.inf, -torch.inf]


@pytest.fixture(scope="module")
def stuck(tiny_folder, vocabularies):
    """A model that says some word again and again, and seldom ends."""
    model = copy.deepcopy(tiny_folder.model)
    with torch.no_grad():
        model.output.words.mul_(3)
        model.output.words[vocabularies.eos_id] = 0
    return model


@pytest.mark.parametrize("beam_size", [1, 3])
def test_no_phrase_comes_three_times_in_a_row(stuck, vocabularies, beam_size):
    ids = [(*each, vocabularies.eos_id) for each in vocabularies.source.encode(SOURCES)]
    source = pad_sequences(flatten(ids), vocabularies.pad_id)
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=30)
    found = {}
    for name, model in (("plain", stuck), ("kept", RepetitionBlocker(stuck))):
        results = search(model, source, options, vocabulary_of(vocabularies))
        found[name] = [list(hypotheses[0].tokens) for hypotheses in results]
    assert any(
        third_times(words[: end + 1]) for words in found["plain"] for end in range(len(words))
    )
    for words in found["kept"]:
        assert not any(third_times(words[: end + 1]) for end in range(len(words)))


def test_until_something_repeats_it_is_the_model(stuck, vocabularies, sentence_pairs):
    """Greedy search says the same up to the first third time."""
    texts = [source for source, _ in sentence_pairs[:30]]
    ids = [(*each, vocabularies.eos_id) for each in vocabularies.source.encode(texts)]
    source = pad_sequences(flatten(ids), vocabularies.pad_id)
    options = SearchOptions(beam_size=1, max_extra_tokens=10)
    found = [
        [list(hypotheses[0].tokens) for hypotheses in search(model, source, options, special)]
        for model, special in (
            (each, vocabulary_of(vocabularies)) for each in (stuck, RepetitionBlocker(stuck))
        )
    ]
    lengths = set()
    for plain, kept in zip(*found, strict=True):
        repeats = [end for end in range(len(plain)) if third_times(plain[: end + 1])]
        same = repeats[0] if repeats else len(plain)
        assert kept[:same] == plain[:same]
        assert kept[same : same + 1] != plain[same : same + 1] or not repeats
        lengths.add(same)
    assert len(lengths) > 1


def test_many_sentences_are_kept_from_it_together(stuck, vocabularies):
    """More hypotheses than a CPU scores at once."""
    ids = [(*each, vocabularies.eos_id) for each in vocabularies.source.encode(SOURCES)] * 10
    options = SearchOptions(beam_size=3, max_extra_tokens=8)
    vocabulary = vocabulary_of(vocabularies)

    def find(sentences):
        source = pad_sequences(flatten(sentences), vocabularies.pad_id)
        return search(RepetitionBlocker(stuck), source, options, vocabulary)

    together, alone = find(ids), [find([each])[0] for each in ids[:3]]
    for place, found in enumerate(together):
        assert found[0].tokens == alone[place % 3][0].tokens
