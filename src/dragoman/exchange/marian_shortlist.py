"""Import short-lists of Marian and Bergamot: tables of likely words in text, and binary ones.

The binary form is little-endian: six 64-bit numbers (a magic number, a checksum, how many frequent
words, how many likely ones, the number of offsets and of words); the offsets in 64 bits; the words
in 32. The likely target words of source word i are those from its offset to the next.
"""

import gzip
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dragoman.decoding.search.shortlist import NUM_LIKELY, ShortList
from dragoman.errors import FolderError
from dragoman.files import open_ordinary
from dragoman.shapes import Int
from dragoman.text.piece_order import UNKNOWN
from dragoman.text.vocabulary import Vocabularies

MAGIC = 0xF11A48D5013417F5
HEADER_NUMBERS = 6
GOLDEN = 0x9E3779B9
MOST_FILE_BYTES = 512 << 20
MOST_LIKELY = 2_000
NUM_FREQUENT = 100
"""What Marian always allows where a table of text does not say it."""
NO_WORD = "NULL"
"""What aligners call the word that is not there."""

Likely = tuple[list[np.ndarray], int]
"""The likely target words of each source word, and how many frequent ones are always allowed."""


def find_short_list(folder: Path) -> Path | None:
    """Find the one short-list beside a model, the binary one first."""
    for pattern in ("lex*.s2t.bin", "lex*.s2t.gz", "lex*.s2t"):
        found = sorted(folder.glob(pattern))
        if len(found) > 1:
            raise FolderError(
                f"{folder}: has {len(found)} short-lists {pattern}; name one with --short-list"
            )
        if found:
            return found[0]
    return None


def read_short_list(
    path: Path,
    names: Sequence[Sequence[str]],
    orders: Sequence[Sequence[int]],
    vocabularies: Vocabularies,
) -> ShortList:
    """Read a short-list into ours.

    Parameters
    ----------
    path : Path
        The binary short-list, or the table in text, which may be packed by gzip.
    names : Sequence[Sequence[str]]
        Their words by their ids, on the source's side and the target's; the last is our padding.
    orders : Sequence[Sequence[int]]
        For each of our ids theirs.
    vocabularies : Vocabularies
        Ours.

    Notes
    -----
    As in Marian the first words of the target's vocabulary are always allowed, and with one
    vocabulary for both sides the words of the source themselves.
    """
    contents = _read(path)
    try:
        if contents[:8] == MAGIC.to_bytes(8, "little"):
            likely, num_frequent = _read_binary(contents, [len(side) - 1 for side in names])
        else:
            likely, num_frequent = _read_text(contents, names), NUM_FREQUENT
    except ValueError as error:
        raise FolderError(
            f"{path}: is no short-list of this model, or damaged ({error}); get it again"
        ) from None
    own = np.empty(len(orders[1]), np.int64)
    own[list(orders[1])] = np.arange(len(orders[1]))
    return _build(likely, own[:num_frequent], own, orders[0], vocabularies)


def _build(
    likely: Sequence[np.ndarray],
    frequent: Int[np.ndarray, "words"],
    own: Int[np.ndarray, "target_vocabulary"],
    source_order: Sequence[int],
    vocabularies: Vocabularies,
) -> ShortList:
    """Lay out a short-list by our ids."""
    target = vocabularies.target
    longest = max(map(len, likely), default=0) + vocabularies.is_joint
    table = np.full((len(source_order), longest), -1, np.int32)
    for row, theirs in enumerate(source_order):
        if theirs < len(likely):  # not the padding
            table[row, : len(likely[theirs])] = own[likely[theirs]]
            if vocabularies.is_joint:
                table[row, -1] = row
    never = (vocabularies.pad_id, target.unk_id)
    table[np.isin(table, never)] = -1
    always = np.union1d(frequent, [target.eos_id])
    return ShortList(table, always[~np.isin(always, never)])


def _read(path: Path) -> bytes:
    """Read a file, unpacked if it is packed, up to a size."""
    try:
        with open_ordinary(path) as file:
            contents = file.read(MOST_FILE_BYTES + 1)
        if contents[:2] == b"\x1f\x8b":
            unpacking = zlib.decompressobj(16 + zlib.MAX_WBITS)
            contents = unpacking.decompress(contents, MOST_FILE_BYTES + 1)
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (zlib.error, gzip.BadGzipFile):
        raise FolderError(f"{path}: is not packed by gzip as it seems; get it again") from None
    if len(contents) > MOST_FILE_BYTES:
        raise FolderError(f"{path}: has over {MOST_FILE_BYTES:,} bytes, more than belong there")
    return contents


def _read_binary(contents: bytes, sizes: Sequence[int]) -> Likely:
    """Read a binary short-list, checking every number against the file and the vocabularies."""
    if len(contents) < 8 * HEADER_NUMBERS:
        raise ValueError("cut short")
    header = np.frombuffer(contents, "<u8", HEADER_NUMBERS).tolist()
    _, checksum, num_frequent, num_likely, num_offsets, num_words = header
    if len(contents) != 8 * (HEADER_NUMBERS + num_offsets) + 4 * num_words:
        raise ValueError(f"{num_offsets:,} offsets and {num_words:,} words announced")
    if num_offsets - 1 != sizes[0] or num_frequent > sizes[1] or num_likely > MOST_LIKELY:
        raise ValueError(
            f"{num_offsets - 1:,} source words, {num_frequent:,} frequent and {num_likely:,} "
            f"likely ones, where the vocabularies have {sizes[0]:,} and {sizes[1]:,}"
        )
    offsets = np.frombuffer(contents, "<u8", num_offsets, 8 * HEADER_NUMBERS)
    words = np.frombuffer(contents, "<u4", num_words, 8 * (HEADER_NUMBERS + num_offsets))
    if offsets[0] != 0 or offsets[-1] != num_words or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("its offsets do not rise")
    if words.size and words.max() >= sizes[1]:
        raise ValueError(f"the word {words.max()}")
    if np.diff(offsets.astype(np.int64)).max(initial=0) > MOST_LIKELY:
        raise ValueError("a word with thousands of likely ones")
    if compute_checksum(contents[16:]) != checksum:
        raise ValueError("its checksum is another")
    return np.split(words.astype(np.int64), offsets[1:-1].astype(np.int64)), num_frequent


def compute_checksum(contents: bytes) -> int:
    """Compute the checksum of what follows it: each 64-bit number mixed into what was before."""
    seed = 0
    for number in np.frombuffer(contents, "<u8", len(contents) // 8).tolist():
        seed ^= (number + GOLDEN + (seed << 6) + (seed >> 2)) & (1 << 64) - 1
    return seed


def _read_text(contents: bytes, names: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """Read lines of target word, source word and probability; keep the likeliest."""
    ids = [{name: i for i, name in enumerate(side[:-1])} for side in names]
    found: list[dict[int, float]] = [{} for _ in ids[0]]
    for number, line in enumerate(contents.decode().split("\n"), start=1):
        parts = line.split(" ")
        if not line.strip():
            continue
        if len(parts) != 3:
            raise ValueError(f"line {number}: is not “target source probability”")
        if NO_WORD not in parts:
            # As in Marian, words that the vocabularies do not have are all the unknown one.
            target, source = (
                side.get(word, side[UNKNOWN])
                for side, word in zip(reversed(ids), parts[:2], strict=True)
            )
            found[source][target] = float(parts[2])
    return [_list_likeliest(each) for each in found]


def _list_likeliest(probabilities: Mapping[int, float]) -> Int[np.ndarray, "words"]:
    """List the likeliest words, of equal ones the first."""
    ordered = sorted(probabilities, key=lambda word: (-probabilities[word], word))
    return np.array(ordered[:NUM_LIKELY], np.int64)
