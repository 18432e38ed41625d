"""Transformers in eight bits: a quarter of the size, and faster on a processor."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from dragoman.data.batches import Sequences
from dragoman.decoding.engine import Engine, Weights, can_rebuild
from dragoman.decoding.products import (
    FloatProduct,
    Int8Product,
    PackedProduct,
    Product,
    WideInt8Product,
    can_pack,
    join_layers,
)
from dragoman.decoding.weight_file import WeightFile
from dragoman.eight_bits import SCALES
from dragoman.errors import FolderError, OptionError
from dragoman.files import written_beside
from dragoman.folder import WEIGHTS_FILE, ModelFolder, write_description
from dragoman.models.build import count_parameters
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


class Int8Words:
    """The vectors of words, each kept in eight bits.

    Parameters
    ----------
    matrix : Quantised
        One row a word.
    """

    def __init__(self, matrix: Quantised) -> None:
        self._matrix = matrix

    def __call__(self, ids: Int[Tensor, "*places"]) -> Float[Tensor, "*places model_dim"]:
        """Look words up.

        Parameters
        ----------
        ids : Int[Tensor, "*places"]
            Which words.

        Returns
        -------
        Float[Tensor, "*places model_dim"]
            Their vectors.
        """
        return self._matrix.numbers[ids] * self._matrix.scales[ids].unsqueeze(-1)


def rebuild(model: Transformer) -> Engine:
    """Rebuild a model for translating, in its own precision.

    Parameters
    ----------
    model : Transformer
        The trained model, one that `can_rebuild` accepts.

    Returns
    -------
    Engine
        With the same weights, not copied but for projections that are put side by side and, on a
        CPU, the output's.
    """
    source, target = (
        each.words.detach() for each in (model.source_embedding, model.target_embedding)
    )
    output = model.output.words.detach()
    bias = None if model.output.bias is None else model.output.bias.detach()
    weights = Weights(
        make_product=lambda layers: FloatProduct(*join_layers(layers)),
        source_words=lambda ids: functional.embedding(ids, source),
        target_words=lambda ids: functional.embedding(ids, target),
        output=(PackedProduct if can_pack(output) else FloatProduct)(output, bias),
        output_for=lambda ids: FloatProduct(output[ids], None if bias is None else bias[ids]),
    )
    return Engine(model, weights)


def load_int8(folder: ModelFolder) -> Engine:
    """Load a folder's model for translating in eight bits.

    Parameters
    ----------
    folder : ModelFolder
        With weights in float or in eight bits; one that `can_rebuild` accepts.

    Returns
    -------
    Engine
        On the CPU. At no time are all weights in memory in float.
    """
    file = WeightFile(folder.open_weights())
    model, names = _make_frame(folder, file)
    words = {
        name: Quantised.of(file.matrix(name))
        for name in {names[id(each)] for each in _word_matrices(model)}
    }
    source, target, output = (words[names[id(each)]] for each in _word_matrices(model))

    def make_product(layers: Sequence[nn.Linear]) -> Product:
        matrices = [Quantised.of(file.matrix(names[id(each.weight)])) for each in layers]
        biases = [each.bias.detach() for each in layers if each.bias is not None]
        joined = Quantised(*(torch.cat(each) for each in zip(*matrices, strict=True)))
        return Int8Product(joined, torch.cat(biases) if biases else None)

    bias = None if model.output.bias is None else model.output.bias.detach()
    weights = Weights(
        make_product=make_product,
        source_words=Int8Words(source),
        target_words=Int8Words(target),
        output=WideInt8Product(output, bias),
        output_for=lambda ids: Int8Product(output.rows(ids), None if bias is None else bias[ids]),
    )
    return Engine(model.eval(), weights)


def write_int8(folder: ModelFolder, path: Path) -> None:
    """Write a model folder with its matrices in eight bits.

    Parameters
    ----------
    folder : ModelFolder
        The model, in float.
    path : Path
        The new folder.
    """
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


@torch.inference_mode()
def int8_loss_change(folder: ModelFolder, source: Sequences, target: Sequences) -> float:
    """Measure what eight bits do to the loss on some sentence pairs.

    Parameters
    ----------
    folder : ModelFolder
        A model in float; one that `can_rebuild` accepts.
    source : Sequences
        Sentences.
    target : Sequences
        Their translations.

    Returns
    -------
    float
        By how much the loss grows, in nats a subword.
    """
    model = load_model(folder)
    assert isinstance(model, Transformer)
    exact = _loss(rebuild(model), source, target)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)  # that of products in eight bits, whatever others have
    try:
        return _loss(load_int8(folder), source, target) - exact
    finally:
        torch.set_default_dtype(usual)


def _loss(engine: Engine, source: Sequences, target: Sequences) -> float:
    """Read given translations word by word; return the mean loss of a subword."""
    state = engine.start(engine.encode(source), target.ids.size(1))
    total = 0.0
    words = target.shifted(engine.pad_id)
    for place in range(target.ids.size(1)):
        hidden, state = engine.step(words[:, place : place + 1], state)
        losses = functional.cross_entropy(
            engine.output(hidden)[:, 0], target.ids[:, place], reduction="none"
        )
        total += float(losses[target.is_token[:, place]].sum())
    return total / int(target.lengths.sum())


def _make_frame(folder: ModelFolder, file: WeightFile) -> tuple[Transformer, dict[int, str]]:
    """Make a model without its matrices; say what each of those is called."""
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
    """List what is kept in eight bits."""
    layers: list[Tensor] = [each.weight for each in model.modules() if isinstance(each, nn.Linear)]
    return [*layers, *_word_matrices(model)]


def _word_matrices(model: Transformer) -> list[Tensor]:
    """List the words of source, target and output, which may be one matrix."""
    return [model.source_embedding.words, model.target_embedding.words, model.output.words]
