"""Read and write safetensors files, with digests, one tensor at a time.

The format is that of the safetensors library. `TensorFile` reads it without the library because
that one opens a path for every read and believes what it finds there: a file that is replaced
meanwhile gives a mixture of two models, and a damaged one gives other numbers.
"""

import json
import math
import threading
import weakref
from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dragoman.errors import FolderError
from dragoman.files import DIGEST_DIGITS, digest_of, open_ordinary
from dragoman.shapes import Shaped

if TYPE_CHECKING:  # PyTorch is not needed to translate on a CPU
    from torch import Tensor

# The names that the format has for types, in the order in which it stores tensors: wide ones first,
# so that each lies at a multiple of its width. NumPy has no bfloat16: its bits are read.
TYPES = {
    "int64": "I64", "float64": "F64", "float32": "F32", "int32": "I32", "bfloat16": "BF16",
    "float16": "F16", "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip
BFLOAT16 = "BF16"
READ_AS = {said: np.dtype("uint16" if said == BFLOAT16 else name) for name, said in TYPES.items()}
ORDER = {said: place for place, said in enumerate(TYPES.values())}
ALIGNED = 8
LARGEST_HEADER = 16 << 20
MOST_DIMENSIONS = 8

METADATA, HEADER_DIGEST, TENSOR_DIGESTS = "__metadata__", "digest", "tensor_digests"
NO_DIGEST = "0" * DIGEST_DIGITS


def write_tensors(
    path: Path,
    tensors: "Mapping[str, Tensor | np.ndarray]",
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write tensors, on whatever device they are, with digests of all that is written.

    Notes
    -----
    But for the metadata the file is what the safetensors library writes, which wants all tensors in
    the host's memory and writes from a copy; a checkpoint of the paper's big model is 2.5 GB.

    The digests stand in the metadata: one for each tensor in the order of the data, so that each
    can be checked when it alone is read, and one of the header. The header is written twice, as the
    digests are known when the data is written.
    """
    types = {name: TYPES[str(each.dtype).removeprefix("torch.")] for name, each in tensors.items()}
    names = sorted(tensors, key=lambda name: (ORDER[types[name]], name))
    entries: dict[str, Any] = {}
    end = 0
    for name in names:
        start, end = end, end + tensors[name].nbytes
        shape = list(tensors[name].shape)
        entries[name] = {"dtype": types[name], "shape": shape, "data_offsets": [start, end]}
    said = dict(metadata or {}) | {HEADER_DIGEST: NO_DIGEST, TENSOR_DIGESTS: NO_DIGEST * len(names)}
    with path.open("wb") as file:
        file.write(_header(said, entries))
        digests = []
        for name in names:
            contents = _bytes_of(tensors[name])
            digests.append(digest_of(contents))
            file.write(contents)
        said[TENSOR_DIGESTS] = "".join(digests)
        said[HEADER_DIGEST] = digest_of(_header(said, entries))
        file.seek(0)
        file.write(_header(said, entries))


class TensorFile:
    """A safetensors file, opened once; its header is checked then, tensors when read.

    Parameters
    ----------
    path : Path
        The file. Whatever is put into its place later, this one is read.

    Attributes
    ----------
    path : Path
        The same.
    metadata : dict[str, str]
        What its header says besides tensors.
    size : int
        Its bytes.

    Notes
    -----
    Files that other programs wrote have no digests; `has_digests` says so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file = open_ordinary(path)
        except OSError as error:
            raise self._broken(error.strerror or str(error)) from None
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self.size = self._file.seek(0, 2)
        raw, entries = self._read_header()
        self._data_start = len(raw)
        self._raw_digest = digest_of(raw)
        self.metadata: dict[str, str] = entries.pop(METADATA, {})
        if not _is_text(self.metadata):
            raise self._broken("its metadata is not text")
        ends = 0
        for name, entry in sorted(entries.items(), key=_first_byte):
            self._check_entry(name, entry, ends)
            ends = entry["data_offsets"][1]
        if ends != self.size - self._data_start:
            raise self._broken(f"{self.size - self._data_start:,} bytes of numbers, not {ends:,}")
        self._entries: dict[str, dict[str, Any]] = entries
        self._digests = self._read_digests(raw)

    @property
    def names(self) -> Set[str]:
        """What its tensors are called."""
        return self._entries.keys()

    @property
    def has_digests(self) -> bool:
        """Whether damage would be noticed."""
        return self._digests is not None

    @property
    def identity(self) -> str:
        """What distinguishes these numbers from others: a digest of the header with its digests."""
        return self._raw_digest

    def shape(self, name: str) -> tuple[int, ...]:
        """Tell the shape of a tensor without reading it."""
        return tuple(self._entry(name)["shape"])

    def type(self, name: str) -> str:
        """Tell the type of a tensor without reading it."""
        return self._entry(name)["dtype"]

    def read(self, name: str) -> Shaped[np.ndarray, "..."]:
        """Read one tensor and check its digest."""
        entry = self._entry(name)
        start, end = entry["data_offsets"]
        contents = np.empty(end - start, np.uint8)
        self._read_into(contents, self._data_start + start)
        if self._digests is not None and digest_of(contents.data) != self._digests[name]:
            raise FolderError(
                f"{self.path}: damaged ({name} has changed since it was written); get it again, or "
                "use another checkpoint"
            )
        if entry["dtype"] == "BOOL" and contents.size and contents.max() > 1:
            raise self._broken(f"{name} has truths that are neither true nor false")
        return contents.view(READ_AS[entry["dtype"]]).reshape(entry["shape"])

    def read_wide(self, name: str) -> Shaped[np.ndarray, "..."]:
        """Read one tensor as `read` does, with bfloat16 widened to float32."""
        found = self.read(name)
        if self.type(name) != BFLOAT16:
            return found
        return (found.astype(np.uint32) << 16).view(np.float32)  # the upper halves of float32

    def check(self) -> None:
        """Read every tensor and check its digest."""
        for name in self.names:
            self.read(name)

    def _entry(self, name: str) -> dict[str, Any]:
        if name not in self._entries:
            raise FolderError(f"{self.path}: holds another model ({name} is missing)")
        return self._entries[name]

    def _read_into(self, contents: Shaped[np.ndarray, "bytes"], place: int) -> None:
        with self._lock:
            self._file.seek(place)
            filled = 0
            while filled < len(contents):
                count = self._file.readinto(contents.data[filled:])  # type: ignore[attr-defined]
                if not count:
                    raise self._broken("cut short while it was read")
                filled += count

    def _read_header(self) -> tuple[bytes, dict[str, Any]]:
        """Read and parse the header; also return its bytes."""
        first = np.zeros(8, np.uint8)
        if self.size < len(first):
            raise self._broken("shorter than a header")
        self._read_into(first, 0)
        length = int(first.view("<u8")[0])
        if length > min(self.size - len(first), LARGEST_HEADER):
            raise self._broken(f"a header of {length:,} bytes")
        header = np.empty(length, np.uint8)
        self._read_into(header, len(first))
        try:
            said = json.loads(header.tobytes(), object_pairs_hook=_without_repetition)
        except (ValueError, RecursionError):
            raise self._broken("its header is not JSON") from None
        if not isinstance(said, dict) or not all(isinstance(each, dict) for each in said.values()):
            raise self._broken("its header is not a table of tensors")
        return first.tobytes() + header.tobytes(), said

    def _check_entry(self, name: str, entry: dict[str, Any], start: int) -> None:
        """Check a tensor's entry in the header; those before it end at `start`."""
        shape: Any = entry.get("shape")
        offsets, kind = entry.get("data_offsets"), entry.get("dtype")
        if not isinstance(kind, str) or kind not in READ_AS:
            raise self._broken(f"{name} has the type {str(kind)[:20]}, which no model has")
        if not _are_sizes(shape) or len(shape) > MOST_DIMENSIONS:
            raise self._broken(f"{name} has no shape")
        num_bytes = math.prod(shape) * READ_AS[kind].itemsize
        if not _are_sizes(offsets) or offsets != [start, start + num_bytes]:
            raise self._broken(f"{name} does not lie where it should")

    def _read_digests(self, raw: bytes) -> dict[str, str] | None:
        """Check the header's own digest and return those of tensors; None if there are none."""
        own = self.metadata.get(HEADER_DIGEST)
        joined = self.metadata.get(TENSOR_DIGESTS, "")
        if own is None:
            return None
        if (
            len(joined) != DIGEST_DIGITS * len(self._entries)
            or len(own) != DIGEST_DIGITS
            or digest_of(raw.replace(own.encode(), NO_DIGEST.encode(), 1)) != own
        ):
            raise FolderError(
                f"{self.path}: damaged (its header has changed since it was written); get it "
                "again, or use another checkpoint"
            )
        names = [name for name, _ in sorted(self._entries.items(), key=_first_byte)]
        places = range(0, len(joined), DIGEST_DIGITS)
        digests = (joined[place : place + DIGEST_DIGITS] for place in places)
        return dict(zip(names, digests, strict=True))

    def _broken(self, why: str) -> FolderError:
        return FolderError(
            f"{self.path}: missing, cut short or not a safetensors file ({why}); get it again, or "
            "use another checkpoint"
        )


def _bytes_of(tensor: "Tensor | np.ndarray") -> memoryview:
    """View a tensor as bytes; copied only if it is not contiguous on the CPU."""
    if isinstance(tensor, np.ndarray):
        return np.ascontiguousarray(tensor).reshape(-1).view(np.uint8).data
    from torch import uint8

    return tensor.detach().cpu().reshape(-1).view(uint8).numpy().data


def _header(metadata: Mapping[str, str], entries: Mapping[str, Any]) -> bytes:
    """Serialise a header with its length."""
    said = {METADATA: metadata} | dict(entries)
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % ALIGNED)
    return len(text).to_bytes(8, "little") + text


def _first_byte(item: tuple[str, dict[str, Any]]) -> tuple[int, int]:
    """Return the offset of a tensor for sorting, empty tensors first; invalid entries anywhere."""
    offsets: Any = item[1].get("data_offsets")
    return (offsets[0], offsets[1]) if _are_sizes(offsets) and len(offsets) == 2 else (0, 0)


def _are_sizes(value: Any) -> bool:  # noqa: ANN401
    """Say whether a value is a list of integers that can be sizes."""
    return isinstance(value, list) and all(type(each) is int and each >= 0 for each in value)


def _is_text(metadata: Any) -> bool:  # noqa: ANN401
    return isinstance(metadata, dict) and all(isinstance(each, str) for each in metadata.values())


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dictionary from the pairs of a JSON object, refusing repeated keys."""
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a name twice")
    return table
