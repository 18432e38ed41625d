"""The words of several sentences' short-lists, scored together."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from dragoman.decoding.products import Product
from dragoman.decoding.short_list import ShortList


class Selection(NamedTuple):
    """The words that some translations may need, in rising order; whose, and what scores them."""

    words: Int[Tensor, "selected"]
    allowed: Bool[Tensor, "sentences selected"]
    output: Product


def select(
    short_list: ShortList,
    sentences: Sequence[Sequence[int]],
    output_for: Callable[[Tensor], Product],
) -> Selection:
    """Choose the words for some sentences.

    Parameters
    ----------
    short_list : ShortList
        What may be said.
    sentences : Sequence[Sequence[int]]
        Their subwords.
    output_for : Callable[[Tensor], Product]
        Makes what scores some words.

    Returns
    -------
    Selection
        All words that one of them may need, and who may need which: a sentence may say the same in
        whatever company it is translated.
    """
    rows = [short_list.words_of(each) for each in sentences]
    words = np.unique(np.concatenate(rows))
    allowed = np.zeros((len(rows), len(words)), np.bool_)
    for row, own in zip(allowed, rows, strict=True):
        row[np.searchsorted(words, own)] = True
    chosen = torch.from_numpy(words)
    return Selection(chosen, torch.from_numpy(allowed), output_for(chosen))
