"""Samples of a translation at a temperature, and what the temperature does to the next word."""

import math
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.constraints.constraints import prepare_constraints
from dragoman.decoding.options import SamplingOptions
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError
from dragoman.insight.word_groups import END
from dragoman.shapes import Float

TEMPERATURES = tuple(tenths / 10 for tenths in range(1, 21))
"""For which distributions of the next word are told."""

NUM_WORDS = 12


class Sample(NamedTuple):
    """A translation that was drawn, and its log-probability at temperature 1."""

    text: str
    log_probability: float


class NextWords(NamedTuple):
    """What the model may say at one place of a translation.

    Attributes
    ----------
    ids : list[int]
        The most probable subwords, and last that which is said here.
    pieces : list[str]
        The same as text.
    logits : list[float]
        Their scores.
    normalisers : list[float]
        For each of `TEMPERATURES` T the logarithm of the sum of exp(score / T) over all subwords.
    """

    ids: list[int]
    pieces: list[str]
    logits: list[float]
    normalisers: list[float]


def draw_samples(
    translator: Translator, source: str, *, temperature: float, num_samples: int, seed: int
) -> list[Sample]:
    """Draw translations at random.

    Parameters
    ----------
    translator : Translator
        The model.
    source : str
        The sentence.
    temperature : float
        What scores are divided by: below 1 probable words are drawn yet more often.
    num_samples : int
        How many.
    seed : int
        The same seed draws the same samples.

    Returns
    -------
    list[Sample]
        In falling order of probability; some may be equal.
    """
    sampling = SamplingOptions(temperature=temperature, seed=seed)
    prepared = prepare_constraints(translator.folder.vocabularies.target, sampling=sampling)
    # What is odd about a sample is what a high temperature shall show.
    options = replace(translator.options, search_again=False)
    found = translator.translate(
        source, num_best=num_samples, options=options, constraints=prepared.constraints
    )
    drawn = [
        Sample(each.text, sum(each.log_probabilities)) for each in (found, *found.alternatives)
    ]
    return sorted(drawn, key=lambda each: -each.log_probability)


@torch.inference_mode()
def find_next_words(translator: Translator, source: str, translation: str) -> list[NextWords]:
    """Find the most probable subwords at every place of a translation."""
    vocabularies = translator.folder.vocabularies
    source_ids = translator.encode(source)
    if len(source_ids) == 1:
        raise DataError("the sentence is empty; give at least one word")
    said_ids = (*vocabularies.target.encode([translation])[0], vocabularies.eos_id)
    sides = (flatten([source_ids]), flatten([said_ids]))
    batch = make_batch(*sides, vocabularies.pad_id).to(translator.device)
    model = translator.model
    return read_next_words(translator, model.output(model.forward(batch).hidden)[0], said_ids)


def read_next_words(
    translator: Translator,
    logits: Float[Tensor, "places vocabulary"],
    said_ids: tuple[int, ...],
) -> list[NextWords]:
    """Read the most probable subwords off the scores of all, and what normalises these."""
    vocabulary = translator.folder.vocabularies.target
    logits = logits.double()
    logs = torch.stack([(logits / each).logsumexp(-1) for each in TEMPERATURES], 1).tolist()
    rows = []
    for scores, said, normalisers in zip(logits, said_ids, logs, strict=True):
        best = [each for each in scores.topk(min(NUM_WORDS, len(scores))).indices.tolist()
                if each != said and scores[each] > -math.inf]  # fmt: skip
        ids = [*best[: NUM_WORDS - 1], said]
        names = [END if each == vocabulary.eos_id else vocabulary.pieces([each])[0] for each in ids]
        rows.append(NextWords(ids, names, scores[ids].tolist(), normalisers))
    return rows
