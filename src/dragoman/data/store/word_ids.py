"""Word ids of a prepared corpus: the words of each sentence as 32-bit integers."""

from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.store.checked_files import CheckedArray, Known, check_sizes, written_checked
from dragoman.data.store.encoding import ENCODED_LINES
from dragoman.data.store.mapped import SIDES, mapped, read_facts, write_facts
from dragoman.files import locked
from dragoman.shapes import Int, UInt32

END_WORD = 0
"""Id of the sentence end, stored like a word."""

COUNTED_WORDS = 1 << 22
_UNKNOWN = -1


@dataclass(frozen=True, kw_only=True)
class WordIds:
    """The training text of one side as ids of space-separated words.

    Parameters
    ----------
    words : UInt32[np.ndarray, "places"]
        The words of all lines, each line ended by `END_WORD`.
    ends : Int[np.ndarray, "lines"]
        Where each line ends.
    texts : np.ndarray
        The bytes of the different words.
    text_ends : Int[np.ndarray, "different"]
        Where each of them ends.
    counts : Int[np.ndarray, "different"]
        How often each occurs.
    """

    words: UInt32[np.ndarray, "places"]
    ends: Int[np.ndarray, "lines"]
    texts: np.ndarray
    text_ends: Int[np.ndarray, "different"]
    counts: Int[np.ndarray, "different"]


def store_words(folder: Path) -> tuple[WordIds, WordIds]:
    """Write the word ids of a store's training text, or reuse those written before.

    Notes
    -----
    On disk this takes four bytes a word and twelve a sentence and side, a little less than
    the token ids; in memory, meanwhile, the distinct words of a side.
    """
    text = read_facts(folder / "text.json")
    if read_facts(folder / "words.json").get("key") != text.get("key"):
        with locked(folder, wait=lambda _: None):  # another run may write them
            _store_words(folder, text)
    files = read_facts(folder / "words.json").get("files", {})
    check_sizes(folder, files)

    def numbers(name: str, kind: type = np.int64) -> np.ndarray:
        return CheckedArray(folder / name, files, kind)[:]

    source, target = (
        WordIds(
            words=numbers(f"train.{side}.words", np.uint32),
            ends=numbers(f"train.{side}.words-ends"),
            texts=numbers(f"train.{side}.word-list", np.uint8),
            text_ends=numbers(f"train.{side}.word-list-ends"),
            counts=numbers(f"train.{side}.word-counts"),
        )
        for side in SIDES
    )
    return source, target


def _store_words(folder: Path, text: dict[str, Any]) -> None:
    """Write the word ids, unless another process has written them meanwhile."""
    if read_facts(folder / "words.json").get("key") == text.get("key"):
        return
    (folder / "words.json").unlink(missing_ok=True)
    written: dict[str, Any] = {}
    for side in SIDES:
        _number_words(folder, side, text.get("files", {}), written)
    write_facts(folder / "words.json", {"key": text.get("key"), "files": written})


def _number_words(folder: Path, side: str, known: Known, written: dict[str, Any]) -> None:
    """Write the word ids of one side, a block of lines at a time."""
    text = CheckedArray(folder / f"train.{side}.text", known, np.uint8)
    text_ends = CheckedArray(folder / f"train.{side}.text-ends", known)[:]
    numbers = {"\n": END_WORD}
    total = 0
    with (
        written_checked(folder / f"train.{side}.words", written) as write_words,
        written_checked(folder / f"train.{side}.words-ends", written) as write_ends,
    ):
        for first in range(0, len(text_ends), ENCODED_LINES):
            words = _split(text, text_ends, first)
            found = np.fromiter(map(numbers.get, words, repeat(_UNKNOWN)), np.int64, len(words))
            for place in np.flatnonzero(found == _UNKNOWN).tolist():
                found[place] = numbers.setdefault(words[place], len(numbers))
            write_words(found.astype(np.uint32).tobytes())
            write_ends((total + 1 + np.flatnonzero(found == END_WORD)).tobytes())
            total += len(found)
    encoded = [b"", *(word.encode() for word in list(numbers)[1:])]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    counts = np.zeros(len(encoded), np.int64)
    words_of_all = mapped(folder / f"train.{side}.words", np.uint32)
    for first in range(0, total, COUNTED_WORDS):
        chunk = words_of_all[first : first + COUNTED_WORDS]
        counts += np.bincount(chunk, minlength=len(encoded))
    for name, contents in (
        ("word-list", b"".join(encoded)),
        ("word-list-ends", np.cumsum(lengths).tobytes()),
        ("word-counts", counts.tobytes()),
    ):
        with written_checked(folder / f"train.{side}.{name}", written) as write:
            write(contents)


def _split(text: CheckedArray, ends: Int[np.ndarray, "lines"], first: int) -> list[str]:
    """Split a block of lines into words, with a line break after each line."""
    of_block = ends[first : first + ENCODED_LINES].tolist()
    start = int(ends[first - 1]) if first else 0
    contents = text[start : of_block[-1]].tobytes()
    lines, begin = [], 0
    for end in of_block:
        lines.append(contents[begin : end - start].decode())
        begin = end - start
    return " \n ".join((*lines, ""))[:-1].split(" ")
