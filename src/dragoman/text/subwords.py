"""Train SentencePiece models, and convert text to ids and back."""

import functools
import io
import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece

from dragoman.errors import DataError, FolderError, OptionError
from dragoman.files import read_bounded
from dragoman.text.normalise import normalise, sentencepiece_rules
from dragoman.text.options import SMALLEST_VOCABULARY
from dragoman.text.piece_order import plain_name, read_size
from dragoman.text.specification import SPACE_MARK, is_cut_at_spaces
from dragoman.text.whole_words import has_whole_words, split_whole_words

# A line above 4,192 bytes would be dropped, and a word above 65,535 characters ends the process.
_LONGEST_TRAINING_LINE = 1000

LARGEST_FILE = 64 << 20
# From so many on they go to SentencePiece together: its threads take what 30 sentences do, but a
# call for each sentence takes longer than the sentence.
_MANY_TEXTS = 64

_SIZE_ANCHORS = (
    (1_000, 1_000),
    (5_000, 2_000),
    (30_000, 8_000),
    (200_000, 10_000),
    (600_000, 16_000),
    (2_000_000, 32_000),
)
RESERVED = (SPACE_MARK, "\u2585")
"""How SentencePiece writes a space and, while training, an unknown character."""
NUM_FIXED_PIECES = 256 + 3 + 1
"""Bytes; end, unknown, padding; the space mark."""
LOG_NOTHING = 4


def choose_vocabulary_size(num_pairs: int) -> int:
    """Choose a vocabulary size by corpus size.

    Returns
    -------
    int
        A multiple of 64 between 1,024 and 32,000 that never falls as the corpus grows.

    Notes
    -----
    Subwords that occur a handful of times are learnt badly, so a small corpus wants a small
    vocabulary (Ding et al. 2019; Araabi & Monz 2020 for Transformers), while a large one affords
    longer subwords and with them shorter sequences. Between a few known good sizes the logarithm
    of the size is linear in the logarithm of the number of pairs.
    """
    (num_before, size_before), *later = _SIZE_ANCHORS
    if num_pairs <= num_before:
        return _round_to_64(size_before)
    for num, size in later:
        if num_pairs <= num:
            share = math.log(num_pairs / num_before) / math.log(num / num_before)
            return _round_to_64(size_before * (size / size_before) ** share)
        num_before, size_before = num, size
    return _round_to_64(size_before)


def train_subwords(sentences: Iterable[str], *, vocabulary_size: int) -> bytes:
    """Train byte-pair encoding with byte fallback on raw sentences.

    Returns
    -------
    bytes
        A SentencePiece model: “</s>” is id 0, “<unk>” 1, “<pad>” 2, there is no “<s>”. Equal
        sentences give equal bytes.

    Raises
    ------
    DataError
        If there is no text in the sentences.
    OptionError
        If the vocabulary is smaller than bytes and letters need.

    Notes
    -----
    Every digit is a subword of its own: numbers are copied more than translated, and digits are
    learnt from few examples where “1987” is not. A character gets an entry if it is seen often
    enough to be learnt (ten times, fewer in a corpus below 200,000 characters) and if the
    characters together take no more than half of the free entries; the others are written as
    bytes. Words are counted before SentencePiece sees them, and it learns the same from their
    counts as from the sentences: what is held in memory is the different words, cut where they
    are longer than 1,000 characters. U+2581 and U+2585 are reserved by SentencePiece and count as
    spaces in training.
    """
    if vocabulary_size < SMALLEST_VOCABULARY:
        raise OptionError(
            f"vocabulary_size: {vocabulary_size} is too small, as 256 entries are bytes; "
            f"give at least {SMALLEST_VOCABULARY}"
        )
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(normalise(sentence).split(" "))
    rare = _find_rare_characters(counts, vocabulary_size)
    return train_sentencepiece(
        _prepare_for_training(counts, rare),
        input_format="tsv",
        model_type="bpe",
        vocab_size=vocabulary_size,
        hard_vocab_limit=False,
        split_digits=True,
    )


class Subwords:
    """A SentencePiece model: text to ids and back.

    Parameters
    ----------
    model : bytes
        A SentencePiece model.
    place : str
        What to call the model in messages, such as its path.

    Attributes
    ----------
    eos_id : int
        The end of a sentence.
    unk_id : int
        What cannot be written; never needed with byte fallback.
    pad_id : int
        Fills short sentences of a batch.
    byte_ids : list of int
        The 256 bytes; nothing where the model has no byte fallback.

    Notes
    -----
    For a model of `train_subwords`, `decode(encode(texts))` gives back each text as `normalise`
    leaves it, whatever it contains: “</s>” or “<0x41>” written out by a person are plain text. A
    foreign model may normalise further and, without byte fallback, loses what it does not know
    (and turns U+2581 into a space).
    """

    def __init__(self, model: bytes, *, place: str = "subword model") -> None:
        self._model = model
        self._processor = _load(model, place)
        self.eos_id: int = self._processor.eos_id()
        self.unk_id: int = self._processor.unk_id()
        # “<s>” begins nothing here, so in a foreign model it is free to be the padding.
        has_padding = self._processor.pad_id() >= 0
        self.pad_id: int = self._processor.pad_id() if has_padding else self._processor.bos_id()
        if self.eos_id < 0:
            raise FolderError(
                f"{place}: has no piece for the end of a sentence; train one with --eos_id"
            )
        if self.pad_id < 0:
            raise FolderError(f"{place}: has no piece for padding; train one with --pad_id")
        self.byte_ids = _find_byte_ids(self._processor)
        # A model in another tool's order: text is looked up in that tool's vocabulary, as it does.
        size = read_size(model)
        self._size: int = self._processor.get_piece_size() if size is None else size
        special = (self.eos_id, self.unk_id, self.pad_id)
        if not all(0 <= each < self._size for each in special) or self.eos_id == self.pad_id:
            raise FolderError(
                f"{place}: of its {self._size} pieces, {special} cannot be end, unknown and "
                "padding; train it again or give another"
            )
        self._ids: dict[str, int] | None = None
        self._has_whole_words = has_whole_words(model)
        if size is not None or self._has_whole_words:
            self._ids = {
                name: piece_id for piece_id, name in enumerate(self.pieces(range(self._size)))
            }

    @classmethod
    def from_bytes(cls, model: bytes, *, place: str = "subword model") -> "Subwords":
        """Load a model from memory."""
        return cls(model, place=place)

    @classmethod
    def from_file(cls, path: str | Path) -> "Subwords":
        """Load a model from a file."""
        model = read_bounded(Path(path), LARGEST_FILE, "give the path of a SentencePiece model")
        return cls(model, place=str(path))

    def to_bytes(self) -> bytes:
        """Return the serialised model, as it was loaded."""
        return self._model

    def __len__(self) -> int:
        return self._size

    @functools.cached_property
    def splits_at_spaces(self) -> bool:
        """Whether each word is tokenised independently of its neighbours.

        So it is in the models of `train_subwords` and `learn_characters`; of foreign ones it is
        not assumed.
        """
        special = (self.eos_id, self.unk_id, self.pad_id, self._processor.bos_id())
        if special != (0, 1, 2, -1) or not self.byte_ids or not is_cut_at_spaces(self._model):
            return False
        pieces = map(self._processor.id_to_piece, range(len(self)))
        return not any(SPACE_MARK in piece[1:] for piece in pieces)

    def encode(self, texts: Sequence[str], num_threads: int = 1) -> list[list[int]]:
        """Tokenise texts to ids.

        Returns
        -------
        list of list of int
            The ids of each text, without an end; an empty list for an empty text.
        """
        lines = [normalise(text) for text in texts]
        if not lines:
            return []
        if self._ids is not None:
            known, unknown = self._ids, self.unk_id
            pieces = _share(self._processor.encode_as_pieces, lines, num_threads)
            if self._has_whole_words:
                pieces = [split_whole_words(line) for line in pieces]
            return [[known.get(piece, unknown) for piece in line] for line in pieces]
        ids = _share(self._processor.encode_as_ids, lines, num_threads)
        for line_index, line in enumerate(lines):
            if SPACE_MARK in line and self.byte_ids:
                ids[line_index] = self._encode_space_mark(line)
        return ids

    def decode(self, ids: Sequence[Sequence[int]], num_threads: int = 1) -> list[str]:
        """Detokenise ids to texts.

        Parameters
        ----------
        ids : sequence of sequence of int
            Any ids of the vocabulary, as a model generates them; padding and ends are skipped.
        num_threads : int
            Threads that share the work.

        Returns
        -------
        list of str
            One normalised text, hence one line, for each sequence. Bytes that are not UTF-8
            become U+FFFD.
        """
        eos_id, pad_id = self.eos_id, self.pad_id
        kept = [
            [int(piece_id) for piece_id in text if piece_id not in (eos_id, pad_id)]
            if eos_id in text or pad_id in text
            else list(map(int, text))
            for text in ids
        ]
        if not kept:
            return []
        if self._ids is not None:
            # Pieces that only the other side has are left as they are by the library.
            texts = [self._processor.decode_pieces(self.pieces(text)) for text in kept]
            return [normalise(text.replace(SPACE_MARK, " ")) for text in texts]
        texts = _share(self._processor.decode_ids, kept, num_threads)
        return [normalise(text) for text in texts]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces of some ids."""
        return [plain_name(self._processor.id_to_piece(int(piece_id))) for piece_id in ids]

    def _encode_space_mark(self, line: str) -> list[int]:
        """Tokenise a line with U+2581, which SentencePiece would read as a space."""
        stand_in = next(
            character
            for character in map(chr, range(0x10FFFF, 0, -1))
            if character not in line and self._processor.piece_to_id(character) == self.unk_id
        )
        ids = self._processor.encode(line.replace(SPACE_MARK, stand_in))
        written = [self.byte_ids[byte] for byte in stand_in.encode()]
        meant = [self.byte_ids[byte] for byte in SPACE_MARK.encode()]
        result: list[int] = []
        for piece_id in ids:
            result.append(piece_id)
            if result[-len(written) :] == written:
                result[-len(written) :] = meant
        return result


def _load(model: bytes, place: str) -> sentencepiece.SentencePieceProcessor:
    sentencepiece.set_min_log_level(LOG_NOTHING)
    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        processor.id_to_piece(list(range(len(processor))))  # each must be text
        if (read_size(model) or 0) > len(processor):
            raise IndexError("fewer pieces than it says")
    except (RuntimeError, ValueError, IndexError, OverflowError) as error:
        raise FolderError(
            f"{place}: is not a SentencePiece model, or damaged; train it again or give another"
        ) from error
    return processor


def _share(work: Callable[..., Any], items: list[Any], num_threads: int) -> list[Any]:
    """Apply a function to each item, in threads only if there are many."""
    if len(items) < _MANY_TEXTS:
        return [work(item) for item in items]
    return work(items, num_threads=num_threads)


def _find_byte_ids(processor: sentencepiece.SentencePieceProcessor) -> list[int]:
    """Return the ids of the 256 byte pieces, or none without byte fallback."""
    ids = [processor.piece_to_id(f"<0x{byte:02X}>") for byte in range(256)]
    return ids if all(processor.is_byte(piece_id) for piece_id in ids) else []


def _round_to_64(size: float) -> int:
    return 64 * round(size / 64)


def _find_rare_characters(word_counts: Counter[str], vocabulary_size: int) -> frozenset[str]:
    counts: Counter[str] = Counter()
    for word, count in word_counts.items():
        for character in word:
            counts[character] += count
    for character in RESERVED:
        counts.pop(character, None)
    if not counts:
        raise DataError(
            "subwords: the corpus has no text to train on; check the files and the filters"
        )
    fewest = min(10, 1 + counts.total() // 20_000)
    most_frequent = sorted(counts, key=lambda character: (-counts[character], character))
    room = (vocabulary_size - NUM_FIXED_PIECES) // 2
    rare = {character for character in most_frequent if counts[character] < fewest}
    return frozenset(rare.union(most_frequent[room:], RESERVED))


def _prepare_for_training(word_counts: Counter[str], rare: frozenset[str]) -> Iterator[str]:
    """Write counted words so that SentencePiece does not split rare characters."""
    without_rare = dict.fromkeys(map(ord, rare), " ")
    for word, count in word_counts.items():
        text = word if rare.isdisjoint(word) else word.translate(without_rare)
        for start in range(0, len(text), _LONGEST_TRAINING_LINE):
            yield f"{text[start : start + _LONGEST_TRAINING_LINE]}\t{count}"


def train_sentencepiece(sentences: Iterator[str], **settings: Any) -> bytes:  # noqa: ANN401
    """Train a model with byte fallback; settings are SentencePiece's own.

    Returns
    -------
    bytes
        The model: “</s>” is id 0, “<unk>” 1, “<pad>” 2, there is no “<s>”. Equal sentences give
        equal bytes.
    """
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        rules_path = Path(folder) / "rules.tsv"
        rules_path.write_text(sentencepiece_rules(), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences,
            model_writer=model,
            byte_fallback=True,
            character_coverage=1.0,
            eos_id=0,
            unk_id=1,
            pad_id=2,
            bos_id=-1,
            normalization_rule_tsv=str(rules_path),
            minloglevel=LOG_NOTHING,
            **settings,
        )
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    # A temporary name would make the bytes of equal training differ.
    processor.override_normalizer_spec(normalization_rule_tsv="")
    return processor.serialized_model_proto()
