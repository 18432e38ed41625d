"""The compiled Transformer as a model that any search can extend word by word.

The compiled search of `dragoman.decoding.engines.cpu.cpu_engine` finds the most probable words and
nothing else. What else may be asked for (ensembles, say) is the general search's affair: it calls
the same compiled functions here.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import Sequences
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine, check_ids
from dragoman.kernels.cpu_search.model import Model
from dragoman.models.state import rows_of_beams, rows_of_sentences
from dragoman.shapes import Bool, Float, Int, UInt32


class CpuMemory(NamedTuple):
    """Source sentences, encoded when a search starts."""

    source: Sequences


class Cache(NamedTuple):
    """Keys, values and recurrent cells as `Pool` has them, and its free rows."""

    keys: np.ndarray
    values: np.ndarray
    cells: np.ndarray
    is_free: Bool[np.ndarray, "places"]

    @staticmethod
    def make(model: Model, num_places: int) -> "Cache":
        """Allocate a cache."""
        shape, num_layers, width = model.shape, len(model.decoder.norms), model.positions.shape[1]
        room = (num_layers, shape.num_heads, num_places)
        return Cache(
            np.empty((*room, shape.key_dim), shape.cached.dtype),
            np.empty((*room, shape.value_dim), shape.cached.dtype),
            np.empty((num_layers, num_places * shape.is_recurrent, width), np.float32),
            np.ones(num_places, np.bool_),
        )

    def take(self, count: int) -> UInt32[np.ndarray, "taken"]:
        """Take free rows, of which there must be enough."""
        places = np.flatnonzero(self.is_free)[:count]
        self.is_free[places] = False
        return places.astype(np.uint32)

    def grown(self, least: int) -> "Cache":
        """Copy everything into a larger cache."""
        old = len(self.is_free)
        more = max(old, least)
        pads = [(0, 0), (0, 0), (0, more), (0, 0)]
        return Cache(
            np.pad(self.keys, pads),
            np.pad(self.values, pads),
            np.pad(self.cells, [(0, 0), (0, more if self.cells.shape[1] else 0), (0, 0)]),
            np.concatenate([self.is_free, np.ones(more, np.bool_)]),
        )


@dataclass(frozen=True, kw_only=True)
class CpuState:
    """Decoder caches of all hypotheses.

    Parameters
    ----------
    cache : Cache
        Keys and values of all of them.
    own : UInt32[np.ndarray, "rows capacity"]
        The places of each hypothesis' words in the cache.
    source : UInt32[np.ndarray, "sentences longest"]
        Those of each sentence's words.
    source_lengths : Int[np.ndarray, "sentences"]
        How many of these count.
    num_beams : int
        Hypotheses of each sentence.
    length : int
        Words that each hypothesis has read.
    """

    cache: Cache
    own: UInt32[np.ndarray, "rows capacity"]
    source: UInt32[np.ndarray, "sentences longest"]
    source_lengths: Int[np.ndarray, "sentences"]
    num_beams: int
    length: int

    @property
    def coverage(self) -> None:
        """Return None: a Transformer has no single coverage vector."""
        return

    def reorder(self, beams: Int[Tensor, "sentences beams"]) -> "CpuState":
        """Let each hypothesis continue another of the same sentence."""
        if beams.size(1) == self.num_beams == 1:
            return self
        rows = rows_of_beams(beams, self.num_beams).numpy()
        return replace(self, own=self.own[rows], num_beams=beams.size(1))

    def keep(self, sentences: Int[Tensor, "kept"]) -> "CpuState":
        """Drop all sentences but these."""
        rows, kept = rows_of_sentences(sentences, self.num_beams).numpy(), sentences.numpy()
        return replace(
            self,
            own=self.own[rows],
            source=self.source[kept],
            source_lengths=self.source_lengths[kept],
        )

    def with_room(self) -> "CpuState":
        """Grow until every hypothesis has room for one more token.

        Returns
        -------
        CpuState
            The same; places that nobody names any more are free, or there are more places.
        """
        is_free, count = self.cache.is_free, len(self.own)
        if is_free.sum() >= count:
            return self
        is_free[:] = True
        is_free[self.own[:, : self.length]] = False
        longest = np.arange(self.source.shape[1])
        is_free[self.source[longest < self.source_lengths[:, None]]] = False
        if is_free.sum() >= max(count, len(is_free) // 4):
            return self
        return replace(self, cache=self.cache.grown(count))


class CpuDecoder:
    """The compiled Transformer behind the interface of the general search.

    Parameters
    ----------
    engine : CpuEngine
        Whose weights it computes with.
    """

    def __init__(self, engine: CpuEngine) -> None:
        self._engine = engine
        self.pad_id = engine.start_id

    def output(self, hidden: Float[Tensor, "... model_dim"]) -> Float[Tensor, "... vocabulary"]:
        """Score every subword."""
        from dragoman.kernels.cpu_search.tiles import fill_tiles, multiply_rows

        words = self._engine.model.output
        states = np.ascontiguousarray(hidden.reshape(-1, hidden.size(-1)).numpy())
        scores = np.empty((fill_tiles(len(states)), words.outputs[:, 0].size), np.float32)
        multiply_rows(states, len(states), words.panels, words.outputs, words.width, scores)
        found = torch.from_numpy(scores)[: len(states), : self._engine.target_size]
        return found.view(*hidden.shape[:-1], -1)

    def encode(self, source: Sequences) -> CpuMemory:
        """Take the source sentences; they are encoded when a search starts."""
        return CpuMemory(source)

    def start(self, memory: CpuMemory, capacity: int) -> CpuState:
        """Encode the sources and start one hypothesis for each."""
        from dragoman.kernels.cpu_search.steps import encode_sources
        from dragoman.kernels.cpu_search.transformer_steps import Pool

        if not self._engine.reads_end:
            memory = CpuMemory(memory.source.without_end())
        lengths = memory.source.lengths.numpy()
        is_token = np.arange(memory.source.ids.size(1)) < lengths[:, None]
        ids = memory.source.ids.numpy()[is_token]
        check_ids(ids, self._engine.source_size)
        model = self._engine.model_for(max(int(lengths.max()), capacity))
        cache = Cache.make(model, len(ids) + 4 * len(lengths) * min(capacity, 16))
        source = np.zeros(is_token.shape, np.uint32)
        source[is_token] = places = cache.take(len(ids))
        encode_sources(ids, lengths, places, model, Pool(*cache[:3]))
        own = np.zeros((len(lengths), capacity), np.uint32)
        return CpuState(
            cache=cache, own=own, source=source, source_lengths=lengths, num_beams=1, length=0
        )

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: CpuState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], CpuState]:
        """Feed one token of each hypothesis to the decoder."""
        from dragoman.kernels.cpu_search.steps import decode_newest
        from dragoman.kernels.cpu_search.transformer_steps import NO_ATTENTION, Pool, Rows

        state, words = state.with_room(), tokens.flatten().numpy()
        check_ids(words, self._engine.target_size)
        model, count, own = self._engine.model_for(state.length + 1), len(words), state.own
        own[:, state.length] = state.cache.take(count)
        sentences = np.repeat(np.arange(len(state.source)), state.num_beams)
        rows = Rows(
            own, np.arange(count), np.full(count, state.length + 1),
            state.source, sentences, state.source_lengths[sentences],
        )  # fmt: skip
        states = np.empty((count, model.positions.shape[1]), np.float32)
        pool = Pool(*state.cache[:3])
        decode_newest(words, state.length, rows, model, pool, states, NO_ATTENTION)
        hidden = torch.from_numpy(states).view(*tokens.shape, -1)
        return hidden, replace(state, length=state.length + 1)
