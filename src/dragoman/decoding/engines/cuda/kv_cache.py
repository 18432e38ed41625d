"""Keys and values of all decoder layers, laid out for cheap reads and reordering."""

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.kernels.cuda_search.beam_attention import Heads
from dragoman.models.attention.multihead_attention import KeysAndValues
from dragoman.shapes import Float, Int

BLOCK = 16


def round_to_blocks(length: int) -> int:
    """Round a number of cached positions up to whole attention blocks.

    Notes
    -----
    Products and sums over whole blocks are the same to the last bit however many zeros follow. So a
    sentence is read the same way whatever its neighbours; eight bits would make more of a last bit.
    """
    return -(-length // BLOCK) * BLOCK


class DecoderKVCache(NamedTuple):
    """Keys and values of the tokens so far, position by position.

    Notes
    -----
    What all rows wrote at one place lies side by side: the filled places are one block of memory
    however much room there is, and a row moves in all layers at once.
    """

    keys: Float[Tensor, "layers places rows heads key_dim"]
    values: Float[Tensor, "layers places rows heads value_dim"]

    @staticmethod
    def make(
        num_layers: int, places: int, rows: int, heads: Heads, like: Tensor
    ) -> "DecoderKVCache":
        """Allocate an empty cache."""
        shape = (num_layers, places, rows, heads.num_heads)
        return DecoderKVCache(
            *(like.new_empty(*shape, dim) for dim in (heads.key_dim, heads.value_dim))
        )

    def layer(self, index: int) -> KeysAndValues:
        """View one layer."""
        return KeysAndValues(*(each[index].permute(1, 2, 0, 3) for each in self))

    def moved(
        self, rows: Int[Tensor, "rows"] | None, length: int, capacity: int
    ) -> "DecoderKVCache":
        """Reorder the rows, and grow for one more token."""
        return (self if rows is None else self.move(rows, length)).grow(length, capacity)

    def move(self, rows: Int[Tensor, "rows"], length: int) -> "DecoderKVCache":
        """Reorder the rows in place.

        Returns
        -------
        DecoderKVCache
            With as many rows as were named. If these are no more than before, it is the same
            memory, where only what comes from elsewhere was written.
        """
        count = len(rows)
        if count > self.keys.size(2):
            copies = []
            for each in self:
                copy = each.new_empty(*each.shape[:2], count, *each.shape[3:])
                copy[:, :length] = each[:, :length, rows]
                copies.append(copy)
            return DecoderKVCache(*copies)
        movers = _find_movers(rows)
        if len(movers):
            parents = rows[movers]
            for each in self:
                each[:, :length, movers] = each[:, :length, parents]
        return DecoderKVCache(*(each[:, :, :count] for each in self))

    def grow(self, length: int, capacity: int) -> "DecoderKVCache":
        """Grow the cache if one more token does not fit."""
        if length < self.keys.size(1):
            return self
        places = min(capacity, length + max(BLOCK, length // 2))
        copies = []
        for each in self:
            copy = each.new_empty(each.size(0), places, *each.shape[2:])
            copy[:, :length] = each
            copies.append(copy)
        return DecoderKVCache(*copies)


class SourceKVCache(NamedTuple):
    """Keys and values of the source for cross-attention, sentence by sentence.

    Notes
    -----
    No place is ever added, so what attention reads of a sentence can lie in one stretch of memory,
    which a processor reads twice as fast as many pieces.
    """

    keys: Float[Tensor, "layers sentences heads places key_dim"]
    values: Float[Tensor, "layers sentences heads places value_dim"]

    @staticmethod
    def of_layers(
        layers: Iterable[KeysAndValues], num_layers: int, num_places: int
    ) -> "SourceKVCache":
        """Stack the keys and values of all layers.

        Parameters
        ----------
        layers : Iterable[KeysAndValues]
            Of each layer; best made one after the other, as none is kept.
        num_layers : int
            How many they are.
        num_places : int
            Places of each sentence, at least as many as there are; the others are zero.
        """
        copies: list[Tensor] = []
        for index, layer in enumerate(layers):
            for place, each in enumerate(layer):
                sentences, heads, filled, dim = each.shape
                if not index:
                    copies.append(each.new_empty(num_layers, sentences, heads, num_places, dim))
                copies[place][index, :, :, :filled] = each
                copies[place][index, :, :, filled:] = 0
        return SourceKVCache(*copies)

    def layer(self, index: int) -> KeysAndValues:
        """View one layer."""
        return KeysAndValues(self.keys[index], self.values[index])

    def keep(self, sentences: Int[Tensor, "kept"], num_places: int) -> "SourceKVCache":
        """Drop all sentences but these."""
        kept = keep_sentences(self, sentences)
        if num_places == self.keys.size(3):
            return SourceKVCache(*kept)
        return SourceKVCache(*(each[:, :, :, :num_places].contiguous() for each in kept))


def keep_sentences(caches: Iterable[Tensor], sentences: Int[Tensor, "kept"]) -> list[Tensor]:
    """Drop all sentences but these, copying only rows that must move."""
    movers = _find_movers(sentences)
    kept = []
    for each in caches:
        if len(movers):
            each[:, movers] = each[:, sentences[movers]]
        kept.append(each[:, : len(sentences)])
    return kept


def _find_movers(rows: Tensor) -> Tensor:
    """Find the rows whose content moves to another row."""
    return (rows != torch.arange(len(rows), device=rows.device)).nonzero().flatten()
