"""The text of the web page, as sentences that a person can look into one by one."""

from collections.abc import Iterable
from typing import NamedTuple


class Part(NamedTuple):
    """A sentence, or nothing, and the white space after it."""

    text: str
    space: str


def part_text(pieces: Iterable[str]) -> list[Part]:
    """Take the white space off the pieces of a text."""
    parts: list[Part] = []
    for piece in pieces:
        core = piece.strip()
        begin = piece.index(core) if core else len(piece)
        before, after = piece[:begin], piece[begin + len(core) :]
        if before and parts:
            parts[-1] = parts[-1]._replace(space=parts[-1].space + before)
        elif before:
            parts.append(Part("", before))
        if core:
            parts.append(Part(core, after))
    return parts
