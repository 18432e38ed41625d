"""Explain a translation by RISE, gradient × input and attention, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.output.unknown_words import source_attention
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError
from dragoman.insight.attribution import gradient_times_input
from dragoman.insight.rise import Importance, MaskedScorer, Rise
from dragoman.insight.word_groups import WordGroups, group_words
from dragoman.shapes import Float

NUM_MASKS = 300

RISE_CAPTION = (
    "By how much the log-probability of the word being written rises, on average, when the source "
    "word is there rather than left out, while a quarter of the other words are left out at "
    "random. It asks only what goes in and what comes out, so it means the same for every model; "
    "but it asks about sentences with holes, which the model was not trained on."
)
GRADIENT_CAPTION = (
    "How much the log-probability would change if the source word’s vector shrank a little, times "
    "its size. A first guess from one sentence as it stands: exact only where the model is linear, "
    "and of a word that the model is sure of hardly any gradient is left."
)
ATTENTION_CAPTION = (
    "Where the decoder looked while it wrote the word, the mean of all layers and heads. "
    "Attention is not an explanation: what is looked at may change nothing, and what changes "
    "everything may have been passed on by other words."
)
CAPTIONS = {"rise": RISE_CAPTION, "gradient": GRADIENT_CAPTION, "attention": ATTENTION_CAPTION}


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """The importance of each source word for each target word, by three methods.

    Parameters
    ----------
    source, translation : str
        The sentence and its translation.
    source_words : tuple[str, ...]
        The words that the columns stand for.
    target_words : tuple[str, ...]
        The words that the rows stand for; the last is the end symbol.
    rise : Importance
        Differences of log-probabilities, with their errors.
    gradient : Float[np.ndarray, "targets sources"]
        Gradient × input, signed.
    attention : Float[np.ndarray, "targets sources"] | None
        Mean attention; None: the model has none.
    """

    source: str
    translation: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    rise: Importance
    gradient: Float[np.ndarray, "targets sources"]
    attention: Float[np.ndarray, "targets sources"] | None


def explain(
    translator: Translator,
    source: str,
    *,
    translation: str | None = None,
    num_masks: int = NUM_MASKS,
    seed: int = 1,
) -> Explanation:
    """Explain a translation by three methods.

    Parameters
    ----------
    translator : Translator
        The model, which nobody else uses meanwhile.
    source : str
        The sentence.
    translation : str | None
        What to explain; None: the model's own translation.
    num_masks : int
        Of RISE.
    seed : int
        Of the masks.

    Returns
    -------
    Explanation
        What was found.
    """
    if translation is None:
        translation = translator.translate(source).text
    *_, last = explain_in_steps(
        translator, source, translation, num_masks=num_masks, seed=seed, block_size=256
    )
    return last


def explain_in_steps(
    translator: Translator,
    source: str,
    translation: str,
    *,
    num_masks: int = NUM_MASKS,
    seed: int = 1,
    block_size: int = 64,
) -> Iterator[Explanation]:
    """Explain a translation, yielding better and better estimates.

    Parameters
    ----------
    translator : Translator
        The model, which nobody else uses while a step is made.
    source : str
        The sentence.
    translation : str
        What to explain.
    num_masks : int
        Of RISE.
    seed : int
        Of the masks.
    block_size : int
        Masks that are tried in a step.

    Yields
    ------
    Explanation
        What is known by then.
    """
    vocabularies = translator.folder.vocabularies
    sides = (
        group_words(vocabularies.source, source),
        group_words(vocabularies.target, translation),
    )
    if len(sides[1].words) < 2:
        raise DataError("the translation to explain is empty; give at least one word")
    scorer = MaskedScorer.of(translator, source, translation)
    rise = Rise(scorer, num_masks, seed=seed)
    gradient, attention = _see_inside(translator, *sides)
    for importance in rise.estimates(block_size):
        yield Explanation(
            source=source,
            translation=translation,
            source_words=sides[0].words[:-1],
            target_words=sides[1].words,
            rise=importance,
            gradient=gradient,
            attention=attention,
        )


def merge_words(
    places: Float[np.ndarray, "target_tokens source_tokens"],
    source: WordGroups,
    target: WordGroups,
    *,
    is_averaged: bool,
) -> Float[np.ndarray, "targets sources"]:
    """Sum or average values of subwords into values of words.

    Parameters
    ----------
    places : Float[np.ndarray, "target_tokens source_tokens"]
        Numbers between subwords.
    source, target : WordGroups
        The words that they are of.
    is_averaged : bool
        Whether a target word gets the mean of its subwords: so it is with shares, while changes of
        log-probability add up.

    Returns
    -------
    Float[np.ndarray, "targets sources"]
        Numbers between words, the source's end symbol left out.
    """
    merged = np.zeros((len(target.words), len(source.words)))
    np.add.at(merged, (np.array(target.word_of)[:, None], np.array(source.word_of)), places)
    if is_averaged:
        merged /= np.bincount(target.word_of)[:, None]
    return merged[:, :-1]


def _see_inside(
    translator: Translator, source: WordGroups, target: WordGroups
) -> tuple[np.ndarray, np.ndarray | None]:
    """Compute gradient × input and mean attention between words."""
    pad_id = translator.folder.vocabularies.pad_id
    # Whoever calls may compute without gradients.
    with torch.inference_mode(mode=False):
        batch = make_batch(flatten([source.ids]), flatten([target.ids]), pad_id)
        batch = batch.to(translator.device)
        signed = gradient_times_input(translator.model, batch).double().cpu().numpy()
    weights = source_attention(translator.model, batch)
    gradient = merge_words(signed, source, target, is_averaged=False)
    if weights is None:
        return gradient, None
    seen = weights[0].double().numpy()
    return gradient, merge_words(seen, source, target, is_averaged=True)
