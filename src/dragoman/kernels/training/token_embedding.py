"""Embed tokens and positions in one pass, with a deterministic backward pass."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dragoman.kernels import language
from dragoman.kernels.language import (
    draw_seed,
    dropout_threshold,
    jit,
    kept,
    next_power,
    tl,
    working_type,
)
from dragoman.shapes import Float, Int

COLUMN_BLOCK = 512
ROW_BLOCK = 16


def embed_tokens(
    words: Float[Tensor, "vocabulary model_dim"],
    ids: Int[Tensor, "tokens"],
    positions: Float[Tensor, "positions model_dim"] | None,
    places: Int[Tensor, "tokens"],
    scale: float,
    dropout: float,
    pad_id: int,
) -> Float[Tensor, "tokens model_dim"]:
    """Look up tokens and positions, add them and apply dropout.

    Notes
    -----
    In the backward pass each row of the gradient is summed by one program over the occurrences of
    its token in order: unlike atomic additions that gives the same bits every time.
    """
    is_learnt = positions is not None and positions.requires_grad
    is_ours = language.uses_kernels(words) or language.uses_compiled(words, positions)
    if is_ours and not is_learnt:
        settings = (scale, dropout, pad_id, working_type(words))
        return _EmbedTokens.apply(words, ids, positions, places, *settings)
    return plain_embed_tokens(words, ids, positions, places, scale, dropout, pad_id)


def plain_embed_tokens(
    words: Float[Tensor, "vocabulary model_dim"],
    ids: Int[Tensor, "tokens"],
    positions: Float[Tensor, "positions model_dim"] | None,
    places: Int[Tensor, "tokens"],
    scale: float,
    dropout: float,
    pad_id: int,
) -> Float[Tensor, "tokens model_dim"]:
    """Compute the same with PyTorch's operations."""
    sums = functional.embedding(ids, words, padding_idx=pad_id) * scale
    if positions is not None:
        sums = sums + functional.embedding(places, positions)
    return functional.dropout(sums, dropout).to(working_type(words))


class _EmbedTokens(torch.autograd.Function):
    """Autograd function of the kernels."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        words: Tensor,
        ids: Tensor,
        positions: Tensor | None,
        places: Tensor,
        scale: float,
        dropout: float,
        pad_id: int,
        dtype: torch.dtype,
    ) -> Tensor:
        """Look up tokens and positions."""
        dim = words.size(1)
        sums = words.new_empty(len(ids), dim, dtype=dtype)
        seed = draw_seed(words.device) if dropout else None
        ctx.save_for_backward(ids, seed)
        ctx.settings = (words.shape, words.dtype, scale, dropout, pad_id)
        if not words.is_cuda:
            _look_up_on_cpu(words, ids, positions, places, scale, dropout, seed, sums)
            return sums
        block = next_power(dim)
        _forward_kernel[(len(ids),)](
            words, ids, positions, places, sums, seed, dropout_threshold(dropout),
            1 / (1 - dropout), scale, DIM=dim, BLOCK=block, DROPS=dropout > 0,
            HAS_POSITIONS=positions is not None, num_warps=4,
        )  # fmt: skip
        return sums

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # noqa: ANN401
        """Sum the gradients of all occurrences of each token."""
        ids, seed = ctx.saved_tensors
        (num_words, dim), dtype, scale, dropout, pad_id = ctx.settings
        if not grad.is_cuda:
            words_grad = grad.new_zeros(num_words, dim, dtype=dtype)
            _add_to_embedding_on_cpu(grad, ids, pad_id, scale, dropout, seed, words_grad)
            return words_grad, None, None, None, None, None, None, None
        words_grad = grad.new_empty(num_words, dim, dtype=dtype)
        in_order, order = torch.sort(ids, stable=True)
        each = torch.arange(num_words + 1, device=ids.device, dtype=ids.dtype)
        starts = torch.searchsorted(in_order, each)
        column_block = min(COLUMN_BLOCK, next_power(dim))
        _backward_kernel[(num_words, -(-dim // column_block))](
            grad.contiguous(), words_grad, order, starts, seed, dropout_threshold(dropout),
            scale / (1 - dropout), pad_id, DIM=dim, BLOCK=column_block, ROWS=ROW_BLOCK,
            DROPS=dropout > 0, num_warps=4,
        )  # fmt: skip
        return words_grad, None, None, None, None, None, None, None


def _look_up_on_cpu(
    words: Tensor,
    ids: Tensor,
    positions: Tensor | None,
    places: Tensor,
    scale: float,
    dropout: float,
    seed: Tensor | None,
    sums: Tensor,
) -> None:
    """Run the compiled function."""
    from dragoman.kernels.training.cpu.arrays import as_array, make_drop, no_array
    from dragoman.kernels.training.cpu.token_embedding import look_up

    look_up(
        as_array(words),
        as_array(ids),
        no_array(words.dtype, 2) if positions is None else as_array(positions.contiguous()),
        as_array(places),
        np.float32(scale),
        make_drop(dropout, 0 if seed is None else int(seed)),
        as_array(sums),
    )


def _add_to_embedding_on_cpu(
    grad: Tensor,
    ids: Tensor,
    pad_id: int,
    scale: float,
    dropout: float,
    seed: Tensor | None,
    words_grad: Tensor,
) -> None:
    """Run the compiled function backwards."""
    from dragoman.kernels.training.cpu.arrays import as_array, make_drop
    from dragoman.kernels.training.cpu.token_embedding import add_to_embedding

    drop = make_drop(dropout, 0 if seed is None else int(seed))
    arrays = (as_array(grad.contiguous()), as_array(ids))
    add_to_embedding(*arrays, pad_id, np.float32(scale), drop, as_array(words_grad))


@jit
def _forward_kernel(
    words, ids, positions, places, sums, seed, threshold, keep_scale, scale,
    DIM: tl.constexpr, BLOCK: tl.constexpr, DROPS: tl.constexpr, HAS_POSITIONS: tl.constexpr,
):  # fmt: skip
    """Embed one token."""
    token = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < DIM
    word = tl.load(ids + token).to(tl.int64)
    total = tl.load(words + word * DIM + columns, mask=mask, other=0.0).to(tl.float32) * scale
    if HAS_POSITIONS:
        row = positions + tl.load(places + token) * DIM
        total += tl.load(row + columns, mask=mask, other=0.0).to(tl.float32)
    if DROPS:
        is_kept = kept(tl.load(seed), token * DIM + columns, threshold)
        total = tl.where(is_kept, total * keep_scale, 0.0)
    tl.store(sums + token * DIM + columns, total.to(sums.dtype.element_ty), mask=mask)


@jit
def _backward_kernel(
    grad, words_grad, order, starts, seed, threshold, scale, pad_id,
    DIM: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Sum some columns of one token's gradient."""
    word = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    start = tl.load(starts + word)
    end = tl.where(word == pad_id, start, tl.load(starts + word + 1))
    for first in range(start, end, ROWS):
        rows = first + tl.arange(0, ROWS)
        tokens = tl.load(order + rows, mask=rows < end, other=0)
        mask = (rows < end)[:, None] & (columns < DIM)[None, :]
        places = tokens[:, None] * DIM + columns[None, :]
        values = tl.load(grad + places, mask=mask, other=0.0).to(tl.float32)
        if DROPS:
            values = tl.where(kept(tl.load(seed), places, threshold), values, 0.0)
        total += tl.sum(values, 0)
    place = words_grad + word.to(tl.int64) * DIM + columns
    tl.store(place, (total * scale).to(words_grad.dtype.element_ty), mask=columns < DIM)
