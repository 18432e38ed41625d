r"""Project to the vocabulary and compute label-smoothed cross-entropy without storing all logits.

With z the scores of the K possible tokens and y the true one, the loss of a position is
:math:`\log\sum_k e^{z_k} - (1-\epsilon) z_y - \frac{\epsilon}{K}\sum_k z_k` (section 5.4 of the
paper), and its gradient :math:`\mathrm{softmax}(z)_k - (1-\epsilon)[k=y] - \frac{\epsilon}{K}`.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.kernels import language
from dragoman.kernels.language import jit, next_power, tl, working_type
from dragoman.kernels.training.casts import cast
from dragoman.kernels.training.linear import weight_gradient
from dragoman.shapes import Float, Int

# Logits held at a time: few enough to fit in memory, enough for large products.
CHUNK_ELEMENTS = {"cuda": 1 << 28, "cpu": 1 << 23}
VOCABULARY_BLOCK = 4096
NUM_WARPS = 8
ALIGNED = 64


def projected_cross_entropy(
    hidden: Float[Tensor, "positions model_dim"],
    words: Float[Tensor, "vocabulary model_dim"],
    targets: Int[Tensor, "positions"],
    pad_id: int,
    smoothing: float,
) -> Float[Tensor, ""]:
    """Compute the loss summed over all positions whose target is not padding.

    Notes
    -----
    Some thousand positions at a time are projected; their gradient overwrites the logits and is
    multiplied out at once, so the backward pass only scales.
    """
    dtype = working_type(hidden)
    return _ProjectedCrossEntropy.apply(hidden, words, targets, pad_id, smoothing, dtype)


def plain_cross_entropy(
    logits: Float[Tensor, "positions vocabulary"],
    targets: Int[Tensor, "positions"],
    pad_id: int,
    smoothing: float,
) -> Float[Tensor, "positions"]:
    """Compute the loss of each position from its logits with PyTorch's operations."""
    is_word = torch.arange(logits.size(1), device=logits.device) != pad_id
    log_sum = logits.masked_fill(~is_word, float("-inf")).logsumexp(1)
    true = logits.gather(1, targets.long()[:, None])[:, 0]
    mean = logits[:, is_word].mean(1)
    losses = log_sum - (1 - smoothing) * true - smoothing * mean
    return losses.where(targets != pad_id, 0.0)


class _ProjectedCrossEntropy(torch.autograd.Function):
    """Autograd function that computes loss and gradients together, a chunk at a time."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        hidden: Tensor,
        words: Tensor,
        targets: Tensor,
        pad_id: int,
        smoothing: float,
        dtype: torch.dtype,
    ) -> Tensor:
        """Compute the loss, and the gradients if they are needed."""
        needs_grad = any(ctx.needs_input_grad[:2])
        flat, half_words = hidden.to(dtype), cast(words, dtype)
        losses = torch.empty(len(flat), device=flat.device, dtype=_sum_type(dtype))
        hidden_grad = torch.empty_like(flat) if needs_grad else None
        words_grad = None
        num_chunks = -(-len(flat) * len(words) // CHUNK_ELEMENTS[_kind(flat)])
        chunk = -(-len(flat) // num_chunks)
        room = make_room(flat, chunk, len(words))
        for start in range(0, len(flat), chunk):
            part = slice(start, min(start + chunk, len(flat)))
            logits = torch.mm(flat[part], half_words.t(), out=room[: part.stop - start])
            losses[part] = to_gradient(logits, targets[part], pad_id, smoothing)
            if hidden_grad is not None:
                torch.mm(logits, half_words, out=hidden_grad[part])
                words_grad = weight_gradient(logits, flat[part], words.dtype, into=words_grad)
        ctx.save_for_backward(hidden_grad, words_grad)
        ctx.dtype, ctx.is_scaled = hidden.dtype, False
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # noqa: ANN401
        """Scale the gradients in place: there is no second backward pass."""
        hidden_grad, words_grad = ctx.saved_tensors
        assert not ctx.is_scaled
        ctx.is_scaled = True
        return hidden_grad.mul_(grad).to(ctx.dtype), words_grad.mul_(grad), None, None, None, None


def make_room(like: Tensor, *shape: int) -> Tensor:
    """Allocate matrices for logits whose rows are aligned.

    Returns
    -------
    Tensor
        Not filled, but for zeros after the end of each row: products in tile registers (AMX) read
        over the end and multiply by zero what stands there, so it must be finite.
    """
    *outer, width = shape
    room = like.new_empty(*outer, -(-width // ALIGNED) * ALIGNED)
    room[..., width:] = 0
    return room[..., :width]


def to_gradient(
    logits: Float[Tensor, "positions vocabulary"],
    targets: Int[Tensor, "positions"],
    pad_id: int,
    smoothing: float,
) -> Float[Tensor, "positions"]:
    """Compute the losses, and overwrite the logits with the gradient of their sum."""
    num_positions, num_words = logits.shape
    losses = torch.empty(num_positions, device=logits.device, dtype=_sum_type(logits.dtype))
    if language.uses_kernels(logits):
        block = min(VOCABULARY_BLOCK, next_power(num_words))
        _gradient_kernel[(num_positions,)](
            logits, targets, losses, num_words, logits.stride(0), pad_id, smoothing,
            BLOCK=block, VECTOR=min(8, block), num_warps=NUM_WARPS,
        )  # fmt: skip
        return losses
    if language.uses_compiled(logits):
        from dragoman.kernels.training.cpu.arrays import as_array
        from dragoman.kernels.training.cpu.losses import logits_to_gradient

        arrays = (as_array(logits), as_array(targets))
        logits_to_gradient(*arrays, pad_id, np.float32(smoothing), as_array(losses))
        return losses
    logits[:, pad_id] = 0
    share = smoothing / (num_words - 1)
    true = logits.gather(1, targets.long()[:, None])[:, 0]
    torch.mul(true, smoothing - 1, out=losses).sub_(logits.sum(1), alpha=share)
    logits[:, pad_id] = float("-inf")
    largest = logits.amax(1)
    torch.softmax(logits, 1, out=logits)
    # The largest probability is never small: it gives the sum without another pass of exponentials.
    losses.add_(largest).sub_(logits.amax(1).to(losses.dtype).log_())
    logits.sub_(share)
    logits[torch.arange(num_positions), targets] -= 1 - smoothing
    logits[:, pad_id] = 0
    is_padding = targets == pad_id
    logits[is_padding] = 0
    return losses.masked_fill_(is_padding, 0)


@jit
def _gradient_kernel(
    logits, targets, losses, num_words, stride, pad_id, smoothing,
    BLOCK: tl.constexpr, VECTOR: tl.constexpr,
):  # fmt: skip
    """Process one position: one pass to sum, and one to write, from the cache.

    Every thread keeps the largest of the scores that it has seen, a few neighbours at a time, and
    its sum relative to that. Whole blocks are taken without looking at what counts: the padding is
    made impossible before (a power of two, so that taking it out of the plain sum is exact), and
    the gradients of padding and target are written last.
    """
    position = tl.program_id(0)
    row = logits + position.to(tl.int64) * stride
    target = tl.load(targets + position)
    true = tl.load(row + target).to(tl.float32)
    tl.store(row + pad_id, tl.full([], -8192.0, logits.dtype.element_ty))
    tl.debug_barrier()
    places = tl.arange(0, BLOCK // VECTOR)[None, :] * VECTOR + tl.arange(0, VECTOR)[:, None]
    whole = num_words // BLOCK * BLOCK
    level = tl.full([BLOCK // VECTOR], -1e30, tl.float32)
    total = tl.zeros([BLOCK // VECTOR], tl.float32)
    plain = tl.zeros([BLOCK // VECTOR], tl.float32)
    for start in range(0, whole, BLOCK):
        scores = tl.load(row + start + places).to(tl.float32)
        plain += tl.sum(scores, 0)
        scores *= 1.4426950408889634
        new_level = tl.maximum(level, tl.max(scores, 0))
        total = total * tl.exp2(level - new_level) + tl.sum(tl.exp2(scores - new_level[None, :]), 0)
        level = new_level
    is_word = whole + places < num_words
    scores = tl.load(row + whole + places, mask=is_word, other=0.0).to(tl.float32)
    plain += tl.sum(scores, 0)
    scores = tl.where(is_word, scores * 1.4426950408889634, -1e30)
    new_level = tl.maximum(level, tl.max(scores, 0))
    sums = tl.sum(tl.where(is_word, tl.exp2(scores - new_level[None, :]), 0.0), 0)
    total = total * tl.exp2(level - new_level) + sums
    highest = tl.max(new_level, 0)
    everything = tl.sum(total * tl.exp2(new_level - highest), 0)
    log_sum = highest + tl.log2(everything)
    share = smoothing / (num_words - 1)
    mean = share * (tl.sum(plain, 0) + 8192.0)
    counts = tl.where(target != pad_id, 1.0, 0.0)
    loss = log_sum * 0.6931471805599453 - (1 - smoothing) * true - mean
    tl.store(losses + position, tl.where(target != pad_id, loss, 0.0))
    for start in range(0, whole, BLOCK):
        scores = tl.load(row + start + places).to(tl.float32)
        back = (tl.exp2(scores * 1.4426950408889634 - log_sum) - share) * counts
        tl.store(row + start + places, back.to(logits.dtype.element_ty))
    scores = tl.load(row + whole + places, mask=is_word, other=0.0).to(tl.float32)
    back = (tl.exp2(scores * 1.4426950408889634 - log_sum) - share) * counts
    tl.store(row + whole + places, back.to(logits.dtype.element_ty), mask=is_word)
    tl.debug_barrier()
    back = (tl.exp2(true * 1.4426950408889634 - log_sum) - share - (1 - smoothing)) * counts
    tl.store(row + target, back.to(logits.dtype.element_ty))
    tl.store(row + pad_id, tl.zeros([], logits.dtype.element_ty))


def _kind(tensor: Tensor) -> str:
    return "cuda" if tensor.is_cuda else "cpu"


def _sum_type(dtype: torch.dtype) -> torch.dtype:
    """Return the type of sums of losses: float32 for half precision."""
    return torch.promote_types(dtype, torch.float32)
