"""Encoding of blocks of sentences, as a job for `dragoman.data.workers`."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, repeat
from typing import Protocol, runtime_checkable

import numpy as np

from dragoman.data.workers import Message, Work, map_blocks
from dragoman.shapes import Int, UInt32
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import TextVocabulary
from dragoman.text.word_vocabulary import Words

ENCODED_LINES = 4096
MOST_KNOWN_WORDS = 1 << 18
_END = "\n"
_UNKNOWN = -1
_SUBWORDS, _WORDS = b"subwords", b"words"

Encoded = tuple[UInt32[np.ndarray, "tokens"], Int[np.ndarray, "sentences"]]


@runtime_checkable
class Text(Protocol):
    """Protocol of text bytes that can be sliced: an array, or a checked file."""

    def __getitem__(self, places: slice, /) -> np.ndarray: ...


def encode_blocks(
    text: Text,
    ends: Int[np.ndarray, "sentences"],
    vocabulary: TextVocabulary,
    *,
    num_workers: int | None = None,
) -> Iterator[Encoded]:
    """Encode sentences, a block at a time.

    Yields
    ------
    Encoded
        The ids of a block's sentences, each ended by the end symbol, and how many are whose; the
        same whatever the number of processes.
    """
    kind = _WORDS if isinstance(vocabulary, Words) else _SUBWORDS
    setting = [kind, vocabulary.to_bytes()]

    def blocks() -> Iterator[Message]:
        start = 0
        for first in range(0, len(ends), ENCODED_LINES):
            of_block = np.asarray(ends[first : first + ENCODED_LINES])
            end = int(of_block[-1])
            yield [text[start:end].tobytes(), (of_block - start).tobytes()]
            start = end

    for ids, lengths in map_blocks(make_encoder, setting, blocks(), num_workers=num_workers):
        yield np.frombuffer(ids, np.uint32), np.frombuffer(lengths, np.int64)


def make_encoder(setting: Message) -> Work:
    """Make the worker function that encodes a block."""
    kind, contents = setting
    vocabulary: TextVocabulary = (
        Words.from_bytes(contents) if kind == _WORDS else Subwords.from_bytes(contents)
    )
    encode: Callable[[list[str]], Encoded]
    if vocabulary.splits_at_spaces:
        encode = CachingEncoder(vocabulary).encode
    else:

        def encode(sentences: list[str]) -> Encoded:
            return _flatten(vocabulary.encode(sentences), [vocabulary.eos_id])

    def work(message: Message) -> Message:
        text, ends = message
        sentences, start = [], 0
        for end in np.frombuffer(ends, np.int64).tolist():
            sentences.append(text[start:end].decode())
            start = end
        ids, lengths = encode(sentences)
        return [ids.tobytes(), lengths.tobytes()]

    return work


class CachingEncoder:
    """An encoder with a cache of the words it has seen.

    Parameters
    ----------
    vocabulary : TextVocabulary
        One that encodes each word between spaces by itself.

    Notes
    -----
    Most words of a text have been seen before, and to look one up costs a small part of encoding
    it. The cache is emptied when it reaches a limit of memory.
    """

    def __init__(self, vocabulary: TextVocabulary) -> None:
        self._vocabulary = vocabulary
        self._places: dict[str, int] = {}
        self._ids: np.ndarray
        self._starts: np.ndarray
        self._lengths: np.ndarray
        self._forget()

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """Encode sentences."""
        if len(self._places) > MOST_KNOWN_WORDS:
            self._forget()
        words = f" {_END} ".join((*sentences, ""))[:-1].split(" ") if sentences else []
        found = map(self._places.get, words, repeat(_UNKNOWN))
        places = np.fromiter(found, np.int64, len(words))
        unknown = np.flatnonzero(places == _UNKNOWN).tolist()
        self._learn(list({words[each] for each in unknown}))
        places[unknown] = [self._places[words[each]] for each in unknown]
        starts, lengths = self._starts[places], self._lengths[places]
        ends = np.cumsum(lengths)
        from_where = np.repeat(starts - (ends - lengths), lengths)
        ids = self._ids[np.arange(len(from_where)) + from_where]
        sentence_ends = ends[places == self._places[_END]]
        return ids, np.diff(sentence_ends, prepend=0)

    def _learn(self, words: list[str]) -> None:
        if not words:
            return
        ids, lengths = _flatten(self._vocabulary.encode(words), [])
        starts = len(self._ids) + np.cumsum(lengths) - lengths
        self._places.update({word: place for place, word in enumerate(words, len(self._starts))})
        self._ids = np.concatenate([self._ids, ids])
        self._starts = np.concatenate([self._starts, starts])
        self._lengths = np.concatenate([self._lengths, lengths])

    def _forget(self) -> None:
        self._places = {_END: 0}
        self._ids = np.array([self._vocabulary.eos_id], np.uint32)
        self._starts, self._lengths = np.array([0]), np.array([1])


def _flatten(sequences: Sequence[Sequence[int]], end: list[int]) -> Encoded:
    """Concatenate sequences, each followed by the end symbol."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences)) + len(end)
    every = chain.from_iterable(chain(each, end) for each in sequences)
    return np.fromiter(every, np.uint32, int(lengths.sum())), lengths
