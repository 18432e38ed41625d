"""The tree that beam search grows: what was tried at each step, kept, pruned and finished."""

from dataclasses import dataclass, field, replace

from torch import Tensor

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.engines.search_engine import Hypothesis, count_candidates
from dragoman.decoding.search.beam import search
from dragoman.decoding.search.candidates import BeamChooser, Extensions, StepContext, find_best
from dragoman.decoding.search.length_penalty import length_penalty
from dragoman.decoding.search.scorer import IMPOSSIBLE, WordScores
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError
from dragoman.insight.word_groups import END
from dragoman.shapes import Int
from dragoman.weights import vocabulary_of

FEWEST_SHOWN = 3
"""Candidates of a step that are recorded at least; greedy search looks at one only."""


@dataclass(kw_only=True)
class Node:
    """A subword that was tried after others.

    Parameters
    ----------
    step : int
        Its place in the translation, counted from 0.
    token_id : int
        The subword.
    parent : int
        The place in the list of nodes of that before it; −1: none.
    log_probability : float
        Of the subword, given all before it.
    total : float
        Of the beginning with it.
    fate : str
        “kept”, “pruned” or “ended”.
    score : float | None
        Of a translation that ended here, with its length penalty.
    is_best : bool
        Whether it belongs to the translation that the search returned.
    """

    step: int
    token_id: int
    parent: int
    log_probability: float
    total: float
    fate: str
    score: float | None = None
    is_best: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class BeamTree:
    """A search, step by step.

    Parameters
    ----------
    nodes : list[Node]
        By step, those of a step in falling order of their beginnings' probability.
    pieces : list[str]
        The subword of each node.
    best : Hypothesis
        What the search returned.
    text : str
        The same as text.
    beam_size : int
        Hypotheses that live on at each step.
    length_penalty : float
        The exponent α.
    """

    nodes: list[Node]
    pieces: list[str]
    best: Hypothesis
    text: str
    beam_size: int
    length_penalty: float


@dataclass(kw_only=True)
class RecordingChooser:
    """Beam search's own choice of candidates, which notes what was chosen among what.

    Parameters
    ----------
    inner : BeamChooser
        What chooses.
    alpha : float
        The exponent of the length penalty.
    nodes : list[Node]
        What was tried so far.
    """

    inner: BeamChooser
    alpha: float
    nodes: list[Node] = field(default_factory=list)
    _rows: list[int] = field(default_factory=lambda: [-1])

    @property
    def num_beams(self) -> int:
        """The largest number of hypotheses of a sentence."""
        return self.inner.num_beams

    def choose(self, scores: WordScores, context: StepContext) -> Extensions:
        """Choose as the search does, and note it."""
        chosen = self.inner.choose(scores, context)
        count = max(count_candidates(self.num_beams), FEWEST_SHOWN)
        logs, words = find_best(scores, count, context.forced)
        num_words = words.size(2)
        totals = (logs + context.alive.unsqueeze(2)).flatten()
        totals, places = totals.topk(min(count, len(totals)))
        words, logs = words.flatten()[places], logs.flatten()[places]
        ended, alive = (_places_of(each.words, each.parents, each.log_probabilities)
                        for each in chosen)  # fmt: skip
        tried: dict[tuple[int, int], int] = {}
        rows = (each.tolist() for each in (words, places // num_words, logs, totals))
        for token_id, row, log, total in zip(*rows, strict=True):
            if total == IMPOSSIBLE:
                continue
            key = (row, token_id)
            fate = "ended" if key in ended else "kept" if key in alive else "pruned"
            score = total / length_penalty(context.length + 1, self.alpha)
            tried[key] = len(self.nodes)
            self.nodes.append(
                Node(
                    step=context.length,
                    token_id=token_id,
                    parent=self._rows[row],
                    log_probability=log,
                    total=total,
                    fate=fate,
                    score=score if fate == "ended" else None,
                )
            )
        self._rows = [tried.get(key, -1) for key in alive]
        return chosen

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Drop all sentences but these: there is one."""
        self.inner.keep(sentences)


def _places_of(words: Tensor, parents: Tensor, logs: Tensor) -> list[tuple[int, int]]:
    """List the extensions of the one sentence as pairs of row and word, those of −∞ as none."""
    rows = zip(parents[0].tolist(), words[0].tolist(), logs[0].tolist(), strict=True)
    return [(row, word) if log > IMPOSSIBLE else (-1, -1) for row, word, log in rows]


def grow_tree(translator: Translator, source: str, beam_size: int) -> BeamTree:
    """Search for the translation of a sentence, and record everything that was tried.

    Parameters
    ----------
    translator : Translator
        The model; its engine is searched, as it is for translations.
    source : str
        One sentence.
    beam_size : int
        Hypotheses that live on at each step; 1: greedy search.

    Returns
    -------
    BeamTree
        Of the general search, with the length penalty that the model's folder says, and without a
        coverage penalty.
    """
    source_ids = translator.encode(source)
    if len(source_ids) == 1:
        raise DataError("the sentence to translate is empty; give at least one word")
    vocabularies = translator.folder.vocabularies
    options = replace(translator.options, beam_size=beam_size, coverage_penalty=0.0)
    chooser = RecordingChooser(
        inner=BeamChooser(beam_size, vocabularies.eos_id), alpha=options.length_penalty
    )
    sources = pad_sequences(flatten([source_ids]), vocabularies.pad_id)
    (found,) = search(
        translator.engine,
        sources.to(translator.device),
        options,
        vocabulary_of(vocabularies),
        banned_ids=() if vocabularies.is_closed else (vocabularies.target.unk_id,),
        max_length=translator.folder.options.max_length,
        chooser=chooser,
    )
    best = found[0]
    _mark_best(chooser.nodes, (*best.tokens, vocabularies.eos_id))
    pieces = vocabularies.target.pieces([node.token_id for node in chooser.nodes])
    return BeamTree(
        nodes=chooser.nodes,
        pieces=[
            END if node.token_id == vocabularies.eos_id else piece
            for node, piece in zip(chooser.nodes, pieces, strict=True)
        ],
        best=best,
        text=vocabularies.target.decode([best.tokens])[0],
        beam_size=beam_size,
        length_penalty=options.length_penalty,
    )


def _mark_best(nodes: list[Node], tokens: tuple[int, ...]) -> None:
    """Mark the nodes of the translation that the search returned."""
    place = -1
    for step, token_id in enumerate(tokens):
        (place,) = [
            index
            for index, node in enumerate(nodes)
            if (node.step, node.parent, node.token_id) == (step, place, token_id)
        ]
        nodes[place].is_best = True
