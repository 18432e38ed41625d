"""Convert the weights of a Marian model to ours."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dragoman.errors import FolderError
from dragoman.exchange.huggingface_layout import OUTPUT, SOURCE, TARGET
from dragoman.exchange.marian_options import MarianOptions
from dragoman.exchange.sinusoid_layout import to_interleaved_sinusoids
from dragoman.models.options import TransformerOptions

BLOCKS = {"self_attention": "self", "cross_attention": "context"}
ATTENTION = {"query": "q", "key": "k", "value": "v", "output": "o"}
NORMS = {
    "layer": {"weight": "ln_scale", "bias": "ln_bias"},
    "rms": {"weight": "rms_scale"},
}


class Arrays:
    """Marian's weights, checked for their shapes; what was not used is told at the end.

    Parameters
    ----------
    arrays : Mapping[str, np.ndarray]
        Floating-point numbers by Marian's names.
    place : Path
        The model, for error messages.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], place: Path) -> None:
        self._arrays = arrays
        self._place = place
        self._used: set[str] = set()

    def tying(self) -> str:
        """Say which matrices of words are one."""
        if any(f"decoder_ff_logit_out_{name}" in self._arrays for name in ("W", "Wt")):
            return "none"
        return "all" if "Wemb" in self._arrays else "target"

    def num_words(self) -> tuple[int, int]:
        """Count the words of both sides."""
        counts = []
        for name in map(self.words_name, ("encoder", "decoder")):
            shape = self._find(name).shape
            if len(shape) != 2:
                raise FolderError(
                    f"{self._place}: “{name}” has shape {shape}, not a row for each word; get the "
                    "model again"
                )
            counts.append(shape[0])
        return counts[0], counts[1]

    def words_name(self, stack: str) -> str:
        """Name the word vectors of a stack."""
        return "Wemb" if "Wemb" in self._arrays else f"{stack}_Wemb"

    def take(self, name: str, *shape: int) -> Tensor:
        """Take a weight, or raise an error that names it."""
        found = self._find(name)
        if found.shape != shape:
            raise FolderError(
                f"{self._place}: “{name}” has shape {found.shape}, not {shape}; get the model again"
            )
        self._used.add(name)
        return torch.from_numpy(found.astype(np.float32))

    def take_if_there(self, name: str, *shape: int) -> Tensor | None:
        """Take a weight that not every model has."""
        return self.take(name, *shape) if name in self._arrays else None

    def check_all_taken(self) -> None:
        """Refuse a model with weights that were not taken."""
        left = self._arrays.keys() - self._used
        if left:
            raise FolderError(f"{self._place}: holds “{min(left)}”, which is not supported here")

    def _find(self, name: str) -> np.ndarray:
        if name not in self._arrays:
            raise FolderError(f"{self._place}: lacks “{name}”; get the model again")
        return self._arrays[name]


def convert_weights(
    arrays: Arrays, options: MarianOptions, orders: Sequence[list[int]]
) -> dict[str, Tensor]:
    """Convert all weights to our names.

    Parameters
    ----------
    arrays : Arrays
        Marian's.
    options : MarianOptions
        What they mean.
    orders : Sequence[list[int]]
        For each of our ids Marian's, on the source's side and the target's; its last is the
        padding, which Marian does not have.
    """
    model = options.model
    found = dict(_convert_words(arrays, model, orders))
    layers: dict[str, Sequence[int]] = {
        "encoder": range(1, model.num_encoder_layers + 1),
        "decoder": options.decoder_layers or range(1, model.num_decoder_layers + 1),
    }
    for stack, numbers in layers.items():
        for layer_index, number in enumerate(numbers):
            found |= _convert_layer(arrays, options, stack, layer_index, number)
        if model.norm_position == "pre":
            found |= _convert_norm(arrays, model, f"{stack}_norm", f"{stack}_top", "")
    arrays.check_all_taken()
    if model.positions == "none":
        scale_words(found, model, model.model_dim**-0.5)
    return to_interleaved_sinusoids(_widen(found, model.feed_forward_dim))


def _convert_words(
    arrays: Arrays, model: TransformerOptions, orders: Sequence[list[int]]
) -> Iterator[tuple[str, Tensor]]:
    """Convert embeddings and output layer, adding a zero row for the padding."""
    width, num_target = model.model_dim, len(orders[1]) - 1
    sides = ((SOURCE, "encoder", orders[0]), (TARGET, "decoder", orders[1]))
    for ours, stack, order in sides[: 1 if model.tied_embeddings == "all" else 2]:
        words = arrays.take(arrays.words_name(stack), len(order) - 1, width)
        yield ours, _with_padding(words, order)
    if model.tied_embeddings == "none":
        matrix = arrays.take_if_there("decoder_ff_logit_out_W", width, num_target)
        if matrix is None:
            matrix = arrays.take("decoder_ff_logit_out_Wt", num_target, width).t()
        yield OUTPUT, _with_padding(matrix.t(), orders[1])
    bias = arrays.take_if_there("decoder_ff_logit_out_b", 1, num_target)
    row = torch.zeros(num_target) if bias is None else bias[0]
    yield "output.bias", _with_padding(row, orders[1])


def _with_padding(rows: Tensor, order: list[int]) -> Tensor:
    return torch.cat([rows, torch.zeros_like(rows[:1])])[torch.tensor(order)]


def _convert_layer(
    arrays: Arrays, options: MarianOptions, stack: str, layer_index: int, number: int
) -> dict[str, Tensor]:
    """Convert the weights of one layer."""
    ours, theirs = f"{stack}.{layer_index}", f"{stack}_l{number}"
    model, width = options.model, options.model.model_dim
    suffix = "_pre" if model.norm_position == "pre" else ""
    found: dict[str, Tensor] = {}

    def linear(name: str, other: str, letter: str, inputs: int, outputs: int) -> None:
        weight = arrays.take(f"{theirs}_{other}_W{letter}", inputs, outputs)
        bias = arrays.take(f"{theirs}_{other}_b{letter}", 1, outputs)
        found[f"{ours}.{name}.weight"] = weight.t().contiguous()
        found[f"{ours}.{name}.bias"] = bias[0]

    def norm(name: str, other: str) -> None:
        found.update(_convert_norm(arrays, model, f"{ours}.{name}_norm.norm", other, suffix))

    is_cell = model.is_recurrent and stack == "decoder"
    if is_cell:
        found |= _convert_cell(arrays, width, f"{ours}.self_attention", f"{theirs}_rnn")
        norm("self_attention", f"{theirs}_rnn{'' if suffix else '_ffn'}")
    for block, other in BLOCKS.items():
        is_there = not is_cell if block == "self_attention" else stack == "decoder"
        if is_there:
            for part, letter in ATTENTION.items():
                if part != "output" or options.has_projection:
                    linear(f"{block}.{part}", other, letter, width, width)
                else:  # the heads go out as they are
                    found[f"{ours}.{block}.{part}.weight"] = torch.eye(width)
                    found[f"{ours}.{block}.{part}.bias"] = torch.zeros(width)
            norm(block, f"{theirs}_{other}_Wo")
    inner = options.decoder_inner if stack == "decoder" else options.encoder_inner
    linear("feed_forward.inner", "ffn", "1", width, inner)
    linear("feed_forward.outer", "ffn", "2", inner, width)
    norm("feed_forward", f"{theirs}_ffn_ffn")
    return found


def _convert_cell(arrays: Arrays, width: int, ours: str, theirs: str) -> dict[str, Tensor]:
    """Convert a recurrent cell."""
    return {
        f"{ours}.forget.weight": arrays.take(f"{theirs}_Wf", width, width).t().contiguous(),
        f"{ours}.forget.bias": arrays.take(f"{theirs}_bf", 1, width)[0],
        f"{ours}.update.weight": arrays.take(f"{theirs}_W", width, width).t().contiguous(),
    }


def _convert_norm(
    arrays: Arrays, model: TransformerOptions, ours: str, theirs: str, suffix: str
) -> dict[str, Tensor]:
    return {
        f"{ours}.{part}": arrays.take(f"{theirs}_{other}{suffix}", 1, model.model_dim)[0]
        for part, other in NORMS[model.norm].items()
    }


def _widen(weights: Mapping[str, Tensor], inner: int) -> dict[str, Tensor]:
    """Fill narrower feed-forward layers up with units that are always 0."""
    widened = dict(weights)
    for name, each in weights.items():
        if ".feed_forward.inner." in name:
            missing = (0, 0) * (each.dim() - 1) + (0, inner - len(each))
            widened[name] = functional.pad(each, missing)
        elif name.endswith(".feed_forward.outer.weight"):
            widened[name] = functional.pad(each, (0, inner - each.size(1)))
    return widened


def scale_words(weights: dict[str, Tensor], model: TransformerOptions, scale: float) -> None:
    """Scale word vectors without changing what comes out, for where one side multiplies by √d.

    Parameters
    ----------
    weights : dict[str, Tensor]
        All weights by our names, to be changed.
    model : TransformerOptions
        Their model.
    scale : float
        What to multiply word vectors by. Where the output layer has the same matrix, the last norm
        before it is divided by that.
    """
    for name in weights.keys() & {SOURCE, TARGET}:
        weights[name] = weights[name] * scale
    if model.tied_embeddings != "none":
        last = f"decoder.{model.num_decoder_layers - 1}.feed_forward_norm.norm"
        last = "decoder_norm" if model.norm_position == "pre" else last
        for name in weights.keys() & {f"{last}.weight", f"{last}.bias"}:
            weights[name] = weights[name] / scale
