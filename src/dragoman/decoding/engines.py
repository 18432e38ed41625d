"""Which engine translates: in float32, float16 or eight bits, rebuilt or as it was trained."""

import torch

from dragoman.data.batches import Flat, pad_sequences
from dragoman.decoding.engine import Engine, can_rebuild
from dragoman.decoding.graph_engine import GraphEngine
from dragoman.decoding.memory import give_freed_memory_back, keep_freed_memory
from dragoman.decoding.options import Precision
from dragoman.decoding.products import has_int8
from dragoman.decoding.quantise import int8_loss_change, load_int8, rebuild
from dragoman.decoding.slot_decoder import can_take_slots
from dragoman.decoding.weight_file import WeightFile
from dragoman.errors import OptionError
from dragoman.folder import ModelFolder
from dragoman.kernels.language import has_triton
from dragoman.models.interface import TranslationModel
from dragoman.models.options import TransformerOptions
from dragoman.models.transformer import Transformer
from dragoman.weights import load_model, vocabulary_of

LEAST_WIDTH = 512
LARGEST_LOSS = 0.01
NOT_REBUILT = "only Transformers with full attention and without experts are computed so"


def load_engine(
    folder: ModelFolder, device: torch.device, precision: Precision = "auto"
) -> Engine | GraphEngine | TranslationModel:
    """Load a folder's model for translating.

    Parameters
    ----------
    folder : ModelFolder
        From `read_folder`.
    device : torch.device
        Where to translate.
    precision : Precision
        Of the products.

    Returns
    -------
    Engine | GraphEngine | TranslationModel
        Ready for a search.
    """
    chosen = choose_precision(folder, device, precision)
    if device.type == "cpu":
        keep_freed_memory()
    if chosen == "int8":
        engine = load_int8(folder)
        give_freed_memory_back()
        return engine
    model = load_model(folder).to(device)
    if not isinstance(model, Transformer) or not can_rebuild(folder.options):
        return model
    if chosen == "float16":
        model = model.half()
    if device.type == "cuda" and has_triton and can_take_slots(folder.options):
        return GraphEngine(model, vocabulary_of(folder.vocabularies), device)
    return rebuild(model) if device.type == "cpu" or chosen == "float16" else model


def choose_precision(folder: ModelFolder, device: torch.device, precision: Precision) -> Precision:
    """Say in which precision a model translates.

    Parameters
    ----------
    folder : ModelFolder
        The model.
    device : torch.device
        Where.
    precision : Precision
        What the user says.

    Returns
    -------
    Precision
        For ``auto`` on an NVIDIA card half precision; on a processor that can, eight bits, if the
        folder is in eight bits, or says that nothing measurable is lost by them and products are
        large enough for PyTorch's to be faster so; else float32.
    """
    obstacles = {"int8": _obstacle(folder, device), "float16": _half_obstacle(folder, device)}
    obstacle = obstacles.get(precision)
    if obstacle:
        raise OptionError(f"precision is “{precision}”, but {obstacle}; give --precision float32")
    if precision != "auto":
        return precision
    if device.type == "cuda":
        return "float32" if obstacles["float16"] else "float16"
    is_wide = isinstance(folder.options, TransformerOptions) and (
        folder.options.model_dim >= LEAST_WIDTH
    )
    is_wanted = (folder.facts.fits_int8 and is_wide) or WeightFile(
        folder.open_weights()
    ).is_quantised
    return "int8" if is_wanted and not obstacles["int8"] else "float32"


def fits_int8(folder: ModelFolder, source: Flat, target: Flat) -> bool:
    """Say whether a model that was just trained may translate in eight bits unasked.

    Parameters
    ----------
    folder : ModelFolder
        With its weights in float.
    source : Flat
        Some sentences that it was not trained on.
    target : Flat
        Their translations.

    Returns
    -------
    bool
        True if its loss grows by less than a hundredth of a nat, which no score of translations
        shows.
    """
    if _obstacle(folder, torch.device("cpu")):
        return False
    pad_id = folder.vocabularies.pad_id
    sides = (pad_sequences(side, pad_id) for side in (source, target))
    return int8_loss_change(folder, *sides) < LARGEST_LOSS


def _obstacle(folder: ModelFolder, device: torch.device) -> str | None:
    """Say why a model cannot be computed in eight bits."""
    if device.type != "cpu":
        return f"the device is {device.type}, and eight bits are for the CPU"
    if not has_int8():
        return "this processor, or this build of PyTorch, does not multiply in eight bits"
    return None if can_rebuild(folder.options) else NOT_REBUILT


def _half_obstacle(folder: ModelFolder, device: torch.device) -> str | None:
    """Say why a model cannot be computed in half precision."""
    if device.type != "cuda":
        return f"the device is {device.type}, and half precision is for NVIDIA cards"
    return None if can_rebuild(folder.options) else NOT_REBUILT
