"""Validation: loss, perplexity, and BLEU of translations by the search."""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch

from dragoman.data.batches import Batch, group_by_length, make_batch
from dragoman.data.store.store import PairStore
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import corpus_bleu, tokenizer_for
from dragoman.models.likelihood import mean_loss

VALID_BATCH_TOKENS = 8192
NUM_PROBES = 3


class Probe(NamedTuple):
    """A sentence whose translation is shown at every validation.

    Parameters
    ----------
    source : str
        The sentence.
    reference : str
        What a person made of it.
    translation : str
        What the model makes of it now.
    """

    source: str
    reference: str
    translation: str


@dataclass(frozen=True, kw_only=True)
class Validation:
    """The scores of a validation.

    Parameters
    ----------
    loss : float
        Mean negative log-likelihood of a target subword, in nats, without label smoothing.
    perplexity : float
        Its exponential.
    bleu : float
        BLEU of the translations.
    probes : tuple[Probe, ...]
        Translations to look at, of the same sentences in every validation of a run.
    """

    loss: float
    perplexity: float
    bleu: float
    probes: tuple[Probe, ...]

    def value(self, best_by: str) -> float:
        """Return the score by which validations are compared; higher is better."""
        return self.bleu if best_by == "bleu" else -self.loss


class Validator:
    """Scores a model on the validation pairs, translating as the finished model will.

    Parameters
    ----------
    translator : Translator
        The model as a translator.
    pairs : PairStore
        The validation pairs.
    beam_size : int
        Of the translations.
    precision : AbstractContextManager
        The arithmetic to validate in.

    Notes
    -----
    Suspicious translations are searched for again, as for users of the model. Early in
    training that may be every translation, which takes up to about as long again as the first
    search, seldom more; a model that has learnt something pays nothing.
    """

    def __init__(
        self,
        translator: Translator,
        pairs: PairStore,
        *,
        beam_size: int,
        precision: AbstractContextManager,
    ) -> None:
        self._translator = translator
        self._pairs = pairs
        self._options = replace(translator.options, beam_size=beam_size)
        self._precision = precision
        texts = [pairs.text(pair) for pair in range(len(pairs))]
        self._sources, self._references = ([text[side] for text in texts] for side in (0, 1))
        self._probe_rows = choose_probes(pairs.source_lengths.tolist())
        self._tokenizer = tokenizer_for(translator.folder.facts.target_language)

    def validate(self) -> Validation:
        """Validate the current weights."""
        model = self._translator.model
        model.eval()  # type: ignore[attr-defined]
        try:
            with torch.inference_mode(), self._precision:
                loss = mean_loss(model, self._batches())
                translations = [
                    each.text
                    for each in self._translator.translate_all(self._sources, options=self._options)
                ]
        finally:
            model.train()  # type: ignore[attr-defined]
        return Validation(
            loss=loss,
            perplexity=math.exp(min(loss, 700.0)),
            bleu=corpus_bleu(translations, [self._references], tokenize=self._tokenizer),
            probes=tuple(
                Probe(self._sources[row], self._references[row], translations[row])
                for row in self._probe_rows
            ),
        )

    def _batches(self) -> Iterator[Batch]:
        lengths = (self._pairs.source_lengths, self._pairs.target_lengths)
        for rows in group_by_length(*lengths, VALID_BATCH_TOKENS):
            pad_id = self._translator.folder.vocabularies.pad_id
            yield make_batch(*self._pairs.ids(rows), pad_id).to(self._translator.device)


def choose_probes(lengths: Sequence[int]) -> list[int]:
    """Choose a short, a medium and a long sentence.

    Returns
    -------
    list[int]
        Their places, the shortest first: the middles of the three thirds of the sentences in the
        order of their lengths; fewer if there are fewer sentences. The same for the same lengths.
    """
    order = sorted(range(len(lengths)), key=lambda row: lengths[row])
    middles = {(2 * third + 1) * len(order) // (2 * NUM_PROBES) for third in range(NUM_PROBES)}
    return [order[place] for place in sorted(middles) if order]
