"""What is seen while a model translates."""

import numpy as np
import pytest

from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight.attention import END, START, look_at


@pytest.fixture
def translator(tiny_folder):
    return Translator.load(tiny_folder.folder.path, "cpu")


def test_every_layer_and_head_is_seen(translator):
    seen = look_at(translator, "The dog sees.")
    shape = translator.folder.options
    kinds = [(each.kind, each.layer) for each in seen.maps]
    assert (
        kinds.count(("encoder", 1)) == kinds.count(("decoder", 1)) == kinds.count(("cross", 1)) == 1
    )
    assert len(kinds) == shape.num_encoder_layers + 2 * shape.num_decoder_layers
    for each in seen.maps:
        assert each.weights.shape == (shape.num_heads, len(each.queries), len(each.keys))
        np.testing.assert_allclose(each.weights.sum(-1), 1.0, atol=1e-5)


def test_labels_say_who_looks_at_what(translator):
    seen = look_at(translator, "The dog.", translation="Le chien.")
    by_kind = {each.kind: each for each in seen.maps if each.layer == 1}
    assert by_kind["cross"].keys == by_kind["encoder"].keys
    assert by_kind["cross"].queries == by_kind["decoder"].queries
    assert by_kind["encoder"].keys[-1] == by_kind["decoder"].queries[-1] == END
    assert by_kind["decoder"].keys[0] == START
    assert seen.translation == "Le chien."


def test_decoder_never_looks_ahead(translator):
    for each in look_at(translator, "The old dog.", translation="Le vieux chien.").maps:
        if each.kind == "decoder":
            assert np.triu(each.weights[0], k=1).max() == 0.0


def test_layers_and_heads_can_be_chosen(translator):
    seen = look_at(translator, "The dog.", kinds=["cross"], layers=[1], heads=[2])
    whole = look_at(translator, "The dog.", kinds=["cross"], layers=[1])
    (one,) = seen.maps
    np.testing.assert_array_equal(one.weights[0], whole.maps[0].weights[1])


def test_what_is_not_there_is_named(translator):
    with pytest.raises(OptionError, match="--kind is “self”"):
        look_at(translator, "The dog.", kinds=["self"])
    with pytest.raises(OptionError, match="--layer must be from 1 to"):
        look_at(translator, "The dog.", layers=[99])
    with pytest.raises(OptionError, match="--head is 0: must be from 1 to"):
        look_at(translator, "The dog.", heads=[0])
    with pytest.raises(DataError, match="empty"):
        look_at(translator, "  ")
