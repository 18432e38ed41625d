"""What compiled functions are asked to translate, and what they find; nothing here is compiled."""

from typing import NamedTuple

import numpy as np

from dragoman.eight_bits import Rounded
from dragoman.kernels.cpu_search.model import Decoder, Encoder, Model, Shape, make_cached
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, lay_out, lay_out_floats, stack
from dragoman.kernels.processor import INSTRUCTION_SETS, choose_instructions

LONGEST_PHRASE = 32
"""Subwords of a phrase that may not be said three times in a row, at most."""
AT_START = 1
"""The place in a table of forbidden words of a hypothesis that has said nothing yet."""
NEXT, IS_STOPPED = range(2)
"""Places in the queue: the next sentence that nobody has taken, and whether all shall stop."""
LEFT, DONE, IS_OVER, IS_SLOW, TURNS = range(0, 40, 8)
"""Places in what a team shares, each on a cache line of its own: chunks of a product that nobody
has taken, those that are done, whether all is over, and whether somebody had to be waited for."""
JOB = 11
"""Numbers that describe a product."""
PART = 64
"""Panels of the vocabulary whose exponentials are added up together, and then the sums of all:
however many cores do it, the sum is the same."""


class Sentences(NamedTuple):
    """What is to be translated: ids behind one another, where each sentence starts, and rules.

    `starts` has one entry more than there are sentences; `limits` says how long translations may
    become, the end symbol included; `prefixes` how they must begin, −1 where they are free.
    `choices` and their `choice_starts` are the words among which each is searched for, in rising
    order; none: all words.
    """

    ids: np.ndarray
    starts: np.ndarray
    limits: np.ndarray
    prefixes: np.ndarray
    choices: np.ndarray
    choice_starts: np.ndarray


class Size(NamedTuple):
    """How many sentences a core has under way, with how many places, and how many cores there are.

    There must be places for the words of as many sources and of all their hypotheses, as long as
    these may become.
    """

    num_slots: int
    num_places: int
    num_cores: int


class Rules(NamedTuple):
    """How to search: so many hypotheses, words looked at of each, and translations kept.

    Unrepeated: without saying a phrase three times in a row. Aligned: writing down what words
    attend to.
    """

    num_beams: int
    num_words: int
    num_best: int
    alpha: float
    eos_id: int
    start_id: int
    is_normalised: bool
    is_banned: np.ndarray
    is_unrepeated: bool
    is_aligned: bool


class Terms(NamedTuple):
    """The machines that see the terms of all sentences, one behind another.

    Of sentence `s` the subwords of its terms are `alphabets[alphabet_starts[s] : …[s + 1]]`, in
    rising order, and the subwords that each term takes `sizes[size_starts[s] : …[s + 1]]`. Its
    tables `targets` and `met` have an entry for each state and column, from `entry_starts[s]` on,
    `leads` one for each state, from `state_starts[s]` on; see
    `dragoman.decoding.constraints.term_automaton.TermAutomaton`.
    `kinds` has the column, behind those of the
    alphabet, of every subword of the vocabulary.
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
    """Forbidden phrases as a table of what each subword of a vocabulary does; it may be empty.

    A hypothesis is in one of several places: nowhere in a phrase, or so many letters into one or
    more. `banned` subwords may never come, `closing` ones not in a place (filled up with padding),
    and where a phrase `is_complete` none that `ends_word`. Of place `p` subword `s` leads to where
    `targets` says at the index where `keys`, in rising order, has `p` · vocabulary + `s`; if it is
    not there, to `defaults[may_begin[p], s]`.
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
    """How words are drawn, and by which chance.

    `chance` is [sentences, samples, words], each number at least 0 and below 1. No limit on the
    number of words, or on their share of the probability, is 0 and 1.
    """

    chance: np.ndarray
    temperature: float
    top_k: int
    top_p: float


class Results(NamedTuple):
    """What is found, [sentences, best] each; −∞ is the score of what is not there.

    `tokens` and `logs` are flat: those of a sentence begin at `starts`, `limits` for each of its
    translations. A log-probability is that of the translation up to there, the end included.
    `attention` is what each word gives to those of the source while it is produced, summed over
    layers and heads: that of a sentence begins at `attention_starts`, a line a word.
    """

    scores: np.ndarray
    lengths: np.ndarray
    starts: np.ndarray
    tokens: np.ndarray
    logs: np.ndarray
    attention: np.ndarray
    attention_starts: np.ndarray


class Team(NamedTuple):
    """What a core shares with those that help it: turns, a job, and room for the scores of words.

    `scores` are [rows, words] and `tops`, the highest score of each panel, [rows, panels];
    `highest` and `totals` are [rows, parts], of the parts whose exponentials are added up together.
    Nothing has any size if nobody helps.
    """

    turns: np.ndarray
    job: np.ndarray
    scores: np.ndarray
    tops: np.ndarray
    highest: np.ndarray
    totals: np.ndarray


def make_team(num_rows: int, num_panels: int) -> Team:
    """Make what a core shares with those that help it."""
    is_there, height = num_rows > 0, INSTRUCTION_SETS[choose_instructions()].rows
    num_rows = -(-num_rows // height) * height  # the last tile is full
    parts = (num_rows, -(-num_panels // PART))
    return Team(
        np.zeros(TURNS * is_there, np.int64),
        np.zeros(JOB * is_there, np.int64),
        np.empty((num_rows, num_panels * COLUMNS), np.float32),
        np.empty((num_rows, num_panels), np.float32),
        np.empty(parts, np.float32),
        np.empty(parts, np.float32),
    )


def forbid_nothing() -> ForbiddenTable:
    """Make a table without phrases."""
    numbers, table = np.zeros(0, np.int64), np.zeros((0, 0), np.int64)
    facts = np.zeros(0, np.bool_)
    return ForbiddenTable(numbers, table, facts, facts, numbers, numbers, table, numbers)


def make_empty_task(
    is_rounded: bool,
) -> tuple[Model, Sentences, Rules, np.ndarray, Size, Results, Team, ForbiddenTable, None, None]:
    """Make what a search is called with, so small that there is nothing to do."""
    fractions = np.zeros(1, np.float32)
    if is_rounded:
        words = lay_out(Rounded(np.zeros((1, 4), np.int8), fractions), None)
    else:
        words = lay_out_floats(np.zeros((1, 4), np.float32), None)
    layers = stack([words], 1)
    norms = np.zeros((1, 3, 2, 4), np.float32)
    encoder = Encoder(layers, layers, layers, layers, norms, norms[0, 0])
    decoder = Decoder(
        layers, layers, layers, layers, layers, layers, layers, norms, norms[0, 0]
    )  # fmt: skip
    shape = Shape(1, 4, 4, 1.0, True, True, 1.0, 0, 1.0, False, make_cached(is_rounded))
    model = Model(words, words, words, norms[0, 0], encoder, decoder, shape)
    one, numbers = np.ones((1, 1), np.int64), np.zeros(2, np.int64)
    ids = np.zeros(1, np.int32)
    sentences = Sentences(ids, numbers, one[0], one, one[0], numbers)
    rules = Rules(1, 1, 1, 1.0, 0, 0, True, np.zeros(1, np.bool_), False, False)
    results = Results(norms[0, 0], one, numbers, ids, fractions, fractions, numbers)
    queue = np.zeros(2, np.int64)
    queue[IS_STOPPED] = 1
    team, forbidden = make_team(0, 1), forbid_nothing()
    return model, sentences, rules, queue, Size(1, 2, 1), results, team, forbidden, None, None
