"""What a doubt about a translation is."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["number", "name", "address", "length", "repetition", "language"]
Side = Literal["source", "target"]


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A place that a person should look at.

    Parameters
    ----------
    kind : Literal["number", "name", "address", "length", "repetition", "language"]
        What may be wrong.
    side : Literal["source", "target"]
        Which text the place is in.
    begin : int
        Where the place begins, in characters.
    end : int
        Where it ends.
    words : str
        What may be wrong, for people.
    """

    kind: Kind
    side: Side
    begin: int
    end: int
    words: str
