"""Quantise Transformers to int8: a quarter of the size, and faster on a CPU."""

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.data.batches import Sequences
from dragoman.decoding.confidence import carry_calibration
from dragoman.decoding.engines.cpu.cpu_decoder import CpuDecoder
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine
from dragoman.decoding.engines.cpu.weight_file import WeightFile
from dragoman.decoding.engines.select import can_rebuild
from dragoman.eight_bits import SCALES
from dragoman.errors import FolderError, OptionError
from dragoman.files import written_beside
from dragoman.folder import WEIGHTS_FILE, ModelFolder, read_folder, write_description
from dragoman.models.build import count_parameters
from dragoman.models.interface import SearchedModel
from dragoman.models.options import TransformerOptions
from dragoman.models.transformer import Transformer
from dragoman.quantised import Quantised
from dragoman.weights import (
    build_unfilled,
    load_model,
    read_tensor,
    weights_of,
    write_weights,
)


def write_int8(folder: ModelFolder, path: Path) -> None:
    """Write a model folder with int8 matrices."""
    if not can_rebuild(folder.options):
        raise OptionError(
            f"{folder.path}: only Transformers with full attention and without experts are "
            "computed in eight bits; use the folder as it is"
        )
    if path.exists():
        raise FolderError(f"{path}: is there already; give a new folder, or remove it first")
    file = WeightFile(folder.open_weights())
    if file.is_quantised:
        raise FolderError(f"{folder.path}: is in eight bits already; use it as it is")
    model, names = _make_frame(folder, file)
    rounded = {names[id(each)] for each in _matrices(model)}
    tensors: dict[str, Tensor] = {}
    for name in sorted(file.tensors.names):
        if name in rounded:
            tensors[name], tensors[name + SCALES] = Quantised.of(file.matrix(name))
        else:
            tensors[name] = read_tensor(file.tensors, name)
    facts = replace(folder.facts, weights=f"{folder.facts.weights}, in eight bits".lstrip(", "))
    with written_beside(path) as beside:
        new = replace(folder, path=beside, facts=facts)
        write_description(beside, new, count_parameters(model))
        write_weights(beside / WEIGHTS_FILE, tensors, folder.identity)
        carry_calibration(folder, read_folder(beside))


@torch.inference_mode()
def int8_loss_change(folder: ModelFolder, source: Sequences, target: Sequences) -> float:
    """Measure how much int8 changes the loss on some sentence pairs.

    Returns
    -------
    float
        By how much the loss grows, in nats a subword, by the engine that would translate.
    """
    rounded = CpuDecoder(CpuEngine.load(folder, "int8", searches=False))
    pad_id = folder.vocabularies.pad_id
    losses = (_loss(each, pad_id, source, target) for each in (rounded, load_model(folder)))
    return next(losses) - next(losses)


def _loss(model: SearchedModel, pad_id: int, source: Sequences, target: Sequences) -> float:
    """Compute the mean loss per token of given translations, step by step."""
    state = model.start(model.encode(source), target.ids.size(1))
    total = 0.0
    words = target.shifted(pad_id)
    for place in range(target.ids.size(1)):
        hidden, state = model.step(words[:, place : place + 1], state)
        losses = functional.cross_entropy(
            model.output(hidden)[:, 0].float(), target.ids[:, place], reduction="none"
        )
        total += float(losses[target.is_token[:, place]].sum())
    return total / int(target.lengths.sum())


def _make_frame(folder: ModelFolder, file: WeightFile) -> tuple[Transformer, dict[int, str]]:
    """Build a model without its matrices, and name each of those."""
    options = folder.options
    assert isinstance(options, TransformerOptions)
    model = build_unfilled(folder, file.tensors)
    assert isinstance(model, Transformer)
    names = {id(each): name for name, each in model.named_parameters()}
    matrices = {names[id(each)] for each in _matrices(model)}
    small = {
        name: torch.from_numpy(file.fractions(name))
        for name in weights_of(model)
        if name not in matrices
    }
    model.load_state_dict(small, strict=False)
    return model, names


def _matrices(model: Transformer) -> list[Tensor]:
    """List the matrices that are quantised."""
    layers: list[Tensor] = [each.weight for each in model.modules() if isinstance(each, nn.Linear)]
    return [*layers, *_word_matrices(model)]


def _word_matrices(model: Transformer) -> list[Tensor]:
    """List the embeddings of source, target and output, which may be tied."""
    return [model.source_embedding.words, model.target_embedding.words, model.output.words]
