"""Every family of models, and every variant of the Transformer, very small."""

import dataclasses

import pytest

from dragoman.models.convolutional.options import ByteNetOptions, ConvS2SOptions
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import (
    DeepAttOptions,
    GNMTOptions,
    LuongOptions,
    RNNsearchOptions,
    Seq2seqOptions,
)

TRANSFORMER = TransformerOptions(
    num_encoder_layers=2,
    num_decoder_layers=2,
    model_dim=16,
    feed_forward_dim=24,
    num_heads=2,
    max_positions=64,
    dropout=0.0,
)


def transformer(**changes: object) -> TransformerOptions:
    return dataclasses.replace(TRANSFORMER, **changes)


FAMILIES = {
    "transformer": TRANSFORMER,
    "pre-norm": transformer(norm_position="pre"),
    "rms": transformer(norm="rms"),
    "unscaled": transformer(scaled=False),
    "no-residual": transformer(residual=False),
    "no-residual-pre-norm": transformer(residual=False, norm_position="pre"),
    "no-source-end": transformer(source_end=False),
    "dropouts": transformer(attention_dropout=0.05, activation_dropout=0.05),
    "swiglu": transformer(feed_forward="swiglu"),
    "geglu": transformer(feed_forward="geglu", norm_position="pre"),
    "feedback-gated": transformer(decoder_attention="feedback", feed_forward="swiglu"),
    "opus": transformer(feed_forward="swish", attention_bias=True, output_bias=True),
    "marian": transformer(feed_forward="gelu-sigmoid", positions="marian", norm_position="pre"),
    "dims": transformer(key_dim=3, value_dim=5, attention_bias=True, tied_embeddings="none"),
    **{
        f"positions-{kind}": transformer(positions=kind)
        for kind in ("learned", "normalised", "index", "none", "rotary", "alibi", "relative")
    },
    "restricted": transformer(encoder_attention="restricted", decoder_attention="restricted",
                              window=3),
    "fastformer": transformer(encoder_attention="fastformer", decoder_attention="fastformer"),
    "feedback": transformer(decoder_attention="feedback"),
    "ssru": transformer(decoder_attention="ssru"),
    "ssru-pre-norm": transformer(decoder_attention="ssru", norm_position="pre"),
    "moe": transformer(num_experts=4, experts_per_token=2),
    "seq2seq-lstm": Seq2seqOptions(num_layers=2, model_dim=24, tied_embeddings="all"),
    "seq2seq-gru": Seq2seqOptions(cell="gru", num_layers=1, model_dim=24, reverse_source=False),
    "seq2seq-rnn": Seq2seqOptions(cell="rnn", num_layers=1, model_dim=32),
    "rnnsearch": RNNsearchOptions(model_dim=24, embedding_dim=16, maxout_dim=12),
    "luong-global": LuongOptions(num_layers=2, model_dim=24, dropout=0.0),
    "luong-dot": LuongOptions(num_layers=1, model_dim=24, score="dot", dropout=0.0,
                              input_feeding=False),
    "luong-concat": LuongOptions(num_layers=1, model_dim=24, score="concat", dropout=0.0),
    "luong-location": LuongOptions(num_layers=1, model_dim=24, score="location", dropout=0.0,
                                   max_positions=40),
    "luong-local-m": LuongOptions(num_layers=1, model_dim=24, attention_span="local-m",
                                  half_width=3, dropout=0.0),
    "luong-local-p": LuongOptions(num_layers=1, model_dim=24, attention_span="local-p",
                                  half_width=3, dropout=0.0),
    "gnmt": GNMTOptions(num_encoder_layers=4, num_decoder_layers=3, model_dim=16, dropout=0.0),
    "gnmt-experts": GNMTOptions(num_encoder_layers=3, num_decoder_layers=2, model_dim=16,
                                num_experts=3, experts_per_token=2, expert_dim=16, dropout=0.0),
    "deep-att": DeepAttOptions(num_encoder_layers=3, num_decoder_layers=2, model_dim=16,
                               embedding_dim=12, dropout=0.0),
    "convs2s": ConvS2SOptions(encoder_blocks="2x16k3 1x24k3", decoder_blocks="1x16k3 2x24k2",
                              model_dim=16, output_dim=16, max_positions=64, dropout=0.0,
                              tied_embeddings="all"),
    "bytenet": ByteNetOptions(num_encoder_sets=1, num_decoder_sets=1, max_dilation=4, model_dim=12),
    "bytenet-multiplicative": ByteNetOptions(num_encoder_sets=1, num_decoder_sets=1,
                                             max_dilation=2, model_dim=12, block="multiplicative"),
}  # fmt: skip

# Normalising over a batch makes a sentence depend on its neighbours: that is what is wrong with
# it. It is exempt from the laws of batching in training, where it is trained all the same.
EXEMPT = {
    "batch": transformer(norm="batch"),
    "batch-per-step": transformer(norm="batch-per-step"),
}


ALL = FAMILIES | EXEMPT

ONE_OF_EACH_FAMILY = {options.family: name for name, options in reversed(ALL.items())}
# Where a law takes long to check: one variant of each family in every test run, the others in
# “make test-all”.
ALL_BY_TURNS = [
    each if each in ONE_OF_EACH_FAMILY.values() else pytest.param(each, marks=pytest.mark.slow)
    for each in ALL
]
