"""The best words of a vocabulary, found while they are scored."""

import numpy as np

from dragoman.kernels.cpu_search.forbidden import is_ruled_out
from dragoman.kernels.cpu_search.instructions import as_float, as_int, compiled, compiled_freely
from dragoman.kernels.cpu_search.layout import COLUMNS
from dragoman.kernels.cpu_search.tiles import ROWS, SIGNLESS, multiply_tile, prepare_rows
from dragoman.kernels.cpu_search.vectors import BITS, power_of_two

_f32, _i32 = np.float32, np.int32
_LOWEST = _f32(-1e30)


@compiled
def find_place(score, best) -> int:
    """Say where a score belongs among the best.

    Parameters
    ----------
    score : float
        The score.
    best : ndarray
        Scores in falling order; the earlier of equal ones comes first.

    Returns
    -------
    int
        Its place; as many as there are if it is none of them.
    """
    place = len(best)
    while place > 0 and score > best[place - 1]:
        place -= 1
    return place


@compiled
def insert(score, word, best, words) -> None:
    """Put a word among the best, if it is one of them.

    Parameters
    ----------
    score : float
        Its score.
    word : int
        The word.
    best : ndarray
        Scores in falling order; the earlier of equal ones comes first.
    words : ndarray
        Whose they are.
    """
    place = find_place(score, best)
    for other in range(len(best) - 1, place, -1):
        best[other], words[other] = best[other - 1], words[other - 1]
    if place < len(best):
        best[place], words[place] = score, word


@compiled_freely
def find_highest(scores) -> float:
    """Find the highest of a panel's scores.

    Parameters
    ----------
    scores : ndarray
        64 of them.

    Returns
    -------
    float
        The highest.
    """
    # Whole numbers in the order of fractions: the compiler compares many at once.
    order = -SIGNLESS
    for column in range(COLUMNS):
        number = as_int(scores[column])
        order = max(order, number ^ ((number >> _i32(31)) & SIGNLESS))
    return as_float(order ^ ((order >> _i32(31)) & SIGNLESS))


@compiled_freely
def add_exponentials(scores, ceiling) -> float:
    """Add up the exponentials of a panel's scores.

    Parameters
    ----------
    scores : ndarray
        64 of them.
    ceiling : float
        What is subtracted from each.

    Returns
    -------
    float
        The sum.
    """
    total = _f32(0)
    for column in range(COLUMNS):
        total += power_of_two((scores[column] - ceiling) * BITS)
    return total


@compiled
def find_words(
    states, count, panels, outputs, is_banned, forced, blocked, asked, forbidden, places,
    is_normalised, best, words, asked_scores,
) -> None:  # fmt: skip
    """Find the words with the highest scores, keeping no others.

    Parameters
    ----------
    states : ndarray
        What the decoder says, one vector a row.
    count : int
        How many of them.
    panels : ndarray
        The matrix of the vocabulary, as `dragoman.kernels.cpu_search.layout.Matrix` has it.
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
    """
    groups = panels.shape[1]
    rows, sizes = prepare_rows(states, count, states.shape[1], panels)
    tile = np.empty((ROWS, COLUMNS), np.float32)
    highest = np.full(count, _LOWEST)
    totals = np.zeros(count, np.float32)
    next_asked = np.zeros(count, np.int64)
    best[:count] = -np.inf
    words[:count] = 0
    for panel in range(len(panels)):
        first = panel * COLUMNS
        for start in range(0, count, ROWS):
            multiply_tile(
                panels,
                rows[start].ctypes.data,
                count - start,
                sizes[start:].ctypes.data,
                panels[panel].ctypes.data,
                groups,
                outputs[panel].ctypes.data,
                tile.ctypes.data,
                4 * COLUMNS,
            )
            for row in range(start, min(start + ROWS, count)):
                scores = tile[row - start]
                for index in range(blocked.shape[1]):
                    if first <= blocked[row, index] < first + COLUMNS:
                        scores[blocked[row, index] - first] = -np.inf
                top = find_highest(scores)
                if is_normalised:
                    if top > highest[row]:
                        totals[row] *= power_of_two((highest[row] - top) * BITS)
                        highest[row] = top
                    totals[row] += add_exponentials(scores, highest[row])
                while next_asked[row] < asked.shape[1]:
                    word = asked[row, next_asked[row]]
                    if word >= first + COLUMNS:
                        break
                    is_possible = not is_ruled_out(word, is_banned, forbidden, places[row])
                    found = scores[word - first] if is_possible else _f32(-np.inf)
                    asked_scores[row, next_asked[row]] = found
                    next_asked[row] += 1
                if forced[row] >= 0:
                    word = forced[row]
                    if first <= word < first + COLUMNS:
                        words[row] = word
                        if not is_ruled_out(word, is_banned, forbidden, places[row]):
                            best[row, 0] = scores[word - first]
                elif top > best[row, -1]:
                    for column in range(COLUMNS):
                        if scores[column] > best[row, -1] and not is_ruled_out(
                            first + column, is_banned, forbidden, places[row]
                        ):
                            insert(scores[column], first + column, best[row], words[row])
    if is_normalised:
        for row in range(count):
            normaliser = highest[row] + _f32(np.log(totals[row]))
            best[row] -= normaliser
            asked_scores[row] -= normaliser
