"""Parts of the compiled search with terms."""

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.kernels.cpu_search.constraints.required_terms import sort_falling


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 577])
def test_numbers_are_sorted_and_equal_ones_keep_their_order(count):
    scores = np.random.default_rng(count).integers(0, 20, count).astype(np.float32)
    order, spare = np.empty(count, np.int64), np.empty(count, np.int64)
    sort_falling(scores, order, spare)
    assert order.tolist() == sorted(range(count), key=lambda place: -scores[place])
