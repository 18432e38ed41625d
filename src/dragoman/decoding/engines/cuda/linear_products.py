"""Linear layers of a trained model in its own floating-point precision."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.shapes import Float


class FloatProduct:
    """A linear layer in the model's own precision.

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
        self._weight, self._bias = weight, bias

    def __call__(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply by the weight and add the bias."""
        return functional.linear(states, self._weight, self._bias)

    def rectified(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply, add the bias and apply ReLU.

        Returns
        -------
        Float[Tensor, "positions outputs"]
            In the same precision. On a GPU the library's product rectifies before it writes.
        """
        if self._bias is not None and states.is_cuda:
            return torch._addmm_activation(self._bias, states, self._weight.t())
        return self(states).relu_()


def join_layers(layers: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Concatenate linear layers that read the same input."""
    biases = [each.bias.detach() for each in layers if each.bias is not None]
    weights = [each.weight.detach() for each in layers]
    if len(weights) == 1:
        return weights[0], biases[0] if biases else None
    return torch.cat(weights), torch.cat(biases) if biases else None
