"""Sizes of models against the paper's table 3 and against the formula."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import OptionError
from dragoman.models.build import build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.options import from_plain, merge
from dragoman.presets import read_preset


def count(options, source_size, target_size):
    with torch.device("meta"):
        model = build_model(options, Vocabulary(source_size, target_size, 2, 0))
    return count_parameters(model)


@pytest.mark.parametrize(
    ("preset", "changes", "expected"),
    [
        ("paper-base", {}, 63_045_632),
        ("paper-big", {}, 214_171_648),
        ("paper-base", {"attention_bias": True}, 63_082_496),
        ("paper-big", {"attention_bias": True}, 214_245_376),
        ("paper-base", {"positions": "learned", "max_positions": 512}, 63_307_776),
        ("paper-base", {"key_dim": 16}, 55_967_744),
    ],
)
def test_sizes_of_the_papers_models(preset, changes, expected):
    recipe = read_preset(preset)
    assert recipe["text"]["vocabulary_size"] == 37_000
    options = from_plain(TransformerOptions, merge(recipe["model"], changes), place=preset)
    assert count(options, 37_000, 37_000) == expected


@settings(max_examples=25)
@given(
    layers=st.integers(1, 3),
    heads=st.integers(1, 4),
    half=st.integers(1, 8),
    key_dim=st.integers(1, 7),
    value_dim=st.integers(1, 7),
    inner=st.integers(1, 20),
    size=st.integers(4, 50),
)
def test_size_is_the_formula(layers, heads, half, key_dim, value_dim, inner, size):
    dim = 2 * half
    options = TransformerOptions(
        num_encoder_layers=layers, num_decoder_layers=layers, model_dim=dim, num_heads=heads,
        feed_forward_dim=inner, key_dim=key_dim, value_dim=value_dim,
    )  # fmt: skip
    attention = 2 * heads * dim * key_dim + 2 * heads * dim * value_dim
    feed_forward = 2 * dim * inner + inner + dim
    expected = layers * (3 * attention + 2 * feed_forward + 10 * dim) + size * dim
    model = build_model(options, Vocabulary(size, size, 2, 0))
    assert count_parameters(model) == expected


def test_tying_decides_how_many_matrices_of_words_there_are():
    sizes = {}
    for tied in ("all", "target", "none"):
        options = TransformerOptions(
            num_encoder_layers=1, num_decoder_layers=1, model_dim=8, feed_forward_dim=4,
            num_heads=2, tied_embeddings=tied,
        )  # fmt: skip
        model = build_model(options, Vocabulary(30, 30, 2, 0))
        sizes[tied] = count_parameters(model)
        words = {
            id(each.words)
            for each in (model.source_embedding, model.target_embedding, model.output)
        }
        assert len(words) == {"all": 1, "target": 2, "none": 3}[tied]
    assert sizes["target"] - sizes["all"] == sizes["none"] - sizes["target"] == 30 * 8


def test_unequal_vocabularies():
    options = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=1, model_dim=8, feed_forward_dim=4, num_heads=2,
        tied_embeddings="target",
    )  # fmt: skip
    model = build_model(options, Vocabulary(30, 20, 2, 0))
    assert len(model.source_embedding.words) == 30
    assert len(model.target_embedding.words) == len(model.output.words) == 20


def test_unequal_vocabularies_cannot_be_tied():
    with pytest.raises(OptionError) as caught:
        build_model(TransformerOptions(), Vocabulary(30, 20, 2, 0))
    assert str(caught.value) == (
        "model.tied_embeddings is “all”, but the vocabularies have 30 and 20 subwords; "
        "give --tied-embeddings target, or --joint"
    )
