"""What is said several times in a row."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.repetition import find_repetition


def most_times(units, longest):
    """The highest number of times in a row, by trying all."""
    best = 1
    for start in range(len(units)):
        for period in range(1, longest + 1):
            phrase = units[start : start + period]
            count = 1
            while units[start + count * period : start + (count + 1) * period] == phrase:
                count += 1
            if len(phrase) == period:
                best = max(best, count)
    return best


@given(st.lists(st.sampled_from("ab"), max_size=24), st.integers(1, 5))
def test_repetition_is_what_trying_all_finds(units, longest):
    found = find_repetition(units, longest)
    assert found.num_times == most_times(units, longest)
    phrase = units[found.start : found.start + found.period]
    whole = units[found.start : found.start + found.period * found.num_times]
    assert whole == phrase * found.num_times
