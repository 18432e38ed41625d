"""Heads that are switched off add nothing, in any family and whoever decodes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.errors import OptionError
from dragoman.insight.ablation import Head, check_heads, list_heads, mask_heads, translate_without
from dragoman.insight.attention import look_at
from dragoman.models.attention.observer import observed_attention
from dragoman.models.convolutional.options import ConvS2SOptions
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import RNNsearchOptions, Seq2seqOptions

SMALL = {"num_encoder_layers": 2, "num_decoder_layers": 2, "model_dim": 8}
SHAPES = {
    "transformer": TransformerOptions(**SMALL, feed_forward_dim=8, num_heads=2),
    "rnnsearch": RNNsearchOptions(model_dim=8, embedding_dim=8, maxout_dim=8),
    "convs2s": ConvS2SOptions(
        encoder_blocks="2x8k3", decoder_blocks="3x8k3", model_dim=8, output_dim=8
    ),
}


def score(translator, off):
    vocabularies = translator.folder.vocabularies
    target = (*vocabularies.target.encode(["Le vieux chien."])[0], vocabularies.eos_id)
    source = translator.encode("The old dog.")
    batch = make_batch(flatten([source]), flatten([target]), vocabularies.pad_id)
    with torch.inference_mode(), observed_attention(translator.model, mask_heads(off)):
        return token_log_probabilities(translator.model, batch)[0]


@pytest.mark.parametrize("family", SHAPES)
def test_every_head_that_is_seen_is_listed(translator_of, family):
    translator = translator_of(SHAPES[family])
    seen = look_at(translator, "The old dog.", translation="Le chien.")
    expected = {
        Head(each.kind, each.layer, head + 1)
        for each in seen.maps
        for head in range(len(each.weights))
    }
    listed = list_heads(translator.model)
    assert len(listed) == len(expected)
    assert set(listed) == expected
    check_heads(translator, listed)


def test_model_without_attention_has_no_heads(translator_of):
    translator = translator_of(Seq2seqOptions(num_layers=1, model_dim=8))
    assert list_heads(translator.model) == []
    with pytest.raises(OptionError, match="no head 1 of cross attention in layer 1"):
        translate_without(translator, "The dog.", [Head("cross", 1, 1)])


@pytest.mark.parametrize("family", SHAPES)
def test_weights_of_a_silent_head_are_zero_and_others_as_they_were(translator_of, family):
    translator = translator_of(SHAPES[family])
    # Of the last layer, so that no other layer sees the difference.
    last = max(list_heads(translator.model), key=lambda head: (head.kind == "cross", head.layer))
    before, after = (
        look_at(
            translator, "The old dog.", translation="Le chien.", replace_weights=mask_heads(off)
        )
        for off in ((), (last,))
    )
    for one, other in zip(before.maps, after.maps, strict=True):
        expected = one.weights.copy()
        if (one.kind, one.layer) == last[:2]:
            expected[last.head - 1] = 0
        np.testing.assert_allclose(other.weights, expected, atol=1e-6)


def test_silent_head_is_a_head_whose_output_is_nothing(translator):
    """The same as zeroing the columns of the output projection that read the head."""
    head = Head("cross", 2, 2)
    found = score(translator, [head])
    modules = dict(translator.model.named_modules())
    name = next(name for name in modules if name.endswith("1.cross_attention"))
    projection = modules[name].output.weight
    width = projection.size(1) // modules[name].num_heads
    before = projection.detach().clone()
    with torch.no_grad():
        projection[:, width:] = 0
        expected = score(translator, [])
        projection.copy_(before)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    assert not torch.allclose(found, score(translator, []), atol=1e-3)


def test_translation_without_a_head_is_the_best_without_it(translator):
    """Greedily: every word is the most probable one of the model without the head."""
    off = [Head("cross", layer, head) for layer in (1, 2) for head in (1, 2)]
    changed = translate_without(translator, "The old dog sees.", off, beam_size=1)
    assert changed.text != translator.translate("The old dog sees.").text
    vocabularies = translator.folder.vocabularies
    batch = make_batch(
        flatten([translator.encode("The old dog sees.")]), flatten([changed.tokens]),
        vocabularies.pad_id,
    )  # fmt: skip
    with torch.inference_mode(), observed_attention(translator.model, mask_heads(off)):
        logits = translator.model.output(translator.model.forward(batch).hidden)[0]
        logits[:, vocabularies.target.unk_id] = -torch.inf
    assert logits.argmax(-1).tolist()[:-1] == list(changed.tokens[:-1])


def test_nothing_off_is_the_translation_itself(translator):
    text = "The old dog sees a garden."
    once = replace(translator.options, search_again=False)
    expected = translator.translate(text, options=once)
    assert translate_without(translator, text, []).text == expected.text
    assert mask_heads([]) is None


def test_model_is_left_unobserved(translator):
    translate_without(translator, "The dog.", [Head("encoder", 1, 1)])
    assert all(getattr(each, "observer", None) is None for each in translator.model.modules())


@pytest.mark.parametrize(
    "head", [("cross", 3, 1), ("cross", 1, 3), ("other", 1, 1), ("cross", 1, 0)]
)
def test_heads_that_are_not_there_are_named(translator, head):
    kind, layer, number = head
    expected = f"this model has no head {number} of {kind} attention in layer {layer}"
    with pytest.raises(OptionError, match=expected):
        check_heads(translator, [Head(*head)])
