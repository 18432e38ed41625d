"""What is seen while a model translates."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight import attention
from dragoman.insight.attention import END, NO_ATTENTION, START, look_at
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
from dragoman.weights import vocabulary_of

SMALL = {"num_encoder_layers": 2, "num_decoder_layers": 2, "model_dim": 8}
TRANSFORMER = SMALL | {"feed_forward_dim": 8, "num_heads": 2}
BOTH = {"encoder": 2, "decoder": 2, "cross": 2}
# For each family what there is to see: layers of each kind.
FAMILIES = {
    "transformer": (TransformerOptions(**TRANSFORMER), BOTH),
    "restricted": (
        TransformerOptions(
            **TRANSFORMER, encoder_attention="restricted", decoder_attention="restricted", window=3
        ),
        BOTH,
    ),
    "fastformer": (
        TransformerOptions(
            **TRANSFORMER, encoder_attention="fastformer", decoder_attention="fastformer"
        ),
        BOTH,
    ),
    "feedback": (TransformerOptions(**TRANSFORMER, decoder_attention="feedback"), BOTH),
    "rnnsearch": (RNNsearchOptions(model_dim=8, embedding_dim=8, maxout_dim=8), {"cross": 1}),
    "luong": (LuongOptions(num_layers=2, model_dim=8), {"cross": 1}),
    "gnmt": (GNMTOptions(**SMALL), {"cross": 1}),
    "deep-att": (DeepAttOptions(**SMALL, embedding_dim=8), {"cross": 1}),
    "convs2s": (
        ConvS2SOptions(encoder_blocks="2x8k3", decoder_blocks="3x8k3", model_dim=8, output_dim=8),
        {"cross": 3},
    ),
}
WITHOUT = {
    "seq2seq": Seq2seqOptions(num_layers=1, model_dim=8),
    "bytenet": ByteNetOptions(num_encoder_sets=1, num_decoder_sets=1, max_dilation=2, model_dim=8),
}


@pytest.fixture
def translator(tiny_folder):
    return Translator.load(tiny_folder.folder.path, "cpu")


@pytest.fixture
def translator_of(translator, vocabularies):
    """Make an untrained translator of any family."""

    def make(shape):
        torch.manual_seed(1)
        model = build_model(shape, vocabulary_of(vocabularies)).eval()
        folder = replace(translator.folder, options=shape)
        return Translator(folder, model, torch.device("cpu"))

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_all_attention_of_every_family_is_seen(translator_of, family):
    shape, layers = FAMILIES[family]
    seen = look_at(translator_of(shape), "The old dog.", translation="Le vieux chien.")
    assert not seen.remark
    found = [(each.kind, each.layer) for each in seen.maps]
    expected = [(kind, layer + 1) for kind, count in layers.items() for layer in range(count)]
    assert sorted(found) == sorted(expected)
    for each in seen.maps:
        sums = each.weights.sum(-1)
        if family == "feedback" and each.kind == "decoder":
            assert not sums[:, 0].any()  # the first word has nothing to look back at
            sums = sums[:, 1:]
        np.testing.assert_allclose(sums, 1.0, atol=1e-5)


def test_calls_are_joined_word_by_word(translator_of):
    """What is seen of a sentence is what is seen of each of its beginnings."""
    translator = translator_of(FAMILIES["rnnsearch"][0])
    with torch.no_grad():
        for each in translator.model.parameters():
            each.normal_(std=0.5)
    long, short = (
        look_at(translator, "The old dog.", translation=words).maps[0]
        for words in ("Le vieux chien.", "Le vieux")
    )
    same = len(short.queries) - 1
    assert long.queries[:same] == short.queries[:same]
    np.testing.assert_allclose(long.weights[:, :same], short.weights[:, :same], atol=1e-6)
    assert not np.allclose(long.weights[:, 0], long.weights[:, 1])


@pytest.mark.parametrize("family", WITHOUT)
@pytest.mark.parametrize("kinds", [(), ("cross",), ("gradient",)])
def test_family_without_attention_shows_gradients_and_says_so(translator_of, family, kinds):
    translator = translator_of(WITHOUT[family])
    seen = look_at(translator, "The old dog.", translation="Le chien.", kinds=kinds)
    assert seen.remark == ("" if kinds == ("gradient",) else NO_ATTENTION)
    assert "share in deciding it" in seen.legend
    (one,) = seen.maps
    assert one.kind == "gradient"
    assert one.queries[-1] == one.keys[-1] == END
    np.testing.assert_allclose(one.weights.sum(-1), 1.0, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_can_be_asked_of_every_family(translator_of, family):
    # Having translated, and so computed without gradients, must not stand in the way.
    seen = look_at(translator_of(FAMILIES[family][0]), "The dog.", kinds=["cross", "gradient"])
    *cross, gradient = seen.maps
    assert {each.kind for each in cross} == {"cross"}
    assert (gradient.kind, gradient.queries) == ("gradient", cross[0].queries)
    np.testing.assert_allclose(gradient.weights.sum(-1), 1.0, atol=1e-5)
    assert not seen.remark
    assert seen.legend.endswith("looks at, or depends on")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("decoder.3.cross_attention", ("cross", 4)),
        ("decoder.cross_attention", ("cross", 1)),
        ("decoder.layers.2.cross_attention.inner", ("cross", 3)),
        ("encoder.0.self_attention", ("encoder", 1)),
        ("encoder.stack.5.attention.1", ("encoder", 6)),
        ("decoder.self_attention", ("decoder", 1)),
    ],
)
def test_names_tell_kind_and_layer(name, expected):
    assert attention.parse_module_name(name) == expected


def test_attention_elsewhere_is_a_mistake():
    with pytest.raises(ValueError, match="neither in the encoder nor in the decoder"):
        attention.parse_module_name("bridge.0.attention")


def test_what_another_family_lacks_is_named(translator_of):
    translator = translator_of(FAMILIES["rnnsearch"][0])
    with pytest.raises(OptionError, match="--kind is encoder: this model has only cross attention"):
        look_at(translator, "The dog.", kinds=["cross", "encoder"])
    for flag, asked in (("--layer", {"layers": [1]}), ("--head", {"heads": [1]})):
        with pytest.raises(OptionError, match=f"{flag} means nothing for gradient × input"):
            look_at(translator, "The dog.", kinds=["gradient"], **asked)
    with pytest.raises(OptionError, match="--layer means nothing"):
        look_at(translator_of(WITHOUT["seq2seq"]), "The dog.", layers=[1])


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
        look_at(translator, "The dog.", layers=[1, 99])
    with pytest.raises(OptionError, match="--head is 0: must be from 1 to"):
        look_at(translator, "The dog.", heads=[0])
    with pytest.raises(DataError, match="empty"):
        look_at(translator, "  ")
