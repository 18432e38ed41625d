"""The words of a prepared corpus, numbered: which words each sentence has, in four bytes a word."""

from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
from jaxtyping import Int, UInt32

from dragoman.data.draws import END_WORD
from dragoman.data.encoding import ENCODED_LINES
from dragoman.data.mapped import SIDES, mapped, read_facts, write_facts

COUNTED_WORDS = 1 << 22
_UNKNOWN = -1


@dataclass(frozen=True, kw_only=True)
class SideWords:
    """The training text of one side as words between spaces.

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


def store_words(folder: Path) -> tuple[SideWords, SideWords]:
    """Give numbers to the words of a store's training text, or find that it was done before.

    Parameters
    ----------
    folder : Path
        A prepared store.

    Returns
    -------
    tuple[SideWords, SideWords]
        Source and target.

    Notes
    -----
    On the disk this takes four bytes a word and twelve a sentence and side, a little less than
    the token ids; in memory, while it is done, the different words of a side.
    """
    key = read_facts(folder / "text.json").get("key")
    if read_facts(folder / "words.json").get("key") != key:
        (folder / "words.json").unlink(missing_ok=True)
        for side in SIDES:
            _number_words(folder, side)
        write_facts(folder / "words.json", {"key": key})
    source, target = (
        SideWords(
            words=mapped(folder / f"train.{side}.words", np.uint32),
            ends=mapped(folder / f"train.{side}.words-ends"),
            texts=mapped(folder / f"train.{side}.word-list", np.uint8),
            text_ends=mapped(folder / f"train.{side}.word-list-ends"),
            counts=mapped(folder / f"train.{side}.word-counts"),
        )
        for side in SIDES
    )
    return source, target


def _number_words(folder: Path, side: str) -> None:
    """Write the words of one side's text, a block of lines at a time."""
    text = mapped(folder / f"train.{side}.text", np.uint8)
    text_ends = mapped(folder / f"train.{side}.text-ends")
    numbers = {"\n": END_WORD}
    paths = [folder / f"train.{side}.{name}" for name in ("words", "words-ends")]
    for path in paths:
        path.unlink(missing_ok=True)  # another run may still map the old ones
    total = 0
    with paths[0].open("wb") as words_file, paths[1].open("wb") as ends_file:
        for first in range(0, len(text_ends), ENCODED_LINES):
            words = _split(text, text_ends, first)
            found = np.fromiter(map(numbers.get, words, repeat(_UNKNOWN)), np.int64, len(words))
            for place in np.flatnonzero(found == _UNKNOWN).tolist():
                found[place] = numbers.setdefault(words[place], len(numbers))
            words_file.write(found.astype(np.uint32).tobytes())
            ends_file.write((total + 1 + np.flatnonzero(found == END_WORD)).tobytes())
            total += len(found)
    encoded = [b"", *(word.encode() for word in list(numbers)[1:])]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    counts = np.zeros(len(encoded), np.int64)
    words_of_all = mapped(paths[0], np.uint32)
    for first in range(0, total, COUNTED_WORDS):
        chunk = words_of_all[first : first + COUNTED_WORDS]
        counts += np.bincount(chunk, minlength=len(encoded))
    for name, contents in (
        ("word-list", b"".join(encoded)),
        ("word-list-ends", np.cumsum(lengths).tobytes()),
        ("word-counts", counts.tobytes()),
    ):
        path = folder / f"train.{side}.{name}"
        path.unlink(missing_ok=True)
        path.write_bytes(contents)


def _split(text: np.ndarray, ends: Int[np.ndarray, "lines"], first: int) -> list[str]:
    """Split a block of lines into words, with a line break after each line."""
    of_block = ends[first : first + ENCODED_LINES].tolist()
    start = int(ends[first - 1]) if first else 0
    contents = text[start : of_block[-1]].tobytes()
    lines, begin = [], 0
    for end in of_block:
        lines.append(contents[begin : end - start].decode())
        begin = end - start
    return " \n ".join((*lines, ""))[:-1].split(" ")
