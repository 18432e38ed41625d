"""Copying and reversal: what is asked for, nothing twice, nothing held out in training."""

from collections import Counter

import pytest

from dragoman.data.builtin.generator import SPLITS
from dragoman.data.builtin.tasks import TASK_WORDS, TASKS, find_task_split, generate_task
from dragoman.errors import OptionError


def draw(task, split="train", count=600, seed=1, **options):
    return list(generate_task(task, split=split, count=count, seed=seed, **options))


@pytest.fixture(scope="module", params=TASKS)
def task(request):
    return request.param


def test_words_are_many_and_pronounceable():
    assert len(set(TASK_WORDS)) == 225
    for word in TASK_WORDS:
        assert len(word) == 4
        assert set(word[::2]) <= set("kmnst")
        assert set(word[1::2]) <= set("aio")


def test_target_is_the_task(task):
    for pair in draw(task):
        expected = pair.source_words if task == "copy" else pair.source_words[::-1]
        assert pair.target_words == expected
        assert pair.source == " ".join(pair.source_words)
        assert pair.target == " ".join(pair.target_words)
        assert set(pair.source_words) <= set(TASK_WORDS)


def test_alignment_joins_the_same_places(task):
    for pair in draw(task):
        length = len(pair.source_words)
        end = length - 1
        links = {(i, i if task == "copy" else end - i) for i in range(length)}
        assert set(pair.alignment) == links
        assert list(pair.alignment) == sorted(pair.alignment)
        assert all(pair.source_words[i] == pair.target_words[j] for i, j in pair.alignment)


def test_lengths(task):
    lengths = Counter(len(pair.source_words) for pair in draw(task, count=2000))
    assert sorted(lengths) == list(range(1, 11))
    assert all(140 < lengths[length] < 260 for length in range(2, 11))
    short = Counter(len(pair.source_words) for pair in draw(task, max_words=3))
    assert sorted(short) == [1, 2, 3]


def test_no_source_comes_twice(task):
    sources = [pair.source for pair in draw(task, count=400, max_words=2)]
    assert len(set(sources)) == len(sources)


def test_held_out_sequences_are_never_trained_on(task):
    """Neither as a source nor as a target, although pairs of words are few enough to meet."""
    seen = {}
    for split, count in zip(SPLITS, (30_000, 1500, 1500), strict=True):
        pairs = draw(task, split, count, max_words=2)
        seen[split] = {text for pair in pairs for text in (pair.source, pair.target)}
    assert not seen["train"] & (seen["valid"] | seen["test"])
    assert not seen["valid"] & seen["test"]


def test_splits_have_their_shares():
    splits = Counter(find_task_split((a, b)) for a in TASK_WORDS for b in TASK_WORDS)
    total = splits.total()
    assert splits["valid"] / total == pytest.approx(0.08, abs=0.01)
    assert splits["test"] / total == pytest.approx(0.08, abs=0.01)


def test_seed_chooses_and_count_extends(task):
    assert draw(task, count=20) == draw(task, count=50)[:20]
    assert draw(task, count=20) != draw(task, count=20, seed=2)


def test_all_there_is_can_be_drawn():
    counts = Counter(find_task_split((word,)) for word in TASK_WORDS)
    for split in SPLITS:
        drawn = draw("copy", split, counts[split], max_words=1)
        assert len({pair.source for pair in drawn}) == counts[split]
        with pytest.raises(OptionError) as caught:
            draw("copy", split, counts[split] + 1, max_words=1)
        assert str(caught.value) == (
            f"count: {counts[split] + 1} is too many for “{split}”: only {counts[split]} different "
            "sequences of up to 1 words were found; ask for fewer, or for longer ones"
        )


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"task": "sort"}, "task: “sort” is not in the built-in corpus; known are copy, reversal"),
        ({"split": "tests"}, "split: “tests” is not in the built-in corpus; did you mean “test”"),
        ({"count": 0}, "count: 0 is too few sentence pairs; ask for 1 or more"),
        ({"max_words": 0}, "max_words: 0 is too few words; ask for 1 or more"),
    ],
)
def test_refusals(changed, message):
    options = {"task": "copy", "split": "train", "count": 3, "seed": 1} | changed
    with pytest.raises(OptionError, match=message):
        generate_task(options.pop("task"), **options)
