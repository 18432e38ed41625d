"""The vocabularies of a language pair: one joint, or one per side."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from dragoman.errors import FolderError
from dragoman.text.dictionary import Dictionary
from dragoman.text.subwords import Subwords
from dragoman.text.word_vocabulary import Words

JOINT_FILE = "subwords.model"
SIDE_FILES = ("source.model", "target.model")
JOINT_WORDS_FILE = "words.json"
SIDE_WORDS_FILES = ("source.words.json", "target.words.json")
DICTIONARY_FILE = "dictionary.json"


@runtime_checkable
class TextVocabulary(Protocol):
    """Interface of vocabularies: subwords, characters or words."""

    @property
    def eos_id(self) -> int:
        """The end symbol."""
        ...

    @property
    def unk_id(self) -> int:
        """The unknown symbol."""
        ...

    @property
    def pad_id(self) -> int:
        """The padding symbol."""
        ...

    @property
    def splits_at_spaces(self) -> bool:
        """Whether each word is tokenised independently of its neighbours."""
        ...

    def __len__(self) -> int:
        """Count the entries, special symbols included."""
        ...

    def encode(self, texts: Sequence[str], num_threads: int = 1) -> list[list[int]]:
        """Tokenise texts to ids, without the end symbol."""
        ...

    def decode(self, ids: Sequence[Sequence[int]], num_threads: int = 1) -> list[str]:
        """Detokenise ids to single-line texts, skipping padding and end symbols."""
        ...

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return the pieces of one text's ids."""
        ...

    def to_bytes(self) -> bytes:
        """Serialise the vocabulary."""
        ...


@dataclass(frozen=True)
class Vocabularies:
    """The vocabularies of source and target.

    Parameters
    ----------
    source : TextVocabulary
        Of the language to translate from.
    target : TextVocabulary
        Of the language to translate to; the same object if they are joint.
    dictionary : Dictionary or None
        Translations of source words, to put in place of unknown target words.
    """

    source: TextVocabulary
    target: TextVocabulary
    dictionary: Dictionary | None = None

    def __post_init__(self) -> None:
        for name in ("pad_id", "eos_id"):
            ids = (getattr(self.source, name), getattr(self.target, name))
            if ids[0] != ids[1]:
                raise FolderError(
                    f"the two subword models have different {name}s ({ids[0]} and {ids[1]}); "
                    "train both with the same special symbols"
                )

    def __iter__(self) -> Iterator[TextVocabulary]:
        return iter((self.source, self.target))

    @property
    def is_joint(self) -> bool:
        """Whether both sides have the same vocabulary."""
        return self.source is self.target

    @property
    def is_closed(self) -> bool:
        """Whether words outside the vocabulary become unknown."""
        return all(isinstance(each, Words) for each in self)

    @property
    def pad_id(self) -> int:
        """The padding, which is also the start symbol."""
        return self.source.pad_id

    @property
    def eos_id(self) -> int:
        """The end symbol."""
        return self.source.eos_id

    def content_hash(self) -> str:
        """Hash both vocabularies.

        Returns
        -------
        str
            Differs when any entry differs; the dictionary, on which no id depends, does not count.
        """
        contents = b"".join(self._vocabulary_files().values())
        return hashlib.blake2b(contents, digest_size=16).hexdigest()

    def files(self) -> dict[str, bytes]:
        """Return the files of a model folder."""
        files = self._vocabulary_files()
        if self.dictionary is not None:
            files[DICTIONARY_FILE] = self.dictionary.to_bytes()
        return files

    def _vocabulary_files(self) -> dict[str, bytes]:
        if self.is_joint:
            name = JOINT_WORDS_FILE if self.is_closed else JOINT_FILE
            return {name: self.source.to_bytes()}
        names = SIDE_WORDS_FILES if self.is_closed else SIDE_FILES
        return {name: each.to_bytes() for name, each in zip(names, self, strict=True)}

    @staticmethod
    def read(folder: Path) -> "Vocabularies":
        """Read the files of a model folder."""
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        path = folder / DICTIONARY_FILE
        dictionary = Dictionary.from_file(path) if path.name in names else None
        for kind, joint_file, side_files in (
            (Subwords, JOINT_FILE, SIDE_FILES),
            (Words, JOINT_WORDS_FILE, SIDE_WORDS_FILES),
        ):
            if joint_file in names:
                joint = kind.from_file(folder / joint_file)
                return Vocabularies(joint, joint, dictionary)
            if not names.isdisjoint(side_files):
                source, target = (kind.from_file(folder / name) for name in side_files)
                return Vocabularies(source, target, dictionary)
        raise FolderError(f"{folder}: has no subwords ({JOINT_FILE} is missing); get it again")
