"""How good the model is now: loss, perplexity, and BLEU of real translations."""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import torch

from dragoman.data.batches import Batch, group_by_length, make_batch
from dragoman.data.store import PairStore
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import corpus_bleu, tokenizer_for
from dragoman.models.likelihood import mean_loss

VALID_BATCH_TOKENS = 8192


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What a validation found.

    Parameters
    ----------
    loss : float
        Mean negative log-likelihood of a target subword, in nats, without label smoothing.
    perplexity : float
        Its exponential.
    bleu : float
        BLEU of the translations.
    sample : tuple[str, str, str]
        A source, its reference and its translation.
    """

    loss: float
    perplexity: float
    bleu: float
    sample: tuple[str, str, str]

    def value(self, best_by: str) -> float:
        """Return what the best validation has most of.

        Parameters
        ----------
        best_by : str
            ``bleu`` or ``loss``.

        Returns
        -------
        float
            Higher is better.
        """
        return self.bleu if best_by == "bleu" else -self.loss


class Validator:
    """Scores a model on the pairs set aside for it, as the translator that it will be.

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
    What looks wrong is searched for once more, as whoever uses the model will have it. Early in
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
        self._tokenizer = tokenizer_for(translator.folder.facts.target_language)

    def validate(self, sample_index: int = 0) -> Validation:
        """Validate the model as it is.

        Parameters
        ----------
        sample_index : int
            Which translation to show.

        Returns
        -------
        Validation
            What was found. The model is in training again afterwards.
        """
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
        shown = sample_index % len(translations)
        return Validation(
            loss=loss,
            perplexity=math.exp(min(loss, 700.0)),
            bleu=corpus_bleu(translations, [self._references], tokenize=self._tokenizer),
            sample=(self._sources[shown], self._references[shown], translations[shown]),
        )

    def _batches(self) -> Iterator[Batch]:
        lengths = (self._pairs.source_lengths, self._pairs.target_lengths)
        for rows in group_by_length(*lengths, VALID_BATCH_TOKENS):
            pad_id = self._translator.folder.vocabularies.pad_id
            yield make_batch(*self._pairs.ids(rows), pad_id).to(self._translator.device)
