"""Beam search on a GPU in static buffers and CUDA graphs, without waiting for the host."""

import threading
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.data.batches import Sequences
from dragoman.decoding.engines.cuda.device_buffers import (
    MOST_QUEUED,
    WIDTH_STEP,
    BufferSize,
    Chunk,
    DeviceBuffers,
    DeviceRequest,
    FinishedFlags,
)
from dragoman.decoding.engines.cuda.rebuilt_state import RebuiltMemory, RebuiltState
from dragoman.decoding.engines.cuda.rebuilt_transformer import RebuiltTransformer
from dragoman.decoding.engines.cuda.slot_decoder import SlotDecoder
from dragoman.decoding.engines.search_engine import MOST_BEAMS, Hypothesis, SearchRequest
from dragoman.decoding.search.backtrace import trace_back_many
from dragoman.decoding.search.hypotheses import Finished, History, trace_back
from dragoman.models.interface import Vocabulary
from dragoman.models.transformer import Transformer
from dragoman.shapes import Float, Int

# Slots of buffers for few sentences; those for many have as many as there is room for.
FEW_SLOTS = (1, 4, 16, 64, 256)
# Words of a hypothesis for which there is room, at least, and the steps in which there is more, so
# that few buffers are made. Few sentences are translated together whatever their lengths.
LEAST_PITCH = 128
FEW_SENTENCES, FEW_PITCH = 16, 256
# Sentences that are encoded together, and places in the source's memory for each.
CHUNK_SENTENCES = 256
SOURCE_PLACES = 128
MOST_BUFFERS = 6
# A share of the device's free memory that one set of buffers may take; all together take twice as
# much.
MEMORY_SHARE = 8


class BatchLimits(NamedTuple):
    """How much an engine computes at once.

    Rows are hypotheses of all slots; places are words of all hypotheses that are remembered.
    Buffers with at most `small_slots` are looked at after every step, larger ones after a few
    while more sentences wait.
    """

    most_rows: int = 4096
    most_places: int = 1 << 21
    chunk_sentences: int = CHUNK_SENTENCES
    small_slots: int = 64
    steps_between_looks: int = 4
    looks_in_flight: int = 3


class CudaEngine:
    """Search with a Transformer on a GPU, in static buffers and CUDA graphs.

    Parameters
    ----------
    model : Transformer
        The trained model, one that `can_take_slots` accepts, in the precision in which to compute.
    vocabulary : Vocabulary
        Its special symbols.
    device : torch.device
        Where the model is.
    batch_limits : BatchLimits
        How much to do at once.

    Notes
    -----
    For searches that make other constraints it is a model like any other: it offers what
    `RebuiltTransformer` does.
    """

    def __init__(
        self,
        model: Transformer,
        vocabulary: Vocabulary,
        device: torch.device,
        batch_limits: BatchLimits = BatchLimits(),  # noqa: B008
    ) -> None:
        self.engine = RebuiltTransformer(model)
        self._decoder = SlotDecoder(model, self.engine)
        self._vocabulary, self._device = vocabulary, device
        self._batch_limits = batch_limits
        if device.type == "cuda":
            share = torch.cuda.mem_get_info(device)[0] // MEMORY_SHARE
            place = self._decoder.num_layers * self._decoder.memory_width
            room = share // (place * self._decoder.dtype.itemsize)
            self._batch_limits = batch_limits._replace(
                most_places=min(batch_limits.most_places, room)
            )
        self._buffers: OrderedDict[BufferSize, DeviceBuffers] = OrderedDict()
        self._lock = threading.Lock()

    def output(self, hidden: Float[Tensor, "... model_dim"]) -> Float[Tensor, "... vocabulary"]:
        """Score every subword."""
        return self.engine.output(hidden)

    def encode(self, source: Sequences) -> RebuiltMemory:
        """Encode the source sentences."""
        return self.engine.encode(source)

    def start(self, memory: RebuiltMemory, capacity: int) -> RebuiltState:
        """Start one hypothesis for each sentence."""
        return self.engine.start(memory, capacity)

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: RebuiltState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], RebuiltState]:
        """Feed one token of each hypothesis to the decoder."""
        return self.engine.step(tokens, state)

    @torch.inference_mode()
    def find(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        request: SearchRequest,
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[Hypothesis]]:
        """Find the best translations of some sentences, as `search` does.

        Notes
        -----
        Long sentences come first, so that those that are under way together are similar, and the
        last ones are short.
        """
        assert request.num_best <= request.num_beams <= MOST_BEAMS
        prefixes = prefixes or [()] * len(sources)
        results: list[list[Hypothesis]] = [[] for _ in sources]
        order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
        groups: dict[int, list[int]] = {}
        least = least_pitch(limits, request.num_beams, self._batch_limits)
        for index in order:
            groups.setdefault(_pitch(limits[index], least), []).append(index)
        with self._lock:
            for pitch, indices in groups.items():
                for first in range(0, len(indices), MOST_QUEUED - CHUNK_SENTENCES):
                    part = indices[first : first + MOST_QUEUED - CHUNK_SENTENCES]
                    buffers = self._get_buffers(len(part), len(sources[part[0]]), pitch, request)
                    chunks = _chunks(part, buffers.size, sources, limits, prefixes)
                    for index, found in self._run(buffers, deque(chunks), request):
                        results[index] = found
        return results

    def _get_buffers(
        self, num_sentences: int, longest: int, pitch: int, request: SearchRequest
    ) -> DeviceBuffers:
        """Find, or allocate, buffers that fit some sentences."""
        size = choose_size(num_sentences, longest, pitch, request.num_beams, self._batch_limits)
        if size not in self._buffers:
            while self._buffers and not self._has_room(size):
                self._buffers.popitem(last=False)
            self._buffers[size] = DeviceBuffers(
                self.engine, self._decoder, size, self._vocabulary, self._device
            )
        self._buffers.move_to_end(size)
        return self._buffers[size]

    def _has_room(self, size: BufferSize) -> bool:
        """Say whether memory allows one more set of buffers."""
        places = sum(each.num_places for each in (*self._buffers, size))
        return len(self._buffers) < MOST_BUFFERS and places <= 2 * self._batch_limits.most_places

    def _run(
        self, buffers: DeviceBuffers, waiting: deque[Chunk], request: SearchRequest
    ) -> Iterator[tuple[int, list[Hypothesis]]]:
        """Translate all chunks; yield hypotheses as soon as a chunk is finished.

        While more waits, the device is kept busy some steps ahead. Then, and with few slots, every
        step is looked at while the next one runs, so that hardly one is done for nothing.
        """
        size, batch_limits = buffers.size, self._batch_limits
        buffers.begin(DeviceRequest(request.num_best, request.alpha, request.banned_ids))
        free, busy = deque(range(size.num_regions)), dict[int, tuple[Chunk, int]]()
        looks: deque[FinishedFlags] = deque()
        num_looks = 0
        while waiting or busy:
            # Enough for all slots at first; later one at a time, between steps that keep going.
            most = 1 if num_looks else -(-size.num_slots // size.region_sentences)
            for _ in range(min(most, len(waiting), len(free))):
                region, chunk = free.popleft(), waiting.popleft()
                buffers.add(region, chunk)
                busy[region] = chunk, num_looks
            is_close = not waiting or size.num_slots <= batch_limits.small_slots
            for _ in range(1 if is_close else batch_limits.steps_between_looks):
                buffers.step()
            looks.append(buffers.poll_finished())
            num_looks += 1
            while len(looks) > (1 if is_close else batch_limits.looks_in_flight):
                flags = looks.popleft().wait()
                seen = num_looks - len(looks) - 1
                for region, (chunk, since) in list(busy.items()):
                    first, count = region * size.region_sentences, len(chunk.indices)
                    if seen >= since and flags[first : first + count].all():
                        found = _trace(*buffers.fetch(region, count, request.num_best), request)
                        yield from zip(chunk.indices, found, strict=True)
                        del busy[region]
                        free.append(region)


def choose_size(
    num_sentences: int, longest: int, pitch: int, num_beams: int, batch_limits: BatchLimits
) -> BufferSize:
    """Choose the size of the buffers for some sentences."""
    most = min(batch_limits.most_rows // num_beams, batch_limits.most_places // (num_beams * pitch))
    most = max(1, most)
    num_slots = next((few for few in FEW_SLOTS if num_sentences <= few <= most), most)
    sentences = min(num_slots, batch_limits.chunk_sentences)
    is_single = num_sentences <= sentences
    regions = 1 if is_single else 4 * -(-num_slots // sentences) + 4
    share = SOURCE_PLACES if num_slots <= batch_limits.small_slots else SOURCE_PLACES // 2
    places = max(share * sentences, 1 << (longest + WIDTH_STEP - 1).bit_length())
    return BufferSize(num_slots, num_beams, pitch, regions, sentences, places)


def least_pitch(limits: Sequence[int], num_beams: int, batch_limits: BatchLimits) -> int:
    """Choose the smallest capacity of a hypothesis, where sentences differ in length.

    Returns
    -------
    int
        Enough for the longest, so that all sentences are under way together, unless that would
        leave less than half the rows; then what leaves half of them.

    Notes
    -----
    Were the few longest sentences translated by themselves, the device would make as many steps
    for them as for thousands of others.
    """
    if len(limits) <= FEW_SENTENCES:
        return _pitch(max(limits, default=1), FEW_PITCH)
    pitch = _pitch(max(limits), LEAST_PITCH)
    rows = min(batch_limits.most_rows, len(limits) * num_beams) // 2
    while pitch > LEAST_PITCH and batch_limits.most_places // pitch < rows:
        pitch = _pitch(pitch // 2 + 1, LEAST_PITCH)
    return pitch


def _pitch(limit: int, least: int) -> int:
    """Round the capacity of a hypothesis up, so that few sets of buffers serve all."""
    power = max(least, 1 << (limit - 1).bit_length())
    return power // 4 * 3 if limit <= power // 4 * 3 >= least else power


def _trace(finished: Finished, history: History, request: SearchRequest) -> list[list[Hypothesis]]:
    """Follow back-pointers, batched on the device or one by one, whichever is faster."""
    if len(finished.scores) > FEW_SENTENCES:
        return trace_back_many(finished, history, request.is_scored)
    return trace_back(finished, history, int(finished.lengths.max()), request.is_scored)


def _chunks(
    indices: Sequence[int],
    size: BufferSize,
    sources: Sequence[Sequence[int]],
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]],
) -> Iterator[Chunk]:
    """Split sentences, longest first, into chunks that fit a region."""
    first = 0
    while first < len(indices):
        width = -(-len(sources[indices[first]]) // WIDTH_STEP) * WIDTH_STEP
        count = min(size.region_sentences, size.region_places // width)
        part = indices[first : first + count]
        first += count
        yield Chunk(
            indices=part,
            sources=[sources[index] for index in part],
            limits=[limits[index] for index in part],
            prefixes=[prefixes[index] for index in part],
        )
