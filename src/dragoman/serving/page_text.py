"""The text of the web page, cut into sentences that a person can look into one by one."""

from typing import NamedTuple

from dragoman.text.sentences import split_sentences


class Part(NamedTuple):
    """A sentence, or nothing, and the white space after it."""

    text: str
    space: str


def split_text(text: str, language: str | None) -> list[Part]:
    """Cut a text into sentences; a line break always ends one.

    Parameters
    ----------
    text : str
        The text.
    language : str | None
        Its language.

    Returns
    -------
    list[Part]
        Parts that joined give back the text. Only the first can be without words.
    """
    parts: list[Part] = []
    for line in text.splitlines(keepends=True):
        for sentence in split_sentences(line, language):
            core = sentence.strip()
            begin = sentence.index(core) if core else len(sentence)
            before, after = sentence[:begin], sentence[begin + len(core) :]
            if before and parts:
                parts[-1] = parts[-1]._replace(space=parts[-1].space + before)
            elif before:
                parts.append(Part("", before))
            if core:
                parts.append(Part(core, after))
    return parts
