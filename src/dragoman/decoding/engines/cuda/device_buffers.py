"""Preallocated device memory for beam search of one shape, and the steps that run in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.decoding.engines.cuda.cuda_graph import CudaGraph
from dragoman.decoding.engines.cuda.rebuilt_transformer import RebuiltTransformer
from dragoman.decoding.engines.cuda.slot_decoder import SlotDecoder
from dragoman.decoding.search.hypotheses import Finished, History
from dragoman.decoding.search.length_penalty import length_penalty
from dragoman.kernels.cuda_search.beam_slots import NUM_FACTS, TAIL, Rules, Sentences, Slots, admit
from dragoman.kernels.cuda_search.beam_step import advance
from dragoman.kernels.cuda_search.best_tokens import best_words
from dragoman.models.interface import Vocabulary
from dragoman.shapes import Int

# Sentences that one search can take; longer lists are searched in several goes.
MOST_QUEUED = 1 << 16
# Source lengths for which the work of adding sentences is recorded, and of how many sentences.
RECORDED_WIDTHS = (32, 64, 128)
MOST_RECORDED = 64
WIDTH_STEP = 8


class BufferSize(NamedTuple):
    """The capacity of a set of buffers.

    Sentences are encoded some at a time, each time into one region of the source's memory, which
    is free again when all of them are done.
    """

    num_slots: int
    num_beams: int
    pitch: int
    num_regions: int
    region_sentences: int
    region_places: int

    @property
    def num_places(self) -> int:
        """Tokens of all hypotheses that fit."""
        return self.num_slots * self.num_beams * self.pitch


class DeviceRequest(NamedTuple):
    """Settings of a search: n-best size, α of the length penalty, banned tokens."""

    num_best: int
    alpha: float
    banned_ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """A batch of sentences that are encoded together.

    Parameters
    ----------
    indices : Sequence[int]
        Which sentences of the caller's they are.
    sources : Sequence[Sequence[int]]
        Their tokens.
    limits : Sequence[int]
        How long each translation may become, the end symbol included.
    prefixes : Sequence[Sequence[int]]
        How each translation must begin.
    """

    indices: Sequence[int]
    sources: Sequence[Sequence[int]]
    limits: Sequence[int]
    prefixes: Sequence[Sequence[int]]


class FinishedFlags:
    """Flags of finished sentences, copied from the device asynchronously.

    Parameters
    ----------
    flags : Int[Tensor, "sentences"]
        On the host: 1 for each sentence that is done.
    event : torch.cuda.Event | None
        When they are there; None: now.
    """

    def __init__(self, flags: Int[Tensor, "sentences"], event: torch.cuda.Event | None) -> None:
        self._flags, self._event = flags, event

    def wait(self) -> Int[np.ndarray, "sentences"]:
        """Wait for the copy and return the flags."""
        if self._event is not None:
            self._event.synchronize()
        return self._flags.numpy().copy()


class DeviceBuffers:
    """Slots, caches and queue of one beam search on the device.

    Parameters
    ----------
    engine : RebuiltTransformer
        Encodes.
    decoder : SlotDecoder
        Decodes.
    size : BufferSize
        How much there is room for.
    vocabulary : Vocabulary
        The special symbols.
    device : torch.device
        Where.
    """

    def __init__(
        self,
        engine: RebuiltTransformer,
        decoder: SlotDecoder,
        size: BufferSize,
        vocabulary: Vocabulary,
        device: torch.device,
    ) -> None:
        self.size = size
        self._engine, self._decoder, self._device = engine, decoder, device
        slots, beams, pitch, regions, sentences, places = size
        self.slots = Slots.make(slots, beams, pitch, vocabulary.pad_id, device)
        self.sentences = Sentences.make(regions * sentences, beams, pitch, MOST_QUEUED, device)
        self.rules = Rules(
            penalties=torch.ones(pitch + 1, device=device),
            standing=torch.zeros(decoder.num_scores, dtype=torch.uint8, device=device),
            eos_id=vocabulary.eos_id,
            pad_id=vocabulary.pad_id,
        )
        kind: dict[str, Any] = {"dtype": decoder.dtype, "device": device}
        shape = (decoder.num_layers, slots * beams * pitch, decoder.memory_width)
        self._past = torch.zeros(shape, **kind)
        self._memory = torch.zeros(shape[0], regions * places, shape[2], **kind)
        self._place_vectors = decoder.place_vectors(pitch)
        self._blank = torch.zeros(beams, device=device)
        self._count = 2 * beams if beams > 1 else 1
        self._asked: DeviceRequest | None = None
        self._num_queued = 0
        self._side = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._uploads: dict[int, tuple[Tensor, CudaGraph]] = {}
        self._held: list[Tensor | None] = []
        self._step = CudaGraph(self._extend, device)

    def begin(self, asked: DeviceRequest) -> None:
        """Reset for a new search, with empty slots and an empty queue."""
        self.slots.clear(self.rules.pad_id)
        self.sentences.ends.zero_()
        self._num_queued = 0
        if asked == self._asked:
            return
        beams, pitch = self.size.num_beams, self.size.pitch
        blank = torch.full((beams,), torch.inf)
        blank[: asked.num_best] = -torch.inf
        penalties = length_penalty(torch.arange(pitch + 1), asked.alpha)
        standing = torch.zeros(len(self.rules.standing), dtype=torch.uint8)
        standing[list(asked.banned_ids)] = 1
        standing[self.rules.pad_id] = 2
        standing[self._decoder.vocabulary_size :] = 2
        for room, new in (
            (self._blank, blank),
            (self.rules.penalties, penalties),
            (self.rules.standing, standing),
        ):
            room.copy_(torch.as_tensor(new))
        self._asked = asked

    def add(self, region: int, chunk: Chunk) -> None:
        """Encode sentences and append them to the queue."""
        count, longest = len(chunk.sources), max(map(len, chunk.sources))
        recorded = self._recorded(longest) if region == 0 and not self._num_queued else None
        if recorded is not None:
            room, width = self.size.region_sentences, recorded
        else:
            room, width = count, -(-longest // WIDTH_STEP) * WIDTH_STEP
            width = min(width, self._decoder.most_positions)
        packed = self._pack_upload(region, chunk, room, width)
        if recorded is None:
            self._unpack_and_encode(packed.to(self._device, non_blocking=True), region, room, width)
        else:
            upload, work = self._record_upload(width)
            upload.copy_(packed, non_blocking=True)
            work()
        self._num_queued += count
        if any(chunk.prefixes):
            self._write_prefixes(region, chunk.prefixes)

    def step(self) -> None:
        """Extend all hypotheses by one token."""
        self._step()

    def poll_finished(self) -> FinishedFlags:
        """Start copying the flags of finished sentences, without waiting for the device."""
        done = self.sentences.is_done
        if self._side is None:
            return FinishedFlags(done.clone(), None)
        flags = torch.empty(len(done), dtype=done.dtype, pin_memory=True)
        flags.copy_(done, non_blocking=True)
        event = torch.cuda.Event()
        event.record()
        return FinishedFlags(flags, event)

    def fetch(self, region: int, count: int, num_best: int) -> tuple[Finished, History]:
        """Copy finished hypotheses and back-pointers of a region to the host."""
        first, pitch = region * self.size.region_sentences, self.size.pitch
        rows = slice(first, first + count)
        steps = slice(first * pitch, (first + count) * pitch)
        found = self.sentences
        ends = (found.scores, found.logs, found.lengths, found.beams)
        past = (found.said, found.parents, found.sums)
        fetched = self._copy_to_host(
            [*(each[rows] for each in ends), *(each[steps] for each in past)]
        )
        order = fetched[0][:, :num_best].argsort(dim=1, descending=True, stable=True)
        scores, logs, lengths, beams = (each.gather(1, order) for each in fetched[:4])
        words, parents, sums = (each.view(count, pitch, -1) for each in fetched[4:])
        return (
            Finished(scores=scores, logs=logs, lengths=lengths, beams=beams),
            History(words=words, parents=parents, logs=sums),
        )

    def _copy_to_host(self, tensors: list[Tensor]) -> list[Tensor]:
        """Copy to the host on a side stream, ahead of queued work."""
        if self._side is None:
            return tensors
        with torch.cuda.stream(self._side):
            copies = [
                torch.empty(each.shape, dtype=each.dtype, pin_memory=True).copy_(
                    each, non_blocking=True
                )
                for each in tensors
            ]
        self._side.synchronize()
        return copies

    def _extend(self) -> None:
        """Compute one beam-search step, all of it on the device."""
        scores = self._decoder.step(self.slots, self._past, self._memory, self._place_vectors)
        choice = best_words(scores, self.rules.standing, self._count)
        advance(choice, scores, self.slots, self.sentences, self.rules)

    def _recorded(self, longest: int) -> int | None:
        """Choose the recorded graph width for sentences of some length; None: run eagerly."""
        sentences = self.size.region_sentences
        if self._side is None or sentences > MOST_RECORDED:
            return None
        most = min(self.size.region_places // sentences, self._decoder.most_positions)
        return next((each for each in RECORDED_WIDTHS if longest <= each <= most), None)

    def _record_upload(self, width: int) -> tuple[Tensor, CudaGraph]:
        """Get the CUDA graph that encodes sentences of some width, recording it at first use."""
        if width not in self._uploads:
            room = self.size.region_sentences
            size = 1 + room * (NUM_FACTS + 1 + width)
            upload = torch.zeros(size, dtype=torch.int32, device=self._device)
            # The table of positions may grow, but what is recorded reads the one of today.
            self._held.append(self._engine.source_positions(width))
            work = CudaGraph(lambda: self._unpack_and_encode(upload, 0, room, width), self._device)
            self._uploads[width] = upload, work
        return self._uploads[width]

    def _pack_upload(self, region: int, chunk: Chunk, room: int, width: int) -> Tensor:
        """Pack ids, lengths, limits and prefixes into one tensor, for a single copy."""
        size, count = self.size, len(chunk.sources)
        packed = np.zeros(1 + room * (NUM_FACTS + 1 + width), dtype=np.int32)
        packed[0] = count
        facts = packed[1 : 1 + NUM_FACTS * room].reshape(NUM_FACTS, room)
        facts[0] = region * size.region_places + np.arange(room) * width
        facts[1] = 1  # what only fills up needs a token to attend to
        facts[1, :count] = [len(each) for each in chunk.sources]
        facts[2, :count] = chunk.limits
        facts[3, :count] = [len(each) for each in chunk.prefixes]
        names = packed[1 + NUM_FACTS * room : 1 + (NUM_FACTS + 1) * room]
        names[:] = region * size.region_sentences + np.arange(room)
        ids = packed[-room * width :].reshape(room, width)
        ids[:] = self.rules.pad_id
        for row, source in zip(ids, chunk.sources, strict=False):
            row[: len(source)] = source
        sent = torch.from_numpy(packed)
        return sent if self._side is None else sent.pin_memory()

    def _unpack_and_encode(self, packed: Tensor, region: int, room: int, width: int) -> None:
        """Unpack an upload, encode its sentences and append them to the queue."""
        facts = packed[1 : 1 + NUM_FACTS * room].view(NUM_FACTS, room)
        names = packed[1 + NUM_FACTS * room : 1 + (NUM_FACTS + 1) * room]
        ids, lengths = packed[-room * width :].view(room, width), facts[1]
        times = torch.arange(width, device=packed.device)
        mask = torch.zeros(room, width, dtype=self._decoder.dtype, device=packed.device)
        mask = mask.masked_fill(times >= lengths[:, None], -torch.inf)[:, None, None, :]
        hidden = self._engine.read(ids, lengths, mask).flatten(0, 1)
        start = region * self.size.region_places
        self._decoder.project(hidden, self._memory[:, start : start + len(hidden)])
        rows = slice(region * self.size.region_sentences, None)
        self.sentences.facts[:, rows][:, :room] = facts
        self.sentences.is_done[rows][:room] = 0
        self.sentences.scores[rows][:room] = self._blank
        self.sentences.queue[self._num_queued : self._num_queued + room] = names
        self.sentences.ends[TAIL:].add_(packed[:1])
        admit(self.slots, self.sentences, self.rules.pad_id)

    def _write_prefixes(self, region: int, prefixes: Sequence[Sequence[int]]) -> None:
        """Write forced prefixes where each step reads its forced token."""
        width = max(map(len, prefixes))
        words = torch.tensor([[*each, *[0] * (width - len(each))] for each in prefixes])
        first, pitch = region * self.size.region_sentences, self.size.pitch
        steps = slice(first * pitch, (first + len(prefixes)) * pitch)
        room = self.sentences.said[steps].unflatten(0, (len(prefixes), pitch))
        room[:, :width, 0] = words.to(self._device, torch.int32)
