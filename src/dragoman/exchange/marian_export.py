"""Export to Marian: an ``.npz`` model beside SentencePiece models as vocabularies."""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from dragoman.exchange.huggingface_layout import NO_WORD
from dragoman.exchange.marian import ATTENTION, BLOCKS
from dragoman.exchange.marian_files import CONFIG
from dragoman.exchange.sinusoid_layout import to_concatenated_sinusoids
from dragoman.exchange.unsupported import check_for_marian, check_new, subwords_of
from dragoman.files import written_beside
from dragoman.folder import ModelFolder, read_folder
from dragoman.models.options import TransformerOptions
from dragoman.weights import load_model, weights_of

MODEL, DECODER = "model.npz", "model.npz.decoder.yml"
VOCABULARIES = ("source.spm", "target.spm")

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


def export_marian(path: Path, out: Path) -> None:
    """Write a model as a folder that Marian decodes with.

    Parameters
    ----------
    path : Path
        The model folder.
    out : Path
        The new folder: “model.npz”, its vocabularies, and the settings of marian-decoder.

    Notes
    -----
    What Marian adds to the variance in its norms is smaller than here, which changes scores by
    some 1e-5. Its decoder does not normalise the keys of pre-norm models after the first word,
    as its trainer and its scorer do, so with such a model it may write something else.
    """
    folder = read_folder(path)
    options = check_for_marian(folder)
    check_new(out)
    arrays = _list_arrays(folder, options)
    sizes = [len(each) for each in folder.vocabularies]
    text = "".join(
        f"{name}: {_spell(value)}\n" for name, value in _describe(options, sizes).items()
    )
    arrays[CONFIG] = np.frombuffer(text.encode() + b"\0", np.int8)
    with written_beside(out) as beside:
        beside.mkdir()
        np.savez(beside / MODEL, **arrays)  # type: ignore[arg-type]
        for name, side in zip(VOCABULARIES, subwords_of(folder), strict=True):
            (beside / name).write_bytes(side.to_bytes())
        search = {
            "models": [MODEL], "vocabs": [*VOCABULARIES], "relative-paths": True, "beam-size": 4,
            "normalize": 0.6,
        }  # fmt: skip
        lines = [f"{name}: {_spell(value)}\n" for name, value in search.items()]
        (beside / DECODER).write_text("".join(lines), encoding="utf-8")


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
        "transformer-preprocess": "n" if is_pre else "",
        "transformer-postprocess": "da" if is_pre else "dan",
        "transformer-postprocess-top": "n" if is_pre else "",
    }


def _list_arrays(folder: ModelFolder, options: TransformerOptions) -> dict[str, np.ndarray]:
    """Convert all weights to Marian's names and shapes (inputs × outputs)."""
    weights = to_concatenated_sinusoids(weights_of(load_model(folder)))
    width, inner = options.model_dim, options.feed_forward_dim
    arrays: dict[str, Tensor] = {}
    for name, each in weights.items():
        if name.endswith(".words"):
            arrays |= _name_words(name, each, options)
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
    bias = weights.get("output.bias", torch.zeros(len(folder.vocabularies.target))).clone()
    bias[folder.vocabularies.pad_id] = NO_WORD  # Marian knows no padding: it is an entry there
    arrays["decoder_ff_logit_out_b"] = bias[None]
    return {name: np.ascontiguousarray(each.float().numpy()) for name, each in arrays.items()}


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
        kind = {"weight": "scale", "bias": "bias"}[rest[0]]
        return f"{stack.removesuffix('_norm')}_top_ln_{kind}"
    index, block, part, kind = rest
    layer = f"{stack}_l{int(index) + 1}"
    is_cell = options.is_recurrent and stack == "decoder" and block.startswith("self_attention")
    if part == "norm":
        block = block.removesuffix("_norm")
        own = "ffn_ffn" if block == "feed_forward" else f"{_BLOCKS[block]}_Wo"
        suffix = "_pre" if options.norm_position == "pre" else ""
        if is_cell:
            own = "rnn" if suffix else "rnn_ffn"
        return f"{layer}_{own}_ln_{'scale' if kind == 'weight' else 'bias'}{suffix}"
    if is_cell:
        return f"{layer}_rnn_{_CELL[f'{part}.{kind}']}"
    return f"{layer}_{_BLOCKS[block]}_{'W' if kind == 'weight' else 'b'}{_PARTS[part]}"
