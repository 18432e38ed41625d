"""Read the weights of a model folder one by one, without PyTorch."""

from pathlib import Path

import numpy as np

from dragoman.eight_bits import SCALES, Rounded, round_matrix
from dragoman.errors import FolderError
from dragoman.shapes import Float
from dragoman.tensor_files import TensorFile


def check_finite(place: Path, name: str, numbers: Float[np.ndarray, "..."]) -> None:
    """Refuse weights that are not finite."""
    if numbers.size and not (np.isfinite(numbers.min()) and np.isfinite(numbers.max())):
        raise FolderError(f"{place}: has numbers that are not finite ({name}); get it again")


class WeightFile:
    """The weights of a model folder, read on demand.

    Parameters
    ----------
    tensors : TensorFile
        Its matrices are in float, or in eight bits with their scales beside them.
    """

    def __init__(self, tensors: TensorFile) -> None:
        self.tensors, self.path = tensors, tensors.path

    @property
    def is_quantised(self) -> bool:
        """Whether matrices are stored in int8."""
        return any(name.endswith(SCALES) for name in self.tensors.names)

    def fractions(self, name: str) -> Float[np.ndarray, "..."]:
        """Read one tensor that must be floating point."""
        found = self.tensors.read_wide(name)
        if found.dtype.kind != "f":
            raise FolderError(
                f"{self.path}: has whole numbers without scales ({name}); get it again"
            )
        check_finite(self.path, name, found)
        return found

    def restored(self, name: str) -> Float[np.ndarray, "..."]:
        """Read a matrix as float32, dequantising int8."""
        if name + SCALES not in self.tensors.names:
            return self.fractions(name)
        numbers, scales = self.matrix(name)
        return numbers * scales[:, None]

    def matrix(self, name: str) -> Rounded:
        """Read a matrix as int8, quantising if needed."""
        if name + SCALES not in self.tensors.names:
            return round_matrix(self.fractions(name))
        numbers, scales = self.tensors.read(name), self.fractions(name + SCALES)
        if numbers.dtype != np.int8 or numbers.ndim != 2 or scales.shape != numbers.shape[:1]:
            raise FolderError(
                f"{self.path}: damaged ({name} and its scales do not fit); get it again"
            )
        return Rounded(numbers, scales.astype(np.float32))
