"""What the heads of a model look at while it translates a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight.maps import AttentionMap
from dragoman.models.attention.observer import observed_attention

KINDS = ("encoder", "decoder", "cross")
END = "⟨end⟩"
START = "⟨start⟩"


@dataclass(frozen=True, kw_only=True)
class Look:
    """A sentence, its translation, and the attention between and within them.

    Parameters
    ----------
    source : str
        The sentence.
    translation : str
        Its translation.
    maps : tuple[AttentionMap, ...]
        One for each attention layer asked for.
    """

    source: str
    translation: str
    maps: tuple[AttentionMap, ...]


def look_at(
    translator: Translator,
    source: str,
    *,
    translation: str | None = None,
    kinds: Sequence[str] = KINDS,
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> Look:
    """Translate a sentence and record the attention of every layer and head.

    Parameters
    ----------
    translator : Translator
        The model.
    source : str
        The sentence.
    translation : str | None
        What to make the model say; None: its own translation.
    kinds : Sequence[str]
        Of ``encoder``, ``decoder`` and ``cross``.
    layers : Sequence[int]
        Counted from 1; none: all.
    heads : Sequence[int]
        Counted from 1; none: all.

    Returns
    -------
    Look
        What was seen. The rows of the decoder's maps are the words as they are being produced;
        its columns are the words it has read by then, which begin with the start symbol.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise OptionError(f"--kind is “{kind}”; give one of {', '.join(KINDS)}")
    source_ids = translator.encode(source)
    if len(source_ids) == 1:
        raise DataError("the sentence to look at is empty; give at least one word")
    if translation is None:
        translation = translator.translate(source).text
    vocabularies = translator.folder.vocabularies
    target_ids = (*vocabularies.target.encode([translation])[0], vocabularies.eos_id)
    sides = (flatten([source_ids]), flatten([target_ids]))
    batch = make_batch(*sides, vocabularies.pad_id).to(translator.device)
    with torch.inference_mode(), observed_attention(translator.model) as seen:  # type: ignore[arg-type]
        translator.model.forward(batch)
    source_tokens = (*vocabularies.source.pieces(source_ids[:-1]), END)
    target_tokens = (*vocabularies.target.pieces(target_ids[:-1]), END)
    labels = {
        "encoder": (source_tokens, source_tokens),
        "decoder": (target_tokens, (START, *target_tokens[:-1])),
        "cross": (target_tokens, source_tokens),
    }
    maps = []
    for name, calls in seen.items():
        kind, layer = _place_of(name)
        if kind not in kinds or (layers and layer not in layers):
            continue
        weights = calls[0][0].float().cpu().numpy()
        chosen = [head - 1 for head in heads] or list(range(len(weights)))
        if not all(0 <= head < len(weights) for head in chosen):
            given = ", ".join(map(str, heads))
            raise OptionError(f"--head is {given}: must be from 1 to {len(weights)}")
        queries, keys = labels[kind]
        maps.append(
            AttentionMap(
                kind=kind, layer=layer, weights=weights[chosen], queries=queries, keys=keys
            )
        )
    if not maps:
        known = sorted({_place_of(name)[1] for name in seen})
        raise OptionError(f"--layer must be from 1 to {known[-1]}")
    return Look(source=source, translation=translation, maps=tuple(maps))


def _place_of(name: str) -> tuple[str, int]:
    """Read the kind and the layer off a module's name such as ``decoder.3.cross_attention``."""
    stack, index, attention = name.split(".")
    kind = "cross" if attention == "cross_attention" else stack
    return kind, int(index) + 1
