"""Record what the attention heads of a model attend to in a translation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dragoman.data.batches import Batch, flatten, make_batch
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight.attribution import contribution_shares, gradient_times_input
from dragoman.insight.maps import ATTENTION_KINDS, GRADIENT, KINDS, AttentionMap
from dragoman.insight.word_groups import END
from dragoman.models.attention.observer import Replacement, observed_attention

START = "⟨start⟩"
NO_ATTENTION = "this model has no attention; shown is gradient × input instead"

Labels = Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]


@dataclass(frozen=True, kw_only=True)
class Look:
    """A sentence, its translation, and the attention maps between and within them.

    Parameters
    ----------
    source : str
        The sentence.
    translation : str
        Its translation.
    maps : tuple[AttentionMap, ...]
        One for each attention layer asked for, and one of gradients if asked for.
    remark : str
        What to tell a person who asked for something else; empty: nothing.
    """

    source: str
    translation: str
    maps: tuple[AttentionMap, ...]
    remark: str = ""

    @property
    def legend(self) -> str:
        """Explain how to read the maps."""
        has_gradient = any(each.kind == GRADIENT for each in self.maps)
        if has_gradient and len(self.maps) == 1:
            return "row: the word being produced; column: the source word's share in deciding it"
        legend = "row: the word being read or produced; column: the word it looks at"
        return f"{legend}, or depends on" if has_gradient else legend


def look_at(
    translator: Translator,
    source: str,
    *,
    translation: str | None = None,
    kinds: Sequence[str] = (),
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
    replace_weights: Replacement | None = None,
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
        Of ``encoder``, ``decoder``, ``cross`` and ``gradient``; none: all attention there is.
    layers : Sequence[int]
        Counted from 1; none: all.
    heads : Sequence[int]
        Counted from 1; none: all.
    replace_weights : Replacement | None
        Given an attention module's name and its weights, returns those to use instead, as
        `mask_heads` does; None: the model's own.

    Returns
    -------
    Look
        What was seen; of a model without attention gradients, and a remark that says so. The rows
        of the decoder's maps are the words as they are being produced; its columns are the words
        it has read by then, which begin with the start symbol.
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
    source_tokens = (*vocabularies.source.pieces(source_ids[:-1]), END)
    target_tokens = (*vocabularies.target.pieces(target_ids[:-1]), END)
    labels = {
        "encoder": (source_tokens, source_tokens),
        "decoder": (target_tokens, (START, *target_tokens[:-1])),
        "cross": (target_tokens, source_tokens),
        GRADIENT: (target_tokens, source_tokens),
    }
    wants_attention = not kinds or any(kind in ATTENTION_KINDS for kind in kinds)
    there = _see_attention(translator, batch, labels, replace_weights) if wants_attention else []
    maps = _choose(there, kinds, layers, heads) if there else []
    remark = NO_ATTENTION if wants_attention and not there else ""
    if GRADIENT in kinds or remark:
        if not there and (layers or heads):
            flag = "--layer" if layers else "--head"
            raise OptionError(f"{flag} means nothing for gradient × input; leave it out")
        maps.append(_see_gradient(translator, batch, labels))
    return Look(source=source, translation=translation, maps=tuple(maps), remark=remark)


def _see_attention(
    translator: Translator, batch: Batch, labels: Labels, replace_weights: Replacement | None
) -> list[AttentionMap]:
    """Run the model on a pair, and record all its attention."""
    model = translator.model
    with torch.inference_mode(), observed_attention(model, replace_weights) as seen:  # type: ignore[arg-type]
        model.forward(batch)
    maps = []
    for name, calls in seen.items():
        kind, layer = parse_module_name(name)
        # Recurrent decoders look once a word, others once a sentence.
        weights = torch.cat(calls, dim=2)[0]
        maps.append(_make_map(kind, layer, weights, labels))
    return maps


def _see_gradient(translator: Translator, batch: Batch, labels: Labels) -> AttentionMap:
    """Compute gradient × input of each target token for each source token."""
    signed = gradient_times_input(translator.model, batch)
    shares = contribution_shares(signed.double().cpu().numpy())
    return _make_map(GRADIENT, 1, torch.from_numpy(shares).unsqueeze(0), labels)


def _make_map(kind: str, layer: int, weights: Tensor, labels: Labels) -> AttentionMap:
    queries, keys = labels[kind]
    numbers = weights.float().cpu().numpy()
    return AttentionMap(kind=kind, layer=layer, weights=numbers, queries=queries, keys=keys)


def _choose(
    maps: Sequence[AttentionMap],
    kinds: Sequence[str],
    layers: Sequence[int],
    heads: Sequence[int],
) -> list[AttentionMap]:
    """Select the kinds, layers and heads requested, refusing those that do not exist."""
    there = sorted({each.kind for each in maps}, key=KINDS.index)
    for kind in kinds:
        if kind not in (*there, GRADIENT):
            raise OptionError(f"--kind is {kind}: this model has only {', '.join(there)} attention")
    maps = [each for each in maps if not kinds or each.kind in kinds]
    highest = max(each.layer for each in maps)
    if not all(1 <= layer <= highest for layer in layers):
        raise OptionError(f"--layer must be from 1 to {highest}")
    chosen = []
    for each in maps:
        if layers and each.layer not in layers:
            continue
        indices = [head - 1 for head in heads] or list(range(len(each.weights)))
        if not all(0 <= index < len(each.weights) for index in indices):
            given = ", ".join(map(str, heads))
            raise OptionError(f"--head is {given}: must be from 1 to {len(each.weights)}")
        chosen.append(replace(each, weights=each.weights[indices]))
    return chosen


def parse_module_name(name: str) -> tuple[str, int]:
    """Read kind and layer from a module's name such as ``decoder.3.cross_attention``.

    Parameters
    ----------
    name : str
        What the model calls the module.

    Returns
    -------
    tuple[str, int]
        “encoder”, “decoder” or “cross”, and the layer counted from 1.
    """
    parts = name.split(".")
    kind = "cross" if "cross_attention" in name else parts[0]
    if kind not in ATTENTION_KINDS:
        raise ValueError(f"attention “{name}” is neither in the encoder nor in the decoder")
    return kind, next((int(part) + 1 for part in parts if part.isdecimal()), 1)
