"""Read a model folder's weights into a model, and write them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from dragoman.eight_bits import SCALES
from dragoman.errors import FolderError
from dragoman.files import written_beside
from dragoman.folder import (
    CONFIG_FILE,
    IDENTITY,
    WEIGHTS_FILE,
    ModelFolder,
    check_shape,
    write_description,
)
from dragoman.models.build import Model, build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.quantised import restore
from dragoman.tensor_files import BFLOAT16, TensorFile, write_tensors
from dragoman.text.vocabulary import Vocabularies

LARGE = 1 << 14
FILLING = ("kaiming_uniform_", "xavier_uniform_", "uniform_", "normal_", "zero_", "fill_")


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Collect a model's parameters, each tied matrix once, and its buffers."""
    kept = model.state_dict().keys()
    statistics = {name: each for name, each in model.named_buffers() if name in kept}
    return {name: each.detach() for name, each in model.named_parameters()} | statistics


def write_weights(path: Path, weights: Mapping[str, Tensor], identity: str | None = None) -> None:
    """Write weights atomically."""
    with written_beside(path) as beside:
        write_tensors(beside, weights, None if identity is None else {IDENTITY: identity})


def read_weights(place: Path | TensorFile) -> dict[str, Tensor]:
    """Read weights and check their digests."""
    file = place if isinstance(place, TensorFile) else TensorFile(place)
    return restore({name: read_tensor(file, name) for name in file.names}, file.path)


def read_tensor(file: TensorFile, name: str) -> Tensor:
    """Read one tensor in its own type."""
    found = torch.from_numpy(file.read(name))
    return found.view(torch.bfloat16) if file.type(name) == BFLOAT16 else found


@torch.no_grad()
def put_weights(model: nn.Module, weights: Mapping[str, Tensor], place: Path) -> None:
    """Copy weights into a model, checking names and shapes."""
    own = weights_of(model)
    foreign = sorted(own.keys() ^ weights.keys())
    if foreign:
        raise FolderError(f"{place}: holds another model ({foreign[0]} does not fit this one)")
    for name, parameter in own.items():
        check_shape(place, name, weights[name].shape, parameter.shape)
        is_divided = type(weights[name]) is not Tensor  # then all processes would have to check
        if parameter.is_floating_point() and not is_divided:
            check_numbers(place, name, weights[name])
    for name, parameter in own.items():
        parameter.copy_(weights[name])


def check_numbers(place: Path, name: str, weight: Tensor) -> None:
    """Check that a weight is finite.

    Notes
    -----
    The least and the largest are found in a fifteenth of the time of `torch.isfinite`; either is
    NaN if any number is.
    """
    if not weight.is_floating_point():
        raise FolderError(f"{place}: has whole numbers without scales ({name}); get it again")
    if weight.numel() and not torch.stack(weight.aminmax()).isfinite().all():
        raise FolderError(f"{place}: has numbers that are not finite ({name}); get it again")


def load_model(folder: ModelFolder) -> Model:
    """Build a folder's model with its weights."""
    file = folder.open_weights()
    model = build_unfilled(folder, file)
    with torch.no_grad():
        for name, parameter in weights_of(model).items():
            parameter.copy_(_read_weight(file, name, parameter))
    return model.eval()


def _read_weight(file: TensorFile, name: str, parameter: Tensor) -> Tensor:
    """Read one weight, dequantised if it is int8, and check that it is finite."""
    parts = [each for each in (name, name + SCALES) if each in file.names]
    weight = restore({each: read_tensor(file, each) for each in parts}, file.path)[name]
    if parameter.is_floating_point():
        check_numbers(file.path, name, weight)
    return weight


def build_unfilled(folder: ModelFolder, file: TensorFile) -> Model:
    """Build a folder's model with uninitialised large weights, checking that the file fits.

    Returns
    -------
    Model
        On the CPU. The system gives no memory for weights that nobody has written, so options that
        ask for more than the file holds cost nothing before they are refused.
    """
    try:
        with _Untouched():
            model = build_model(folder.options, vocabulary_of(folder.vocabularies))
    except (RuntimeError, MemoryError, OverflowError) as error:
        raise FolderError(
            f"{file.path}: holds another model than {folder.path / CONFIG_FILE} describes, which "
            f"cannot be built ({str(error).splitlines()[0][:100]}); get the folder again"
        ) from None
    own = weights_of(model)
    names = {name for name in file.names if not _is_scales(name, file)}
    foreign = sorted(own.keys() ^ names)
    if foreign:
        raise FolderError(f"{file.path}: holds another model ({foreign[0]} does not fit this one)")
    for name, parameter in own.items():
        check_shape(file.path, name, file.shape(name), parameter.shape)
    return model


def write_model(path: Path, folder: ModelFolder, model: nn.Module) -> None:
    """Write a whole model folder."""
    write_description(path, replace(folder, path=path), count_parameters(model))
    write_weights(path / WEIGHTS_FILE, weights_of(model), folder.identity)


def vocabulary_of(vocabularies: Vocabularies) -> Vocabulary:
    """Make the model's view of the vocabularies."""
    source_size, target_size = (len(each) for each in vocabularies)
    return Vocabulary(source_size, target_size, vocabularies.pad_id, vocabularies.eos_id)


def _is_scales(name: str, file: TensorFile) -> bool:
    """Say whether a tensor has the scales of another."""
    return name.endswith(SCALES) and name.removesuffix(SCALES) in file.names


class _Untouched(TorchFunctionMode):
    """Leave large new parameters uninitialised, as they are about to be read from a file.

    PyTorch's own way, the device “meta”, imports 150 MB of compilers to compute with no numbers.
    """

    def __torch_function__(
        self,
        function: Any,  # noqa: ANN401
        kinds: Any,  # noqa: ANN401
        arguments: Any = (),  # noqa: ANN401
        named: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        del kinds
        named = named or {}
        if getattr(function, "__name__", "") in FILLING:
            tensor = arguments[0] if arguments else named["tensor"]
            if isinstance(tensor, nn.Parameter) and tensor.numel() > LARGE:
                return tensor
        return function(*arguments, **named)
