"""The prepared corpus on disk: clean text, and beside it token ids, both memory-mapped.

A store folder holds, for each of ``train`` and ``valid`` and for each side, four files: the text
and its line ends, the ids and their ends; and for each of the two an index of the clean pairs and
of those short enough to use. Everything is written in a stream; what grows with the corpus is some
tens of bytes a pair, for the hashes that find repetitions and the order of an epoch. Pairs stay in
the order of the files they come from, so that a few numbers say which are of which corpus.
``text.json`` and ``ids.json`` are written last and say what the files were made from, how large
they are and what the digests of their blocks are; while the first is the same, they are used again.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.batches import FlatSequences
from dragoman.data.corpus import Report
from dragoman.data.order import count_seen, draw_order, mixing_weights
from dragoman.data.store.checked_files import CheckedArray, Known, check_sizes, written_checked
from dragoman.data.store.clean_text import CleanText
from dragoman.data.store.encoding import encode_blocks
from dragoman.data.store.mapped import SIDES, read_facts, write_facts
from dragoman.errors import DataError, FolderError, OptionError
from dragoman.shapes import Int
from dragoman.text.vocabulary import TextVocabulary, Vocabularies

CHUNK_PAIRS = 1 << 18


class PairStore:
    """Sentence pairs on disk: their text and their token ids.

    Parameters
    ----------
    folder : Path
        The store's folder.
    name : str
        ``train`` or ``valid``.
    group_ends : Sequence[int]
        Where each corpus ends among the clean pairs; nothing if all are one.
    mix : Sequence[float] | None
        How often a pass sees the pairs of each corpus; None: all of them once.
    mix_temperature : float | None
        What decides it instead, with the sizes of the corpora: see `mixing_weights`.
    files : Known | None
        The digests of its files; None: they are not checked.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        files: Known | None = None,
        group_ends: Sequence[int] = (),
        mix: Sequence[float] | None = None,
        mix_temperature: float | None = None,
    ) -> None:

        def numbers(file: str, kind: type = np.int64) -> CheckedArray:
            return CheckedArray(folder / f"{name}.{file}", files or {}, kind)

        self._texts = [numbers(f"{side}.text", np.uint8) for side in SIDES]
        self._text_ends = [numbers(f"{side}.text-ends") for side in SIDES]
        self._ids = [numbers(f"{side}.ids", np.uint32) for side in SIDES]
        self._id_ends = [numbers(f"{side}.ids-ends")[:] for side in SIDES]
        self.index = numbers("index")[:]
        self.source_lengths, self.target_lengths = (
            _lengths(ends, self.index) for ends in self._id_ends
        )
        ends = np.searchsorted(self.index, group_ends or [np.iinfo(np.int64).max])
        self.group_ends = tuple(ends.tolist())
        if mix_temperature is not None:
            mix = mixing_weights(np.diff(self.group_ends, prepend=0).tolist(), mix_temperature)
        self.mix = mix

    def __len__(self) -> int:
        return len(self.index)

    @property
    def num_tokens(self) -> int:
        """Tokens of both sides, end symbols included."""
        return int(self.source_lengths.sum()) + int(self.target_lengths.sum())

    def epoch_order(self, seed: int, epoch: int) -> Int[np.ndarray, "rows"]:
        """Draw the order in which a pass goes through the pairs.

        Returns
        -------
        Int[np.ndarray, "rows"]
            Every pair once, or as often as the mix says; the same for the same seed and pass.
        """
        return draw_order(self.group_ends, self.mix, seed=seed, epoch=epoch)

    @property
    def without_dropout(self) -> "PairStore":
        """The pairs with the deterministic segmentation: this object."""
        return self

    @property
    def longest(self) -> int:
        """Tokens of the longest sentence, the end symbol included."""
        return max(int(self.source_lengths.max()), int(self.target_lengths.max()))

    def for_epoch(self, seed: int, epoch: int) -> "PairStore":  # noqa: ARG002
        """Return the pairs of a pass: always the same here, unlike in `SegmentedPairs`."""
        return self

    def ids(self, pairs: Int[np.ndarray, "rows"]) -> tuple[FlatSequences, FlatSequences]:
        """Return the token ids of some pairs, each sentence ended by the end symbol.

        Notes
        -----
        A few NumPy calls whatever the number of pairs: a loop over them would hold the
        interpreter's lock while the training thread wants it.
        """
        lines = self.index[pairs]
        source, target = (
            ids.gather(ends, lines) for ids, ends in zip(self._ids, self._id_ends, strict=True)
        )
        return source, target

    def text(self, pair: int) -> tuple[str, str]:
        """Return a pair's text."""
        lines = self.index[[pair]]
        source, target = (
            text.gather(ends[:], lines).ids.tobytes().decode()
            for text, ends in zip(self._texts, self._text_ends, strict=True)
        )
        return source, target


@dataclass(frozen=True, kw_only=True)
class Store:
    """A prepared corpus.

    Parameters
    ----------
    train : PairStore
        Pairs to train on.
    valid : PairStore
        Pairs to validate on.
    report : Report
        What was dropped.
    key : str
        What it was made from: differs when text, subwords or options differ.
    text_key : str
        What its text was made from.
    """

    train: PairStore
    valid: PairStore
    report: Report
    key: str
    text_key: str


def open_store(
    folder: Path,
    mix: Sequence[float] | None = None,
    mix_temperature: float | None = None,
) -> Store:
    """Open a prepared store.

    Parameters
    ----------
    folder : Path
        Its folder.
    mix : Sequence[float] | None
        How often a pass sees the pairs of each corpus; None: all of them once.
    mix_temperature : float | None
        What decides it instead: see `mixing_weights`.
    """
    text, ids = read_facts(folder / "text.json"), read_facts(folder / "ids.json")
    if not text or not ids:
        raise FolderError(
            f"{folder}: the prepared corpus is missing or incomplete; have it prepared again by "
            f"“dragoman train” with --store {folder}"
        )
    files = text.get("files", {}) | ids.get("files", {})
    check_sizes(folder, files)
    report = Report(**text["report"])
    report.drop(ids["reason"], ids["too_long"])
    train = PairStore(
        folder,
        "train",
        group_ends=text.get("group_ends", ()),
        mix=mix,
        mix_temperature=mix_temperature,
        files=files,
    )
    valid = PairStore(folder, "valid", files=files)
    return Store(train=train, valid=valid, report=report, key=ids["key"], text_key=text["key"])


def store_ids(
    text: CleanText,
    vocabularies: Vocabularies,
    max_length: int,
    *,
    mix: Sequence[float] | None = None,
    mix_temperature: float | None = None,
    num_workers: int | None = None,
    may_replace: bool = True,
) -> Store:
    """Encode a store's text into token ids, or reuse the ids made with the same vocabularies.

    Parameters
    ----------
    text : CleanText
        From `store_text`.
    vocabularies : Vocabularies
        The subwords of both sides.
    max_length : int
        Pairs with more subwords on a side are dropped.
    mix : Sequence[float] | None
        How often a pass sees the pairs of each corpus; None: all of them once.
    mix_temperature : float | None
        What decides it instead: see `mixing_weights`.
    num_workers : int | None
        Processes that encode a large corpus; None: as many as there are cores.
    may_replace : bool
        Whether ids of other subwords there may go.
    """
    folder = text.folder
    key = make_key(text.key, vocabularies, max_length)
    known = read_facts(folder / "ids.json")
    if known and known["key"] != key and not may_replace:
        raise FolderError(f"{folder}: holds ids of other subwords; name another --store")
    if known.get("key") != key:
        (folder / "ids.json").unlink(missing_ok=True)
        reason = f"longer than {max_length} subwords"
        known = {"key": key, "too_long": 0, "reason": reason, "files": {}}
        for name in ("train", "valid"):
            for side, subwords in zip(SIDES, vocabularies, strict=True):
                _write_ids(text, f"{name}.{side}", subwords, num_workers, known["files"])
            too_long = _drop_long(text, name, max_length, known["files"])
            known["too_long"] += too_long if name == "train" else 0
        write_facts(folder / "ids.json", known)
    store = open_store(folder, mix, mix_temperature)
    if not len(store.train) or not len(store.valid):
        found = store.report.in_words()
        raise DataError(f"no pair is short enough to use: {found}; raise --max-length")
    if mix is not None and not _num_seen(store.train, mix):
        counts = np.diff(store.train.group_ends, prepend=0).tolist()
        raise OptionError(
            f"mix is {' '.join(f'{weight:g}' for weight in mix)}: of corpora of {counts} pairs, a "
            "pass would see none; raise the weights"
        )
    return store


def make_key(text_key: str, vocabularies: Vocabularies, max_length: int) -> str:
    """Hash the inputs of the ids of a store."""
    parts = f"{text_key} {max_length} {vocabularies.content_hash()}"
    return hashlib.blake2b(parts.encode(), digest_size=16).hexdigest()


def _num_seen(pairs: PairStore, mix: Sequence[float]) -> int:
    counts = np.diff(pairs.group_ends, prepend=0).tolist()
    return sum(count_seen(count, weight) for count, weight in zip(counts, mix, strict=True))


def _lengths(
    ends: Int[np.ndarray, "lines"], index: Int[np.ndarray, "pairs"]
) -> Int[np.ndarray, "pairs"]:
    """Compute the lengths of the lines in use as 32-bit integers, a chunk at a time."""
    lengths = np.empty(len(index), dtype=np.int32)
    for first in range(0, len(index), CHUNK_PAIRS):
        lines = index[first : first + CHUNK_PAIRS]
        starts = np.where(lines > 0, ends[lines - 1], 0)
        lengths[first : first + CHUNK_PAIRS] = ends[lines] - starts
    return lengths


def _write_ids(
    text: CleanText,
    part: str,
    subwords: TextVocabulary,
    num_workers: int | None,
    written: dict[str, Any],
) -> None:
    """Encode one side's text, a block of lines at a time."""
    contents = CheckedArray(text.folder / f"{part}.text", text.files, np.uint8)
    text_ends = CheckedArray(text.folder / f"{part}.text-ends", text.files)[:]
    total = 0
    with (
        written_checked(text.folder / f"{part}.ids", written) as write_ids,
        written_checked(text.folder / f"{part}.ids-ends", written) as write_ends,
    ):
        for ids, lengths in encode_blocks(contents, text_ends, subwords, num_workers=num_workers):
            write_ids(ids.tobytes())
            write_ends((total + np.cumsum(lengths)).tobytes())
            total += len(ids)


def _drop_long(text: CleanText, name: str, max_length: int, written: dict[str, Any]) -> int:
    """Drop pairs with a side that is too long from the index; return their number."""
    index = CheckedArray(text.folder / f"{name}.clean-index", text.files)[:]
    fits = np.ones(len(index), dtype=bool)
    for side in SIDES:
        ends = CheckedArray(text.folder / f"{name}.{side}.ids-ends", written)[:]
        fits &= _lengths(ends, index) <= max_length + 1
    with written_checked(text.folder / f"{name}.index", written) as write:
        for first in range(0, len(index), CHUNK_PAIRS):
            chunk = slice(first, first + CHUNK_PAIRS)
            write(index[chunk][fits[chunk]].tobytes())
    return int((~fits).sum())
