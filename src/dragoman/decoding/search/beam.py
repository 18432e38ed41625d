"""One beam search for all models; greedy search is its simplest case."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.data.batches import Sequences
from dragoman.decoding.engines.search_engine import Hypothesis
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.candidates import BeamChooser, Candidates, Chooser, StepContext
from dragoman.decoding.search.coverage_penalty import check_coverage, coverage_penalty
from dragoman.decoding.search.hypotheses import Finished, History, trace_back
from dragoman.decoding.search.length_penalty import length_penalty
from dragoman.decoding.search.scorer import ForbiddenWordTracker, Scorer
from dragoman.kernels.cuda_search.beam_step import farthest_end
from dragoman.models.interface import SearchedModel, Vocabulary
from dragoman.shapes import Bool, Float, Int

# Steps after which the host asks which sentences are done: to wait for an accelerator costs more
# than to let it extend what is done a little further, where nothing is finished any more.
STEPS_BETWEEN_LOOKS = {"cuda": 4}


@dataclass(kw_only=True)
class Beams:
    """The living hypotheses of unfinished sentences.

    Parameters
    ----------
    alive : Float[Tensor, "sentences beams"]
        Their log-probabilities.
    newest : Int[Tensor, "sentences beams"]
        Their newest words.
    limits : Int[Tensor, "sentences"]
        How long each sentence's translation may become, the end symbol included.
    places : Int[Tensor, "sentences"]
        Which sentence of the batch each row is.
    prefixes : Int[Tensor, "sentences prefix"] | None
        How translations must begin.
    history : History
        All words so far.
    finished : Finished
        Those that have ended.
    is_done : Bool[Tensor, "sentences"]
        For which sentences nothing more is finished.
    """

    alive: Float[Tensor, "sentences beams"]
    newest: Int[Tensor, "sentences beams"]
    limits: Int[Tensor, "sentences"]
    places: Int[Tensor, "sentences"]
    prefixes: Int[Tensor, "sentences prefix"] | None
    history: History
    finished: Finished
    is_done: Bool[Tensor, "sentences"]

    def forced(self, length: int, shortest: int, eos_id: int) -> Int[Tensor, "sentences"] | None:
        """Return the forced next token: of a prefix, or the end symbol at the length limit."""
        words = None
        if self.prefixes is not None and length < self.prefixes.size(1):
            words = self.prefixes[:, length]
        if length + 1 >= shortest:
            free = torch.full_like(self.limits, -1) if words is None else words
            words = free.masked_fill(self.limits == length + 1, eos_id)
        return words

    def go_on(self, alive: Candidates, length: int, alpha: float) -> None:
        """Continue with the living, ending sentences whose finished ones cannot be overtaken."""
        self.alive, self.newest = alive.log_probabilities, alive.words
        self.history.add(alive, length)
        ends = self.limits.clamp(max=farthest_end(length + 1))
        bound = self.alive.amax(1) / length_penalty(ends, alpha)
        self.is_done |= (self.finished.scores[:, -1] >= bound) | (self.limits <= length + 1)

    def rows(self, sentences: Int[Tensor, "kept"]) -> "Beams":
        """Select some sentences."""
        return Beams(
            alive=self.alive[sentences],
            newest=self.newest[sentences],
            limits=self.limits[sentences],
            places=self.places[sentences],
            prefixes=None if self.prefixes is None else self.prefixes[sentences],
            history=self.history.rows(sentences),
            finished=self.finished.rows(sentences),
            is_done=self.is_done[sentences],
        )


@torch.inference_mode()
def search(
    model: SearchedModel,
    source: Sequences,
    options: SearchOptions,
    vocabulary: Vocabulary,
    *,
    num_best: int = 1,
    prefixes: Int[Tensor, "sentences prefix"] | None = None,
    banned_ids: tuple[int, ...] = (),
    max_length: int | None = None,
    chooser: Chooser | None = None,
    forbidden: ForbiddenWordTracker | None = None,
    is_scored: bool = True,
) -> list[list[Hypothesis]]:
    """Find the best translations of some sentences.

    Returns
    -------
    list[list[Hypothesis]]
        For each sentence its translations, best first; none where no translation does all that
        is asked.

    Notes
    -----
    At each step a sentence's hypotheses are extended by every subword; of the best, those that
    end compete for a place among the finished ones, and the beam best of the others live on.
    A sentence is done when no living hypothesis can overtake: log-probabilities only fall, so its
    score can at best become its log-probability over the penalty of the length at which it may yet
    end, which is `farthest_end`: coverage only ever takes away, and may yet come to take nothing.
    With a beam that holds every prefix, and translations of a few words, the result is that of
    exhaustive search. At the largest length only the end symbol may follow.
    """
    eos_id, alpha, beta = vocabulary.eos_id, options.length_penalty, options.coverage_penalty
    limits = find_limits(source.lengths, options, prefixes, max_length)
    capacity, shortest = int(limits.max()), int(limits.min())
    chooser = chooser or BeamChooser(options.beam_size, eos_id)
    is_scored = is_scored or chooser.num_beams > 1
    scorer = Scorer(
        model.output,
        banned_ids=banned_ids,
        forbidden=forbidden,
        is_normalised=is_scored,
    )
    score = scorer.score_in_chunks if isinstance(chooser, BeamChooser) else scorer.score
    beams = _begin(limits, capacity, vocabulary, num_best, prefixes, chooser.num_beams)
    state = model.start(model.encode(source), capacity)
    if beta:
        check_coverage(state, beta)
    results: list[list[Hypothesis]] = [[] for _ in range(len(source.lengths))]
    between = STEPS_BETWEEN_LOOKS.get(limits.device.type, 1)
    for length in range(capacity):
        hidden, state = model.step(beams.newest, state)
        context = StepContext(
            beams.alive, length, beams.limits, beams.forced(length, shortest, eos_id)
        )
        ended, alive = chooser.choose(score(hidden), context)  # type: ignore[arg-type]
        neglect = coverage_penalty(state.coverage, beta) if beta else None
        if between > 1:
            ended = ended.without(beams.is_done)
        beams.finished.add(ended, length, alpha, neglect)
        beams.go_on(alive, length, alpha)
        scorer.follow(alive.parents, alive.words)
        parents = alive.parents
        is_time = length % between == between - 1 or length == capacity - 1
        if is_time and beams.is_done.any():
            for place, hypotheses in _collect(beams, length, is_scored):
                results[place] = hypotheses
            kept = _close_ranks(beams.is_done)
            if not len(kept):
                break
            state, beams, parents = state.keep(kept), beams.rows(kept), parents[kept]
            chooser.keep(kept)
            scorer.keep(kept)
        state = state.reorder(parents)
    return results


def find_limits(
    lengths: Int[Tensor, "sentences"],
    options: SearchOptions,
    prefixes: Int[Tensor, "sentences prefix"] | None = None,
    max_length: int | None = None,
) -> Int[Tensor, "sentences"]:
    """Compute the length limits of translations."""
    limits = lengths + options.max_extra_tokens
    if prefixes is not None:
        limits = limits + (prefixes >= 0).sum(1)
    return limits if max_length is None else limits.clamp(max=max_length)


def _begin(
    limits: Tensor,
    capacity: int,
    vocabulary: Vocabulary,
    num_best: int,
    prefixes: Tensor | None,
    num_beams: int,
) -> Beams:
    """Start one empty hypothesis for each sentence."""
    num_sentences, device = len(limits), limits.device
    alive = torch.zeros(num_sentences, 1, device=device)
    return Beams(
        alive=alive,
        newest=torch.full_like(limits, vocabulary.pad_id).unsqueeze(1),
        limits=limits,
        places=torch.arange(num_sentences, device=device),
        prefixes=prefixes,
        history=History.begin(num_sentences, capacity, num_beams, device),
        finished=Finished.begin(num_sentences, num_best, device),
        is_done=torch.zeros_like(limits, dtype=torch.bool),
    )


def _close_ranks(done: Bool[Tensor, "sentences"]) -> Int[Tensor, "kept"]:
    """Choose rows to keep: the last ones replace finished ones, no other row moves."""
    going_on = (~done).nonzero().flatten()
    kept = torch.arange(len(going_on), device=done.device)
    kept[done[: len(kept)]] = going_on[going_on >= len(kept)]
    return kept


def _collect(beams: Beams, length: int, is_scored: bool) -> list[tuple[int, list[Hypothesis]]]:
    """Copy the translations of finished sentences from the device."""
    rows = beams.is_done.nonzero().flatten()
    found = trace_back(beams.finished.rows(rows), beams.history.rows(rows), length, is_scored)
    return list(zip(beams.places[rows].tolist(), found, strict=True))
