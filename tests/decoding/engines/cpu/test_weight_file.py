"""Weights read one by one: as they are, in float, or rounded to eight bits."""

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors

from dragoman.decoding.engines.cpu.weight_file import WeightFile
from dragoman.eight_bits import round_matrix
from dragoman.errors import FolderError
from dragoman.tensor_files import TensorFile


@pytest.fixture
def write(tmp_path):
    def write(**arrays):
        path = tmp_path / "model.safetensors"
        save_file({name.replace("_", "."): each for name, each in arrays.items()}, path)
        return WeightFile(TensorFile(path))

    return write


def make_matrix():
    return np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)


def test_a_matrix_in_float_is_rounded(write):
    matrix = make_matrix()
    file = write(a=matrix)
    assert not file.is_quantised
    assert file.tensors.shape("a") == (3, 5)
    assert np.array_equal(file.fractions("a"), matrix)
    numbers, scales = file.matrix("a")
    assert np.abs(numbers * scales[:, None] - matrix).max() <= scales.max() / 2


def test_a_matrix_in_eight_bits_is_read_as_it_is(write):
    numbers, scales = round_matrix(make_matrix())
    file = write(a=numbers, a_scales=scales)
    assert file.is_quantised
    assert np.array_equal(file.matrix("a").numbers, numbers)
    assert np.array_equal(file.matrix("a").scales, scales)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.zeros((2, 2), np.int8)}, "has whole numbers without scales"),
        ({"a": np.full((2, 2), np.nan, np.float32)}, "has numbers that are not finite"),
        ({"a": np.array([[np.inf]], np.float32)}, "has numbers that are not finite"),
        (
            {"a": np.zeros((2, 2), np.int8), "a_scales": np.ones(3, np.float32)},
            "a and its scales do not fit",
        ),
        (
            {"a": np.zeros((2, 2), np.int16), "a_scales": np.ones(2, np.float32)},
            "a and its scales do not fit",
        ),
    ],
)
def test_what_cannot_be_is_refused(write, arrays, message):
    with pytest.raises(FolderError, match=message):
        write(**arrays).matrix("a")


def test_what_is_missing_is_named(write):
    with pytest.raises(FolderError, match=r"holds another model \(b is missing\)"):
        write(a=make_matrix()).tensors.shape("b")


def test_what_is_no_file_of_tensors_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(FolderError, match="missing, cut short or not a safetensors file"):
        WeightFile(TensorFile(tmp_path / "model.safetensors"))


def test_bfloat16_is_widened(tmp_path):
    torch.manual_seed(1)
    matrix = torch.randn(3, 5).bfloat16()
    save_tensors({"b": torch.ones(7), "a": matrix}, tmp_path / "m.safetensors")
    file = WeightFile(TensorFile(tmp_path / "m.safetensors"))
    assert np.array_equal(file.fractions("a"), matrix.float().numpy())
