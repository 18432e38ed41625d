"""Clean a corpus into text files on disk, the first half of a store."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.corpus import CorpusFiles, Report
from dragoman.data.options import CorpusOptions
from dragoman.data.store.checked_files import CheckedArray, Known, check_sizes, written_checked
from dragoman.data.store.cleaning import CleanBlock, clean_blocks
from dragoman.data.store.mapped import SIDES, mapped, read_facts, slice_of, write_facts
from dragoman.errors import DataError, FolderError, OptionError
from dragoman.files import list_own

FORMAT = 3
HASH_PARTS = 16
CHUNK_PAIRS = 1 << 18


@dataclass(frozen=True, kw_only=True)
class CleanText:
    """A store whose clean text is written; its ids may be missing.

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
    files : Known
        The digests of its files.
    """

    folder: Path
    key: str
    report: Report
    valid_report: Report
    num_pairs: int
    files: Known

    def lines(self, sides: Iterable[str] = SIDES, max_pairs: int | None = None) -> Iterator[str]:
        """Read the training text, to learn subwords from.

        Parameters
        ----------
        sides : Iterable[str]
            Of which sides.
        max_pairs : int | None
            Read a random sample of this many pairs, always the same, if there are more.
        """
        index = CheckedArray(self.folder / "train.clean-index", self.files)[:]
        if max_pairs is not None and len(index) > max_pairs:
            chosen = np.random.default_rng(0).choice(len(index), max_pairs, replace=False)
            index = index[np.sort(chosen)]
        maps = []
        for side in sides:
            text = CheckedArray(self.folder / f"train.{side}.text", self.files, np.uint8)
            ends = CheckedArray(self.folder / f"train.{side}.text-ends", self.files)[:]
            maps.append((text, ends))
        for first in range(0, len(index), CHUNK_PAIRS):
            chunk = index[first : first + CHUNK_PAIRS]
            sentences = [_sentences(text, ends, chunk) for text, ends in maps]
            for pair in zip(*sentences, strict=True):
                yield from pair


def store_text(
    folder: Path,
    files: CorpusFiles,
    valid_files: CorpusFiles | None,
    options: CorpusOptions,
    *,
    may_replace: bool = True,
    num_workers: int | None = None,
) -> CleanText:
    """Clean a corpus into a store, or reuse a store made from the same files and options.

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
    num_workers : int | None
        Processes that clean a large corpus; None: as many as there are cores.
    """
    key = _find_key(files, valid_files, options)
    known = read_facts(folder / "text.json")
    if known.get("key") == key:
        check_sizes(folder, known["files"])
        return _read_text(folder, known)
    _make_empty(folder, may_replace=may_replace)
    report = Report()
    written: dict[str, Any] = {}
    blocks = clean_blocks(files, options, num_workers=num_workers)
    group_lines = _write_text(folder, "train", blocks, report, written)
    hashes = mapped(folder / "train.hashes", np.uint64).reshape(-1, 2)
    if not len(hashes):
        raise DataError(f"the corpus is empty: {report.in_words()} ({_named(files)})")
    keep = np.ones(len(hashes), dtype=bool)
    if options.deduplicate:
        keep &= _first_occurrences(hashes)
        report.drop("repeated", int((~keep).sum()))
    valid_report = Report()
    if valid_files is not None:
        lenient = CorpusOptions(max_length_ratio=None)
        blocks = clean_blocks(valid_files, lenient, num_workers=num_workers)
        _write_text(folder, "valid", blocks, valid_report, written)
        if not valid_report.kept:
            raise DataError(f"the validation corpus is empty ({_named(valid_files)})")
        num_valid = valid_report.kept
    else:
        num_own = sum(group_lines.get(group, 0) for group in range(files.num_own))
        is_own = np.arange(len(keep)) < num_own if files.general else None
        num_valid = _set_aside(folder, hashes, keep, is_own, report, options.valid_pairs, written)
    _write_places(folder / "valid.clean-index", np.ones(num_valid, dtype=bool), written)
    _write_places(folder / "train.clean-index", keep, written)
    for name in ("train.hashes", "valid.hashes"):  # not needed any more
        if written.pop(name, None) is not None:
            (folder / name).unlink()
    # Pairs stay in the order of the files, so counts tell which corpus each belongs to.
    group_ends = np.cumsum([group_lines.get(group, 0) for group in range(len(files.groups))])
    known = {"key": key, "num_pairs": int(keep.sum()), "report": asdict(report)}
    known |= {"valid_report": asdict(valid_report), "group_ends": group_ends.tolist()}
    write_facts(folder / "text.json", known | {"files": written})
    return _read_text(folder, known | {"files": written})


def _read_text(folder: Path, known: dict[str, Any]) -> CleanText:
    """Read the description of the text from the facts of a store."""
    return CleanText(
        folder=folder,
        key=known["key"],
        report=Report(**known["report"]),
        valid_report=Report(**known["valid_report"]),
        num_pairs=known["num_pairs"],
        files=known["files"],
    )


def _find_key(files: CorpusFiles, valid_files: CorpusFiles | None, options: CorpusOptions) -> str:
    """Hash the inputs of a store; refuse a mix that does not match the corpora."""
    if options.mix is not None and len(options.mix) != len(files.groups):
        raise OptionError(
            f"mix: {len(options.mix)} weights for {len(files.groups)} corpora; give one for each "
            "source file with its target file, then one for each TSV or TMX file"
        )
    # The mix is drawn anew in every pass, so it is not part of the store's key.
    parts = [str(FORMAT), repr(replace(options, mix=None)), files.content_hash()]
    parts.append(valid_files.content_hash() if valid_files else "set aside")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


def _make_empty(folder: Path, *, may_replace: bool) -> None:
    """Make the folder, or empty it if it is a store; refuse any other folder."""
    marker = folder / "store.json"
    there = list_own(folder)
    if there and not marker.exists():
        raise FolderError(f"{folder}: is not a store of prepared text; name another folder")
    if not may_replace and read_facts(folder / "text.json"):
        raise FolderError(f"{folder}: holds the prepared text of another corpus; name another")
    if not may_replace and (folder / "text.json").exists():
        raise FolderError(
            f"{folder / 'text.json'}: is damaged; remove {folder}, which is then prepared again"
        )
    for path in there:
        if path.is_dir():
            shutil.rmtree(path)
        elif path != marker:  # marks the folder as a store
            path.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    write_facts(marker, {"format": FORMAT})


def _write_text(
    folder: Path,
    name: str,
    blocks: Iterable[CleanBlock],
    report: Report,
    written: dict[str, Any],
) -> dict[int, int]:
    """Write clean text and its hashes; return the number of pairs of each corpus."""
    group_lines: dict[int, int] = {}
    totals = [0, 0]
    with ExitStack() as stack:
        kinds = [f"{side}.{kind}" for kind in ("text", "text-ends") for side in SIDES]
        *writers, write_hashes = (
            stack.enter_context(written_checked(folder / f"{name}.{kind}", written))
            for kind in (*kinds, "hashes")
        )
        texts, ends = writers[:2], writers[2:]
        for block in blocks:
            for side in range(len(SIDES)):
                texts[side](block.texts[side])
                ends[side]((totals[side] + np.cumsum(block.lengths[side])).tobytes())
                totals[side] += len(block.texts[side])
            write_hashes(block.hashes.tobytes())
            num_before = group_lines.get(block.group, 0)
            group_lines[block.group] = num_before + len(block.hashes)
            report.add(block.report)
    return group_lines


def _sentences(text: CheckedArray, ends: np.ndarray, lines: np.ndarray) -> list[str]:
    """Decode some lines, which are in order."""
    starts = np.where(lines > 0, ends[lines - 1], 0)
    first, last = int(starts[0]), int(ends[lines[-1]])
    contents = memoryview(text[first:last].data)
    bounds = zip((starts - first).tolist(), (ends[lines] - first).tolist(), strict=True)
    return [str(contents[start:end], "utf-8") for start, end in bounds]


def _chunks(num_pairs: int) -> Iterator[slice]:
    """Yield the pairs in chunks, to limit memory."""
    for first in range(0, num_pairs, CHUNK_PAIRS):
        yield slice(first, min(first + CHUNK_PAIRS, num_pairs))


def _write_places(path: Path, keep: np.ndarray, written: dict[str, Any]) -> None:
    """Write the numbers of the pairs that are kept."""
    with written_checked(path, written) as write:
        for chunk in _chunks(len(keep)):
            write((np.flatnonzero(keep[chunk]) + chunk.start).tobytes())


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """Combine the hashes of both sides into one for each pair."""
    source, target = hashes[:, 0], hashes[:, 1]
    return (source * np.uint64(0x9E3779B97F4A7C15)) ^ (target + (source >> np.uint64(7)))


def _first_occurrences(hashes: np.ndarray) -> np.ndarray:
    """Mark each pair's first occurrence, sorting a sixteenth of the hashes at a time."""
    pair_hashes = np.empty(len(hashes), dtype=np.uint64)
    part_of = np.empty(len(hashes), dtype=np.uint8)
    for chunk in _chunks(len(hashes)):
        pair_hashes[chunk] = _mixed(hashes[chunk])
        part_of[chunk] = pair_hashes[chunk] % np.uint64(HASH_PARTS)
    first = np.zeros(len(hashes), dtype=bool)
    for part in range(HASH_PARTS):
        rows = np.flatnonzero(part_of == part)
        _, places = np.unique(pair_hashes[rows], return_index=True)
        first[rows[places]] = True
    return first


def _smallest(hashes: np.ndarray, keep: np.ndarray, count: int) -> np.ndarray:
    """Return the kept pairs with the smallest hashes; ties go to the first."""
    rows = np.zeros(0, dtype=np.int64)
    values = np.zeros(0, dtype=np.uint64)
    for chunk in _chunks(len(hashes)):
        more = np.flatnonzero(keep[chunk]) + chunk.start
        rows = np.concatenate([rows, more])
        values = np.concatenate([values, _mixed(hashes[more])])
        best = np.sort(np.argsort(values, kind="stable")[:count])
        rows, values = rows[best], values[best]
    return rows


def _set_aside(
    folder: Path,
    hashes: np.ndarray,
    keep: np.ndarray,
    is_own: np.ndarray | None,
    report: Report,
    num_pairs: int,
    written: dict[str, Any],
) -> int:
    """Set pairs aside for validation by their hashes, with all that share a sentence with them.

    General text, where `is_own` marks all other, is not validated on.
    """
    eligible = keep if is_own is None else keep & is_own
    num_kept = int(eligible.sum())
    num_pairs = min(num_pairs, num_kept // 10)
    if not num_pairs:
        raise DataError(
            f"{num_kept} pairs are too few to set any aside; give --valid-source and "
            "--valid-target, or at least 10 pairs"
        )
    chosen = _smallest(hashes, eligible, num_pairs)
    removed = 0
    for chunk in _chunks(len(hashes)):
        shares = np.isin(hashes[chunk, 0], hashes[chosen, 0])
        shares |= np.isin(hashes[chunk, 1], hashes[chosen, 1])
        removed += int((shares & keep[chunk]).sum())
        keep[chunk] &= ~shares
    report.drop("set aside for validation", num_pairs)
    report.drop("sharing a sentence with validation", removed - num_pairs)
    for side in SIDES:
        ends = mapped(folder / f"train.{side}.text-ends")
        text = mapped(folder / f"train.{side}.text", np.uint8)
        pieces = [slice_of(text, ends, int(line)) for line in chosen]
        with written_checked(folder / f"valid.{side}.text", written) as write:
            write(np.concatenate(pieces).tobytes())
        with written_checked(folder / f"valid.{side}.text-ends", written) as write:
            write(np.cumsum([len(each) for each in pieces]).tobytes())
    if not (keep if is_own is None else keep & is_own).any():
        raise DataError("every pair shares a sentence with the validation set; give other files")
    return num_pairs


def _named(files: CorpusFiles) -> str:
    return ", ".join(str(path) for path in files.all)
