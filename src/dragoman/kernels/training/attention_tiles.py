"""Attention kernels for short sentences: several whole sentences make one tile.

A tile holds whole sentences of both sides, so nothing outside it is looked at: scores, weights and
all gradients of a tile come from one reading of its queries, keys and values.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.data.packing import TILE, Spans
from dragoman.kernels.language import dropout_threshold, jit, kept, next_power, tl

LOG2_E = math.log2(math.e)
FORWARD_WARPS = 4
BACKWARD_WARPS = 4


class Heads(NamedTuple):
    """Layout of the columns of projected tokens: heads side by side, keys before values."""

    num_heads: int
    key_dim: int
    value_dim: int


class Tensors(NamedTuple):
    """Queries, keys and values, or their gradients; one row a token, maybe of a wider tensor."""

    query: Tensor
    key: Tensor
    value: Tensor


@dataclass(frozen=True, kw_only=True)
class Attention:
    """Arguments of packed attention: tensors, ranges of keys, groups of sentences, dropout.

    Parameters
    ----------
    tensors : Tensors
        Queries, keys and values.
    heads : Heads
        How columns are divided.
    visible : Spans
        The keys that each query may look at.
    seen_by : Spans
        The queries that may look at each key.
    query_groups : Tensor
        Where each tile's queries begin, and where the last one ends.
    key_groups : Tensor
        Likewise its keys.
    scale : float
        What scores are multiplied by.
    dropout : float
        Share of the weights that is dropped.
    seed : Tensor | None
        Of what is dropped; None: nothing is.
    longest : int
        Keys that a query sees at most.
    """

    tensors: Tensors
    heads: Heads
    visible: Spans
    seen_by: Spans
    query_groups: Tensor
    key_groups: Tensor
    scale: float
    dropout: float
    seed: Tensor | None
    longest: int

    def dropping(self) -> tuple[Tensor | None, int, float, int]:
        """Return the arguments of `dropped`."""
        threshold = dropout_threshold(self.dropout)
        return self.seed, threshold, 1 / (1 - self.dropout), self.longest

    def sizes(self) -> dict[str, Any]:
        """Return the compile-time constants of a kernel."""
        return {
            "DROPS": self.seed is not None,
            "KEY_DIM": self.heads.key_dim,
            "VALUE_DIM": self.heads.value_dim,
            "KEY_BLOCK": next_power(self.heads.key_dim),
            "VALUE_BLOCK": next_power(self.heads.value_dim),
            "PRECISION": "ieee" if self.tensors.query.dtype == torch.float32 else "tf32",
        }


def attend_in_tiles(work: Attention, found: Tensor) -> None:
    """Compute attention for the queries of all tiles."""
    query, key, value = work.tensors
    _forward_kernel[(len(work.query_groups) - 1, work.heads.num_heads)](
        work.query_groups, work.key_groups, query, key, value, found, *work.visible,
        work.scale * LOG2_E, query.stride(0), key.stride(0), found.stride(0), *work.dropping(),
        **work.sizes(), TILE=TILE, num_warps=FORWARD_WARPS,
    )  # fmt: skip


def tiles_backward(work: Attention, found: Tensor, grad: Tensor, grads: Tensors) -> None:
    """Compute the gradients of all tiles' queries, keys and values."""
    query, key, value = work.tensors
    _backward_kernel[(len(work.query_groups) - 1, work.heads.num_heads)](
        work.query_groups, work.key_groups, query, key, value, found, grad, *grads, *work.visible,
        work.scale, query.stride(0), key.stride(0), found.stride(0), *work.dropping(),
        **work.sizes(), TILE=TILE, num_warps=BACKWARD_WARPS,
    )  # fmt: skip


@jit
def load_rows(
    start, rows, num_rows, stride, head, DIM: tl.constexpr, DIM_BLOCK: tl.constexpr
) -> Tensor:
    """Load one head's columns of some rows.

    Parameters
    ----------
    start, rows, num_rows, stride, head, DIM, DIM_BLOCK : Tensor
        The tensor, its rows to load, where they end, the way from row to row, which head, and its
        width as it is and as a block.
    """
    columns = tl.arange(0, DIM_BLOCK)
    mask = (rows < num_rows)[:, None] & (columns < DIM)[None, :]
    places = rows.to(tl.int64)[:, None] * stride + head * DIM + columns[None, :]
    return tl.load(start + places, mask=mask, other=0.0)


@jit
def store_rows(
    start, tile, rows, num_rows, stride, head, DIM: tl.constexpr, DIM_BLOCK: tl.constexpr
) -> None:
    """Store one head's columns of some rows."""
    columns = tl.arange(0, DIM_BLOCK)
    mask = (rows < num_rows)[:, None] & (columns < DIM)[None, :]
    places = rows.to(tl.int64)[:, None] * stride + head * DIM + columns[None, :]
    tl.store(start + places, tile.to(start.dtype.element_ty), mask=mask)


@jit
def dropped(
    values, rows, keys, firsts, head, seed, threshold, keep_scale, room, DROPS: tl.constexpr
) -> Tensor:
    """Apply dropout to attention weights or their gradients, if there is any.

    Parameters
    ----------
    values, rows, keys, firsts, head, seed, threshold, keep_scale, room, DROPS : Tensor
        The weights, their queries and keys, the first key that each query sees, which head, and
        what `Attention.dropping` says. Queries and keys are of shapes that go together.

    Notes
    -----
    Entries are numbered by query, head, and key counted from the query's first: that fits 32 bits,
    and every kernel gives an entry the same number.
    """
    if DROPS:
        query = rows.to(tl.uint32) * tl.num_programs(1) + head
        places = query * room + (keys - firsts).to(tl.uint32)
        values = tl.where(kept(tl.load(seed), places, threshold), values * keep_scale, 0.0)
    return values


@jit
def _weights(q, k, keys, firsts, ends, scale, PRECISION: tl.constexpr):
    """Compute the attention weights of one tile; all zero for a query without keys."""
    scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
    may = (keys[None, :] >= firsts[:, None]) & (keys[None, :] < ends[:, None])
    scores = tl.where(may, scores, -1e30)
    weights = tl.where(may, tl.exp2(scores - tl.max(scores, 1)[:, None]), 0.0)
    total = tl.sum(weights, 1)
    return weights / tl.where(total == 0.0, 1.0, total)[:, None]


@jit
def _forward_kernel(
    query_groups, key_groups, query, key, value, found, first, end, scale,
    query_stride, key_stride, found_stride, seed, threshold, keep_scale, room,
    KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    KEY_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    PRECISION: tl.constexpr, TILE: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Compute one tile in one head; scores are in units of log₂."""
    group, head = tl.program_id(0), tl.program_id(1)
    low, high = tl.load(query_groups + group), tl.load(query_groups + group + 1)
    if low == high:
        return
    key_low, key_high = tl.load(key_groups + group), tl.load(key_groups + group + 1)
    rows, keys = low + tl.arange(0, TILE), key_low + tl.arange(0, TILE)
    q = load_rows(query, rows, high, query_stride, head, KEY_DIM, KEY_BLOCK)
    k = load_rows(key, keys, key_high, key_stride, head, KEY_DIM, KEY_BLOCK)
    v = load_rows(value, keys, key_high, key_stride, head, VALUE_DIM, VALUE_BLOCK)
    firsts = tl.load(first + rows, mask=rows < high, other=0)
    ends = tl.load(end + rows, mask=rows < high, other=0)
    weights = _weights(q, k, keys, firsts, ends, scale, PRECISION)
    weights = dropped(
        weights, rows[:, None], keys[None, :], firsts[:, None], head,
        seed, threshold, keep_scale, room, DROPS,
    )  # fmt: skip
    out = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
    store_rows(found, out, rows, high, found_stride, head, VALUE_DIM, VALUE_BLOCK)


@jit
def _backward_kernel(
    query_groups, key_groups, query, key, value, found, grad, query_grad, key_grad, value_grad,
    first, end, scale, query_stride, key_stride, found_stride,
    seed, threshold, keep_scale, room,
    KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    KEY_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    PRECISION: tl.constexpr, TILE: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Compute all gradients of one tile in one head."""
    group, head = tl.program_id(0), tl.program_id(1)
    low, high = tl.load(query_groups + group), tl.load(query_groups + group + 1)
    if low == high:
        return
    key_low, key_high = tl.load(key_groups + group), tl.load(key_groups + group + 1)
    rows, keys = low + tl.arange(0, TILE), key_low + tl.arange(0, TILE)
    q = load_rows(query, rows, high, query_stride, head, KEY_DIM, KEY_BLOCK)
    k = load_rows(key, keys, key_high, key_stride, head, KEY_DIM, KEY_BLOCK)
    v = load_rows(value, keys, key_high, key_stride, head, VALUE_DIM, VALUE_BLOCK)
    out = load_rows(found, rows, high, found_stride, head, VALUE_DIM, VALUE_BLOCK)
    out_grad = load_rows(grad, rows, high, found_stride, head, VALUE_DIM, VALUE_BLOCK)
    delta = tl.sum(out.to(tl.float32) * out_grad.to(tl.float32), 1)
    firsts = tl.load(first + rows, mask=rows < high, other=0)
    ends = tl.load(end + rows, mask=rows < high, other=0)
    weights = _weights(q, k, keys, firsts, ends, scale * 1.4426950408889634, PRECISION)
    used = dropped(
        weights, rows[:, None], keys[None, :], firsts[:, None], head,
        seed, threshold, keep_scale, room, DROPS,
    )  # fmt: skip
    back = tl.dot(tl.trans(used.to(v.dtype)), out_grad, input_precision=PRECISION)
    store_rows(value_grad, back, keys, key_high, key_stride, head, VALUE_DIM, VALUE_BLOCK)
    weights_grad = dropped(
        tl.dot(out_grad, tl.trans(v), input_precision=PRECISION),
        rows[:, None], keys[None, :], firsts[:, None], head,
        seed, threshold, keep_scale, room, DROPS,
    )  # fmt: skip
    scores_grad = (weights * (weights_grad - delta[:, None]) * scale).to(q.dtype)
    back = tl.dot(scores_grad, k, input_precision=PRECISION)
    store_rows(query_grad, back, rows, high, query_stride, head, KEY_DIM, KEY_BLOCK)
    back = tl.dot(tl.trans(scores_grad), q, input_precision=PRECISION)
    store_rows(key_grad, back, keys, key_high, key_stride, head, KEY_DIM, KEY_BLOCK)
