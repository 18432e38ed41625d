"""Which searches can be meant."""

import pytest

from dragoman.decoding.options import SearchOptions
from dragoman.errors import OptionError


def test_defaults_are_the_papers():
    options = SearchOptions()
    assert (options.beam_size, options.length_penalty, options.max_extra_tokens) == (4, 0.6, 50)
    assert options.coverage_penalty == 0
    assert options.replace_unknown


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beam_size": 0}, "beam_size is 0: must be at least 1"),
        ({"length_penalty": -0.5}, "length_penalty is -0.5: must not be negative"),
        ({"coverage_penalty": -0.2}, "coverage_penalty is -0.2: must not be negative"),
        ({"max_extra_tokens": -1}, "max_extra_tokens is -1: must not be negative"),
    ],
)
def test_complains(values, message):
    with pytest.raises(OptionError) as caught:
        SearchOptions(**values)
    assert str(caught.value) == message
