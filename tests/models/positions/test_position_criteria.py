"""The verdicts that one of the notes gives, and schemes made to fail one criterion each."""

import math

import pytest
import torch

from dragoman.errors import DataError
from dragoman.models.positions.position_criteria import judge
from dragoman.models.positions.positional_encoding import (
    IndexPositions,
    LearnedPositions,
    NormalisedPositions,
    SinusoidalPositions,
)


def answers(verdict):
    return {
        name
        for name in ("is_unique", "is_consistent", "is_bounded", "is_deterministic")
        if getattr(verdict, name)
    }


ALL = {"is_unique", "is_consistent", "is_bounded", "is_deterministic"}


@pytest.mark.parametrize("model_dim", [4, 64, 512])
def test_sinusoids_meet_all_four(model_dim):
    verdict = judge(SinusoidalPositions(model_dim))
    assert answers(verdict) == ALL
    assert verdict.largest_value == pytest.approx(1, abs=1e-3)
    assert verdict.largest_value_beyond == pytest.approx(1, abs=1e-3)
    assert verdict.refusal is None


def test_learned_positions_do_not_go_on():
    scheme = LearnedPositions(1024, 16)
    torch.nn.init.normal_(scheme.weight)
    verdict = judge(scheme)
    assert answers(verdict) == ALL - {"is_bounded"}
    assert verdict.largest_value_beyond is None
    assert verdict.refusal.startswith("a sequence of 10000 subwords is longer than the 1024")


def test_a_table_long_enough_is_found_wanting_only_beyond_it():
    scheme = LearnedPositions(300, 16)
    torch.nn.init.uniform_(scheme.weight, -1, 1)
    assert answers(judge(scheme, longest=300)) == ALL
    assert answers(judge(scheme, longest=301)) == ALL - {"is_bounded"}


def test_a_table_shorter_than_the_training_is_refused():
    with pytest.raises(DataError, match="longer than the 6 learned positions"):
        judge(LearnedPositions(6, 4))


def test_normalised_positions_have_no_consistent_distance():
    verdict = judge(NormalisedPositions(9))
    assert answers(verdict) == ALL - {"is_consistent"}
    # From word 0 to word 15 it is the whole of 16 words, and 15/127 of 128.
    assert verdict.largest_inconsistency == pytest.approx(3 * (1 - 15 / 127), rel=1e-6)
    assert verdict.smallest_distance == pytest.approx(3 / 127, rel=1e-5)
    assert verdict.largest_value_beyond == 1


def test_plain_numbers_are_not_bounded():
    verdict = judge(IndexPositions(4), longest=5_000)
    assert answers(verdict) == ALL - {"is_bounded"}
    assert (verdict.largest_value, verdict.largest_value_beyond) == (128, 5_000)
    assert verdict.smallest_distance == 2


def test_no_positions_are_not_unique():
    def scheme(first, count, lengths):
        return torch.zeros(count, 4)

    verdict = judge(scheme)
    assert answers(verdict) == ALL - {"is_unique"}
    assert verdict.smallest_distance == 0


def test_a_period_is_not_unique():
    def scheme(first, count, lengths):
        angles = torch.arange(first, first + count) * (2 * math.pi / 8)
        return torch.stack([angles.sin(), angles.cos()], dim=-1)

    assert answers(judge(scheme)) == ALL - {"is_unique"}


def test_chance_is_not_deterministic():
    torch.manual_seed(0)
    sinusoids = SinusoidalPositions(8)

    def scheme(first, count, lengths):
        return sinusoids(first, count) + 1e-3 * torch.rand(())

    verdict = judge(scheme)
    assert answers(verdict) == ALL - {"is_deterministic"}
    assert 0 < verdict.largest_change < 1e-3


def test_no_gradient_is_asked_for():
    scheme = LearnedPositions(200, 4)
    torch.nn.init.normal_(scheme.weight)
    judge(scheme, longest=200)
    assert scheme.weight.grad is None
