"""Mixture of experts: many feed-forward layers, of which each token visits k."""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.shapes import Bool, Float, Int


@dataclass(frozen=True)
class Routing:
    """State that all expert layers share during one pass.

    Parameters
    ----------
    is_token : Bool[Tensor, "batch length"] | None
        Which places hold words; padding visits no expert and counts in no balance. None: all.
    losses : list[Tensor]
        To which every layer of experts adds its balance loss in training, already weighted.
    """

    is_token: Bool[Tensor, "batch length"] | None = None
    losses: list[Tensor] = field(default_factory=list)


class Gate(NamedTuple):
    """Chosen experts of each token, and scores for the balance loss."""

    experts: Int[Tensor, "tokens chosen"]
    weights: Float[Tensor, "tokens chosen"]
    clean: Float[Tensor, "tokens experts"]
    noisy: Float[Tensor, "tokens experts"]
    deviation: Float[Tensor, "tokens experts"]


class Experts(nn.Module):
    r"""Send each token to its k best experts and sum their outputs by the gate.

    Parameters
    ----------
    model_dim : int
        Width of inputs and outputs.
    expert_dim : int
        Inner width of an expert.
    num_experts : int
        Experts (n).
    experts_per_token : int
        Experts that each word visits (k).
    balance_weight : float
        Weight of the importance loss, and of the load loss (w).

    Notes
    -----
    Shazeer et al. (2017): :math:`y=\sum_iG(x)_iE_i(x)` with
    :math:`G(x)=\mathrm{softmax}(\mathrm{KeepTopK}(H(x),k))` and
    :math:`H(x)_i=(xW_g)_i+\mathcal{N}(0,1)\cdot\mathrm{softplus}((xW_{noise})_i)`, noise in
    training only, and every expert a feed-forward layer. Both matrices of the gate begin at zero,
    so that all experts begin with equal chances; the experts begin Xavier-uniform, their biases at
    zero. The gate computes in single precision at least, even under autocast.

    An expert takes all words that are sent to it: there is no capacity, so without noise a word's
    output depends neither on the batch's other words nor on padding. A word costs k experts however
    many there are. How many words each expert gets must be known on the host, which waits for the
    device once a layer.
    """

    def __init__(
        self,
        model_dim: int,
        expert_dim: int,
        num_experts: int,
        experts_per_token: int,
        balance_weight: float,
    ) -> None:
        super().__init__()
        self.num_experts = num_experts
        self.experts_per_token = experts_per_token
        self.balance_weight = balance_weight
        self.weight_gate = nn.Parameter(torch.zeros(model_dim, num_experts))
        self.weight_noise = nn.Parameter(torch.zeros(model_dim, num_experts))
        self.weight_inner = nn.Parameter(torch.empty(num_experts, model_dim, expert_dim))
        self.bias_inner = nn.Parameter(torch.zeros(num_experts, expert_dim))
        self.weight_outer = nn.Parameter(torch.empty(num_experts, expert_dim, model_dim))
        self.bias_outer = nn.Parameter(torch.zeros(num_experts, model_dim))
        bound = math.sqrt(6 / (model_dim + expert_dim))
        nn.init.uniform_(self.weight_inner, -bound, bound)
        nn.init.uniform_(self.weight_outer, -bound, bound)

    def forward(
        self, states: Float[Tensor, "... model_dim"], routing: Routing | None = None
    ) -> Float[Tensor, "... model_dim"]:
        """Apply the layer.

        Parameters
        ----------
        states : Float[Tensor, "... model_dim"]
            The words.
        routing : Routing | None
            Which places hold words, and where the balance loss is left in training. None: all do,
            and the balance is not asked for.
        """
        tokens = states.reshape(-1, states.size(-1))
        is_token = None
        if routing is not None and routing.is_token is not None:
            is_token = routing.is_token.flatten()
        gate = self.gate(tokens)
        if routing is not None and self.training:
            routing.losses.append(self.balance_weight * balance_loss(gate, is_token))
        said = self._ask(tokens, gate.experts, is_token)
        weights = gate.weights.unsqueeze(-1).to(said.dtype)
        return (weights * said).sum(1).view(states.shape)

    def gate(self, tokens: Float[Tensor, "tokens model_dim"]) -> Gate:
        """Choose the experts of each token.

        Returns
        -------
        Gate
            The k best experts of each word, their weights, which sum to one, and the scores.
        """
        precision = torch.promote_types(tokens.dtype, torch.float32)
        with _full_precision(tokens.device):
            clean = tokens.to(precision) @ self.weight_gate.to(precision)
            logits = tokens.to(precision) @ self.weight_noise.to(precision)
        deviation = nn.functional.softplus(logits)
        noisy = clean + torch.randn_like(clean) * deviation if self.training else clean
        best = noisy.topk(self.experts_per_token, dim=-1)
        return Gate(best.indices, best.values.softmax(-1), clean, noisy, deviation)

    def _ask(
        self,
        tokens: Float[Tensor, "tokens model_dim"],
        experts: Int[Tensor, "tokens chosen"],
        is_token: Bool[Tensor, "tokens"] | None,
    ) -> Float[Tensor, "tokens chosen model_dim"]:
        """Run the chosen experts, each once on all its tokens."""
        visits = experts
        if is_token is not None:
            # Padding is sorted behind all experts, so none processes it.
            visits = experts.masked_fill(~is_token[:, None], self.num_experts)
        order = visits.flatten().argsort(stable=True)
        copies = tokens.unsqueeze(1).expand(*experts.shape, -1).flatten(0, 1)
        *parts, padding = copies.index_select(0, order).split(self._num_visits(visits))
        said = []
        for part, *weights in zip(
            parts,
            self.weight_inner.unbind(),
            self.bias_inner.unbind(),
            self.weight_outer.unbind(),
            self.bias_outer.unbind(),
            strict=True,
        ):
            inner, inner_bias, outer, outer_bias = weights
            hidden = torch.addmm(inner_bias, part, inner).relu()
            said.append(torch.addmm(outer_bias, hidden, outer))
        said.append(torch.zeros_like(padding, dtype=said[0].dtype))
        restored = torch.cat(said).index_select(0, order.argsort())
        return restored.view(*experts.shape, tokens.size(-1))

    def _num_visits(self, visits: Tensor) -> list[int]:
        """Count the tokens of each expert, and at the end the padding."""
        if visits.is_meta:
            # Nothing can be counted on the meta device: equal counts have the right costs.
            share, rest = divmod(visits.numel(), self.num_experts)
            return [share + (index < rest) for index in range(self.num_experts)] + [0]
        return visits.flatten().bincount(minlength=self.num_experts + 1).tolist()


def balance_loss(gate: Gate, is_token: Bool[Tensor, "tokens"] | None) -> Float[Tensor, ""]:
    r"""Compute the importance and load losses of the gate.

    Returns
    -------
    Float[Tensor, ""]
        The sum of the importance loss and the load loss, without their weight; zero at balance.

    Notes
    -----
    :math:`\mathrm{CV}(\sum_xG(x))^2+\mathrm{CV}(\sum_xP(x))^2`, with P from `chances` and the
    coefficient of variation CV, standard deviation by mean, over the experts.
    """
    importance = torch.zeros_like(gate.noisy).scatter(-1, gate.experts, gate.weights)
    load = chances(gate)
    if is_token is not None:
        importance = importance * is_token[:, None]
        load = load * is_token[:, None]
    return _squared_variation(importance.sum(0)) + _squared_variation(load.sum(0))


def chances(gate: Gate) -> Float[Tensor, "tokens experts"]:
    r"""Compute the probability that each expert is chosen, over its own noise.

    Notes
    -----
    :math:`P(x,i)=\Phi\left(\frac{(xW_g)_i-\mathrm{kth\_excluding}(H(x),k,i)}
    {\mathrm{softplus}((xW_{noise})_i)}\right)`: an expert is among the k best if it beats the k-th
    best of the others. Φ is the distribution function of the normal distribution.
    """
    num_chosen = gate.experts.size(-1)
    if num_chosen == gate.noisy.size(-1):
        return torch.ones_like(gate.noisy)
    best = gate.noisy.topk(num_chosen + 1, dim=-1).values
    is_chosen = torch.zeros_like(gate.noisy, dtype=torch.bool).scatter(-1, gate.experts, True)
    to_beat = torch.where(is_chosen, best[:, -1:], best[:, -2:-1])
    # A deviation that vanishes would make the gradient 0 · ∞.
    return torch.special.ndtr((gate.clean - to_beat) / gate.deviation.clamp(min=1e-6))


def _squared_variation(amounts: Tensor) -> Tensor:
    """Compute the squared coefficient of variation; 0 without tokens."""
    mean = amounts.mean()
    spread = (amounts - mean).square().mean()
    return spread / mean.square().clamp(min=torch.finfo(amounts.dtype).tiny)


def _full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Suspend autocast, which the meta device does not know."""
    return nullcontext() if device.type == "meta" else torch.autocast(device.type, enabled=False)
