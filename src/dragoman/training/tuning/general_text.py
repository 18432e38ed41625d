"""Sample general text for fine-tuning: to mix in, and to measure what is forgotten."""

import hashlib
import heapq
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.data.corpus import CorpusFiles, Report, clean_pairs, read_pairs
from dragoman.data.options import CorpusOptions
from dragoman.data.store.store import PairStore, open_store
from dragoman.errors import DataError, FolderError
from dragoman.files import write_file

TRAIN_FILE, VALID_FILE = "train.tsv", "valid.tsv"
MOST_PAIRS, MOST_VALID = 50_000, 500
LARGEST_VALID_SHARE = 5
"""One pair in so many is measured with at most."""
LEAST_PAIRS = 2 * LARGEST_VALID_SHARE

Pair = tuple[str, str]


class GeneralText(NamedTuple):
    """Pairs to train on and pairs to measure with, which share no sentence."""

    train: list[Pair]
    valid: list[Pair]


def sample_files(files: CorpusFiles) -> GeneralText:
    """Sample the pairs of files by their hashes: always the same, whatever their order."""
    report = Report()
    pairs = clean_pairs(read_pairs(files), CorpusOptions().max_length_ratio, report)
    smallest = heapq.nsmallest(MOST_PAIRS + MOST_VALID, _hashed(pairs))
    unique = list(dict.fromkeys(pair for _, pair in smallest))
    if len(unique) < LEAST_PAIRS:
        named = ", ".join(map(str, files.all))
        raise DataError(
            f"{named}: {report.in_words()}; general text needs {LEAST_PAIRS} pairs at least, "
            "better some thousands"
        )
    num_valid = min(MOST_VALID, len(unique) // LARGEST_VALID_SHARE)
    return split_pairs(unique[num_valid:], unique[:num_valid])


def sample_store(folder: Path) -> GeneralText:
    """Sample the pairs of a prepared corpus, and those it was validated on."""
    store = open_store(folder)
    return split_pairs(_sample(store.train, MOST_PAIRS), _sample(store.valid, MOST_VALID))


def split_pairs(train: list[Pair], valid: list[Pair]) -> GeneralText:
    """Drop training pairs that share a sentence with the held-out pairs."""
    known = [{pair[side] for pair in valid} for side in (0, 1)]
    kept = [pair for pair in train if pair[0] not in known[0] and pair[1] not in known[1]]
    return GeneralText(kept, valid)


def write_general(folder: Path, general: GeneralText) -> None:
    """Write both parts into a folder."""
    for name, pairs in ((TRAIN_FILE, general.train), (VALID_FILE, general.valid)):
        write_file(folder / name, "".join(f"{source}\t{target}\n" for source, target in pairs))


def read_general(folder: Path) -> list[Pair]:
    """Read the pairs to measure with; none if the folder has none."""
    path = folder / VALID_FILE
    return list(read_pairs(CorpusFiles(tsv=(path,)))) if path.exists() else []


def collect_general(
    files: CorpusFiles, remembered: Path | None, folder: Path, say: Callable[[str], None]
) -> bool:
    """Sample general text from files, or from the store that the model was trained on, if any.

    Returns
    -------
    bool
        Whether there is any; then `folder` has it.
    """
    if files.all:
        write_general(folder, sample_files(files))
        return True
    if remembered is None:
        return False
    try:
        general = sample_store(remembered)
    except (FolderError, OSError) as error:
        say(f"tuning: the text that the model was trained on cannot be had ({error})")
        return False
    if not general.train or not general.valid:
        return False
    write_general(folder, general)
    return True


def _hashed(pairs: Iterable[Pair]) -> Iterable[tuple[bytes, Pair]]:
    for pair in pairs:
        yield hashlib.blake2b("\t".join(pair).encode(), digest_size=8).digest(), pair


def _sample(pairs: PairStore, most: int) -> list[Pair]:
    """Draw some pairs, always the same ones."""
    rows = np.arange(len(pairs))
    if len(pairs) > most:
        rows = np.sort(np.random.default_rng(0).choice(len(pairs), most, replace=False))
    return [pairs.text(int(row)) for row in rows]
