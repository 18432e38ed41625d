"""Attention and explanations as JSON for the web page; attention weights as bytes."""

import base64
from collections.abc import Collection
from typing import Any

import numpy as np
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.output.alignments import Aligner
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.insight.ablation import Head, check_heads, list_heads, mask_heads, translate_without
from dragoman.insight.attention import START, Look, look_at
from dragoman.insight.explanation import CAPTIONS, Explanation
from dragoman.insight.word_groups import WordGroups, group_words
from dragoman.models.attention.observer import observed_attention
from dragoman.models.likelihood import token_log_probabilities
from dragoman.serving.sentence_translation import find_spans
from dragoman.serving.service_types import Span
from dragoman.shapes import Float, UInt8

# Sides of the queries and keys of each kind of attention.
_SIDES = {
    "encoder": ("source", "source"),
    "decoder": ("target", "read"),
    "cross": ("target", "source"),
    "gradient": ("target", "source"),
}


def look_for_page(
    translator: Translator,
    source: str,
    translation: str,
    *,
    off: Collection[Head] = (),
    beam_size: int | None = None,
) -> dict[str, Any]:
    """Compute the attention of a pair, and its translation with some heads off.

    Returns
    -------
    dict[str, Any]
        For JSON: sides with their subwords and words, maps, a remark, and with heads switched off
        the translation without them and the log-probability of the given one, with and without.
    """
    check_heads(translator, off)
    seen = look_at(translator, source, translation=translation, replace_weights=mask_heads(off))
    answer = write_look(translator, seen)
    if off:
        without = translate_without(translator, source, off, beam_size=beam_size)
        answer["without"] = {
            "heads": [list(each) for each in off],
            "translation": without.text,
            "logProbability": _score(translator, source, translation, ()),
            "logProbabilityWithout": _score(translator, source, translation, off),
        }
    return answer


def write_look(translator: Translator, seen: Look) -> dict[str, Any]:
    """Convert attention maps to JSON."""
    vocabularies = translator.folder.vocabularies
    source = group_words(vocabularies.source, seen.source)
    target = group_words(vocabularies.target, seen.translation)
    read = WordGroups(
        ids=target.ids,
        pieces=(START, *target.pieces[:-1]),
        words=(START, *target.words[:-1]),
        word_of=(0, *(word + 1 for word in target.word_of[:-1])),
    )
    sides = {"source": source, "target": target, "read": read}
    return {
        "source": seen.source,
        "translation": seen.translation,
        "remark": seen.remark,
        "numHeads": len(list_heads(translator.model)),
        "sides": {
            name: {"pieces": side.pieces, "words": side.words, "wordOf": side.word_of}
            for name, side in sides.items()
        },
        "maps": [
            {
                "kind": each.kind,
                "layer": each.layer,
                "numHeads": len(each.weights),
                "queries": _SIDES[each.kind][0],
                "keys": _SIDES[each.kind][1],
                "weights": base64.b64encode(to_bytes(each.weights).tobytes()).decode(),
            }
            for each in seen.maps
        ],
    }


def to_bytes(
    weights: Float[np.ndarray, "heads queries keys"],
) -> UInt8[np.ndarray, "heads queries keys"]:
    """Quantise attention weights to bytes so that rows still sum to 1.

    Returns
    -------
    UInt8[np.ndarray, "heads queries keys"]
        255ths: none is further from its weight than one of them, and those of a row sum to the
        nearest whole number to the row's sum. What is left over by rounding down goes to those
        that lost most.
    """
    scaled = weights.astype(np.float64) * 255
    whole = np.floor(scaled)
    missing = np.rint(scaled.sum(-1, keepdims=True)) - whole.sum(-1, keepdims=True)
    order = np.argsort(whole - scaled, axis=-1, kind="stable")
    ranks = np.argsort(order, axis=-1, kind="stable")
    return np.clip(whole + (ranks < missing), 0, 255).astype(np.uint8)


def align_for_page(translator: Translator, source: str, translation: str) -> dict[str, Any]:
    """Align the words of a pair and score each target word.

    Returns
    -------
    dict[str, Any]
        For JSON: spans of characters that belong together (none if the model has no attention),
        the target's words as the model reads them, and the probability of each.
    """
    words = group_words(translator.folder.vocabularies.target, translation)
    logs = np.zeros(len(words.words))
    np.add.at(logs, np.array(words.word_of), _token_logs(translator, source, words, ()))
    return {
        "alignment": _align(translator, source, translation),
        "words": words.words[:-1],
        "probabilities": np.exp(logs[:-1]).round(4).tolist(),
    }


def _align(translator: Translator, source: str, translation: str) -> tuple[Span, ...]:
    try:
        aligner = Aligner.of(translator)
    except OptionError:
        return ()
    return find_spans(source, translation, aligner.align([(source, translation)])[0])


def _score(translator: Translator, source: str, translation: str, off: Collection[Head]) -> float:
    """Compute the log-probability of a translation with some heads switched off."""
    words = group_words(translator.folder.vocabularies.target, translation)
    return round(float(_token_logs(translator, source, words, off).sum()), 4)


@torch.inference_mode()
def _token_logs(
    translator: Translator, source: str, target: WordGroups, off: Collection[Head]
) -> np.ndarray:
    vocabularies = translator.folder.vocabularies
    batch = make_batch(
        flatten([translator.encode(source)]), flatten([target.ids]), vocabularies.pad_id
    ).to(translator.device)
    with observed_attention(translator.model, mask_heads(off)):  # type: ignore[arg-type]
        return token_log_probabilities(translator.model, batch)[0].double().cpu().numpy()


def write_explanation(found: Explanation, num_masks: int) -> dict[str, Any]:
    """Convert an explanation to JSON.

    Returns
    -------
    dict[str, Any]
        Words, captions, and rows of numbers by three accounts, with the errors of the first.
    """
    attention = found.attention
    return {
        "source": found.source,
        "translation": found.translation,
        "sourceWords": found.source_words,
        "targetWords": found.target_words,
        "captions": CAPTIONS,
        "gradient": _round(found.gradient),
        "attention": None if attention is None else _round(attention),
        **write_progress(found, num_masks),
    }


def write_progress(found: Explanation, num_masks: int) -> dict[str, Any]:
    """Convert the changing part of an explanation to JSON."""
    rise = found.rise
    return {
        "rise": _round(rise.values),
        "errors": _round(rise.errors),
        "numMasks": rise.num_masks,
        "ofMasks": rise.num_masks if rise.is_exact else num_masks,
        "isExact": rise.is_exact,
    }


def _round(numbers: np.ndarray) -> list[list[float]]:
    """Round numbers to five digits; write those that are not finite as 0."""
    return np.where(np.isfinite(numbers), numbers, 0.0).round(5).tolist()
