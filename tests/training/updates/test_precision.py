"""The arithmetic of a CPU is chosen by timing."""

import pytest
import torch

from dragoman.training.options import TrainingOptions
from dragoman.training.updates import precision
from dragoman.training.updates.precision import choose_precision, use_onednn

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [
        ((1.0, 1.0, 1.0), "float32"),
        ((1.0, 0.5, 0.45), "float32-onednn"),
        ((1.0, 0.5, 0.2), "bfloat16"),
        ((1.0, 2.0, 0.9), "float32"),
    ],
)
def test_the_fastest_is_taken_if_it_pays(monkeypatch, seconds, chosen):
    times, exact = iter(seconds), torch.ones(1)  # “medium” is not exact on every processor
    monkeypatch.setattr(precision, "_time_product", lambda *_: (exact, next(times)))
    assert choose_precision(TrainingOptions(), 64, CPU) == chosen
    assert torch.get_float32_matmul_precision() == "highest"


def test_what_is_not_exact_is_not_float32(monkeypatch):
    times, errors = iter((1.0, 0.1, 1.0)), iter((0.0, 0.1, 0.0))
    monkeypatch.setattr(
        precision, "_time_product", lambda one, other: (one @ other.T + next(errors), next(times))
    )
    assert choose_precision(TrainingOptions(), 64, CPU) == "float32"


def test_what_is_asked_for_is_taken():
    assert choose_precision(TrainingOptions(precision="float32"), 64, CPU) == "float32"
    assert choose_precision(TrainingOptions(), 64, torch.device("cuda")) == "auto"
    assert choose_precision(TrainingOptions(), 64, CPU) != "auto"


def test_onednn_multiplies_as_the_usual_library_does():
    torch.manual_seed(1)
    one, other = torch.randn(300, 200), torch.randn(200, 100)
    expected = one @ other
    try:
        use_onednn(is_wanted=True)
        torch.testing.assert_close(one @ other, expected, rtol=2e-2, atol=2e-1)
    finally:
        use_onednn(is_wanted=False)
