"""From a corpus to clean text on disk: the first half of a store."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from dragoman.data.corpus import CorpusFiles, Report, clean_pairs
from dragoman.data.mapped import SIDES, mapped, read_facts, slice_of, write_facts
from dragoman.data.options import CorpusOptions
from dragoman.errors import DataError, FolderError

FORMAT = 1
HASH_PARTS = 16


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
    valid_report : Report
        What was dropped of the validation files; empty if there were none.
    num_pairs : int
        Pairs to train on.
    """

    folder: Path
    key: str
    report: Report
    valid_report: Report
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
            text = mapped(self.folder / f"train.{side}.text", np.uint8)
            maps.append((text, mapped(self.folder / f"train.{side}.text-ends")))
        for line in mapped(self.folder / "train.clean-index"):
            for text, ends in maps:
                yield slice_of(text, ends, int(line)).tobytes().decode()


def store_text(
    folder: Path,
    files: CorpusFiles,
    valid_files: CorpusFiles | None,
    options: CorpusOptions,
    *,
    may_replace: bool = True,
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
    may_replace : bool
        Whether the prepared text of another corpus there may go.

    Returns
    -------
    CleanText
        The text, ready for `store_ids`.
    """
    parts = [str(FORMAT), repr(options), files.content_hash()]
    parts.append(valid_files.content_hash() if valid_files else "set aside")
    key = hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()
    known = read_facts(folder / "text.json")
    if known.get("key") == key:
        return CleanText(
            folder=folder,
            key=key,
            report=Report(**known["report"]),
            valid_report=Report(**known["valid_report"]),
            num_pairs=known["num_pairs"],
        )
    if known and not may_replace:
        raise FolderError(f"{folder}: holds the prepared text of another corpus; name another")
    _make_empty(folder)
    report = Report()
    hashes = _write_text(folder, "train", clean_pairs(files, options, report))
    if not len(hashes):
        raise DataError(f"the corpus is empty: {report.in_words()} ({_named(files)})")
    keep = np.ones(len(hashes), dtype=bool)
    if options.deduplicate:
        keep &= _first_occurrences(hashes)
        report.drop("repeated", int((~keep).sum()))
    valid_report = Report()
    if valid_files is not None:
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
    facts["valid_report"] = asdict(valid_report)
    write_facts(folder / "text.json", facts)
    return CleanText(
        folder=folder, key=key, report=report, valid_report=valid_report, num_pairs=num_pairs
    )


def _make_empty(folder: Path) -> None:
    """Make the folder, or empty it if it is a store; never touch anything else."""
    marker = folder / "store.json"
    if folder.exists() and any(folder.iterdir()):
        if not marker.exists():
            raise FolderError(f"{folder}: is not a store of prepared text; name another folder")
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path != marker:  # which goes on saying whose folder this is
                path.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    write_facts(marker, {"format": FORMAT})


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
    return mapped(hash_path, np.uint64).reshape(-1, 2)


def _mixed(hashes: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """One hash for each pair, from those of its two sides."""
    source, target = hashes[rows, 0], hashes[rows, 1]
    return (source * np.uint64(0x9E3779B97F4A7C15)) ^ (target + (source >> np.uint64(7)))


def _first_occurrences(hashes: np.ndarray) -> np.ndarray:
    """Mark each pair's first occurrence, sorting a sixteenth of the hashes at a time."""
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
        ends = mapped(folder / f"train.{side}.text-ends")
        text = mapped(folder / f"train.{side}.text", np.uint8)
        pieces = [slice_of(text, ends, int(line)) for line in chosen]
        np.concatenate(pieces).tofile(folder / f"valid.{side}.text")
        np.cumsum([len(each) for each in pieces]).tofile(folder / f"valid.{side}.text-ends")
    np.arange(num_pairs).tofile(folder / "valid.clean-index")
    if not keep.any():
        raise DataError("every pair shares a sentence with the validation set; give other files")


def _named(files: CorpusFiles) -> str:
    return ", ".join(str(path) for path in files.all)
