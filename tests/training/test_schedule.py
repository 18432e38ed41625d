"""The learning rate against the paper's own formula."""

import pytest

from dragoman.training.schedule import learning_rate, paper_peak


@pytest.mark.parametrize("step", [1, 10, 3999, 4000, 4001, 100_000])
@pytest.mark.parametrize("model_dim", [512, 1024])
def test_is_equation_3_of_the_paper(step, model_dim):
    paper = model_dim**-0.5 * min(step**-0.5, step * 4000**-1.5)
    found = learning_rate(step, peak=paper_peak(model_dim, 4000), warmup_steps=4000)
    assert found == pytest.approx(paper, rel=1e-12)


def test_published_peaks():
    assert paper_peak(512, 4000) == pytest.approx(6.988e-4, rel=1e-3)
    assert paper_peak(1024, 4000) == pytest.approx(4.941e-4, rel=1e-3)


def test_peak_is_reached_at_the_end_of_warm_up():
    rates = [learning_rate(step, peak=0.5, warmup_steps=10) for step in range(1, 100)]
    assert max(rates) == rates[9] == 0.5
