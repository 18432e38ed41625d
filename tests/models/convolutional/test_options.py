"""Which shapes of convolutional models can be meant."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import OptionError
from dragoman.models.convolutional.options import (
    BlockShape,
    ByteNetOptions,
    ConvS2SOptions,
    parse_blocks,
)

GROUPS = st.lists(
    st.tuples(st.integers(1, 20), st.integers(1, 4096), st.integers(1, 99)), min_size=1
)


@given(groups=GROUPS, separator=st.sampled_from([" ", "  ", "\t", "\n "]))
def test_blocks_are_read_as_they_are_written(groups, separator):
    text = separator.join(f"{count}x{width}k{size}" for count, width, size in groups)
    expected = [BlockShape(width, size) for count, width, size in groups for _ in range(count)]
    assert list(parse_blocks("model.encoder_blocks", text)) == expected


def test_defaults_are_the_published_shapes():
    convs2s = ConvS2SOptions()
    expected = [BlockShape(512, 3)] * 9 + [BlockShape(1024, 3)] * 4 + [BlockShape(2048, 1)] * 2
    assert list(convs2s.encoder_shapes) == list(convs2s.decoder_shapes) == expected
    assert (convs2s.model_dim, convs2s.output_dim, convs2s.dropout) == (768, 512, 0.2)
    bytenet = ByteNetOptions()
    assert bytenet.num_encoder_sets * len(bytenet.dilations) == 30
    assert bytenet.num_decoder_sets * len(bytenet.dilations) == 30
    assert (bytenet.model_dim, bytenet.kernel_size, bytenet.block) == (800, 3, "relu")
    assert (bytenet.length_ratio, bytenet.length_extra) == (1.2, 0)


@given(power=st.integers(0, 8))
def test_dilations_double_up_to_the_largest(power):
    dilations = ByteNetOptions(max_dilation=2**power).dilations
    assert dilations[0] == 1
    assert dilations[-1] == 2**power
    assert all(later == 2 * earlier for earlier, later in zip(dilations, dilations[1:]))  # noqa: B905, RUF007


def test_learned_positions_end_and_dilations_do_not():
    assert ConvS2SOptions(max_positions=77).max_length == 77
    assert ByteNetOptions().max_length is None


def test_even_kernels_are_for_decoders():
    assert ConvS2SOptions(decoder_blocks="1x8k4").decoder_shapes == (BlockShape(8, 4),)


NO_BLOCK = "is no block; write 9x512k3 for nine blocks of width 512 and kernel size 3"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"encoder_blocks": "9x512"}, f"model.encoder_blocks is “9x512”: “9x512” {NO_BLOCK}"),
        (
            {"decoder_blocks": "2x8k3 0x8k3"},
            f"model.decoder_blocks is “2x8k3 0x8k3”: “0x8k3” {NO_BLOCK}",
        ),
        ({"decoder_blocks": "2x8k0"}, f"model.decoder_blocks is “2x8k0”: “2x8k0” {NO_BLOCK}"),
        ({"decoder_blocks": "2x0k3"}, f"model.decoder_blocks is “2x0k3”: “2x0k3” {NO_BLOCK}"),
        ({"encoder_blocks": "٢x8k3"}, f"model.encoder_blocks is “٢x8k3”: “٢x8k3” {NO_BLOCK}"),
        ({"encoder_blocks": " "}, "model.encoder_blocks is empty; write 4x256k3 for four blocks"),
        ({"decoder_blocks": ""}, "model.decoder_blocks is empty; write 4x256k3 for four blocks"),
        (
            {"encoder_blocks": "1x8k3 1x8k4"},
            "model.encoder_blocks is “1x8k3 1x8k4”: its kernels must be odd, to see as far to "
            "both sides",
        ),
        ({"model_dim": 0}, "model.model_dim is 0: must be ≥ 1"),
        ({"output_dim": 0}, "model.output_dim is 0: must be ≥ 1"),
        ({"max_positions": 0}, "model.max_positions is 0: must be ≥ 1"),
        ({"dropout": 1.0}, "model.dropout is 1.0: must be in [0, 1)"),
        (
            {"tied_embeddings": "target"},
            "model.tied_embeddings is “target”, but word vectors have width 768 and the output "
            "layer reads 512; make them equal, or give --tied-embeddings none",
        ),
    ],
)
def test_convs2s_complains(values, message):
    with pytest.raises(OptionError) as caught:
        ConvS2SOptions(**values)
    assert str(caught.value) == message


RATIO = "must be from 1, a place for each source word, to 100"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_encoder_sets": 0}, "model.num_encoder_sets is 0: must be ≥ 1"),
        ({"num_decoder_sets": 0}, "model.num_decoder_sets is 0: must be ≥ 1"),
        ({"model_dim": 0}, "model.model_dim is 0: must be ≥ 1"),
        ({"max_dilation": 0}, "model.max_dilation is 0: must be ≥ 1"),
        ({"max_dilation": 12}, "model.max_dilation is 12: must be a power of two"),
        ({"kernel_size": 1}, "model.kernel_size is 1: must be ≥ 2, or words never meet"),
        ({"kernel_size": 4}, "model.kernel_size is 4: must be odd, for the encoder"),
        ({"length_ratio": 0.9}, f"model.length_ratio is 0.9: {RATIO}"),
        ({"length_ratio": math.inf}, f"model.length_ratio is inf: {RATIO}"),
        ({"length_ratio": math.nan}, f"model.length_ratio is nan: {RATIO}"),
        ({"length_extra": -1}, "model.length_extra is -1: must not be negative"),
        ({"dropout": -0.1}, "model.dropout is -0.1: must be in [0, 1)"),
    ],
)
def test_bytenet_complains(values, message):
    with pytest.raises(OptionError) as caught:
        ByteNetOptions(**values)
    assert str(caught.value) == message
