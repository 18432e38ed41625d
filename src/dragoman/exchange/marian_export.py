"""Export to Marian and Bergamot: a model beside SentencePiece models as vocabularies."""

import json
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from dragoman.errors import FolderError
from dragoman.exchange.huggingface_layout import NO_WORD
from dragoman.exchange.marian_binary import BERGAMOT8, INTGEMM8, write_binary
from dragoman.exchange.marian_files import CONFIG
from dragoman.exchange.marian_weights import ATTENTION, BLOCKS, NORMS, scale_words
from dragoman.exchange.sinusoid_layout import to_concatenated_sinusoids
from dragoman.exchange.unsupported import check_for_marian, check_new, subwords_of
from dragoman.files import written_beside
from dragoman.folder import ModelFolder, read_folder
from dragoman.models.options import TransformerOptions
from dragoman.text.piece_order import drop_padding
from dragoman.text.specification import SPACE_MARK
from dragoman.text.subwords import Subwords
from dragoman.text.whole_words import has_whole_words
from dragoman.weights import load_model, weights_of

Container = Literal["npz", "bin", "intgemm8", "bergamot"]
"""The files of Marian: NumPy's, binary in float32, binary in eight bits, and Bergamot's."""
MATRICES: dict[Container, int | None] = {"bin": None, "intgemm8": INTGEMM8, "bergamot": BERGAMOT8}
"""The type of matrices in each binary one."""
BIAS = "decoder_ff_logit_out_b"
BERGAMOT_INPUTS, BERGAMOT_OUTPUTS = 64, 8
VOCABULARIES = ("source", "target")

# Marian asks a model for all of these, those without meaning for it too.
_FIXED: dict[str, object] = {
    "type": "transformer",
    "version": "v1.12.1",
    "enc-type": "bidirectional",
    "enc-cell": "gru",
    "enc-cell-depth": 1,
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "skip": False,
    "layer-normalization": False,
    "right-left": False,
    "input-types": [],
    "tied-embeddings-src": False,
    "output-omit-bias": False,
    "factors-combine": "sum",
    "factors-dim-emb": 0,
    "lemma-dim-emb": 0,
    "lemma-dependency": "",
    "transformer-decoder-dim-ffn": 0,
    "transformer-ffn-depth": 2,
    "transformer-decoder-ffn-depth": 0,
    "transformer-aan-depth": 2,
    "transformer-aan-activation": "swish",
    "transformer-aan-nogate": False,
    "transformer-rnn-projection": False,
    "transformer-no-projection": False,
    "transformer-no-bias": False,
    "transformer-no-affine": False,
    "transformer-pool": False,
    "transformer-tied-layers": [],
    "transformer-guided-alignment-layer": "last",
    "transformer-postprocess-emb": "d",
    "transformer-train-position-embeddings": False,
    "bert-train-type-embeddings": True,
    "bert-type-vocab-size": 2,
    "ulr": False,
    "ulr-dim-emb": 0,
    "ulr-trainable-transformation": False,
}
_BLOCKS = BLOCKS | {"feed_forward": "ffn"}
_PARTS = ATTENTION | {"inner": "1", "outer": "2"}
_CELL = {"forget.weight": "Wf", "forget.bias": "bf", "update.weight": "W"}


def export_marian(path: Path, out: Path, container: Container = "npz") -> None:
    """Write a model as a folder that Marian decodes with.

    Parameters
    ----------
    path : Path
        The model folder.
    out : Path
        The new folder: “model.npz” or “model.bin”, its vocabularies, and the settings of
        marian-decoder.
    container : Container
        Which file holds the weights. “bergamot” is what Bergamot's runtime reads, whose embeddings
        are in eight bits too; Marian does not read it.

    Notes
    -----
    What Marian adds to the variance in its norms, 1e-6, is less than what models here add that say
    nothing else, 1e-5, which changes scores by some 1e-5. Its decoder does not normalise the keys
    of pre-norm models after the first word, as its trainer and its scorer do, so with such a model
    it may write something else. In eight bits a matrix has one multiplier there: a model that
    Marian quantised comes back as it was.
    """
    folder = read_folder(path)
    options = check_for_marian(folder)
    check_new(out)
    arrays = _list_arrays(folder, options)
    sizes = [len(each) - 1 for each in folder.vocabularies]  # Marian knows no padding
    if container == "bergamot":
        _check_for_bergamot(path, options)
        sizes = _pad_words(arrays, sizes)
    described = _describe(options, sizes).items()
    text = "".join(f"{name}: {_spell(value)}\n" for name, value in described)
    arrays[CONFIG] = np.frombuffer(text.encode() + b"\0", np.int8)
    model = "model.npz" if container == "npz" else "model.bin"
    with written_beside(out) as beside:
        beside.mkdir()
        if container == "npz":
            np.savez(beside / model, **arrays)  # type: ignore[arg-type]
        else:
            write_binary(beside / model, arrays, quantised=MATRICES[container])
        names = []
        for stem, side in zip(VOCABULARIES, subwords_of(folder), strict=True):
            suffix, contents = _write_vocabulary(side)
            names.append(f"{stem}{suffix}")
            (beside / names[-1]).write_bytes(contents)
        search: dict[str, object] = {
            "models": [model], "vocabs": names, "relative-paths": True, "beam-size": 4,
            "normalize": 0.6,
        }  # fmt: skip
        if container == "bergamot":
            search |= {"beam-size": 1, "skip-cost": True, "gemm-precision": "int8shift"}
        lines = [f"{name}: {_spell(value)}\n" for name, value in search.items()]
        (beside / f"{model}.decoder.yml").write_text("".join(lines), encoding="utf-8")


def _check_for_bergamot(path: Path, options: TransformerOptions) -> None:
    """Refuse widths that Bergamot's products in eight bits cannot compute."""
    widths = (options.model_dim, options.feed_forward_dim)
    if any(width % BERGAMOT_INPUTS for width in widths):
        raise FolderError(
            f"{path}: is {widths[0]} and {widths[1]} wide, but Bergamot needs multiples of "
            f"{BERGAMOT_INPUTS}; nothing is written"
        )


def _pad_words(arrays: dict[str, np.ndarray], sizes: list[int]) -> list[int]:
    """Add target words that are never written until Bergamot can compute their scores.

    Returns
    -------
    list[int]
        The new sizes of the vocabularies.
    """
    more = -sizes[1] % BERGAMOT_OUTPUTS
    for name, axis in (("Wemb", 0), ("decoder_Wemb", 0), ("decoder_ff_logit_out_W", 1), (BIAS, 1)):
        if name in arrays:
            room = [(0, more if axis == each else 0) for each in (0, 1)]
            fill = NO_WORD if name == BIAS else 0.0
            arrays[name] = np.pad(arrays[name], room, constant_values=fill)
    return [size + more if "Wemb" in arrays else size for size in sizes[:1]] + [sizes[1] + more]


def _write_vocabulary(subwords: Subwords) -> tuple[str, bytes]:
    """Write a vocabulary: a SentencePiece model, or the list of whole words that it stands for."""
    model = drop_padding(subwords.to_bytes())
    if not has_whole_words(model):
        return ".spm", model
    kept = [i for i in range(len(subwords)) if i != subwords.pad_id]
    names = [name.removeprefix(SPACE_MARK) for name in subwords.pieces(kept)]
    lines = (f"{json.dumps(name, ensure_ascii=False)}: {i}\n" for i, name in enumerate(names))
    return ".yml", "".join(lines).encode()


def _spell(value: object) -> str:
    """Write a YAML value."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(map(_spell, value))}]"
    return f'"{value}"' if value == "" else str(value)


def _describe(options: TransformerOptions, sizes: list[int]) -> dict[str, object]:
    """List the options that Marian reads from a model."""
    is_pre, tied = options.norm_position == "pre", options.tied_embeddings
    norm = {"layer": "n", "rms": "r"}[options.norm]
    return _FIXED | {
        "dim-vocabs": sizes,
        "dim-emb": options.model_dim,
        "dim-rnn": options.model_dim,
        "enc-depth": options.num_encoder_layers,
        "dec-depth": options.num_decoder_layers,
        "dec-cell": "ssru" if options.is_recurrent else "gru",
        "tied-embeddings": tied == "target",
        "tied-embeddings-all": tied == "all",
        "transformer-heads": options.num_heads,
        "transformer-dim-ffn": options.feed_forward_dim,
        "transformer-dim-aan": options.feed_forward_dim,
        "transformer-ffn-activation": options.feed_forward,
        "transformer-decoder-autoreg": "rnn" if options.is_recurrent else "self-attention",
        "transformer-disable-position-embeddings": options.positions == "none",
        "transformer-preprocess": norm if is_pre else "",
        "transformer-postprocess": "da" if is_pre else f"da{norm}",
        "transformer-postprocess-top": norm if is_pre else "",
    }


def _list_arrays(folder: ModelFolder, options: TransformerOptions) -> dict[str, np.ndarray]:
    """Convert all weights to Marian's names and shapes (inputs × outputs)."""
    weights = to_concatenated_sinusoids(weights_of(load_model(folder)))
    width, inner = options.model_dim, options.feed_forward_dim
    pad_id = folder.vocabularies.pad_id
    if options.positions == "none":  # where Marian does not scale words
        scale_words(weights, options, width**0.5)
    if not options.scaled:  # as Marian's attention always is
        for name in [each for each in weights if ".query." in each]:
            weights[name] = weights[name] * options.head_key_dim**0.5
    arrays: dict[str, Tensor] = {}
    for name, each in weights.items():
        if name.endswith(".words"):
            arrays |= _name_words(name, _without(pad_id, each), options)
        elif name != "output.bias":
            theirs = _name(name, options)
            is_matrix = each.dim() == 2
            arrays[theirs] = each.t() if is_matrix else each[None]
    # Marian's linear layers have biases, whether there are any here or not.
    for theirs in list(arrays):
        stem, _, letter = theirs.rpartition("_W")
        if stem and letter in ("q", "k", "v", "o", "1", "2"):
            outputs = inner if letter == "1" else width
            arrays.setdefault(f"{stem}_b{letter}", torch.zeros(1, outputs))
    bias = weights.get("output.bias", torch.zeros(len(folder.vocabularies.target)))
    arrays[BIAS] = _without(pad_id, bias)[None]
    return {name: np.ascontiguousarray(each.float().numpy()) for name, each in arrays.items()}


def _without(index: int, rows: Tensor) -> Tensor:
    """Leave one row out."""
    return torch.cat([rows[:index], rows[index + 1 :]])


def _name_words(name: str, words: Tensor, options: TransformerOptions) -> dict[str, Tensor]:
    """Name the embeddings or the output layer."""
    if name == "output.words":
        return {"decoder_ff_logit_out_W": words.t()}
    if options.tied_embeddings == "all":
        return {"Wemb": words}
    return {f"{'encoder' if name.startswith('source') else 'decoder'}_Wemb": words}


def _name(name: str, options: TransformerOptions) -> str:
    """Translate the name of a layer's weight to Marian's."""
    stack, *rest = name.split(".")
    if stack.endswith("_norm"):
        return f"{stack.removesuffix('_norm')}_top_{NORMS[options.norm][rest[0]]}"
    index, block, part, kind = rest
    layer = f"{stack}_l{int(index) + 1}"
    is_cell = options.is_recurrent and stack == "decoder" and block.startswith("self_attention")
    if part == "norm":
        block = block.removesuffix("_norm")
        own = "ffn_ffn" if block == "feed_forward" else f"{_BLOCKS[block]}_Wo"
        suffix = "_pre" if options.norm_position == "pre" else ""
        if is_cell:
            own = "rnn" if suffix else "rnn_ffn"
        return f"{layer}_{own}_{NORMS[options.norm][kind]}{suffix}"
    if is_cell:
        return f"{layer}_rnn_{_CELL[f'{part}.{kind}']}"
    return f"{layer}_{_BLOCKS[block]}_{'W' if kind == 'weight' else 'b'}{_PARTS[part]}"
