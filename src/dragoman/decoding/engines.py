"""Which engine translates: in float32 or in eight bits, rebuilt or as it was trained."""

import ctypes
import sys
from pathlib import Path

import torch

from dragoman.data.batches import Flat, pad_sequences
from dragoman.decoding.engine import Engine, can_rebuild
from dragoman.decoding.options import Precision
from dragoman.decoding.products import has_int8
from dragoman.decoding.quantise import WeightFile, int8_loss_change, load_int8, rebuild
from dragoman.errors import OptionError
from dragoman.folder import WEIGHTS_FILE, ModelFolder, load_model
from dragoman.models.interface import TranslationModel
from dragoman.models.transformer import Transformer

LEAST_WIDTH = 512
LARGEST_LOSS = 0.01
# Numbers of the C library's options, and blocks up to which freed memory is kept for the next.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 1 << 28


def load_engine(
    folder: ModelFolder, device: torch.device, precision: Precision = "auto"
) -> Engine | TranslationModel:
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
    Engine | TranslationModel
        Ready for a search.
    """
    if choose_precision(folder, device, precision) == "int8":
        _keep_freed_memory()
        return load_int8(folder)
    model = load_model(folder).to(device)
    if device.type != "cpu":
        return model
    _keep_freed_memory()
    return (
        rebuild(model) if isinstance(model, Transformer) and can_rebuild(folder.options) else model
    )


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
        For ``auto`` eight bits, if the processor can, and the folder is in eight bits or says that
        nothing measurable is lost by them; else float32.
    """
    obstacle = _obstacle(folder, device)
    if precision == "int8" and obstacle:
        raise OptionError(f"precision is “int8”, but {obstacle}; give --precision float32")
    if precision != "auto":
        return precision
    is_safe = folder.facts.fits_int8 or WeightFile(_weights(folder)).is_quantised
    return "int8" if is_safe and not obstacle else "float32"


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
        True if its products are large enough for eight bits to be faster, and its loss grows by
        less than a hundredth of a nat, which no score of translations shows.
    """
    if _obstacle(folder, torch.device("cpu")) or folder.options.model_dim < LEAST_WIDTH:
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
    if not can_rebuild(folder.options):
        return "only Transformers with full attention and without experts are computed so"
    return None


def _weights(folder: ModelFolder) -> Path:
    return folder.path / WEIGHTS_FILE


def _keep_freed_memory() -> None:
    """Let the C library keep what is freed for the next tensor.

    By default it gives large blocks back to the system, which hands them out again page by page,
    each filled with zeros: scores of a vocabulary would pay that at every step.
    """
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):  # glibc
        library.mallopt(M_MMAP_THRESHOLD, KEPT_BYTES)
        library.mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
