"""Evaluate a model on a test set."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.batches import Batch, flatten, group_by_length, make_batch
from dragoman.data.corpus import read_aligned
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import Score, build_metric, score_translations, tokenizer_for
from dragoman.models.likelihood import mean_loss

BATCH_TOKENS = 8192


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The scores of a model.

    Parameters
    ----------
    translations : tuple[str, ...]
        What it translated.
    scores : tuple[Score, ...]
        Of these translations.
    perplexity : float
        Of the first reference, per subword.
    """

    translations: tuple[str, ...]
    scores: tuple[Score, ...]
    perplexity: float

    def in_words(self) -> str:
        """Format the scores for people.

        Returns
        -------
        str
            A line for each score.
        """
        lines = [each.line() for each in self.scores]
        return "\n".join([*lines, f"perplexity {self.perplexity:.3f} per subword"])

    def as_json(self) -> str:
        """Format the scores as JSON.

        Returns
        -------
        str
            JSON.
        """
        scores = [asdict(each) for each in self.scores]
        return json.dumps({"scores": scores, "perplexity": self.perplexity}, indent=1)


def evaluate_model(
    model: Path,
    source: Path,
    references: Sequence[Path],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    lowercase: bool = False,
    tokenize: str | None = None,
    device: str = "auto",
    search: Mapping[str, Any] | None = None,
) -> Evaluation:
    """Translate a test set and score it against its references.

    Parameters
    ----------
    model : Path
        A model folder.
    source : Path
        The sentences to translate.
    references : Sequence[Path]
        Files of reference translations.
    metrics : Sequence[str]
        Of ``bleu``, ``chrf`` and ``ter``.
    lowercase : bool
        Whether case is ignored.
    tokenize : str | None
        sacreBLEU's tokeniser; None: the customary one of the target language.
    device : str
        ``auto``, ``cpu``, ``cuda`` or ``mps``.
    search : Mapping[str, Any] | None
        Options of the search that differ from the model folder's.

    Returns
    -------
    Evaluation
        Scores with signatures and intervals, and the perplexity.
    """
    for metric in metrics:
        build_metric(metric, lowercase=lowercase, tokenize=tokenize)
    names = ["source"] + ["reference"] * len(references)
    sources, *truths = read_aligned([source, *references], names)
    translator = Translator.load(model, device)
    options = translator.options_with(search or {})
    found = translator.translate_all(sources, options=options)
    translations = tuple(each.text for each in found)
    if tokenize is None:
        tokenize = tokenizer_for(translator.folder.facts.target_language)
    scores = score_translations(
        translations, truths, metrics=metrics, lowercase=lowercase, tokenize=tokenize
    )
    loss = mean_loss(translator.model, _batches(translator, sources, truths[0]))
    return Evaluation(
        translations=translations, scores=tuple(scores), perplexity=math.exp(min(loss, 700.0))
    )


def _batches(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> Iterator[Batch]:
    """Yield the test set as batches of similar length."""
    vocabularies = translator.folder.vocabularies
    sides = []
    for subwords, texts in zip(vocabularies, (sources, references), strict=True):
        sides.append([[*ids, vocabularies.eos_id] for ids in subwords.encode(texts)])
    lengths = [np.array([len(each) for each in side]) for side in sides]
    for rows in group_by_length(lengths[0], lengths[1], BATCH_TOKENS):
        source, target = (flatten([side[row] for row in rows]) for side in sides)
        yield make_batch(source, target, vocabularies.pad_id).to(translator.device)
