"""Which shapes of a model can be meant."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import OptionError
from dragoman.models.options import TransformerOptions


def test_defaults_are_the_papers_base_model():
    base = TransformerOptions()
    shape = (base.num_encoder_layers, base.num_decoder_layers, base.model_dim)
    assert shape == (6, 6, 512)
    assert (base.feed_forward_dim, base.num_heads, base.dropout) == (2048, 8, 0.1)
    assert (base.head_key_dim, base.head_value_dim) == (64, 64)
    assert (base.norm_position, base.positions, base.tied_embeddings) == (
        "post", "sinusoidal", "all",
    )  # fmt: skip
    assert not base.attention_bias


@given(num_heads=st.integers(1, 8), width=st.integers(1, 8))
def test_heads_share_the_width(num_heads, width):
    options = TransformerOptions(model_dim=2 * num_heads * width, num_heads=num_heads)
    assert options.head_key_dim == options.head_value_dim == 2 * width


def test_a_width_given_is_taken():
    options = TransformerOptions(model_dim=10, num_heads=3, key_dim=4, value_dim=5)
    assert (options.head_key_dim, options.head_value_dim) == (4, 5)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"num_encoder_layers": 0}, "model.num_encoder_layers is 0: must be ≥ 1"),
        ({"num_decoder_layers": -1}, "model.num_decoder_layers is -1: must be ≥ 1"),
        ({"model_dim": 0}, "model.model_dim is 0: must be ≥ 1"),
        ({"feed_forward_dim": 0}, "model.feed_forward_dim is 0: must be ≥ 1"),
        ({"num_heads": 0}, "model.num_heads is 0: must be ≥ 1"),
        ({"max_positions": 0}, "model.max_positions is 0: must be ≥ 1"),
        ({"key_dim": 0}, "model.key_dim is 0: must be ≥ 1, or off"),
        ({"value_dim": -3}, "model.value_dim is -3: must be ≥ 1, or off"),
        (
            {"num_heads": 7},
            "model.num_heads is 7, but must divide model.model_dim (512) unless model.key_dim "
            "is given",
        ),
        (
            {"num_heads": 7, "key_dim": 3},
            "model.num_heads is 7, but must divide model.model_dim (512) unless model.value_dim "
            "is given",
        ),
        (
            {"model_dim": 9, "num_heads": 3},
            "model.model_dim is 9: sinusoids need an even width",
        ),
        ({"dropout": 1.0}, "model.dropout is 1.0: must be in [0, 1)"),
        ({"dropout": -0.1}, "model.dropout is -0.1: must be in [0, 1)"),
        ({"attention_dropout": 1.0}, "model.attention_dropout is 1.0: must be in [0, 1)"),
        ({"activation_dropout": -0.1}, "model.activation_dropout is -0.1: must be in [0, 1)"),
        (
            {"attention_dropout": 0.1, "encoder_attention": "fastformer"},
            "model.attention_dropout is 0.1, but Fastformer has no weights of words for words to "
            "drop; take 0",
        ),
        *(
            (
                {"num_experts": 4} | changes,
                "model.num_experts takes the place of feed-forward layers: it goes with "
                "--feed-forward relu and --activation-dropout 0 only",
            )
            for changes in ({"feed_forward": "swiglu"}, {"activation_dropout": 0.1})
        ),
    ],
)
def test_complains(values, message):
    with pytest.raises(OptionError) as caught:
        TransformerOptions(**values)
    assert str(caught.value) == message


def test_learned_positions_may_be_odd():
    assert TransformerOptions(model_dim=9, num_heads=3, positions="learned").model_dim == 9


@pytest.mark.parametrize("name", ["decoder_mask", "residual"])
def test_what_is_left_out_for_study_goes_with_the_usual_model_only(name):
    assert not TransformerOptions(**{name: False}).is_usual
    assert not TransformerOptions(**{name: False}).reads_packed
    for other in ({"decoder_attention": "ssru"}, {"encoder_attention": "fastformer"},
                  {"num_experts": 2}):  # fmt: skip
        with pytest.raises(
            OptionError, match=rf"model\.{name} is off, which goes with full attention"
        ):
            TransformerOptions(**{name: False}, **other)
