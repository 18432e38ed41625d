"""Find the best tokens of a vocabulary, and their log-softmax, while they are scored."""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import (
    borrow,
    compiled,
    compiled_inline,
    keep_alive,
)
from dragoman.kernels.cpu_search.task import PART
from dragoman.kernels.cpu_search.team import score_together, shares_scores
from dragoman.kernels.cpu_search.tiles import ROWS, multiply_tile, prepare_rows
from dragoman.kernels.cpu_search.token_scores import (
    LOWEST,
    accumulate_exponentials,
    find_above,
    find_lowest,
    find_normaliser,
)
from dragoman.kernels.cpu_search.weight_layout import COLUMNS


@compiled
def is_forbidden(token, is_banned, forbidden, state) -> bool:
    """Say whether a token is forbidden after what a hypothesis has written."""
    if is_banned[token]:
        return True
    if len(forbidden.may_begin) == 0:
        return False
    if forbidden.is_complete[state] and forbidden.ends_word[token]:
        return True
    return token in forbidden.closing[state]


@compiled_inline
def keep_best_of_panel(
    row, first, scores, line, column, is_banned, forced, requested, next_requested, forbidden,
    forbidden_states, best, tokens, requested_scores,
) -> None:  # fmt: skip
    """Merge the scores of one panel of 64 tokens into the best tokens of one row.

    `line` and `column` say where in `scores` those of the panel begin; the rest is as in
    `find_best_tokens`. Requested scores are copied on the way.
    """
    while next_requested[row] < requested.shape[1]:
        token = requested[row, next_requested[row]]
        if token >= first + COLUMNS:
            break
        is_possible = not is_forbidden(token, is_banned, forbidden, forbidden_states[row])
        found = scores[line, column + token - first] if is_possible else np.float32(-np.inf)
        requested_scores[row, next_requested[row]] = found
        next_requested[row] += 1
    if forced[row] >= 0:
        token = forced[row]
        if first <= token < first + COLUMNS:
            tokens[row] = token
            if not is_forbidden(token, is_banned, forbidden, forbidden_states[row]):
                best[row, 0] = scores[line, column + token - first]
    else:
        address = scores.ctypes.data + 4 * (line * scores.shape[1] + column)
        bits = find_above(address, best[row, -1])
        while bits:
            position = find_lowest(bits)
            bits &= bits - np.uint64(1)
            score = scores[line, column + position]
            if score > best[row, -1] and not is_forbidden(
                first + position, is_banned, forbidden, forbidden_states[row]
            ):
                rank = (
                    best.shape[1] - 1
                )  # no view of a row is made here: its reference count costs time
                while rank > 0 and score > best[row, rank - 1]:
                    best[row, rank], tokens[row, rank] = best[row, rank - 1], tokens[row, rank - 1]
                    rank -= 1
                best[row, rank], tokens[row, rank] = score, first + position


@compiled_inline
def score_on_one_core(
    rows, sizes, count, panels, outputs, is_banned, forced, blocked, requested, next_requested,
    forbidden, forbidden_states, is_normalised, highest, totals, best, tokens, requested_scores,
    tile,
) -> None:  # fmt: skip
    """Score all tokens on one core, panel by panel, keeping the best tokens of each row.

    `highest` and `totals` receive, one row a vector, the highest score and the sum of exponentials
    of each part of the vocabulary, `tile` the scores of a panel; the rest is as in
    `find_best_tokens`.
    """
    for panel in range(len(panels)):
        first, part = panel * COLUMNS, panel // PART
        for start in range(0, count, ROWS):
            multiply_tile(
                panels, rows[start].ctypes.data, count - start, sizes[start:].ctypes.data,
                panels[panel].ctypes.data, panels.shape[1], outputs[panel].ctypes.data,
                tile.ctypes.data, 4 * COLUMNS,
            )  # fmt: skip
            for row in range(start, min(start + ROWS, count)):
                for index in range(blocked.shape[1]):
                    if first <= blocked[row, index] < first + COLUMNS:
                        tile[row - start, blocked[row, index] - first] = -np.inf
                top, highest[row, part], totals[row, part] = accumulate_exponentials(
                    tile.ctypes.data + 4 * COLUMNS * (row - start),
                    is_normalised,
                    highest[row, part],
                    totals[row, part],
                )
                if top > best[row, -1] or forced[row] >= 0 or requested.shape[1] > 0:
                    keep_best_of_panel(
                        row, first, tile, row - start, 0, is_banned, forced, requested,
                        next_requested, forbidden, forbidden_states, best, tokens, requested_scores,
                    )  # fmt: skip


@compiled
def find_best_tokens(
    states, count, panels, outputs, is_banned, forced, blocked, requested, forbidden,
    forbidden_states, is_normalised, best, tokens, requested_scores, team,
) -> None:  # fmt: skip
    """Score all tokens of the vocabulary and keep only the best of each row.

    Parameters
    ----------
    states : ndarray
        Decoder states, one vector a row.
    count : int
        Number of rows that count.
    panels : ndarray
        Output matrix, as `dragoman.kernels.cpu_search.weight_layout.Matrix` has it.
    outputs : ndarray
        Scales and biases of `Matrix`; the bias of a column without a token is −∞.
    is_banned : ndarray
        Whether each token is forbidden everywhere; as long as all panels are wide.
    forced : ndarray
        For each row the only token that may be found, or −1.
    blocked : ndarray
        For each row tokens that must not be found and have no probability; −1 for none.
    requested : ndarray
        For each row tokens whose scores are wanted, in rising order, the last repeated.
    forbidden : ForbiddenTable
        Forbidden phrases.
    forbidden_states : ndarray
        State of each row in the automaton of forbidden phrases.
    is_normalised : bool
        Whether scores become log-probabilities.
    best : ndarray
        Output: scores of the best tokens in falling order, −∞ where there is none.
    tokens : ndarray
        Output: the best tokens.
    requested_scores : ndarray
        Output: the scores of the requested tokens.
    team : Team
        Helping cores.
    """
    num_parts = -(-len(panels) // PART)
    own_arrays = (
        prepare_rows(states, count, states.shape[1], panels),
        np.full((count, num_parts), LOWEST),
        np.zeros((count, num_parts), np.float32),
        np.zeros(count, np.int64),
        np.empty((ROWS, COLUMNS), np.float32),
    )
    (rows, sizes), highest, totals, next_requested, tile = borrow(own_arrays)
    best[:count] = -np.inf
    tokens[:count] = 0
    if shares_scores(team, panels) and blocked.shape[1] == 0:
        score_together(rows, sizes, count, panels, outputs, is_normalised, highest, totals, team)
        for panel in range(len(panels)):
            first = panel * COLUMNS
            for row in range(count):
                if (
                    team.tops[row, panel] > best[row, -1]
                    or forced[row] >= 0
                    or requested.shape[1] > 0
                ):
                    keep_best_of_panel(
                        row, first, team.scores, row, first, is_banned, forced, requested,
                        next_requested, forbidden, forbidden_states, best, tokens, requested_scores,
                    )  # fmt: skip
    else:
        score_on_one_core(
            rows, sizes, count, panels, outputs, is_banned, forced, blocked, requested,
            next_requested, forbidden, forbidden_states, is_normalised, highest, totals, best,
            tokens, requested_scores, tile,
        )  # fmt: skip
    if is_normalised:
        for row in range(count):
            normaliser = find_normaliser(highest[row], totals[row])
            best[row] -= normaliser
            requested_scores[row] -= normaliser
    keep_alive(own_arrays)
