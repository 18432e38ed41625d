"""State of a beam search on a GPU: slots, and the queue of sentences.

A slot holds one sentence and its beam of hypotheses. All tensors keep their addresses for the whole
search, so that a captured CUDA graph may write into them. A slot that has finished its sentence
takes the next one from the queue on the device, without the host.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from dragoman.kernels import language
from dragoman.kernels.language import jit, next_power, tl
from dragoman.shapes import Float, Int, UInt8

# Places in `Sentences.ends`: how many sentences of the queue were taken, and put there.
HEAD, TAIL = range(2)
# Rows of `Sentences.facts`: where the source begins, its length, the largest length of the
# translation with its end symbol, and how many words of it are given.
STARTS, LENGTHS, LIMITS, PREFIXES = range(4)
NUM_FACTS = 4


class Rules(NamedTuple):
    """Constants of a search.

    Parameters
    ----------
    penalties : Float[Tensor, "lengths"]
        What a log-probability is divided by, for every length.
    standing : UInt8[Tensor, "vocabulary"]
        For each word 0: it may come; 1: it has a probability but must not come; 2: it has none.
    eos_id : int
        The end symbol.
    pad_id : int
        The padding, which also begins translations.
    """

    penalties: Float[Tensor, "lengths"]
    standing: UInt8[Tensor, "vocabulary"]
    eos_id: int
    pad_id: int


@dataclass(frozen=True, kw_only=True)
class Slots:
    """Sentences being translated, and their living hypotheses.

    Parameters
    ----------
    sentences : Int[Tensor, "slots"]
        Which sentence each slot works on; −1: none.
    positions : Int[Tensor, "slots beams"]
        How many words the hypotheses have; the same for all of a slot.
    newest : Int[Tensor, "slots beams"]
        Their newest words.
    alive : Float[Tensor, "slots beams"]
        Their log-probabilities; −∞: there is none.
    sources : Int[Tensor, "2 slots"]
        Where the source sentence begins, and its length.
    ancestors : UInt8[Tensor, "2 places"]
        Under which hypothesis each word of a hypothesis was written down; twice, because the
        ancestors at an even position are made from those at an odd one and the other way round.
    pitch : int
        Words for which a hypothesis has room.

    Notes
    -----
    The word at time t of hypothesis b of slot s has place (s·beams + b)·pitch + t.
    """

    sentences: Int[Tensor, "slots"]
    positions: Int[Tensor, "slots beams"]
    newest: Int[Tensor, "slots beams"]
    alive: Float[Tensor, "slots beams"]
    sources: Int[Tensor, "2 slots"]
    ancestors: UInt8[Tensor, "2 places"]
    pitch: int

    @staticmethod
    def make(
        num_slots: int, num_beams: int, pitch: int, pad_id: int, device: torch.device
    ) -> "Slots":
        """Allocate idle slots."""
        whole: dict[str, Any] = {"dtype": torch.int32, "device": device}
        shape = (num_slots, num_beams)
        return Slots(
            sentences=torch.full((num_slots,), -1, **whole),
            positions=torch.zeros(shape, **whole),
            newest=torch.full(shape, pad_id, **whole),
            alive=torch.zeros(shape, device=device),
            sources=torch.zeros(2, num_slots, **whole),
            ancestors=torch.zeros(
                2, num_slots * num_beams * pitch, dtype=torch.uint8, device=device
            ),
            pitch=pitch,
        )

    def clear(self, pad_id: int) -> None:
        """Make every slot idle."""
        self.sentences.fill_(-1)
        self.positions.zero_()
        self.newest.fill_(pad_id)
        self.sources.zero_()


@dataclass(frozen=True, kw_only=True)
class Sentences:
    """All sentences that wait, are being translated, or are done and not yet fetched.

    Parameters
    ----------
    facts : Int[Tensor, "4 sentences"]
        What is known of each beforehand.
    is_done : Int[Tensor, "sentences"]
        1 where the search has ended.
    scores : Float[Tensor, "sentences beams"]
        Scores of the best finished translations, in no order. Places that nobody asked for hold
        +∞, so that the least of them all is the least that counts.
    logs : Float[Tensor, "sentences beams"]
        Their log-probabilities.
    lengths : Int[Tensor, "sentences beams"]
        Their words, without the end symbol.
    beams : Int[Tensor, "sentences beams"]
        Which hypothesis of that length each is.
    said : Int[Tensor, "steps beams"]
        The words that each step added, `Slots.pitch` steps a sentence; beforehand, in the first
        column, those that must come.
    parents : Int[Tensor, "steps beams"]
        Which hypothesis of the step before each continues.
    sums : Float[Tensor, "steps beams"]
        The log-probability of each hypothesis up to there.
    queue : Int[Tensor, "queued"]
        The sentences in the order in which they are to be taken.
    ends : Int[Tensor, "2"]
        How many of the queue were taken, and put there.
    """

    facts: Int[Tensor, "4 sentences"]
    is_done: Int[Tensor, "sentences"]
    scores: Float[Tensor, "sentences beams"]
    logs: Float[Tensor, "sentences beams"]
    lengths: Int[Tensor, "sentences beams"]
    beams: Int[Tensor, "sentences beams"]
    said: Int[Tensor, "steps beams"]
    parents: Int[Tensor, "steps beams"]
    sums: Float[Tensor, "steps beams"]
    queue: Int[Tensor, "queued"]
    ends: Int[Tensor, "2"]

    @staticmethod
    def make(
        num_sentences: int, num_beams: int, pitch: int, num_queued: int, device: torch.device
    ) -> "Sentences":
        """Allocate the queue and results."""
        whole: dict[str, Any] = {"dtype": torch.int32, "device": device}
        best, steps = (num_sentences, num_beams), (num_sentences * pitch, num_beams)
        return Sentences(
            facts=torch.zeros(NUM_FACTS, num_sentences, **whole),
            is_done=torch.zeros(num_sentences, dtype=torch.int8, device=device),
            scores=torch.zeros(best, device=device),
            logs=torch.zeros(best, device=device),
            lengths=torch.zeros(best, **whole),
            beams=torch.zeros(best, **whole),
            said=torch.zeros(steps, **whole),
            parents=torch.zeros(steps, **whole),
            sums=torch.zeros(steps, device=device),
            queue=torch.zeros(num_queued, **whole),
            ends=torch.zeros(2, **whole),
        )


def admit(slots: Slots, sentences: Sentences, pad_id: int) -> None:
    """Let idle slots take sentences from the queue."""
    if not language.uses_kernels(slots.alive):
        plain_admit(slots, sentences, pad_id)
        return
    num_beams = slots.newest.size(1)
    _admit_kernel[(len(slots.sentences),)](
        slots.sentences, slots.positions, slots.newest, slots.alive, slots.sources,
        sentences.facts, sentences.queue, sentences.ends, len(slots.sentences),
        len(sentences.is_done), pad_id, BEAMS=num_beams, BEAM_BLOCK=next_power(num_beams, 2),
        num_warps=1,
    )  # fmt: skip


def plain_admit(slots: Slots, sentences: Sentences, pad_id: int) -> None:
    """Compute the same with PyTorch's operations, on a CPU."""
    head, tail = sentences.ends.tolist()
    idle = (slots.sentences < 0).nonzero().flatten()[: tail - head]
    taken = sentences.queue[head : head + len(idle)]
    sentences.ends[HEAD] += len(idle)
    slots.sentences[idle] = taken
    slots.positions[idle] = 0
    slots.newest[idle] = pad_id
    slots.alive[idle] = -torch.inf
    slots.alive[idle, 0] = 0.0
    slots.sources[:, idle] = sentences.facts[[STARTS, LENGTHS]][:, taken.long()]


@jit
def take_next(
    slot, slot_sentences, positions, newest, alive, sources, facts, queue, ends, num_slots,
    num_sentences, pad_id, BEAMS: tl.constexpr, BEAM_BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Let one slot take the next sentence, or become idle if there is none.

    Notes
    -----
    An index beyond the queue's end is given back; until all are, no other slot gets one either.
    """
    place = tl.atomic_add(ends, 1)
    is_there = place < tl.load(ends + 1)
    tl.atomic_add(ends, tl.where(is_there, 0, -1))
    sentence = tl.load(queue + place, mask=is_there, other=-1)
    start = tl.load(facts + sentence, mask=is_there, other=0)
    length = tl.load(facts + num_sentences + sentence, mask=is_there, other=0)
    tl.store(slot_sentences + slot, sentence)
    tl.store(sources + slot, start)
    tl.store(sources + num_slots + slot, length)
    beams = tl.arange(0, BEAM_BLOCK)
    is_beam = beams < BEAMS
    zeros = tl.zeros([BEAM_BLOCK], tl.int32)
    tl.store(positions + slot * BEAMS + beams, zeros, mask=is_beam)
    tl.store(newest + slot * BEAMS + beams, zeros + pad_id, mask=is_beam)
    logs = tl.where(beams == 0, 0.0, float("-inf"))
    tl.store(alive + slot * BEAMS + beams, logs, mask=is_beam)


@jit
def _admit_kernel(
    slot_sentences, positions, newest, alive, sources, facts, queue, ends, num_slots,
    num_sentences, pad_id, BEAMS: tl.constexpr, BEAM_BLOCK: tl.constexpr,
):  # fmt: skip
    """Let one slot take a sentence if it is idle."""
    slot = tl.program_id(0)
    if tl.load(slot_sentences + slot) < 0:
        take_next(
            slot, slot_sentences, positions, newest, alive, sources, facts, queue, ends,
            num_slots, num_sentences, pad_id, BEAMS, BEAM_BLOCK,
        )  # fmt: skip
