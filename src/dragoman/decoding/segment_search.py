"""Search for translations of segments under constraints."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from dragoman.decoding.constraints.constraints import Constraints, SegmentTerms
from dragoman.decoding.constraints.term_automaton import Requirement
from dragoman.decoding.constraints.term_speller import NARROWEST_BEAM, count_beams
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine, ShortListEngine
from dragoman.decoding.engines.search_engine import (
    MOST_BEAMS,
    Hypothesis,
    SearchEngine,
    SearchRequest,
    TermConstraints,
    count_candidates,
)
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.segment import Segment, SegmentResult
from dragoman.text.vocabulary import Vocabularies

if TYPE_CHECKING:  # PyTorch, which most translations on a CPU do not need
    import torch

    from dragoman.models.interface import SearchedModel

_NOTHING = Hypothesis(tokens=(), log_probability=-inf, score=-inf, token_log_probabilities=(-inf,))


@dataclass(frozen=True, kw_only=True)
class SegmentSearch:
    """A search over segments: the engine, its options and constraints.

    Parameters
    ----------
    model : SearchedModel | SearchEngine
        What translates, on its device.
    vocabularies : Vocabularies
        Its subwords.
    device : torch.device | str
        That device.
    max_length : int | None
        The longest sequence that the model can write; None: any.
    options : SearchOptions
        How to search.
    num_best : int
        Translations of a segment.
    prefix_ids : Sequence[int]
        Subwords with which the translation of a text's first segment must begin.
    constraints : Constraints
        What else must be.
    is_unrepeated : bool
        Whether no phrase may be said three times in a row.
    """

    model: "SearchedModel | SearchEngine"
    vocabularies: Vocabularies
    device: "torch.device | str"
    max_length: int | None
    options: SearchOptions
    num_best: int
    prefix_ids: Sequence[int]
    constraints: Constraints
    is_unrepeated: bool = False

    def find(self, segments: Sequence[Segment]) -> list[SegmentResult]:
        """Translate segments.

        Returns
        -------
        list[SegmentResult]
            In that order. A segment for which nothing meets all constraints is translated without
            them; one for which nothing is found at all has an empty translation, and a note.

        Notes
        -----
        All segments are first translated without their terms; only where a translation lacks one
        is it searched for again, with terms and a wider beam. So terms cost little where the
        model knows them anyway, and change nothing there.
        """
        wanted = [self.constraints.want(segment.text, self._room(segment)) for segment in segments]
        free = self._search(segments, [()] * len(segments))
        results = [
            SegmentResult(hypotheses=hypotheses, notes=each.notes)
            for hypotheses, each in zip(free, wanted, strict=True)
        ]
        lacking = [index for index, each in enumerate(wanted) if self._lacks(each, results[index])]
        again = self._search(
            [segments[index] for index in lacking],
            [wanted[index].requirements for index in lacking],
        )
        for index, hypotheses in zip(lacking, again, strict=True):
            results[index] = replace(results[index], hypotheses=hypotheses)
        self._give_up(segments, wanted, results)
        return list(map(_or_nothing, results))

    def _lacks(self, wanted: SegmentTerms, found: SegmentResult) -> bool:
        """Say whether a translation lacks a required term."""
        if not wanted.requirements:
            return False
        assert self.constraints.speller is not None
        return not found.hypotheses or not all(
            self.constraints.speller.is_met(wanted.requirements, each.tokens)
            for each in found.hypotheses
        )

    def _give_up(
        self,
        segments: Sequence[Segment],
        wanted: Sequence[SegmentTerms],
        results: list[SegmentResult],
    ) -> None:
        """Search without constraints where none can be met, and note it."""
        failed = [index for index, each in enumerate(results) if not each.hypotheses]
        if not failed or (self.constraints.glossary is None and self.constraints.forbidden is None):
            return
        free = replace(self, constraints=self.constraints.without_words())
        again = free.find([segments[index] for index in failed])
        for index, found in zip(failed, again, strict=True):
            note = _say_what_failed(wanted[index], self.constraints)
            results[index] = replace(found, notes=(*wanted[index].notes, note, *found.notes))

    def _search(
        self, segments: Sequence[Segment], requirements: Sequence[tuple[Requirement, ...]]
    ) -> list[list[Hypothesis]]:
        """Search with the engine's own search if it supports the request, else the general one."""
        if not segments:
            return []
        if not isinstance(self.model, SearchEngine) or not self._can_find(requirements):
            from dragoman.decoding.search.batched_search import GeneralSearch

            return GeneralSearch(self).find(segments, requirements)
        groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for index, each in enumerate(requirements):
            groups[self.count_beams(each), bool(each)].append(index)
        results: list[list[Hypothesis]] = [[] for _ in segments]
        for (num_beams, has_terms), group in groups.items():
            chosen = [segments[index] for index in group]
            prefixes = [self.prefix_ids if segment.is_first else () for segment in chosen]
            terms = self._require([requirements[index] for index in group]) if has_terms else None
            limits = [
                self._limit(segment, prefix)
                for segment, prefix in zip(chosen, prefixes, strict=True)
            ]
            request = self._make_request(num_beams, terms)
            found = self.model.find([segment.ids for segment in chosen], limits, request, prefixes)
            for index, hypotheses in zip(group, found, strict=True):
                results[index] = hypotheses
        return results

    def _can_find(self, requirements: Sequence[tuple[Requirement, ...]]) -> bool:
        """Say whether an engine can do all that is asked."""
        if self.options.coverage_penalty:
            return False
        return isinstance(self.model, CpuEngine | ShortListEngine) or not (
            any(requirements)
            or self.is_unrepeated
            or self.constraints.sampling
            or self.constraints.forbidden
            or self.options.beam_size > MOST_BEAMS
        )

    def _make_request(self, num_beams: int, terms: TermConstraints | None) -> SearchRequest:
        """Describe the search to an engine."""
        return SearchRequest(
            num_beams=num_beams,
            num_best=self.num_best,
            alpha=self.options.length_penalty,
            banned_ids=self.banned_ids,
            is_scored=self.constraints.is_scored or num_beams > 1,
            is_unrepeated=self.is_unrepeated,
            forbidden=self.constraints.forbidden,
            sampling=self.constraints.sampling,
            required=terms,
            is_aligned=self.constraints.is_aligned,
        )

    def _limit(self, segment: Segment, prefix: Sequence[int]) -> int:
        """Compute the length limit of a translation, prefix and end symbol included."""
        limit = len(segment.ids) + self.options.max_extra_tokens + len(prefix)
        return limit if self.max_length is None else min(limit, self.max_length)

    def _room(self, segment: Segment) -> int:
        """Compute the length limit without prefix and end symbol."""
        return self._limit(segment, self.prefix_ids) - len(self.prefix_ids) - 1

    def _require(self, requirements: Sequence[tuple[Requirement, ...]]) -> TermConstraints:
        """Build the automata of required terms."""
        speller = self.constraints.speller
        assert speller is not None
        num_words = count_candidates(max(self.options.beam_size, NARROWEST_BEAM))
        machines = [speller.automaton(each) for each in requirements]
        return TermConstraints(machines, speller.kinds, num_words)

    def count_beams(self, requirements: tuple[Requirement, ...]) -> int:
        """Compute the beam size of a segment."""
        if self.constraints.sampling is not None:
            return self.num_best
        return count_beams(self.options.beam_size, requirements)

    @property
    def banned_ids(self) -> tuple[int, ...]:
        """Tokens that must not occur: the unknown one, unless it is replaced afterwards."""
        return () if self.vocabularies.is_closed else (self.vocabularies.target.unk_id,)


def _or_nothing(found: SegmentResult) -> SegmentResult:
    """Replace an empty result by an empty translation and a note."""
    if found.hypotheses:
        return found
    return SegmentResult(hypotheses=[_NOTHING], notes=(*found.notes, "found no translation"))


def _say_what_failed(wanted: SegmentTerms, constraints: Constraints) -> str:
    """Name the constraints that were dropped."""
    what = [f"“{each.text}”" for each in wanted.requirements]
    if constraints.forbidden is not None:
        what.append("a way around the forbidden words")
    return f"found no translation with {', '.join(what)}; translated without that demand"
