"""How attention spreads: the numbers that settle what scores are divided by."""

import math

import pytest
import torch

from dragoman.paper.experiments.notes.sharpness import NUM_KEYS, measure_sharpness
from dragoman.paper.report.result import spread


@pytest.fixture(scope="module")
def measured():
    return [measure_sharpness(512, seed) for seed in (1, 2)]


def test_entropies_at_512(measured):
    expected = {"1": (0.18, 0.015), "1/√d_k": (3.69, 0.01), "1/d_k": (4.158, 0.0005)}
    for scale, (value, tolerance) in expected.items():
        mean, _ = spread([each[scale].entropy for each in measured])
        assert mean == pytest.approx(value, abs=tolerance)


def test_variance_is_d_k_and_scaled_is_one(measured):
    for each in measured:
        assert each["1"].variance == pytest.approx(512, rel=0.03)
        assert each["1/√d_k"].variance == pytest.approx(1, rel=0.03)


def test_even_attention_is_the_limit(measured):
    flat = measured[0]["1/d_k"]
    assert flat.entropy < math.log(NUM_KEYS)
    assert flat.largest == pytest.approx(1 / NUM_KEYS, rel=0.15)
    weights = torch.full((NUM_KEYS,), 1 / NUM_KEYS, dtype=torch.float64)
    jacobian = torch.diag(weights) - torch.outer(weights, weights)
    assert flat.gradient == pytest.approx(torch.linalg.norm(jacobian).item(), rel=0.01)


def test_saturated_softmax_lets_less_gradient_pass(measured):
    for each in measured:
        assert each["1"].gradient < 0.7 * each["1/√d_k"].gradient


def test_width_one_needs_no_scaling():
    found = measure_sharpness(1, 1)
    assert found["1"] == found["1/√d_k"] == found["1/d_k"]
