"""Text layout: sentences and the white space between them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.decoding.translation import find_space
from dragoman.serving.service_types import Span
from dragoman.text.sentence_splitting import find_reference


@dataclass(frozen=True, kw_only=True)
class TextLayout:
    """A text split into sentences and gaps.

    Parameters
    ----------
    sentences : tuple[str, ...]
        What is to be translated, without white space around it.
    gaps : tuple[str, ...]
        What stays as it is before each sentence, and after the last: white space, marks, references
        to notes.
    """

    sentences: tuple[str, ...]
    gaps: tuple[str, ...]

    def join(self, translations: Sequence[str]) -> str:
        """Join translations with the gaps of the text."""
        pairs = zip(self._gaps_between(translations), translations, strict=True)
        return "".join(gap + each for gap, each in pairs) + self.gaps[-1]

    def place(
        self, translations: Sequence[str], spans: Sequence[Sequence[Span]]
    ) -> tuple[Span, ...]:
        """Shift sentence alignments to positions in the whole texts."""
        placed: list[Span] = []
        source = target = 0
        for old, new, sentence, translation, links in zip(
            self.gaps,
            [*self._gaps_between(translations), self.gaps[-1]],
            [*self.sentences, ""],
            [*translations, ""],
            [*spans, ()],
            strict=True,
        ):
            if any(map(str.isalnum, new)):  # A reference to a note, which is its own translation.
                length = len(new.rstrip())
                placed.append((source, source + length, target, target + length))
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
        """Insert spaces that the target language needs and Chinese or Japanese does not."""
        between = map(find_space, self.sentences, self.gaps[1:-1], translations)
        return [*self.gaps[:-1][:1], *between]


def split_layout(text: str, split: Callable[[str], list[str]]) -> TextLayout:
    """Split a text into sentences and the gaps around them.

    Returns
    -------
    Layout
        Of which sentences and gaps make up the text. What has neither letter nor digit is a gap, so
        that rules, dashes and emoji stay as they are, and so is what points to a note behind the
        end of a sentence.
    """
    sentences, gaps = [], []
    start = end = 0
    for part in split(text):
        sentence = part.strip()
        sentence = sentence[: find_reference(sentence)]
        if any(map(str.isalnum, sentence)):
            begin = start + part.index(sentence)
            gaps.append(text[end:begin])
            sentences.append(sentence)
            end = begin + len(sentence)
        start += len(part)
    return TextLayout(sentences=tuple(sentences), gaps=(*gaps, text[end:]))
