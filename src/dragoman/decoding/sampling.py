"""Translations drawn at random, each as often as the model finds it probable."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.data.batches import Sequences
from dragoman.models.interface import TranslationModel, Vocabulary


class Samples(NamedTuple):
    """Several translations of each sentence, ended by the end symbol or cut off at the limit."""

    ids: Int[Tensor, "sentences samples length"]
    lengths: Int[Tensor, "sentences samples"]
    has_end: Bool[Tensor, "sentences samples"]


@torch.no_grad()
def sample_translations(
    model: TranslationModel,
    source: Sequences,
    vocabulary: Vocabulary,
    *,
    num_samples: int,
    limits: Int[Tensor, "sentences"],
    generator: torch.Generator | None = None,
) -> Samples:
    r"""Draw translations from the model.

    Parameters
    ----------
    model : TranslationModel
        Any model, not in training.
    source : Sequences
        The sentences, on the model's device.
    vocabulary : Vocabulary
        The special symbols.
    num_samples : int
        Translations of each sentence.
    limits : Int[Tensor, "sentences"]
        How many tokens a sentence's translations may have, the end symbol included.
    generator : torch.Generator | None
        Where chance comes from; None: PyTorch's own generator of the device.

    Returns
    -------
    Samples
        The tokens, the end symbol included where it was drawn, then padding. `lengths` counts
        tokens without padding.

    Notes
    -----
    Word after word is drawn from :math:`p(y_t \mid y_{<t}, x)`. A translation that reaches its
    limit is cut off there, and no end is added: so each is drawn with exactly the product of the
    probabilities of its tokens, which is what teacher forcing says of them. A sentence whose
    translations have all ended costs nothing more.
    """
    num_sentences, capacity = len(limits), int(limits.max())
    shape = (num_sentences, num_samples)
    ids = torch.full((*shape, capacity), vocabulary.pad_id, device=limits.device)
    lengths = limits[:, None].expand(shape).clone()
    has_end = torch.zeros(shape, dtype=torch.bool, device=limits.device)
    rows = torch.arange(num_sentences, device=limits.device)
    state = model.start(model.encode(source), capacity)
    newest = torch.full_like(limits[:, None], vocabulary.pad_id)
    for length in range(capacity):
        hidden, state = model.step(newest, state)
        if length == 0:
            state = state.reorder(rows.new_zeros(shape))
        words = _draw(model.output(hidden).float(), num_samples, generator)
        is_open = (length < limits[rows, None]) & ~has_end[rows]
        newest = words.where(is_open, vocabulary.pad_id)
        ids[rows, :, length] = newest
        ends = is_open & (words == vocabulary.eos_id)
        lengths[rows] = torch.where(ends, length + 1, lengths[rows])
        has_end[rows] |= ends
        goes_on = (~has_end[rows] & (length + 1 < limits[rows, None])).any(1)
        if not goes_on.all():
            kept = goes_on.nonzero().flatten()
            if not len(kept):
                break
            rows, newest, state = rows[kept], newest[kept], state.keep(kept)
    return Samples(ids[:, :, : int(lengths.max())], lengths, has_end)


def _draw(
    logits: Float[Tensor, "sentences beams vocabulary"],
    count: int,
    generator: torch.Generator | None,
) -> Int[Tensor, "sentences samples"]:
    """Draw a word for each hypothesis, or so many for the one that each sentence begins with."""
    probabilities = logits.softmax(-1)
    each = count // logits.size(1)
    drawn = probabilities.flatten(0, 1).multinomial(each, replacement=True, generator=generator)
    return drawn.view(len(logits), count)
