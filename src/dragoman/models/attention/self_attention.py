"""Interface of self-attentions: all tokens at once, or one more token after those before."""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from dragoman.shapes import Float, Int


@runtime_checkable
class Cache(Protocol):
    """What a causal self-attention stores of earlier tokens, one row a hypothesis."""

    def rows(self, chosen: Int[Tensor, "rows"], length: int) -> "Cache":
        """Copy the cache of some hypotheses, of which `length` tokens are filled."""
        ...


@runtime_checkable
class SelfAttention(Protocol):
    """Interface of self-attention; causal or not is decided when it is made."""

    def attend(
        self, states: Float[Tensor, "batch length model_dim"], lengths: Int[Tensor, "batch"] | None
    ) -> Float[Tensor, "batch length model_dim"]:
        """Attend with all tokens at once; those beyond a sentence's length are padding.

        No lengths: there is no padding, or the attention is causal and padding stands at the end,
        where no token attends to it.
        """
        ...

    def start(self, num_rows: int, capacity: int, like: Float[Tensor, "..."]) -> Any:  # noqa: ANN401
        """Make an empty cache for a number of hypotheses and of tokens."""
        ...

    def step(
        self,
        states: Float[Tensor, "rows 1 model_dim"],
        cache: Any,  # noqa: ANN401
        length: int,
    ) -> tuple[Float[Tensor, "rows 1 model_dim"], Any]:
        """Attend with the newest token; the cache may be written in place."""
        ...
