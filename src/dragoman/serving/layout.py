"""Layout: the sentences of a text, and the white space and line breaks around them."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dragoman.serving.interface import Span
from dragoman.text.sentences import split_long, split_sentences

# What str.splitlines takes for the end of a line.
_LINE = re.compile("[^\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]+")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A text taken apart.

    Parameters
    ----------
    sentences : tuple[str, ...]
        What is to be translated, without white space around it.
    gaps : tuple[str, ...]
        What stays as it is before each sentence, and after the last.
    """

    sentences: tuple[str, ...]
    gaps: tuple[str, ...]

    def join(self, translations: Sequence[str]) -> str:
        """Put translations in the places of the sentences.

        Parameters
        ----------
        translations : Sequence[str]
            One of each sentence.

        Returns
        -------
        str
            The translated text.
        """
        pairs = zip(self._gaps_between(translations), translations, strict=True)
        return "".join(gap + each for gap, each in pairs) + self.gaps[-1]

    def place(
        self, translations: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Span, ...]:
        """Say which characters of the whole texts translate which.

        Parameters
        ----------
        translations : Sequence[str]
            One of each sentence.
        spans : Sequence[Sequence[Span]]
            Which characters of each sentence translate which of its translation.

        Returns
        -------
        tuple[Span, ...]
            The same, counted from the beginnings of the texts.
        """
        placed: list[Span] = []
        source = target = 0
        for old, new, sentence, translation, links in zip(
            self.gaps[:-1],
            self._gaps_between(translations),
            self.sentences,
            translations,
            spans,
            strict=True,
        ):
            source += len(old)
            target += len(new)
            placed += [
                (source + begin, source + end, target + first, target + last)
                for begin, end, first, last in links
            ]
            source += len(sentence)
            target += len(translation)
        return tuple(placed)

    def _gaps_between(self, translations: Sequence[str]) -> list[str]:
        """Part what needs no space in Chinese or Japanese, but does in the target language."""
        gaps = list(self.gaps[:-1])
        for place, before in enumerate(translations[:-1], start=1):
            if not gaps[place] and before and unicodedata.east_asian_width(before[-1]) not in "WF":
                gaps[place] = " "
        return gaps


def lay_out(
    text: str,
    language: str,
    *,
    splits_sentences: bool = True,
    fits: Callable[[str], bool] | None = None,
) -> Layout:
    """Take a text apart into sentences and what is around them.

    Parameters
    ----------
    text : str
        The text.
    language : str
        Its language, for what ends a sentence.
    splits_sentences : bool
        Whether to split it where it need not be; otherwise it is one sentence, line breaks and all,
        if a model can read it.
    fits : Callable[[str], bool] | None
        Whether a model can read a sentence; those that it cannot are cut as `split_long` does.
        None: it can read all.

    Returns
    -------
    Layout
        Of which sentences and gaps make up the text. The end of a line always ends a sentence; what
        has neither letter nor digit is a gap, so that rules, dashes and emoji stay as they are.
    """
    sentences, gaps = [], []
    end = 0
    for start, part in _split(text, language, splits_sentences, fits):
        sentence = part.strip()
        if not any(map(str.isalnum, sentence)):
            continue
        begin = start + part.index(sentence)
        gaps.append(text[end:begin])
        sentences.append(sentence)
        end = begin + len(sentence)
    return Layout(sentences=tuple(sentences), gaps=(*gaps, text[end:]))


def _split(
    text: str, language: str, splits_sentences: bool, fits: Callable[[str], bool] | None
) -> Iterator[tuple[int, str]]:
    """Give the parts of a text that are translated by themselves, and where they begin."""
    whole = [(match.start(), match.group()) for match in _LINE.finditer(text)]
    for start, line in whole if splits_sentences else [(0, text)]:
        for sentence in split_sentences(line, language) if splits_sentences else [line]:
            for part in [sentence] if fits is None else _cut(sentence, language, fits):
                yield start, part
                start += len(part)


def _cut(sentence: str, language: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """Cut a sentence until it fits, between a letter and its thousandth accent if need be."""
    for part in split_long(sentence, language, fits):
        if len(part) == 1 or fits(part):
            yield part
        else:
            middle = len(part) // 2
            for half in (part[:middle], part[middle:]):
                yield from _cut(half, language, fits)
