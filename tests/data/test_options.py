"""Which treatments of a corpus can be meant."""

import pytest

from dragoman.data.options import CorpusOptions
from dragoman.errors import OptionError


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"max_length": 0}, "max_length is 0: must be at least 1"),
        ({"max_length_ratio": 1.0}, "max_length_ratio is 1.0: must be over 1, or off"),
        ({"valid_pairs": 0}, "valid_pairs is 0: must be at least 1"),
    ],
)
def test_complains(values, message):
    with pytest.raises(OptionError) as caught:
        CorpusOptions(**values)
    assert str(caught.value) == message


def test_ratio_may_be_off():
    assert CorpusOptions(max_length_ratio=None).max_length_ratio is None
