"""Read Marian's files: weights in ``.npz``, and the YAML that comes with them."""

import io
import os
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from dragoman.errors import FolderError
from dragoman.exchange.archives import PACKING, open_zip
from dragoman.exchange.foreign_files import (
    MOST_SETTINGS_BYTES,
    MOST_VOCABULARY_BYTES,
    parse_object,
)
from dragoman.files import open_ordinary, read_bounded

CONFIG = "special:model.yml"
MOST_ARRAYS = 10_000
MOST_INFLATION, SLACK = 4, 128 << 20
"""How many times larger arrays may be than their archive, and how many bytes more."""
# What numpy and zipfile raise for a damaged file.
_DAMAGE = (
    ValueError, EOFError, KeyError, AttributeError, TypeError, RuntimeError, MemoryError,
    zipfile.BadZipFile, zlib.error, struct.error,
)  # fmt: skip
# Why not PyYAML: it reads YAML 1.1, where U+0085, U+2028 and U+2029 end a line, and refuses control
# characters; Marian's own library writes subwords with them as they are. It takes six times as long
# (0.33 s for 60,000 entries), lets entries stand twice, and would be one more dependency. What both
# read they read alike, as tests show.
_LINE = re.compile(r"([A-Za-z0-9_.-]+):\s*(.*)")
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPED = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip


def read_npz(path: Path) -> tuple[dict[str, np.ndarray], str]:
    """Read the weights of a Marian model, and its options in YAML.

    Notes
    -----
    Nothing in the file can run code: pickled arrays are refused.
    """
    try:
        with open_ordinary(path) as file:
            arrays = dict(_read_arrays(file))
    except OSError as error:
        why = error.strerror or "it is no such file"
        raise FolderError(f"{path}: cannot be read ({why}); get it again") from None
    except _DAMAGE:
        message = f"{path}: is no .npz file of plain numbers, or damaged; get it again"
        raise FolderError(message) from None
    settings = decode_settings(arrays.pop(CONFIG).tobytes() if CONFIG in arrays else b"", path)
    for name, each in arrays.items():
        if each.dtype.kind != "f" or each.dtype.itemsize > 8:
            raise FolderError(
                f"{path}: “{name}” is stored as {each.dtype}; give the model before it was packed "
                "into integers"
            )
    return arrays, settings


def decode_settings(contents: bytes, path: Path) -> str:
    """Decode the options of a model, which lie among its weights."""
    if not contents:
        raise FolderError(f"{path}: has no {CONFIG}, so it is no model of Marian")
    if len(contents) > MOST_SETTINGS_BYTES:
        raise FolderError(f"{path}: {CONFIG} has {len(contents):,} bytes, more than belong there")
    return contents.rstrip(b"\0").decode(errors="replace")


def read_settings(text: str, path: Path) -> dict[str, str]:
    """Read the options that a model says.

    Parameters
    ----------
    text : str
        Its “special:model.yml”.
    path : Path
        The model, for error messages.
    """
    try:
        return _read_options(text)
    except ValueError:
        raise FolderError(f"{path}: has a damaged {CONFIG}; get it again") from None


def read_decoder_settings(path: Path) -> dict[str, str]:
    """Read a ``.decoder.yml``."""
    try:
        return _read_options(read_bounded(path, MOST_SETTINGS_BYTES).decode())
    except ValueError:
        raise FolderError(f"{path}: is damaged; get it again") from None


def read_yaml_vocabulary(path: Path) -> dict[str, int]:
    """Read a ``.yml`` vocabulary of Marian."""
    try:
        contents = read_bounded(path, MOST_VOCABULARY_BYTES)
        text = contents.decode()
    except ValueError:
        raise FolderError(f"{path}: is not UTF-8; get it again") from None
    if text.lstrip().startswith("{"):
        return parse_object(contents, path)
    ids: dict[str, int] = {}
    key: str | None = None
    # Only "\n" ends a line: subwords may be other separators.
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        if not line.strip() or line == "---":
            continue
        if line.startswith("? "):
            key = line[2:]
            continue
        name, colon, value = (key, *line.partition(": ")[1:]) if key else line.rpartition(": ")
        try:
            subword, piece_id = _unquote(name), int(value)
        except ValueError:
            colon = ""
        if not colon or not value.strip().isdecimal() or subword in ids:
            raise FolderError(
                f"{path}:{number}: is not “subword: id”, or has a subword twice; get it again"
            )
        ids[subword] = piece_id
        key = None
    return ids


def _read_arrays(file: IO[bytes]) -> Iterator[tuple[str, np.ndarray]]:
    """Read the arrays of a zip archive, without pickles and within a size limit."""
    size = file.seek(0, os.SEEK_END)
    with open_zip(file) as zipped:
        entries = zipped.infolist()
        total = sum(entry.file_size for entry in entries)
        is_plain = all(entry.compress_type in PACKING for entry in entries)
        if len(entries) > MOST_ARRAYS or total > MOST_INFLATION * size + SLACK or not is_plain:
            raise ValueError("not what Marian or NumPy writes")
        for entry in entries:
            yield entry.filename.removesuffix(".npy"), _read_array(zipped.read(entry))


def _read_array(contents: bytes) -> np.ndarray:
    """Read one numeric array, checking its size before allocating it."""
    stream = io.BytesIO(contents)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[np.lib.format.read_magic(stream)]
    shape, is_fortran, dtype = read_header(stream)
    if dtype.hasobject or min(shape, default=0) < 0:
        raise ValueError("not plain numbers")
    flat = np.frombuffer(contents, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if is_fortran else "C")


def _read_options(text: str) -> dict[str, str]:
    """Read the top level of a YAML file; indented lines and items are joined verbatim.

    A line that is none of these is an error, and so is a name that stands twice: what Marian would
    make of it is not to be guessed.
    """
    found: dict[str, list[str]] = {}
    parts: list[str] = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line.rstrip())
        if match and match[1] not in found:
            parts = found[match[1]] = [_unquote(match[2])]
        elif match or line[:1] not in ("", " ", "\t", "-", "#"):
            raise ValueError(f"“{line}” is no option, or stands twice")
        elif line[:1] not in ("", "#") and line != "---":
            parts.append(line.strip())
    return {name: " ".join(filter(None, each)) for name, each in found.items()}


def _unquote(text: str) -> str:
    """Remove YAML quotation marks."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    if len(text) > 1 and text[0] == text[-1] == '"':
        return _ESCAPE.sub(_unescape, text[1:-1])
    return text


def _unescape(match: re.Match[str]) -> str:
    said = match[1]
    if len(said) > 1:
        code = int(said[1:], 16)
        if code > sys.maxunicode:
            raise ValueError(f"{said} is no character")
        return chr(code)
    return _ESCAPED.get(said, said)
