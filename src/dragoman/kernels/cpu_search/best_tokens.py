"""The best words of a vocabulary, found while they are scored."""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled, compiled_inline
from dragoman.kernels.cpu_search.task import PART
from dragoman.kernels.cpu_search.team import score_together, shares_scores
from dragoman.kernels.cpu_search.tiles import ROWS, multiply_tile, prepare_rows
from dragoman.kernels.cpu_search.token_scores import (
    LOWEST,
    find_above,
    find_lowest,
    find_normaliser,
    weigh,
)
from dragoman.kernels.cpu_search.weight_layout import COLUMNS


@compiled
def is_ruled_out(word, is_banned, forbidden, place) -> bool:
    """Say whether a token is forbidden after what a hypothesis has written."""
    if is_banned[word]:
        return True
    if len(forbidden.may_begin) == 0:
        return False
    if forbidden.is_complete[place] and forbidden.ends_word[word]:
        return True
    return word in forbidden.closing[place]


@compiled_inline
def choose_words(
    row, first, scores, line, column, is_banned, forced, asked, next_asked, forbidden, places, best,
    words, asked_scores,
) -> None:  # fmt: skip
    """Keep the best words of a panel, and the scores that are asked for.

    Parameters
    ----------
    row : int
        Of the vector.
    first : int
        The first word of the panel.
    scores : ndarray
        The scores of its words, and others.
    line : int
        In which line of these they are.
    column : int
        From which column on.
    is_banned : ndarray
        As `find_words` is told.
    forced : ndarray
        Likewise.
    asked : ndarray
        Likewise.
    next_asked : ndarray
        For each vector the first word that is asked for whose score is not known.
    forbidden : ForbiddenTable
        As `find_words` is told.
    places : ndarray
        Likewise.
    best : ndarray
        As `find_words` writes it, so far.
    words : ndarray
        Likewise.
    asked_scores : ndarray
        Likewise.
    """
    while next_asked[row] < asked.shape[1]:
        word = asked[row, next_asked[row]]
        if word >= first + COLUMNS:
            break
        is_possible = not is_ruled_out(word, is_banned, forbidden, places[row])
        found = scores[line, column + word - first] if is_possible else np.float32(-np.inf)
        asked_scores[row, next_asked[row]] = found
        next_asked[row] += 1
    if forced[row] >= 0:
        word = forced[row]
        if first <= word < first + COLUMNS:
            words[row] = word
            if not is_ruled_out(word, is_banned, forbidden, places[row]):
                best[row, 0] = scores[line, column + word - first]
    else:
        address = scores.ctypes.data + 4 * (line * scores.shape[1] + column)
        bits = find_above(address, best[row, -1])
        while bits:
            place = find_lowest(bits)
            bits &= bits - np.uint64(1)
            score = scores[line, column + place]
            if score > best[row, -1] and not is_ruled_out(
                first + place, is_banned, forbidden, places[row]
            ):
                rank = best.shape[1] - 1  # no view of a row is made here: counting it takes time
                while rank > 0 and score > best[row, rank - 1]:
                    best[row, rank], words[row, rank] = best[row, rank - 1], words[row, rank - 1]
                    rank -= 1
                best[row, rank], words[row, rank] = score, first + place


@compiled_inline
def score_alone(
    rows, sizes, count, panels, outputs, is_banned, forced, blocked, asked, next_asked, forbidden,
    places, is_normalised, highest, totals, best, words, asked_scores,
) -> None:  # fmt: skip
    """Score all words on one core, panel by panel, and keep the best of each.

    Parameters
    ----------
    rows : ndarray
        Vectors, as `prepare_rows` makes them.
    sizes : ndarray
        Likewise.
    count : int
        As `find_words` is told.
    panels : ndarray
        Likewise.
    outputs : ndarray
        Likewise.
    is_banned : ndarray
        Likewise.
    forced : ndarray
        Likewise.
    blocked : ndarray
        Likewise.
    asked : ndarray
        Likewise.
    next_asked : ndarray
        As `choose_words` is told.
    forbidden : ForbiddenTable
        As `find_words` is told.
    places : ndarray
        Likewise.
    is_normalised : bool
        Likewise.
    highest : ndarray
        Where the highest score of each part of the vocabulary is written, one vector's a row.
    totals : ndarray
        Where the sums of its exponentials are written.
    best : ndarray
        As `find_words` writes it.
    words : ndarray
        Likewise.
    asked_scores : ndarray
        Likewise.
    """
    tile = np.empty((ROWS, COLUMNS), np.float32)
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
                top, highest[row, part], totals[row, part] = weigh(
                    tile.ctypes.data + 4 * COLUMNS * (row - start),
                    is_normalised,
                    highest[row, part],
                    totals[row, part],
                )
                if top > best[row, -1] or forced[row] >= 0 or asked.shape[1] > 0:
                    choose_words(
                        row, first, tile, row - start, 0, is_banned, forced, asked, next_asked,
                        forbidden, places, best, words, asked_scores,
                    )  # fmt: skip


@compiled
def find_words(
    states, count, panels, outputs, is_banned, forced, blocked, asked, forbidden, places,
    is_normalised, best, words, asked_scores, team,
) -> None:  # fmt: skip
    """Find the words with the highest scores, keeping no others.

    Parameters
    ----------
    states : ndarray
        What the decoder says, one vector a row.
    count : int
        How many of them.
    panels : ndarray
        The matrix of the vocabulary, as `dragoman.kernels.cpu_search.weight_layout.Matrix` has it.
    outputs : ndarray
        Likewise; what is added is −∞ for what is no word.
    is_banned : ndarray
        Whether each word must not be found; as long as all panels are wide.
    forced : ndarray
        For each vector the only word that may be found, or −1.
    blocked : ndarray
        For each vector words that must not be found, −1 for none, and have no probability.
    asked : ndarray
        For each vector words whose scores are asked for, in rising order, the last repeated.
    forbidden : ForbiddenTable
        Words that must not be found, by what was said before.
    places : ndarray
        For each vector what it has said of these.
    is_normalised : bool
        Whether scores become log-probabilities.
    best : ndarray
        Where the scores of the best words are written, in falling order.
    words : ndarray
        Where the words are written; those that are impossible have a score of −∞.
    asked_scores : ndarray
        Where the scores of the words that are asked for are written.
    team : Team
        Who helps.
    """
    rows, sizes = prepare_rows(states, count, states.shape[1], panels)
    highest = np.full((count, -(-len(panels) // PART)), LOWEST)
    totals = np.zeros(highest.shape, np.float32)
    next_asked = np.zeros(count, np.int64)
    best[:count] = -np.inf
    words[:count] = 0
    if shares_scores(team, panels) and blocked.shape[1] == 0:
        score_together(rows, sizes, count, panels, outputs, is_normalised, highest, totals, team)
        for panel in range(len(panels)):
            first = panel * COLUMNS
            for row in range(count):
                if team.tops[row, panel] > best[row, -1] or forced[row] >= 0 or asked.shape[1] > 0:
                    choose_words(
                        row, first, team.scores, row, first, is_banned, forced, asked, next_asked,
                        forbidden, places, best, words, asked_scores,
                    )  # fmt: skip
    else:
        score_alone(
            rows, sizes, count, panels, outputs, is_banned, forced, blocked, asked, next_asked,
            forbidden, places, is_normalised, highest, totals, best, words, asked_scores,
        )  # fmt: skip
    if is_normalised:
        for row in range(count):
            normaliser = find_normaliser(highest[row], totals[row])
            best[row] -= normaliser
            asked_scores[row] -= normaliser
