"""Reading Marian's files: weights in ``.npz``, and the little YAML that goes with them."""

import json
import lzma
import re
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np

from dragoman.errors import FolderError

CONFIG = "special:model.yml"
# What numpy and zipfile raise for a damaged file.
_DAMAGE = (
    ValueError, EOFError, KeyError, AttributeError, TypeError, RuntimeError, MemoryError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error,
)  # fmt: skip
_LINE = re.compile(r"([A-Za-z0-9_.-]+):\s*(.*)")
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPED = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r",
    "e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip


def read_npz(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read a model of Marian.

    Parameters
    ----------
    path : Path
        Its file.

    Returns
    -------
    tuple[dict[str, np.ndarray], dict[str, str]]
        The weights, and the options it was made with, as they are written.

    Notes
    -----
    Nothing in the file can run code: pickled arrays are refused.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except OSError as error:
        said = error.strerror or "it is no such file"
        raise FolderError(f"{path}: cannot be read ({said}); get it again") from None
    except _DAMAGE:
        message = f"{path}: is no .npz file of plain numbers, or damaged; get it again"
        raise FolderError(message) from None
    if CONFIG not in arrays:
        raise FolderError(f"{path}: has no {CONFIG}, so it is no model of Marian")
    text = arrays.pop(CONFIG).tobytes().rstrip(b"\0").decode(errors="replace")
    for name, each in arrays.items():
        if each.dtype.kind != "f":
            raise FolderError(
                f"{path}: “{name}” is stored as {each.dtype}; give the model before it was packed "
                "into integers"
            )
    try:
        return arrays, _read_options(text)
    except ValueError:
        raise FolderError(f"{path}: has a damaged {CONFIG}; get it again") from None


def read_yaml_vocabulary(path: Path) -> dict[str, int]:
    """Read a vocabulary of Marian.

    Parameters
    ----------
    path : Path
        A file with “subword: id” on each line, or the same as JSON.

    Returns
    -------
    dict[str, int]
        The id of each subword.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror}); get it again") from None
    except ValueError:
        raise FolderError(f"{path}: is not UTF-8; get it again") from None
    if text.lstrip().startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise FolderError(f"{path}: is not JSON; get it again") from None
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


def _read_options(text: str) -> dict[str, str]:
    """Read the top level of a YAML file; what is indented is joined as it is written."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        match = _LINE.fullmatch(line.rstrip())
        if match:
            name = match[1]
            found[name] = _unquote(match[2])
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _unquote(text: str) -> str:
    """Take YAML's quotation marks away."""
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
