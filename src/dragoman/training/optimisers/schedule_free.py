"""Schedule-free AdamW (Defazio et al., 2024): iterate averaging instead of a decaying rate."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.training.updates.sharding import local_shard

PROGRESS = "progress"
"""Name of the state kept on the host: number of updates and sum of squared rates."""


class ScheduleFree(torch.optim.Optimizer):
    r"""AdamW whose averaged iterates, weighted by squared learning rates, are the model.

    Parameters
    ----------
    groups : Iterable[dict[str, Any]]
        Weights, with the decay of each group as ``weight_decay``.
    means : Mapping[nn.Parameter, Tensor]
        For each weight where its mean is kept, which begins as the weight.
    betas : tuple[float, float]
        Share β₁ of the mean in the weights that are trained, and decay β₂ of the second moment.
    epsilon : float
        What is added to the root of the second moment.

    Notes
    -----
    Of three weights, the model trains y, the optimiser steps z, and the mean x is to be used:

    .. math::
        z_{t+1} &= z_t - \gamma_t g_t / (\sqrt{v_t} + \epsilon) - \gamma_t\lambda y_t,
        \qquad \gamma_t = \gamma\sqrt{1-\beta_2^t}\min(1, t/warmup) \\
        x_{t+1} &= (1 - c)x_t + c\,z_{t+1},
        \qquad c = \gamma_t^2 / \textstyle\sum_{i\le t}\gamma_i^2 \\
        y_{t+1} &= (1-\beta_1)z_{t+1} + \beta_1 x_{t+1}

    The state, z and v, is allocated at construction; x belongs to the caller. That is one copy
    of the weights more than Adam has.
    """

    def __init__(
        self,
        groups: Iterable[dict[str, Any]],
        means: Mapping[nn.Parameter, Tensor],
        *,
        betas: tuple[float, float],
        epsilon: float,
    ) -> None:
        defaults = {"lr": 0.0, "betas": betas, "eps": epsilon, "weight_decay": 0.0}
        super().__init__(groups, defaults)
        self._means = means
        for group in self.param_groups:
            for each in group["params"]:
                self.state[each]["stepped"] = each.detach().clone()
                self.state[each]["exp_avg_sq"] = torch.zeros_like(each, requires_grad=False)
        self.state[self._first][PROGRESS] = torch.zeros(2, dtype=torch.float64)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Make one update of the weights."""
        assert closure is None
        progress = self.state[self._first][PROGRESS]
        num_steps, sum_of_squares = progress.tolist()  # on the host: no sync
        progress[0] = num_steps = num_steps + 1
        _, beta = self.param_groups[0]["betas"]
        rate = self.param_groups[0]["lr"] * math.sqrt(1 - beta**num_steps)
        progress[1] = sum_of_squares = sum_of_squares + rate**2
        share = rate**2 / sum_of_squares if rate else 0.0
        for group in self.param_groups:
            self._step_group(group, rate, share)

    def _step_group(self, group: dict[str, Any], rate: float, share: float) -> None:
        """Update the weights of one group with fused operations."""
        chosen = [each for each in group["params"] if each.grad is not None]
        if not chosen:
            return
        (mean_share, beta), decay = group["betas"], group["weight_decay"]
        # The update is element-wise: workers with sharded weights need no communication.
        trained = [local_shard(each) for each in chosen]
        gradients = [local_shard(each.grad) for each in chosen]
        stepped = [local_shard(self.state[each]["stepped"]) for each in chosen]
        squares = [local_shard(self.state[each]["exp_avg_sq"]) for each in chosen]
        means = [local_shard(self._means[each]) for each in chosen]
        torch._foreach_mul_(squares, beta)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - beta)
        roots = torch._foreach_sqrt(squares)
        torch._foreach_add_(roots, group["eps"])
        torch._foreach_addcdiv_(stepped, gradients, roots, -rate)
        if decay:
            torch._foreach_add_(stepped, trained, alpha=-rate * decay)
        torch._foreach_lerp_(means, stepped, share)
        torch._foreach_copy_(trained, means)
        torch._foreach_lerp_(trained, stepped, 1 - mean_share)

    @property
    def _first(self) -> nn.Parameter:
        return self.param_groups[0]["params"][0]
