"""Closed vocabularies of the most frequent words; all others are unknown."""

import functools
import json
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from dragoman.errors import DataError, FolderError, OptionError
from dragoman.files import read_bounded
from dragoman.text.normalise import normalise

UNKNOWN = "⟨unk⟩"
"""What people see where a word is unknown."""

MOST_WORDS = 30_000
"""Words of a vocabulary whose size nobody chose: as many as RNNsearch had on each side."""

_FORMAT = "dragoman words 1"
LARGEST_FILE = 256 << 20
_SPECIAL = ("</s>", "<unk>", "<pad>")
_SPACE_MARK = "\u2581"
_JOINERS = "\u200c\u200d"


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks.

    Returns
    -------
    list of str
        Its tokens: runs of letters, digits, underscores and combining marks, and every other
        character by itself; each begins with a space if one stood before it, and so does the
        first. Joining them gives back the text as `normalise` leaves it, with one space before.

    Notes
    -----
    “l’Afrique” has the tokens “ l”, “’” and “Afrique”. Where a language writes no spaces, a whole
    clause is one word: such languages want subwords or characters.
    """
    text = normalise(text)
    return _token_pattern().findall(f" {text}") if text else []


def learn_words(sentences: Iterable[str], *, vocabulary_size: int | None = None) -> "Words":
    """Collect the most frequent words of a text.

    Parameters
    ----------
    sentences : iterable of str
        Raw text, of both languages for a joint vocabulary; read once, as a stream.
    vocabulary_size : int or None
        How many words, the three special symbols not counted; a text with fewer gives fewer.
        None: the words that occur at least twice, 30,000 at most.

    Raises
    ------
    DataError
        If there is no text in the sentences.
    OptionError
        If no word at all is wanted.

    Notes
    -----
    Words seen once are left out by default because they cannot be learnt from one example, while
    as unknown words they teach the model where it is to say that it does not know one. A text in
    which no word occurs twice keeps them. All different words are held in memory.
    """
    if vocabulary_size is not None and vocabulary_size < 1:
        raise OptionError(f"vocabulary_size: {vocabulary_size} is too small; give at least 1 word")
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(split_words(sentence))
    if not counts:
        raise DataError("words: the corpus has no text to learn from; check the files and filters")
    frequent = sorted(counts, key=lambda token: (-counts[token], token))
    if vocabulary_size is None:
        repeated = [token for token in frequent[:MOST_WORDS] if counts[token] > 1]
        return Words(repeated or frequent[:MOST_WORDS])
    return Words(frequent[:vocabulary_size])


class Words:
    """A closed vocabulary of words: text to ids and back.

    Parameters
    ----------
    tokens : sequence of str
        Different tokens as `split_words` makes them, with or without a space before.
    place : str
        What to call the vocabulary in messages, such as its path.

    Attributes
    ----------
    eos_id : int
        The end of a sentence.
    unk_id : int
        A word that is not in the vocabulary.
    pad_id : int
        Fills short sentences of a batch.
    splits_at_spaces : bool
        Each word between spaces has the same ids by itself as in a sentence.

    Notes
    -----
    The three special symbols come first, with the ids that `train_subwords` gives them.
    `decode(encode(texts))` gives back each text as `normalise` leaves it if all its tokens are
    known; in place of each other one stands “⟨unk⟩”, with a space before it.
    """

    eos_id = 0
    unk_id = 1
    pad_id = 2
    splits_at_spaces = True

    def __init__(self, tokens: Sequence[str], *, place: str = "vocabulary") -> None:
        self._tokens = tuple(tokens)
        self._ids = {token: number for number, token in enumerate(tokens, start=len(_SPECIAL))}
        if not self._tokens or len(self._ids) < len(self._tokens):
            what = "the same word twice" if self._tokens else "no words"
            raise FolderError(f"{place}: has {what}; get it again")

    @classmethod
    def from_bytes(cls, contents: bytes, *, place: str = "vocabulary") -> "Words":
        """Read and check a serialised vocabulary.

        Raises
        ------
        FolderError
            If the contents are anything else.
        """
        try:
            plain = json.loads(contents)
            tokens = plain["words"] if plain["format"] == _FORMAT else None
        except (ValueError, KeyError, TypeError, RecursionError):
            tokens = None
        if not isinstance(tokens, list):
            raise FolderError(f"{place}: is not a vocabulary of words, or damaged; get it again")
        for token in tokens:
            if not isinstance(token, str) or split_words(token) != [f" {token.removeprefix(' ')}"]:
                raise FolderError(f"{place}: {token!r} is not a word; get the file again")
        return cls(tokens, place=place)

    @classmethod
    def from_file(cls, path: str | Path) -> "Words":
        """Read a vocabulary from a file.

        Raises
        ------
        FolderError
            If the file cannot be read or holds anything else.
        """
        contents = read_bounded(Path(path), LARGEST_FILE, "get the model folder again")
        return cls.from_bytes(contents, place=str(path))

    def to_bytes(self) -> bytes:
        """Serialise the vocabulary."""
        plain = {"format": _FORMAT, "words": self._tokens}
        return (json.dumps(plain, ensure_ascii=False, indent=0) + "\n").encode()

    def __len__(self) -> int:
        return len(_SPECIAL) + len(self._tokens)

    def encode(
        self,
        texts: Sequence[str],
        num_threads: int = 1,  # noqa: ARG002
    ) -> list[list[int]]:
        """Tokenise texts to ids."""
        known, unknown = self._ids, self.unk_id
        return [[known.get(token, unknown) for token in split_words(text)] for text in texts]

    def decode(
        self,
        ids: Sequence[Sequence[int]],
        num_threads: int = 1,  # noqa: ARG002
    ) -> list[str]:
        """Detokenise ids to texts.

        Parameters
        ----------
        ids : sequence of sequence of int
            Any ids of the vocabulary, as a model generates them; padding and ends are skipped.
        num_threads : int
            Not used: there is too little work to share.
        """
        return [normalise("".join(self.tokens(text))) for text in ids]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens of one text's ids.

        Returns
        -------
        list of str
            A token for each id, whose join is the text: “ ⟨unk⟩” for an unknown word, nothing for
            padding and ends.
        """
        special = {self.eos_id: "", self.unk_id: f" {UNKNOWN}", self.pad_id: ""}
        return [
            special[token_id] if token_id in special else self._tokens[token_id - len(_SPECIAL)]
            for token_id in map(int, ids)
        ]

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the tokens for display."""
        names = _SPECIAL + self._tokens
        return [names[int(token_id)].replace(" ", _SPACE_MARK) for token_id in ids]


@functools.cache
def _token_pattern() -> re.Pattern[str]:
    """Compile the token pattern, which counts combining marks as letters."""
    marks = (
        chr(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)).startswith("M")
    )
    # Several hundred ranges are slow to try, so the usual punctuation is ruled out before them.
    no_mark = r"[\x00-\u02ff\u2000-\u200b\u200e-\u20cf]"
    mark = rf"(?!{no_mark})[{''.join(marks)}{_JOINERS}]"
    return re.compile(rf" ?(?:(?:\w++|{mark})++|[^ ])")
