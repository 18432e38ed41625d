"""The weights of a model folder, read one by one, without PyTorch."""

import json
from collections.abc import Collection
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped
from safetensors import SafetensorError, safe_open

from dragoman.eight_bits import SCALES, Rounded, round_matrix
from dragoman.errors import FolderError


class WeightFile:
    """The weights of a model folder, read when they are asked for.

    Parameters
    ----------
    path : Path
        A safetensors file; matrices in float, or in eight bits with their scales beside them.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with safe_open(path, framework="np") as file:
                names = file.keys()
                self._shapes = {name: file.get_slice(name).get_shape() for name in names}
        except (SafetensorError, OSError) as error:
            raise FolderError(
                f"{path}: missing, cut short or not a safetensors file ({error}); get it again"
            ) from None

    @property
    def names(self) -> Collection[str]:
        """What its tensors are called."""
        return self._shapes.keys()

    @property
    def is_quantised(self) -> bool:
        """Whether matrices are in eight bits."""
        return any(name.endswith(SCALES) for name in self.names)

    def shape(self, name: str) -> list[int]:
        """Tell the shape of a tensor without reading it.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        list[int]
            Its shape.
        """
        if name not in self._shapes:
            raise FolderError(f"{self.path}: holds another model ({name} is missing)")
        return self._shapes[name]

    def array(self, name: str) -> Shaped[np.ndarray, "..."]:
        """Read one tensor as it is.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        Shaped[np.ndarray, "..."]
            An array of its own; that there is one, `shape` has said.

        Notes
        -----
        The file is opened for it alone: what was read of an open file stays in memory.
        """
        with safe_open(self.path, framework="np") as file:
            is_half = file.get_slice(name).get_dtype() == "BF16"
            return self._widen(name) if is_half else np.array(file.get_tensor(name))

    def _widen(self, name: str) -> Float[np.ndarray, "..."]:
        """Read a tensor in bfloat16, which NumPy does not have: the upper halves of float32."""
        with self.path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            start, past = json.loads(file.read(size))[name]["data_offsets"]
            file.seek(8 + size + start)
            halves = np.frombuffer(file.read(past - start), np.uint16)
        return (halves.astype(np.uint32) << 16).view(np.float32).reshape(self.shape(name))

    def fractions(self, name: str) -> Float[np.ndarray, "..."]:
        """Read one tensor that must be in float.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        Float[np.ndarray, "..."]
            Its numbers, all finite.
        """
        found = self.array(name)
        if found.dtype.kind != "f":
            raise FolderError(
                f"{self.path}: has whole numbers without scales ({name}); get it again"
            )
        if found.size and not (np.isfinite(found.min()) and np.isfinite(found.max())):
            raise FolderError(
                f"{self.path}: has numbers that are not finite ({name}); get it again"
            )
        return found

    def matrix(self, name: str) -> Rounded:
        """Read a matrix in eight bits, rounding it if it is not yet.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        Rounded
            The matrix.
        """
        if name + SCALES not in self.names:
            return round_matrix(self.fractions(name))
        numbers, scales = self.array(name), self.fractions(name + SCALES)
        if numbers.dtype != np.int8 or numbers.ndim != 2 or scales.shape != numbers.shape[:1]:
            raise FolderError(
                f"{self.path}: damaged ({name} and its scales do not fit); get it again"
            )
        return Rounded(numbers, scales.astype(np.float32))
