"""The matching task: solvable by looking, and only by looking."""

import pytest
import torch

from dragoman.paper.tasks.matching import (
    NUM_PAIRS,
    SCORES,
    Matcher,
    learn_to_match,
    sample_questions,
)


@pytest.fixture
def questions():
    return sample_questions(50, torch.Generator().manual_seed(1))


def test_questions_have_one_answer(questions):
    for keys, values, query, answer in zip(*questions, strict=True):
        assert len(set(keys.tolist())) == NUM_PAIRS
        assert values[keys == query].tolist() == [answer]


@pytest.mark.parametrize("score", SCORES)
def test_weights_sum_to_one(score, questions):
    found, weights = Matcher(score, 16).attend(questions)
    torch.testing.assert_close(weights.sum(-1), torch.ones(50))
    assert found.shape == (50, 64)


def test_scaling_is_the_only_difference_between_the_dot_products(questions):
    torch.manual_seed(1)
    dot, scaled = Matcher("dot", 64), Matcher("scaled dot", 64)
    scaled.load_state_dict(dot.state_dict())
    scores = dot.attend(questions)[1].log() / 8
    torch.testing.assert_close(scaled.attend(questions)[1], scores.softmax(-1))


def test_queries_and_keys_begin_with_variance_1():
    torch.manual_seed(1)
    model = Matcher("dot", 256)
    symbols = torch.arange(64)
    assert model.query(model.symbols(symbols)).var().item() == pytest.approx(1, rel=0.2)


def test_a_scaled_model_learns():
    assert learn_to_match("scaled dot", 32, seed=1, num_steps=1) < 0.2
    assert learn_to_match("scaled dot", 32, seed=1, num_steps=250) > 0.9
