"""The compiled functions of a Transformer in eight bits, offered to the search of all models."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from dragoman.kernels.cpu_search.slot_search import make_pool
from dragoman.kernels.cpu_search.team import make_single_core_team
from dragoman.kernels.cpu_search.tiles import fill_tiles, multiply_rows
from dragoman.kernels.cpu_search.transformer_steps import (
    NO_ATTENTION,
    Rows,
    decode_step,
    embed_token,
    encode,
    write_source_kv,
)


@dataclass(frozen=True)
class OracleState:
    """Sentences, and the words of each one's hypotheses so far."""

    sources: list
    words: list

    @property
    def coverage(self):
        return None

    def keep(self, sentences):
        chosen = sentences.tolist()
        return OracleState([self.sources[n] for n in chosen], [self.words[n] for n in chosen])

    def reorder(self, beams):
        words = [
            [list(own[beam]) for beam in row]
            for own, row in zip(self.words, beams.tolist(), strict=True)
        ]
        return replace(self, words=words)


class Oracle:
    """Reads every hypothesis from its beginning, alone, whenever it is asked."""

    def __init__(self, model):
        self._model = model

    def encode(self, source):
        return [row[:n].tolist() for row, n in zip(source.ids, source.lengths, strict=True)]

    def start(self, memory, capacity):
        del capacity
        return OracleState(memory, [[[]] for _ in memory])

    def step(self, tokens, state):
        words = [
            [[*own, newest] for own, newest in zip(each, row, strict=True)]
            for each, row in zip(state.words, tokens.tolist(), strict=True)
        ]
        hidden = [
            [self.read(source, own) for own in each]
            for source, each in zip(state.sources, words, strict=True)
        ]
        return torch.from_numpy(np.array(hidden)), OracleState(state.sources, words)

    def output(self, hidden):
        matrix = self._model.output
        flat = hidden.flatten(0, -2).numpy()
        products = np.empty((fill_tiles(len(flat)), matrix.outputs[:, 0].size), np.float32)
        multiply_rows(flat, len(flat), *matrix, products)
        size = int((matrix.outputs[:, 1] > 0).sum())
        return torch.from_numpy(products[: len(flat), :size]).view(*hidden.shape[:-1], size)

    def read(self, source, words):
        """Say what the decoder says of the last of some words."""
        model, shape = self._model, self._model.shape
        places = np.arange(len(source) + len(words)).astype(np.uint32)
        pool, _ = make_pool(len(places), model.decoder, shape)
        states = np.empty((len(source), model.positions.shape[1]), np.float32)
        for row, word in enumerate(source):
            embed_token(
                model.source_embedding,
                word,
                shape.embedding_scale,
                model.positions[row],
                states[row],
            )
        team = make_single_core_team()
        encode(states, np.array([len(source)]), model.encoder, shape, team)
        write_source_kv(states, places[: len(source)], model.decoder, shape, pool, team)
        own = np.ascontiguousarray(places[None, len(source) :])
        states = np.empty((fill_tiles(1), model.positions.shape[1]), np.float32)
        zero = np.zeros(1, np.int64)
        for row, word in enumerate(words):
            embed_token(
                model.target_embedding, word, shape.embedding_scale, model.positions[row], states[0]
            )
            rows = Rows(own, zero, zero + row + 1, places[None], zero, zero + len(source))
            decode_step(states, 1, rows, model.decoder, shape, pool, NO_ATTENTION, team)
        return states[0].copy()
