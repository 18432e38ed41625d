"""Normalisation layers: layer norm, RMS norm, and batch norm for comparison."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.errors import DataError
from dragoman.shapes import Float


def layer_norm(
    states: Float[Tensor, "... model_dim"],
    weight: Float[Tensor, "model_dim"],
    bias: Float[Tensor, "model_dim"],
    epsilon: float,
) -> Float[Tensor, "... model_dim"]:
    r"""Normalise each vector by its own mean and variance, explicitly.

    Notes
    -----
    :math:`\frac{x-\mu}{\sqrt{\sigma^2+\epsilon}}\odot\gamma+\beta` with the mean μ and the variance
    σ² of the entries of one vector (Ba et al., 2016). Nothing else is looked at: no other word, no
    other sentence, nothing remembered.
    """
    mean = states.mean(-1, keepdim=True)
    variance = (states - mean).square().mean(-1, keepdim=True)
    return (states - mean) / (variance + epsilon).sqrt() * weight + bias


class LayerNorm(nn.Module):
    """Layer normalisation, as in the paper.

    Parameters
    ----------
    model_dim : int
        Width of the vectors.
    epsilon : float
        What is added to the variance.

    Notes
    -----
    The equation is `layer_norm`; PyTorch's fused kernel computes it here.
    """

    def __init__(self, model_dim: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(model_dim))
        self.bias = nn.Parameter(torch.zeros(model_dim))
        self.epsilon = epsilon

    def forward(
        self, states: Float[Tensor, "... model_dim"], first_position: int = 0
    ) -> Float[Tensor, "... model_dim"]:
        """Normalise."""
        del first_position
        return functional.layer_norm(
            states, self.weight.shape, self.weight, self.bias, self.epsilon
        )


class RMSNorm(nn.Module):
    r"""Divide each vector by its root mean square (Zhang and Sennrich, 2019).

    Parameters
    ----------
    model_dim : int
        Width of the vectors.
    epsilon : float
        What is added to the mean square.

    Notes
    -----
    :math:`x/\sqrt{\tfrac{1}{d}\sum_i x_i^2+\epsilon}\odot\gamma`: layer normalisation that neither
    takes the mean away nor adds a bias.
    """

    def __init__(self, model_dim: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(model_dim))
        self.epsilon = epsilon

    def forward(
        self, states: Float[Tensor, "... model_dim"], first_position: int = 0
    ) -> Float[Tensor, "... model_dim"]:
        """Normalise."""
        del first_position
        # The fused kernel wants one precision for both, which autocast does not give it.
        states = states.to(self.weight.dtype)
        return functional.rms_norm(states, self.weight.shape, self.weight, self.epsilon)


class BatchNorm(nn.Module):
    r"""Normalise each entry over the tokens of a batch (Ioffe and Szegedy, 2015).

    Parameters
    ----------
    model_dim : int
        Width of the vectors.
    momentum : float
        Share of a new batch in the running statistics.
    per_step_positions : int | None
        With a number, each time step has statistics of its own, for so many steps, as recurrent
        networks would need them; None: one statistic for all places.

    Notes
    -----
    :math:`\frac{x-\mu_B}{\sqrt{\sigma_B^2+\epsilon}}\odot\gamma+\beta`, where the mean and variance
    of each entry run over all places of all sentences of the batch, or over the sentences at one
    time step. Evaluation takes running averages of them (of the unbiased variance) instead.

    It is here to be compared with, and fails a translation model in these ways: in training a
    word's output depends on the other sentences, on the padding, which is counted like words, and
    on the words after it, which a decoder must not see; evaluation computes something else than
    training did; one word alone, as in online learning, has no variance, so that only the bias is
    left of it; and a time step that no training sentence reached has no statistics, but the
    mean 0 and variance 1 it began with, up to the end of the table, beyond which there is nothing.
    """

    running_mean: Tensor
    running_variance: Tensor

    def __init__(
        self,
        model_dim: int,
        momentum: float = 0.1,
        per_step_positions: int | None = None,
        epsilon: float = 1e-5,
    ) -> None:
        super().__init__()
        self.momentum = momentum
        self.per_step_positions = per_step_positions
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(model_dim))
        self.bias = nn.Parameter(torch.zeros(model_dim))
        shape = (model_dim,) if per_step_positions is None else (per_step_positions, model_dim)
        self.register_buffer("running_mean", torch.zeros(shape))
        self.register_buffer("running_variance", torch.ones(shape))

    def forward(
        self, states: Float[Tensor, "*batch length model_dim"], first_position: int = 0
    ) -> Float[Tensor, "*batch length model_dim"]:
        """Normalise, and in training update the running statistics."""
        running_mean, running_variance = self._running_statistics(first_position, states.size(-2))
        if self.training:
            exact = states.to(torch.promote_types(states.dtype, torch.float32))
            is_shared = self.per_step_positions is None
            sample = exact.flatten(0, -2) if is_shared else exact.flatten(0, -3)
            mean = sample.mean(0)
            variance = (sample - mean).square().mean(0)
            with torch.no_grad():
                unbiased = variance * (len(sample) / max(len(sample) - 1, 1))
                running_mean.lerp_(mean.to(running_mean.dtype), self.momentum)
                running_variance.lerp_(unbiased.to(running_variance.dtype), self.momentum)
        else:
            mean, variance = running_mean, running_variance
        scale = self.weight / (variance + self.epsilon).sqrt()
        return (states - mean) * scale + self.bias

    def _running_statistics(self, first: int, count: int) -> tuple[Tensor, Tensor]:
        """Return views of the statistics of some time steps."""
        if self.per_step_positions is None:
            return self.running_mean, self.running_variance
        end = first + count
        if end > self.per_step_positions:
            raise DataError(
                f"a sequence of {end} subwords is longer than the {self.per_step_positions} time "
                "steps whose statistics the model's batch normalisation keeps; lower max_length "
                "or raise max_positions"
            )
        return self.running_mean[first:end], self.running_variance[first:end]


def make_norm(
    kind: Literal["layer", "rms", "batch", "batch-per-step"],
    model_dim: int,
    max_positions: int,
    epsilon: float = 1e-5,
) -> nn.Module:
    """Make a normalisation layer, called with vectors and the position of the first."""
    match kind:
        case "layer":
            return LayerNorm(model_dim, epsilon)
        case "rms":
            return RMSNorm(model_dim, epsilon)
        case "batch":
            return BatchNorm(model_dim, epsilon=epsilon)
        case "batch-per-step":
            return BatchNorm(model_dim, per_step_positions=max_positions, epsilon=epsilon)
