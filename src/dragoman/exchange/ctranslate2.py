"""Export to CTranslate2, through the specifications of its own package, imported when needed."""

from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from dragoman.errors import OptionError
from dragoman.exchange.ctranslate2_layout import (
    ACTIVATIONS,
    GATED,
    WORDS,
    attention_layers,
    linear_layers,
    norms,
    stored_words,
)
from dragoman.exchange.names import names_of
from dragoman.exchange.unsupported import check_for_ctranslate2, check_new, subwords_of
from dragoman.files import written_beside
from dragoman.folder import ModelFolder, read_folder
from dragoman.models.layers.embedding import Embedding
from dragoman.models.layers.normalisation import LayerNorm, RMSNorm
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import LearnedPositions
from dragoman.models.transformer import Transformer
from dragoman.shapes import Float
from dragoman.text.piece_order import END, PADDING, UNKNOWN
from dragoman.weights import load_model, weights_of

Quantisation = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16",
    "int8_bfloat16",
]  # fmt: skip

POSITIONS = 2048
"""Rows of the table of positions: CTranslate2 reads and writes no sentence that is longer."""

NO_WORD = -30_000.0
"""A logit that leaves the padding no probability, even in half precision."""

SUBWORDS = ("source.spm", "target.spm")


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
        activation=specs.Activation(ACTIVATIONS[options.feed_forward]),
        alignment_layer=-1,
        alignment_heads=0,
        ffn_glu=options.feed_forward in GATED,
        rms_norm=options.norm == "rms",
    )
    _fill(spec, model, options, specs.model_spec.index_spec)
    source, target = (names_of(each, place=folder.path) for each in subwords_of(folder))
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token, spec.config.eos_token = UNKNOWN, END
    spec.config.bos_token = spec.config.decoder_start_token = PADDING
    spec.config.add_source_eos = options.source_end
    spec.config.layer_norm_epsilon = _epsilon_of(model)
    return spec


def _fill(
    spec: Any,  # noqa: ANN401
    model: Transformer,
    options: TransformerOptions,
    find: Callable[[Any, str], Any],
) -> None:
    """Fill a specification with a model's weights."""
    weights = weights_of(model)

    def take(names: Iterable[str]) -> np.ndarray:
        """Copy weights, since quantisation writes in place."""
        return np.concatenate([weights[name].float().numpy() for name in names])

    for ours, theirs in WORDS.items():
        find(spec, theirs).weight = take([stored_words(ours, options.tied_embeddings)])
    for theirs, parts in linear_layers(options).items():
        layer = find(spec, theirs)
        layer.weight = take(f"{part}.weight" for part in parts)
        if f"{parts[0]}.bias" in weights:
            layer.bias = take(f"{part}.bias" for part in parts)
    for theirs, ours in norms(options).items():
        norm = find(spec, theirs)
        norm.gamma = take([f"{ours}.weight"])
        if options.norm == "layer":
            norm.beta = take([f"{ours}.bias"])
    for theirs in attention_layers(options) if not options.scaled else []:
        find(spec, theirs).queries_scale = 1.0
    for stack, embedding in (
        ("encoder", model.source_embedding),
        ("decoder", model.target_embedding),
    ):
        find(spec, stack).position_encodings.encodings = _position_table(embedding)
    projection = spec.decoder.projection
    bias = take(["output.bias"]) if options.output_bias else np.zeros(len(projection.weight), "f4")
    bias[model.pad_id] = NO_WORD
    projection.bias = bias


def _position_table(embedding: Embedding) -> Float[np.ndarray, "rows model_dim"]:
    """Write positional encodings out: CTranslate2's own differ."""
    positions = embedding.positions
    if positions is None:
        return np.zeros((POSITIONS, embedding.words.size(1)), np.float32)
    rows = len(positions.weight) if isinstance(positions, LearnedPositions) else POSITIONS
    return positions(0, rows, None).detach().float().numpy().copy()


def _epsilon_of(model: Transformer) -> float:
    """Find the epsilon that all norms share."""
    (epsilon,) = {each.epsilon for each in model.modules() if isinstance(each, LayerNorm | RMSNorm)}
    return epsilon
