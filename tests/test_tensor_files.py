"""Files of tensors: as the safetensors library reads and writes them, and safe from damage."""

import json
import os
import random

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save, save_file

from dragoman.errors import FolderError
from dragoman.tensor_files import TYPES, TensorFile, write_tensors

TENSORS = {
    f"{name}.{letter}": torch.arange(6).reshape(2, 3).to(getattr(torch, name)) + shift
    for shift, letter in enumerate("bca")
    for name in TYPES
    if name != "bool"
} | {
    "is": torch.tensor([True, False]),
    "number": torch.tensor(3.0),
    "no rows": torch.zeros(0, 3),
    "turned": torch.randn(3, 4).t(),
    'ä "quoted" name': torch.ones(1),
}


def split(raw):
    length = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def join(header, data):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def as_tensor(file, name):
    found = torch.from_numpy(file.read(name))
    return found.view(torch.bfloat16) if file.type(name) == "BF16" else found


def read_all(path):
    file = TensorFile(path)
    return {name: as_tensor(file, name) for name in file.names}


def refusal(path):
    with pytest.raises(FolderError) as caught:
        read_all(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "file"
    write_tensors(path, TENSORS, {"said": "something"})
    return path


def test_the_bytes_are_the_librarys_but_for_the_metadata(written):
    header, data = split(written.read_bytes())
    metadata = header.pop("__metadata__")
    assert (header, data) == split(save({name: t.contiguous() for name, t in TENSORS.items()}))
    assert metadata.keys() == {"said", "digest", "tensor_digests"}
    assert split(written.read_bytes())[0].keys() == header.keys() | {"__metadata__"}


def test_the_library_reads_it(written):
    for name, each in load_file(written).items():
        assert torch.equal(each, TENSORS[name])


def test_what_is_written_is_read(written):
    file = TensorFile(written)
    assert file.has_digests
    assert file.metadata["said"] == "something"
    assert file.size == written.stat().st_size
    assert {name: file.shape(name) for name in file.names} == {
        name: tuple(each.shape) for name, each in TENSORS.items()
    }
    for name, each in TENSORS.items():
        assert as_tensor(file, name).dtype == each.dtype
        assert torch.equal(as_tensor(file, name), each)


def test_what_the_library_writes_is_read(tmp_path):
    save_file({name: each.contiguous() for name, each in TENSORS.items()}, tmp_path / "file")
    assert not TensorFile(tmp_path / "file").has_digests
    found = read_all(tmp_path / "file")
    assert found.keys() == TENSORS.keys()
    assert all(torch.equal(each, TENSORS[name]) for name, each in found.items())


def test_arrays_are_written_like_tensors(tmp_path):
    array = np.arange(12, dtype=np.int32).reshape(3, 4).T
    write_tensors(tmp_path / "arrays", {"a": array})
    write_tensors(tmp_path / "tensors", {"a": torch.from_numpy(array)})
    assert (tmp_path / "arrays").read_bytes() == (tmp_path / "tensors").read_bytes()


def test_bfloat16_is_widened(tmp_path):
    matrix = torch.randn(3, 5).bfloat16()
    write_tensors(tmp_path / "file", {"a": matrix, "b": matrix.float()})
    file = TensorFile(tmp_path / "file")
    assert np.array_equal(file.read_wide("a"), matrix.float().numpy())
    assert np.array_equal(file.read_wide("b"), matrix.float().numpy())


def test_an_unknown_type_is_refused(tmp_path):
    with pytest.raises(KeyError):
        write_tensors(tmp_path / "file", {"a": torch.zeros(1, dtype=torch.complex64)})
    assert not (tmp_path / "file").exists()


def test_every_changed_bit_is_noticed(written):
    raw = bytearray(written.read_bytes())
    header_end = 8 + int.from_bytes(raw[:8], "little")
    chosen = random.Random(1)
    places = [chosen.randrange(header_end) for _ in range(300)]
    places += range(header_end, len(raw))
    unnoticed = []
    for place in places:
        bit = 1 << chosen.randrange(8)
        raw[place] ^= bit
        written.write_bytes(raw)
        raw[place] ^= bit
        try:
            read_all(written)
        except FolderError:
            continue
        unnoticed.append(bytes(raw[place - 12 : place + 12]))
    # What is left is the name under which the digests are found: then there are none, as in the
    # files of other programs, and nothing else has changed.
    assert all(b'"digest"' in each for each in unnoticed), unnoticed
    assert len(unnoticed) < 12


def test_a_file_that_is_replaced_is_read_as_it_was(written):
    file = TensorFile(written)
    write_tensors(written.with_name("other"), {"float32.a": TENSORS["float32.a"] + 1})
    written.with_name("other").replace(written)
    assert torch.equal(as_tensor(file, "float32.a"), TENSORS["float32.a"])


def test_a_file_that_is_overwritten_in_place_is_noticed(written):
    file = TensorFile(written)
    raw = written.read_bytes()
    with written.open("r+b") as other:
        other.write(raw[: len(raw) // 2] + bytes(len(raw) - len(raw) // 2))
    with pytest.raises(FolderError, match="damaged"):
        file.check()
    with written.open("r+b") as other:
        other.truncate(len(raw) // 2)
    with pytest.raises(FolderError, match=r"damaged|cut short"):
        file.check()


def change_entry(**changes):
    def change(header):
        header["a"] = {
            name: each for name, each in (header["a"] | changes).items() if each is not None
        }

    return change


@pytest.mark.parametrize(
    "change",
    [
        change_entry(dtype="F8_E4M3"),
        change_entry(dtype="U64"),
        change_entry(dtype=3),
        change_entry(dtype=["F32"]),
        change_entry(dtype=None),
        change_entry(shape=[2, 4]),
        change_entry(shape=[-2, -3]),
        change_entry(shape=[2.0, 3]),
        change_entry(shape=[True, 6]),
        change_entry(shape=6),
        change_entry(shape="23"),
        change_entry(shape=[1] * 9 + [6]),
        change_entry(shape=[2**40, 2**40]),
        change_entry(shape=None),
        change_entry(data_offsets=[0, 23]),
        change_entry(data_offsets=[4, 28]),
        change_entry(data_offsets=[-4, 20]),
        change_entry(data_offsets=[24, 0]),
        change_entry(data_offsets=[0]),
        change_entry(data_offsets=None),
        lambda header: header.update(b={"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}),
        lambda header: header.update(b={"dtype": "F32", "shape": [9], "data_offsets": [24, 60]}),
        lambda header: header.update(b=[]),
        lambda header: header.update(__metadata__={"said": 3}),
        lambda header: header.update(__metadata__={"digest": "short"}),
        lambda header: header.pop("a"),
    ],
)
def test_headers_that_cannot_be(tmp_path, change):
    header = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    path = tmp_path / "file"
    path.write_bytes(join(header, bytes(24)))
    assert read_all(path)["a"].shape == (2, 3)
    change(header)
    path.write_bytes(join(header, bytes(24)))
    refusal(path)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"1234567",
        bytes(8),
        (2**63).to_bytes(8, "little") + b"{}",
        (1000).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (2).to_bytes(8, "little") + b"\xff\xfe",
        (50_000).to_bytes(8, "little") + b"[" * 50_000,
        join({}, b"")[:-2] + b"{1",
        (13).to_bytes(8, "little") + b'{"a":1,"a":2}',
    ],
)
def test_what_is_no_file_of_tensors(tmp_path, raw):
    (tmp_path / "file").write_bytes(raw)
    assert "missing, cut short or not a safetensors file" in refusal(tmp_path / "file")


def test_truths_that_are_neither(tmp_path):
    header = {"a": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}
    (tmp_path / "file").write_bytes(join(header, b"\x01\x02"))
    assert "neither true nor false" in refusal(tmp_path / "file")


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "device"])
def test_what_is_no_file(tmp_path, kind):
    path = tmp_path / "file"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    refusal(path)
