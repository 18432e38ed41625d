"""Sentence-level GLEU (Wu et al., 2016), computed on the device."""

import torch
from torch import Tensor

from dragoman.shapes import Bool, Float, Int

LONGEST_GRAM = 4


def sentence_gleu(
    hypotheses: Int[Tensor, "rows length"],
    hypothesis_lengths: Int[Tensor, "rows"],
    references: Int[Tensor, "rows reference_length"],
    reference_lengths: Int[Tensor, "rows"],
) -> Float[Tensor, "rows"]:
    r"""Score hypotheses, each against its reference.

    Notes
    -----
    The smaller of precision and recall of all n-grams of one to four tokens (Wu et al., 2016):
    with m the number of n-grams that both have, an n-gram counting as often as it is in the one
    that has fewer, :math:`m / \max(\text{n-grams here}, \text{n-grams of the reference})`.

    No n-gram is ever spelt out: two are equal if those one shorter are and the tokens after them
    are. The k-th occurrence of an n-gram is matched if the reference has it at least k times.
    Time and memory grow with rows · length · (length + reference_length).
    """
    is_token = _is_token(hypotheses, hypothesis_lengths)
    is_reference_token = _is_token(references, reference_lengths)
    within_tokens = _equal(hypotheses, hypotheses, is_token, is_token)
    across_tokens = _equal(hypotheses, references, is_token, is_reference_token)
    within, across = within_tokens, across_tokens
    num_matches = torch.zeros_like(hypothesis_lengths)
    for size in range(1, LONGEST_GRAM + 1):
        if size > min(hypotheses.size(1), references.size(1)):
            break
        if size > 1:
            within = within[:, :-1, :-1] & within_tokens[:, size - 1 :, size - 1 :]
            across = across[:, :-1, :-1] & across_tokens[:, size - 1 :, size - 1 :]
        occurrence = within.tril().sum(2)
        is_matched = is_token[:, size - 1 :] & (occurrence <= across.sum(2))
        num_matches = num_matches + is_matched.sum(1)
    most = torch.maximum(count_grams(hypothesis_lengths), count_grams(reference_lengths))
    return torch.where(most > 0, num_matches / most.clamp(min=1), 1.0)


def count_grams(lengths: Int[Tensor, "rows"]) -> Int[Tensor, "rows"]:
    """Count the n-grams of one to four tokens."""
    sizes = torch.arange(LONGEST_GRAM, device=lengths.device)
    return (lengths[:, None] - sizes).clamp(min=0).sum(1)


def _is_token(ids: Tensor, lengths: Tensor) -> Bool[Tensor, "rows length"]:
    return torch.arange(ids.size(1), device=ids.device) < lengths[:, None]


def _equal(
    one: Tensor, other: Tensor, is_token: Tensor, is_other_token: Tensor
) -> Bool[Tensor, "rows length other_length"]:
    """Compare every token of one sentence with every token of another."""
    are_tokens = is_token[:, :, None] & is_other_token[:, None, :]
    return (one[:, :, None] == other[:, None, :]) & are_tokens
