"""Why, for the web page: an explanation that becomes surer while it is watched."""

from typing import Any

import numpy as np

from dragoman.insight.explanation import CAPTIONS, Explanation


def write_explanation(found: Explanation, num_masks: int) -> dict[str, Any]:
    """Write all of an explanation for JSON.

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
    """Write what changes from step to step."""
    rise = found.rise
    return {
        "rise": _round(rise.values),
        "errors": _round(rise.errors),
        "numMasks": rise.num_masks,
        "ofMasks": rise.num_masks if rise.is_exact else num_masks,
        "isExact": rise.is_exact,
    }


def _round(numbers: np.ndarray) -> list[list[float]]:
    """Write numbers with as many digits as anybody can see."""
    return np.where(np.isfinite(numbers), numbers, 0.0).round(5).tolist()
