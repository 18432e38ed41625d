"""Which decoders become one script; what it says is tested with the engine."""

import pytest

from dragoman.decoding.quantise import rebuild
from dragoman.decoding.scripted_decoder import script_decoder
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"norm_position": "pre", "norm": "rms", "feed_forward": "swiglu"}, True),
        ({"positions": "learned"}, True),
        ({"positions": "rotary"}, False),
        ({"positions": "alibi"}, False),
        ({"norm": "batch"}, False),
    ],
    ids=str,
)
def test_what_the_script_does_not_know_is_left_to_the_layers(changes, expected):
    options = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=2, model_dim=8, feed_forward_dim=8, num_heads=2,
        **changes,
    )  # fmt: skip
    model = build_model(options, Vocabulary(20, 20, 2, 0)).eval()
    assert (script_decoder(rebuild(model).decoder) is not None) == expected
    assert script_decoder(rebuild(model.to("meta")).decoder) is None  # not on a CPU
