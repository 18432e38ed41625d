"""Sample translations from the model's distribution: temperature, top-k, nucleus."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import Sequences
from dragoman.decoding.constraints.constraints import draw_chance
from dragoman.decoding.options import SamplingOptions
from dragoman.decoding.search.candidates import Candidates, Extensions, StepContext
from dragoman.decoding.search.scorer import IMPOSSIBLE, WordScores, find_largest
from dragoman.models.interface import SearchedModel, Vocabulary
from dragoman.shapes import Bool, Float, Int

# Among so many of the most probable words the nucleus is looked for first.
_NUCLEUS = 256


class Samples(NamedTuple):
    """Several sampled translations of each sentence, ended or cut at the length limit."""

    ids: Int[Tensor, "sentences samples length"]
    lengths: Int[Tensor, "sentences samples"]
    has_end: Bool[Tensor, "sentences samples"]


@torch.no_grad()
def sample_translations(
    model: SearchedModel,
    source: Sequences,
    vocabulary: Vocabulary,
    *,
    num_samples: int,
    limits: Int[Tensor, "sentences"],
    generator: torch.Generator | None = None,
) -> Samples:
    r"""Sample translations from the model.

    Parameters
    ----------
    model : SearchedModel
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
    """Sample a token for each hypothesis, or several for the first one of each sentence."""
    probabilities = logits.softmax(-1)
    each = count // logits.size(1)
    drawn = probabilities.flatten(0, 1).multinomial(each, replacement=True, generator=generator)
    return drawn.view(len(logits), count)


class SamplingChooser:
    """Sample tokens in `search`: each hypothesis is an independent translation.

    Parameters
    ----------
    options : SamplingOptions
        Temperature, what is cut off, seed.
    sources : Sequence[Sequence[int]]
        The ids of each sentence, from which, with the seed, its chance is made.
    num_samples : int
        Translations of each sentence.
    capacity : int
        Words of a translation at most.
    eos_id : int
        The end symbol.
    device : torch.device
        Where the search goes on.

    Notes
    -----
    One number in [0, 1) decides about each word: the word in whose share of the probability it
    falls is drawn. The numbers are made from seed, sentence and number of the sample, so a
    sentence's samples are the same in any company and order, and equal sentences have equal ones.
    Log-probabilities are the model's own, whatever the temperature and however much is cut off.
    """

    def __init__(
        self,
        options: SamplingOptions,
        sources: Sequence[Sequence[int]],
        *,
        num_samples: int,
        capacity: int,
        eos_id: int,
        device: torch.device,
    ) -> None:
        self.num_beams = num_samples
        self._options = options
        self._eos_id = eos_id
        chance = [draw_chance(options.seed, ids, num_samples, capacity) for ids in sources]
        self._chance = torch.from_numpy(np.stack(chance)).to(device)

    def choose(self, scores: WordScores, context: StepContext) -> Extensions:
        """Sample one token for each hypothesis.

        Parameters
        ----------
        scores : WordScores
            Of all words.
        context : StepContext
            Where the search stands.

        Returns
        -------
        Extensions
            Every hypothesis with its word, ended or alive.
        """
        num_parents = scores.logits.size(1)
        chance = self._chance[:, :, context.length].unflatten(1, (num_parents, -1))
        words = draw_words(scores.logits, chance, self._options)
        if context.forced is not None:
            forced = context.forced[:, None, None]
            words = words.where(forced < 0, forced)
        totals = (scores.of(words) + context.alive.unsqueeze(2)).flatten(1)
        words = words.flatten(1)
        parents = torch.arange(self.num_beams, device=words.device) * num_parents // self.num_beams
        parents = parents.expand_as(words).contiguous()
        is_end = words == self._eos_id
        ended = Candidates(totals.where(is_end, IMPOSSIBLE), words, parents)
        return Extensions(ended, Candidates(totals.masked_fill(is_end, IMPOSSIBLE), words, parents))

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Drop all sentences but these.

        Parameters
        ----------
        sentences : Int[Tensor, "kept"]
            Their places.
        """
        self._chance = self._chance[sentences]


def draw_words(
    logits: Float[Tensor, "sentences beams vocabulary"],
    chance: Float[Tensor, "sentences beams draws"],
    options: SamplingOptions,
) -> Int[Tensor, "sentences beams draws"]:
    r"""Sample tokens from logits.

    Parameters
    ----------
    logits : Float[Tensor, "sentences beams vocabulary"]
        Scores of all words; −∞ is never drawn.
    chance : Float[Tensor, "sentences beams draws"]
        Numbers in [0, 1), one for each draw.
    options : SamplingOptions
        Temperature and what is cut off.

    Returns
    -------
    Int[Tensor, "sentences beams draws"]
        The words.

    Notes
    -----
    From :math:`p(y) \propto e^{s_y/T}`, restricted first to the `top_k` most probable words, then
    to the fewest most probable of these that have `top_p` of their probability together (Holtzman
    et al. 2020). A hypothesis that cannot go on draws anything.
    """
    words = None
    if options.top_k is not None and options.top_k < logits.size(2):
        logits, words = find_largest(logits, options.top_k)
    shares = (logits / options.temperature).softmax(-1)
    if options.top_p is not None and options.top_p < 1:
        shares, kept = _cut_off(shares, options.top_p)
        words = kept if words is None else words.gather(2, kept)
    sums = shares.cumsum(-1)
    places = torch.searchsorted(sums, chance * sums[:, :, -1:], right=True)
    places = places.clamp_(max=shares.size(2) - 1)
    return places if words is None else words.gather(2, places)


def _cut_off(shares: Tensor, top_p: float) -> tuple[Tensor, Tensor]:
    """Keep the smallest set of tokens with probability top_p, and return its mask."""
    largest, kept = find_largest(shares, _NUCLEUS)
    if not (largest.sum(-1) >= top_p).all():
        largest, kept = shares.sort(dim=-1, descending=True)
    before = largest.cumsum(-1) - largest
    return largest.masked_fill(before >= top_p, 0.0), kept
