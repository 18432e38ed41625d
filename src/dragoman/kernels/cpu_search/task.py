"""Inputs and results of the compiled search, named tuples of arrays; nothing here is compiled."""

from typing import NamedTuple

import numpy as np

from dragoman.eight_bits import Rounded
from dragoman.kernels.cpu_search.model import Decoder, Encoder, Model, Shape, make_cached
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, lay_out, lay_out_floats, stack
from dragoman.kernels.processor import INSTRUCTION_SETS, choose_instructions

LONGEST_PHRASE = 32
"""Longest phrase, in subwords, whose third repetition in a row is prevented."""
AT_START = 1
"""State of an empty hypothesis in a table of forbidden phrases."""
NEXT, IS_STOPPED = range(2)
"""Counters of the queue: the next sentence, and whether all cores shall stop."""
LEFT, DONE, IS_OVER, IS_SLOW, NUM_COUNTERS = range(0, 40, 8)
"""Indices of `Team.counters`, each on a cache line of its own: chunks not yet taken, chunks done,
whether the search is over, and whether a helper was too slow."""
JOB = 11
"""Numbers that describe a product to helpers."""
PART = 64
"""Panels of the vocabulary whose exponentials are summed first, before the sums of all parts: the
result does not depend on the number of cores."""


class Sentences(NamedTuple):
    """Source sentences: token ids concatenated, where each sentence starts, and limits.

    `starts` has one entry more than there are sentences; `limits` is the largest length of each
    translation, end symbol included; `prefixes` are forced tokens, −1 where free. `shortlists` and
    `shortlist_starts` are the tokens that each may contain, in rising order; none: all tokens.
    """

    ids: np.ndarray
    starts: np.ndarray
    limits: np.ndarray
    prefixes: np.ndarray
    shortlists: np.ndarray
    shortlist_starts: np.ndarray


class Size(NamedTuple):
    """Slots of a core, entries of its KV pool, and number of cores.

    The pool must hold the sources of all slots and all their hypotheses at full length.
    """

    num_slots: int
    num_places: int
    num_cores: int


class Rules(NamedTuple):
    """Options of the search: beam size, candidates of each hypothesis, translations kept.

    Unrepeated: no phrase three times in a row. Aligned: record cross-attention.
    """

    num_beams: int
    num_candidates: int
    num_best: int
    alpha: float
    eos_id: int
    start_id: int
    is_normalised: bool
    is_banned: np.ndarray
    is_unrepeated: bool
    is_aligned: bool


class Terms(NamedTuple):
    """The automata of required terms of all sentences, concatenated.

    Of sentence `s` the subwords of its terms are `alphabets[alphabet_starts[s] : …[s + 1]]`, in
    rising order, and the subwords that each term takes `sizes[size_starts[s] : …[s + 1]]`. Its
    tables `targets` and `met` have an entry for each state and column, from `entry_starts[s]` on,
    `leads` one for each state, from `state_starts[s]` on; see
    `dragoman.decoding.constraints.term_automaton.TermAutomaton`.
    `kinds` has the column, behind those of the alphabet, of every subword of the vocabulary.
    """

    alphabets: np.ndarray
    alphabet_starts: np.ndarray
    sizes: np.ndarray
    size_starts: np.ndarray
    targets: np.ndarray
    met: np.ndarray
    entry_starts: np.ndarray
    leads: np.ndarray
    state_starts: np.ndarray
    kinds: np.ndarray
    num_kinds: int


class ForbiddenTable(NamedTuple):
    """Automaton of forbidden phrases over subwords; it may be empty.

    A state is how far a hypothesis has written one or more phrases. `banned` subwords are always
    forbidden, `closing` ones in some states (padded), and where a phrase `is_complete` all that
    `ends_word`. From state `p` subword `s` leads to `targets` at the index of `p` · vocabulary +
    `s` in the sorted `keys`; if it is not there, to `defaults[may_begin[p], s]`.
    """

    banned: np.ndarray
    closing: np.ndarray
    is_complete: np.ndarray
    ends_word: np.ndarray
    keys: np.ndarray
    targets: np.ndarray
    defaults: np.ndarray
    may_begin: np.ndarray


class Samples(NamedTuple):
    """How to sample: uniform random numbers, temperature, top-k and top-p.

    `uniforms` is [sentences, samples, tokens], in [0, 1). No top-k is 0, no top-p is 1.
    """

    uniforms: np.ndarray
    temperature: float
    top_k: int
    top_p: float


class Results(NamedTuple):
    """Translations, [sentences, best] each; a score of −∞ means that there is none.

    `tokens` and `logs` are flat: those of a sentence begin at `starts`, `limits` for each of its
    translations. `logs` are cumulated log-probabilities, end symbol included. `attention` is the
    cross-attention of each token summed over layers and heads: that of a sentence begins at
    `attention_starts`, one row a token.
    """

    scores: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    tokens: np.ndarray
    logs: np.ndarray
    attention: np.ndarray
    attention_starts: np.ndarray


class Team(NamedTuple):
    """State that a searching core shares with its helpers: counters, a job, and scores of tokens.

    `scores` are [rows, tokens] and `tops`, the highest score of each panel, [rows, panels];
    `highest` and `totals` are [rows, parts], of parts of the vocabulary. All are empty without
    helpers.
    """

    counters: np.ndarray
    job: np.ndarray
    scores: np.ndarray
    tops: np.ndarray
    highest: np.ndarray
    totals: np.ndarray


def make_team(num_rows: int, num_panels: int) -> Team:
    """Allocate the state that a searching core shares with its helpers."""
    is_there, height = num_rows > 0, INSTRUCTION_SETS[choose_instructions()].rows
    num_rows = -(-num_rows // height) * height  # the last tile is full
    parts = (num_rows, -(-num_panels // PART))
    return Team(
        np.zeros(NUM_COUNTERS * is_there, np.int64),
        np.zeros(JOB * is_there, np.int64),
        np.empty((num_rows, num_panels * COLUMNS), np.float32),
        np.empty((num_rows, num_panels), np.float32),
        np.empty(parts, np.float32),
        np.empty(parts, np.float32),
    )


def forbid_nothing() -> ForbiddenTable:
    """Make an empty table of forbidden phrases."""
    numbers, table = np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
    facts = np.zeros(0, np.bool_)
    return ForbiddenTable(numbers, table, facts, facts, numbers, numbers, table, numbers)


def make_empty_task(
    is_rounded: bool,
) -> tuple[Model, Sentences, Rules, np.ndarray, Size, Results, Team, ForbiddenTable, None, None]:
    """Make arguments of `search` without any sentence, to compile it."""
    fractions = np.zeros(1, np.float32)
    if is_rounded:
        embedding = lay_out(Rounded(np.zeros((1, 4), np.int8), fractions), None)
    else:
        embedding = lay_out_floats(np.zeros((1, 4), np.float32), None)
    layers = stack([embedding], 1)
    norms = np.zeros((1, 3, 2, 4), np.float32)
    encoder = Encoder(layers, layers, layers, layers, norms, norms[0, 0])
    decoder = Decoder(
        layers, layers, layers, layers, layers, layers, layers, norms, norms[0, 0]
    )  # fmt: skip
    shape = Shape(1, 4, 4, 1.0, True, True, 1.0, 0, 1.0, False, make_cached(is_rounded))
    model = Model(embedding, embedding, embedding, norms[0, 0], encoder, decoder, shape)
    one, numbers = np.ones((1, 1), np.int64), np.zeros(2, np.int64)
    ids = np.zeros(1, np.int32)
    sentences = Sentences(ids, numbers, one[0], one, one[0], numbers)
    rules = Rules(1, 1, 1, 1.0, 0, 0, True, np.zeros(1, np.bool_), False, False)
    results = Results(norms[0, 0], one, numbers, ids, fractions, fractions, numbers)
    queue = np.zeros(2, np.int64)
    queue[IS_STOPPED] = 1
    team, forbidden = make_team(0, 1), forbid_nothing()
    return model, sentences, rules, queue, Size(1, 2, 1), results, team, forbidden, None, None
