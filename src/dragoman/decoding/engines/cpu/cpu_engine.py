"""Beam search with a Transformer on a CPU: compiled, without PyTorch."""

import math
import operator
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np

from dragoman.data.workers import count_cores
from dragoman.decoding.engines.cpu.background_compile import announce_compilation, compile_search
from dragoman.decoding.engines.cpu.cpu_constraints import (
    find_starts,
    lay_out_terms,
    prepare_samples,
)
from dragoman.decoding.engines.cpu.cpu_weights import make_positions, read_cpu_model
from dragoman.decoding.engines.search_engine import Hypothesis, SearchRequest, count_candidates
from dragoman.decoding.memory import keep_freed_memory, return_large_blocks
from dragoman.decoding.options import CpuPrecision
from dragoman.errors import DataError
from dragoman.folder import ModelFolder
from dragoman.kernels.cpu_search.model import Model
from dragoman.kernels.cpu_search.task import (
    IS_OVER,
    IS_STOPPED,
    ForbiddenTable,
    Results,
    Rules,
    Samples,
    Sentences,
    Size,
    Team,
    Terms,
    forbid_nothing,
    make_team,
)
from dragoman.kernels.cpu_search.weight_layout import COLUMNS
from dragoman.models.options import TransformerOptions
from dragoman.shapes import Float, Int
from dragoman.text.vocabulary import Vocabularies

Choose = Callable[[Sequence[int]], Int[np.ndarray, "words"]]
SearchConstraints = tuple[ForbiddenTable, Terms | None, Samples | None]

# Hypotheses under way on a core: more do not make products faster.
MOST_ROWS = 96
# Bytes that a core's sentences have in keys and values, so that they stay in the caches: words of
# sources, and about as many of translations.
REMEMBERED_BYTES = 20 << 20
# Words of a core's sentences and hypotheses for which there must be room; with one sentence, more.
MOST_PLACES = 1 << 16
# Translations whose attention is looked at together.
ATTENDING = 24
# Bytes of all short-lists that a core's sentences have.
LISTED_BYTES = 32 << 20
# Cores that help with one sentence, which is worth it if the words of the vocabulary take so many
# bytes. More cores would wait for the memory.
MOST_HELPERS = 3
HELPED_BYTES = 1 << 20
# So few sentences are not worth a thread of their own.
FEW_SENTENCES = 4


def count_threads() -> int:
    """Count the cores on which to translate.

    Returns
    -------
    int
        As many as PyTorch uses, where it is loaded; else all that this process may use, but no more
        than the environment variable says by which other libraries are told.
    """
    if "torch" in sys.modules:
        return int(sys.modules["torch"].get_num_threads())
    said = os.environ.get("OMP_NUM_THREADS", "")
    return min(count_cores(), int(said)) if said.isdecimal() and int(said) else count_cores()


class CpuEngine:
    """A compiled Transformer with its search, on a CPU.

    Parameters
    ----------
    model : Model
        Its weights.
    options : TransformerOptions
        Its shape.
    vocabularies : Vocabularies
        Its subwords, of which only numbers are taken.
    """

    def __init__(
        self, model: Model, options: TransformerOptions, vocabularies: Vocabularies
    ) -> None:
        self.model, self._options = model, options
        self.reads_end = options.source_end
        self.start_id, self._eos_id = vocabularies.pad_id, vocabularies.eos_id
        self.source_size, self.target_size = map(len, vocabularies)
        self._num_cores = count_threads()
        self._known_kinds = [[True, False, False]]
        self._num_searches, self._counting = 0, threading.Lock()
        self._helpers: ThreadPoolExecutor | None = None

    @staticmethod
    def load(folder: ModelFolder, precision: CpuPrecision, *, searches: bool = True) -> "CpuEngine":
        """Load the model of a folder."""
        assert isinstance(folder.options, TransformerOptions)
        if searches:
            compile_search(precision)
        return_large_blocks()
        engine = CpuEngine(read_cpu_model(folder, precision), folder.options, folder.vocabularies)
        keep_freed_memory()
        return engine

    def find(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        request: SearchRequest,
        prefixes: Sequence[Sequence[int]] = (),
        choose: Choose | None = None,
    ) -> list[list[Hypothesis]]:
        """Find the best translations of some sentences, as `search` does.

        Parameters
        ----------
        sources : Sequence[Sequence[int]]
            Their tokens, ended by the end symbol, in any order.
        limits : Sequence[int]
            How long each translation may become, the end symbol included.
        request : SearchRequest
            What is asked for.
        prefixes : Sequence[Sequence[int]]
            How each translation must begin; nothing: all are free.
        choose : Choose | None
            From a sentence to the words among which to search, in rising order, the end symbol
            among them; None: all words.

        Notes
        -----
        A sentence's translation is the same, bit by bit, whatever others are under way with it.
        Long sentences come first, so that cores finish at about the same time. They run compiled
        functions that do not need the interpreter; what ends this call from outside ends them.
        """
        assert request.num_best <= request.num_beams
        if not sources:
            return []
        if not self.reads_end:
            sources = [each[:-1] or each for each in sources]
        from dragoman.kernels.cpu_search.slot_search import search

        order = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
        sentences = _line_up(sources, order, limits, prefixes, choose)
        self._check_ids(sentences, request.banned_ids)
        rules, constraints = self._make_rules(request, sources, order, max(limits))
        results = _make_results(sentences, request)
        model = self.model_for(max(len(sources[order[0]]), max(limits)))
        num_cores = min(self._num_cores, len(sources))
        size = _choose_size(model, sentences, rules, num_cores)
        queue = np.zeros(2, np.int64)
        work = partial(search, model, sentences, rules)
        self._compile_first(work, results, constraints)
        with self._counted_search():
            if num_cores == 1 and len(sources) <= FEW_SENTENCES:
                with self._helped(model, rules) as team:
                    search(model, sentences, rules, queue, size, results, team, *constraints)
            else:
                alone = make_team(0, 1)
                _run_on_cores(
                    num_cores, queue, partial(work, queue, size, results, alone, *constraints)
                )
        return _collect(results, order, sources, limits, request, reads_end=self.reads_end)

    def _make_rules(
        self,
        request: SearchRequest,
        sources: Sequence[Sequence[int]],
        order: Sequence[int],
        longest: int,
    ) -> tuple[Rules, SearchConstraints]:
        """Translate a request into the arrays that the compiled search reads."""
        is_banned = np.zeros(self.model.output.outputs[:, 0].size, np.bool_)
        is_banned[list(request.banned_ids)] = True
        terms = samples = None
        num_words = count_candidates(request.num_beams)
        if request.required is not None:
            terms, num_words = lay_out_terms(request.required, order), request.required.num_words
        forbidden = request.forbidden or forbid_nothing()
        is_banned[forbidden.banned] = True
        if request.sampling is not None:
            num_words = request.num_beams
            samples = prepare_samples(request.sampling, sources, order, num_words, longest)
        rules = Rules(
            request.num_beams,
            num_words,
            request.num_best,
            float(request.alpha),
            self._eos_id,
            self.start_id,
            request.is_scored or request.num_beams > 1,
            is_banned,
            request.is_unrepeated,
            request.is_aligned,
        )
        return rules, (forbidden, terms, samples)

    def _check_ids(self, sentences: Sentences, banned_ids: Sequence[int]) -> None:
        """Refuse ids outside the vocabulary: compiled functions do not check bounds."""
        special = [self._eos_id, self.start_id, *banned_ids]
        for size, ids in (
            (self.source_size, sentences.ids),
            (self.target_size, np.array(special, np.int64)),
            (self.target_size, sentences.prefixes[sentences.prefixes != -1]),
            (self.target_size, sentences.shortlists),
        ):
            check_ids(ids, size)

    def _compile_first(
        self, search: Callable[..., None], results: Results, constraints: SearchConstraints
    ) -> None:
        """Compile the search, or load it, when a kind of constraints comes for the first time."""
        kind = [each is not None for each in constraints]
        if kind not in self._known_kinds:
            stopped = np.ones(2, np.int64)
            with announce_compilation():
                search(stopped, Size(1, 1, 1), results, make_team(0, 1), *constraints)
            self._known_kinds.append(kind)

    @contextmanager
    def _counted_search(self) -> Iterator[None]:
        """Count a search as running: others then ask for no helping cores."""
        with self._counting:
            self._num_searches += 1
        try:
            yield
        finally:
            with self._counting:
                self._num_searches -= 1

    @contextmanager
    def _helped(self, model: Model, rules: Rules) -> Iterator[Team]:
        """Let idle cores help with one search, if its output layer is large enough."""
        from dragoman.kernels.cpu_search.team import run_helper

        panels, num_helpers = model.output.panels, min(self._num_cores - 1, MOST_HELPERS)
        if num_helpers < 1 or panels.nbytes < HELPED_BYTES or self._num_searches > 1:
            yield make_team(0, 1)
            return
        if self._helpers is None:
            self._helpers = ThreadPoolExecutor(num_helpers, "helper")
        team = make_team(rules.num_beams, len(panels))
        try:
            for _ in range(num_helpers):
                self._helpers.submit(run_helper, panels, team)
            yield team
        finally:
            team.counters[IS_OVER] = 1

    def attend(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[Float[np.ndarray, "targets sources"]]:
        """Compute what each token of given translations attends to while it is produced."""
        if not self.reads_end:
            shorter = [each[:-1] or each for each in sources]
            sizes = [len(each) for each in sources]
            return [
                np.pad(each, [(0, 0), (0, size - each.shape[1])])
                for each, size in zip(self._attend(shorter, targets), sizes, strict=True)
            ]
        return self._attend(sources, targets)

    def _attend(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[Float[np.ndarray, "targets sources"]]:
        """Compute it for sources as the encoder reads them."""
        from dragoman.kernels.cpu_search.steps import force_decode

        order = sorted(range(len(targets)), key=lambda index: -len(targets[index]))
        found: list[np.ndarray] = [np.empty((0, 0), np.float32)] * len(targets)
        longest = max((len(each) for each in (*sources, *targets)), default=0)
        model = self.model_for(longest)

        def read(batch: Sequence[int]) -> None:
            source, target = ([side[index] for index in batch] for side in (sources, targets))
            ids = np.concatenate([np.array(each, np.int64) for each in source])
            words = _pad([(self.start_id, *each[:-1]) for each in target])
            check_ids(ids, self.source_size)
            check_ids(words[words >= 0], self.target_size)
            lengths, counts = (np.array([*map(len, side)]) for side in (source, target))
            weights = np.zeros((*words.shape, lengths.max()), np.float32)
            force_decode(ids, lengths, words, counts, model, weights)
            for index, own, num_words, length in zip(batch, weights, counts, lengths, strict=True):
                found[index] = own[:num_words, :length]

        batches = [order[start : start + ATTENDING] for start in range(0, len(order), ATTENDING)]
        with ThreadPoolExecutor(self._num_cores, "core") as threads:
            list(threads.map(read, batches))
        return found

    def model_for(self, longest: int) -> Model:
        """Extend the positional encoding to a length."""
        model, count = self.model, len(self.model.positions)
        if longest <= count:
            return model
        if self._options.positions == "learned":
            raise DataError(
                f"a sequence of {longest} subwords is longer than the {count} learned positions of "
                "the model; give shorter sentences"
            )
        # Another thread may do the same meanwhile: each goes on with its own.
        self.model = model = model._replace(positions=make_positions(self._options, 2 * longest))
        return model


def _run_on_cores(num_cores: int, queue: Int[np.ndarray, "2"], search: Callable[[], None]) -> None:
    """Run the search in a thread for each core; an exception here stops all of them."""
    with ThreadPoolExecutor(num_cores, "core") as threads:
        try:
            running = [threads.submit(search) for _ in range(num_cores)]
            wait(running)
        finally:
            queue[IS_STOPPED] = 1
    for each in running:
        each.result()


def check_ids(ids: Int[np.ndarray, "..."], size: int) -> None:
    """Refuse ids outside a vocabulary, before compiled functions use them as indices."""
    if ids.size and not (ids.min() >= 0 and ids.max() < size):
        raise ValueError(f"a token is not among the {size} of the vocabulary")


def _choose_size(model: Model, sentences: Sentences, rules: Rules, num_cores: int) -> Size:
    """Choose how many sentences a core decodes at once, and the size of its cache."""
    shape, lengths = model.shape, np.diff(sentences.starts)
    places = lengths + rules.num_beams * sentences.limits
    if len(lengths) <= num_cores:
        return Size(1, int(places.max()), num_cores)
    entries = shape.num_heads * (shape.key_dim + shape.value_dim) * len(model.decoder.norms)
    remembered = 2 * float(lengths.mean()) * entries * shape.cached.itemsize
    listed = (
        int(np.diff(sentences.shortlist_starts).max()) * model.output.panels[0].nbytes // COLUMNS
    )
    places = np.cumsum(np.sort(places)[::-1])
    num_slots = min(
        -(-len(lengths) // num_cores),
        MOST_ROWS // rules.num_beams,
        int(REMEMBERED_BYTES / remembered),
        LISTED_BYTES // max(1, listed),
        int(np.searchsorted(places, MOST_PLACES, "right")),
    )
    num_slots = max(1, num_slots)
    return Size(num_slots, int(places[num_slots - 1]), num_cores)


@dataclass(frozen=True)
class ShortListEngine:
    """A compiled Transformer that searches among the short-list of each sentence.

    Parameters
    ----------
    engine : CpuEngine
        The engine.
    choose : Choose
        From a sentence to its words.
    """

    engine: CpuEngine
    choose: Choose

    def find(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        request: SearchRequest,
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[Hypothesis]]:
        """Find the best translations of some sentences.

        Parameters
        ----------
        sources : Sequence[Sequence[int]]
            As `CpuEngine` is told.
        limits : Sequence[int]
            Likewise.
        request : SearchRequest
            Likewise.
        prefixes : Sequence[Sequence[int]]
            Likewise. Under a prefix or other constraints the whole vocabulary is searched, since
            required tokens may be on no short-list.
        """
        choose = None if any(prefixes) or request.is_special else self.choose
        return self.engine.find(sources, limits, request, prefixes, choose)


def _line_up(
    sources: Sequence[Sequence[int]],
    order: Sequence[int],
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]],
    choose: Choose | None,
) -> Sentences:
    """Concatenate sentences in the order in which they are translated."""
    lengths, size = [len(sources[index]) for index in order], sum(map(len, sources))
    choices = [] if choose is None else [choose(sources[index]) for index in order]
    return Sentences(
        np.fromiter(chain.from_iterable(sources[index] for index in order), np.int32, size),
        find_starts(lengths),
        np.array([limits[index] for index in order], np.int64),
        _pad([prefixes[index] for index in order] if any(prefixes) else []),
        np.concatenate([np.zeros(0, np.int64), *choices]),
        find_starts([len(each) for each in choices] or [0] * len(order)),
    )


def _make_results(sentences: Sentences, request: SearchRequest) -> Results:
    """Allocate the translations of each sentence."""
    num_words = request.num_best * sentences.limits
    shape, places = (len(num_words), request.num_best), find_starts(num_words.tolist())
    lengths = np.diff(sentences.starts) * request.is_aligned
    attention_starts = find_starts((num_words * lengths).tolist())
    return Results(
        np.full(shape, -np.inf, np.float32),
        np.zeros(shape, np.int64),
        places[:-1],
        np.zeros(places[-1], np.int32),
        np.zeros(places[-1], np.float32),
        np.empty(attention_starts[-1], np.float32),
        attention_starts,
    )


def _pad(prefixes: Sequence[Sequence[int]]) -> Int[np.ndarray, "sentences longest"]:
    """Pad prefixes with −1 into one array."""
    longest = max(map(len, prefixes), default=0)
    padded = np.full((len(prefixes), longest), -1, np.int64)
    for row, each in zip(padded, prefixes, strict=True):
        row[: len(each)] = each
    return padded


def _collect(
    results: Results,
    order: Sequence[int],
    sources: Sequence[Sequence[int]],
    limits: Sequence[int],
    request: SearchRequest,
    *,
    reads_end: bool,
) -> list[list[Hypothesis]]:
    """Read the translations of all sentences, which were searched for in an order, from results."""
    found: list[list[Hypothesis]] = [[] for _ in sources]
    numbers = (results.scores, results.lengths, results.starts)
    scores, lengths, starts = (each.tolist() for each in numbers)
    for place, index in enumerate(order):
        for rank, score in enumerate(scores[place]):
            if score == -math.inf:
                break
            first = starts[place] + rank * limits[index]
            past = first + lengths[place][rank]
            attention, log_probability, token_logs = None, math.nan, ()
            if request.is_aligned:
                attention = _cut_attention(results, place, rank, limits[index], len(sources[index]))
                attention = attention[:, :-1].copy() if reads_end else attention.copy()
            if request.is_scored:
                sums = results.logs[first : past + 1].tolist()
                log_probability = sums[-1]
                token_logs = (sums[0], *map(operator.sub, sums[1:], sums))
            hypothesis = Hypothesis(
                tokens=tuple(results.tokens[first:past].tolist()),
                log_probability=log_probability,
                score=score if request.is_scored else math.nan,
                token_log_probabilities=token_logs,
                attention=attention,
            )
            found[index].append(hypothesis)
    return found


def _cut_attention(
    results: Results, place: int, rank: int, limit: int, num_sources: int
) -> Float[np.ndarray, "targets sources"]:
    """Cut out what a translation's tokens attended to."""
    first = int(results.attention_starts[place]) + rank * limit * num_sources
    length = int(results.lengths[place, rank])
    lines = results.attention[first : first + length * num_sources]
    return lines.reshape(length, num_sources)
