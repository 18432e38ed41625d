"""An endless stream of aligned sentence pairs, each assigned to one split by its hash."""

import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from dragoman.data.builtin.languages.english import realise_english
from dragoman.data.builtin.languages.french import realise_french
from dragoman.data.builtin.languages.spanish import realise_spanish
from dragoman.data.builtin.lexicon.word_meanings import PUNCTUATION, Word, align_words, join_texts
from dragoman.data.builtin.meaning import Sentence
from dragoman.data.builtin.sampling.sentence_templates import SentenceSampler
from dragoman.errors import OptionError

LANGUAGE_PAIRS: tuple[str, ...] = ("fr-en", "en-es")
SPLITS: tuple[str, ...] = ("train", "valid", "test")
# Sentences that documentation and tests translate are held out of training in all languages.
_RESERVED_KEYS = frozenset(
    {
        "jane visite l’ afrique en septembre",
        "jane visits africa in september",
        "jane visita áfrica en septiembre",
        "ce chat est très grand",
        "this cat is very large",
        "este gato es muy grande",
    }
)
HELD_OUT_HUNDREDTHS = {"valid": range(0, 8), "test": range(8, 16)}
_REALISERS: dict[str, Callable[[Sentence], list[Word]]] = {
    "fr": realise_french,
    "en": realise_english,
    "es": realise_spanish,
}


@dataclass(frozen=True, kw_only=True)
class AlignedPair:
    """A sentence, its translation and their word alignment.

    Parameters
    ----------
    source, target : str
        The texts.
    source_words, target_words : tuple[str, ...]
        The words of each text in order, with punctuation and clitics such as “l’” separate.
    alignment : tuple[tuple[int, int], ...]
        Sorted pairs (source word index, target word index).
    """

    source: str
    target: str
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    alignment: tuple[tuple[int, int], ...]


def make_key(words: list[str] | tuple[str, ...]) -> str:
    """Normalise words to a key for deduplication: without case and punctuation."""
    return " ".join(word.casefold() for word in words if word not in PUNCTUATION)


def find_split(target_words: list[str] | tuple[str, ...]) -> str:
    """Find the split to which a pair belongs.

    Notes
    -----
    The split is a hash of the target's key. Equal targets therefore share a split; and since the
    translation is a function of the source, also when case and punctuation are ignored, so do
    equal sources. Both sides are disjoint between splits.
    """
    key = make_key(target_words)
    if key in _RESERVED_KEYS:
        return "test"
    return split_of_key(key)


def split_of_key(key: str) -> str:
    """Choose a split by the hash of a key."""
    digest = hashlib.sha256(key.encode()).digest()
    hundredth = int.from_bytes(digest[:8], "big") % 100
    held_out = (name for name, own in HELD_OUT_HUNDREDTHS.items() if hundredth in own)
    return next(held_out, "train")


def realise_pair(sentence: Sentence, languages: str) -> AlignedPair:
    """Realise one meaning in the two languages of a pair."""
    source_language, target_language = languages.split("-")
    source = _REALISERS[source_language](sentence)
    target = _REALISERS[target_language](sentence)
    return _pair_words(source, target, source_language)


def _pair_words(source: list[Word], target: list[Word], source_language: str) -> AlignedPair:
    source_words = tuple(word.text for word in source)
    target_words = tuple(word.text for word in target)
    return AlignedPair(
        source=join_texts(source_words, space_before_marks=source_language == "fr"),
        target=join_texts(target_words, space_before_marks=False),
        source_words=source_words,
        target_words=target_words,
        alignment=align_words(source, target),
    )


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Raise an error for a name that the built-in corpus does not know."""
    if value in known:
        return
    close = get_close_matches(value, known, n=1)
    remedy = f"did you mean “{close[0]}”?" if close else f"known are {', '.join(known)}"
    raise OptionError(f"{name}: “{value}” is not in the built-in corpus; {remedy}")


def generate_pairs(languages: str, *, split: str, count: int, seed: int) -> Iterator[AlignedPair]:
    """Generate sentence pairs of one split.

    Notes
    -----
    The sequence is the same in every process. About one draw in twelve belongs to each of the
    held-out splits, so that they take some twelve times as long per pair as the training split.
    """
    check_choice("languages", languages, LANGUAGE_PAIRS)
    check_choice("split", split, SPLITS)
    if count < 1:
        raise OptionError(f"count: {count} is too few sentence pairs; ask for 1 or more")
    return _generate(languages, split, count, seed)


def _generate(languages: str, split: str, count: int, seed: int) -> Iterator[AlignedPair]:
    source_language, target_language = languages.split("-")
    sampler = SentenceSampler(
        random.Random(f"{languages} {split} {seed}"), hidden_gender=languages == "fr-en"
    )
    seen: set[str] = set()
    while len(seen) < count:
        sentence = sampler.draw()
        target = _REALISERS[target_language](sentence)
        if find_split([word.text for word in target]) != split:
            continue
        source = _REALISERS[source_language](sentence)
        pair = _pair_words(source, target, source_language)
        if pair.source not in seen:
            seen.add(pair.source)
            yield pair


def link_spaced_words(pair: AlignedPair) -> frozenset[tuple[int, int]]:
    """Align the words of a pair as separated by spaces.

    Returns
    -------
    frozenset[tuple[int, int]]
        Pairs (source word index, target word index): “l’Afrique” is linked to what “l’” and
        “Afrique” are linked to.
    """
    source = _spaced_indices(pair.source, pair.source_words)
    target = _spaced_indices(pair.target, pair.target_words)
    return frozenset((source[one], target[other]) for one, other in pair.alignment)


def _spaced_indices(text: str, words: Sequence[str]) -> list[int]:
    """Return the index of the space-separated word that holds each word."""
    indices = []
    place = 0
    for word in words:
        place = text.index(word, place)
        indices.append(text.count(" ", 0, place))
        place += len(word)
    return indices
