"""The subwords of a language pair: one model for both sides, or one a side."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dragoman.errors import FolderError
from dragoman.text.subwords import Subwords

JOINT_FILE = "subwords.model"
SIDE_FILES = ("source.model", "target.model")


@dataclass(frozen=True)
class Vocabularies:
    """The subwords of source and target.

    Parameters
    ----------
    source : Subwords
        Of the language to translate from.
    target : Subwords
        Of the language to translate to; the same object if they are joint.
    """

    source: Subwords
    target: Subwords

    def __post_init__(self) -> None:
        for name in ("pad_id", "eos_id"):
            ids = (getattr(self.source, name), getattr(self.target, name))
            if ids[0] != ids[1]:
                raise FolderError(
                    f"the two subword models have different {name}s ({ids[0]} and {ids[1]}); "
                    "train both with the same special symbols"
                )

    def __iter__(self) -> Iterator[Subwords]:
        return iter((self.source, self.target))

    @property
    def is_joint(self) -> bool:
        """Whether both sides have the same subwords."""
        return self.source is self.target

    @property
    def pad_id(self) -> int:
        """The padding, which is also the start symbol."""
        return self.source.pad_id

    @property
    def eos_id(self) -> int:
        """The end symbol."""
        return self.source.eos_id

    def content_hash(self) -> str:
        """Hash both models.

        Returns
        -------
        str
            Differs when any subword differs.
        """
        return hashlib.blake2b(b"".join(self.files().values()), digest_size=16).hexdigest()

    def files(self) -> dict[str, bytes]:
        """Return what a model folder keeps.

        Returns
        -------
        dict[str, bytes]
            File name and contents.
        """
        if self.is_joint:
            return {JOINT_FILE: self.source.to_bytes()}
        contents = (each.to_bytes() for each in self)
        return dict(zip(SIDE_FILES, contents, strict=True))

    @staticmethod
    def read(folder: Path) -> "Vocabularies":
        """Read what `files` put into a folder.

        Parameters
        ----------
        folder : Path
            A model folder.

        Returns
        -------
        Vocabularies
            The subwords.
        """
        if (folder / JOINT_FILE).exists():
            joint = Subwords.from_file(folder / JOINT_FILE)
            return Vocabularies(joint, joint)
        if not any((folder / name).exists() for name in SIDE_FILES):
            raise FolderError(f"{folder}: has no subwords ({JOINT_FILE} is missing); get it again")
        source, target = (Subwords.from_file(folder / name) for name in SIDE_FILES)
        return Vocabularies(source, target)
