"""Which searches can be meant."""

import math

import pytest

from dragoman.decoding.options import SamplingOptions, SearchOptions
from dragoman.errors import OptionError


def test_defaults_are_the_papers():
    options = SearchOptions()
    assert (options.beam_size, options.length_penalty, options.max_extra_tokens) == (4, 0.6, 50)
    assert options.coverage_penalty == 0
    assert options.replace_unknown


NO_NUMBERS = (math.nan, math.inf, -math.inf)


@pytest.mark.parametrize(
    ("name", "least", "most", "beyond"),
    [
        ("beam_size", 1, 1000, (0, 1001, 10**20)),
        ("length_penalty", 0, 10, (-0.5, 10.5, *NO_NUMBERS)),
        ("coverage_penalty", 0, 100, (-0.2, 1e300, *NO_NUMBERS)),
        ("max_extra_tokens", 0, 10_000, (-1, 10**22)),
    ],
)
def test_searches_have_limits(name, least, most, beyond):
    for value in (least, most):
        assert getattr(SearchOptions(**{name: value}), name) == value
    for value in beyond:
        with pytest.raises(OptionError) as caught:
            SearchOptions(**{name: value})
        assert str(caught.value) == f"{name} is {value}: must be from {least} to {most:,}"


@pytest.mark.parametrize("value", [0.0, 1e-38, 1e39, *NO_NUMBERS])
def test_temperatures_have_limits(value):
    with pytest.raises(OptionError) as caught:
        SamplingOptions(temperature=value)
    assert str(caught.value) == f"temperature is {value}: must be from 0.001 to 1,000"
