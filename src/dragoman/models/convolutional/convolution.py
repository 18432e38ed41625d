"""Convolutions over tokens: all positions at once, or one more token after those before."""

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.shapes import Bool, Float


class WeightNormLinear(nn.Module):
    r"""Linear layer with weight normalisation (Salimans & Kingma, 2016).

    Parameters
    ----------
    in_features : int
        Width of the inputs.
    out_features : int
        Width of the outputs.

    Notes
    -----
    Row i of the matrix is :math:`w_i = g_i\,v_i/\lVert v_i\rVert`, with the lengths g and the
    directions v as parameters. It is computed again at each call, which reads the matrix twice:
    little in training, noticeable while one word at a time is read.
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.direction = nn.Parameter(torch.empty(out_features, in_features))
        self.magnitude = nn.Parameter(torch.empty(out_features))
        self.bias = nn.Parameter(torch.empty(out_features))

    @torch.no_grad()
    def initialise(self, std: float) -> None:
        """Draw the matrix from a normal distribution; the bias is zero."""
        nn.init.normal_(self.direction, std=std)
        self.magnitude.copy_(torch.linalg.vector_norm(self.direction, dim=1))
        nn.init.zeros_(self.bias)

    @property
    def weight(self) -> Float[Tensor, "out_features in_features"]:
        """Compute the matrix."""
        lengths = torch.linalg.vector_norm(self.direction, dim=1)
        return self.direction * (self.magnitude / lengths).unsqueeze(1)

    def forward(
        self, states: Float[Tensor, "... in_features"]
    ) -> Float[Tensor, "... out_features"]:
        """Apply the map."""
        return functional.linear(states, self.weight, self.bias)


class Convolution(nn.Module):
    r"""Convolve over positions, centred or causal.

    Parameters
    ----------
    linear : nn.Linear | WeightNormLinear
        From k vectors side by side, the earliest first, to one.
    kernel_size : int
        How many places are combined (k).
    dilation : int
        How far apart they stand (r).
    causal : bool
        Whether the last of them is the place itself, so that none is later; otherwise the place
        is the middle one, and k must be odd.

    Notes
    -----
    :math:`y_i = b + \sum_{j<k} W_j x_{i-(k-1-j)r}` if causal, else
    :math:`y_i = b + \sum_{j<k} W_j x_{i+(j-(k-1)/2)r}`; what lies outside the sentence is zero.
    The k vectors are put side by side and multiplied at once: on a processor this takes two
    thirds of the time of PyTorch's own convolution, which wants the channels first, and one word
    is read by the very product that reads all. A kernel never transforms the sentence as a whole
    (as fast convolutions may), so what is not combined leaves no trace, not even a rounding error.
    """

    def __init__(
        self,
        linear: nn.Linear | WeightNormLinear,
        *,
        kernel_size: int,
        dilation: int = 1,
        causal: bool,
    ) -> None:
        super().__init__()
        assert linear.in_features % kernel_size == 0
        assert causal or kernel_size % 2 == 1
        self.linear = linear
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.causal = causal

    @property
    def memory_size(self) -> int:
        """How many places before the newest a causal convolution must remember: (k−1)·r."""
        return (self.kernel_size - 1) * self.dilation

    def forward(
        self,
        states: Float[Tensor, "batch length input_dim"],
        is_place: Bool[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch length output_dim"]:
        """Apply the convolution to whole sentences.

        Parameters
        ----------
        states : Float[Tensor, "batch length input_dim"]
            The sentences.
        is_place : Bool[Tensor, "batch length"] | None
            False for padding, which then counts as zero. None: there is none, or the convolution
            is causal and the padding stands at the end, where no word sees it.
        """
        if is_place is not None:
            states = states.masked_fill(~is_place.unsqueeze(-1), 0.0)
        if self.kernel_size == 1:
            return self.linear(states)
        before = self.memory_size if self.causal else self.memory_size // 2
        padded = functional.pad(states, (0, 0, before, self.memory_size - before))
        starts = range(0, self.memory_size + 1, self.dilation)
        windows = torch.cat([padded[:, start : start + states.size(1)] for start in starts], dim=-1)
        return self.linear(windows)

    def start(
        self, num_sentences: int, like: Float[Tensor, "..."]
    ) -> Float[Tensor, "sentences 1 memory input_dim"]:
        """Make the empty history of one hypothesis a sentence."""
        input_dim = self.linear.in_features // self.kernel_size
        return like.new_zeros(num_sentences, 1, self.memory_size, input_dim)

    def step(
        self,
        states: Float[Tensor, "*rows input_dim"],
        past: Float[Tensor, "*rows memory input_dim"],
    ) -> tuple[Float[Tensor, "*rows output_dim"], Float[Tensor, "*rows memory input_dim"]]:
        """Apply a causal convolution to the newest token of each hypothesis.

        Returns
        -------
        tuple[Float[Tensor, "*rows output_dim"], Float[Tensor, "*rows memory input_dim"]]
            What the convolution says of the newest words, and the memory for the next step.

        Notes
        -----
        The cost does not depend on how many words were read.
        """
        assert self.causal
        seen = torch.cat([past, states.unsqueeze(-2)], dim=-2)
        return self.linear(seen[..., :: self.dilation, :].flatten(-2)), seen[..., 1:, :]


def receptive_field(kernel_size: int, dilations: Iterable[int]) -> int:
    r"""Count the positions that one position depends on through a stack of convolutions.

    Notes
    -----
    :math:`1+\sum_l (k-1)\,r_l`. Contiguous layers add the same each time, so that n places need
    about n/k layers; dilations that double need only about the logarithm of n (the notes give the
    second for both). ByteNet's 30 blocks with k = 3 and dilations 1 to 16 see 373 places; its
    paper says 315.
    """
    return 1 + sum((kernel_size - 1) * dilation for dilation in dilations)
