"""Adam as the paper sets it (section 5.3), and the moving average of the weights."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dragoman.training.options import TrainingOptions
from dragoman.training.sharding import divide_like

BETAS = (0.9, 0.98)
EPSILON = 1e-9


def build_optimiser(model: nn.Module, options: TrainingOptions) -> torch.optim.AdamW:
    """Make the optimiser of a model.

    Parameters
    ----------
    model : nn.Module
        The model, on its device.
    options : TrainingOptions
        For the weight decay, which only matrices get.

    Returns
    -------
    torch.optim.AdamW
        Adam with the paper's β₁ = 0.9, β₂ = 0.98, ε = 1e-9; without decay AdamW is Adam.
    """
    parameters = list(model.parameters())
    matrices = [each for each in parameters if each.dim() >= 2]
    others = [each for each in parameters if each.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": options.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    is_fused = parameters[0].device.type in ("cuda", "cpu")
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=0.0,
        betas=BETAS,
        eps=EPSILON,
        fused=is_fused or None,
    )


def optimiser_tensors(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Collect what the optimiser remembers of each weight.

    Parameters
    ----------
    model : nn.Module
        The model.
    optimiser : torch.optim.Optimizer
        Its optimiser.

    Returns
    -------
    dict[str, Tensor]
        By kind and weight, as in ``exp_avg/encoder.0.…``; empty before the first update.
    """
    return {
        f"{kind}/{name}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimiser.state.get(parameter, {}).items()
    }


def restore_optimiser(
    model: nn.Module, optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    """Put back what `optimiser_tensors` collected.

    Parameters
    ----------
    model : nn.Module
        The model.
    optimiser : torch.optim.Optimizer
        Its optimiser.
    tensors : dict[str, Tensor]
        What was collected.
    """
    optimiser.state.clear()
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        kind, name = key.split("/", 1)
        parameter = parameters[name]
        if kind == "step":
            device = parameter.device if parameter.device.type == "cuda" else torch.device("cpu")
            optimiser.state[parameter][kind] = value.to(device)
        else:
            optimiser.state[parameter][kind] = divide_like(value, parameter)


class MovingAverage:
    """An exponential moving average of a model's weights.

    Parameters
    ----------
    model : nn.Module
        The model.
    decay : float
        How much of the average stays at each update.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._parameters = dict(model.named_parameters())
        self.weights = {name: each.detach().clone() for name, each in self._parameters.items()}
        self._decay = decay

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take the newest weights in.

        Parameters
        ----------
        step : int
            The update, counted from 1. Early averages forget faster, so that the first random
            weights do not linger.
        """
        decay = min(self._decay, (1 + step) / (10 + step))
        averages: list[Tensor] = list(self.weights.values())
        weights: list[Tensor] = list(self._parameters.values())
        torch._foreach_lerp_(averages, weights, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the model use the average while the context lasts.

        Yields
        ------
        None
            Afterwards the model has its own weights again.
        """
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, parameter in self._parameters.items():
            own = parameter.detach().clone()
            parameter.copy_(self.weights[name])
            self.weights[name].copy_(own)
