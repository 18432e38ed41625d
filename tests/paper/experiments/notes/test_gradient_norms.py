"""What is left of a gradient after a distance, against closed forms."""

import pytest
import torch

from dragoman.models.recurrent.layer import run_in_loop
from dragoman.paper.experiments.notes.gradient_norms import (
    make_scaled_cell,
    measure_gradient,
    measure_state_gradients,
)
from dragoman.paper.tasks.name_recall import KINDS, NAMES, WIDTH, make_reader, sample_sentences


@pytest.mark.parametrize("radius", [0.5, 1.0, 1.5])
def test_silent_cells_give_powers_of_the_radius(radius):
    cell = make_scaled_cell(radius, seed=1)
    norms = measure_state_gradients(cell, (1, 3, 10), reads=False, seed=1)
    assert norms == pytest.approx([radius, radius**3, radius**10], rel=1e-9)


def test_reading_never_leaves_more_than_the_radius_allows():
    cell = make_scaled_cell(1.5, seed=1)
    norms = measure_state_gradients(cell, (1, 5, 10), reads=True, seed=2)
    assert all(norm <= 1.5**k * (1 + 1e-12) for norm, k in zip(norms, (1, 5, 10), strict=True))


def test_state_gradients_equal_those_of_the_whole_chain():
    cell = make_scaled_cell(1.2, seed=3)
    torch.manual_seed(5)
    words = torch.randn(57, WIDTH, dtype=torch.float64) * 0.4
    with torch.no_grad():
        _, (settled,) = run_in_loop(
            cell, words[None, :50], cell.start((1,), words), lengths=None
        )  # fmt: skip

    def read(state: torch.Tensor) -> torch.Tensor:
        return run_in_loop(cell, words[None, 50:], (state[None],), lengths=None)[1][0][0]

    whole = torch.autograd.functional.jacobian(read, settled[0])
    expected = torch.linalg.matrix_norm(whole, ord=2).item()
    (norm,) = measure_state_gradients(cell, (7,), reads=True, seed=5)
    assert norm == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_of_a_reader_equals_its_jacobian(kind):
    reader = make_reader(kind, 1)
    norm = measure_gradient(reader, 6, count=1, seed=4)
    # The reader itself stays as it was.
    assert reader.words.weight.dtype == torch.float32
    reader = reader.double()
    vectors = reader.words(sample_sentences(1, 6, torch.Generator().manual_seed(4))).detach()

    def say(name: torch.Tensor) -> torch.Tensor:
        return reader(torch.cat([name[None, None], vectors[:, 1:]], dim=1))[0]

    jacobian = torch.autograd.functional.jacobian(say, vectors[0, 0])
    assert jacobian.shape == (len(NAMES), WIDTH)
    assert norm == pytest.approx(jacobian.norm().item(), rel=1e-9)
