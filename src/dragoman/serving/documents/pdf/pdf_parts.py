"""What a PDF is made of: pieces of text on pages, and the parts of a document that they become."""

from dataclasses import dataclass
from typing import Literal

PartKind = Literal["paragraph", "heading", "table", "header", "footer"]


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Characters of one line that stand beside each other.

    Parameters
    ----------
    text : str
        What they say.
    left, right : float
        Where it begins and ends, in points.
    base : float
        How high its base line is above the bottom of the page.
    size : float
        Of its font.
    is_bold : bool
        Whether it is printed bold.
    hanging : float | None
        Where the text of an item begins whose marker stands apart.
    hanging : float | None
        Where the text of an item begins whose marker stands apart.
    """

    text: str
    left: float
    right: float
    base: float
    size: float
    is_bold: bool = False
    hanging: float | None = None


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of a document.

    Parameters
    ----------
    kind : PartKind
        What it is.
    text : str
        What it says; nothing: it is a table.
    marker : str
        What stands before it as an item of a list, or a numbered heading.
    level : int
        Of a heading, from 1.
    rows : tuple[tuple[str, ...], ...]
        The cells of a table.
    is_numbered : bool
        Of a header or footer, whether it has the number of the page.
    """

    kind: PartKind
    text: str = ""
    marker: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()
    is_numbered: bool = False
