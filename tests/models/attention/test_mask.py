"""The mask against its definition, written out place by place."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.models.attention.mask import Mask

CPU = torch.device("cpu")


@given(
    lengths=st.none() | st.lists(st.integers(0, 6), min_size=1, max_size=3),
    causal=st.booleans(),
    num_queries=st.integers(1, 6),
    num_keys=st.integers(1, 6),
)
def test_is_its_definition(lengths, causal, num_queries, num_keys):
    mask = Mask(key_lengths=None if lengths is None else torch.tensor(lengths), causal=causal)
    found = mask.may_attend(num_queries, num_keys, CPU)
    assert found.shape[1:] == (1, num_queries, num_keys)
    for row, length in enumerate([num_keys] if lengths is None else lengths):
        for query in range(num_queries):
            for key in range(num_keys):
                is_past = key - (num_keys - 1) <= query - (num_queries - 1)
                expected = key < length and (is_past or not causal)
                assert found[row, 0, query, key].item() == expected


def test_is_made_once_for_each_shape():
    mask = Mask(key_lengths=torch.tensor([2, 3]))
    assert mask.may_attend(4, 3, CPU) is mask.may_attend(4, 3, CPU)
    assert mask.may_attend(2, 3, CPU).shape != mask.may_attend(4, 3, CPU).shape


def test_two_masks_share_nothing():
    one, other = Mask(key_lengths=torch.tensor([1])), Mask(key_lengths=torch.tensor([2]))
    assert one.may_attend(1, 2, CPU).tolist() != other.may_attend(1, 2, CPU).tolist()


def test_says_where_it_is_wrong():
    with pytest.raises(Exception, match="key_lengths"):
        Mask(key_lengths=torch.ones(2, 2, dtype=torch.int64))
