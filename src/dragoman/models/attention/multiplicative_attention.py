"""Luong's attention: four scoring functions, over all or a window of source tokens."""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.errors import DataError
from dragoman.models.attention.additive_attention import Annotations, Attended
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.observer import Observer
from dragoman.shapes import Float, Int

Score = Literal["dot", "general", "concat", "location"]
Span = Literal["global", "local-m", "local-p"]


class MultiplicativeAttention(nn.Module):
    r"""Global or local attention of Luong et al. (2015).

    Parameters
    ----------
    dim : int
        Width of the target states that look and of the source states that are looked at.
    score : Literal["dot", "general", "concat", "location"]
        How they are compared.
    span : Literal["global", "local-m", "local-p"]
        Whether a target word looks at all source words, at those about its own place, or at those
        about a place that it predicts.
    half_width : int
        How far a window reaches to each side of its centre (D), at least 1.
    max_positions : int
        Longest source sentence of the score “location”.

    Notes
    -----
    A target state h_t scores a source state h̄_s by

    * dot: :math:`h_t^\top\bar h_s` (scaled dot-product attention without its factor);
    * general: :math:`h_t^\top W_a\bar h_s`;
    * concat: :math:`v_a^\top\tanh(W_a[h_t;\bar h_s])`, the additive attention of Bahdanau et al.,
      which needs memory in queries × keys × dim;
    * location: row s of :math:`W_a h_t`, which does not look at the source word at all.

    A softmax over the words that may be seen makes weights :math:`a_t(s)` of the scores, and
    :math:`c_t = \sum_s a_t(s)\bar h_s`. Local attention sees the words with
    :math:`|s - p_t| \le D`, the centre being

    * local-m: :math:`p_t = t`, but at most the sentence's last place, lest a long translation's
      last words see nothing;
    * local-p: :math:`p_t = S\,\sigma(v_p^\top\tanh(W_p h_t))` with S the sentence's length, and
      each weight is multiplied by :math:`\exp(-(s-p_t)^2/2\sigma^2)` with :math:`\sigma = D/2`.
      The weights then no longer sum to one. Only this factor tells v_p and W_p what to learn.

    Places count from 0. Words outside the window are scored too and then masked: sentences are
    short, and one product is faster than gathering windows.
    """

    def __init__(
        self,
        dim: int,
        *,
        score: Score = "general",
        span: Span = "global",
        half_width: int = 10,
        max_positions: int = 1024,
    ) -> None:
        super().__init__()
        self.score = score
        self.span = span
        self.half_width = half_width
        # W_a of “concat” is stored as two halves, so that keys are projected once.
        self.key = nn.Linear(dim, dim, bias=False) if score in ("general", "concat") else None
        self.query = nn.Linear(dim, dim, bias=False) if score == "concat" else None
        self.weigh = nn.Linear(dim, 1, bias=False) if score == "concat" else None
        self.location = nn.Linear(dim, max_positions, bias=False) if score == "location" else None
        self.centre = (
            nn.Sequential(nn.Linear(dim, dim, bias=False), nn.Tanh(), nn.Linear(dim, 1, bias=False))
            if span == "local-p"
            else None
        )
        self.observer: Observer | None = None

    def prepare(self, memory: Float[Tensor, "batch keys dim"]) -> Float[Tensor, "batch keys dim"]:
        """Project the keys, once for all queries."""
        return memory if self.key is None else self.key(memory)

    def annotate(
        self, memory: Float[Tensor, "sentences length dim"], lengths: Int[Tensor, "sentences"]
    ) -> Annotations:
        """Prepare source sentences for attention token by token."""
        return Annotations(memory, self.prepare(memory), lengths, Mask(key_lengths=lengths))

    def forward(
        self,
        query: Float[Tensor, "batch queries dim"],
        projected: Float[Tensor, "batch keys dim"],
        values: Float[Tensor, "batch keys value_dim"],
        mask: Mask,
        places: Int[Tensor, "queries"],
    ) -> Attended:
        """Average the values, each weighted by the score of its key with the query."""
        num_keys = projected.size(1)
        may_attend = mask.may_attend(query.size(1), num_keys, query.device).squeeze(1)
        scores = self._scores(query, projected)
        if self.span == "global":
            weights = scores.where(may_attend, -math.inf).softmax(dim=-1)
        else:
            keys = torch.arange(num_keys, device=query.device)
            distances = keys - self._centres(query, mask, num_keys, places).unsqueeze(-1)
            may_attend = may_attend & (distances.abs() <= self.half_width)
            weights = scores.where(may_attend, -math.inf).softmax(dim=-1)
            if self.span == "local-p":
                nearness = torch.exp(-2 * (distances / self.half_width).square())
                weights = weights * nearness.to(weights.dtype)
        if self.observer is not None:
            weights = self.observer(weights.unsqueeze(1)).squeeze(1)
        return Attended(weights @ values, weights)

    def _scores(self, query: Tensor, projected: Tensor) -> Tensor:
        """Score every query with every key."""
        if self.location is not None:
            num_keys, num_rows = projected.size(1), self.location.out_features
            if num_keys > num_rows:
                raise DataError(
                    f"a source sentence of {num_keys} subwords is longer than the {num_rows} "
                    "places of the score “location”; lower max_length or raise max_positions"
                )
            return functional.linear(query, self.location.weight[:num_keys])
        if self.query is not None and self.weigh is not None:
            pairs = self.query(query).unsqueeze(2) + projected.unsqueeze(1)
            return self.weigh(pairs.tanh()).squeeze(-1)
        return query @ projected.transpose(1, 2)

    def _centres(self, query: Tensor, mask: Mask, num_keys: int, places: Tensor) -> Tensor:
        """Compute the centre of each query's window: [batch, queries], or one row."""
        lengths = mask.key_lengths
        if lengths is None:
            lengths = places.new_tensor([num_keys])
        if self.centre is None:
            return torch.minimum(places, lengths[:, None] - 1)
        share = self.centre(query).squeeze(-1)
        # In half precision a position in a long sentence could be off by one.
        share = share.to(torch.promote_types(share.dtype, torch.float32))
        return lengths[:, None] * torch.sigmoid(share)
