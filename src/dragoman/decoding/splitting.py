"""Split texts into segments that a model translates one by one."""

import sys
from collections.abc import Callable, Mapping, Sequence

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.segment import Segment
from dragoman.errors import OptionError
from dragoman.folder import ModelFolder
from dragoman.text.sentence_splitting import cut_long, split_text
from dragoman.text.target_marks import choose_target, take_mark


class Splitter:
    """Splits texts as a model was trained to read them.

    Parameters
    ----------
    folder : ModelFolder
        The model's subwords, facts and limits.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self._facts = folder.facts
        self._subwords = folder.vocabularies.source
        longest = folder.facts.longest_source or sys.maxsize
        most = min(longest, folder.options.max_length or sys.maxsize)
        self._formality = {
            kind: tuple(self._subwords.encode([mark])[0])
            for kind, mark in folder.facts.formality.items()
        }
        # Marks take places.
        self._longest = most - bool(folder.facts.target_languages)
        self._longest -= max(map(len, self._formality.values()), default=0)
        self._longest = max(1, self._longest)
        self._marks: dict[str, tuple[int, ...]] = {}

    def split(self, text: str, options: SearchOptions, *, cuts_long: bool) -> list[str]:
        """Split a text into lines, and these into sentences unless trained on several a line."""
        splits = options.split_sentences
        knows_several = self._facts.one_sentence_a_line is False
        units = split_text(
            text,
            self._facts.source_language,
            by_line=splits != "off",
            by_sentence=splits == "on" or (splits == "auto" and not knows_several),
        )
        return [part for unit in units for part in self._cut(unit)] if cuts_long else units

    def segments(
        self,
        texts: Sequence[str],
        options: SearchOptions,
        num_threads: Callable[[int], int],
        encoded: Mapping[str, Sequence[int]] | None = None,
    ) -> list[Segment]:
        """Split texts; tokenise the segments that are not among the encoded ones."""
        known = encoded or {}
        marked = [self.take_mark(text, options) for text in texts]
        units = [
            (index, unit)
            for index, (text, _) in enumerate(marked)
            for unit in self.split(text, options, cuts_long=False)
        ]
        missing = [unit for _, unit in units if unit not in known]
        new_ids = iter(self._subwords.encode(missing, num_threads(len(missing))))
        segments: list[Segment] = []
        for index, unit in units:
            unit_ids = known[unit] if unit in known else next(new_ids)
            parts, ids_of_parts = [unit], [unit_ids]
            mark = marked[index][1]
            if len(unit_ids) >= self._longest:
                parts = self._cut(unit)
                ids_of_parts = [*self._subwords.encode(parts)]
            for part, ids in zip(parts, ids_of_parts, strict=True):
                if ids:
                    segment = Segment(
                        text_index=index,
                        text=part,
                        ids=(*mark, *ids, self._subwords.eos_id),
                        space=part[len(part.rstrip()) :],
                        is_first=not segments or segments[-1].text_index != index,
                        num_marks=len(mark),
                    )
                    segments.append(segment)
        return segments

    def take_mark(self, text: str, options: SearchOptions) -> tuple[str, tuple[int, ...]]:
        """Find the subwords that tell target language and formality.

        The language is the text's own, or the option's.

        Returns
        -------
        tuple[str, tuple[int, ...]]
            The text without its mark, and the subwords that each of its sentences begins with.
        """
        targets = self._facts.target_languages
        if not targets:
            if options.into is not None:
                raise OptionError(
                    f"into is “{options.into}”, but the model has one target language; leave it out"
                )
            return text, self._formality_ids(options)
        text, target = take_mark(text, targets)
        target = target or choose_target(options.into, targets)
        if target not in self._marks:
            self._marks[target] = tuple(self._subwords.encode([f">>{target}<<"])[0])
        return text, (*self._marks[target], *self._formality_ids(options))

    def _formality_ids(self, options: SearchOptions) -> tuple[int, ...]:
        """Encode the mark of a formality, or refuse one that the model does not know."""
        if options.formality is None:
            return ()
        if options.formality not in self._formality:
            known = ", ".join(f"“{each}”" for each in self._formality)
            why = f"knows only {known}" if known else "has no formality setting"
            raise OptionError(
                f"formality is “{options.formality}”, but this model {why}; leave it out"
            )
        return self._formality[options.formality]

    def _cut(self, part: str) -> list[str]:
        """Split a part until the model can read each piece."""
        return cut_long(part, self._facts.source_language, self._fits)

    def _fits(self, part: str) -> bool:
        """Say whether a part is within the model's length limit."""
        # Subwords have a byte each at least, but for a mark of white space and the end.
        is_short = len(part.encode()) + 2 <= self._longest
        return is_short or len(self._subwords.encode([part])[0]) + 1 <= self._longest
