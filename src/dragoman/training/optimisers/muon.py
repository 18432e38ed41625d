"""Muon (Jordan et al., 2024): orthogonalised momentum for hidden matrices, Adam for the rest."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.models.convolutional.convolution import WeightNormLinear
from dragoman.models.recurrent.cells import GRUCell, LSTMCell, RNNCell
from dragoman.shapes import Float

MOMENTUM = 0.95
NUM_ITERATIONS = 5
QUINTIC = (3.4445, -4.7750, 2.0315)
ADAM_RMS = 0.2
"""Typical root mean square of Adam's steps at a learning rate of 1."""
LEAST_NORM = 1e-12

_MULTIPLYING = (nn.Linear, RNNCell, GRUCell, LSTMCell, WeightNormLinear)


def find_hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """List the weight matrices of a model's hidden layers.

    Returns
    -------
    list[nn.Parameter]
        Neither words nor positions, nor the output's, nor what has several axes but is no matrix.
    """
    words = {id(each) for module in model.modules() if not isinstance(module, _MULTIPLYING)
             for each in module.parameters(recurse=False)}  # fmt: skip
    found = {
        id(each): each
        for module in model.modules()
        if isinstance(module, _MULTIPLYING)
        for each in module.parameters(recurse=False)
        if each.dim() == 2 and min(each.shape) > 1 and id(each) not in words
    }
    return list(found.values())


# Why not `torch.optim.Muon`: it is the same algorithm (without its rounding, equal to 1e-12 in
# tests), but it rounds to bfloat16 on the CPU too, which changes a step by 1–3 %, steps one matrix
# after the other, and keeps its state apart from the Adam that all other weights need.
class Muon(torch.optim.Optimizer):
    r"""The Muon optimiser for matrices, with an Adam for all other weights.

    Parameters
    ----------
    matrices : Sequence[nn.Parameter]
        The weights to step in this way.
    adam : torch.optim.AdamW
        The optimiser of the others. It becomes a part of this one, which has its groups and state.
    weight_decay : float
        Decoupled decay of the matrices.

    Notes
    -----
    With the gradient G of a matrix of r rows and c columns, Nesterov's momentum M, and UVᵀ of its
    singular value decomposition,

    .. math:: W \leftarrow (1 - \gamma\lambda)W - \gamma\cdot 0.2\sqrt{\max(r, c)}\;UV^T,

    whose entries have Adam's root mean square, so that one learning rate suits both (Liu et al.,
    2025). Matrices of one shape are made orthogonal together, in bfloat16 on a CUDA device.
    """

    def __init__(
        self, matrices: Sequence[nn.Parameter], adam: torch.optim.AdamW, *, weight_decay: float
    ) -> None:
        own = {"params": list(matrices), "weight_decay": weight_decay}
        super().__init__([own, *adam.param_groups], {"lr": 0.0})
        self._adam = adam
        self._adam.state = self.state

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Make one update of the weights."""
        assert closure is None
        self._step_matrices(self.param_groups[0])
        self._adam.step()

    def _step_matrices(self, group: dict[str, Any]) -> None:
        """Update the matrices of one group, batched by shape."""
        matrices = [each for each in group["params"] if each.grad is not None]
        if not matrices:
            return
        for each in matrices:
            if "momentum" not in self.state[each]:
                self.state[each]["momentum"] = torch.zeros_like(each, requires_grad=False)
        gradients: list[Tensor] = [each.grad for each in matrices]
        momenta: list[Tensor] = [self.state[each]["momentum"] for each in matrices]
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        ahead = torch._foreach_lerp(gradients, momenta, MOMENTUM)
        if group["weight_decay"]:
            torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
        alike = defaultdict(list)
        for matrix, wanted in zip(matrices, ahead, strict=True):
            is_tall = matrix.size(0) > matrix.size(1)
            view = (matrix.T, wanted.T) if is_tall else (matrix, wanted)
            alike[view[0].shape].append(view)
        for shape, views in alike.items():
            steps = orthogonalise(torch.stack([wanted for _, wanted in views]))
            changed = [matrix for matrix, _ in views]
            rate = group["lr"] * ADAM_RMS * shape[1] ** 0.5
            torch._foreach_add_(changed, list(steps.to(changed[0].dtype)), alpha=-rate)


def orthogonalise(
    matrices: Float[Tensor, "count rows columns"],
) -> Float[Tensor, "count rows columns"]:
    r"""Orthogonalise matrices by Newton–Schulz iterations.

    Notes
    -----
    Five Newton–Schulz iterations :math:`X \leftarrow aX + b(XX^T)X + c(XX^T)^2X`. The coefficients
    raise small singular values fastest and leave them between 0.68 and 1.21, not at 1; those under
    two thousandths of the norm remain smaller.
    """
    first, third, fifth = QUINTIC
    values = matrices / matrices.norm(dim=(1, 2), keepdim=True).clamp_min(LEAST_NORM)
    if values.is_cuda:
        values = values.bfloat16()
    for _ in range(NUM_ITERATIONS):
        gram = values @ values.mT
        powers = torch.baddbmm(gram, gram, gram, beta=third, alpha=fifth)
        values = torch.baddbmm(values, powers, values, beta=first)
    return values
