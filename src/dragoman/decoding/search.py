"""One search for all models: beam search, of which greedy search is the simplest case."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from dragoman.data.batches import Sequences
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.penalties import check_coverage, coverage_penalty, length_penalty
from dragoman.models.interface import TranslationModel, Vocabulary

IMPOSSIBLE = -torch.inf


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A finished translation.

    Parameters
    ----------
    tokens : tuple[int, ...]
        Its subwords, without the end symbol.
    log_probability : float
        Of the subwords and the end symbol.
    score : float
        The log-probability divided by the length penalty, plus the coverage penalty.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float


@dataclass(kw_only=True)
class Finished:
    """The best finished hypotheses of each sentence so far.

    Parameters
    ----------
    scores : Float[Tensor, "sentences best"]
        In falling order.
    log_probabilities : Float[Tensor, "sentences best"]
        Theirs.
    lengths : Int[Tensor, "sentences best"]
        Their subwords, without the end symbol.
    tokens : Int[Tensor, "sentences best capacity"]
        The subwords.
    """

    scores: Float[Tensor, "sentences best"]
    log_probabilities: Float[Tensor, "sentences best"]
    lengths: Int[Tensor, "sentences best"]
    tokens: Int[Tensor, "sentences best capacity"]

    def add(self, other: "Finished") -> None:
        """Let others compete, and keep the best.

        Parameters
        ----------
        other : Finished
            Hypotheses of the same sentences.
        """
        scores = torch.cat([self.scores, other.scores], dim=1)
        self.scores, best = scores.topk(self.scores.size(1))
        for name in ("log_probabilities", "lengths"):
            both = torch.cat([getattr(self, name), getattr(other, name)], dim=1)
            setattr(self, name, both.gather(1, best))
        tokens = torch.cat([self.tokens, other.tokens], dim=1)
        self.tokens = _take(tokens, best)

    def rows(self, sentences: Tensor) -> "Finished":
        """Return those of some sentences.

        Parameters
        ----------
        sentences : Tensor
            Their places.

        Returns
        -------
        Finished
            Theirs.
        """
        return Finished(
            scores=self.scores[sentences],
            log_probabilities=self.log_probabilities[sentences],
            lengths=self.lengths[sentences],
            tokens=self.tokens[sentences],
        )


class Candidates(NamedTuple):
    """Extensions of a sentence's hypotheses, best first."""

    log_probabilities: Float[Tensor, "sentences candidates"]
    words: Int[Tensor, "sentences candidates"]
    parents: Int[Tensor, "sentences candidates"]


@dataclass(kw_only=True)
class Beams:
    """The living hypotheses of the sentences that are not done.

    Parameters
    ----------
    alive : Float[Tensor, "sentences beams"]
        Their log-probabilities.
    tokens : Int[Tensor, "sentences beams capacity"]
        Their subwords so far.
    limits : Int[Tensor, "sentences"]
        How long each sentence's translation may become, the end symbol included.
    places : Int[Tensor, "sentences"]
        Which sentence of the batch each row is.
    prefixes : Int[Tensor, "sentences prefix"] | None
        How translations must begin.
    finished : Finished
        Those that have ended.
    """

    alive: Float[Tensor, "sentences beams"]
    tokens: Int[Tensor, "sentences beams capacity"]
    limits: Int[Tensor, "sentences"]
    places: Int[Tensor, "sentences"]
    prefixes: Int[Tensor, "sentences prefix"] | None
    finished: Finished

    def newest(self, length: int, start_id: int) -> Int[Tensor, "sentences beams"]:
        """Return the newest word of each hypothesis.

        Parameters
        ----------
        length : int
            Words so far.
        start_id : int
            What stands before the first word.

        Returns
        -------
        Int[Tensor, "sentences beams"]
            Its id.
        """
        if length == 0:
            return torch.full_like(self.tokens[:, :, 0], start_id)
        return self.tokens[:, :, length - 1]

    def extend(
        self,
        candidates: Candidates,
        length: int,
        options: SearchOptions,
        eos_id: int,
        neglect: Float[Tensor, "sentences parents"] | None,
    ) -> Int[Tensor, "sentences beams"]:
        """Let candidates that end compete with the finished, and the best others live on.

        Parameters
        ----------
        candidates : Candidates
            The best extensions.
        length : int
            Words before the newest.
        options : SearchOptions
            Beam size and length penalty.
        eos_id : int
            The end symbol.
        neglect : Float[Tensor, "sentences parents"] | None
            Coverage penalties of the hypotheses that are extended; None: not asked for.

        Returns
        -------
        Int[Tensor, "sentences beams"]
            Which hypothesis each of those that live on continues.
        """
        scores, words, parents = candidates
        is_end = words == eos_id
        ended = scores.where(is_end, IMPOSSIBLE)
        final = ended / length_penalty(length + 1, options.length_penalty)
        self.finished.add(
            Finished(
                scores=final if neglect is None else final + neglect.gather(1, parents),
                log_probabilities=ended,
                lengths=torch.full_like(words, length),
                tokens=_take(self.tokens, parents),
            )
        )
        num_beams = min(options.beam_size, words.size(1))
        self.alive, best = scores.where(~is_end, IMPOSSIBLE).topk(num_beams)
        parents = parents.gather(1, best)
        self.tokens = _take(self.tokens, parents)
        self.tokens[:, :, length] = words.gather(1, best)
        return parents

    def done(self, length: int, alpha: float) -> Bool[Tensor, "sentences"]:
        """Say of which sentences no living hypothesis can overtake the finished ones.

        Parameters
        ----------
        length : int
            Words before the newest.
        alpha : float
            The length penalty's exponent.

        Returns
        -------
        Bool[Tensor, "sentences"]
            True where the search may stop.
        """
        bound = self.alive.amax(1) / length_penalty(self.limits, alpha)
        return (self.finished.scores[:, -1] >= bound) | (self.limits == length + 1)

    def rows(self, sentences: Int[Tensor, "kept"]) -> "Beams":
        """Return those of some sentences.

        Parameters
        ----------
        sentences : Int[Tensor, "kept"]
            Their places.

        Returns
        -------
        Beams
            Theirs.
        """
        return Beams(
            alive=self.alive[sentences],
            tokens=self.tokens[sentences],
            limits=self.limits[sentences],
            places=self.places[sentences],
            prefixes=None if self.prefixes is None else self.prefixes[sentences],
            finished=self.finished.rows(sentences),
        )


@torch.inference_mode()
def search(
    model: TranslationModel,
    source: Sequences,
    options: SearchOptions,
    vocabulary: Vocabulary,
    *,
    num_best: int = 1,
    prefixes: Int[Tensor, "sentences prefix"] | None = None,
    banned_ids: tuple[int, ...] = (),
    max_length: int | None = None,
) -> list[list[Hypothesis]]:
    """Find the best translations of some sentences.

    Parameters
    ----------
    model : TranslationModel
        Any model, not in training.
    source : Sequences
        The sentences, on the model's device.
    options : SearchOptions
        Beam size, penalties, largest length.
    vocabulary : Vocabulary
        The special symbols.
    num_best : int
        How many translations of each sentence, at most the beam size.
    prefixes : Int[Tensor, "sentences prefix"] | None
        Subwords with which each translation must begin, −1 where the search is free.
    banned_ids : tuple[int, ...]
        Subwords that must not occur.
    max_length : int | None
        Longest translation, the end symbol included, that the model can write at all.

    Returns
    -------
    list[list[Hypothesis]]
        For each sentence its translations, best first.

    Notes
    -----
    At each step a sentence's hypotheses are extended by every subword; of the 2·beam best, those
    that end compete for a place among the finished ones, and the beam best of the others live on.
    A beam of one looks at the best extension alone: that is greedy search.
    A sentence is done when no living hypothesis can overtake: log-probabilities only fall, so its
    score can at best become its log-probability over the penalty of the largest length: coverage
    only ever takes away, and may yet come to take nothing. With a beam that holds every prefix the
    result is that of exhaustive search. At the largest length only the end symbol may follow.
    """
    limits = source.lengths + options.max_extra_tokens
    if prefixes is not None:
        limits = limits + (prefixes >= 0).sum(1)
    if max_length is not None:
        limits = limits.clamp(max=max_length)
    beams = _begin(limits, vocabulary, num_best, prefixes)
    capacity = beams.tokens.size(2)
    num_candidates = 2 * options.beam_size if options.beam_size > 1 else 1
    state = model.start(model.encode(source), capacity)
    beta = options.coverage_penalty
    if beta:
        check_coverage(model, state, beta)
    results: list[list[Hypothesis]] = [[] for _ in range(len(source.lengths))]
    for length in range(capacity):
        hidden, state = model.step(beams.newest(length, vocabulary.pad_id), state)
        logits = model.output(hidden).float()
        normaliser = logits.logsumexp(-1, keepdim=True)
        _forbid(logits, banned_ids, beams.limits == length + 1, vocabulary.eos_id)
        if beams.prefixes is not None and length < beams.prefixes.size(1):
            _force(logits, beams.prefixes[:, length])
        candidates = _candidates(logits, normaliser, beams.alive, num_candidates)
        neglect = coverage_penalty(state.coverage, beta) if beta else None
        parents = beams.extend(candidates, length, options, vocabulary.eos_id, neglect)
        done = beams.done(length, options.length_penalty)
        if done.any():
            done_rows, open_rows = done.nonzero().flatten(), (~done).nonzero().flatten()
            found = _hypotheses(beams.finished.rows(done_rows))
            for place, hypotheses in zip(beams.places[done_rows].tolist(), found, strict=True):
                results[place] = hypotheses
            if not len(open_rows):
                break
            state, beams, parents = state.keep(open_rows), beams.rows(open_rows), parents[open_rows]
        state = state.reorder(parents)
    return results


def _begin(limits: Tensor, vocabulary: Vocabulary, num_best: int, prefixes: Tensor | None) -> Beams:
    """Begin one empty hypothesis for each sentence."""
    num_sentences, capacity = len(limits), int(limits.max())
    device = limits.device
    tokens = torch.full((num_sentences, 1, capacity), vocabulary.pad_id, device=device)
    alive = torch.zeros(num_sentences, 1, device=device)
    finished = Finished(
        scores=alive.new_full((num_sentences, num_best), IMPOSSIBLE),
        log_probabilities=alive.new_zeros(num_sentences, num_best),
        lengths=limits.new_zeros(num_sentences, num_best),
        tokens=tokens.expand(-1, num_best, -1).clone(),
    )
    return Beams(
        alive=alive,
        tokens=tokens,
        limits=limits,
        places=torch.arange(num_sentences, device=device),
        prefixes=prefixes,
        finished=finished,
    )


def _forbid(logits: Tensor, banned_ids: tuple[int, ...], must_end: Tensor, eos_id: int) -> None:
    """Rule out banned subwords, and everything but the end where the largest length is reached."""
    if banned_ids:
        logits[:, :, list(banned_ids)] = IMPOSSIBLE
    others = must_end[:, None, None].expand_as(logits).clone()
    others[:, :, eos_id] = False
    logits.masked_fill_(others, IMPOSSIBLE)


def _force(logits: Tensor, words: Tensor) -> None:
    """Rule out all but one subword in each sentence; −1 leaves the sentence free."""
    others = (words >= 0)[:, None, None].expand_as(logits).clone()
    places = words.clamp(min=0)[:, None, None].expand(-1, logits.size(1), 1)
    others.scatter_(2, places, False)
    logits.masked_fill_(others, IMPOSSIBLE)


def _candidates(logits: Tensor, normaliser: Tensor, alive: Tensor, count: int) -> Candidates:
    """Find each sentence's best extensions.

    The best of each hypothesis are found first, so the normaliser is subtracted from few scores.
    """
    best, words = logits.topk(min(count, logits.size(2)))
    scores = (best - normaliser + alive.unsqueeze(-1)).flatten(1)
    scores, places = scores.topk(min(count, scores.size(1)))
    return Candidates(scores, words.flatten(1).gather(1, places), places // words.size(2))


def _take(tokens: Tensor, beams: Tensor) -> Tensor:
    """Choose some of each sentence's hypotheses."""
    return tokens.gather(1, beams.unsqueeze(-1).expand(-1, -1, tokens.size(2)))


def _hypotheses(finished: Finished) -> list[list[Hypothesis]]:
    """Bring finished hypotheses from the device."""
    columns = (finished.scores, finished.log_probabilities, finished.lengths, finished.tokens)
    return [
        [
            Hypothesis(tokens=tuple(tokens[:length]), log_probability=log, score=score)
            for score, log, length, tokens in zip(*row, strict=True)
            if score > IMPOSSIBLE
        ]
        for row in zip(*(each.tolist() for each in columns), strict=True)
    ]
