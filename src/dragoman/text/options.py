"""The options of text preparation."""

from dataclasses import dataclass, field

from dragoman.errors import OptionError

SMALLEST_VOCABULARY = 320
"""Room for 256 bytes, the control symbols and about sixty characters and merges."""


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Choose how text becomes subwords.

    Parameters
    ----------
    vocabulary_size : int or None
        Number of subwords; chosen from the size of the corpus if None.
    joint : bool
        Whether both languages share one subword model.
    subwords : str or None
        Path of an existing SentencePiece model to take instead of training one.

    Notes
    -----
    There is no option for the character coverage: with byte fallback every character can be
    written, and which ones deserve an entry follows from the corpus (see `train_subwords`).
    """

    vocabulary_size: int | None = field(
        default=None,
        metadata={"help": "Number of subwords (chosen from the size of the corpus if left out)."},
    )
    joint: bool = field(
        default=True,
        metadata={"help": "One subword model for both languages, instead of one for each."},
    )
    subwords: str | None = field(
        default=None,
        metadata={"help": "An existing SentencePiece model to use instead of training one."},
    )

    def __post_init__(self) -> None:
        if self.vocabulary_size is not None and self.vocabulary_size < SMALLEST_VOCABULARY:
            raise OptionError(
                f"vocabulary_size: {self.vocabulary_size} is too small, as 256 entries are bytes; "
                f"give at least {SMALLEST_VOCABULARY}, or leave it out"
            )
        if self.subwords is None:
            return
        if not self.subwords:
            raise OptionError(
                "subwords: the path is empty; give a SentencePiece model, or leave it out"
            )
        if self.vocabulary_size is not None:
            raise OptionError(
                f"vocabulary_size: {self.vocabulary_size} means nothing with the ready-made "
                f"subwords {self.subwords!r}; leave one of the two out"
            )
        if not self.joint:
            raise OptionError(
                f"joint: no, but the ready-made subwords {self.subwords!r} serve both languages; "
                "leave one of the two out"
            )
