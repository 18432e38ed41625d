"""Lines of a given length, joined from short sentences of the built-in corpus.

The grammar's own sentences are short, and the longer ones are also harder: they have clauses that
the short ones lack. So that length alone differs, a long line is several short sentences one after
another, drawn independently: word for word it is as hard as a short one. Phrases without an end
mark are left out, since their end could not be recognised.
"""

import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import DataError

LONGEST_SENTENCE = 6
"""Words of the longest sentence that lines are joined from."""

SHORTEST_LINE = 3
"""Words of the shortest line; shorter sentences are few, and not used."""

_END_MARKS = (".", "!", "?")
_MOST_SENTENCES = {"train": 40_000, "valid": 500, "test": 1500}
_FEWEST_SENTENCES = 300
_NUM_VALID_LINES = 200


class Bucket(NamedTuple):
    """Lines of similar length.

    Parameters
    ----------
    first, last : int
        Source words of the shortest and of the longest.
    is_beyond : bool
        Whether they are longer than any line of training.
    """

    first: int
    last: int
    is_beyond: bool

    @property
    def title(self) -> str:
        """The label of the bucket."""
        return f"{self.first}–{self.last}"


def make_buckets(max_words: int, num_within: int, num_beyond: int) -> tuple[Bucket, ...]:
    """Make buckets of equal width within the range of training lengths and beyond it.

    Returns
    -------
    tuple[Bucket, ...]
        From short to long, without gaps; those within end at equal distances, the last of them at
        `max_words`, and those beyond are as wide as it.
    """
    ends = [round(max_words * part / num_within) for part in range(num_within + 1)]
    step = ends[-1] - ends[-2]
    ends += [max_words + step * part for part in range(1, num_beyond + 1)]
    starts = [max(SHORTEST_LINE, end + 1) for end in ends[:-1]]
    return tuple(
        Bucket(first, last, first > max_words) for first, last in zip(starts, ends[1:], strict=True)
    )


class Pool:
    """A pool of short sentence pairs, to be joined to lines.

    Parameters
    ----------
    pairs : Iterable[tuple[str, str]]
        Source and target; those that are too long or too short, or end without an end mark, are
        left out.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._by_length: dict[int, list[tuple[str, str]]] = {}
        # Memo by number of words: whether sentences add up to it.
        self._joinable = [True]
        for source, target in pairs:
            num_words = count_words(source)
            is_whole = source.endswith(_END_MARKS)
            if is_whole and SHORTEST_LINE <= num_words <= LONGEST_SENTENCE:
                self._by_length.setdefault(num_words, []).append((source, target))

    def __len__(self) -> int:
        return sum(map(len, self._by_length.values()))

    def _can_join(self, num_words: int) -> bool:
        """Tell whether sentences of the pool add up to a number of words."""
        while num_words >= len(self._joinable):
            rests = (len(self._joinable) - length for length in self._by_length)
            self._joinable.append(any(rest >= 0 and self._joinable[rest] for rest in rests))
        return num_words >= 0 and self._joinable[num_words]

    def join(self, num_words: int, generator: random.Random) -> tuple[str, str]:
        """Join one line.

        Returns
        -------
        tuple[str, str]
            Source and target: as many sentences as it takes, each length as often as it is in the
            pool as long as it leaves no rest that nothing fits.
        """
        chosen: list[tuple[str, str]] = []
        rest = num_words
        while rest:
            fitting = [length for length in self._by_length if self._can_join(rest - length)]
            if not fitting:
                raise DataError(
                    f"no line of {num_words} words can be joined from {len(self)} sentences; take "
                    "more of them"
                )
            weights = [len(self._by_length[length]) for length in fitting]
            (length,) = generator.choices(fitting, weights)
            chosen.append(generator.choice(self._by_length[length]))
            rest -= length
        sources, targets = zip(*chosen, strict=True)
        return " ".join(sources), " ".join(targets)


def count_words(line: str) -> int:
    """Count the space-separated words of a line."""
    return len(line.split())


def write_lines(
    folder: Path, *, num_lines: int, buckets: Sequence[Bucket], lines_per_bucket: int
) -> None:
    """Write a corpus of joined French–English lines.

    Notes
    -----
    The sentences of the three splits are disjoint. There are fewer of them than lines, since
    those to test with are rare in the grammar, and a sentence may be in several lines.
    """
    from dragoman.data.builtin import generate_pairs
    from dragoman.files import write_file

    longest = max(bucket.last for bucket in buckets if not bucket.is_beyond)
    within = [Bucket(SHORTEST_LINE, longest, False)]
    wanted = {
        "train": (within, num_lines),
        "valid": (within, _NUM_VALID_LINES),
        "test": (buckets, lines_per_bucket),
    }
    for split, (ranges, count) in wanted.items():
        generator = random.Random(f"joined lines {split}")
        num_sentences = min(_MOST_SENTENCES[split], _FEWEST_SENTENCES + count * len(ranges))
        drawn = generate_pairs("fr-en", split=split, count=num_sentences, seed=1)
        pool = Pool((pair.source, pair.target) for pair in drawn)
        lines = [
            pool.join(generator.randint(each.first, each.last), generator)
            for each in ranges
            for _ in range(count)
        ]
        for side, language in enumerate(("fr", "en")):
            text = "".join(f"{line[side]}\n" for line in lines)
            write_file(folder / f"{split}.{language}", text)
