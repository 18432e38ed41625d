"""Four criteria by which one of the notes judges positional encodings.

1. It gives every time step of a sentence a vector of its own.
2. The distance between two time steps is the same in sentences of different lengths.
3. It goes on to longer sentences without any effort, and its values are bounded.
4. It is deterministic.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.errors import DataError
from dragoman.models.layers.embedding import Positions
from dragoman.shapes import Float

# A difference counts from this share of the largest entry on; rounding stays far below it.
NEGLIGIBLE = 1e-5
# Values in longer sentences may exceed those of training by this share: extremes of a bounded
# scheme that the shorter sentences just missed.
MARGIN = 0.1


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which criteria a scheme meets, and what was measured.

    Parameters
    ----------
    is_unique : bool
        Whether every time step has a vector of its own.
    is_consistent : bool
        Whether distances are the same in sentences of different lengths.
    is_bounded : bool
        Whether the scheme goes on beyond the lengths of training, within the values seen there.
    is_deterministic : bool
        Whether it says the same when asked again.
    smallest_distance : float
        Between the vectors of any two time steps of one sentence.
    largest_inconsistency : float
        Between the distances of the same two time steps in sentences of different lengths.
    largest_value : float
        The largest absolute entry at the lengths of training.
    largest_value_beyond : float | None
        The same beyond them; None: the scheme ended.
    largest_change : float
        Between what it said at first and when asked again.
    refusal : str | None
        What it said where it ended; None: it did not end.
    """

    is_unique: bool
    is_consistent: bool
    is_bounded: bool
    is_deterministic: bool
    smallest_distance: float
    largest_inconsistency: float
    largest_value: float
    largest_value_beyond: float | None
    largest_change: float
    refusal: str | None


@torch.no_grad()
def judge(scheme: Positions, *, trained_length: int = 128, longest: int = 10_000) -> Verdict:
    """Test a positional encoding against the four criteria.

    Parameters
    ----------
    scheme : Positions
        Anything that turns the first place, the number of places and the sentences' lengths into
        vectors, on the host.
    trained_length : int
        The longest sentence of an imagined training; at least 8.
    longest : int
        The longest sentence that is tried after it.

    Notes
    -----
    A table that ends beyond `longest` is not found out, nor is a period longer than
    `trained_length`. That vectors stay bounded is necessary for a model to work on longer
    sentences, not sufficient: only a trained model can show that.
    """
    lengths = [trained_length // 8, trained_length // 4, trained_length // 2, trained_length]
    sentences = [_vectors(scheme, length) for length in lengths]
    again = [_vectors(scheme, length) for length in lengths]
    largest = max(_largest(each) for each in sentences)
    threshold = NEGLIGIBLE * largest

    distances = [_distances(each) for each in sentences]
    smallest = min(_smallest_between(each) for each in distances)
    shortest = lengths[0]
    inconsistency = max(
        _largest(each[:shortest, :shortest] - distances[0]) for each in distances[1:]
    )
    change = max(_largest(one - two) for one, two in zip(sentences, again, strict=True))
    beyond, refusal = None, None
    try:
        beyond = _largest(_vectors(scheme, longest))
    except DataError as error:
        refusal = str(error)
    return Verdict(
        is_unique=smallest > threshold,
        is_consistent=inconsistency <= threshold,
        is_bounded=beyond is not None and beyond <= (1 + MARGIN) * largest,
        is_deterministic=change == 0,
        smallest_distance=smallest,
        largest_inconsistency=inconsistency,
        largest_value=largest,
        largest_value_beyond=beyond,
        largest_change=change,
        refusal=refusal,
    )


def _vectors(scheme: Positions, length: int) -> Float[Tensor, "{length} model_dim"]:
    """Return the vectors of all positions of a sentence."""
    vectors = scheme(0, length, torch.tensor([length]))
    return vectors.reshape(length, -1).double()


def _distances(vectors: Tensor) -> Float[Tensor, "length length"]:
    """Compute the distance between every two vectors, without the error of a fast product."""
    return torch.cdist(vectors, vectors, compute_mode="donot_use_mm_for_euclid_dist")


def _smallest_between(distances: Tensor) -> float:
    """Return the smallest distance between two different positions."""
    length = len(distances)
    is_pair = torch.ones(length, length, dtype=torch.bool).triu(1)
    return float(distances[is_pair].min())


def _largest(values: Tensor) -> float:
    """Return the largest absolute value."""
    return float(values.abs().max())
