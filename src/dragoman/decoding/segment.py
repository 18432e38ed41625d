"""Segments of texts, and the hypotheses found for them."""

from dataclasses import dataclass

from dragoman.decoding.engines.search_engine import Hypothesis


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A part of a text, short enough for the model, that is translated by itself.

    Parameters
    ----------
    text_index : int
        Which text it is a part of.
    text : str
        The part as it is written.
    ids : tuple[int, ...]
        Its subwords, ended by the end symbol.
    space : str
        The white space after it.
    is_first : bool
        Whether the text begins with it.
    num_marks : int
        How many of the subwords, at the beginning, are not the text's but tell the target language.
    """

    text_index: int
    text: str
    ids: tuple[int, ...]
    space: str
    is_first: bool
    num_marks: int = 0


@dataclass(frozen=True, kw_only=True)
class SegmentResult:
    """The hypotheses of a segment.

    Parameters
    ----------
    hypotheses : list[Hypothesis]
        Translations, best first.
    notes : tuple[str, ...]
        What of the constraints could not be met, in words.
    """

    hypotheses: list[Hypothesis]
    notes: tuple[str, ...] = ()
