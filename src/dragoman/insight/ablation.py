"""Mask attention heads, to see whether a translation needs them."""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.translation import Translation
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.insight.attention import parse_module_name
from dragoman.models.attention.observer import Replacement, observed_attention


class Head(NamedTuple):
    """An attention head: its kind, and its layer and number counted from 1."""

    kind: str
    layer: int
    head: int


def mask_heads(heads: Collection[Head]) -> Replacement | None:
    """Make a function that zeroes the weights of some heads while attention is observed.

    Returns
    -------
    Replacement | None
        For `observed_attention`: the weights of these heads become zero, so that they add nothing
        to what their layer says. None if there are none.
    """
    if not heads:
        return None
    off: dict[tuple[str, int], list[int]] = {}
    for each in heads:
        off.setdefault((each.kind, each.layer), []).append(each.head - 1)

    def replace_weights(name: str, weights: Tensor) -> Tensor:
        indices = off.get(parse_module_name(name))
        if indices is None:
            return weights
        keeps = torch.ones(weights.size(1), device=weights.device, dtype=weights.dtype)
        keeps[indices] = 0
        return weights * keeps[:, None, None]

    return replace_weights


def check_heads(translator: Translator, heads: Collection[Head]) -> None:
    """Refuse heads that a model does not have."""
    there = list_heads(translator.model)
    for each in heads:
        if each not in there:
            raise OptionError(
                f"this model has no head {each.head} of {each.kind} attention in layer {each.layer}"
            )


def list_heads(model: object) -> list[Head]:
    """List the attention heads of a model."""
    assert isinstance(model, nn.Module)
    heads = []
    for name, module in model.named_modules():
        if hasattr(module, "observer"):
            kind, layer = parse_module_name(name)
            count = int(getattr(module, "num_heads", 1))
            heads += [Head(kind, layer, number + 1) for number in range(count)]
    return heads


def translate_without(
    translator: Translator,
    source: str,
    heads: Collection[Head],
    *,
    beam_size: int | None = None,
) -> Translation:
    """Translate with some heads masked.

    Parameters
    ----------
    translator : Translator
        A translator that nobody else uses meanwhile; the model itself translates, not the engine
        that was rebuilt of it.
    source : str
        The text.
    heads : Collection[Head]
        The heads to switch off.
    beam_size : int | None
        Hypotheses of the search; None: as the model folder says.

    Returns
    -------
    Translation
        The best translation, taken as it is found: babble is what switching heads off may show.
    """
    check_heads(translator, heads)
    plain = Translator(translator.folder, translator.model, translator.device)
    options: SearchOptions = replace(plain.options, search_again=False)
    if beam_size is not None:
        options = replace(options, beam_size=beam_size)
    with observed_attention(translator.model, mask_heads(heads)):  # type: ignore[arg-type]
        return plain.translate(source, options=options)
