"""Maps of attention: weights with the words they stand between."""

from dataclasses import dataclass

import numpy as np

_KINDS = ("encoder", "decoder", "cross")


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionMap:
    """What the heads of one attention layer attend to in one sentence.

    Attributes
    ----------
    kind : str
        “encoder” or “decoder” for self-attention, “cross” for the decoder over the source.
    layer : int
        The layer, counted from 1.
    weights : np.ndarray
        Float [heads, queries, keys]; each row sums to 1.
    queries, keys : tuple[str, ...]
        The tokens that attend and those attended to.
    """

    kind: str
    layer: int
    weights: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"kind is {self.kind!r}, not one of {', '.join(_KINDS)}")
        expected = (len(self.queries), len(self.keys))
        if self.weights.ndim != 3 or self.weights.shape[1:] != expected or not self.weights.size:
            raise ValueError(f"weights are {self.weights.shape}, not (heads, *{expected})")
