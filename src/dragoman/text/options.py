"""Options of text preparation."""

from dataclasses import dataclass, field
from typing import Literal

from dragoman.errors import OptionError
from dragoman.text.target_marks import LONGEST_MARK, is_mark

SMALLEST_VOCABULARY = 320
"""Room for 256 bytes, the control symbols and about sixty characters and merges."""


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """Choose how text becomes the units that a model reads and writes.

    Parameters
    ----------
    units : str
        “subwords”, “words” or “characters”.
    vocabulary_size : int or None
        Number of subwords, words or characters. If None, the number of subwords is chosen from
        the size of the corpus; the words are those that occur at least twice, 30,000 at most;
        the characters are all that are seen often enough to be learnt.
    joint : bool
        Whether both languages share one vocabulary.
    subwords : str or None
        Path of an existing SentencePiece model to take instead of training one.
    formal_mark : str or None
        The word with which source lines begin whose translations are formal, such as
        “>>formal<<”; likewise `informal_mark`. A model that has learnt what they mean can be asked
        for either.
    bpe_dropout : float
        The probability that a merge is dropped when training text is segmented, as it then is
        afresh in every pass (Provilkov et al. 2020). What is translated, and what validates, is
        segmented without.

    Notes
    -----
    There is no option for the character coverage: with byte fallback every character can be
    written, and which ones deserve an entry follows from the corpus (see `train_subwords`). Words
    alone are closed: what is not in the vocabulary is unknown, and is put right after the search
    (see `replace_unknown`).
    """

    units: Literal["subwords", "words", "characters"] = field(
        default="subwords",
        metadata={"help": "What text is cut into; words beyond the vocabulary are unknown."},
    )
    vocabulary_size: int | None = field(
        default=None,
        metadata={"help": "Number of subwords or words (chosen from the corpus if left out)."},
    )
    joint: bool = field(
        default=True,
        metadata={"help": "One vocabulary for both languages, instead of one for each."},
    )
    subwords: str | None = field(
        default=None,
        metadata={"help": "An existing SentencePiece model to use instead of training one."},
    )

    formal_mark: str | None = field(
        default=None,
        metadata={"help": "The word with which source lines of formal translations begin."},
    )
    informal_mark: str | None = field(
        default=None,
        metadata={"help": "The word with which source lines of informal translations begin."},
    )
    bpe_dropout: float = field(
        default=0.0,
        metadata={
            "help": "Segment training text afresh in every pass, dropping each merge of subwords "
            "with this probability: 0.1 helps most where data are few."
        },
    )

    def __post_init__(self) -> None:
        if not 0 <= self.bpe_dropout < 1:
            raise OptionError(
                f"bpe_dropout: {self.bpe_dropout:g} is no such probability; give 0.1, or anything "
                "from 0 to less than 1"
            )
        if self.bpe_dropout and self.units != "subwords":
            raise OptionError(
                f"bpe_dropout: {self.bpe_dropout:g}, but {self.units} are not merged; leave it out"
            )
        self._check_marks()
        size = self.vocabulary_size
        if self.units == "words" and size is not None and size < 1:
            raise OptionError(
                f"vocabulary_size: {size} is too small; give at least 1 word, or leave it out"
            )
        if self.units != "words" and size is not None and size < SMALLEST_VOCABULARY:
            raise OptionError(
                f"vocabulary_size: {size} is too small, as 256 entries are bytes; "
                f"give at least {SMALLEST_VOCABULARY}, or leave it out"
            )
        if self.subwords is not None:
            self._check_ready_made(self.subwords)

    def _check_marks(self) -> None:
        """Refuse marks that are no words, or the same."""
        for name in ("formal_mark", "informal_mark"):
            mark = getattr(self, name)
            if mark is not None and not is_mark(mark):
                raise OptionError(
                    f"{name}: “{mark}” is not one word of up to {LONGEST_MARK} characters; give "
                    "one such as “>>formal<<”"
                )
        if self.formal_mark is not None and self.formal_mark == self.informal_mark:
            raise OptionError(
                f"informal_mark: “{self.informal_mark}” is the formal one too; give another"
            )

    def _check_ready_made(self, path: str) -> None:
        """Refuse options that contradict a given SentencePiece model."""
        if not path:
            raise OptionError(
                "subwords: the path is empty; give a SentencePiece model, or leave it out"
            )
        if self.units != "subwords":
            raise OptionError(
                f"units: {self.units}, but the ready-made subwords {path!r} are what they are; "
                "leave one of the two out"
            )
        if self.vocabulary_size is not None:
            raise OptionError(
                f"vocabulary_size: {self.vocabulary_size} means nothing with the ready-made "
                f"subwords {path!r}; leave one of the two out"
            )
        if not self.joint:
            raise OptionError(
                f"joint: no, but the ready-made subwords {path!r} serve both languages; "
                "leave one of the two out"
            )
