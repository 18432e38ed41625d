"""Gradient norms by distance: in the readers of name recall, and in the state of an RNN."""

import copy
import math
import statistics
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dragoman.models.recurrent.cells import RNNCell
from dragoman.paper.tasks.name_recall import NAMES, RECIPES, WIDTH, Reader, sample_sentences

_SETTLING = 50


def measure_gradient(reader: Reader, distance: int, *, count: int, seed: int) -> float:
    r"""Measure the gradient of a reader's output at the blank with respect to the name.

    Returns
    -------
    float
        The Frobenius norm of :math:`\partial o_T/\partial x_1`, where o are the scores of all names
        at the blank and x is the name's vector: the geometric mean over the sentences.

    Notes
    -----
    In double precision, so that nothing vanishes by rounding. Each sentence is read for all
    names at once, so that one way back gives all rows of the matrix.
    """
    reader = copy.deepcopy(reader).double()
    sentences = sample_sentences(count, distance, torch.Generator().manual_seed(seed))
    logarithms = []
    for sentence in sentences:
        vectors = reader.words(sentence).detach().expand(len(NAMES), -1, -1).requires_grad_()
        (gradient,) = torch.autograd.grad(reader(vectors).diagonal().sum(), vectors)
        logarithms.append(torch.linalg.matrix_norm(gradient[:, 0]).log().item())
    return math.exp(statistics.fmean(logarithms))


def make_scaled_cell(radius: float, seed: int) -> RNNCell:
    """Make an RNN cell with a scaled orthogonal recurrent matrix.

    Parameters
    ----------
    radius : float
        By how much: the matrix is so many times an orthogonal one, so this is its spectral radius
        and its norm.
    seed : int
        Of the weights.
    """
    torch.manual_seed(seed)
    cell = RNNCell(WIDTH, WIDTH).double()
    with torch.no_grad():
        nn.init.orthogonal_(cell.weight_hidden).mul_(radius)
        cell.bias.zero_()
    return cell


@torch.no_grad()
def measure_state_gradients(
    cell: RNNCell, distances: Sequence[int], *, reads: bool, seed: int
) -> list[float]:
    r"""Measure the gradient of a state with respect to an earlier one.

    Parameters
    ----------
    cell : RNNCell
        The cell, in double precision.
    distances : Sequence[int]
        Words between the two, in rising order.
    reads : bool
        Whether the cell reads random words, and has read some before; otherwise it is silent: its
        input and state are zero, where tanh is as steep as it can be.
    seed : int
        Of the words.

    Returns
    -------
    list[float]
        The largest singular value of :math:`\partial h_T/\partial h_t` for each distance T − t.

    Notes
    -----
    By the chain rule the matrix is a product of as many factors
    :math:`\mathrm{diag}(1-h_s^2)\,U`, each found by automatic differentiation. With a silent cell
    it is the power of U itself.
    """
    torch.manual_seed(seed)
    num_words = _SETTLING + distances[-1]
    words = torch.randn(num_words, WIDTH, dtype=torch.float64) * RECIPES["RNN"].deviation
    projected = cell.project(words if reads else torch.zeros_like(words))

    def step(state: Tensor, place: int) -> Tensor:
        return cell(projected[place], (state,))[0]

    (state,) = cell.start((), words)
    for place in range(_SETTLING):
        state = step(state, place)
    product = torch.eye(WIDTH, dtype=torch.float64)
    norms = {}
    for place in range(_SETTLING, num_words):
        product = torch.func.jacrev(step)(state, place) @ product
        state = step(state, place)
        norms[place - _SETTLING + 1] = torch.linalg.matrix_norm(product, ord=2).item()
    return [norms[distance] for distance in distances]
