"""The same laws for every family of models and every variant of the Transformer."""

import dataclasses

import pytest
import torch
from tests.models import contract

from dragoman.data.batches import Sequences
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search import search
from dragoman.folder import put_weights, read_weights, weights_of, write_weights
from dragoman.models.build import build_model
from dragoman.models.convolutional.options import ByteNetOptions, ConvS2SOptions
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import (
    DeepAttOptions,
    GNMTOptions,
    LuongOptions,
    RNNsearchOptions,
    Seq2seqOptions,
)
from dragoman.training.loss import TrainingStep
from dragoman.training.memory import estimate_memory
from dragoman.training.options import TrainingOptions

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
    "dims": transformer(key_dim=3, value_dim=5, attention_bias=True, tied_embeddings="none"),
    **{
        f"positions-{kind}": transformer(positions=kind)
        for kind in ("learned", "normalised", "index", "none", "rotary", "alibi", "relative")
    },
    "restricted": transformer(encoder_attention="restricted", decoder_attention="restricted",
                              window=3),
    "fastformer": transformer(encoder_attention="fastformer", decoder_attention="fastformer"),
    "feedback": transformer(decoder_attention="feedback"),
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
# Without positions the encoder is a bag of words: what order they came in, it cannot tell.
BAGS = ("positions-none",)


def make(name: str):
    torch.manual_seed(11)
    return build_model(ALL[name], contract.VOCABULARY)


every_family = pytest.mark.parametrize("name", ALL)


@every_family
def test_step_equals_teacher_forcing(name):
    contract.check_step_equals_forward(make(name))


@every_family
def test_hypotheses_can_be_rearranged(name):
    contract.check_reorder_and_keep(make(name))


@pytest.mark.parametrize("name", FAMILIES)
def test_padding_and_neighbours_change_nothing(name):
    model = make(name)
    contract.check_padding_and_batching(model)
    contract.check_padding_while_searching(model)


@every_family
def test_the_future_is_unseen(name):
    contract.check_future_is_unseen(make(name))


@every_family
def test_learns_a_batch_by_heart(name):
    contract.check_overfits(make(name))


@every_family
def test_is_saved_and_loaded_bit_for_bit(name, tmp_path):
    model, path = make(name), tmp_path / "model.safetensors"
    batch = contract.batch_of(contract.make_pairs(5))
    model.train().forward(batch)  # so that statistics move
    write_weights(path, weights_of(model))
    other = build_model(ALL[name], contract.VOCABULARY)
    put_weights(other, read_weights(path), path)
    with torch.no_grad():
        found, expected = (each.eval().forward(batch).hidden for each in (other, model))
    assert torch.equal(found, expected)


@every_family
def test_is_translated_by_the_one_search(name):
    model = make(name).eval()
    source = contract.batch_of(contract.make_pairs(4)).source
    options = SearchOptions(beam_size=3, max_extra_tokens=4)
    together = search(model, source, options, contract.VOCABULARY, num_best=2)
    for row, (best, second) in enumerate(together):
        assert best.score >= second.score
        length = int(source.lengths[row])
        alone = Sequences(source.ids[row : row + 1, :length], source.lengths[row : row + 1])
        (found,) = search(model, alone, options, contract.VOCABULARY, num_best=2)
        assert [each.tokens for each in found] == [best.tokens, second.tokens]


@every_family
def test_memory_is_told_without_computing(name):
    with torch.device("meta"):
        model = build_model(ALL[name], contract.VOCABULARY)
    estimate = estimate_memory(TrainingStep(model, 0.1), TrainingOptions(), half=False)
    assert estimate.activations > 0
    assert estimate.weights == 16 * sum(each.numel() for each in make(name).parameters())


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reversal"])
@pytest.mark.parametrize("name", [each for each in ALL if each not in BAGS])
def test_learns_to_copy_and_to_reverse(name, task):
    contract.check_learns_task(make(name), is_reversed=task == "reversal")
