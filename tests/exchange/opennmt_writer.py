"""Checkpoints as OpenNMT-py writes them, which most packages of Argos were converted from."""

import argparse

import torch

from dragoman.models.positions.sinusoids import sinusoids
from dragoman.weights import load_model, weights_of

NAMES = {"query": "linear_query", "key": "linear_keys", "value": "linear_values",
         "output": "final_linear", "inner": "w_1", "outer": "w_2"}  # fmt: skip
BLOCKS = {
    "encoder": {"self_attention": "self_attn", "feed_forward": "feed_forward"},
    "decoder": {"self_attention": "self_attn", "cross_attention": "context_attn",
                "feed_forward": "feed_forward"},
}  # fmt: skip
NORMS = {
    "encoder": {"self_attention_norm": "layer_norm",
                "feed_forward_norm": "feed_forward.layer_norm"},
    "decoder": {"self_attention_norm": "layer_norm_1", "cross_attention_norm": "layer_norm_2",
                "feed_forward_norm": "feed_forward.layer_norm"},
}  # fmt: skip
START = ["<unk>", "<blank>", "<s>", "</s>"]


def opennmt_name(name):
    """What OpenNMT-py calls one of our weights."""
    stack, *rest = name.split(".")
    if stack.endswith("_norm"):
        return f"{stack.removesuffix('_norm')}.layer_norm.{rest[0]}"
    index, part, inner, kind = rest
    layers = "transformer" if stack == "encoder" else "transformer_layers"
    layer = f"{stack}.{layers}.{index}"
    if inner == "norm":
        return f"{layer}.{NORMS[stack][part]}.{kind}"
    return f"{layer}.{BLOCKS[stack][part]}.{NAMES[inner]}.{kind}"


def write_checkpoint(path, folder, names):
    """Write a pre-norm model with biases and the paper's sinusoids, with words of its own."""
    options = folder.options
    weights = weights_of(load_model(folder))
    theirs = {
        opennmt_name(name): each
        for name, each in weights.items()
        if not name.startswith(("source_embedding", "target_embedding", "output"))
    }
    torch.manual_seed(5)
    matrix = torch.randn(len(names), options.model_dim) * 0.5
    table = torch.from_numpy(sinusoids(0, 500, options.model_dim)).float()[:, None]
    for stack in ("encoder", "decoder"):
        embeddings = f"{stack}.embeddings.make_embedding"
        theirs[f"{embeddings}.emb_luts.0.weight"] = matrix
        theirs[f"{embeddings}.pe.pe"] = table
    generator = {"weight": matrix, "bias": torch.randn(len(names)) * 0.1}
    opt = argparse.Namespace(
        encoder_type="transformer", decoder_type="transformer", self_attn_type="scaled-dot",
        pos_ffn_activation_fn=options.feed_forward, position_encoding=True,
        max_relative_positions=0, enc_layers=options.num_encoder_layers,
        dec_layers=options.num_decoder_layers, heads=options.num_heads, lambda_align=0.0,
    )  # fmt: skip
    checkpoint = {
        "vocab": {"src": names, "tgt": names}, "opt": opt, "model": theirs, "generator": generator
    }  # fmt: skip
    torch.save(checkpoint, path)
    return path


def opennmt_names(subwords):
    """The words of a vocabulary in another order, some missing, some that no text has."""
    special = (subwords.eos_id, subwords.unk_id, subwords.pad_id)
    pieces = subwords.pieces([i for i in range(len(subwords)) if i not in special])
    return [*START, *reversed(pieces[: len(pieces) - 9]), "averyunlikelytoken0"]
