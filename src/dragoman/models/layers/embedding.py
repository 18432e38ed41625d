"""Token embedding and output layer (section 3.4 of the paper)."""

import math
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.kernels.training.dropout import Dropout
from dragoman.kernels.training.token_embedding import embed_tokens
from dragoman.shapes import Float, Int

MORE_COLUMNS = 8
"""Columns that a bias adds to the words: one, and zeros so that rows begin at round addresses."""


@runtime_checkable
class Positions(Protocol):
    """Interface of positional encodings."""

    def __call__(
        self, first: int, count: int, lengths: Int[Tensor, "batch"] | None
    ) -> Float[Tensor, "*batch count model_dim"]:
        """Return the vectors of some positions; a scheme may ask how long the sentences are."""
        ...


class Embedding(nn.Module):
    """Embed tokens, and add positions if there are any.

    Parameters
    ----------
    words : nn.Parameter
        One row a subword. The padding's row, which is also the start symbol's, is zero.
    positions : Positions | None
        Where each word stands; None: not told here.
    pad_id : int
        The padding's row.
    dropout : float
        Dropout on the sums.
    scale : float
        What the rows are multiplied by: the Transformer takes √d_model, which makes them as large
        as the sinusoids they are added to.
    """

    def __init__(
        self,
        words: nn.Parameter,
        positions: Positions | None,
        *,
        pad_id: int,
        dropout: float,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.words = words
        self.positions = positions
        self.pad_id = pad_id
        self.scale = scale
        self.dropout = Dropout(dropout)

    def forward(
        self,
        tokens: Int[Tensor, "batch length"],
        first_position: int = 0,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch length model_dim"]:
        """Embed tokens."""
        words = functional.embedding(tokens, self.words, padding_idx=self.pad_id) * self.scale
        if self.positions is not None:
            words = words + self.positions(first_position, tokens.size(1), lengths)
        return self.dropout(words)

    def packed(
        self, tokens: Int[Tensor, "tokens"], places: Int[Tensor, "tokens"], longest: int
    ) -> Float[Tensor, "tokens model_dim"]:
        """Embed the tokens of packed sentences."""
        positions = None if self.positions is None else self.positions(0, longest, None)
        dropout = self.dropout.p if self.training else 0.0
        return embed_tokens(self.words, tokens, positions, places, self.scale, dropout, self.pad_id)


class OutputLayer(nn.Module):
    """Project hidden states to a score for every subword.

    Parameters
    ----------
    words : nn.Parameter
        One row a subword; in the paper the very matrix of the embedding.
    pad_id : int
        The padding, which can never be predicted.
    has_bias : bool
        Whether each subword has a bias, as Marian's models have; the paper's have none.

    Notes
    -----
    The padding's score is −∞, so its row gets no gradient and stays zero for ever.
    """

    impossible: Tensor

    def __init__(self, words: nn.Parameter, *, pad_id: int, has_bias: bool = False) -> None:
        super().__init__()
        self.words = words
        self.pad_id = pad_id
        self.bias = nn.Parameter(torch.zeros(len(words))) if has_bias else None
        impossible = torch.zeros(len(words))
        impossible[pad_id] = -math.inf
        self.register_buffer("impossible", impossible, persistent=False)

    def forward(self, hidden: Float[Tensor, "... model_dim"]) -> Float[Tensor, "... vocabulary"]:
        """Score every subword."""
        added = self.impossible.to(self.words.dtype)
        if self.bias is not None:
            added = added + self.bias
        return functional.linear(hidden, self.words, added)

    def factors(
        self, hidden: Float[Tensor, "positions model_dim"]
    ) -> tuple[Float[Tensor, "positions width"], Float[Tensor, "vocabulary width"]]:
        """Return the scores as a matrix product, for a loss that never stores them all.

        Returns
        -------
        tuple[Float[Tensor, "positions width"], Float[Tensor, "vocabulary width"]]
            Two matrices; the scores are the first times the second transposed, but for the
            padding's.

        Notes
        -----
        Without a bias they are the states and the words themselves. A bias is one more column of
        the words, beside a column of ones; zeros fill up to a width that is quickly multiplied.
        """
        if self.bias is None:
            return hidden, self.words
        ones = functional.pad(hidden.new_ones(len(hidden), 1), (0, MORE_COLUMNS - 1))
        bias = functional.pad(self.bias[:, None], (0, MORE_COLUMNS - 1))
        return torch.cat([hidden, ones], 1), torch.cat([self.words, bias], 1)


class WordMatrices(NamedTuple):
    """The three embedding matrices, some of which may be one."""

    source: nn.Parameter
    target: nn.Parameter
    output: nn.Parameter


def make_word_matrices(
    sizes: tuple[int, int],
    tied: Literal["all", "target", "none"],
    *,
    embedding_dim: int,
    output_dim: int | None = None,
) -> WordMatrices:
    """Make the embedding matrices, empty."""
    target = nn.Parameter(torch.empty(sizes[1], embedding_dim))
    source, output = target, target
    if tied != "all":
        source = nn.Parameter(torch.empty(sizes[0], embedding_dim))
    if tied == "none":
        output = nn.Parameter(torch.empty(sizes[1], output_dim or embedding_dim))
    return WordMatrices(source, target, output)


@torch.no_grad()
def initialise_words(model: nn.Module, std: float | None = None) -> None:
    """Initialise the embeddings: normal, the padding's row zero."""
    for module in model.modules():
        if isinstance(module, Embedding | OutputLayer):
            nn.init.normal_(module.words, std=std or 1 / math.sqrt(module.words.size(1)))
            module.words[module.pad_id] = 0
