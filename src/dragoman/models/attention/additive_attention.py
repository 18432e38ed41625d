"""Additive attention (Bahdanau et al., 2015): a small network scores each query with each key."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.models.attention.mask import Mask
from dragoman.models.attention.observer import Observer
from dragoman.shapes import Bool, Float, Int


class Attended(NamedTuple):
    """Result of attention: the weighted average and the weights."""

    values: Float[Tensor, "batch queries value_dim"]
    weights: Float[Tensor, "batch queries keys"]


class Annotations(NamedTuple):
    """Source sentences prepared for additive attention: projected keys, values and mask."""

    values: Float[Tensor, "sentences length value_dim"]
    keys: Float[Tensor, "sentences length alignment_dim"]
    lengths: Int[Tensor, "sentences"]
    mask: Mask

    @property
    def is_token(self) -> Bool[Tensor, "sentences length"]:
        """True where there is a token, False where there is padding."""
        return self.mask.may_attend(1, self.values.size(1), self.values.device).flatten(1)

    def to_sentences(self) -> dict[str, Tensor]:
        """Convert to the tensors of a decoder's state."""
        return {"values": self.values, "keys": self.keys, "lengths": self.lengths}

    @classmethod
    def from_sentences(cls, sentences: Mapping[str, Tensor]) -> "Annotations":
        """Convert from the tensors of a decoder's state."""
        lengths = sentences["lengths"]
        return cls(sentences["values"], sentences["keys"], lengths, Mask(key_lengths=lengths))


class AdditiveAttention(nn.Module):
    r"""Attend with the alignment model of Bahdanau et al. (2015).

    Parameters
    ----------
    query_dim : int
        Width of the queries: the decoder's states.
    key_dim : int
        Width of what is looked at: the encoder's states.
    alignment_dim : int
        Width of the space in which the two are compared.

    Notes
    -----
    :math:`e_{ij} = v_a^\top\tanh(W_a s_{i-1} + U_a h_j)`, then
    :math:`\alpha_{ij} = \exp(e_{ij}) / \sum_k\exp(e_{ik})` and :math:`c_i = \sum_j\alpha_{ij}h_j`
    (appendix A.1.2 of that paper). :math:`U_a h_j` asks nothing of the query, so `prepare` has it
    once for a sentence. Each pair of query and key has a vector of its own inside the tanh, hence
    memory in queries × keys × alignment_dim, where the dot product needs queries × keys.
    """

    def __init__(self, query_dim: int, key_dim: int, alignment_dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_dim, alignment_dim, bias=False)
        self.key = nn.Linear(key_dim, alignment_dim, bias=False)
        self.score = nn.Parameter(torch.empty(alignment_dim))
        self.observer: Observer | None = None
        nn.init.zeros_(self.score)

    def prepare(
        self, memory: Float[Tensor, "batch keys key_dim"]
    ) -> Float[Tensor, "batch keys alignment_dim"]:
        """Project the keys, once for all queries."""
        return self.key(memory)

    def annotate(
        self,
        memory: Float[Tensor, "sentences length key_dim"],
        lengths: Int[Tensor, "sentences"],
    ) -> Annotations:
        """Prepare source sentences for attention token by token."""
        return Annotations(memory, self.prepare(memory), lengths, Mask(key_lengths=lengths))

    def forward(
        self,
        query: Float[Tensor, "batch queries query_dim"],
        projected: Float[Tensor, "batch keys alignment_dim"],
        values: Float[Tensor, "batch keys value_dim"],
        mask: Mask,
    ) -> Attended:
        """Average the values, each weighted by the score of its key with the query."""
        pairs = self.query(query).unsqueeze(2) + projected.unsqueeze(1)
        scores = pairs.tanh() @ self.score
        may_attend = mask.may_attend(query.size(1), projected.size(1), query.device).squeeze(1)
        weights = scores.where(may_attend, -math.inf).softmax(dim=-1)
        if self.observer is not None:
            weights = self.observer(weights.unsqueeze(1)).squeeze(1)
        return Attended(weights @ values, weights)
