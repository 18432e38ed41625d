"""Read and write Marian's binary models (``.bin``, version 1).

All is little-endian: the version and the number of tensors as 64-bit numbers; of each tensor the
bytes of its name, its type, the length of its shape and the bytes of its data; the names, each
ended by a zero byte; the shapes in 32 bits; how much padding follows, and the padding; the data.

A quantised matrix has one multiplier behind its integers (weight = integer / multiplier), and its
integers lie output by output though its shape says inputs × outputs. Types laid out for a processor
have eight outputs in turn for the width of a register.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.eight_bits import LARGEST_WEIGHT
from dragoman.errors import FolderError
from dragoman.exchange.marian_files import CONFIG, MOST_ARRAYS, decode_settings
from dragoman.files import open_ordinary
from dragoman.shapes import Shaped

VERSION = 1
ALIGNED = 256
"""Of which data begin at multiples."""
MOST_NAME_BYTES, MOST_DIMENSIONS = 1 << 10, 8
ACTIVATION_MULTIPLIER = "_QuantMultA"
"""How names of Bergamot's multipliers of activations end: here activations have their own."""
EMBEDDING = "Wemb"
MULTIPLIER_BYTES = 4
INTERLEAVED = 8
"""Outputs whose integers take turns in a matrix laid out for registers."""

TEXT, FLOAT32 = 0x0101, 0x0404
FLOATS = {0x0402: "<f2", FLOAT32: "<f4", 0x0408: "<f8"}
INTGEMM8, BERGAMOT8 = 0x10001, 0x4101


class Layout(NamedTuple):
    """How a quantised matrix is stored: its type, integers in a register (0: as they are)."""

    kind: str
    register: int = 0
    has_plain_embeddings: bool = False


LAYOUTS = {
    BERGAMOT8: Layout("<i1", has_plain_embeddings=True),
    0x4102: Layout("<i2", has_plain_embeddings=True),
    INTGEMM8: Layout("<i1"), 0x18001: Layout("<i1", 16), 0x11001: Layout("<i1", 32),
    0x12001: Layout("<i1", 64), 0x13001: Layout("<i1", 32),
    0x10002: Layout("<i2"), 0x14002: Layout("<i2", 8), 0x11002: Layout("<i2", 16),
    0x12002: Layout("<i2", 32),
}  # fmt: skip
PACKED = {0x0802: "packed16", 0x1801: "packed8avx2", 0x2801: "packed8avx512"}
"""What Marian packs for FBGEMM, which changes with the processor and its version."""


class BinaryModel(NamedTuple):
    """Weights in float32 by Marian's names, and the multipliers of those stored in eight bits."""

    arrays: dict[str, Shaped[np.ndarray, "..."]]
    settings: str
    multipliers: dict[str, float]


class _Header(NamedTuple):
    """What a file says of one tensor."""

    name: str
    kind: int
    shape: tuple[int, ...]
    start: int
    size: int


class _PackedError(Exception):
    """A matrix is packed for FBGEMM."""


def is_binary(path: Path) -> bool:
    """Say whether a file begins as Marian's binary models do."""
    try:
        with open_ordinary(path) as file:
            return file.read(8) == VERSION.to_bytes(8, "little")
    except OSError:
        return False


def read_binary(path: Path) -> BinaryModel:
    """Read a binary model.

    Notes
    -----
    Every count, length and shape is compared with the size of the file before it is used, and what
    is read is at most that size; matrices of integers take four times as much as floats.
    """
    try:
        with open_ordinary(path) as file:
            contents = file.read()
    except OSError as error:
        why = error.strerror or "it is no such file"
        raise FolderError(f"{path}: cannot be read ({why}); get it again") from None
    settings = b""
    model = BinaryModel({}, "", {})
    try:
        for header in _read_headers(contents):
            if header.name == CONFIG:
                settings = contents[header.start : header.start + header.size]
            elif not header.name.endswith(ACTIVATION_MULTIPLIER):
                _add(model, header, contents)
    except ValueError as error:
        raise FolderError(f"{path}: damaged ({error}); get it again") from None
    except _PackedError as error:
        raise FolderError(
            f"{path}: is {error}, which FBGEMM packs for one processor; give the model before it "
            "was packed, or as intgemm8"
        ) from None
    return model._replace(settings=decode_settings(settings, path))


def _read_headers(contents: bytes) -> list[_Header]:
    """Read all that comes before the data, checking that it all fits into the file."""
    count = _numbers(contents, 8, "<u8", 1)[0]
    if count > MOST_ARRAYS:
        raise ValueError(f"{count:,} tensors")
    table = _numbers(contents, 16, "<u8", 4 * count)
    place = 16 + 32 * count
    names = []
    for length in table[::4]:
        if not 1 < length <= MOST_NAME_BYTES or place + length > len(contents):
            raise ValueError(f"a name of {length:,} bytes")
        raw = contents[place : place + length]
        if raw.find(b"\0") != length - 1:
            raise ValueError("a name that does not end where it should")
        names.append(raw[:-1].decode())
        place += length
    if len(set(names)) < count:
        raise ValueError("a name twice")
    shapes = []
    for length in table[2::4]:
        if length > MOST_DIMENSIONS:
            raise ValueError(f"a tensor of {length:,} dimensions")
        shapes.append(tuple(_numbers(contents, place, "<i4", length)))
        place += 4 * length
    padding = _numbers(contents, place, "<u8", 1)[0]
    place += 8 + padding
    headers = []
    for name, kind, shape, size in zip(names, table[1::4], shapes, table[3::4], strict=True):
        if min(shape, default=1) < 1:
            raise ValueError(f"“{name}” has the shape {shape}")
        headers.append(_Header(name, kind, shape, place, size))
        place += size
    if not 0 <= len(contents) - place < ALIGNED:
        raise ValueError(f"{len(contents):,} bytes, where {place:,} are announced")
    return headers


def _numbers(contents: bytes, place: int, kind: str, count: int) -> list[int]:
    """Read whole numbers of the header."""
    if place + count * np.dtype(kind).itemsize > len(contents):
        raise ValueError("cut short")
    return np.frombuffer(contents, kind, count, place).tolist()


def _add(model: BinaryModel, header: _Header, contents: bytes) -> None:
    """Read one tensor of numbers into a model."""
    name, kind, shape, start, size = header
    if kind in PACKED:
        raise _PackedError(PACKED[kind])
    if kind not in FLOATS and kind not in LAYOUTS:
        raise ValueError(f"“{name}” has numbers of the unknown type {kind:#x}")
    layout = LAYOUTS.get(kind)
    number = np.dtype(FLOATS[kind] if layout is None else layout.kind)
    count = math.prod(shape)
    end = count * number.itemsize
    if end + (layout is not None) * MULTIPLIER_BYTES > size:
        raise ValueError(f"“{name}” has {size:,} bytes for the shape {shape}")
    numbers = np.frombuffer(contents, number, count, start)
    if layout is None:
        model.arrays[name] = numbers.astype(np.float32).reshape(shape)
        return
    multiplier = float(np.frombuffer(contents, "<f4", 1, start + end)[0])
    if not (math.isfinite(multiplier) and multiplier > 0):
        raise ValueError(f"“{name}” has the multiplier {multiplier}")
    is_plain = layout.has_plain_embeddings and EMBEDDING in name
    matrix = numbers.reshape(shape) if is_plain else _unfold(numbers, shape, layout.register)
    model.arrays[name] = matrix / np.float32(multiplier)
    if number.itemsize == 1:
        model.multipliers[name] = multiplier


def _unfold(
    integers: Shaped[np.ndarray, "count"], shape: tuple[int, ...], register: int
) -> Shaped[np.ndarray, "inputs outputs"]:
    """Turn a matrix that is stored output by output, in turns for registers or plainly."""
    if len(shape) != 2:
        raise ValueError(f"a quantised tensor of the shape {shape}")
    inputs, outputs = shape
    if register:
        if inputs % register or outputs % INTERLEAVED:
            raise ValueError(f"the shape {shape} in registers of {register}")
        tiles = integers.reshape(outputs // INTERLEAVED, inputs // register, INTERLEAVED, register)
        integers = tiles.swapaxes(1, 2)
    return integers.reshape(outputs, inputs).T


def write_binary(
    path: Path,
    arrays: Mapping[str, Shaped[np.ndarray, "..."]],
    *,
    quantised: int | None = None,
) -> None:
    """Write a binary model.

    Parameters
    ----------
    path : Path
        The new file.
    arrays : Mapping[str, Shaped[np.ndarray, "..."]]
        Weights in float32 by Marian's names, and the settings in bytes.
    quantised : int | None
        The type of matrices, `INTGEMM8` or `BERGAMOT8`; None: all stay in float32. The first leaves
        embeddings in float32, as Marian does.
    """
    blobs = {name: _blob_of(name, each, quantised) for name, each in arrays.items()}
    header = [VERSION, len(blobs)]
    for name, (kind, data) in blobs.items():
        header += [len(name.encode()) + 1, kind, arrays[name].ndim, len(data)]
    names = b"".join(name.encode() + b"\0" for name in blobs)
    shapes = b"".join(np.array(each.shape, "<i4").tobytes() for each in arrays.values())
    start = np.array(header, "<u8").tobytes() + names + shapes
    padding = -(len(start) + 8) % ALIGNED
    with path.open("wb") as file:
        file.write(start + padding.to_bytes(8, "little") + bytes(padding))
        for _, data in blobs.values():
            file.write(data)


def _blob_of(
    name: str, array: Shaped[np.ndarray, "..."], quantised: int | None
) -> tuple[int, bytes]:
    """Write one tensor's numbers, padded to where the next may begin."""
    is_embedding, is_matrix = EMBEDDING in name, array.ndim == 2 and min(array.shape) > 1
    if name == CONFIG:
        kind, data = TEXT, array.tobytes()
    elif quantised is None or not is_matrix or (is_embedding and quantised == INTGEMM8):
        kind, data = FLOAT32, array.astype("<f4").tobytes()
    else:
        kind = quantised
        multiplier = np.float32(LARGEST_WEIGHT) / np.float32(np.abs(array).max(initial=1e-20))
        integers = np.rint(array.astype(np.float32) * multiplier).astype(np.int8)
        rows = integers if is_embedding else integers.T
        data = rows.tobytes() + multiplier.astype("<f4").tobytes()
    return kind, data + bytes(-len(data) % ALIGNED)
