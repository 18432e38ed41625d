"""Types that name the shapes of arrays, such as ``Float[Tensor, "batch words"]``.

Where jaxtyping is loaded, as it is while tests run, these are its own, and shapes are checked. Else
they stand for the kind of array alone: importing jaxtyping takes as long as loading a model.
"""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or "jaxtyping" in sys.modules:
    from jaxtyping import (
        Bool,
        Float,
        Float32,
        Float64,
        Int,
        Int8,
        Integer,
        Shaped,
        UInt8,
        UInt32,
        UInt64,
    )
else:

    class _Unchecked:
        """An array of any shape."""

        def __class_getitem__(cls, kind_and_shape: tuple[Any, str]) -> Any:  # noqa: ANN401
            return kind_and_shape[0]

    Bool = Float = Float32 = Float64 = Int = Int8 = Integer = Shaped = _Unchecked
    UInt8 = UInt32 = UInt64 = _Unchecked

__all__ = [
    "Bool",
    "Float",
    "Float32",
    "Float64",
    "Int",
    "Int8",
    "Integer",
    "Shaped",
    "UInt8",
    "UInt32",
    "UInt64",
]
