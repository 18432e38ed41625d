"""One sentence on several cores: large products that others help with.

The core that searches makes a job of such a product: chunks of panels, of which it and its helpers
take one after another until none is left. Helpers wait for the next job by asking again and again,
so that one costs less than a microsecond; they are there for one call of `search` alone. Whoever
computes a chunk, its numbers are the same.
"""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import (
    compiled,
    compiled_entry,
    read_shared,
    rest,
    swap_shared,
    take_numbers,
    write_shared,
)
from dragoman.kernels.cpu_search.task import DONE, IS_OVER, IS_SLOW, JOB, LEFT, PART, Team
from dragoman.kernels.cpu_search.tiles import ROWS, multiply_rows, multiply_tile, prepare_rows
from dragoman.kernels.cpu_search.token_scores import LOWEST, weigh
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, ENTRIES

(
    _VECTORS, _SIZES, _PANELS, _GROUPS, _OUTPUTS, _PRODUCTS, _STRIDE, _COUNT, _NUM_PANELS, _CHUNK,
    _SCORES,
) = range(JOB)  # fmt: skip
_NO, _YES, _NORMALISED = range(3)
# Bytes of a matrix, as often as it is read, that are worth a job, and those of a chunk: half a
# microsecond's work and more.
_WORTH, _CHUNK_BYTES = 1 << 18, 1 << 16
# How often to ask whether the others are done, some 50 microseconds, until they are known to be
# kept from work by something else.
_PATIENCE = 2000


@compiled
def work_alone() -> Team:
    """Make a team without helpers."""
    nothing, none = np.zeros((0, 0), np.float32), np.zeros(0, np.int64)
    return Team(none, none, nothing, nothing, nothing, nothing)


@compiled
def has_helpers(team) -> bool:
    """Say whether somebody helps who can keep up."""
    return len(team.turns) > 0 and team.turns[IS_SLOW] == 0


@compiled
def shares_scores(team, panels) -> bool:
    """Say whether the scores of words are computed together."""
    size = len(panels) * panels.shape[1] * COLUMNS * ENTRIES
    return has_helpers(team) and len(panels) == team.tops.shape[1] and size >= _WORTH


@compiled
def compute_chunk(kind, chunk, team) -> None:
    """Compute a chunk of a product."""
    job = team.job
    first, count, groups, stride = chunk * job[_CHUNK], job[_COUNT], job[_GROUPS], job[_STRIDE]
    for panel in range(first, min(first + job[_CHUNK], job[_NUM_PANELS])):
        for start in range(0, count, ROWS):
            multiply_tile(
                kind,
                job[_VECTORS] + start * groups * ENTRIES,
                count - start,
                job[_SIZES] + 4 * start,
                job[_PANELS] + panel * groups * ENTRIES * COLUMNS,
                groups,
                job[_OUTPUTS] + panel * 3 * 4 * COLUMNS,
                job[_PRODUCTS] + start * stride + panel * 4 * COLUMNS,
                stride,
            )
        if job[_SCORES] != _NO:
            for row in range(count):
                team.tops[row, panel], team.highest[row, chunk], team.totals[row, chunk] = weigh(
                    job[_PRODUCTS] + row * stride + panel * 4 * COLUMNS,
                    job[_SCORES] == _NORMALISED,
                    team.highest[row, chunk],
                    team.totals[row, chunk],
                )


@compiled
def compute_chunks(kind, team) -> None:
    """Compute chunks until none is left that nobody has taken.

    Parameters
    ----------
    kind : ndarray
        An array of the type of the panels.
    team : Team
        The job. It is read after a chunk was taken: until that is done, there is no other.
    """
    left_at = team.turns.ctypes.data + 8 * LEFT
    while True:
        left = read_shared(left_at)
        if left == 0:
            return
        if swap_shared(left_at, left, left - 1):
            compute_chunk(kind, left - 1, team)
            take_numbers(team.turns.ctypes.data + 8 * DONE, 1)


@compiled_entry
def help_out(kind, team) -> None:
    """Help until all is over."""
    while not read_shared(team.turns.ctypes.data + 8 * IS_OVER):
        compute_chunks(kind, team)
        rest()


@compiled
def do_job(rows, sizes, count, panels, outputs, products, chunk, scores, team) -> None:
    """Compute a product together with all helpers."""
    job, num_chunks = team.job, -(-len(panels) // chunk)
    job[_VECTORS], job[_SIZES] = rows.ctypes.data, sizes.ctypes.data
    job[_PANELS], job[_GROUPS] = panels.ctypes.data, panels.shape[1]
    job[_OUTPUTS], job[_PRODUCTS] = outputs.ctypes.data, products.ctypes.data
    job[_STRIDE], job[_COUNT] = 4 * products.shape[1], count
    job[_NUM_PANELS], job[_CHUNK], job[_SCORES] = len(panels), chunk, scores
    team.turns[DONE] = 0
    write_shared(team.turns.ctypes.data + 8 * LEFT, num_chunks)
    compute_chunks(panels, team)
    patience = _PATIENCE
    while read_shared(team.turns.ctypes.data + 8 * DONE) < num_chunks:
        rest()
        patience -= 1
    if patience < 0:
        team.turns[IS_SLOW] = 1


@compiled
def multiply_together(states, count, panels, outputs, width, products, team) -> None:
    """Multiply vectors by a matrix, with all helpers if that is worth it."""
    panel_bytes = panels.shape[1] * COLUMNS * ENTRIES * -(-count // ROWS)
    if not has_helpers(team) or len(panels) * panel_bytes < _WORTH:
        multiply_rows(states, count, panels, outputs, width, products)
        return
    rows, sizes = prepare_rows(states, count, width, panels)
    chunk = max(1, _CHUNK_BYTES // panel_bytes)
    do_job(rows, sizes, count, panels, outputs, products, chunk, _NO, team)


@compiled
def score_together(
    rows, sizes, count, panels, outputs, is_normalised, highest, totals, team
) -> None:
    """Score all words with all helpers.

    Parameters
    ----------
    rows : ndarray
        Vectors, as `prepare_rows` makes them.
    sizes : ndarray
        Likewise.
    count : int
        How many of them.
    panels : ndarray
        The matrix of the vocabulary.
    outputs : ndarray
        Likewise.
    is_normalised : bool
        Whether exponentials are added up.
    highest : ndarray
        Where the highest score of each part of the vocabulary is written, one vector's a row.
    totals : ndarray
        Where the sums of its exponentials are written.
    team : Team
        Gets the scores, and the highest of each panel.
    """
    team.highest[:count], team.totals[:count] = LOWEST, 0
    scores = _NORMALISED if is_normalised else _YES
    do_job(rows, sizes, count, panels, outputs, team.scores, PART, scores, team)
    for row in range(count):
        highest[row], totals[row] = team.highest[row], team.totals[row]
