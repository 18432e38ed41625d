"""Attention maps: weights with the labels of rows and columns."""

from dataclasses import dataclass

import numpy as np

GRADIENT = "gradient"
ATTENTION_KINDS = ("encoder", "decoder", "cross")
KINDS = (*ATTENTION_KINDS, GRADIENT)


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionMap:
    """The weights of all heads of one attention layer, or an attribution, for one sentence.

    Attributes
    ----------
    kind : str
        “encoder” or “decoder” for self-attention, “cross” for the decoder over the source, and
        “gradient” for the share of each source word in what decides a target word.
    layer : int
        The layer, counted from 1; gradients go through all layers, and say 1.
    weights : np.ndarray
        Float [heads, queries, keys]; each row sums to 1, or to 0 where there was nothing to see.
    queries, keys : tuple[str, ...]
        The tokens that attend and those attended to.
    """

    kind: str
    layer: int
    weights: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"kind is {self.kind!r}, not one of {', '.join(KINDS)}")
        expected = (len(self.queries), len(self.keys))
        if self.weights.ndim != 3 or self.weights.shape[1:] != expected or not self.weights.size:
            raise ValueError(f"weights are {self.weights.shape}, not (heads, *{expected})")

    @property
    def name(self) -> str:
        """The title of the map in pictures."""
        return "gradient × input" if self.kind == GRADIENT else f"{self.kind} {self.layer}"
