"""Find the most probable tokens of each hypothesis in one pass over the scores."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.kernels import language
from dragoman.kernels.language import jit, next_power, tl
from dragoman.shapes import Float, Int, UInt8

# Tokens of a block, whose largest score is kept, and blocks that a program reads.
BLOCK = 64
BLOCKS = 64
NUM_WARPS = 4


class Choice(NamedTuple):
    """The best tokens of each hypothesis, and its log-sum-exp."""

    logs: Float[Tensor, "rows best"]
    words: Int[Tensor, "rows best"]
    normalisers: Float[Tensor, "rows"]


def best_words(
    logits: Float[Tensor, "rows vocabulary"], standing: UInt8[Tensor, "vocabulary"], count: int
) -> Choice:
    """Find the most probable tokens of each hypothesis.

    Parameters
    ----------
    logits : Float[Tensor, "rows vocabulary"]
        Scores.
    standing : UInt8[Tensor, "vocabulary"]
        For each word 0: it may come; 1: it counts, but must not come; 2: it does not count.
    count : int
        How many words are wanted.

    Returns
    -------
    Choice
        Log-probabilities in float32 in falling order, −∞ where there is no further word, with the
        words, and the normalisers.

    Notes
    -----
    The k largest lie in the k blocks with the largest maxima. One pass over the scores finds the
    maxima of all blocks and the sum of exponentials; a second looks at k blocks alone.
    """
    if not language.uses_kernels(logits):
        return plain_best_words(logits, standing, count)
    num_rows, size = logits.shape
    num_parts = -(-size // (BLOCK * BLOCKS))
    whole: dict[str, Any] = {"device": logits.device, "dtype": torch.float32}
    maxima = torch.empty(num_rows, num_parts * BLOCKS, **whole)
    parts = torch.empty(2, num_rows, num_parts, **whole)
    _read_kernel[(num_rows, num_parts)](
        logits, standing, maxima, parts, size, num_rows, BLOCK=BLOCK, BLOCKS=BLOCKS,
        num_warps=NUM_WARPS,
    )  # fmt: skip
    logs = torch.empty(num_rows, count, **whole)
    words = torch.empty(num_rows, count, device=logits.device, dtype=torch.int32)
    normalisers = torch.empty(num_rows, **whole)
    _choose_kernel[(num_rows,)](
        logits, standing, maxima, parts, logs, words, normalisers, size, num_rows, num_parts,
        COUNT=count, COUNT_BLOCK=next_power(count, 2), BLOCK=BLOCK, BLOCKS=BLOCKS,
        PARTS_BLOCK=next_power(num_parts, 2), MAXIMA_BLOCK=next_power(num_parts * BLOCKS),
        num_warps=NUM_WARPS,
    )  # fmt: skip
    return Choice(logs, words, normalisers)


def plain_best_words(
    logits: Float[Tensor, "rows vocabulary"], standing: UInt8[Tensor, "vocabulary"], count: int
) -> Choice:
    """Compute the same with PyTorch's operations."""
    scores = logits.float().masked_fill(standing == 2, -torch.inf)
    normalisers = scores.logsumexp(1)
    best, words = scores.masked_fill(standing == 1, -torch.inf).topk(min(count, scores.size(1)))
    words = words.masked_fill(best == -torch.inf, 0)
    lacking = (0, count - words.size(1))
    logs = functional.pad(best - normalisers[:, None], lacking, value=-torch.inf)
    return Choice(logs, functional.pad(words.int(), lacking), normalisers)


@jit
def _read_kernel(
    logits, standing, maxima, parts, size, num_rows, BLOCK: tl.constexpr, BLOCKS: tl.constexpr
):
    """Find the maxima of some blocks of one row, and their sum of exponentials."""
    row, part = tl.program_id(0), tl.program_id(1)
    blocks = part * BLOCKS + tl.arange(0, BLOCKS)
    words = blocks[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    is_word = words < size
    place = logits + row.to(tl.int64) * size + words
    scores = tl.load(place, mask=is_word, other=float("-inf")).to(tl.float32)
    stands = tl.load(standing + words, mask=is_word, other=2)
    scores = tl.where(stands == 2, float("-inf"), scores)
    largest = tl.max(tl.max(scores, 1), 0)
    base = tl.where(largest == float("-inf"), 0.0, largest)
    total = tl.sum(tl.sum(tl.exp(scores - base), 1), 0)
    num_parts = tl.num_programs(1)
    tl.store(parts + row * num_parts + part, base)
    tl.store(parts + (num_rows + row) * num_parts + part, total)
    best = tl.max(tl.where(stands == 0, scores, float("-inf")), 1)
    tl.store(maxima + row * num_parts * BLOCKS + blocks, best)


@jit
def _choose_kernel(
    logits, standing, maxima, parts, logs, words, normalisers, size, num_rows, num_parts,
    COUNT: tl.constexpr, COUNT_BLOCK: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
    PARTS_BLOCK: tl.constexpr, MAXIMA_BLOCK: tl.constexpr,
):  # fmt: skip
    """Select the best tokens of one row."""
    row = tl.program_id(0)
    each = tl.arange(0, PARTS_BLOCK)
    is_part = each < num_parts
    bases = tl.load(parts + row * num_parts + each, mask=is_part, other=float("-inf"))
    totals = tl.load(parts + (num_rows + row) * num_parts + each, mask=is_part, other=0.0)
    base = tl.max(bases, 0)
    normaliser = base + tl.log(tl.sum(totals * tl.exp(bases - base), 0))
    tl.store(normalisers + row, normaliser)
    blocks = tl.arange(0, MAXIMA_BLOCK)
    best = tl.load(
        maxima + row * num_parts * BLOCKS + blocks, mask=blocks < num_parts * BLOCKS,
        other=float("-inf"),
    )  # fmt: skip
    ranks = tl.arange(0, COUNT_BLOCK)
    chosen = tl.zeros([COUNT_BLOCK], tl.int32)
    for rank in range(COUNT):
        largest, block = tl.max(best, 0, return_indices=True)
        # A row without possible tokens selects a block beyond the last.
        block_or_none = tl.where(largest == float("-inf"), MAXIMA_BLOCK, block)
        chosen = tl.where(ranks == rank, block_or_none, chosen)
        best = tl.where(blocks == block, float("-inf"), best)
    ids = chosen[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    is_word = (ids < size) & (ranks < COUNT)[:, None]
    line = logits + row.to(tl.int64) * size
    scores = tl.load(line + ids, mask=is_word, other=float("-inf")).to(tl.float32)
    stands = tl.load(standing + ids, mask=is_word, other=2)
    scores = tl.reshape(tl.where(stands == 0, scores, float("-inf")), [COUNT_BLOCK * BLOCK])
    places = tl.arange(0, COUNT_BLOCK * BLOCK)
    for rank in range(COUNT):
        score, place = tl.max(scores, 0, return_indices=True)
        word = tl.sum(tl.where(ranks == place // BLOCK, chosen, 0), 0) * BLOCK + place % BLOCK
        word = tl.where(score == float("-inf"), 0, word)
        tl.store(logs + row * COUNT + rank, score - normaliser)
        tl.store(words + row * COUNT + rank, word)
        scores = tl.where(places == place, float("-inf"), scores)
