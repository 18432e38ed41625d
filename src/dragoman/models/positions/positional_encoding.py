"""Positional encodings that are added to embeddings: the paper's sinusoids and alternatives.

Each is called with the first position, the number of positions, and the sentences' lengths, which
only `NormalisedPositions` uses.
"""

import torch
from torch import Tensor, nn

from dragoman.errors import DataError
from dragoman.models.positions.sinusoids import sinusoids, wavelengths
from dragoman.shapes import Float, Int


def sinusoidal_positions(
    first: int,
    count: int,
    model_dim: int,
    device: torch.device | None = None,
    dtype: torch.dtype = torch.float32,
    *,
    is_inclusive: bool = False,
) -> Float[Tensor, "count model_dim"]:
    r"""Compute the paper's sinusoids.

    Parameters
    ----------
    first : int
        The first position, counted from 0.
    count : int
        How many positions.
    model_dim : int
        Their width; even.
    device : torch.device | None
        Where the tensor shall live; None: where PyTorch makes new tensors.
    dtype : torch.dtype
        The precision of what is returned.
    is_inclusive : bool
        Whether the slowest sinusoid is 10,000 times as slow as the fastest, as in Tensor2Tensor
        and Marian, and not a little less, as in the paper.

    Notes
    -----
    The equation is `dragoman.models.positions.sinusoids.sinusoids`, computed on the host, as not
    every device has doubles.
    """
    table = torch.from_numpy(sinusoids(first, count, model_dim, is_inclusive=is_inclusive))
    return table.to(device=device or torch.get_default_device(), dtype=dtype)


def offset_map(offset: int, model_dim: int) -> Float[Tensor, "model_dim model_dim"]:
    r"""Compute the linear map that shifts every sinusoid by some positions.

    Notes
    -----
    :math:`PE_{p+k}=M_kPE_p` for every p, where :math:`M_k` has on its diagonal the rotations
    :math:`\begin{pmatrix}\cos\omega_ik&\sin\omega_ik\\-\sin\omega_ik&\cos\omega_ik\end{pmatrix}`
    with :math:`\omega_i=10000^{-2i/d}`, each for one pair of sine and cosine. So attention can
    learn to look a fixed number of places away by a linear map (section 3.5 of the paper).
    """
    angles = torch.from_numpy(offset / wavelengths(model_dim))
    sine, cosine = angles.sin(), angles.cos()
    even = torch.arange(0, model_dim, 2)
    moved = torch.zeros(model_dim, model_dim, dtype=torch.float64)
    moved[even, even] = cosine
    moved[even, even + 1] = sine
    moved[even + 1, even] = -sine
    moved[even + 1, even + 1] = cosine
    return moved


class SinusoidalPositions(nn.Module):
    """The paper's sinusoids, for sequences of any length.

    Parameters
    ----------
    model_dim : int
        Width of the vectors.
    is_inclusive : bool
        Whether to take Marian's wavelengths in place of the paper's.
    """

    table: Tensor

    def __init__(self, model_dim: int, *, is_inclusive: bool = False) -> None:
        super().__init__()
        self.model_dim = model_dim
        self.is_inclusive = is_inclusive
        table = sinusoidal_positions(0, 512, model_dim, is_inclusive=is_inclusive)
        self.register_buffer("table", table, persistent=False)

    def forward(
        self, first: int, count: int, lengths: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "count model_dim"]:
        """Return the vectors of some positions."""
        del lengths
        table = self.table  # another thread may replace it meanwhile
        if first + count > len(table):
            rows = 2 * (first + count)
            # A table made in inference mode could not be used in training.
            with torch.inference_mode(mode=False):
                grown = sinusoidal_positions(
                    0, rows, self.model_dim, table.device, is_inclusive=self.is_inclusive
                )
                self.table = table = grown.to(table.dtype)
        return table[first : first + count]


class LearnedPositions(nn.Module):
    """A learned vector for each position, up to a largest one.

    Parameters
    ----------
    max_positions : int
        Rows of the table.
    model_dim : int
        Width of the vectors.
    """

    def __init__(self, max_positions: int, model_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, model_dim))

    def forward(
        self, first: int, count: int, lengths: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "count model_dim"]:
        """Return the vectors of some positions."""
        del lengths
        if first + count > len(self.weight):
            raise DataError(
                f"a sequence of {first + count} subwords is longer than the {len(self.weight)} "
                "learned positions of the model; lower max_length or raise max_positions"
            )
        return self.weight[first : first + count]


class NormalisedPositions(nn.Module):
    r"""The relative position in the sentence: 0 at its first token, 1 at its last.

    Parameters
    ----------
    model_dim : int
        Width of the vectors; every entry holds the same number.

    Notes
    -----
    :math:`i/(n-1)` for word i = 0 … n − 1 of a sentence of n words: the first idea that one of the
    notes rejects, since neighbours are nearer to each other in a longer sentence. The length is
    that of the source sentence for the target's words as well: how long a translation becomes is
    not known while it is written. So a target word's number exceeds 1 where the translation is
    longer than its source.
    """

    ones: Tensor

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        # Only its type and device are used.
        self.register_buffer("ones", torch.ones(model_dim), persistent=False)

    def forward(
        self, first: int, count: int, lengths: Int[Tensor, "batch"] | None
    ) -> Float[Tensor, "batch count model_dim"]:
        """Return the vectors of some positions in sentences of some lengths.

        Parameters
        ----------
        first : int
            The first position.
        count : int
            How many.
        lengths : Int[Tensor, "batch"] | None
            Words of each source sentence, one for each row of the batch. They must be given.
        """
        if lengths is None:
            raise ValueError("normalised positions must be told how long the sentences are")
        places = torch.arange(first, first + count, device=self.ones.device)
        shares = places / (lengths[:, None] - 1).clamp(min=1)
        return shares[:, :, None].to(self.ones.dtype) * self.ones


class IndexPositions(nn.Module):
    """The plain index of the token: 1, 2, 3 and so on.

    Parameters
    ----------
    model_dim : int
        Width of the vectors; every entry holds the same number.

    Notes
    -----
    The second idea that one of the notes rejects: the numbers grow without bound, and drown the
    words to which they are added.
    """

    ones: Tensor

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.register_buffer("ones", torch.ones(model_dim), persistent=False)

    def forward(
        self, first: int, count: int, lengths: Int[Tensor, "batch"] | None = None
    ) -> Float[Tensor, "count model_dim"]:
        """Return the vectors of some positions."""
        del lengths
        numbers = torch.arange(first + 1, first + count + 1, device=self.ones.device)
        return numbers[:, None].to(self.ones.dtype) * self.ones
