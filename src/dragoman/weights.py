"""The weights of a model folder: read into a model, and written from one."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from dragoman.errors import FolderError
from dragoman.files import written_beside
from dragoman.folder import WEIGHTS_FILE, ModelFolder, check_shape, write_description
from dragoman.models.build import Model, build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.quantised import restore
from dragoman.tensor_files import write_tensors
from dragoman.text.vocabulary import Vocabularies


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Collect a model's weights, each tied matrix once, and the statistics it keeps beside them.

    Parameters
    ----------
    model : nn.Module
        The model.

    Returns
    -------
    dict[str, Tensor]
        By name, detached, where they are.
    """
    kept = model.state_dict().keys()
    statistics = {name: each for name, each in model.named_buffers() if name in kept}
    return {name: each.detach() for name, each in model.named_parameters()} | statistics


def write_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Write weights, or leave the old ones.

    Parameters
    ----------
    path : Path
        The file.
    weights : Mapping[str, Tensor]
        By name.
    """
    with written_beside(path) as beside:
        write_tensors(beside, weights)


def read_weights(path: Path, device: str = "cpu") -> dict[str, Tensor]:
    """Read weights.

    Parameters
    ----------
    path : Path
        A safetensors file.
    device : str
        Where to put them.

    Returns
    -------
    dict[str, Tensor]
        By name; matrices in eight bits are multiplied out.
    """
    try:
        return restore(load_file(path, device=device), path)
    except (SafetensorError, OSError, ValueError) as error:
        raise FolderError(
            f"{path}: missing, cut short or not a safetensors file ({error}); get it again, or "
            "use another checkpoint"
        ) from None


@torch.no_grad()
def put_weights(model: nn.Module, weights: Mapping[str, Tensor], place: Path) -> None:
    """Copy weights into a model, checking that they are its own.

    Parameters
    ----------
    model : nn.Module
        The model.
    weights : Mapping[str, Tensor]
        By name.
    place : Path
        Where they come from, for error messages.
    """
    own = weights_of(model)
    foreign = sorted(own.keys() ^ weights.keys())
    if foreign:
        raise FolderError(f"{place}: holds another model ({foreign[0]} does not fit this one)")
    for name, parameter in own.items():
        check_shape(place, name, weights[name].shape, parameter.shape)
        is_divided = type(weights[name]) is not Tensor  # then all processes would have to look
        if parameter.is_floating_point() and not is_divided:
            check_numbers(place, name, weights[name])
    for name, parameter in own.items():
        parameter.copy_(weights[name])


def check_numbers(place: Path, name: str, weight: Tensor) -> None:
    """Check that a weight has numbers with which one can compute.

    Parameters
    ----------
    place : Path
        Where it comes from.
    name : str
        Its name.
    weight : Tensor
        Its numbers.

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
    """Build a folder's model with its weights.

    Parameters
    ----------
    folder : ModelFolder
        From `read_folder`.

    Returns
    -------
    Model
        On the CPU, ready to translate.
    """
    model = build_model(folder.options, vocabulary_of(folder.vocabularies))
    path = folder.path / WEIGHTS_FILE
    put_weights(model, read_weights(path), path)
    return model.eval()


def write_model(path: Path, folder: ModelFolder, model: nn.Module) -> None:
    """Write a whole model folder.

    Parameters
    ----------
    path : Path
        The folder; made if missing.
    folder : ModelFolder
        Its options, subwords and facts.
    model : nn.Module
        Its weights.
    """
    write_description(path, replace(folder, path=path), count_parameters(model))
    write_weights(path / WEIGHTS_FILE, weights_of(model))


def vocabulary_of(vocabularies: Vocabularies) -> Vocabulary:
    """Tell a model what it must know of its subwords.

    Parameters
    ----------
    vocabularies : Vocabularies
        The subwords.

    Returns
    -------
    Vocabulary
        Their sizes and special symbols.
    """
    source_size, target_size = (len(each) for each in vocabularies)
    return Vocabulary(source_size, target_size, vocabularies.pad_id, vocabularies.eos_id)
