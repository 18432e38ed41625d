"""Encoder states and decoder caches of a rebuilt Transformer."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from torch import Tensor

from dragoman.decoding.engines.cuda.kv_cache import DecoderKVCache, SourceKVCache, round_to_blocks
from dragoman.models.state import rows_of_beams, rows_of_sentences
from dragoman.shapes import Float, Int


class RebuiltMemory(NamedTuple):
    """Encoder states of the source sentences."""

    hidden: Float[Tensor, "sentences length model_dim"]
    lengths: Int[Tensor, "sentences"]
    mask: Float[Tensor, "sentences 1 1 places"]


@dataclass(frozen=True, kw_only=True)
class RebuiltState:
    """Decoder caches of all hypotheses.

    Parameters
    ----------
    past : DecoderKVCache
        Of the hypotheses so far, one row a hypothesis, with room for more words.
    source : SourceKVCache
        Of the source sentences, one row a sentence.
    mask : Float[Tensor, "sentences 1 1 places"]
        What is added to scores: −∞ behind the ends of the source sentences.
    lengths : Int[Tensor, "sentences"]
        The same as numbers, for positions that ask.
    rows : Int[Tensor, "rows"] | None
        The row of `past` that each hypothesis continues, if they have to move before the next
        word; moving waits for the next step, so that leaving and reordering is one copy.
    num_beams : int
        Hypotheses a sentence.
    length : int
        Words read so far.
    capacity : int
        How many words a hypothesis may get.
    """

    past: DecoderKVCache
    source: SourceKVCache
    mask: Float[Tensor, "sentences 1 1 places"]
    lengths: Int[Tensor, "sentences"]
    rows: Int[Tensor, "rows"] | None
    num_beams: int
    length: int
    capacity: int

    @property
    def coverage(self) -> None:
        """Return None: a Transformer has no single coverage vector."""
        return

    def reorder(self, beams: Int[Tensor, "sentences beams"]) -> "RebuiltState":
        """Let each hypothesis continue another of the same sentence."""
        if beams.size(1) == self.num_beams == 1:
            return self
        rows = rows_of_beams(beams, self.num_beams)
        return replace(self, rows=self._compose(rows), num_beams=beams.size(1))

    def keep(self, sentences: Int[Tensor, "kept"]) -> "RebuiltState":
        """Drop all sentences but these."""
        rows = rows_of_sentences(sentences, self.num_beams)
        lengths = self.lengths[sentences]
        places = round_to_blocks(int(lengths.max()))
        source = self.source.keep(sentences, places)
        mask = self.mask[sentences, :, :, :places]
        return replace(self, rows=self._compose(rows), source=source, mask=mask, lengths=lengths)

    def moved(self) -> "RebuiltState":
        """Apply pending reorderings, and grow for one more token."""
        past = self.past.moved(self.rows, self.length, self.capacity)
        return replace(self, past=past, rows=None)

    def _compose(self, rows: Tensor) -> Tensor:
        return rows if self.rows is None else self.rows[rows]
