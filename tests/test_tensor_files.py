"""Files written tensor by tensor are those that the safetensors library writes."""

import pytest
import torch
from safetensors.torch import load_file, save

from dragoman.tensor_files import TYPES, write_tensors


def test_the_bytes_are_the_librarys(tmp_path):
    tensors = {
        f"{name}.{letter}": torch.arange(6).reshape(2, 3).to(dtype) + shift
        for shift, letter in enumerate("bca")
        for dtype, name in TYPES.items()
        if dtype != torch.bool
    }
    tensors |= {
        "is": torch.tensor([True, False]),
        "number": torch.tensor(3.0),
        "no rows": torch.zeros(0, 3),
        "turned": torch.randn(3, 4).t(),
        'ä "quoted" name': torch.ones(1),
    }
    write_tensors(tmp_path / "file", tensors)
    plain = {name: each.contiguous() for name, each in tensors.items()}
    assert (tmp_path / "file").read_bytes() == save(plain)
    for name, each in load_file(tmp_path / "file").items():
        assert torch.equal(each, tensors[name])


def test_an_unknown_type_is_refused(tmp_path):
    with pytest.raises(KeyError):
        write_tensors(tmp_path / "file", {"a": torch.zeros(1, dtype=torch.complex64)})
    assert not (tmp_path / "file").exists()
