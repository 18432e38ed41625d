"""Format the output lines of “dragoman translate”."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from dragoman.decoding.translation import Translation

if TYPE_CHECKING:
    from dragoman.decoding.output.alignments import Aligner

SEPARATOR = " ||| "


class LineTranslator:
    """Translates windows of lines and formats the results.

    Parameters
    ----------
    translate : Callable[[Sequence[str]], list[Translation]]
        Translates.
    place : str
        What to call the lines in warnings.
    warn : Callable[[str], None]
        Takes warnings.
    is_n_best : bool
        Whether to write all translations of a line, with scores.
    aligner : Aligner | None
        Aligns the words; None: nobody asked.
    name_tokens : Callable[[Sequence[int]], list[str]] | None
        Names subwords, to write them with their log-probabilities; None: nobody asked.
    is_confident : bool
        Whether to write the confidence in each translation.

    Notes
    -----
    A line becomes “translation”, or with alignments “translation ||| 0-0 1-1”, as Marian and
    OpenNMT write it. The best of several become lines “0 ||| translation ||| 0-0 1-1 ||| −1.2345”,
    where 0 is the number of the line counted from 0, as Moses wrote it. With the names of subwords
    score and subwords come after these, each subword with its log-probability as “▁The:-0.0806”.
    The confidence is the last column: “translation ||| 0.87”.
    """

    def __init__(
        self,
        translate: Callable[[Sequence[str]], list[Translation]],
        *,
        place: str,
        warn: Callable[[str], None],
        is_n_best: bool = False,
        aligner: "Aligner | None" = None,
        name_tokens: Callable[[Sequence[int]], list[str]] | None = None,
        is_confident: bool = False,
    ) -> None:
        self._translate = translate
        self._place = place
        self._warn = warn
        self._is_n_best = is_n_best
        self._aligner = aligner
        self._name_tokens = name_tokens
        self._is_confident = is_confident

    def __call__(self, lines: list[str], first: int) -> list[str]:
        """Translate some lines."""
        found = self._translate(lines)
        for number, each in enumerate(found, start=first):
            for note in each.notes:
                self._warn(f"{self._place}, line {number}: {note}")
        every = [(each, *each.alternatives) if self._is_n_best else (each,) for each in found]
        links = self._align(lines, every)
        return [
            "\n".join(
                self._write(first - 1 + index, each, None if links is None else next(links))
                for each in translations
            )
            for index, translations in enumerate(every)
        ]

    def _align(
        self, lines: list[str], every: list[tuple[Translation, ...]]
    ) -> Iterator[str] | None:
        """Align each line with its translations, if requested."""
        if self._aligner is None:
            return None
        from dragoman.decoding.output.alignments import write_pharaoh

        pairs = [(line, each) for line, many in zip(lines, every, strict=True) for each in many]
        links = self._aligner.align_translations(
            [line for line, _ in pairs], [each for _, each in pairs]
        )
        return map(write_pharaoh, links)

    def _write(self, index: int, translation: Translation, links: str | None) -> str:
        """Format one translation."""
        columns = [translation.text] + ([] if links is None else [links])
        if self._is_n_best or self._name_tokens is not None:
            columns.append(f"{translation.score:.4f}")
        if self._name_tokens is not None:
            names = self._name_tokens(translation.tokens)
            pairs = zip(names, translation.log_probabilities, strict=True)
            columns.append(" ".join(f"{name}:{log:.4f}" for name, log in pairs))
        if self._is_confident:
            assert translation.confidence is not None
            columns.append(f"{translation.confidence:.2f}")
        if self._is_n_best:
            columns = [str(index), *columns]
        return SEPARATOR.join(columns)
