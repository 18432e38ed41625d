"""Word alignments from a model's attention to the source."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine
from dragoman.decoding.translation import TranslatedPart, Translation
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.shapes import Float
from dragoman.text.normalise import normalise
from dragoman.text.specification import SPACE_MARK
from dragoman.text.vocabulary import TextVocabulary, Vocabularies

if TYPE_CHECKING:  # PyTorch, which a compiled engine does not need
    import torch

    from dragoman.models.interface import TranslationModel

# Places of attention that are looked at together: source × target tokens.
BATCH_PLACES = 1 << 18
# A source word that gets less in all, where one target word gives 1, was left untranslated.
LEAST_ATTENTION = 0.1

Link = tuple[int, int]


class WordTokens(NamedTuple):
    """The tokens of a text, and the index of the word that each belongs to."""

    ids: list[int]
    words: list[int]
    num_words: int


class Aligner:
    """Aligns texts with their translations by cross-attention.

    Parameters
    ----------
    model : TranslationModel | CpuEngine
        A model with attention to the source, not in training, that nobody else uses meanwhile; or
        the engine that translates.
    vocabularies : Vocabularies
        Its subwords.
    device : torch.device
        Where it is.
    max_length : int | None
        The longest sequence that it can read; None: any.

    Notes
    -----
    Where the search has told what words attended to, that is taken; else source and translation are
    read once more, all words at a time. The weight between two words is
    the mean over all layers and heads of the attention while the target word is being produced,
    summed over subwords, the end symbol left out. As a share of what the target word gives to all
    source words, times the share in what the source word gets from all target words, it is high
    where both agree. Each target word is linked to the source word of the highest such product,
    and each source word that is then without a link to the target word of its highest, unless it
    got hardly any attention at all.
    ``benchmarks/alignments.py`` measures this beside single layers, and beside attention while the
    target word is being read (Chen et al., 2020), on a corpus whose true alignment is known.
    """

    def __init__(
        self,
        model: "TranslationModel | CpuEngine",
        vocabularies: Vocabularies,
        device: "torch.device | str",
        max_length: int | None = None,
    ) -> None:
        if not _can_be_observed(model):
            raise OptionError(
                f"--alignments: {type(model).__name__} has no attention to the source words by "
                "which to align; leave it out"
            )
        self._model = model
        self._vocabularies = vocabularies
        self._device = device
        self._max_length = max_length

    @staticmethod
    def of(translator: Translator) -> "Aligner":
        """Make an aligner for a translator's model.

        Parameters
        ----------
        translator : Translator
            The translator; what is looked at is the compiled engine, or the model as it was trained
            where another engine translates.

        Returns
        -------
        Aligner
            The aligner.
        """
        folder = translator.folder
        max_length = folder.options.max_length
        model = translator.cpu_engine or translator.model
        device = "cpu" if translator.cpu_engine else translator.device
        return Aligner(model, folder.vocabularies, device, max_length)

    def align_translations(
        self, texts: Sequence[str], translations: Sequence[Translation]
    ) -> list[frozenset[Link]]:
        """Align texts with the translations that the translator gave.

        Parameters
        ----------
        texts : Sequence[str]
            The texts.
        translations : Sequence[Translation]
            Theirs; those of long texts piece by piece.

        Returns
        -------
        list[frozenset[Link]]
            For each text pairs (source word index, target word index), counted from 0 among the
            words that white space parts.
        """
        parts = [part for each in translations for part in each.parts]
        known = [self._link_attended(part) for part in parts]
        pairs = [
            (part.source, part.text)
            for part, found in zip(parts, known, strict=True)
            if found is None
        ]
        others = iter(self.align(pairs))
        links = iter([next(others) if found is None else found for found in known])
        return [
            frozenset(
                (source + first_source, target + first_target)
                for first_source, first_target in _first_words(text, translation)
                for source, target in next(links)
            )
            for text, translation in zip(texts, translations, strict=True)
        ]

    def align(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        layer: str | None = None,
        is_shifted: bool = False,
    ) -> list[frozenset[Link]]:
        """Align texts with given translations.

        Parameters
        ----------
        pairs : Sequence[tuple[str, str]]
            Source and target, each short enough for the model.
        layer : str | None
            The attention module to use; None: all of them, and with a compiled engine always.
        is_shifted : bool
            Whether to use the attention while a target word is being read, not produced.

        Returns
        -------
        list[frozenset[Link]]
            For each pair (source word index, target word index), counted from 0 among the words
            that white space parts.
        """
        room = None if self._max_length is None else self._max_length - 1
        source, target = (
            [_cut(token_words(vocabulary, pair[side]), room) for pair in pairs]
            for side, vocabulary in enumerate(self._vocabularies)
        )
        found: list[frozenset[Link]] = [frozenset()] * len(pairs)
        for rows in _batches(source, target):
            sides = ([source[row] for row in rows], [target[row] for row in rows])
            weights: Sequence[np.ndarray]
            if isinstance(self._model, CpuEngine):
                assert layer is None
                weights = self._model.attend(*self._end(sides))
            else:
                maps = self._attention(*sides)
                chosen = list(maps.values()) if layer is None else [maps[layer]]
                weights = list(np.sum(chosen, axis=0))
            for row, one, other, each in zip(rows, *sides, weights, strict=True):
                first = 1 if is_shifted else 0
                places = each[first : first + len(other.ids), : len(one.ids)]
                found[row] = link_words(_merge(places, one, other))
        return found

    def _link_attended(self, part: TranslatedPart) -> frozenset[Link] | None:
        """Align a part by the attention recorded in search; None: none was recorded."""
        if part.attended is None or self._vocabularies.is_closed:  # words were replaced
            return None
        source = word_tokens(self._vocabularies.source, part.source, part.attended.source)
        target = word_tokens(self._vocabularies.target, part.text, part.attended.target)
        if source is None or target is None:
            return None
        if not target.ids:
            return frozenset()
        return link_words(_merge(part.attended.weights, source, target))

    def layers(self) -> list[str]:
        """Name the attention modules.

        Returns
        -------
        list[str]
            In the order of the model.
        """
        text = WordTokens([self._vocabularies.eos_id], [0], 1)
        return list(self._attention([text], [text]))

    def _attention(
        self, source: Sequence[WordTokens], target: Sequence[WordTokens]
    ) -> dict[str, Float[np.ndarray, "batch targets sources"]]:
        """Compute the cross-attention of some pairs."""
        import torch

        from dragoman.data.batches import flatten, make_batch
        from dragoman.decoding.output.unknown_words import layer_attention

        assert not isinstance(self._model, CpuEngine)
        sides = [flatten(side) for side in self._end((source, target))]
        batch = make_batch(sides[0], sides[1], self._vocabularies.pad_id)
        maps = layer_attention(self._model, batch.to(torch.device(self._device)))
        return {name: each.cpu().numpy() for name, each in maps.items()}

    def _end(self, sides: Iterable[Sequence[WordTokens]]) -> list[list[tuple[int, ...]]]:
        """Append the end symbol to texts."""
        eos_id = self._vocabularies.eos_id
        return [[(*each.ids, eos_id) for each in side] for side in sides]


def token_words(vocabulary: TextVocabulary, text: str) -> WordTokens:
    """Find the word index of each token of a text.

    Parameters
    ----------
    vocabulary : TextVocabulary
        Turns text into tokens.
    text : str
        The text.

    Returns
    -------
    WordTokens
        The tokens and the index of the word that each is of, among those that white space parts.

    Notes
    -----
    Words of which normalisation leaves nothing have no tokens. A foreign vocabulary may find other
    words in a text than white space parts; then the words are encoded one by one.
    """
    ids = vocabulary.encode([text])[0]
    found = word_tokens(vocabulary, text, ids)
    if found is not None:
        return found
    spaced = text.split()
    encoded = vocabulary.encode(spaced)
    words = [index for index, each in enumerate(encoded) for _ in each]
    return WordTokens([token_id for each in encoded for token_id in each], words, len(spaced))


def word_tokens(vocabulary: TextVocabulary, text: str, ids: Sequence[int]) -> WordTokens | None:
    """Find the word index of each of given tokens of a text.

    Parameters
    ----------
    vocabulary : TextVocabulary
        Knows the tokens.
    text : str
        The text.
    ids : Sequence[int]
        Its tokens.

    Returns
    -------
    WordTokens | None
        The same; None: they begin other words than white space does.
    """
    spaced = text.split()
    kept = [index for index, word in enumerate(spaced) if normalise(word)]
    word = -1
    words = []
    for place, piece in enumerate(vocabulary.pieces(ids)):
        word += 1 if piece.startswith(SPACE_MARK) or not place else 0
        words.append(word)
    if word + 1 != len(kept):
        return None
    return WordTokens(list(ids), [kept[word] for word in words], len(spaced))


def link_words(weights: Float[np.ndarray, "targets sources"]) -> frozenset[Link]:
    """Choose the links between words from attention weights.

    Parameters
    ----------
    weights : Float[np.ndarray, "targets sources"]
        How much each target word attends to each source word; nothing for words without tokens.

    Returns
    -------
    frozenset[Link]
        Pairs (source word index, target word index).
    """
    if not weights.size:
        return frozenset()
    tiny = np.finfo(np.float32).tiny
    given = weights.sum(1, keepdims=True)
    taken = weights / np.maximum(given, tiny)
    got = taken.sum(0, keepdims=True)
    both = taken * (taken / np.maximum(got, tiny))
    best, amounts = both.argmax(1).tolist(), given[:, 0].tolist()
    links = {(best[target], target) for target, amount in enumerate(amounts) if amount > 0}
    linked = {source for source, _ in links}
    left = [
        source
        for source, amount in enumerate(got[0].tolist())
        if amount > LEAST_ATTENTION and source not in linked
    ]
    if left:
        best = both.argmax(0).tolist()
        links.update((source, best[source]) for source in left)
    return frozenset(links)


def write_pharaoh(links: frozenset[Link]) -> str:
    """Write an alignment in Pharaoh's format (“0-0 1-2”).

    Parameters
    ----------
    links : frozenset[Link]
        Pairs (source word index, target word index).

    Returns
    -------
    str
        Such as “0-0 1-2 2-1”, sorted.
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def _can_be_observed(model: object) -> bool:
    """Whether a model has cross-attention that can be observed."""
    if isinstance(model, CpuEngine):
        return True
    from torch import nn

    from dragoman.decoding.output.unknown_words import SOURCE_ATTENTION

    return isinstance(model, nn.Module) and any(
        SOURCE_ATTENTION in name and hasattr(each, "observer")
        for name, each in model.named_modules()
    )


def _cut(text: WordTokens, num_tokens: int | None) -> WordTokens:
    """Truncate a text to what the model can read; words beyond have no links."""
    return text._replace(ids=text.ids[:num_tokens], words=text.words[:num_tokens])


def _merge(
    places: Float[np.ndarray, "tokens others"], source: WordTokens, target: WordTokens
) -> Float[np.ndarray, "targets sources"]:
    """Sum the attention of the tokens of each word."""
    starts, words = zip(*map(_find_starts, (target.words, source.words)), strict=True)
    sums = np.add.reduceat(np.add.reduceat(places, starts[0], axis=0), starts[1], axis=1)
    if sums.shape == (target.num_words, source.num_words):
        return sums
    weights = np.zeros((target.num_words, source.num_words))  # some words have no tokens
    weights[np.ix_(*words)] = sums
    return weights


def _find_starts(words: list[int]) -> tuple[list[int], list[int]]:
    """Find the first token and the index of each word."""
    starts = [place for place, word in enumerate(words) if not place or word != words[place - 1]]
    return starts, [words[place] for place in starts]


def _first_words(text: str, translation: Translation) -> Iterator[Link]:
    """Find the first word of each part, in a text and in its translation."""
    place = 0
    written = ""
    for part in translation.parts:
        place = text.index(part.source, place)
        yield _count_words(text[:place]), _count_words(written)
        place += len(part.source)
        written += part.text + part.space


def _count_words(before: str) -> int:
    """Count the words that are complete before a position."""
    return len(before.split()) - (1 if before and not before[-1].isspace() else 0)


def _batches(source: list[WordTokens], target: list[WordTokens]) -> Iterator[list[int]]:
    """Batch pairs of similar length, within the memory that attention takes."""

    def places(row: int) -> int:
        return (len(source[row].ids) + 1) * (len(target[row].ids) + 1)

    order = [row for row in range(len(source)) if source[row].ids and target[row].ids]
    order.sort(key=lambda row: (-len(source[row].ids), -len(target[row].ids)))
    while order:
        size = widest = 0
        longest_target = 0
        for row in order:
            longest_target = max(longest_target, len(target[row].ids) + 1)
            widest = (size + 1) * (len(source[order[0]].ids) + 1) * longest_target
            if size and widest > BATCH_PLACES:
                break
            size += 1
        yield order[:size]
        order = order[size:]
