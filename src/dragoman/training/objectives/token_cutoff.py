"""Token cut-off: mask random input tokens of a batch (Shen et al., 2020)."""

from dataclasses import replace

import torch
from torch import Tensor

from dragoman.data.batches import Batch, Sequences
from dragoman.data.packing import PackedBatch
from dragoman.kernels.training.dropout import draw_kept


def cut_off_tokens(batch: Batch | PackedBatch, share: float, pad_id: int) -> Batch | PackedBatch:
    """Mask random input tokens on both sides; the targets to predict stay as they are.

    Returns
    -------
    Batch | PackedBatch
        The same pairs with some input tokens masked; the very same object if the share is
        zero.

    Notes
    -----
    A masked token is embedded as padding, so its vector is zero, but its position is encoded and
    attended to: masks come from lengths, not from ids. The numbers are those of `draw_kept`: a
    CUDA graph draws them anew, and the threads of a CPU draw them from generators of their own.
    """
    if share == 0:
        return batch
    if isinstance(batch, PackedBatch):
        ids = torch.cat([batch.source.read_ids, batch.target.read_ids])
        return replace(batch, masked_ids=_cut_off(ids, share, pad_id))
    sides: list[Sequences] = [
        replace(side, masked_ids=_cut_off(side.read_ids, share, pad_id))
        for side in (batch.source, batch.target)
    ]
    return replace(batch, source=sides[0], target=sides[1])


def _cut_off(ids: Tensor, share: float, pad_id: int) -> Tensor:
    return ids.where(draw_kept(ids.shape, share, ids.device), pad_id)
