"""Self-attention of a beam's newest tokens, and cross-attention to the source.

Hypotheses with a common prefix share its keys and values: nothing is copied when one hypothesis
continues another, only the indices of its ancestors.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.kernels import language
from dragoman.kernels.cuda_search.beam_slots import Slots
from dragoman.kernels.language import jit, next_power, tl
from dragoman.shapes import Float

# Keys of all hypotheses that a program looks at together (of four: eight words), words of the
# source likewise, and its warps.
# Small tiles leave room for many programs, which hide one another's waiting. In full precision
# there are no matrix units, and more warps are needed.
TILE_KEYS = 32
SOURCE_WORDS = 16
NUM_WARPS, NUM_FULL_WARPS = 1, 4
# A matrix unit takes so many rows at least; hypotheses are filled up to it.
LEAST_ROWS = 16
LOG2_E = math.log2(math.e)


class Heads(NamedTuple):
    """Shape of an attention layer."""

    num_heads: int
    key_dim: int
    value_dim: int
    scale: float

    @property
    def key_width(self) -> int:
        """The width of the keys of all heads."""
        return self.num_heads * self.key_dim

    @property
    def value_width(self) -> int:
        """The width of the values of all heads."""
        return self.num_heads * self.value_dim


def beam_attention(
    joined: Float[Tensor, "rows columns"],
    past: Float[Tensor, "places both"],
    slots: Slots,
    heads: Heads,
) -> Float[Tensor, "rows values"]:
    """Write keys and values of the newest tokens, and attend to all tokens so far.

    Parameters
    ----------
    joined : Float[Tensor, "rows columns"]
        Queries, keys and values of the newest words side by side, one row a hypothesis.
    past : Float[Tensor, "places both"]
        Keys and values of all words, side by side; those of the newest are written.
    slots : Slots
        Where each hypothesis stands, and where its words are.
    heads : Heads
        The shape of the attention.
    """
    if not language.uses_kernels(joined):
        return plain_beam_attention(joined, past, slots, heads)
    num_slots, num_beams = slots.newest.shape
    found = joined.new_empty(len(joined), heads.value_width)
    lanes = next_power(num_beams, 1)
    _beam_kernel[(num_slots, heads.num_heads)](
        joined, past, slots.positions, slots.ancestors, found, heads.scale * LOG2_E, slots.pitch,
        LANES=lanes, WORDS=TILE_KEYS // lanes, **shape_of(joined, num_beams, heads),
    )  # fmt: skip
    return found


def plain_beam_attention(
    joined: Float[Tensor, "rows columns"],
    past: Float[Tensor, "places both"],
    slots: Slots,
    heads: Heads,
) -> Float[Tensor, "rows values"]:
    """Compute the same with PyTorch's operations, on a CPU."""
    num_slots, num_beams = slots.newest.shape
    query, new = joined.tensor_split([heads.key_width], dim=1)
    first = torch.arange(num_slots * num_beams) * slots.pitch
    positions = slots.positions.long()
    past[first + positions.flatten()] = new
    times = torch.arange(int(positions.max()) + 1)
    beams = slots.ancestors[(positions.flatten() % 2)[:, None], first[:, None] + times].long()
    own = torch.arange(num_beams).repeat(num_slots)[:, None]
    beams = beams.where(times < positions.view(-1, 1), own)
    slot = torch.arange(num_slots).repeat_interleave(num_beams)[:, None]
    both = past[(slot * num_beams + beams) * slots.pitch + times]
    return _attend(query[:, None], both, times <= positions.view(-1, 1), heads).flatten(1)


def source_attention(
    query: Float[Tensor, "rows keys"],
    memory: Float[Tensor, "places both"],
    slots: Slots,
    heads: Heads,
) -> Float[Tensor, "rows values"]:
    """Let the hypotheses of each slot attend to its source sentence."""
    if not language.uses_kernels(query):
        return plain_source_attention(query, memory, slots, heads)
    num_slots, num_beams = slots.newest.shape
    found = query.new_empty(len(query), heads.value_width)
    _source_kernel[(num_slots, heads.num_heads)](
        query, memory, slots.sources, found, heads.scale * LOG2_E, num_slots,
        WORDS=SOURCE_WORDS, **shape_of(query, num_beams, heads),
    )  # fmt: skip
    return found


def plain_source_attention(
    query: Float[Tensor, "rows keys"],
    memory: Float[Tensor, "places both"],
    slots: Slots,
    heads: Heads,
) -> Float[Tensor, "rows values"]:
    """Compute the same with PyTorch's operations, on a CPU."""
    num_slots, num_beams = slots.newest.shape
    starts, lengths = slots.sources.long()
    times = torch.arange(max(1, int(lengths.max())))
    is_word = times < lengths[:, None]
    places = (starts[:, None] + times).where(is_word, 0)
    found = _attend(query.view(num_slots, num_beams, -1), memory[places], is_word, heads)
    return found.where(lengths[:, None, None] > 0, 0.0).flatten(0, 1)


def _attend(query: Tensor, both: Tensor, is_word: Tensor, heads: Heads) -> Tensor:
    """Attend with PyTorch's kernel: some queries a row to the keys of the row."""
    keys, values = both.tensor_split([heads.key_width], dim=2)
    query, keys, values = (
        each.unflatten(2, (heads.num_heads, -1)).transpose(1, 2) for each in (query, keys, values)
    )
    bias = torch.zeros(is_word.shape, dtype=query.dtype).masked_fill(~is_word, -torch.inf)
    found = functional.scaled_dot_product_attention(
        query, keys, values, attn_mask=bias[:, None, None, :], scale=heads.scale
    )
    return found.transpose(1, 2).flatten(2)


def shape_of(rows: Tensor, num_beams: int, heads: Heads) -> dict[str, Any]:
    """Return the compile-time constants that both kernels share."""
    is_full = rows.dtype == torch.float32
    return {
        "HEADS": heads.num_heads,
        "KEY": heads.key_dim,
        "VALUE": heads.value_dim,
        "KEY_BLOCK": next_power(heads.key_dim),
        "VALUE_BLOCK": next_power(heads.value_dim),
        "BEAMS": num_beams,
        "BEAM_BLOCK": next_power(num_beams, LEAST_ROWS),
        "PRECISION": "ieee" if is_full else "tf32",
        "num_warps": NUM_FULL_WARPS if is_full else NUM_WARPS,
    }


@jit
def _beam_kernel(
    joined, past, positions, ancestors, found, scale, pitch,
    HEADS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr, KEY_BLOCK: tl.constexpr,
    VALUE_BLOCK: tl.constexpr, BEAMS: tl.constexpr, BEAM_BLOCK: tl.constexpr,
    PRECISION: tl.constexpr, LANES: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Attend in one head of one slot: newest tokens from registers, older ones by ancestors.

    A tile is some times of all hypotheses, lane by lane. Every query meets every key of it; what
    no ancestor of the query wrote is masked, and what no query's ancestor wrote is not read.
    """
    slot, head = tl.program_id(0), tl.program_id(1)
    position = tl.load(positions + slot * BEAMS)
    beams = tl.arange(0, BEAM_BLOCK)
    is_beam = beams < BEAMS
    key_columns, value_columns = tl.arange(0, KEY_BLOCK), tl.arange(0, VALUE_BLOCK)
    is_key = is_beam[:, None] & (key_columns < KEY)[None, :]
    is_value = is_beam[:, None] & (value_columns < VALUE)[None, :]
    rows = (slot * BEAMS + beams).to(tl.int64)
    width = HEADS * (KEY + VALUE)
    row = joined + rows[:, None] * (width + HEADS * KEY)
    keys_at = head * KEY + key_columns
    values_at = HEADS * KEY + head * VALUE + value_columns
    query = tl.load(row + keys_at[None, :], mask=is_key, other=0.0)
    key = tl.load(row + HEADS * KEY + keys_at[None, :], mask=is_key, other=0.0)
    value = tl.load(row + HEADS * KEY + values_at[None, :], mask=is_value, other=0.0)
    own = past + (rows * pitch + position)[:, None] * width
    tl.store(own + keys_at[None, :], key, mask=is_key)
    tl.store(own + values_at[None, :], value, mask=is_value)
    peak = tl.sum(query.to(tl.float32) * key.to(tl.float32), 1) * scale
    total = tl.full([BEAM_BLOCK], 1.0, tl.float32)
    sums = value.to(tl.float32)
    later = (position % 2) * tl.num_programs(0) * BEAMS
    written = ancestors + (later + rows)[:, None] * pitch
    lanes = tl.arange(0, LANES)
    lane = tl.arange(0, WORDS * LANES) % LANES
    for start in range(0, position, WORDS):
        times = start + tl.arange(0, WORDS)
        is_word = is_beam[:, None] & (times < position)[None, :]
        of = tl.load(written + times[None, :], mask=is_word, other=LANES)
        is_own = of[:, :, None] == lanes[None, None, :]
        is_own = tl.reshape(is_own.to(tl.int32), [BEAM_BLOCK, WORDS * LANES])
        is_read = tl.max(is_own, 0) > 0
        time = start + tl.arange(0, WORDS * LANES) // LANES
        places = past + ((slot * BEAMS + lane).to(tl.int64) * pitch + time)[:, None] * width
        keys = tl.load(
            places + keys_at[None, :],
            mask=is_read[:, None] & (key_columns < KEY)[None, :], other=0.0,
        )  # fmt: skip
        values = tl.load(
            places + values_at[None, :],
            mask=is_read[:, None] & (value_columns < VALUE)[None, :], other=0.0,
        )  # fmt: skip
        scores = tl.dot(query, tl.trans(keys), input_precision=PRECISION) * scale
        scores = tl.where(is_own > 0, scores, float("-inf"))
        peak, total, sums = _take_in(scores, values, peak, total, sums, PRECISION)
    out = found + rows[:, None] * (HEADS * VALUE) + head * VALUE + value_columns[None, :]
    tl.store(out, (sums / total[:, None]).to(found.dtype.element_ty), mask=is_value)


@jit
def _source_kernel(
    query, memory, sources, found, scale, num_slots,
    HEADS: tl.constexpr, KEY: tl.constexpr, VALUE: tl.constexpr, KEY_BLOCK: tl.constexpr,
    VALUE_BLOCK: tl.constexpr, BEAMS: tl.constexpr, BEAM_BLOCK: tl.constexpr,
    PRECISION: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """Attend in one head of one slot: all its hypotheses to the same source tokens."""
    slot, head = tl.program_id(0), tl.program_id(1)
    first = tl.load(sources + slot).to(tl.int64)
    length = tl.load(sources + num_slots + slot)
    beams = tl.arange(0, BEAM_BLOCK)
    is_beam = beams < BEAMS
    key_columns, value_columns = tl.arange(0, KEY_BLOCK), tl.arange(0, VALUE_BLOCK)
    rows = slot * BEAMS + beams
    width = HEADS * (KEY + VALUE)
    asked = tl.load(
        query + rows[:, None] * (HEADS * KEY) + head * KEY + key_columns[None, :],
        mask=is_beam[:, None] & (key_columns < KEY)[None, :], other=0.0,
    )  # fmt: skip
    peak = tl.full([BEAM_BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BEAM_BLOCK], tl.float32)
    sums = tl.zeros([BEAM_BLOCK, VALUE_BLOCK], tl.float32)
    for start in range(0, length, WORDS):
        times = start + tl.arange(0, WORDS)
        is_word = times < length
        places = memory + (first + times)[:, None] * width
        keys = tl.load(
            places + head * KEY + key_columns[None, :],
            mask=is_word[:, None] & (key_columns < KEY)[None, :], other=0.0,
        )  # fmt: skip
        values = tl.load(
            places + HEADS * KEY + head * VALUE + value_columns[None, :],
            mask=is_word[:, None] & (value_columns < VALUE)[None, :], other=0.0,
        )  # fmt: skip
        scores = tl.dot(asked, tl.trans(keys), input_precision=PRECISION) * scale
        scores = tl.where(is_word[None, :], scores, float("-inf"))
        peak, total, sums = _take_in(scores, values, peak, total, sums, PRECISION)
    out = found + rows[:, None] * (HEADS * VALUE) + head * VALUE + value_columns[None, :]
    is_out = is_beam[:, None] & (value_columns < VALUE)[None, :]
    total = tl.where(total > 0, total, 1.0)
    tl.store(out, (sums / total[:, None]).to(found.dtype.element_ty), mask=is_out)


@jit
def _take_in(scores, values, peak, total, sums, PRECISION: tl.constexpr):
    """Accumulate the values of a tile by scores in units of log₂ (online softmax)."""
    new_peak = tl.maximum(peak, tl.max(scores, 1))
    weights = tl.exp2(scores - new_peak[:, None])
    decay = tl.exp2(peak - new_peak)
    sums = sums * decay[:, None]
    sums += tl.dot(weights.to(values.dtype), values, input_precision=PRECISION)
    return new_peak, total * decay + tl.sum(weights, 1), sums
