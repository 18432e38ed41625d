"""Replace unknown words by the translation of the source word they attend to (“PosUnk”)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, flatten, make_batch
from dragoman.models.attention.observer import observed_attention
from dragoman.models.interface import TranslationModel
from dragoman.shapes import Float
from dragoman.text.dictionary import Dictionary
from dragoman.text.normalise import normalise
from dragoman.text.vocabulary import Vocabularies
from dragoman.text.word_vocabulary import Words, split_words

SOURCE_ATTENTION = "cross_attention"
BATCH_PLACES = 4096


class Draft(NamedTuple):
    """A source text, and a translation with unknown words."""

    source: str
    tokens: Sequence[int]


def replace_unknown(
    model: TranslationModel,
    vocabularies: Vocabularies,
    drafts: Sequence[Draft],
    device: torch.device,
) -> list[str]:
    """Write translations with each unknown word replaced.

    Notes
    -----
    An unknown word is replaced by the dictionary's translation of the source word that it attends
    to most, or, where the dictionary has none, by that source word as it is written in the text
    (Luong et al. 2015; Jean et al. 2015): names and numbers are copied. Attention is that of all
    layers and heads on average, from one pass over the finished translation; the end symbol does
    not count as a word. The space before a copied word is the source's, and never missing between
    two words. A model without attention to the source words cannot point at any: its unknown words
    stay visible as “⟨unk⟩”.
    """
    source, target = vocabularies.source, vocabularies.target
    assert isinstance(source, Words)
    assert isinstance(target, Words)
    texts = target.decode([draft.tokens for draft in drafts])
    unknown = [index for index, draft in enumerate(drafts) if target.unk_id in draft.tokens]
    for indices in _batches(unknown, drafts):
        chosen = [drafts[index] for index in indices]
        encoded = source.encode([draft.source for draft in chosen])
        batch = make_batch(
            flatten([(*ids, source.eos_id) for ids in encoded]),
            flatten([(*draft.tokens, target.eos_id) for draft in chosen]),
            vocabularies.pad_id,
        )
        attention = source_attention(model, batch.to(device))
        if attention is None:
            break
        for index, draft, weights in zip(indices, chosen, attention, strict=True):
            texts[index] = _rewrite(draft, weights, target, vocabularies.dictionary)
    return texts


def source_attention(
    model: TranslationModel, batch: Batch
) -> Float[Tensor, "batch targets sources"] | None:
    """Compute the attention of given translations to the source.

    Returns
    -------
    Float[Tensor, "batch targets sources"] | None
        The mean over all heads of all modules with “cross_attention” in their name, on the CPU;
        row i is the attention while word i is being produced. None if the model has no such
        module that looks at the source words.
    """
    maps = list(layer_attention(model, batch).values())
    return torch.stack(maps).mean(0).cpu() if maps else None


def layer_attention(
    model: TranslationModel, batch: Batch
) -> dict[str, Float[Tensor, "batch targets sources"]]:
    """Compute the attention of each layer of given translations to the source.

    Returns
    -------
    dict[str, Float[Tensor, "batch targets sources"]]
        For each module with “cross_attention” in its name that looks at the source words the mean
        over its heads; row i is the attention while word i is being produced.
    """
    assert isinstance(model, nn.Module)
    with torch.inference_mode(), observed_attention(model) as seen:
        model.forward(batch)
    shape = (*batch.target.ids.shape, batch.source.ids.size(1))
    maps = {}
    for name, calls in seen.items():
        if SOURCE_ATTENTION in name:
            weights = torch.cat(calls, dim=2).float().mean(1)
            if weights.shape == shape:
                maps[name] = weights
    return maps


def _rewrite(draft: Draft, attention: Tensor, target: Words, dictionary: Dictionary | None) -> str:
    """Write one translation, given its attention."""
    words = split_words(draft.source)
    attended = attention[:, : len(words)].argmax(-1).tolist()
    tokens = target.tokens(draft.tokens)
    for place, token_id in enumerate(draft.tokens):
        if token_id == target.unk_id:
            before = tokens[place - 1] if place else ""
            tokens[place] = _translate(words[attended[place]], before, dictionary)
    return normalise("".join(tokens))


def _translate(token: str, before: str, dictionary: Dictionary | None) -> str:
    """Translate or copy a source token, with a space after a word."""
    found = dictionary.translate(token.removeprefix(" ")) if dictionary else None
    written = token if found is None else found
    is_joined = len(split_words(before + written)) == len(split_words(before))
    return f" {written}" if before and is_joined else written


def _batches(indices: Sequence[int], drafts: Sequence[Draft]) -> Iterator[list[int]]:
    """Batch drafts of similar length, since attention grows with the product of lengths."""

    def length(index: int) -> int:
        return max(len(drafts[index].tokens), len(split_words(drafts[index].source))) + 1

    order = sorted(indices, key=length, reverse=True)
    while order:
        size = max(1, BATCH_PLACES // length(order[0]))
        yield order[:size]
        order = order[size:]
