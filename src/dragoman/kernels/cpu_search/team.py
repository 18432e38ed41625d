"""Share large matrix products of one sentence among several cores.

The searching core publishes a product as a job of chunks of panels, which it and its helpers take
one after another. Helpers spin between jobs, so that a job costs less than a microsecond; they live
for one call of `search`. The result does not depend on who computes a chunk.
"""

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import (
    atomic_add,
    atomic_load,
    atomic_store,
    borrow,
    compare_and_swap,
    compiled,
    compiled_entry,
    keep_alive,
    pause,
)
from dragoman.kernels.cpu_search.task import DONE, IS_OVER, IS_SLOW, JOB, LEFT, PART, Team
from dragoman.kernels.cpu_search.tiles import ROWS, multiply_rows, multiply_tile, prepare_rows
from dragoman.kernels.cpu_search.token_scores import LOWEST, accumulate_exponentials
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, ENTRIES

(
    _VECTORS, _SIZES, _PANELS, _GROUPS, _OUTPUTS, _PRODUCTS, _STRIDE, _COUNT, _NUM_PANELS, _CHUNK,
    _SCORES,
) = range(JOB)  # fmt: skip
_NO, _YES, _NORMALISED = range(3)
# Bytes of a matrix, times the tiles of rows that read it, from which a job pays; bytes of a chunk,
# half a microsecond's work or more.
_WORTH, _CHUNK_BYTES = 1 << 18, 1 << 16
# Polls, some 50 microseconds, after which helpers count as slow: something else has their cores.
_PATIENCE = 2000


@compiled
def make_single_core_team() -> Team:
    """Make a team without helpers."""
    nothing, none = np.zeros((0, 0), np.float32), np.zeros(0, np.int64)
    return Team(none, none, nothing, nothing, nothing, nothing)


@compiled
def has_helpers(team) -> bool:
    """Say whether there are helpers that keep up."""
    return len(team.counters) > 0 and team.counters[IS_SLOW] == 0


@compiled
def shares_scores(team, panels) -> bool:
    """Say whether token scores are computed together with helpers."""
    size = len(panels) * panels.shape[1] * COLUMNS * ENTRIES
    return has_helpers(team) and len(panels) == team.tops.shape[1] and size >= _WORTH


@compiled
def compute_chunk(kind, chunk, team) -> None:
    """Compute one chunk of a product."""
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
                team.tops[row, panel], team.highest[row, chunk], team.totals[row, chunk] = (
                    accumulate_exponentials(
                        job[_PRODUCTS] + row * stride + panel * 4 * COLUMNS,
                        job[_SCORES] == _NORMALISED,
                        team.highest[row, chunk],
                        team.totals[row, chunk],
                    )
                )


@compiled
def compute_chunks(kind, team) -> None:
    """Compute chunks until none is left.

    `kind` is an array of the type of the panels. The job may be read only after a chunk was taken:
    until that chunk is done, there is no other job.
    """
    left_at = team.counters.ctypes.data + 8 * LEFT
    while True:
        left = atomic_load(left_at)
        if left == 0:
            return
        if compare_and_swap(left_at, left, left - 1):
            compute_chunk(kind, left - 1, team)
            atomic_add(team.counters.ctypes.data + 8 * DONE, 1)


@compiled_entry
def run_helper(kind, team) -> None:
    """Compute chunks of all jobs until the search is over."""
    while not atomic_load(team.counters.ctypes.data + 8 * IS_OVER):
        compute_chunks(kind, team)
        pause()


@compiled
def run_job(rows, sizes, count, panels, outputs, products, chunk, scores, team) -> None:
    """Compute a product together with all helpers."""
    job, num_chunks = team.job, -(-len(panels) // chunk)
    job[_VECTORS], job[_SIZES] = rows.ctypes.data, sizes.ctypes.data
    job[_PANELS], job[_GROUPS] = panels.ctypes.data, panels.shape[1]
    job[_OUTPUTS], job[_PRODUCTS] = outputs.ctypes.data, products.ctypes.data
    job[_STRIDE], job[_COUNT] = 4 * products.shape[1], count
    job[_NUM_PANELS], job[_CHUNK], job[_SCORES] = len(panels), chunk, scores
    team.counters[DONE] = 0
    atomic_store(team.counters.ctypes.data + 8 * LEFT, num_chunks)
    compute_chunks(panels, team)
    patience = _PATIENCE
    while atomic_load(team.counters.ctypes.data + 8 * DONE) < num_chunks:
        pause()
        patience -= 1
    if patience < 0:
        team.counters[IS_SLOW] = 1


@compiled
def multiply_together(states, count, panels, outputs, width, products, team) -> None:
    """Multiply vectors by a matrix, with helpers if the product is large enough."""
    panel_bytes = panels.shape[1] * COLUMNS * ENTRIES * -(-count // ROWS)
    if not has_helpers(team) or len(panels) * panel_bytes < _WORTH:
        multiply_rows(states, count, panels, outputs, width, products)
        return
    own_rows = prepare_rows(states, count, width, panels)
    rows, sizes = borrow(own_rows)
    chunk = max(1, _CHUNK_BYTES // panel_bytes)
    run_job(rows, sizes, count, panels, outputs, products, chunk, _NO, team)
    keep_alive(own_rows)


@compiled
def score_together(
    rows, sizes, count, panels, outputs, is_normalised, highest, totals, team
) -> None:
    """Score all tokens with all helpers.

    `team` receives the scores and the highest of each panel, `highest` and `totals` those of each
    part of the vocabulary; the rest is as in `score_on_one_core`.
    """
    team.highest[:count], team.totals[:count] = LOWEST, 0
    scores = _NORMALISED if is_normalised else _YES
    run_job(rows, sizes, count, panels, outputs, team.scores, PART, scores, team)
    for row in range(count):
        highest[row], totals[row] = team.highest[row], team.totals[row]
