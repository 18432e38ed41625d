"""Synthetic tasks: copy or reverse a sequence of random words.

The smallest tasks for a translation model: they cannot be solved without attending to single
source words, and every translation is exactly right or wrong.
"""

import random
from collections.abc import Iterator
from itertools import product

from dragoman.data.builtin.generator import SPLITS, AlignedPair, check_choice, split_of_key
from dragoman.errors import OptionError

TASKS: tuple[str, ...] = ("copy", "reversal")
TASK_SIDES = ("source", "target")
"""Suffixes of the files of a task, in place of language codes."""

MOST_WORDS = 10

_SYLLABLES = tuple("".join(letters) for letters in product("kmnst", "aio"))
TASK_WORDS: tuple[str, ...] = tuple("".join(pair) for pair in product(_SYLLABLES, repeat=2))
"""The 225 words of two syllables, each of one of k, m, n, s, t and one of a, i, o: “mosa”."""

# After so many duplicates in a row the task is taken to be exhausted.
_PATIENCE = 20_000


def find_task_split(words: tuple[str, ...]) -> str:
    """Find the split to which a sequence belongs.

    Notes
    -----
    A sequence and its reversal share a split, so that a held-out sequence is never seen in
    training, neither as a source nor as a target.
    """
    return split_of_key(" ".join(min(words, words[::-1])))


def generate_task(
    task: str, *, split: str, count: int, seed: int, max_words: int = MOST_WORDS
) -> Iterator[AlignedPair]:
    """Generate pairs of one split of a task.

    Parameters
    ----------
    task : str
        “copy” or “reversal”.
    split : str
        “train”, “valid” or “test”.
    count : int
        How many pairs, all with different sources.
    seed : int
        Chooses the sequence of pairs; a larger count extends the sequence of a smaller one.
    max_words : int
        Sources have from 1 to so many words.

    Notes
    -----
    Lengths and words are drawn evenly, but a source that has come before is drawn anew: of the 225
    single words some 190 are for training, so there are fewer of them than of longer ones. If
    there are fewer than `count` different sources, the iterator ends with an OptionError.
    """
    check_choice("task", task, TASKS)
    check_choice("split", split, SPLITS)
    if count < 1:
        raise OptionError(f"count: {count} is too few sentence pairs; ask for 1 or more")
    if max_words < 1:
        raise OptionError(f"max_words: {max_words} is too few words; ask for 1 or more")
    return _generate(task, split, count, seed, max_words)


def _generate(
    task: str, split: str, count: int, seed: int, max_words: int
) -> Iterator[AlignedPair]:
    generator = random.Random(f"{task} {split} {seed}")
    seen: set[tuple[str, ...]] = set()
    num_vain = 0
    while len(seen) < count:
        words = tuple(generator.choices(TASK_WORDS, k=generator.randint(1, max_words)))
        if find_task_split(words) == split and words not in seen:
            seen.add(words)
            num_vain = 0
            yield _pair(words, reverse=task == "reversal")
            continue
        num_vain += 1
        if num_vain == _PATIENCE:
            raise OptionError(
                f"count: {count} is too many for “{split}”: only {len(seen)} different sequences "
                f"of up to {max_words} words were found; ask for fewer, or for longer ones"
            )


def _pair(words: tuple[str, ...], *, reverse: bool) -> AlignedPair:
    places = range(len(words))
    target = words[::-1] if reverse else words
    return AlignedPair(
        source=" ".join(words),
        target=" ".join(target),
        source_words=words,
        target_words=target,
        alignment=tuple(zip(places, reversed(places) if reverse else places, strict=True)),
    )
