"""Cast weights to the working precision: all at once before they are used, or one by one."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

import torch
from torch import Tensor

_nothing: Mapping[int, Tensor] = MappingProxyType({})
_copies = ContextVar("weights that are cast already", default=_nothing)


@contextmanager
def cast_together(weights: Sequence[Tensor], dtype: torch.dtype) -> Iterator[None]:
    """Cast weights in one pass; within the context `cast` returns these copies.

    Parameters
    ----------
    weights : Sequence[Tensor]
        The weights, which must not change while the context lasts; those that have the wanted
        precision already are left alone.
    dtype : torch.dtype
        The precision.
    """
    weights = [each for each in weights if each.dtype != dtype]
    copies = [torch.empty_like(each, dtype=dtype, requires_grad=False) for each in weights]
    if copies:
        torch._foreach_copy_(copies, [each.detach() for each in weights])
    token = _copies.set({id(each): copy for each, copy in zip(weights, copies, strict=True)})
    try:
        yield
    finally:
        _copies.reset(token)


def cast(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Cast a weight, unless `cast_together` has done so."""
    copy = _copies.get().get(id(weight))
    return weight.to(dtype) if copy is None or copy.dtype != dtype else copy
