"""The one table that selects an engine by model, device and precision.

Nothing else asks what a processor or a model can. PyTorch is imported only for what it is needed.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple

from dragoman.decoding.engines.cpu.cpu_weights import can_be_compiled
from dragoman.decoding.engines.cpu.weight_file import WeightFile
from dragoman.decoding.options import Precision
from dragoman.errors import OptionError
from dragoman.folder import ModelFolder
from dragoman.kernels import processor
from dragoman.models.options import TransformerOptions

if TYPE_CHECKING:
    import torch

    from dragoman.data.batches import FlatSequences
    from dragoman.decoding.engines.cpu.cpu_decoder import CpuDecoder
    from dragoman.decoding.engines.cuda.cuda_engine import CudaEngine
    from dragoman.decoding.engines.cuda.rebuilt_transformer import RebuiltTransformer
    from dragoman.models.interface import TranslationModel

LARGEST_LOSS = 0.01
"""Nats a subword that eight bits may cost a model that is translated so unasked."""
NOT_REBUILT = "only Transformers with full attention and without experts are computed so"
NOT_COMPILED = (
    "only Transformers with full attention, without experts, whose positions are added to words "
    "are computed so"
)
NO_COMPILER = "Numba, which compiles for this processor, is not installed or switched off"

EngineName = Literal["cpu", "cuda", "rebuilt", "reference"]
_TITLES = {
    "cpu": "compiled for this processor",
    "cuda": "the whole search on the card",
    "rebuilt": "a Transformer rebuilt for translating, by PyTorch",
    "reference": "the model as it was trained, by PyTorch",
}


class Choice(NamedTuple):
    """The selected engine, its precision, and why."""

    engine: EngineName
    precision: Literal["float32", "float16", "int8"]
    why: str

    def explain(self) -> str:
        """Describe the choice in one line."""
        title = _TITLES[self.engine]
        if self.engine == "cpu":
            title += f" ({processor.choose_instructions()})"
        return f"{title}, in {self.precision}: {self.why}"


def choose_engine(folder: ModelFolder, device_type: str, precision: Precision) -> Choice:
    """Select the engine for a model.

    Raises
    ------
    OptionError
        If the model cannot be computed in the precision that the user names.

    Notes
    -----
    ======= ============================================ ===========
    device  model                                        engine
    ======= ============================================ ===========
    CPU     Transformer whose positions are added        cpu
    CUDA    the same, with Triton                        cuda
    CUDA    with other positions or norms, in float16    rebuilt
    any     any other                                    reference
    ======= ============================================ ===========

    Terms, forbidden words, samples and forced beginnings are the affair of the same engine, which
    the general search asks word by word where the engine's own search does not support the request.
    """
    obstacle = _find_obstacle(folder.options, device_type, precision)
    if obstacle:
        raise OptionError(f"precision is “{precision}”, but {obstacle}; give --precision float32")
    if device_type == "cpu" and can_be_compiled(folder.options):
        if precision != "auto":
            return Choice("cpu", "int8" if precision == "int8" else "float32", "as was asked for")
        if WeightFile(folder.open_weights()).is_quantised:
            return Choice("cpu", "int8", "the folder is in eight bits")
        if folder.facts.fits_int8:
            return Choice("cpu", "int8", "by its loss eight bits cost nothing that can be measured")
        return Choice("cpu", "float32", "nobody measured what eight bits would cost")
    if not can_rebuild(folder.options):
        return Choice("reference", "float32", "it is no Transformer that the other engines know")
    if device_type == "cpu":
        why = NO_COMPILER if not processor.can_compile() else "its positions or norms"
        return Choice("reference", "float32", why)
    if device_type == "cuda":
        chosen: Literal["float32", "float16"]
        chosen = "float32" if precision == "float32" else "float16"
        from dragoman.decoding.engines.cuda.slot_decoder import can_take_slots
        from dragoman.kernels.language import has_triton

        if has_triton and can_take_slots(folder.options):
            return Choice("cuda", chosen, "a Transformer on an NVIDIA card")
        if chosen == "float16":
            return Choice("rebuilt", chosen, "its positions or norms, or no Triton here")
        return Choice("reference", chosen, "its positions or norms, or no Triton here")
    return Choice("reference", "float32", f"the device is {device_type}")


def can_rebuild(options: object) -> bool:
    """Say whether `RebuiltTransformer` supports a model.

    Returns
    -------
    bool
        True for Transformers with full attention and without experts, unless their norms ask at
        which place of its sentence a word stands: words of all sentences are read as one.
    """
    return (
        isinstance(options, TransformerOptions)
        and options.is_usual
        and options.norm != "batch-per-step"
    )


def load_engine(
    folder: ModelFolder, device: "torch.device | str", choice: Choice
) -> "CpuDecoder | RebuiltTransformer | CudaEngine | TranslationModel":
    """Load an engine that runs on PyTorch."""
    if choice.engine == "cpu":
        from dragoman.decoding.engines.cpu.cpu_decoder import CpuDecoder
        from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine

        assert choice.precision != "float16"
        return CpuDecoder(CpuEngine.load(folder, choice.precision, searches=False))
    import torch

    from dragoman.decoding.memory import keep_freed_memory
    from dragoman.weights import load_model, vocabulary_of

    where = torch.device(device)
    if where.type == "cpu":
        keep_freed_memory()
    model = load_model(folder).to(where)
    if choice.precision == "float16":
        model = model.half()
    if choice.engine == "reference":
        return model
    from dragoman.decoding.engines.cuda.rebuilt_transformer import RebuiltTransformer
    from dragoman.models.transformer import Transformer

    assert isinstance(model, Transformer)
    if choice.engine == "rebuilt":
        return RebuiltTransformer(model)
    from dragoman.decoding.engines.cuda.cuda_engine import CudaEngine

    return CudaEngine(model, vocabulary_of(folder.vocabularies), where)


def fits_int8(folder: ModelFolder, source: "FlatSequences", target: "FlatSequences") -> bool:
    """Say whether a newly trained model may translate in int8 by default.

    Returns
    -------
    bool
        True if its loss grows by less than a hundredth of a nat, which no score of translations
        shows.
    """
    if not can_be_compiled(folder.options):
        return False
    from dragoman.data.batches import pad_sequences
    from dragoman.decoding.quantise import int8_loss_change

    pad_id = folder.vocabularies.pad_id
    sides = (pad_sequences(side, pad_id) for side in (source, target))
    return int8_loss_change(folder, *sides) < LARGEST_LOSS


def _find_obstacle(options: object, device_type: str, precision: Precision) -> str | None:
    """Say why a model does not support the requested precision."""
    if precision == "int8":
        if device_type != "cpu":
            return f"the device is {device_type}, and eight bits are for the CPU"
        if not processor.can_compile():
            return NO_COMPILER
        return None if can_be_compiled(options) else NOT_COMPILED
    if precision == "float16":
        if device_type != "cuda":
            return f"the device is {device_type}, and half precision is for NVIDIA cards"
        return None if can_rebuild(options) else NOT_REBUILT
    return None
