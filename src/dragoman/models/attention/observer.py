"""Observe or replace attention weights, without a flag in any signature."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from dragoman.shapes import Float


@runtime_checkable
class Observer(Protocol):
    """Callback that an attention module calls with its weights while it is observed."""

    def __call__(
        self, weights: Float[Tensor, "batch heads queries keys"]
    ) -> Float[Tensor, "batch heads queries keys"]:
        """Receive the weights and return those to use, the same or others."""
        ...


Replacement = Callable[[str, Tensor], Tensor]


@contextmanager
def observed_attention(
    model: nn.Module, replace: Replacement | None = None
) -> Iterator[dict[str, list[Tensor]]]:
    """Record the weights of every attention module while the context lasts.

    Parameters
    ----------
    model : nn.Module
        An uncompiled model that nobody else uses meanwhile.
    replace : Callable[[str, Tensor], Tensor] | None
        Given a module's name and its weights, returns the weights to use instead: to switch a
        head off, say.

    Notes
    -----
    Any module with an attribute ``observer`` takes part. While somebody looks, the explicit
    equation runs; otherwise the fused kernel does, at no cost.
    """
    maps: dict[str, list[Tensor]] = defaultdict(list)

    def observer_of(name: str) -> Observer:
        def observe(weights: Tensor) -> Tensor:
            used = weights if replace is None else replace(name, weights)
            maps[name].append(used.detach())
            return used

        return observe

    observed = [(name, each) for name, each in model.named_modules() if hasattr(each, "observer")]
    try:
        for name, module in observed:
            module.observer = observer_of(name)
        yield maps
    finally:
        for _, module in observed:
            module.observer = None
