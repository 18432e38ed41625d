"""Export to CTranslate2, through the specifications of its own package, imported when needed."""

from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from torch import Tensor, nn

from dragoman.errors import OptionError
from dragoman.exchange.names import names_of
from dragoman.exchange.unsupported import check_for_ctranslate2, check_new, subwords_of
from dragoman.files import written_beside
from dragoman.folder import ModelFolder, read_folder
from dragoman.models.attention.multihead_attention import MultiheadAttention
from dragoman.models.layers.embedding import Embedding
from dragoman.models.layers.feed_forward import FeedForward
from dragoman.models.layers.normalisation import LayerNorm, RMSNorm
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import LearnedPositions
from dragoman.models.transformer import Transformer
from dragoman.models.transformer_layers import DecoderLayer, EncoderLayer
from dragoman.shapes import Float
from dragoman.text.piece_order import END, PADDING, UNKNOWN
from dragoman.weights import load_model

Quantisation = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16",
    "int8_bfloat16",
]  # fmt: skip

POSITIONS = 2048
"""Rows of the table of positions: CTranslate2 reads and writes no sentence that is longer."""

NO_WORD = -30_000.0
"""A logit that leaves the padding no probability, even in half precision."""

SUBWORDS = ("source.spm", "target.spm")
ACTIVATIONS = {
    "relu": "RELU",
    "swish": "SWISH",
    "gelu": "GELU",
    "gelu-sigmoid": "GELUSigmoid",
    "swiglu": "SWISH",
    "geglu": "GELU",
}


def export_ctranslate2(path: Path, out: Path, quantisation: Quantisation = "float32") -> None:
    """Write a model as a folder that CTranslate2 loads, with its subwords beside it.

    Parameters
    ----------
    path : Path
        The model folder.
    out : Path
        The new folder.
    quantisation : Quantisation
        How weights are stored.

    Notes
    -----
    CTranslate2 appends the end symbol to the source itself, and begins with the padding. With
    “int8” it must be told `compute_type`, or else chooses what the machine is quickest at.
    """
    folder = read_folder(path)
    check_for_ctranslate2(folder)
    check_new(out)
    with written_beside(out) as beside:
        write_ctranslate2(folder, beside, quantisation)


def write_ctranslate2(folder: ModelFolder, out: Path, quantisation: Quantisation) -> None:
    """Convert a model that passed the checks.

    Parameters
    ----------
    folder : ModelFolder
        The model.
    out : Path
        The new folder.
    quantisation : Quantisation
        How weights are stored.
    """
    spec = make_specification(folder)
    spec.validate()
    spec.optimize(quantization=quantisation)
    out.mkdir()
    spec.save(str(out))
    for name, side in zip(SUBWORDS, subwords_of(folder), strict=True):
        (out / name).write_bytes(side.to_bytes())


def import_specifications() -> ModuleType:
    """Import CTranslate2's specifications, or say how to install it.

    Returns
    -------
    ModuleType
        Its specifications.
    """
    try:
        import ctranslate2.specs
        import ctranslate2.specs.transformer_spec
    except ImportError:
        raise OptionError(
            "CTranslate2 is not installed; install it with “pip install dragoman[exchange]”"
        ) from None
    return ctranslate2.specs


def make_specification(folder: ModelFolder) -> Any:  # noqa: ANN401
    """Build the CTranslate2 specification of a model.

    Parameters
    ----------
    folder : ModelFolder
        The model.

    Returns
    -------
    Any
        A `TransformerSpec` that is filled but not validated.
    """
    specs = import_specifications()
    options = folder.options
    assert isinstance(options, TransformerOptions)
    model = load_model(folder)
    assert isinstance(model, Transformer)
    spec = specs.TransformerSpec.from_config(
        (options.num_encoder_layers, options.num_decoder_layers),
        options.num_heads,
        pre_norm=options.norm_position == "pre",
        activation=getattr(specs.Activation, ACTIVATIONS[options.feed_forward]),
        alignment_layer=-1,
        alignment_heads=0,
        ffn_glu=options.feed_forward in ("swiglu", "geglu"),
        rms_norm=options.norm == "rms",
    )
    _fill_encoder(spec.encoder, model)
    _fill_decoder(spec.decoder, model)
    source, target = (names_of(each, place=folder.path) for each in subwords_of(folder))
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token, spec.config.eos_token = UNKNOWN, END
    spec.config.bos_token = spec.config.decoder_start_token = PADDING
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = _epsilon_of(model)
    return spec


def _fill_encoder(spec: Any, model: Transformer) -> None:  # noqa: ANN401
    spec.embeddings[0].weight = _copy(model.source_embedding.words)
    spec.position_encodings.encodings = _position_table(model.source_embedding)
    if model.encoder_norm is not None:
        _fill_norm(spec.layer_norm, model.encoder_norm)
    for layer_spec, layer in zip(spec.layer, model.encoder, strict=True):
        _fill_layer(layer_spec, layer)


def _fill_decoder(spec: Any, model: Transformer) -> None:  # noqa: ANN401
    spec.embeddings.weight = _copy(model.target_embedding.words)
    spec.position_encodings.encodings = _position_table(model.target_embedding)
    if model.decoder_norm is not None:
        _fill_norm(spec.layer_norm, model.decoder_norm)
    for layer_spec, layer in zip(spec.layer, model.decoder, strict=True):
        _fill_layer(layer_spec, layer)
        _fill_attention(layer_spec.attention, layer.cross_attention)
        _fill_norm(layer_spec.attention.layer_norm, layer.cross_attention_norm.norm)
    output = model.output
    bias = np.zeros(len(output.words), np.float32) if output.bias is None else _copy(output.bias)
    bias[output.pad_id] = NO_WORD
    spec.projection.weight, spec.projection.bias = _copy(output.words), bias


def _fill_layer(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:  # noqa: ANN401
    """Fill the parts that encoder and decoder layers share."""
    attention, feed_forward = layer.self_attention, layer.feed_forward
    assert isinstance(attention, MultiheadAttention)
    assert isinstance(feed_forward, FeedForward)
    _fill_attention(spec.self_attention, attention)
    _fill_norm(spec.self_attention.layer_norm, layer.self_attention_norm.norm)
    _fill_linear(spec.ffn.linear_1, feed_forward.outer)
    if feed_forward.gate is None:
        _fill_linear(spec.ffn.linear_0, feed_forward.inner)
    else:
        _fill_linear(spec.ffn.linear_0, feed_forward.gate)
        _fill_linear(spec.ffn.linear_0_noact, feed_forward.inner)
    _fill_norm(spec.ffn.layer_norm, layer.feed_forward_norm.norm)


def _fill_attention(spec: Any, attention: MultiheadAttention) -> None:  # noqa: ANN401
    """Fill the projections; those with the same input are concatenated."""
    is_cross = len(spec.linear) == 3
    if is_cross:
        _fill_linear(spec.linear[0], attention.query)
        _fill_linear(spec.linear[1], attention.key, attention.value)
    else:
        _fill_linear(spec.linear[0], attention.query, attention.key, attention.value)
    _fill_linear(spec.linear[-1], attention.output)
    if not attention.scaled:
        spec.queries_scale = 1.0


def _fill_linear(spec: Any, *layers: nn.Linear) -> None:  # noqa: ANN401
    spec.weight = np.concatenate([_copy(each.weight) for each in layers])
    if layers[0].bias is not None:
        spec.bias = np.concatenate([_copy(each.bias) for each in layers])


def _fill_norm(spec: Any, norm: nn.Module) -> None:  # noqa: ANN401
    assert isinstance(norm, LayerNorm | RMSNorm)
    spec.gamma = _copy(norm.weight)
    if isinstance(norm, LayerNorm):
        spec.beta = _copy(norm.bias)


def _position_table(embedding: Embedding) -> Float[np.ndarray, "rows model_dim"]:
    """Write positional encodings out: CTranslate2's own differ."""
    positions = embedding.positions
    if positions is None:
        return np.zeros((POSITIONS, embedding.words.size(1)), np.float32)
    rows = len(positions.weight) if isinstance(positions, LearnedPositions) else POSITIONS
    return _copy(positions(0, rows, None))


def _epsilon_of(model: Transformer) -> float:
    """Find the epsilon that all norms share."""
    (epsilon,) = {each.epsilon for each in model.modules() if isinstance(each, LayerNorm | RMSNorm)}
    return epsilon


def _copy(weight: Tensor) -> np.ndarray:
    """Copy a weight, since quantisation writes in place."""
    return weight.detach().float().numpy().copy()
