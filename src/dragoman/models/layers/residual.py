"""Residual connection around a sub-layer: the “Add & Norm” of figure 1."""

from collections.abc import Callable
from typing import Literal, NamedTuple

from torch import Tensor, nn

from dragoman.kernels.training.add_and_norm import add_and_norm, add_then_norm
from dragoman.kernels.training.dropout import Dropout
from dragoman.models.layers.normalisation import LayerNorm, RMSNorm
from dragoman.shapes import Float


class Forked(NamedTuple):
    """Post-norm residual stream: one tensor for the next sub-layer, one for its residual.

    Both are the same numbers; that they are two tensors lets the gradients of the two be added
    where they are read.
    """

    into: Float[Tensor, "tokens model_dim"]
    around: Float[Tensor, "tokens model_dim"]


class Pending(NamedTuple):
    """Pre-norm residual stream, and an update that has not been added yet.

    The addition waits for the next norm, which is computed in the same pass.
    """

    stream: Float[Tensor, "tokens model_dim"]
    update: Float[Tensor, "tokens model_dim"] | None
    dropout: float


Residual = Forked | Pending
"""The residual stream of packed sentences, between two sub-layers."""


def begin_residual(
    states: Float[Tensor, "tokens model_dim"], final_norm: nn.Module | None
) -> Residual:
    """Start the residual stream of a stack of layers.

    Parameters
    ----------
    states : Float[Tensor, "tokens model_dim"]
        What goes in.
    final_norm : nn.Module | None
        The norm behind the last layer, which there is if norms stand before the sub-layers.
    """
    return Forked(states, states) if final_norm is None else Pending(states, None, 0.0)


def end_residual(
    states: Residual, final_norm: nn.Module | None
) -> Float[Tensor, "tokens model_dim"]:
    """End the residual stream: add what is pending and apply the final norm."""
    if isinstance(states, Forked):
        return states.into
    assert final_norm is not None
    return add_then_norm(states.stream, states.update, *_weights(final_norm), states.dropout)[1]


def _weights(norm: nn.Module) -> tuple[Tensor, Tensor | None, float]:
    """Return gain, bias and epsilon of a norm over single vectors."""
    assert isinstance(norm, LayerNorm | RMSNorm), "packed sentences meet in other norms"
    return norm.weight, norm.bias if isinstance(norm, LayerNorm) else None, norm.epsilon


class AddAndNorm(nn.Module):
    r"""Wrap a sub-layer in a residual connection and a normalisation.

    Parameters
    ----------
    norm : nn.Module
        The normalisation, from `make_norm`.
    dropout : float
        Share of the sub-layer's output that is dropped.
    position : Literal["post", "pre"]
        Where the normalisation stands.
    adds : bool
        Whether what goes in is added to what comes out; a model without that shows what it is good
        for, and cannot read packed sentences.

    Notes
    -----
    Post-norm, the paper's: :math:`\mathrm{LayerNorm}(x+\mathrm{Dropout}(\mathrm{Sublayer}(x)))`.
    Pre-norm: :math:`x+\mathrm{Dropout}(\mathrm{Sublayer}(\mathrm{LayerNorm}(x)))`, which trains
    deep stacks without warm-up. Layer normalisation looks at one position of one sentence alone,
    unlike batch normalisation, to which one of the notes likens it.
    """

    def __init__(
        self,
        norm: nn.Module,
        *,
        dropout: float,
        position: Literal["post", "pre"],
        adds: bool = True,
    ) -> None:
        super().__init__()
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.position = position
        self.adds = adds

    def forward(
        self,
        states: Float[Tensor, "*batch length model_dim"],
        sublayer: Callable[[Tensor], Tensor],
        first_position: int = 0,
    ) -> Float[Tensor, "*batch length model_dim"]:
        """Apply the sub-layer within its residual connection.

        Parameters
        ----------
        states : Float[Tensor, "*batch length model_dim"]
            The residual stream. The last dimension but one is time for a normalisation that asks
            for it, so a single step of several hypotheses is one row a hypothesis.
        sublayer : Callable[[Tensor], Tensor]
            What is added to it.
        first_position : int
            The place in the sentence of the first word, for a normalisation that asks.
        """
        if self.position == "pre":
            found = self.dropout(sublayer(self.norm(states, first_position)))
            return states + found if self.adds else found
        found = self.dropout(sublayer(states))
        return self.norm(states + found if self.adds else found, first_position)

    def packed(self, states: Residual, sublayer: Callable[[Tensor], Tensor]) -> Residual:
        """Apply the sub-layer to packed sentences."""
        assert isinstance(states, Pending) == (self.position == "pre")
        dropout = self.dropout.p if self.training else 0.0
        norm = _weights(self.norm)
        if isinstance(states, Pending):
            stream, normed = add_then_norm(states.stream, states.update, *norm, states.dropout)
            return Pending(stream, sublayer(normed), dropout)
        return Forked(*add_and_norm(states.around, sublayer(states.into), *norm, dropout))
