"""Construction of optimisers (Adam of section 5.3, Muon, schedule-free), and the weight average."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.training.optimisers.muon import Muon, find_hidden_matrices
from dragoman.training.optimisers.schedule_free import PROGRESS, ScheduleFree
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.sharding import shard_like

BETAS = (0.9, 0.98)
EPSILON = 1e-9


def build_optimiser(
    model: nn.Module, options: TrainingOptions, average: "MovingAverage | None" = None
) -> torch.optim.Optimizer:
    """Build the optimiser of a model.

    Returns
    -------
    torch.optim.Optimizer
        Adam with the paper's β₁ = 0.9, β₂ = 0.98, ε = 1e-9 (without decay AdamW is Adam), or one
        that takes its place, with the same constants.
    """
    if options.optimiser == "schedule-free":
        assert average is not None, "the mean must be kept"
        groups = _group(model.parameters(), options.weight_decay)
        means = {each: average.weights[name] for name, each in model.named_parameters()}
        return ScheduleFree(groups, means, betas=BETAS, epsilon=EPSILON)
    matrices = find_hidden_matrices(model) if options.optimiser == "muon" else []
    chosen = set(map(id, matrices))
    others = [each for each in model.parameters() if id(each) not in chosen]
    is_fused = others[0].device.type in ("cuda", "cpu")
    adam = torch.optim.AdamW(
        _group(others, options.weight_decay),
        lr=0.0,
        betas=BETAS,
        eps=EPSILON,
        fused=is_fused or None,
    )
    return Muon(matrices, adam, weight_decay=options.weight_decay) if matrices else adam


def build_average(model: nn.Module, options: TrainingOptions) -> "MovingAverage | None":
    """Build the moving average of the weights that is validated, if the options ask for one."""
    if options.optimiser == "schedule-free":
        return MovingAverage(model, None)
    return MovingAverage(model, options.ema_decay) if options.ema_decay else None


def _group(parameters: Iterable[nn.Parameter], weight_decay: float) -> list[dict[str, Any]]:
    """Split parameters into groups with and without weight decay."""
    everything = list(parameters)
    groups = [
        {"params": [each for each in everything if each.dim() >= 2], "weight_decay": weight_decay},
        {"params": [each for each in everything if each.dim() < 2], "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def optimiser_tensors(model: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Collect the optimiser's state tensors of each weight."""
    return {
        f"{kind}/{name}": value
        for name, parameter in model.named_parameters()
        for kind, value in optimiser.state.get(parameter, {}).items()
    }


def restore_optimiser(
    model: nn.Module, optimiser: torch.optim.Optimizer, tensors: dict[str, Tensor]
) -> None:
    """Restore the state collected by `optimiser_tensors`."""
    optimiser.state.clear()
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        kind, name = key.split("/", 1)
        parameter = parameters[name]
        if kind == "step":
            device = parameter.device if parameter.device.type == "cuda" else torch.device("cpu")
            optimiser.state[parameter][kind] = value.to(device)
        elif kind == PROGRESS:
            optimiser.state[parameter][kind] = value
        else:
            optimiser.state[parameter][kind] = shard_like(value, parameter)


class MovingAverage:
    """An average of the weights: an exponential moving average, or the one that an optimiser keeps.

    Parameters
    ----------
    model : nn.Module
        The model.
    decay : float | None
        How much of the average stays at each update; None: the optimiser changes it.
    """

    def __init__(self, model: nn.Module, decay: float | None) -> None:
        self._parameters = dict(model.named_parameters())
        self.weights = {name: each.detach().clone() for name, each in self._parameters.items()}
        self._decay = decay

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Add the current weights to the average.

        Parameters
        ----------
        step : int
            The update, counted from 1. Early averages forget faster, so that the first random
            weights do not linger.
        """
        if self._decay is None:
            return
        decay = min(self._decay, (1 + step) / (10 + step))
        averages: list[Tensor] = list(self.weights.values())
        weights: list[Tensor] = list(self._parameters.values())
        torch._foreach_lerp_(averages, weights, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Swap the average into the model while the context lasts."""
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
