"""What every self-attention offers: all words at once, or one more word after those before."""

from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from dragoman.shapes import Float, Int


@runtime_checkable
class Cache(Protocol):
    """What a causal self-attention remembers of the words before; one row a hypothesis."""

    def rows(self, chosen: Int[Tensor, "rows"], length: int) -> "Cache":
        """Copy some hypotheses' memory, of which so many words are filled."""
        ...


@runtime_checkable
class SelfAttention(Protocol):
    """A sequence that attends to itself. Whether it may look ahead is decided when it is made."""

    def attend(
        self, states: Float[Tensor, "batch length model_dim"], lengths: Int[Tensor, "batch"] | None
    ) -> Float[Tensor, "batch length model_dim"]:
        """Let all words look at once; those beyond a sentence's length are padding.

        No lengths: all are words, or the attention is causal and the padding stands at the end,
        where no word sees it.
        """
        ...

    def start(self, num_rows: int, capacity: int, like: Float[Tensor, "..."]) -> Any:  # noqa: ANN401
        """Make an empty cache for so many hypotheses of at most so many words."""
        ...

    def step(
        self,
        states: Float[Tensor, "rows 1 model_dim"],
        cache: Any,  # noqa: ANN401
        length: int,
    ) -> tuple[Float[Tensor, "rows 1 model_dim"], Any]:
        """Let the newest word look, after so many words; the cache may be written in place."""
        ...
