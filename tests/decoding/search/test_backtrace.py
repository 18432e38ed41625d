"""Reading many translations together gives what reading each by itself gives."""

import math

import pytest
import torch

from dragoman.decoding.search.backtrace import trace_back_many
from dragoman.decoding.search.hypotheses import Finished, History, trace_back


@pytest.mark.parametrize("is_scored", [True, False])
@pytest.mark.parametrize("num_best", [1, 3])
@pytest.mark.parametrize("longest", [0, 1, 9])
def test_both_ways_agree(num_best, longest, is_scored):
    generator = torch.Generator().manual_seed(longest)
    sentences, steps, beams = 20, 12, 4

    def draw(most, *shape):
        return torch.randint(0, most, shape, generator=generator, dtype=torch.int32)

    history = History(
        words=draw(50, sentences, steps, beams),
        parents=draw(beams, sentences, steps, beams),
        logs=torch.randn(sentences, steps, beams, generator=generator),
    )
    scores = torch.randn(sentences, num_best, generator=generator)
    scores[5], scores[7, -1] = -torch.inf, -torch.inf
    finished = Finished(
        scores=scores,
        logs=scores * 3,
        lengths=draw(longest + 1, sentences, num_best),
        beams=draw(beams, sentences, num_best),
    )
    found = trace_back_many(finished, history, is_scored)
    expected = trace_back(finished, history, longest, is_scored)
    assert found[5] == expected[5] == []
    if is_scored:
        assert found == expected
        return
    for ours, theirs in zip(found, expected, strict=True):
        assert [each.tokens for each in ours] == [each.tokens for each in theirs]
        assert all(math.isnan(each.score) and not each.token_log_probabilities for each in ours)
