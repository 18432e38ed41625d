"""Extensions of hypotheses: who need not move stays."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.search.candidates import Candidates

BEAMS = 4


@given(st.lists(st.lists(st.integers(0, BEAMS - 1), min_size=BEAMS, max_size=BEAMS), min_size=1))
def test_settled_are_the_same_in_another_order_and_as_few_as_can_be_move(rows):
    parents = torch.tensor(rows)
    numbers = torch.arange(parents.numel()).view_as(parents)
    found = Candidates(-numbers.float(), numbers * 10, parents).settled(BEAMS)
    for row, logs, words, settled in zip(rows, *(each.tolist() for each in found), strict=True):
        assert sorted(settled) == sorted(row)
        assert sum(place == parent for place, parent in enumerate(settled)) == len(set(row))
        assert [word / 10 for word in words] == [-log for log in logs]
    torch.testing.assert_close(found.words.sort(1).values, numbers * 10)
    same = parents.flatten()[found.words.flatten() // 10].view_as(parents)
    torch.testing.assert_close(found.parents, same)


def test_nothing_settles_where_there_were_fewer():
    given = Candidates(torch.zeros(1, 2), torch.tensor([[5, 6]]), torch.tensor([[0, 0]]))
    assert given.settled(1) is given
    assert given.settled(3) is given
