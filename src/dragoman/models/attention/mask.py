"""Attention masks as descriptions, which each attention turns into what its kernel wants."""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from dragoman.shapes import Bool, Int


@dataclass(frozen=True, kw_only=True)
class Mask:
    """Which keys a query may attend to.

    Parameters
    ----------
    key_lengths : Int[Tensor, "batch"] | None
        Real keys of each sequence; those beyond are padding. None: all are real.
    causal : bool
        Whether a query may look only at keys no later than itself.
    """

    key_lengths: Int[Tensor, "batch"] | None = None
    causal: bool = False
    _made: dict[tuple[int, int, torch.device], Tensor] = field(
        default_factory=dict, repr=False, compare=False
    )

    def may_attend(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch 1 queries keys"]:
        """Expand the description to a boolean mask.

        Notes
        -----
        Made once for each shape and kept, because every layer asks for the same.
        """
        shape = (num_queries, num_keys, device)
        if shape not in self._made:
            keys = torch.arange(num_keys, device=device)
            allowed = torch.ones(1, 1, num_queries, num_keys, dtype=torch.bool, device=device)
            if self.causal:
                queries = torch.arange(num_keys - num_queries, num_keys, device=device)
                allowed = allowed & (keys <= queries[:, None])
            if self.key_lengths is not None:
                allowed = allowed & (keys < self.key_lengths[:, None, None, None])
            self._made[shape] = allowed
        return self._made[shape]
