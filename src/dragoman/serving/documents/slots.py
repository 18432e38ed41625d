"""Slots: stretches of a text file that are messages; all else stays as it is, byte by byte."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.serving.documents.text_documents import Document, Translated
from dragoman.serving.markup.placeholders import Message


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A stretch of a file in which a translation is written.

    Parameters
    ----------
    begin, end : int
        Its place in the file's text.
    message : Message | None
        What is translated; None: what is written does not depend on it.
    encode : Callable[[str], str]
        Writes the translation as the format has it.
    """

    begin: int
    end: int
    message: Message | None
    encode: Callable[[str], str]


def fill_slots(text: str, slots: Sequence[Slot], encode: Callable[[str], bytes]) -> Document:
    """Make a document of a text with slots in their order."""

    def write(translations: Sequence[Translated]) -> bytes:
        rest = iter(translations)
        written = []
        place = 0
        for slot in slots:
            shown = ""
            if slot.message is not None:
                some = list(itertools.islice(rest, len(slot.message.segments)))
                shown = slot.message.rebuild(some)
            written += [text[place : slot.begin], slot.encode(shown)]
            place = slot.end
        return encode("".join([*written, text[place:]]))

    texts = [each for slot in slots if slot.message is not None for each in slot.message.segments]
    return Document(texts=texts, write=write)
