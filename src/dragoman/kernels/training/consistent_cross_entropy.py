r"""Cross-entropy of two predictions of the same tokens, and the divergences between them.

With p and q the two predictions of a position, made of scores z and w over the words that can be
predicted, :math:`\mathrm{KL}(p\|q)=\sum_k p_k(\log p_k-\log q_k)`, whose gradients are
:math:`p_k(\log p_k-\log q_k-\mathrm{KL}(p\|q))` over z and :math:`q_k-p_k` over w.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.kernels import language
from dragoman.kernels.language import jit, next_power, tl, working_type
from dragoman.kernels.training.casts import cast
from dragoman.kernels.training.cross_entropy import make_room
from dragoman.kernels.training.linear import weight_gradient
from dragoman.shapes import Float, Int

# Logits of one prediction held at a time. PyTorch's operations need some six matrices of this size,
# in float32, so there are fewer than for cross-entropy alone.
CHUNK_ELEMENTS = {"cuda": 1 << 26, "cpu": 1 << 20}
VOCABULARY_BLOCK = 4096
NUM_WARPS = 8


class Parts(NamedTuple):
    """Weights of the parts of the loss: two cross-entropies and two divergences."""

    first: float
    second: float
    apart: float
    apart_back: float


def consistent_cross_entropy(
    first: Float[Tensor, "positions model_dim"],
    second: Float[Tensor, "positions model_dim"],
    words: Float[Tensor, "vocabulary model_dim"],
    targets: Int[Tensor, "positions"],
    pad_id: int,
    smoothing: float,
    parts: Parts,
) -> Float[Tensor, ""]:
    r"""Compute the loss summed over all positions whose target is not padding.

    Notes
    -----
    With p and q the two predictions and CE the label-smoothed cross-entropy of `cross_entropy`:
    :math:`a\,\mathrm{CE}(p)+b\,\mathrm{CE}(q)+c\,\mathrm{KL}(p\|q)+d\,\mathrm{KL}(q\|p)`. Nothing
    is smoothed within the divergences, and gradients go through both of their sides. Positions are
    projected some thousand at a time and their gradients multiplied out at once, so the way back
    has nothing left to do but to scale.
    """
    dtype = working_type(first)
    settings = (targets, pad_id, smoothing, parts, dtype)
    return _ConsistentCrossEntropy.apply(first, second, words, *settings)


class _ConsistentCrossEntropy(torch.autograd.Function):
    """Autograd function that computes loss and gradients together, a chunk at a time."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        first: Tensor,
        second: Tensor,
        words: Tensor,
        targets: Tensor,
        pad_id: int,
        smoothing: float,
        parts: Parts,
        dtype: torch.dtype,
    ) -> Tensor:
        """Compute the loss, and the gradients if they are needed."""
        needs_grad = any(ctx.needs_input_grad[:3])
        sides = (first.to(dtype), second.to(dtype))
        half_words, targets = cast(words, dtype), targets.long()
        losses = torch.empty(len(targets), device=words.device, dtype=_full(dtype))
        hidden_grads = [torch.empty_like(each) for each in sides] if needs_grad else []
        words_grad = None
        kind = "cuda" if words.is_cuda else "cpu"
        num_chunks = -(-len(targets) * len(words) // CHUNK_ELEMENTS[kind])
        chunk = -(-len(targets) // num_chunks)
        room = make_room(half_words, 2, chunk, len(words))
        for start in range(0, len(targets), chunk):
            part = slice(start, min(start + chunk, len(targets)))
            one, other = room[:, : part.stop - start].unbind()
            logits = (one, other)
            for side, scores in zip(sides, logits, strict=True):
                torch.mm(side[part], half_words.t(), out=scores)
            losses[part] = to_gradients(one, other, targets[part], pad_id, smoothing, parts)
            if needs_grad:
                for side, grad, hidden_grad in zip(sides, logits, hidden_grads, strict=True):
                    torch.mm(grad, half_words, out=hidden_grad[part])
                    words_grad = weight_gradient(grad, side[part], words.dtype, into=words_grad)
        ctx.save_for_backward(*hidden_grads, words_grad)
        ctx.dtypes = first.dtype, second.dtype
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # noqa: ANN401
        """Scale the gradients."""
        *hidden_grads, words_grad = ctx.saved_tensors
        scaled = [
            (each * grad).to(dtype) for each, dtype in zip(hidden_grads, ctx.dtypes, strict=True)
        ]
        return *scaled, words_grad * grad, None, None, None, None, None


def to_gradients(
    first: Float[Tensor, "positions vocabulary"],
    second: Float[Tensor, "positions vocabulary"],
    targets: Int[Tensor, "positions"],
    pad_id: int,
    smoothing: float,
    parts: Parts,
) -> Float[Tensor, "positions"]:
    """Compute the losses, and overwrite both logits with the gradients of their sum."""
    num_positions, num_words = first.shape
    if not language.uses_kernels(first):
        return _plain_gradients(first, second, targets, pad_id, smoothing, parts)
    losses = torch.empty(num_positions, device=first.device, dtype=_full(first.dtype))
    _gradients_kernel[(num_positions,)](
        first, second, targets, losses, num_words, first.stride(0), pad_id, smoothing, *parts,
        BLOCK=min(VOCABULARY_BLOCK, next_power(num_words)), num_warps=NUM_WARPS,
    )  # fmt: skip
    return losses


def _plain_gradients(
    first: Tensor, second: Tensor, targets: Tensor, pad_id: int, smoothing: float, parts: Parts
) -> Tensor:
    """Compute the same with PyTorch's operations."""
    is_padding = (targets == pad_id)[:, None]
    share = smoothing / (first.size(1) - 1)
    log_p, log_q = (_log_probabilities(each, pad_id) for each in (first, second))
    p, q = log_p.exp(), log_q.exp()
    for each in (p, q):
        each[:, pad_id] = 0
    losses = torch.zeros_like(log_p[:, :1])
    for log, weight in ((log_p, parts.first), (log_q, parts.second)):
        if weight:
            true, spread = log.gather(1, targets[:, None]), log.sum(1, keepdim=True)
            losses -= weight * ((1 - smoothing) * true + share * spread)
    difference = log_p - log_q
    apart = (p * difference).sum(1, keepdim=True)
    apart_back = -(q * difference).sum(1, keepdim=True)
    losses += parts.apart * apart + parts.apart_back * apart_back
    first_grad = p * (parts.apart * (difference - apart) + (parts.first + parts.apart_back))
    first_grad.sub_(q, alpha=parts.apart_back)
    second_grad = q * ((parts.second + parts.apart) - parts.apart_back * (difference + apart_back))
    second_grad.sub_(p, alpha=parts.apart)
    for logits, grad, weight in (
        (first, first_grad, parts.first),
        (second, second_grad, parts.second),
    ):
        if weight:
            grad.sub_(weight * share)
            true = torch.full_like(losses, weight * (smoothing - 1))
            grad.scatter_add_(1, targets[:, None], true)
        grad[:, pad_id] = 0
        logits.copy_(grad.masked_fill_(is_padding, 0))
    return losses.masked_fill_(is_padding, 0)[:, 0]


def _log_probabilities(logits: Tensor, pad_id: int) -> Tensor:
    """Compute log-probabilities; zero for padding."""
    logits[:, pad_id] = float("-inf")
    logs = torch.log_softmax(logits, 1, dtype=_full(logits.dtype))
    logs[:, pad_id] = 0
    return logs


@jit
def _load_scores(row, words, is_word):
    """Load some scores; −∞ beyond the vocabulary and for padding."""
    return tl.load(row + words, mask=is_word, other=float("-inf")).to(tl.float32)


@jit
def _gradients_kernel(
    first, second, targets, losses, num_words, stride, pad_id, smoothing,
    first_weight, second_weight, apart_weight, back_weight, BLOCK: tl.constexpr,
):  # fmt: skip
    """Process one position: a pass for the sums, one for the divergences, one to write."""
    position = tl.program_id(0)
    one, other = first + position.to(tl.int64) * stride, second + position.to(tl.int64) * stride
    target = tl.load(targets + position)
    true_p = tl.load(one + target).to(tl.float32)
    true_q = tl.load(other + target).to(tl.float32)
    level_p, total_p, plain_p = -1e30, 0.0, 0.0
    level_q, total_q, plain_q = -1e30, 0.0, 0.0
    for start in range(0, num_words, BLOCK):
        words = start + tl.arange(0, BLOCK)
        is_word = (words < num_words) & (words != pad_id)
        scores = _load_scores(one, words, is_word)
        level = tl.maximum(level_p, tl.max(scores, 0))
        total_p = total_p * tl.exp(level_p - level) + tl.sum(tl.exp(scores - level), 0)
        plain_p += tl.sum(tl.where(is_word, scores, 0.0), 0)
        level_p = level
        scores = _load_scores(other, words, is_word)
        level = tl.maximum(level_q, tl.max(scores, 0))
        total_q = total_q * tl.exp(level_q - level) + tl.sum(tl.exp(scores - level), 0)
        plain_q += tl.sum(tl.where(is_word, scores, 0.0), 0)
        level_q = level
    sum_p, sum_q = level_p + tl.log(total_p), level_q + tl.log(total_q)
    apart, back = 0.0, 0.0
    for start in range(0, num_words, BLOCK):
        words = start + tl.arange(0, BLOCK)
        is_word = (words < num_words) & (words != pad_id)
        log_p = _load_scores(one, words, is_word) - sum_p
        log_q = _load_scores(other, words, is_word) - sum_q
        difference = tl.where(is_word, log_p - log_q, 0.0)
        apart += tl.sum(tl.exp(log_p) * difference, 0)
        back -= tl.sum(tl.exp(log_q) * difference, 0)
    share = smoothing / (num_words - 1)
    loss = first_weight * (sum_p - (1 - smoothing) * true_p - share * plain_p)
    loss += second_weight * (sum_q - (1 - smoothing) * true_q - share * plain_q)
    loss += apart_weight * apart + back_weight * back
    tl.store(losses + position, tl.where(target != pad_id, loss, 0.0))
    for start in range(0, num_words, BLOCK):
        words = start + tl.arange(0, BLOCK)
        is_word = (words < num_words) & (words != pad_id)
        counts = is_word & (target != pad_id)
        log_p = _load_scores(one, words, is_word) - sum_p
        log_q = _load_scores(other, words, is_word) - sum_q
        p, q, difference = tl.exp(log_p), tl.exp(log_q), tl.where(is_word, log_p - log_q, 0.0)
        ideal = share + tl.where(words == target, 1 - smoothing, 0.0)
        grad = p * (apart_weight * (difference - apart) + first_weight + back_weight)
        grad = tl.where(counts, grad - back_weight * q - first_weight * ideal, 0.0)
        tl.store(one + words, grad.to(first.dtype.element_ty), mask=words < num_words)
        grad = q * (second_weight + apart_weight - back_weight * (difference + back))
        grad = tl.where(counts, grad - apart_weight * p - second_weight * ideal, 0.0)
        tl.store(other + words, grad.to(second.dtype.element_ty), mask=words < num_words)


def _full(dtype: torch.dtype) -> torch.dtype:
    """Return float32 for half precision, else the type itself."""
    return torch.promote_types(dtype, torch.float32)
