"""Models as Marian writes them."""

import numpy as np
import yaml

from dragoman.exchange.sinusoid_layout import to_concatenated_sinusoids
from dragoman.weights import load_model, weights_of

NAMES = {"self_attention": "self", "cross_attention": "context", "query": "q", "key": "k",
         "value": "v", "output": "o", "inner": "1", "outer": "2"}  # fmt: skip


def marian_name(name, suffix):
    """What Marian calls one of our weights, and whether it is turned."""
    stack, *rest = name.split(".")
    if stack.endswith("_norm"):
        kind = {"weight": "scale", "bias": "bias"}[rest[0]]
        return f"{stack.removesuffix('_norm')}_top_ln_{kind}", False
    index, part, inner, kind = rest
    layer = f"{stack}_l{int(index) + 1}"
    if inner == "norm":
        block = part.removesuffix("_norm")
        block = f"{NAMES[block]}_Wo" if block in NAMES else "ffn_ffn"
        return f"{layer}_{block}_ln_{'scale' if kind == 'weight' else 'bias'}{suffix}", False
    letter = "W" if kind == "weight" else "b"
    return f"{layer}_{NAMES.get(part, 'ffn')}_{letter}{NAMES[inner]}", kind == "weight"


def write_marian(path, folder, changes=(), **said):
    """Write a model as Marian would: no padding, matrices turned, sines before cosines."""
    options, subwords = folder.options, folder.vocabularies.source
    weights = to_concatenated_sinusoids(weights_of(load_model(folder)))
    kept = [i for i in range(len(subwords)) if i != subwords.pad_id]
    is_pre = options.norm_position == "pre"
    arrays = {}
    for name, each in weights.items():
        each = each.numpy()
        if name == "output.bias":
            arrays["decoder_ff_logit_out_b"] = each[None, kept]
        elif name == "output.words":
            arrays["decoder_ff_logit_out_W"] = each[kept].T
        elif name.endswith(".words"):
            side = "encoder" if name.startswith("source") else "decoder"
            is_one = options.tied_embeddings == "all"
            arrays["Wemb" if is_one else f"{side}_Wemb"] = each[kept]
        else:
            theirs, is_turned = marian_name(name, "_pre" if is_pre else "")
            arrays[theirs] = each.T if is_turned else each[None]
    config = {
        "type": "transformer", "enc-depth": options.num_encoder_layers,
        "dec-depth": options.num_decoder_layers, "dim-emb": options.model_dim,
        "transformer-heads": options.num_heads, "transformer-dim-ffn": options.feed_forward_dim,
        "transformer-ffn-activation": options.feed_forward.removesuffix("-sigmoid"),
        "transformer-preprocess": "n" if is_pre else "",
        "transformer-postprocess": "da" if is_pre else "dan",
        "transformer-postprocess-top": "n" if is_pre else "",
        "version": "v1.9.0" if options.feed_forward == "gelu-sigmoid" else "v1.12.42",
        "transformer-postprocess-emb": "d", "transformer-ffn-depth": 2,
        "transformer-decoder-autoreg": "self-attention", "transformer-tied-layers": [],
        "transformer-train-position-embeddings": False, "transformer-no-projection": False,
        "transformer-guided-alignment-layer": "last",
        "dim-vocabs": [len(kept), len(kept)],
    } | said  # fmt: skip
    text = yaml.safe_dump(config, default_flow_style=None) + "\0"
    arrays["special:model.yml"] = np.frombuffer(text.encode(), np.int8)
    arrays |= dict(changes)
    path.mkdir(exist_ok=True)
    np.savez(path / "model.npz", **arrays)
    names = subwords.pieces(kept)
    vocabulary = {name: i for i, name in enumerate(names)}
    (path / "opus.vocab.yml").write_text(
        yaml.safe_dump(vocabulary, allow_unicode=True, sort_keys=False, width=10_000),
        encoding="utf-8",
    )
    for name in ("source.spm", "target.spm"):
        (path / name).write_bytes(subwords.to_bytes())
    return path
