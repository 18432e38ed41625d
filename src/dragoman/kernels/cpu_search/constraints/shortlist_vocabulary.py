"""The few words among which a slot searches: a vocabulary of its own, taken from that of all."""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.best_tokens import find_words
from dragoman.kernels.cpu_search.compiler.instructions import compiled
from dragoman.kernels.cpu_search.weight_layout import COLUMNS


class Choices(NamedTuple):
    """For each slot the matrix of its words, laid out as any, and which words these are.

    Words are in rising order, of which `counts` count. `is_banned` bans none.
    """

    panels: np.ndarray
    outputs: np.ndarray
    words: np.ndarray
    counts: np.ndarray
    is_banned: np.ndarray


@compiled
def make_choices(num_slots, most_words, output) -> Choices:
    """Make room for the words of slots."""
    panels = -(-most_words // COLUMNS)
    return Choices(
        np.zeros(
            (num_slots, panels, output.panels.shape[1], output.panels.shape[2]), output.panels.dtype
        ),
        np.empty((num_slots, panels, 3, COLUMNS), np.float32),
        np.zeros((num_slots, panels * COLUMNS), np.int64),
        np.zeros(num_slots, np.int64),
        np.zeros(panels * COLUMNS, np.bool_),
    )


@compiled
def choose_among(slot, words, output, choices) -> None:
    """Let a slot search among some words."""
    choices.counts[slot] = len(words)
    panels, outputs = choices.panels[slot], choices.outputs[slot]
    entries = panels.shape[2] // COLUMNS
    outputs[:, :2] = 0
    outputs[:, 2] = -np.inf  # for what fills the last panel up
    for index in range(len(words)):
        word = words[index]
        choices.words[slot, index] = word
        old, old_start = output.panels[word // COLUMNS], word % COLUMNS * entries
        new, new_start = panels[index // COLUMNS], index % COLUMNS * entries
        for group in range(len(old)):
            for entry in range(entries):
                new[group, new_start + entry] = old[group, old_start + entry]
        for part in range(3):
            found = output.outputs[word // COLUMNS, part, word % COLUMNS]
            outputs[index // COLUMNS, part, index % COLUMNS] = found


@compiled
def find_chosen(
    slot, states, count, choices, forced, forbidden, is_normalised, best, words, team
) -> None:
    """Find the best of a slot's words, for each of its hypotheses.

    Parameters
    ----------
    slot : int
        The slot.
    states : ndarray
        What the decoder says of its hypotheses, one vector a row.
    count : int
        How many of them.
    choices : Choices
        Its words.
    forced : ndarray
        For each hypothesis the only word that may be found, one of the slot's, or −1.
    forbidden : ForbiddenTable
        An empty one.
    is_normalised : bool
        Whether scores become log-probabilities, among these words.
    best : ndarray
        As `find_words` writes it.
    words : ndarray
        Likewise.
    team : Team
        Who helps.
    """
    own = choices.words[slot, : choices.counts[slot]]
    places = np.empty(count, np.int64)
    for row in range(count):
        places[row] = np.searchsorted(own, forced[row]) if forced[row] >= 0 else -1
    panels = -(-len(own) // COLUMNS)
    nothing, no_scores = np.zeros((count, 0), np.int64), np.zeros((count, 0), np.float32)
    find_words(
        states, count, choices.panels[slot, :panels], choices.outputs[slot, :panels],
        choices.is_banned, places, nothing, nothing, forbidden, places, is_normalised, best, words,
        no_scores, team,
    )  # fmt: skip
    for row in range(count):
        for rank in range(words.shape[1]):
            words[row, rank] = choices.words[slot, words[row, rank]]
