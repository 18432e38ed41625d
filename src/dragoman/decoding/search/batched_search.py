"""The general search over segments, in batches of similar length."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.constraints.constrained_beam import ConstrainedBeamChooser
from dragoman.decoding.constraints.term_automaton import Requirement
from dragoman.decoding.engines.cpu.cpu_decoder import CpuDecoder
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine, ShortListEngine
from dragoman.decoding.engines.search_engine import Hypothesis
from dragoman.decoding.search.beam import search
from dragoman.decoding.search.candidates import Chooser
from dragoman.decoding.search.repetition import RepetitionBlocker
from dragoman.decoding.search.sampling import SamplingChooser
from dragoman.decoding.search.scorer import ForbiddenWordTracker
from dragoman.decoding.segment import Segment
from dragoman.decoding.segment_search import SegmentSearch
from dragoman.weights import vocabulary_of

# Places in the decoder's cache: sentences × beams × longest translation.
BATCH_PLACES = {"cpu": 32_768, "mps": 65_536, "cuda": 524_288}
# Sentences × beams: more do not make a CPU's products faster, and their keys and values take room.
# A model with few words is a small one, where there is room for more.
BATCH_ROWS = {"cpu": 128, "mps": 4096, "cuda": 16_384}
CACHED_SCORES = 1 << 20


class GeneralSearch:
    """Searches with any model, in batches, under all constraints.

    Parameters
    ----------
    job : SegmentSearch
        What is asked for.
    """

    def __init__(self, job: SegmentSearch) -> None:
        model: Any = job.model
        if isinstance(model, ShortListEngine):
            model = model.engine
        self._model = CpuDecoder(model) if isinstance(model, CpuEngine) else model
        self._job = job
        self._device = torch.device(job.device)

    def find(
        self, segments: Sequence[Segment], requirements: Sequence[tuple[Requirement, ...]]
    ) -> list[list[Hypothesis]]:
        """Search for translations."""

        def find(batch: list[int]) -> list[list[Hypothesis]]:
            return self._search(
                [segments[index] for index in batch], [requirements[index] for index in batch]
            )

        results: list[list[Hypothesis]] = [[] for _ in segments]
        for batch in self._batches(segments, list(map(self._job.count_beams, requirements))):
            for index, hypotheses in zip(batch, find(batch), strict=True):
                results[index] = hypotheses
        return results

    def _batches(self, segments: Sequence[Segment], beams: Sequence[int]) -> Iterator[list[int]]:
        """Batch segments of similar length and equal beam size, within memory."""
        most, most_rows = BATCH_PLACES[self._device.type], BATCH_ROWS[self._device.type]
        most_rows = max(most_rows, CACHED_SCORES // len(self._job.vocabularies.target))
        lengths = [len(segment.ids) for segment in segments]
        # In a forced beginning anything may be repeated: that is one rule for a whole batch.
        begins = [segment.is_first and self._job.is_unrepeated for segment in segments]
        batch: list[int] = []
        largest = 0
        for index in sorted(
            range(len(segments)), key=lambda each: (begins[each], -beams[each], -lengths[each])
        ):
            places = (lengths[index] + self._job.options.max_extra_tokens) * beams[index]
            size = len(batch) + 1
            is_full = size * max(largest, places) > most or size * beams[index] > most_rows
            if batch and (is_full or begins[index] != begins[batch[0]]):
                yield batch
                batch, largest = [], 0
            batch.append(index)
            largest = max(largest, places)
        if batch:
            yield batch

    def _search(
        self, segments: Sequence[Segment], requirements: Sequence[tuple[Requirement, ...]]
    ) -> list[list[Hypothesis]]:
        """Search for the translations of one batch."""
        job, vocabulary = self._job, vocabulary_of(self._job.vocabularies)
        ids = [segment.ids for segment in segments]
        table = job.constraints.forbidden
        model = self._model
        if job.is_unrepeated:
            model = RepetitionBlocker(model, len(job.prefix_ids) if segments[0].is_first else 0)
        return search(
            model,
            pad_sequences(flatten(ids), vocabulary.pad_id).to(self._device),
            job.options,
            vocabulary,
            num_best=job.num_best,
            prefixes=self._prefixes(segments),
            banned_ids=job.banned_ids,
            max_length=job.max_length,
            chooser=self._chooser(ids, requirements, vocabulary.eos_id),
            forbidden=None if table is None else ForbiddenWordTracker(table, self._device),
            is_scored=job.constraints.is_scored,
        )

    def _chooser(
        self,
        ids: Sequence[Sequence[int]],
        requirements: Sequence[tuple[Requirement, ...]],
        eos_id: int,
    ) -> Chooser | None:
        """Make the chooser for sampling or required terms; None: plain beam search."""
        job = self._job
        if job.constraints.sampling is not None:
            capacity = max(map(len, ids)) + job.options.max_extra_tokens + len(job.prefix_ids)
            return SamplingChooser(
                job.constraints.sampling,
                ids,
                num_samples=job.num_best,
                capacity=capacity,
                eos_id=eos_id,
                device=self._device,
            )
        if not any(requirements) or job.constraints.speller is None:
            return None
        return ConstrainedBeamChooser(
            requirements,
            job.constraints.speller,
            beam_size=job.options.beam_size,
            eos_id=eos_id,
            device=self._device,
        )

    def _prefixes(self, segments: Sequence[Segment]) -> Tensor | None:
        """Lay out forced prefixes; only the first segment of a text has one."""
        job = self._job
        if not job.prefix_ids:
            return None
        free = [-1] * len(job.prefix_ids)
        rows = [list(job.prefix_ids) if segment.is_first else free for segment in segments]
        return torch.tensor(rows, device=self._device)
