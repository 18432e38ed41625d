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
from dragoman.decoding.confidence import Calibration, write_calibration
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.translation import Translation
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import Score, build_metric, score_translations, tokenizer_for
from dragoman.evaluation.calibration import fit_confidence
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
    calibration : Calibration | None
        Of the model's confidence, if it was calibrated.
    """

    translations: tuple[str, ...]
    scores: tuple[Score, ...]
    perplexity: float
    calibration: Calibration | None = None

    def in_words(self) -> str:
        """Format the scores for people.

        Returns
        -------
        str
            A line for each score.
        """
        lines = [each.line() for each in self.scores]
        lines.append(f"perplexity {self.perplexity:.3f} per subword")
        return "\n".join([*lines, *([self.calibration.in_words()] if self.calibration else [])])

    def as_json(self) -> str:
        """Format the scores as JSON.

        Returns
        -------
        str
            JSON.
        """
        found: dict[str, Any] = {"scores": [asdict(each) for each in self.scores]}
        found["perplexity"] = self.perplexity
        if self.calibration:
            found["calibration"] = asdict(self.calibration)
        return json.dumps(found, indent=1)


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
    calibrate: bool = False,
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
    calibrate : bool
        Whether to fit the confidence in the model's translations on these lines, and write it into
        the model folder.

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
    loss = mean_loss(translator.model, make_batches(translator, sources, truths[0], options))
    return Evaluation(
        translations=translations,
        scores=tuple(scores),
        perplexity=math.exp(min(loss, 700.0)),
        calibration=_calibrate(translator, found, truths, source.name) if calibrate else None,
    )


def _calibrate(
    translator: Translator, found: Sequence[Translation], truths: Sequence[list[str]], name: str
) -> Calibration:
    """Fit the confidence and write it into the model folder."""
    folder = translator.folder
    calibration = fit_confidence(found, truths, f"lines of {name}")
    write_calibration(folder, calibration)
    return calibration


def make_batches(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    options: SearchOptions | None = None,
) -> Iterator[Batch]:
    """Encode a test set as batches of sentences of similar length.

    Parameters
    ----------
    translator : Translator
        Has the subwords, and the device to put them on.
    sources : Sequence[str]
        Sentences.
    references : Sequence[str]
        Their translations.
    options : SearchOptions | None
        With the target language of a model that has several; None: as the model folder says.

    Yields
    ------
    Batch
        For `dragoman.models.likelihood`.
    """
    vocabularies = translator.folder.vocabularies
    sides: list[list[Sequence[int]]] = [[translator.encode(each, options) for each in sources]]
    sides.append([[*ids, vocabularies.eos_id] for ids in vocabularies.target.encode(references)])
    lengths = [np.array([len(each) for each in side]) for side in sides]
    for rows in group_by_length(lengths[0], lengths[1], BATCH_TOKENS):
        source, target = (flatten([side[row] for row in rows]) for side in sides)
        yield make_batch(source, target, vocabularies.pad_id).to(translator.device)
