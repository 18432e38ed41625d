"""Keys and values that the hypotheses of a sentence share, for a CPU.

Hypotheses have most of their words in common. What a word left behind is kept once, where it was
written, and each hypothesis knows which places are its ancestors': to continue another hypothesis
moves no memory, and products are for all hypotheses of a sentence at once.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from dragoman.decoding.engine_cache import keep_sentences, whole_blocks
from dragoman.kernels.beam_attention import Heads

# Places are made for at least so many words of each hypothesis, and cleared up when these are full.
STEPS_BETWEEN_CLEARINGS = 4


@dataclass(frozen=True, kw_only=True)
class SharedCache:
    """Keys and values of the words so far, of all layers.

    Parameters
    ----------
    keys : Float[Tensor, "layers sentences heads places key_dim"]
        Those of a sentence and a head lie in one stretch of memory.
    values : Float[Tensor, "layers sentences heads places value_dim"]
        Likewise.
    mask : Float[Tensor, "sentences 1 beams places"]
        What is added to scores: 0 for a hypothesis's ancestors, −∞ for all else.
    filled : int
        Places that are taken.

    Notes
    -----
    Blocks of places are whole, and a sentence's words stand at the same places within their blocks
    whatever its neighbours: so its sums are the same to the last bit.
    """

    keys: Float[Tensor, "layers sentences heads places key_dim"]
    values: Float[Tensor, "layers sentences heads places value_dim"]
    mask: Float[Tensor, "sentences 1 beams places"]
    filled: int

    @staticmethod
    def make(num_layers: int, sentences: int, heads: Heads) -> "SharedCache":
        """Make room for the first words of one hypothesis a sentence.

        Parameters
        ----------
        num_layers : int
            Layers.
        sentences : int
            Sentences.
        heads : Heads
            How many, and how wide.

        Returns
        -------
        SharedCache
            With nothing in it yet, in float32.
        """
        places = _room(1)
        shape = (num_layers, sentences, heads.num_heads, places)
        keys, values = (torch.zeros(*shape, dim) for dim in (heads.key_dim, heads.value_dim))
        mask = torch.full((sentences, 1, 1, places), -torch.inf)
        return SharedCache(keys=keys, values=values, mask=mask, filled=0)

    def to(self, dtype: torch.dtype) -> "SharedCache":
        """Keep keys and values in another precision.

        Parameters
        ----------
        dtype : torch.dtype
            Which.

        Returns
        -------
        SharedCache
            A copy.
        """
        return replace(self, keys=self.keys.to(dtype), values=self.values.to(dtype))

    def moved(
        self, rows: Int[Tensor, "rows"] | None, num_beams: int, length: int, capacity: int
    ) -> "SharedCache":
        """Let hypotheses continue others, and take places for one more word of each.

        Parameters
        ----------
        rows : Int[Tensor, "rows"] | None
            The hypothesis that each continues, those of a sentence side by side; None: itself.
        num_beams : int
            Hypotheses a sentence from now on.
        length : int
            Words so far; the cache counts for itself.
        capacity : int
            Words at most; likewise.

        Returns
        -------
        SharedCache
            With the places for the newest words taken. This one is used up.
        """
        del length, capacity
        cache = self if rows is None else self._continue(rows.view(-1, num_beams))
        if cache.filled + num_beams > cache.mask.size(3):
            cache = cache._cleared(num_beams)
        end = cache.filled + num_beams
        cache.mask[..., cache.filled : end].diagonal(dim1=2, dim2=3).zero_()
        return replace(cache, filled=end)

    def _continue(self, rows: Int[Tensor, "sentences beams"]) -> "SharedCache":
        """Let each hypothesis continue another; sentences may have gone, or changed places."""
        before = self.mask.size(2)
        sentences = rows[:, 0] // before
        mask = self.mask[sentences[:, None], :, rows - before * sentences[:, None]]
        keys, values = keep_sentences((self.keys, self.values), sentences)
        return replace(self, keys=keys, values=values, mask=mask.transpose(1, 2))

    def _cleared(self, num_beams: int) -> "SharedCache":
        """Forget what is nobody's ancestor, and make room behind the rest."""
        sentences, _, _, places = self.mask.shape
        is_alive = (self.mask == 0).any(2).squeeze(1)
        kept = whole_blocks(int(is_alive.sum(1).max()))
        order = is_alive.byte().argsort(stable=True, dim=1, descending=True)[:, :kept]
        room = _room(num_beams)
        index = torch.cat([order, order[:, :1].expand(-1, room)], 1)[:, None]  # any number will do
        num_heads = self.keys.size(2)
        first = torch.arange(0, sentences * num_heads * places, places).view(sentences, num_heads)
        chosen = (first[..., None] + index).flatten()
        copies = []
        for each in (self.keys, self.values):
            copy = each.new_empty(*each.shape[:3], kept + room, each.size(4))
            for layer, old in zip(copy, each, strict=True):
                rows = old.reshape(-1, each.size(4))
                torch.index_select(rows, 0, chosen, out=layer.view(-1, each.size(4)))
            copies.append(copy)
        mask = self.mask.new_full((sentences, 1, num_beams, kept + room), -torch.inf)
        mask[..., :kept] = self.mask.take_along_dim(order[:, None, None], 3)
        return replace(self, keys=copies[0], values=copies[1], mask=mask, filled=kept)


def _room(num_beams: int) -> int:
    """Say how many places are made at once."""
    return whole_blocks(STEPS_BETWEEN_CLEARINGS * num_beams)
