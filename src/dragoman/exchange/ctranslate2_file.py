"""Read CTranslate2's ``model.bin``: attributes and weights by name.

Little-endian. A string is its length with the final zero (16 bits) and its bytes. The file is:
version (32 bits), from version 2 on the name of the specification (string) and its revision
(32 bits), the number of variables (32 bits), these, and from version 3 on the number of aliases
(32 bits) and as many pairs of strings, alias and name. A variable is its name, its rank (8 bits),
its dimensions (32 bits each), its type and size in bytes (8 and 32 bits; before version 4 the size
of a number and how many there are), and its numbers.
"""

import io
import math
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from dragoman.errors import FolderError
from dragoman.files import open_ordinary

NEWEST_VERSION = 6
OLDEST_VERSION = 2
MOST_VARIABLES = 50_000
LONGEST_NAME = 1000
MOST_DIMENSIONS = 4
# In the order of their numbers; NumPy knows no bfloat16.
_TYPES = (("float32", "<f4"), ("int8", "i1"), ("int16", "<i2"), ("int32", "<i4"),
          ("float16", "<f2"), ("bfloat16", "<u2"))  # fmt: skip
_TYPES_BY_SIZE = {1: 1, 2: 2, 4: 0}
_DAMAGE = (struct.error, ValueError, IndexError, KeyError, EOFError)


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """The contents of a ``model.bin``.

    Parameters
    ----------
    version : int
        Of the file's layout.
    specification : str
        What kind of model it is, such as “TransformerSpec”.
    revision : int
        Of that specification.
    variables : dict[str, np.ndarray]
        Weights and attributes; aliases are the same array. What is in half precision is widened.
    """

    version: int
    specification: str
    revision: int
    variables: dict[str, np.ndarray]


def read_model_file(path: Path) -> ModelFile:
    """Read a ``model.bin``, within the limits of its size."""
    try:
        with open_ordinary(path) as raw, io.BufferedReader(raw) as file:  # type: ignore[type-var]
            return _read(file, path, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror}); get it again") from None
    except _DAMAGE:
        raise FolderError(
            f"{path}: is no model.bin of CTranslate2, or damaged; get it again"
        ) from None


def _read(file: BinaryIO, path: Path, size: int) -> ModelFile:
    version = _number(file, "<I")
    if not OLDEST_VERSION <= version <= NEWEST_VERSION:
        raise FolderError(
            f"{path}: is version {version} of CTranslate2's files, but {OLDEST_VERSION} to "
            f"{NEWEST_VERSION} can be read; convert the model again"
        )
    specification, revision = _string(file), _number(file, "<I")
    variables: dict[str, np.ndarray] = {}
    for _ in range(_count(file)):
        name = _string(file)
        if name in variables:
            raise ValueError("a variable twice")
        variables[name] = _variable(file, version, size)
    if version >= 3:
        for _ in range(_count(file)):
            alias, name = _string(file), _string(file)
            if alias in variables:
                raise ValueError("a variable twice")
            variables[alias] = variables[name]
            if f"{name}_scale" in variables:
                variables[f"{alias}_scale"] = variables[f"{name}_scale"]
    return ModelFile(
        version=version, specification=specification, revision=revision, variables=variables
    )


def _variable(file: BinaryIO, version: int, size: int) -> np.ndarray:
    """Read one variable, checking its size before reading it."""
    rank = _number(file, "<B")
    if rank > MOST_DIMENSIONS:
        raise ValueError("too many dimensions")
    shape = struct.unpack(f"<{rank}I", _take(file, 4 * rank))
    number, num_bytes = _number(file, "<B"), _number(file, "<I")
    if version < 4:
        number, num_bytes = _TYPES_BY_SIZE[number], num_bytes * number
    kind, code = _TYPES[number]
    dtype = np.dtype(code)
    if math.prod(shape) * dtype.itemsize != num_bytes or num_bytes > size - file.tell():
        raise ValueError("a shape that does not fit the file")
    found = np.frombuffer(_take(file, num_bytes), dtype).reshape(shape)
    if kind == "bfloat16":
        return (found.astype(np.uint32) << 16).view(np.float32)
    return found.astype(np.float32) if kind == "float16" else found


def _count(file: BinaryIO) -> int:
    count = _number(file, "<I")
    if count > MOST_VARIABLES:
        raise ValueError("too many variables")
    return count


def _string(file: BinaryIO) -> str:
    length = _number(file, "<H")
    if not 1 <= length <= LONGEST_NAME:
        raise ValueError("a name that is too long")
    return _take(file, length)[:-1].decode()


def _number(file: BinaryIO, kind: str) -> int:
    (found,) = struct.unpack(kind, _take(file, struct.calcsize(kind)))
    return int(found)


def _take(file: BinaryIO, count: int) -> bytes:
    found = file.read(count)
    if len(found) < count:
        raise EOFError
    return found
