"""Score given translations with a model (forced decoding)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from dragoman.data.batches import flatten, group_by_length, make_batch
from dragoman.data.corpus import read_raw_lines
from dragoman.data.lines import LineReader
from dragoman.errors import DataError
from dragoman.folder import ModelFolder
from dragoman.models.likelihood import token_log_probabilities
from dragoman.weights import load_model

# Scores that exist at a time: target tokens × words of the vocabulary.
BATCH_SCORES = 1 << 25
# A pair is read whole, and attention keeps a number for every two of its tokens.
LONGEST = 4096


@dataclass(frozen=True, kw_only=True)
class PairScore:
    """The log-probabilities of one translation.

    Parameters
    ----------
    pieces : tuple[str, ...]
        Its subwords, and the end symbol.
    log_probabilities : tuple[float, ...]
        Of each, given the source and the subwords before.
    """

    pieces: tuple[str, ...]
    log_probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        """The log-probability of the whole, end symbol included."""
        return float(np.sum(self.log_probabilities, dtype=np.float64))

    @property
    def mean(self) -> float:
        """The log-probability per token, comparable between lengths."""
        return self.total / len(self.log_probabilities)

    def in_words(self, *, normalise: bool = False, per_token: bool = False) -> str:
        """Write the score as one line.

        Parameters
        ----------
        normalise : bool
            Whether to write the mean, not the total.
        per_token : bool
            Whether to write after a tab the score of each subword.

        Returns
        -------
        str
            Such as “-1.2345”, or “-1.2345”, tab, “▁The:-0.2000 ▁cat:-1.0000 </s>:-0.0345”.
        """
        line = f"{self.mean if normalise else self.total:.4f}"
        if per_token:
            each = zip(self.pieces, self.log_probabilities, strict=True)
            line += "\t" + " ".join(f"{piece}:{score:.4f}" for piece, score in each)
        return line


class PairScorer:
    """Scores sentence pairs in float32.

    Parameters
    ----------
    folder : ModelFolder
        The model.
    device : torch.device
        Where to compute.
    """

    def __init__(self, folder: ModelFolder, device: torch.device) -> None:
        self._vocabularies = folder.vocabularies
        self._device = device
        self._longest = min(LONGEST, folder.options.max_length or LONGEST)
        self._model = load_model(folder).to(device)

    @torch.inference_mode()
    def score(
        self, pairs: Sequence[tuple[str, str]], name_of: Callable[[int], str] = str
    ) -> list[PairScore]:
        """Score some pairs.

        Parameters
        ----------
        pairs : Sequence[tuple[str, str]]
            Source and target; either may be empty, and is then an end symbol only.
        name_of : Callable[[int], str]
            What to call a pair, given its index, if it is too long.

        Returns
        -------
        list[PairScore]
            In the order of the pairs.
        """
        end = self._vocabularies.eos_id
        sides = [
            [(*ids, end) for ids in vocabulary.encode([pair[side] for pair in pairs])]
            for side, vocabulary in enumerate(self._vocabularies)
        ]
        for index, both in enumerate(zip(*sides, strict=True)):
            longest = max(map(len, both))
            if longest > self._longest:
                raise DataError(
                    f"{name_of(index)}: {longest:,} subwords, but at most {self._longest:,} can be "
                    "scored at once; split it into sentences"
                )
        scores: list[PairScore | None] = [None] * len(pairs)
        for rows in self._batches(sides):
            source, target = (flatten([side[row] for row in rows]) for side in sides)
            batch = make_batch(source, target, self._vocabularies.pad_id).to(self._device)
            found = token_log_probabilities(self._model, batch).tolist()
            for row, numbers in zip(rows.tolist(), found, strict=True):
                ids = sides[1][row]
                scores[row] = PairScore(
                    pieces=tuple(self._vocabularies.target.pieces(ids)),
                    log_probabilities=tuple(numbers[: len(ids)]),
                )
        return [each for each in scores if each is not None]

    def _batches(self, sides: Sequence[Sequence[Sequence[int]]]) -> Iterator[np.ndarray]:
        """Batch pairs of similar length."""
        if not sides[0]:
            return
        lengths = [np.array([len(each) for each in side]) for side in sides]
        num_tokens = max(1, BATCH_SCORES // len(self._vocabularies.target))
        yield from group_by_length(lengths[0], lengths[1], num_tokens)


def split_pair(line: str, place: str) -> tuple[str, str]:
    """Split a line into source and target.

    Parameters
    ----------
    line : str
        Both, a tab between.
    place : str
        Where it stands.

    Returns
    -------
    tuple[str, str]
        Source and target.
    """
    parts = line.split("\t")
    if len(parts) != 2:
        columns = f"{len(parts)} column{'s' if len(parts) > 1 else ''}"
        raise DataError(f"{place}: {columns} where there must be 2 (source, tab, target)")
    return parts[0], parts[1]


def open_both(source: Path, target: Path) -> LineReader:
    """Open two files as lines of source and target.

    Parameters
    ----------
    source : Path
        The sentences.
    target : Path
        Their translations.

    Returns
    -------
    LineReader
        Lines “source, tab, target”. That one file has more lines than the other is told once the
        lines that both have are read.
    """

    def lines() -> Iterator[bytes]:
        files = read_raw_lines(source), read_raw_lines(target)
        number = 0
        while True:
            both = [next(file, None) for file in files]
            if both[0] is None or both[1] is None:
                break
            number += 1
            # A tab within a text is white space like any other.
            yield (
                b"\t".join(raw.rstrip(b"\r\n").replace(b"\t", b" ") for raw in both if raw) + b"\n"
            )
        if both != [None, None]:
            longer = source if both[1] is None else target
            raise DataError(
                f"{longer}, line {number + 1}: the other file has only {number:,} lines; line n of "
                "one must translate line n of the other"
            )

    return LineReader(lines(), place=f"{source} and {target}")
