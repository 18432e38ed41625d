"""From a corpus to clean text on disk: the first half of a store."""

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from dragoman.data.cleaning import CleanBlock, clean_blocks
from dragoman.data.corpus import CorpusFiles, Report
from dragoman.data.mapped import SIDES, mapped, read_facts, slice_of, write_facts
from dragoman.data.options import CorpusOptions
from dragoman.errors import DataError, FolderError, OptionError

FORMAT = 2
HASH_PARTS = 16
CHUNK_PAIRS = 1 << 18


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

    def lines(self, sides: Iterable[str] = SIDES, max_pairs: int | None = None) -> Iterator[str]:
        """Read the training text, to learn subwords from.

        Parameters
        ----------
        sides : Iterable[str]
            Of which sides.
        max_pairs : int | None
            Read a random sample of this many pairs, always the same, if there are more.

        Yields
        ------
        str
            A sentence; those of the two sides alternate.
        """
        index = mapped(self.folder / "train.clean-index")
        if max_pairs is not None and len(index) > max_pairs:
            chosen = np.random.default_rng(0).choice(len(index), max_pairs, replace=False)
            index = index[np.sort(chosen)]
        maps = []
        for side in sides:
            text = mapped(self.folder / f"train.{side}.text", np.uint8)
            maps.append((memoryview(text.data), mapped(self.folder / f"train.{side}.text-ends")))
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
    num_workers : int | None
        Processes that clean a large corpus; None: as many as there are cores.

    Returns
    -------
    CleanText
        The text, ready for `store_ids`.
    """
    key = _find_key(files, valid_files, options)
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
    blocks = clean_blocks(files, options, num_workers=num_workers)
    group_lines = _write_text(folder, "train", blocks, report)
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
        _write_text(folder, "valid", blocks, valid_report)
        if not valid_report.kept:
            raise DataError(f"the validation corpus is empty ({_named(valid_files)})")
        np.arange(valid_report.kept).tofile(folder / "valid.clean-index")
    else:
        _set_aside(folder, hashes, keep, report, options.valid_pairs)
    _write_places(folder / "train.clean-index", keep)
    num_pairs = int(keep.sum())
    # Pairs stay in the order of the files, so this is all there is to say of whose they are.
    group_ends = np.cumsum([group_lines.get(group, 0) for group in range(len(files.groups))])
    facts = {"key": key, "num_pairs": num_pairs, "report": asdict(report)}
    facts |= {"valid_report": asdict(valid_report), "group_ends": group_ends.tolist()}
    write_facts(folder / "text.json", facts)
    return CleanText(
        folder=folder, key=key, report=report, valid_report=valid_report, num_pairs=num_pairs
    )


def _find_key(files: CorpusFiles, valid_files: CorpusFiles | None, options: CorpusOptions) -> str:
    """Hash what a store is made from; refuse a mix of other corpora."""
    if options.mix is not None and len(options.mix) != len(files.groups):
        raise OptionError(
            f"mix: {len(options.mix)} weights for {len(files.groups)} corpora; give one for each "
            "source file with its target file, then one for each TSV file"
        )
    # The mix is drawn afresh in every pass, so stores need not differ in it.
    parts = [str(FORMAT), repr(replace(options, mix=None)), files.content_hash()]
    parts.append(valid_files.content_hash() if valid_files else "set aside")
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


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


def _write_text(
    folder: Path, name: str, blocks: Iterable[CleanBlock], report: Report
) -> dict[int, int]:
    """Write clean text and its hashes; return how many pairs are of which corpus."""
    group_lines: dict[int, int] = {}
    totals = [0, 0]
    texts = [(folder / f"{name}.{side}.text").open("wb") for side in SIDES]
    ends = [(folder / f"{name}.{side}.text-ends").open("wb") for side in SIDES]
    with (
        texts[0], texts[1], ends[0], ends[1], (folder / f"{name}.hashes").open("wb") as hash_file
    ):  # fmt: skip
        for block in blocks:
            for side in range(len(SIDES)):
                texts[side].write(block.texts[side])
                ends[side].write((totals[side] + np.cumsum(block.lengths[side])).tobytes())
                totals[side] += len(block.texts[side])
            hash_file.write(block.hashes.tobytes())
            num_before = group_lines.get(block.group, 0)
            group_lines[block.group] = num_before + len(block.hashes)
            report.add(block.report)
    return group_lines


def _sentences(text: memoryview, ends: np.ndarray, lines: np.ndarray) -> list[str]:
    """Decode some lines."""
    starts = np.where(lines > 0, ends[lines - 1], 0)
    bounds = zip(starts.tolist(), ends[lines].tolist(), strict=True)
    return [str(text[start:end], "utf-8") for start, end in bounds]


def _chunks(num_pairs: int) -> Iterator[slice]:
    """Cut the pairs into chunks, so that what is computed of them is never whole in memory."""
    for first in range(0, num_pairs, CHUNK_PAIRS):
        yield slice(first, min(first + CHUNK_PAIRS, num_pairs))


def _write_places(path: Path, keep: np.ndarray) -> None:
    """Write the numbers of the pairs that are kept."""
    with path.open("wb") as file:
        for chunk in _chunks(len(keep)):
            file.write((np.flatnonzero(keep[chunk]) + chunk.start).tobytes())


def _mixed(hashes: np.ndarray) -> np.ndarray:
    """One hash for each pair, from those of its two sides."""
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
    """Find the kept pairs with the smallest hashes, of equal ones the first."""
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
    folder: Path, hashes: np.ndarray, keep: np.ndarray, report: Report, num_pairs: int
) -> None:
    """Move the pairs with the smallest hashes, and all that share a sentence with them, out."""
    num_kept = int(keep.sum())
    num_pairs = min(num_pairs, num_kept // 10)
    if not num_pairs:
        raise DataError(
            f"{num_kept} pairs are too few to set any aside; give --valid-source and "
            "--valid-target, or at least 10 pairs"
        )
    chosen = _smallest(hashes, keep, num_pairs)
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
        np.concatenate(pieces).tofile(folder / f"valid.{side}.text")
        np.cumsum([len(each) for each in pieces]).tofile(folder / f"valid.{side}.text-ends")
    np.arange(num_pairs).tofile(folder / "valid.clean-index")
    if not keep.any():
        raise DataError("every pair shares a sentence with the validation set; give other files")


def _named(files: CorpusFiles) -> str:
    return ", ".join(str(path) for path in files.all)
