r"""Attention kernels for sentences of any length, a block at a time (FlashAttention).

Both sides are sorted by sentence, so a block of neighbouring queries needs only the keys between
the first of its first range and the end of its last. The way back is that of FlashAttention (Dao
et al., 2022): the weights are computed again from the saved sums,
:math:`dS = P\circ(dP-\mathrm{rowsum}(dO\circ O))`.

They begin at a given row: what stands before are short sentences, which `attention_tiles` has.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.kernels.language import jit, tl
from dragoman.kernels.training.attention_tiles import (
    LOG2_E,
    Attention,
    Tensors,
    dropped,
    load_rows,
    store_rows,
)


class Tuning(NamedTuple):
    """Rows of a program, rows of one iteration, warps and stages."""

    block: int
    inner: int
    num_warps: int
    num_stages: int


# The best of some sixteen each, on an H200 with sentences of about 28 tokens.
FORWARD = Tuning(64, 32, 4, 3)
QUERY_GRAD = Tuning(64, 32, 4, 3)
MEMORY_GRAD = Tuning(32, 32, 1, 2)


def attend_in_blocks(work: Attention, found: Tensor, log_sums: Tensor) -> None:
    """Compute attention for all queries from a given one on."""
    query, key, value = work.tensors
    _forward_kernel[(-(-len(query) // FORWARD.block), work.heads.num_heads)](
        work.query_groups[-1:], query, key, value, found, log_sums, *work.visible, len(query),
        work.scale * LOG2_E, query.stride(0), key.stride(0), found.stride(0), *work.dropping(),
        **_settings(work, FORWARD),
    )  # fmt: skip


def blocks_backward(
    work: Attention, found: Tensor, log_sums: Tensor, grad: Tensor, grads: Tensors
) -> None:
    """Compute the gradients of the same queries and of the keys and values they attend to."""
    query, key, value = work.tensors
    deltas = torch.empty_like(log_sums)
    strides = (query.stride(0), key.stride(0), found.stride(0))
    _query_grad_kernel[(-(-len(query) // QUERY_GRAD.block), work.heads.num_heads)](
        work.query_groups[-1:], query, key, value, found, grad, grads.query, log_sums, deltas,
        *work.visible, len(query), work.scale, *strides, *work.dropping(),
        **_settings(work, QUERY_GRAD),
    )  # fmt: skip
    _memory_grad_kernel[(-(-len(key) // MEMORY_GRAD.block), work.heads.num_heads)](
        work.key_groups[-1:], query, key, value, grad, grads.key, grads.value, log_sums, deltas,
        *work.visible, *work.seen_by, len(query), len(key), work.scale, *strides, *work.dropping(),
        **_settings(work, MEMORY_GRAD),
    )  # fmt: skip


def _settings(work: Attention, tuning: Tuning) -> dict[str, Any]:
    """Return the compile-time constants of a kernel."""
    return work.sizes() | {
        "BLOCK": tuning.block,
        "INNER": tuning.inner,
        "num_warps": tuning.num_warps,
        "num_stages": tuning.num_stages,
    }


@jit
def _forward_kernel(
    begin, query, key, value, found, log_sums, first, end, num_queries, scale,
    query_stride, key_stride, found_stride, seed, threshold, keep_scale, room,
    KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    KEY_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr, INNER: tl.constexpr, PRECISION: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Compute one block of queries in one head; scores are in units of log₂."""
    head = tl.program_id(1)
    row = tl.load(begin) + tl.program_id(0) * BLOCK
    if row >= num_queries:
        return
    rows = row + tl.arange(0, BLOCK)
    firsts = tl.load(first + rows, mask=rows < num_queries, other=0)
    ends = tl.load(end + rows, mask=rows < num_queries, other=0)
    low = tl.load(first + row)
    high = tl.load(end + tl.minimum(row + BLOCK, num_queries) - 1)
    q = load_rows(query, rows, num_queries, query_stride, head, KEY_DIM, KEY_BLOCK)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    sums = tl.zeros([BLOCK, VALUE_BLOCK], tl.float32)
    for start in range(low, high, INNER):
        keys = start + tl.arange(0, INNER)
        k = load_rows(key, keys, high, key_stride, head, KEY_DIM, KEY_BLOCK)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        may = (keys[None, :] >= firsts[:, None]) & (keys[None, :] < ends[:, None])
        scores = tl.where(may, scores, float("-inf"))
        new_largest = tl.maximum(largest, tl.max(scores, 1))
        level = tl.where(new_largest == float("-inf"), 0.0, new_largest)
        weights = tl.exp2(scores - level[:, None])
        fade = tl.exp2(largest - level)
        total = total * fade + tl.sum(weights, 1)
        weights = dropped(
            weights, rows[:, None], keys[None, :], firsts[:, None], head,
            seed, threshold, keep_scale, room, DROPS,
        )  # fmt: skip
        v = load_rows(value, keys, high, key_stride, head, VALUE_DIM, VALUE_BLOCK)
        sums = sums * fade[:, None] + tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        largest = new_largest
    is_blind = total == 0.0
    sums = sums / tl.where(is_blind, 1.0, total)[:, None]
    store_rows(found, sums, rows, num_queries, found_stride, head, VALUE_DIM, VALUE_BLOCK)
    logs = tl.where(is_blind, float("inf"), largest + tl.log2(tl.where(is_blind, 1.0, total)))
    tl.store(log_sums + head * num_queries + rows, logs, mask=rows < num_queries)


@jit
def _query_grad_kernel(
    begin, query, key, value, found, grad, query_grad, log_sums, deltas, first, end, num_queries,
    scale, query_stride, key_stride, found_stride, seed, threshold, keep_scale, room,
    KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    KEY_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr, INNER: tl.constexpr, PRECISION: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Compute the gradient of one block of queries, and the row sums for the other kernel."""
    head = tl.program_id(1)
    row = tl.load(begin) + tl.program_id(0) * BLOCK
    if row >= num_queries:
        return
    rows = row + tl.arange(0, BLOCK)
    is_row = rows < num_queries
    firsts = tl.load(first + rows, mask=is_row, other=0)
    ends = tl.load(end + rows, mask=is_row, other=0)
    low = tl.load(first + row)
    high = tl.load(end + tl.minimum(row + BLOCK, num_queries) - 1)
    q = load_rows(query, rows, num_queries, query_stride, head, KEY_DIM, KEY_BLOCK)
    out = load_rows(found, rows, num_queries, found_stride, head, VALUE_DIM, VALUE_BLOCK)
    out_grad = load_rows(grad, rows, num_queries, found_stride, head, VALUE_DIM, VALUE_BLOCK)
    delta = tl.sum(out.to(tl.float32) * out_grad.to(tl.float32), 1)
    tl.store(deltas + head * num_queries + rows, delta, mask=is_row)
    logs = tl.load(log_sums + head * num_queries + rows, mask=is_row, other=float("inf"))
    sums = tl.zeros([BLOCK, KEY_BLOCK], tl.float32)
    for start in range(low, high, INNER):
        keys = start + tl.arange(0, INNER)
        k = load_rows(key, keys, high, key_stride, head, KEY_DIM, KEY_BLOCK)
        v = load_rows(value, keys, high, key_stride, head, VALUE_DIM, VALUE_BLOCK)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * (scale * 1.4426950408889634)
        may = (keys[None, :] >= firsts[:, None]) & (keys[None, :] < ends[:, None])
        weights = tl.where(may, tl.exp2(scores - logs[:, None]), 0.0)
        weights_grad = dropped(
            tl.dot(out_grad, tl.trans(v), input_precision=PRECISION),
            rows[:, None], keys[None, :], firsts[:, None], head,
            seed, threshold, keep_scale, room, DROPS,
        )  # fmt: skip
        scores_grad = (weights * (weights_grad - delta[:, None])).to(k.dtype)
        sums += tl.dot(scores_grad, k, input_precision=PRECISION)
    store_rows(query_grad, sums * scale, rows, num_queries, query_stride, head, KEY_DIM, KEY_BLOCK)


@jit
def _memory_grad_kernel(
    begin, query, key, value, grad, key_grad, value_grad, log_sums, deltas, first, end,
    seen_first, seen_end, num_queries, num_keys, scale, query_stride, key_stride, found_stride,
    seed, threshold, keep_scale, room,
    KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    KEY_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr, INNER: tl.constexpr, PRECISION: tl.constexpr, DROPS: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one block of keys and values; scores are transposed here."""
    head = tl.program_id(1)
    row = tl.load(begin) + tl.program_id(0) * BLOCK
    if row >= num_keys:
        return
    keys = row + tl.arange(0, BLOCK)
    low = tl.load(seen_first + row)
    high = tl.load(seen_end + tl.minimum(row + BLOCK, num_keys) - 1)
    k = load_rows(key, keys, num_keys, key_stride, head, KEY_DIM, KEY_BLOCK)
    v = load_rows(value, keys, num_keys, key_stride, head, VALUE_DIM, VALUE_BLOCK)
    key_sums = tl.zeros([BLOCK, KEY_BLOCK], tl.float32)
    value_sums = tl.zeros([BLOCK, VALUE_BLOCK], tl.float32)
    for start in range(low, high, INNER):
        rows = start + tl.arange(0, INNER)
        is_row = rows < high
        q = load_rows(query, rows, high, query_stride, head, KEY_DIM, KEY_BLOCK)
        out_grad = load_rows(grad, rows, high, found_stride, head, VALUE_DIM, VALUE_BLOCK)
        firsts = tl.load(first + rows, mask=is_row, other=0)
        ends = tl.load(end + rows, mask=is_row, other=0)
        logs = tl.load(log_sums + head * num_queries + rows, mask=is_row, other=float("inf"))
        delta = tl.load(deltas + head * num_queries + rows, mask=is_row, other=0.0)
        scores = tl.dot(k, tl.trans(q), input_precision=PRECISION) * (scale * 1.4426950408889634)
        may = (keys[:, None] >= firsts[None, :]) & (keys[:, None] < ends[None, :])
        weights = tl.where(may, tl.exp2(scores - logs[None, :]), 0.0)
        used = dropped(
            weights, rows[None, :], keys[:, None], firsts[None, :], head,
            seed, threshold, keep_scale, room, DROPS,
        )  # fmt: skip
        value_sums += tl.dot(used.to(out_grad.dtype), out_grad, input_precision=PRECISION)
        weights_grad = dropped(
            tl.dot(v, tl.trans(out_grad), input_precision=PRECISION),
            rows[None, :], keys[:, None], firsts[None, :], head,
            seed, threshold, keep_scale, room, DROPS,
        )  # fmt: skip
        scores_grad = (weights * (weights_grad - delta[None, :])).to(q.dtype)
        key_sums += tl.dot(scores_grad, q, input_precision=PRECISION)
    store_rows(key_grad, key_sums * scale, keys, num_keys, key_stride, head, KEY_DIM, KEY_BLOCK)
    store_rows(value_grad, value_sums, keys, num_keys, key_stride, head, VALUE_DIM, VALUE_BLOCK)
