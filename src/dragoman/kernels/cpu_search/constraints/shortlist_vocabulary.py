"""Output matrices of short-lists: each slot scores only the tokens of its sentence's short-list."""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.best_tokens import find_best_tokens
from dragoman.kernels.cpu_search.compiler.instructions import compiled
from dragoman.kernels.cpu_search.weight_layout import COLUMNS


class SlotShortlists(NamedTuple):
    """For each slot the rows of the output matrix of its short-list, and the token ids of these.

    `tokens` are in rising order, of which `counts` count. `is_banned` bans none.
    """

    panels: np.ndarray
    outputs: np.ndarray
    tokens: np.ndarray
    counts: np.ndarray
    is_banned: np.ndarray


@compiled
def make_slot_shortlists(num_slots, max_tokens, output) -> SlotShortlists:
    """Allocate the short-lists of all slots."""
    panels = -(-max_tokens // COLUMNS)
    return SlotShortlists(
        np.zeros(
            (num_slots, panels, output.panels.shape[1], output.panels.shape[2]), output.panels.dtype
        ),
        np.empty((num_slots, panels, 3, COLUMNS), np.float32),
        np.zeros((num_slots, panels * COLUMNS), np.int64),
        np.zeros(num_slots, np.int64),
        np.zeros(panels * COLUMNS, np.bool_),
    )


@compiled
def load_shortlist(slot, tokens, output, shortlists) -> None:
    """Copy the rows of a short-list from the output matrix into a slot."""
    shortlists.counts[slot] = len(tokens)
    panels, outputs = shortlists.panels[slot], shortlists.outputs[slot]
    entries = panels.shape[2] // COLUMNS
    outputs[:, :2] = 0
    outputs[:, 2] = -np.inf  # for columns that pad the last panel
    for index in range(len(tokens)):
        token = tokens[index]
        shortlists.tokens[slot, index] = token
        old, old_start = output.panels[token // COLUMNS], token % COLUMNS * entries
        new, new_start = panels[index // COLUMNS], index % COLUMNS * entries
        for group in range(len(old)):
            for entry in range(entries):
                new[group, new_start + entry] = old[group, old_start + entry]
        for part in range(3):
            found = output.outputs[token // COLUMNS, part, token % COLUMNS]
            outputs[index // COLUMNS, part, index % COLUMNS] = found


@compiled
def find_best_in_shortlist(
    slot, states, count, shortlists, forced, forbidden, is_normalised, best, tokens, team
) -> None:
    """Find the best short-listed tokens for each hypothesis of a slot.

    `forced` must be tokens of the short-list, and `forbidden` an empty table: phrases are not
    supported. The rest is as in `dragoman.kernels.cpu_search.best_tokens.find_best_tokens`.
    """
    own = shortlists.tokens[slot, : shortlists.counts[slot]]
    indices = np.empty(count, np.int64)
    for row in range(count):
        indices[row] = np.searchsorted(own, forced[row]) if forced[row] >= 0 else -1
    panels = -(-len(own) // COLUMNS)
    nothing, no_scores = np.zeros((count, 0), np.int64), np.zeros((count, 0), np.float32)
    find_best_tokens(
        states, count, shortlists.panels[slot, :panels], shortlists.outputs[slot, :panels],
        shortlists.is_banned, indices, nothing, nothing, forbidden, indices,
        is_normalised, best, tokens, no_scores, team,
    )  # fmt: skip
    for row in range(count):
        for rank in range(tokens.shape[1]):
            tokens[row, rank] = shortlists.tokens[slot, tokens[row, rank]]
