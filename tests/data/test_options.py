"""Which treatments of a corpus can be meant."""

import math

import pytest

from dragoman.data.options import CorpusOptions
from dragoman.errors import OptionError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_length": 0}, "max_length is 0: must be at least 1"),
        ({"max_length_ratio": 1.0}, "max_length_ratio is 1.0: must be over 1, or off"),
        ({"valid_pairs": 0}, "valid_pairs is 0: must be at least 1"),
        ({"mix": (1.0, -0.5)}, "mix is 1 -0.5: no weight may be negative or infinite"),
        ({"mix": (1.0, float("nan"))}, "mix is 1 nan: no weight may be negative or infinite"),
        ({"mix": (0.0, 0.0)}, "mix is 0 0: one weight at least must be over 0"),
        ({"mix": ()}, "mix is empty: one weight at least must be over 0"),
        ({"mix_temperature": 0.5}, "mix_temperature is 0.5: must be at least 1, or off"),
        ({"mix_temperature": math.inf}, "mix_temperature is inf: must be at least 1, or off"),
        (
            {"mix_temperature": 5.0, "mix": (1.0, 2.0)},
            "mix_temperature is 5.0: leave it or mix out",
        ),
    ],
)
def test_complains(values, message):
    with pytest.raises(OptionError) as caught:
        CorpusOptions(**values)
    assert str(caught.value) == message


def test_ratio_may_be_off():
    assert CorpusOptions(max_length_ratio=None).max_length_ratio is None
