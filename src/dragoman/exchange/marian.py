"""Import models of Marian (``.npz``), as OPUS-MT releases them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import FolderError, OptionError
from dragoman.exchange.foreign_files import MOST_VOCABULARY_BYTES
from dragoman.exchange.huggingface_layout import (
    OUTPUT,
    SOURCE,
    TARGET,
    check_tying,
    drop_zero_biases,
)
from dragoman.exchange.marian_files import (
    read_decoder_settings,
    read_npz,
    read_yaml_vocabulary,
)
from dragoman.exchange.names import build_vocabularies, list_pieces, names_by_id, own_order
from dragoman.exchange.sinusoid_layout import to_interleaved_sinusoids
from dragoman.exchange.unsupported import check_new
from dragoman.files import read_bounded, written_beside
from dragoman.folder import Facts, ModelFolder
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.options import from_plain, to_plain
from dragoman.text.piece_order import PADDING
from dragoman.weights import put_weights, vocabulary_of, write_model

ACTIVATIONS = {"relu": "relu", "swish": "swish", "gelu": "gelu-sigmoid"}
BLOCKS = {"self_attention": "self", "cross_attention": "context"}
ATTENTION = {"query": "q", "key": "k", "value": "v", "output": "o"}
NORMS = {("", "dan", ""): "post", ("n", "da", "n"): "pre"}
"""What Marian does before a sub-layer, after it, and at the end of a stack."""

MOST_DIGITS = 9
"""Of a number in Marian's options."""

DECODERS = {("self-attention", None): "full", ("rnn", "ssru"): "ssru"}
"""What the decoder remembers its words by, and in which cell if it is recurrent."""

REFUSED = {
    "transformer-ffn-depth": "2",
    "transformer-train-position-embeddings": "false",
    "transformer-no-projection": "false",
    "transformer-tied-layers": "[]",
    "transformer-no-bias": "false",
    "transformer-no-affine": "false",
    "transformer-rnn-projection": "false",
    "factors-combine": "sum",
    "lemma-dim-emb": "0",
}
"""Options that must have one value, if they are there at all."""


def import_marian(
    path: Path,
    out: Path,
    *,
    vocabularies: Sequence[Path] = (),
    source_language: str | None = None,
    target_language: str | None = None,
) -> None:
    """Convert a model of Marian to a model folder.

    Parameters
    ----------
    path : Path
        The ``.npz`` file, or a folder with one. SentencePiece models lie beside it: “source.spm”
        and “target.spm”, or one that is the vocabulary.
    out : Path
        The new model folder.
    vocabularies : Sequence[Path]
        The vocabulary, or that of the source and that of the target: “.yml”, or “.spm” where
        Marian counted by SentencePiece itself. None given: what the “.decoder.yml” beside the model
        names, or else the one that lies there.
    source_language : str | None
        Code of the language it translates from.
    target_language : str | None
        Code of the language it translates to.

    Notes
    -----
    Positions are Marian's, whose wavelengths differ a little from the paper's. What Marian adds to
    the variance in its norms, 1e-9, is 1e-5 here, which changes scores by some 1e-5.
    """
    file = _find_one(path, "*.npz") if path.is_dir() else path
    arrays, said = read_npz(file)
    options = _options_of(arrays, said, file)
    check_new(out)
    vocabularies = vocabularies or _named_vocabularies(file)
    names, models = _read_vocabularies(file.parent, vocabularies)
    place = str(vocabularies[0] if vocabularies else file.parent)
    orders = [own_order(each, place=place) for each in names]
    ordered = [[side[i] for i in order] for side, order in zip(names, orders, strict=True)]
    check_tying(options, orders, file)
    subwords = build_vocabularies(models, (ordered[0], ordered[1]), place=file.parent)
    weights = _weights_of(_Arrays(arrays, file), options, orders)
    weights, options = drop_zero_biases(weights, options, subwords.pad_id)
    folder = ModelFolder(
        path=out,
        config={"model": to_plain(options), "text": {"joint": names[0] == names[1]}},
        options=options,
        vocabularies=subwords,
        facts=Facts(
            source_language=source_language,
            target_language=target_language,
            weights="imported from Marian",
        ),
    )
    model = build_model(options, vocabulary_of(subwords))
    put_weights(model, weights, file)
    with written_beside(out) as beside:
        write_model(beside, folder, model)


class _Arrays:
    """Marian's weights, each taken once and checked for its shape."""

    def __init__(self, arrays: dict[str, np.ndarray], place: Path) -> None:
        self._arrays = dict(arrays)
        self._place = place

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def take(self, name: str, *shape: int) -> Tensor:
        """Take a weight, or raise an error that names it."""
        if name not in self._arrays:
            raise FolderError(f"{self._place}: lacks “{name}”; get the model again")
        found = self._arrays[name]
        if found.shape != shape:
            raise FolderError(
                f"{self._place}: “{name}” has shape {found.shape}, not {shape}; get the model again"
            )
        del self._arrays[name]
        return torch.from_numpy(found.astype(np.float32))

    def check_all_taken(self) -> None:
        """Refuse a model with weights that were not taken."""
        if self._arrays:
            name = min(self._arrays)
            raise FolderError(f"{self._place}: holds “{name}”, which is not supported here")


def _options_of(
    arrays: Mapping[str, np.ndarray], said: Mapping[str, str], place: Path
) -> TransformerOptions:
    """Read a model's options, refusing what is not supported."""
    wanted = {"type": "transformer"} | {name: REFUSED[name] for name in REFUSED if name in said}
    for name, value in wanted.items():
        if said.get(name) != value:
            raise FolderError(f"{place}: {name} is “{said.get(name)}”, which is not supported here")
    steps = tuple(
        said.get(f"transformer-{name}", "").replace("~", "")
        for name in ("preprocess", "postprocess", "postprocess-top")
    )
    if steps not in NORMS or "n" in said.get("transformer-postprocess-emb", ""):
        spelt = ", ".join(f"“{step}”" for step in steps)
        raise FolderError(
            f"{place}: normalises in an order that is not supported here (before, after and at "
            f"the top: {spelt})"
        )
    activation = said.get("transformer-ffn-activation", "swish")
    if activation not in ACTIVATIONS:
        raise FolderError(f"{place}: transformer-ffn-activation is “{activation}”, not supported")
    memory = said.get("transformer-decoder-autoreg", "self-attention")
    cell = said.get("dec-cell") if memory == "rnn" else None
    if (memory, cell) not in DECODERS:
        what = memory if cell is None else f"{memory}, with the cell “{cell}”"
        raise FolderError(
            f"{place}: transformer-decoder-autoreg is “{what}”, which is not supported here"
        )
    has_output = any(f"decoder_ff_logit_out_{name}" in arrays for name in ("W", "Wt"))
    tied = "none" if has_output else "all" if "Wemb" in arrays else "target"
    plain = {
        "num_encoder_layers": said.get("enc-depth"),
        "num_decoder_layers": said.get("dec-depth"),
        "model_dim": said.get("dim-emb"),
        "feed_forward_dim": said.get("transformer-dim-ffn"),
        "num_heads": said.get("transformer-heads"),
    }
    for name, text in plain.items():
        if text is None or not text.isdecimal() or len(text) > MOST_DIGITS:
            raise FolderError(f"{place}: does not say {name} as a number; get the model again")
    shape = {name: int(text or 0) for name, text in plain.items()}
    rest = {
        "feed_forward": ACTIVATIONS[activation],
        "norm_position": NORMS[steps],
        "decoder_attention": DECODERS[memory, cell],
        "positions": "marian",
        "tied_embeddings": tied,
        "attention_bias": True,
        "output_bias": True,
    }
    try:
        return from_plain(TransformerOptions, shape | rest, place=str(place))
    except OptionError as error:
        raise FolderError(f"{place}: {error}") from None


def _weights_of(
    arrays: _Arrays, options: TransformerOptions, orders: Sequence[list[int]]
) -> dict[str, Tensor]:
    """Convert all weights to our names."""
    found = dict(_words_of(arrays, options, orders))
    for stack, count in (
        ("encoder", options.num_encoder_layers),
        ("decoder", options.num_decoder_layers),
    ):
        for layer_index in range(count):
            found |= _layer_of(arrays, options, stack, layer_index)
        if options.norm_position == "pre":
            found |= _norm_of(arrays, options, f"{stack}_norm", f"{stack}_top", "")
    arrays.check_all_taken()
    return to_interleaved_sinusoids(found)


def _words_of(
    arrays: _Arrays, options: TransformerOptions, orders: Sequence[list[int]]
) -> Iterator[tuple[str, Tensor]]:
    """Convert embeddings and output layer, adding a zero row for the padding."""
    width, num_target = options.model_dim, len(orders[1]) - 1
    sides = ((SOURCE, "encoder", orders[0]), (TARGET, "decoder", orders[1]))
    for ours, stack, order in sides[: 1 if options.tied_embeddings == "all" else 2]:
        name = "Wemb" if "Wemb" in arrays else f"{stack}_Wemb"
        yield ours, _with_padding(arrays.take(name, len(order) - 1, width), order)
    if options.tied_embeddings == "none":
        if "decoder_ff_logit_out_W" in arrays:
            matrix = arrays.take("decoder_ff_logit_out_W", width, num_target).t()
        else:
            matrix = arrays.take("decoder_ff_logit_out_Wt", num_target, width)
        yield OUTPUT, _with_padding(matrix, orders[1])
    bias = torch.zeros(num_target)
    if "decoder_ff_logit_out_b" in arrays:
        bias = arrays.take("decoder_ff_logit_out_b", 1, num_target)[0]
    yield "output.bias", _with_padding(bias, orders[1])


def _with_padding(rows: Tensor, order: list[int]) -> Tensor:
    return torch.cat([rows, torch.zeros_like(rows[:1])])[torch.tensor(order)]


def _layer_of(
    arrays: _Arrays, options: TransformerOptions, stack: str, layer_index: int
) -> dict[str, Tensor]:
    """Convert the weights of one layer."""
    ours, theirs = f"{stack}.{layer_index}", f"{stack}_l{layer_index + 1}"
    width, inner = options.model_dim, options.feed_forward_dim
    suffix = "_pre" if options.norm_position == "pre" else ""
    found: dict[str, Tensor] = {}

    def linear(name: str, other: str, letter: str, inputs: int, outputs: int) -> None:
        weight = arrays.take(f"{theirs}_{other}_W{letter}", inputs, outputs)
        bias = arrays.take(f"{theirs}_{other}_b{letter}", 1, outputs)
        found[f"{ours}.{name}.weight"] = weight.t().contiguous()
        found[f"{ours}.{name}.bias"] = bias[0]

    is_cell = options.is_recurrent and stack == "decoder"
    if is_cell:
        cell = f"{ours}.self_attention"
        for part, letter in (("forget", "Wf"), ("update", "W")):
            weight = arrays.take(f"{theirs}_rnn_{letter}", width, width)
            found[f"{cell}.{part}.weight"] = weight.t().contiguous()
        found[f"{cell}.forget.bias"] = arrays.take(f"{theirs}_rnn_bf", 1, width)[0]
        found |= _norm_of(
            arrays, options, f"{cell}_norm.norm", f"{theirs}_rnn{'' if suffix else '_ffn'}", suffix
        )
    for block, other in BLOCKS.items():
        is_there = not is_cell if block == "self_attention" else stack == "decoder"
        if is_there:
            for part, letter in ATTENTION.items():
                linear(f"{block}.{part}", other, letter, width, width)
            name = f"{ours}.{block}_norm.norm"
            found |= _norm_of(arrays, options, name, f"{theirs}_{other}_Wo", suffix)
    linear("feed_forward.inner", "ffn", "1", width, inner)
    linear("feed_forward.outer", "ffn", "2", inner, width)
    name = f"{ours}.feed_forward_norm.norm"
    return found | _norm_of(arrays, options, name, f"{theirs}_ffn_ffn", suffix)


def _norm_of(
    arrays: _Arrays, options: TransformerOptions, ours: str, theirs: str, suffix: str
) -> dict[str, Tensor]:
    parts = {"weight": "scale", "bias": "bias"}
    return {
        f"{ours}.{part}": arrays.take(f"{theirs}_ln_{other}{suffix}", 1, options.model_dim)[0]
        for part, other in parts.items()
    }


def _read_vocabularies(
    folder: Path, given: Sequence[Path]
) -> tuple[tuple[list[str], list[str]], tuple[bytes, bytes]]:
    """Read the names by id and the SentencePiece models of both sides."""
    if len(given) > 2:
        raise OptionError("--vocabulary: give one for both sides, or that of each")
    files = list(given) or _find_vocabularies(folder)
    sides = (files[0], files[-1])
    is_counted = [file.suffix != ".spm" for file in sides]
    models = tuple(
        read_bounded(
            folder / f"{side}.spm" if counted else file,
            MOST_VOCABULARY_BYTES,
            "put the SentencePiece model there",
        )
        for side, counted, file in zip(("source", "target"), is_counted, sides, strict=True)
    )
    names = []
    for file, counted, model in zip(sides, is_counted, models, strict=True):
        if counted:
            names.append(names_by_id(read_yaml_vocabulary(file), place=str(file)))
        else:
            names.append(_list_pieces(model, file))
    for each in names:
        # Marian has no padding: what is called so is an entry like any other.
        each[:] = [f"{name}?" if name == PADDING else name for name in each] + [PADDING]
    return (names[0], names[1]), (models[0], models[1])


def _named_vocabularies(file: Path) -> list[Path]:
    """List the vocabularies that the model's “.decoder.yml” names, if they exist."""
    settings = file.with_name(f"{file.name}.decoder.yml")
    if not settings.is_file():
        return []
    said = read_decoder_settings(settings).get("vocabs", "").strip("[] ")
    parts = re.split(r"\s*,\s*|(?:^|\s)-\s+", said)
    found = [file.with_name(Path(each.strip("\"' ")).name) for each in parts if each.strip()]
    return found if all(each.is_file() for each in found) else []


def _find_vocabularies(folder: Path) -> list[Path]:
    """Find the one vocabulary beside a model."""
    found = sorted({*folder.glob("*vocab*.yml"), *folder.glob("*vocab*.spm")})
    if len(found) != 1:
        many = f"{len(found)} vocabularies" if found else "no vocabulary (*vocab*.yml, *vocab*.spm)"
        raise FolderError(f"{folder}: has {many}; name the right one with --vocabulary")
    return found


def _find_one(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise FolderError(f"{folder}: has {len(found)} files {pattern}; name the one to import")
    return found[0]


def _list_pieces(model: bytes, place: Path) -> list[str]:
    pieces = list_pieces(model)
    if pieces is None:
        raise FolderError(f"{place}: is not a SentencePiece model, or damaged; get it again")
    return pieces
