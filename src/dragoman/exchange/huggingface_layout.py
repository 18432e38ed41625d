"""Map weights between our Transformer and MarianMT."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from dragoman.errors import FolderError
from dragoman.exchange.sinusoid_layout import (
    concatenated_order,
    to_concatenated_sinusoids,
    to_interleaved_sinusoids,
)
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import sinusoidal_positions
from dragoman.shapes import Float

NO_WORD = -30_000.0
"""A logit that leaves the padding no probability, even in half precision."""

ATTENTION = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
BLOCKS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
REST = {
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_norm.norm": "final_layer_norm",
}
ACTIVATIONS = {
    "relu": "relu",
    "swish": "swish",
    "silu": "swish",
    "gelu": "gelu",
    "quick_gelu": "gelu-sigmoid",
}
"""What MarianMT calls the feed-forward layers, of which these are those it shares with us."""

SOURCE, TARGET, OUTPUT = "source_embedding.words", "target_embedding.words", "output.words"
THEIR_WORDS = {
    SOURCE: ("model.encoder.embed_tokens.weight", "model.shared.weight"),
    TARGET: ("model.decoder.embed_tokens.weight", "model.shared.weight"),
    OUTPUT: ("lm_head.weight", "model.decoder.embed_tokens.weight", "model.shared.weight"),
}
BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
MAX_POSITIONS = 1024
"""Rows of the table of sinusoids, which MarianMT computes where a folder brings none."""
CLOSE = 1e-3
"""How far tables of sinusoids may be apart; half precision rounds by half of that."""
PRECISIONS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def layer_names(options: TransformerOptions) -> dict[str, str]:
    """Pair the weight names of all layers."""
    counts = {"encoder": options.num_encoder_layers, "decoder": options.num_decoder_layers}
    pairs = {}
    for stack, count in counts.items():
        parts = dict(REST)
        for block, other in BLOCKS.items():
            if block == "self_attention" or stack == "decoder":
                parts |= {f"{block}.{ours}": f"{other}.{each}" for ours, each in ATTENTION.items()}
                parts[f"{block}_norm.norm"] = f"{other}_layer_norm"
        for layer_index in range(count):
            for ours, theirs in parts.items():
                for kind in ("weight", "bias"):
                    name = f"model.{stack}.layers.{layer_index}.{theirs}.{kind}"
                    pairs[f"{stack}.{layer_index}.{ours}.{kind}"] = name
    return pairs


def to_huggingface(
    weights: Mapping[str, Tensor],
    options: TransformerOptions,
    orders: tuple[list[int], list[int]],
    pad_id: int,
) -> dict[str, Tensor]:
    """Convert a model's weights to MarianMT's.

    Parameters
    ----------
    weights : Mapping[str, Tensor]
        Ours, each tied matrix once.
    options : TransformerOptions
        The model's shape.
    orders : tuple[list[int], list[int]]
        For each of their ids ours, on the source's side and the target's.
    pad_id : int
        Our padding.
    """
    halves = to_concatenated_sinusoids(weights)
    source_order, target_order = (torch.tensor(order) for order in orders)
    theirs = {THEIR_WORDS[SOURCE][options.tied_embeddings == "all"]: halves[SOURCE][source_order]}
    if options.tied_embeddings != "all":
        theirs[THEIR_WORDS[TARGET][0]] = halves[TARGET][target_order]
    if options.tied_embeddings == "none":
        theirs[THEIR_WORDS[OUTPUT][0]] = halves[OUTPUT][target_order]
    bias = halves.get("output.bias", torch.zeros(len(target_order))).clone()
    bias[pad_id] = NO_WORD
    theirs[BIAS] = bias[target_order].unsqueeze(0)
    if options.positions == "marian":  # else transformers' own table is right
        table = _make_table(MAX_POSITIONS, options.model_dim, is_marians=True)
        theirs |= {name: table.clone() for name in POSITIONS}
    scale = 1.0 if options.scaled else options.head_key_dim**0.5
    for ours, name in layer_names(options).items():
        each = halves.get(ours)
        if each is None:
            each = torch.zeros(options.model_dim)
        theirs[name] = each * scale if ".query." in ours else each
    return {name: each.float().contiguous() for name, each in theirs.items()}


def from_huggingface(
    theirs: Mapping[str, Tensor],
    options: TransformerOptions,
    orders: tuple[list[int], list[int]],
    place: Path,
) -> dict[str, Tensor]:
    """Convert MarianMT's weights to ours.

    Parameters
    ----------
    theirs : Mapping[str, Tensor]
        Their weights.
    options : TransformerOptions
        The model's shape, with biases.
    orders : tuple[list[int], list[int]]
        For each of our ids theirs, on the source's side and the target's.
    place : Path
        Where they come from, for error messages.
    """
    num_layers = options.num_encoder_layers + options.num_decoder_layers
    if num_layers > len(theirs):  # before as many names are made
        raise FolderError(
            f"{place}: has {len(theirs)} weights, too few for the {num_layers} layers of "
            "config.json; get the model again"
        )
    pairs = layer_names(options)
    known = {BIAS, *pairs.values(), *(name for names in THEIR_WORDS.values() for name in names)}
    for name in theirs:
        if name not in known and name not in POSITIONS:
            raise FolderError(f"{place}: holds “{name}”, which no MarianMT model has")
    tied = {"all": (SOURCE,), "target": (SOURCE, TARGET), "none": (SOURCE, TARGET, OUTPUT)}
    found = {}
    for ours in tied[options.tied_embeddings]:
        order = orders[ours != SOURCE]
        shape = (len(order), options.model_dim)
        found[ours] = _take(theirs, THEIR_WORDS[ours], shape, place)[torch.tensor(order)]
    bias = _take(theirs, (BIAS,), (1, len(orders[1])), place)
    found["output.bias"] = bias[0][torch.tensor(orders[1])]
    for ours, name in pairs.items():
        found[ours] = _take(theirs, (name,), _shape_of(ours, options), place)
    return to_interleaved_sinusoids(found)


def read_positions(
    theirs: Mapping[str, Tensor], model_dim: int, place: Path
) -> Literal["sinusoidal", "marian"]:
    """Find which sinusoids a model has, from the tables that may lie among its weights.

    Parameters
    ----------
    theirs : Mapping[str, Tensor]
        Their weights.
    model_dim : int
        The model's width.
    place : Path
        Where they come from, for error messages.
    """
    is_marians = False
    for name in POSITIONS:
        if name not in theirs:
            continue
        shape = (*theirs[name].shape[:1], model_dim)
        found = _take(theirs, (name,), shape, place)[:MAX_POSITIONS]
        kinds = []
        for kind in (False, True):
            expected = _make_table(len(found), model_dim, is_marians=kind)
            if torch.allclose(found, expected, atol=CLOSE):
                kinds.append(kind)
        if not kinds or (name != POSITIONS[0] and is_marians != kinds[0]):
            raise FolderError(
                f"{place}: “{name}” has other positions than sinusoids, not supported"
            )
        is_marians = kinds[0]
    return "marian" if is_marians else "sinusoidal"


def _make_table(rows: int, model_dim: int, *, is_marians: bool) -> Float[Tensor, "rows model_dim"]:
    """Make a table of sinusoids, sines before cosines."""
    table = sinusoidal_positions(0, rows, model_dim, is_inclusive=is_marians)
    return table[:, concatenated_order(model_dim)]


def check_tying(options: TransformerOptions, orders: Sequence[list[int]], place: Path) -> None:
    """Refuse a tied matrix that would need two orders of ids.

    Parameters
    ----------
    options : TransformerOptions
        The model's shape.
    orders : Sequence[list[int]]
        For each of our ids theirs, on the source's side and the target's.
    place : Path
        The model, for error messages.
    """
    if options.tied_embeddings == "all" and orders[0] != orders[1]:
        raise FolderError(f"{place}: one matrix serves two vocabularies; give one vocabulary")


def drop_zero_biases(
    weights: Mapping[str, Tensor], options: TransformerOptions, pad_id: int
) -> tuple[dict[str, Tensor], TransformerOptions]:
    """Drop biases that are all zero, where options allow."""
    names = [name for name in weights if "attention." in name and name.endswith(".bias")]
    output = weights["output.bias"].clone()
    output[pad_id] = 0
    options = replace(
        options,
        attention_bias=any(bool(weights[name].any()) for name in names),
        output_bias=bool(output.any()),
    )
    dropped = set() if options.attention_bias else set(names)
    kept = {name: each for name, each in weights.items() if name not in dropped}
    kept["output.bias"] = output
    if not options.output_bias:
        del kept["output.bias"]
    return kept, options


def _shape_of(name: str, options: TransformerOptions) -> tuple[int, ...]:
    """Compute the shape of one of our layer weights."""
    *_, part, kind = name.split(".")
    width, inner = options.model_dim, options.feed_forward_dim
    if part == "inner":
        return (inner, width) if kind == "weight" else (inner,)
    if part == "outer" and kind == "weight":
        return (width, inner)
    return (width, width) if part in ATTENTION and kind == "weight" else (width,)


def _take(
    theirs: Mapping[str, Tensor], names: tuple[str, ...], shape: tuple[int, ...], place: Path
) -> Tensor:
    """Take the first weight present among some names, and check its shape."""
    name = next((each for each in names if each in theirs), None)
    if name is None:
        raise FolderError(f"{place}: lacks “{names[-1]}”; get the model again")
    if theirs[name].shape != shape:
        found = tuple(theirs[name].shape)
        raise FolderError(f"{place}: “{name}” has shape {found}, not {shape}; get the model again")
    if theirs[name].dtype not in PRECISIONS:
        raise FolderError(
            f"{place}: “{name}” is stored as {theirs[name].dtype}; give the model in 32 or 16 bits"
        )
    return theirs[name].float()
