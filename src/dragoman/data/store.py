"""The prepared corpus on disk: clean text, and beside it token ids, both memory-mapped.

A store folder holds, for each of ``train`` and ``valid`` and for each side, four files: the text
and its line ends, the ids and their ends; and for each of the two an index of the clean pairs and
of those short enough to use.
Everything is written in a stream, so memory does not grow with the corpus except for one byte a
pair. ``text.json`` and ``ids.json`` are written last and say what the files were made from; when
that has not changed, the files are used again.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int

from dragoman.data.batches import Flat
from dragoman.data.corpus import CorpusFiles, Report, clean_pairs
from dragoman.data.options import CorpusOptions
from dragoman.errors import DataError, FolderError
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import Vocabularies

FORMAT = 1
SIDES = ("source", "target")
ENCODE_LINES = 20_000
HASH_PARTS = 16


class PairStore:
    """Sentence pairs on disk: their text and their token ids.

    Parameters
    ----------
    folder : Path
        The store's folder.
    name : str
        ``train`` or ``valid``.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._texts = [_mapped(folder / f"{name}.{side}.text", np.uint8) for side in SIDES]
        self._text_ends = [_mapped(folder / f"{name}.{side}.text-ends") for side in SIDES]
        self._ids = [_mapped(folder / f"{name}.{side}.ids", np.uint32) for side in SIDES]
        self._id_ends = [_mapped(folder / f"{name}.{side}.ids-ends") for side in SIDES]
        self.index = _mapped(folder / f"{name}.index")
        self.source_lengths, self.target_lengths = (
            (ends[self.index] - np.where(self.index > 0, ends[self.index - 1], 0)).astype(np.int32)
            if len(self.index)
            else np.zeros(0, np.int32)
            for ends in self._id_ends
        )

    def __len__(self) -> int:
        return len(self.index)

    @property
    def num_tokens(self) -> int:
        """Tokens of both sides, end symbols included."""
        return int(self.source_lengths.sum()) + int(self.target_lengths.sum())

    def ids(self, pairs: Int[np.ndarray, "rows"]) -> tuple[Flat, Flat]:
        """Return the token ids of some pairs, each sentence ended by the end symbol.

        Parameters
        ----------
        pairs : Int[np.ndarray, "rows"]
            Their numbers among those in use.

        Returns
        -------
        tuple[Flat, Flat]
            Source and target.

        Notes
        -----
        A handful of NumPy calls whatever the number of pairs: a loop over them would hold the
        interpreter's lock while the training thread wants it.
        """
        lines = self.index[pairs]
        source, target = (
            _gather(ids, ends, lines) for ids, ends in zip(self._ids, self._id_ends, strict=True)
        )
        return source, target

    def text(self, pair: int) -> tuple[str, str]:
        """Return a pair's text.

        Parameters
        ----------
        pair : int
            Its number among those in use.

        Returns
        -------
        tuple[str, str]
            Source and target, normalised.
        """
        line = int(self.index[pair])
        source, target = (
            _slice(text, ends, line).tobytes().decode()
            for text, ends in zip(self._texts, self._text_ends, strict=True)
        )
        return source, target


@dataclass(frozen=True, kw_only=True)
class CleanText:
    """A store whose text is ready and whose ids may not be.

    Parameters
    ----------
    folder : Path
        Where it is.
    key : str
        What it was made from.
    report : Report
        What was dropped.
    num_pairs : int
        Pairs to train on.
    """

    folder: Path
    key: str
    report: Report
    num_pairs: int

    def lines(self, sides: Iterable[str] = SIDES) -> Iterator[str]:
        """Read the training text, to learn subwords from.

        Parameters
        ----------
        sides : Iterable[str]
            Of which sides.

        Yields
        ------
        str
            A sentence; those of the two sides alternate.
        """
        maps = []
        for side in sides:
            text = _mapped(self.folder / f"train.{side}.text", np.uint8)
            maps.append((text, _mapped(self.folder / f"train.{side}.text-ends")))
        for line in _mapped(self.folder / "train.clean-index"):
            for text, ends in maps:
                yield _slice(text, ends, int(line)).tobytes().decode()


def store_text(
    folder: Path, files: CorpusFiles, valid_files: CorpusFiles | None, options: CorpusOptions
) -> CleanText:
    """Clean a corpus into a store, or find that it was done before.

    Parameters
    ----------
    folder : Path
        The store's folder; made if missing.
    files : CorpusFiles
        The training corpus.
    valid_files : CorpusFiles | None
        The validation corpus. None: some training pairs are set aside, and no sentence of
        theirs, on either side, stays in the training corpus.
    options : CorpusOptions
        What is dropped and how much is set aside.

    Returns
    -------
    CleanText
        The text, ready for `store_ids`.
    """
    parts = [str(FORMAT), repr(options), files.content_hash()]
    parts.append(valid_files.content_hash() if valid_files else "set aside")
    key = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
    known = _read_json(folder / "text.json")
    if known.get("key") == key:
        report = Report(**known["report"])
        return CleanText(folder=folder, key=key, report=report, num_pairs=known["num_pairs"])
    _make_empty(folder)
    report = Report()
    hashes = _write_text(folder, "train", clean_pairs(files, options, report))
    if not len(hashes):
        raise DataError(f"the corpus is empty: {report.in_words()} ({_named(files)})")
    keep = np.ones(len(hashes), dtype=bool)
    if options.deduplicate:
        keep &= _first_occurrences(hashes)
        report.drop("repeated", int((~keep).sum()))
    if valid_files is not None:
        valid_report = Report()
        lenient = CorpusOptions(max_length_ratio=None)
        _write_text(folder, "valid", clean_pairs(valid_files, lenient, valid_report))
        if not valid_report.kept:
            raise DataError(f"the validation corpus is empty ({_named(valid_files)})")
        np.arange(valid_report.kept).tofile(folder / "valid.clean-index")
    else:
        _set_aside(folder, hashes, keep, report, options.valid_pairs)
    np.flatnonzero(keep).tofile(folder / "train.clean-index")
    num_pairs = int(keep.sum())
    facts = {"key": key, "num_pairs": num_pairs, "report": asdict(report)}
    _write_json(folder / "text.json", facts)
    return CleanText(folder=folder, key=key, report=report, num_pairs=num_pairs)


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
    """

    train: PairStore
    valid: PairStore
    report: Report


def store_ids(
    text: CleanText, vocabularies: Vocabularies, max_length: int, num_threads: int = 2
) -> Store:
    """Encode a store's text into token ids, or find that it was done before.

    Parameters
    ----------
    text : CleanText
        From `store_text`.
    vocabularies : Vocabularies
        The subwords of both sides.
    max_length : int
        Pairs with more subwords on a side are dropped.
    num_threads : int
        Threads that encode.

    Returns
    -------
    Store
        Ready to train on.
    """
    folder = text.folder
    key = hashlib.blake2b(
        f"{text.key} {max_length} {vocabularies.content_hash()}".encode(), digest_size=16
    ).hexdigest()
    known = _read_json(folder / "ids.json")
    if known.get("key") != key:
        (folder / "ids.json").unlink(missing_ok=True)
        known = {"key": key, "too_long": 0}
        for name in ("train", "valid"):
            for side, subwords in zip(SIDES, vocabularies, strict=True):
                _write_ids(folder, name, side, subwords, num_threads)
            too_long = _drop_long(folder, name, max_length)
            known["too_long"] += too_long if name == "train" else 0
        _write_json(folder / "ids.json", known)
    report = Report(read=text.report.read, dropped=dict(text.report.dropped))
    report.drop(f"longer than {max_length} subwords", known["too_long"])
    store = Store(train=PairStore(folder, "train"), valid=PairStore(folder, "valid"), report=report)
    if not len(store.train) or not len(store.valid):
        raise DataError(f"no pair is short enough to use: {report.in_words()}; raise --max-length")
    return store


def _make_empty(folder: Path) -> None:
    """Make the folder, or empty it if it is a store; never touch anything else."""
    marker = folder / "store.json"
    if folder.exists() and any(folder.iterdir()):
        if not marker.exists():
            raise FolderError(f"{folder}: is not a store of prepared text; name another folder")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write_json(marker, {"format": FORMAT})


def _write_text(folder: Path, name: str, pairs: Iterable[tuple[str, str]]) -> np.ndarray:
    """Write the text of pairs and return two hashes for each, of its source and its target."""
    texts = [(folder / f"{name}.{side}.text").open("wb") for side in SIDES]
    ends = [(folder / f"{name}.{side}.text-ends").open("wb") for side in SIDES]
    hash_path = folder / f"{name}.hashes"
    with texts[0], texts[1], ends[0], ends[1], hash_path.open("wb") as hash_file:
        for pair in pairs:
            for text, end, sentence in zip(texts, ends, pair, strict=True):
                raw = sentence.encode()
                text.write(raw)
                end.write(text.tell().to_bytes(8, "little"))
                hash_file.write(hashlib.blake2b(raw, digest_size=8).digest())
    return _mapped(hash_path, np.uint64).reshape(-1, 2)


def _mixed(hashes: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """One hash for each pair, from those of its two sides."""
    source, target = hashes[rows, 0], hashes[rows, 1]
    return (source * np.uint64(0x9E3779B97F4A7C15)) ^ (target + (source >> np.uint64(7)))


def _first_occurrences(hashes: np.ndarray) -> np.ndarray:
    """Mark each pair's first occurrence, a sixteenth of the hashes at a time."""
    pair_hashes = _mixed(hashes, slice(None))
    first = np.zeros(len(hashes), dtype=bool)
    for part in range(HASH_PARTS):
        rows = np.flatnonzero(pair_hashes % np.uint64(HASH_PARTS) == part)
        _, places = np.unique(pair_hashes[rows], return_index=True)
        first[rows[places]] = True
    return first


def _set_aside(
    folder: Path, hashes: np.ndarray, keep: np.ndarray, report: Report, num_pairs: int
) -> None:
    """Move the pairs with the smallest hashes, and all that share a sentence with them, out."""
    rows = np.flatnonzero(keep)
    num_pairs = min(num_pairs, len(rows) // 10)
    if not num_pairs:
        raise DataError(
            f"{len(rows)} pairs are too few to set any aside; give --valid-source and "
            "--valid-target, or at least 10 pairs"
        )
    order = np.argsort(_mixed(hashes, rows), kind="stable")
    chosen = np.sort(rows[order[:num_pairs]])
    shares = np.isin(hashes[:, 0], hashes[chosen, 0]) | np.isin(hashes[:, 1], hashes[chosen, 1])
    removed = shares & keep
    keep &= ~shares
    report.drop("set aside for validation", num_pairs)
    report.drop("sharing a sentence with validation", int(removed.sum()) - num_pairs)
    for side in SIDES:
        ends = _mapped(folder / f"train.{side}.text-ends")
        text = _mapped(folder / f"train.{side}.text", np.uint8)
        pieces = [_slice(text, ends, int(line)) for line in chosen]
        np.concatenate(pieces).tofile(folder / f"valid.{side}.text")
        np.cumsum([len(each) for each in pieces]).tofile(folder / f"valid.{side}.text-ends")
    np.arange(num_pairs).tofile(folder / "valid.clean-index")
    if not keep.any():
        raise DataError("every pair shares a sentence with the validation set; give other files")


def _write_ids(folder: Path, name: str, side: str, subwords: Subwords, num_threads: int) -> None:
    """Encode one side's text, a block of lines at a time."""
    text = _mapped(folder / f"{name}.{side}.text", np.uint8)
    ends = _mapped(folder / f"{name}.{side}.text-ends")
    total = 0
    ids_path, ends_path = folder / f"{name}.{side}.ids", folder / f"{name}.{side}.ids-ends"
    with ids_path.open("wb") as ids_file, ends_path.open("wb") as ends_file:
        for first in range(0, len(ends), ENCODE_LINES):
            lines = range(first, min(first + ENCODE_LINES, len(ends)))
            sentences = [_slice(text, ends, line).tobytes().decode() for line in lines]
            for ids in subwords.encode(sentences, num_threads=num_threads):
                total += len(ids) + 1
                ids_file.write(np.array([*ids, subwords.eos_id], dtype=np.uint32).tobytes())
                ends_file.write(total.to_bytes(8, "little"))


def _drop_long(folder: Path, name: str, max_length: int) -> int:
    """Take pairs with a long side out of the index; return how many."""
    index = np.fromfile(folder / f"{name}.clean-index", dtype=np.int64)
    fits = np.ones(len(index), dtype=bool)
    for side in SIDES:
        ends = _mapped(folder / f"{name}.{side}.ids-ends")
        fits &= np.diff(ends, prepend=0)[index] <= max_length + 1
    index[fits].tofile(folder / f"{name}.index")
    return int((~fits).sum())


def _mapped(path: Path, kind: type = np.int64) -> np.ndarray:
    """Map a file of numbers; an empty file cannot be mapped."""
    if not path.stat().st_size:
        return np.zeros(0, dtype=kind)
    return np.asarray(np.memmap(path, dtype=kind, mode="r"))


def _slice(values: np.ndarray, ends: np.ndarray, line: int) -> np.ndarray:
    """Return the values of one line."""
    return values[int(ends[line - 1]) if line else 0 : int(ends[line])]


def _gather(ids: np.ndarray, ends: np.ndarray, lines: np.ndarray) -> Flat:
    """Return the ids of some lines."""
    starts = np.where(lines > 0, ends[lines - 1], 0)
    lengths = ends[lines] - starts
    before = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
    return Flat(ids[places], lengths)


def _read_json(path: Path) -> dict:
    """Read a small file of facts; none if it is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _write_json(path: Path, facts: dict) -> None:
    """Write a small file of facts in one go."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps(facts, indent=1), encoding="utf-8")
    beside.replace(path)


def _named(files: CorpusFiles) -> str:
    return ", ".join(str(path) for path in files.all)
