"""Cleaning of blocks of lines, as a job for `dragoman.data.workers`."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.data.corpus import CorpusFiles, RawBlock, Report, clean_pairs, read_blocks
from dragoman.data.options import CorpusOptions
from dragoman.data.workers import Message, Work, map_blocks
from dragoman.shapes import Int, UInt64


class CleanBlock(NamedTuple):
    """The clean pairs of one block.

    Parameters
    ----------
    texts : tuple[bytes, bytes]
        The sentences of each side, one after another.
    lengths : tuple[Int[np.ndarray, "pairs"], Int[np.ndarray, "pairs"]]
        How many bytes are whose.
    hashes : UInt64[np.ndarray, "pairs 2"]
        A hash of each source and of each target.
    group : int
        The corpus the pairs are of, in the order of `CorpusFiles.groups`.
    report : Report
        What was dropped.
    """

    texts: tuple[bytes, bytes]
    lengths: tuple[Int[np.ndarray, "pairs"], Int[np.ndarray, "pairs"]]
    hashes: UInt64[np.ndarray, "pairs 2"]
    group: int
    report: Report


def clean_blocks(
    files: CorpusFiles, options: CorpusOptions, *, num_workers: int | None = None
) -> Iterator[CleanBlock]:
    """Read a corpus and clean it, a block of lines at a time.

    Yields
    ------
    CleanBlock
        The clean pairs, in the order of the files; the same whatever the number of processes.
    """
    setting = [json.dumps(options.max_length_ratio).encode()]
    messages = map(_write_block, read_blocks(files))
    for message in map_blocks(make_cleaner, setting, messages, num_workers=num_workers):
        source, target, source_lengths, target_lengths, hashes, facts = message
        group, read, dropped = json.loads(facts)
        yield CleanBlock(
            (source, target),
            (np.frombuffer(source_lengths, np.int64), np.frombuffer(target_lengths, np.int64)),
            np.frombuffer(hashes, np.uint64).reshape(-1, 2),
            group,
            Report(read=read, dropped=dropped),
        )


def make_cleaner(setting: Message) -> Work:
    """Make the worker function that cleans a block."""
    ratio = json.loads(setting[0])

    def clean(message: Message) -> Message:
        block, report = _read_block(message), Report()
        pairs = list(clean_pairs(block.pairs(), ratio, report))
        sources = [source.encode() for source, _ in pairs]
        targets = [target.encode() for _, target in pairs]
        facts = json.dumps([block.group, report.read, report.dropped]).encode()
        sides = (sources, targets)
        hashes = b"".join(_hash(side) for pair in zip(*sides, strict=True) for side in pair)
        return [*map(b"".join, sides), *map(_write_lengths, sides), hashes, facts]

    return clean


def _hash(sentence: bytes) -> bytes:
    return hashlib.blake2b(sentence, digest_size=8).digest()


def _write_lengths(sentences: Iterable[bytes]) -> bytes:
    return np.fromiter(map(len, sentences), np.int64).tobytes()


def _write_block(block: RawBlock) -> Message:
    facts = json.dumps([block.first_line, block.group]).encode()
    return [facts, *map(os.fsencode, block.paths), *block.columns]


def _read_block(message: Message) -> RawBlock:
    first_line, group = json.loads(message[0])
    num_files = len(message) // 2
    return RawBlock(
        paths=tuple(Path(os.fsdecode(each)) for each in message[1 : 1 + num_files]),
        columns=tuple(message[1 + num_files :]),
        first_line=first_line,
        group=group,
    )
