"""Products with the weights of a trained model: in its own precision, or in eight bits."""

import functools
import warnings
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from dragoman.kernels.decoder_step import Matrix, largest_entries, multiply, restore
from dragoman.kernels.scripts import scripted
from dragoman.quantised import LARGEST_ACTIVATION, Quantised

# Vectors for which a layout is chosen; as many as are a multiple of it, or a power of two below.
PACKED_ROWS = 16
MANY_ROWS = 32
LEAST_PACKED = 1 << 22

Product = Callable[[Tensor], Tensor]


def has_int8() -> bool:
    """Say whether this build of PyTorch multiplies in eight bits on this processor.

    Returns
    -------
    bool
        True where FBGEMM is there: on x86 with AVX2.
    """
    return "fbgemm" in torch.backends.quantized.supported_engines


def has_bfloat16() -> bool:
    """Say whether this processor multiplies numbers of 16 bits, with the range of float32.

    Returns
    -------
    bool
        True on x86 with AVX-512 BF16: attention reads half the memory, three times as fast.
    """
    asks = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return asks is not None and bool(asks())


@functools.cache
def has_vnni() -> bool:
    """Say whether this processor sums four products of eight bits at once, and PyTorch uses it.

    Returns
    -------
    bool
        True on x86 with AVX-512 VNNI, where PyTorch has oneDNN.
    """
    asks = getattr(torch.cpu, "_is_vnni_supported", None)
    is_there = asks is not None and bool(asks())
    return is_there and hasattr(torch.ops.onednn, "qlinear_pointwise")


class Int8Product:
    r"""Multiply vectors by a matrix of eight-bit numbers.

    Parameters
    ----------
    weight : Quantised
        The matrix, one row an output.
    bias : Float[Tensor, "outputs"] | None
        What is added.

    Notes
    -----
    Each vector x is divided by its largest entry m and rounded to 7 bits; the whole numbers are
    multiplied and summed exactly, and the sums are multiplied by m and by the scales of the
    outputs. So a vector's result depends on that vector alone, not on its neighbours in a batch.
    Seven bits, because processors without VNNI add two products of 8 bits in 16, and two products
    of 7 and 8 bits always fit.
    """

    def __init__(self, weight: Quantised, bias: Float[Tensor, "outputs"] | None) -> None:
        numbers, scales = weight
        zeros = torch.zeros(len(numbers), dtype=torch.int64)
        before = torch.backends.quantized.engine
        torch.backends.quantized.engine = "fbgemm"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                matrix = torch._make_per_channel_quantized_tensor(
                    numbers, scales.double(), zeros, 0
                )
            packed = torch.ops.quantized.linear_prepack(matrix, None)
        finally:
            torch.backends.quantized.engine = before
        self.matrix = Matrix(packed, torch.empty(0), bias)
        self._multiply = scripted(multiply)

    def __call__(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply.

        Parameters
        ----------
        states : Float[Tensor, "positions inputs"]
            One vector a row.

        Returns
        -------
        Float[Tensor, "positions outputs"]
            In float32.
        """
        found: Tensor = self._multiply(states, self.matrix)
        return found


class WideInt8Product(Int8Product):
    """Multiply vectors by the eight-bit matrix of a whole vocabulary.

    Parameters
    ----------
    weight : Quantised
        The matrix, one row a word; it is kept as it is, too.
    bias : Float[Tensor, "outputs"] | None
        What is added.

    Notes
    -----
    With many vectors oneDNN takes four fifths of the time that FBGEMM does, with few twice as
    long. The whole numbers are the same, and so is every bit of what is made of them.
    """

    def __init__(self, weight: Quantised, bias: Float[Tensor, "outputs"] | None) -> None:
        super().__init__(weight, bias)
        self._numbers = weight.numbers
        self._scales = weight.scales * (1 / LARGEST_ACTIVATION)
        self._zeros = torch.zeros(len(weight.numbers), dtype=torch.int32)
        self._packed: Tensor | None = None

    def __call__(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply.

        Parameters
        ----------
        states : Float[Tensor, "positions inputs"]
            One vector a row.

        Returns
        -------
        Float[Tensor, "positions outputs"]
            In float32.
        """
        if len(states) < MANY_ROWS or not has_vnni():
            return super().__call__(states)
        if self._packed is None:
            self._packed = torch.ops.onednn.qlinear_prepack(self._numbers, None)
        limit, largest = LARGEST_ACTIVATION, largest_entries(states)
        rounded = torch.quantize_per_tensor(states / largest, 1 / limit, limit + 1, torch.quint8)
        found: Tensor = torch.ops.onednn.qlinear_pointwise(
            rounded.int_repr(), 1.0, limit + 1, self._packed, self._scales, self._zeros,
            None, 1.0, 0, torch.float32, "none", [], "",
        )  # fmt: skip
        return restore(found, largest, self.matrix.bias)


class FloatProduct:
    """Multiply vectors by a matrix in the model's own precision.

    Parameters
    ----------
    weight : Float[Tensor, "outputs inputs"]
        The matrix.
    bias : Float[Tensor, "outputs"] | None
        What is added.
    """

    def __init__(
        self, weight: Float[Tensor, "outputs inputs"], bias: Float[Tensor, "outputs"] | None
    ) -> None:
        self.matrix = Matrix(None, weight, bias)

    def __call__(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply.

        Parameters
        ----------
        states : Float[Tensor, "positions inputs"]
            One vector a row.

        Returns
        -------
        Float[Tensor, "positions outputs"]
            In the same precision.
        """
        return functional.linear(states, self.matrix.weight, self.matrix.bias)

    def rectified(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply, and make what is negative zero.

        Parameters
        ----------
        states : Float[Tensor, "positions inputs"]
            One vector a row.

        Returns
        -------
        Float[Tensor, "positions outputs"]
            In the same precision. On a GPU the library's product rectifies before it writes.
        """
        if self.matrix.bias is not None and states.is_cuda:
            return torch._addmm_activation(self.matrix.bias, states, self.matrix.weight.t())
        return self(states).relu_()


class PackedProduct:
    """Multiply vectors by a large matrix that is laid out for the processor beforehand.

    Parameters
    ----------
    weight : Float[Tensor, "outputs inputs"]
        The matrix, one that `can_pack` accepts; it is copied.
    bias : Float[Tensor, "outputs"] | None
        What is added.

    Notes
    -----
    Products of few vectors with the matrix of a vocabulary are up to four times as fast so. For
    each number of rows oneDNN writes a program and keeps it, so the rows are filled up to one of
    few numbers.
    """

    def __init__(
        self, weight: Float[Tensor, "outputs inputs"], bias: Float[Tensor, "outputs"] | None
    ) -> None:
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_ROWS)
        self._bias = bias

    def __call__(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply.

        Parameters
        ----------
        states : Float[Tensor, "positions inputs"]
            One vector a row.

        Returns
        -------
        Float[Tensor, "positions outputs"]
            In float32.
        """
        rows = len(states)
        most = 1 << (rows - 1).bit_length() if rows < PACKED_ROWS else -rows % PACKED_ROWS + rows
        states = functional.pad(states, (0, 0, 0, most - rows)) if most > rows else states
        multiply = torch.ops.mkldnn._linear_pointwise
        return multiply(states, self._packed, self._bias, "none", [], "")[:rows]


def can_pack(weight: Tensor) -> bool:
    """Say whether a matrix is worth a layout of its own, and this build of PyTorch has one.

    Parameters
    ----------
    weight : Tensor
        The matrix.

    Returns
    -------
    bool
        True for large matrices of float32 on a processor for which PyTorch has oneDNN.
    """
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and weight.numel() >= LEAST_PACKED
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


def rectified_product(
    product: Product, states: Float[Tensor, "positions inputs"]
) -> Float[Tensor, "positions outputs"]:
    """Multiply, and make what is negative zero.

    Parameters
    ----------
    product : Product
        What multiplies.
    states : Float[Tensor, "positions inputs"]
        One vector a row.

    Returns
    -------
    Float[Tensor, "positions outputs"]
        The rectified product.
    """
    if isinstance(product, FloatProduct):
        return product.rectified(states)
    return product(states).relu_()


def join_layers(layers: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Put linear layers that read the same vectors side by side.

    Parameters
    ----------
    layers : Sequence[nn.Linear]
        All with a bias, or all without.

    Returns
    -------
    tuple[Tensor, Tensor | None]
        Weight and bias of one layer that says what they all say.
    """
    biases = [each.bias.detach() for each in layers if each.bias is not None]
    weights = [each.weight.detach() for each in layers]
    if len(weights) == 1:
        return weights[0], biases[0] if biases else None
    return torch.cat(weights), torch.cat(biases) if biases else None
