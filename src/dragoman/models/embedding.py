"""Words to vectors and back (section 3.4 of the paper)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from dragoman.models.positions import LearnedPositions, SinusoidalPositions


class Embedding(nn.Module):
    """A sequence's words and their places as vectors.

    Parameters
    ----------
    words : nn.Parameter
        One row a subword. The padding's row, which is also the start symbol's, is zero.
    positions : SinusoidalPositions | LearnedPositions
        Where each word stands.
    pad_id : int
        The padding's row.
    dropout : float
        Dropout on the sums.

    Notes
    -----
    The rows are multiplied by √d_model, which makes them as large as the sinusoids they are
    added to.
    """

    def __init__(
        self,
        words: nn.Parameter,
        positions: SinusoidalPositions | LearnedPositions,
        *,
        pad_id: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.words = words
        self.positions = positions
        self.pad_id = pad_id
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, tokens: Int[Tensor, "batch length"], first_position: int = 0
    ) -> Float[Tensor, "batch length model_dim"]:
        """Embed tokens.

        Parameters
        ----------
        tokens : Int[Tensor, "batch length"]
            Their ids.
        first_position : int
            Where the first of them stands in its sentence.

        Returns
        -------
        Float[Tensor, "batch length model_dim"]
            The sums of word and position.
        """
        scale = math.sqrt(self.words.size(1))
        words = functional.embedding(tokens, self.words, padding_idx=self.pad_id) * scale
        return self.dropout(words + self.positions(first_position, tokens.size(1)))


class OutputLayer(nn.Module):
    """From hidden states to a score for every subword.

    Parameters
    ----------
    words : nn.Parameter
        One row a subword; in the paper the very matrix of the embedding.
    pad_id : int
        The padding, which can never be predicted.

    Notes
    -----
    The padding's score is −∞, so its row gets no gradient and stays zero for ever.
    """

    impossible: Tensor

    def __init__(self, words: nn.Parameter, *, pad_id: int) -> None:
        super().__init__()
        self.words = words
        self.pad_id = pad_id
        impossible = torch.zeros(len(words))
        impossible[pad_id] = -math.inf
        self.register_buffer("impossible", impossible, persistent=False)

    @property
    def mean_word(self) -> Float[Tensor, "model_dim"]:
        """The mean vector of the subwords that can be predicted: all but the padding."""
        return (self.words.sum(0) - self.words[self.pad_id]) / (len(self.words) - 1)

    def forward(self, hidden: Float[Tensor, "... model_dim"]) -> Float[Tensor, "... vocabulary"]:
        """Score every subword.

        Parameters
        ----------
        hidden : Float[Tensor, "... model_dim"]
            What the decoder says at each position.

        Returns
        -------
        Float[Tensor, "... vocabulary"]
            Scores whose softmax is the probability of each subword (logits).
        """
        return functional.linear(hidden, self.words, self.impossible.to(self.words.dtype))
