"""Attention as the page gets it equals attention as it is computed."""

import base64
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.output.alignments import Aligner
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError
from dragoman.insight.ablation import Head, translate_without
from dragoman.insight.attention import START, look_at
from dragoman.insight.explanation import CAPTIONS, explain
from dragoman.insight.word_groups import END
from dragoman.models.attention.observer import observed_attention
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import LuongOptions, Seq2seqOptions
from dragoman.serving.page.page_insight import (
    align_for_page,
    look_for_page,
    to_bytes,
    write_explanation,
    write_look,
    write_progress,
)
from dragoman.serving.sentence_translation import find_spans

SOURCE, TARGET = "The old dog sees.", "Le vieux chien."


def unpack(answer, one):
    shape = (
        one["numHeads"],
        len(answer["sides"][one["queries"]]["pieces"]),
        len(answer["sides"][one["keys"]]["pieces"]),
    )
    return np.frombuffer(base64.b64decode(one["weights"]), np.uint8).reshape(shape)


def batch_of(translator):
    vocabularies = translator.folder.vocabularies
    target = (*vocabularies.target.encode([TARGET])[0], vocabularies.eos_id)
    return make_batch(flatten([translator.encode(SOURCE)]), flatten([target]), vocabularies.pad_id)


def test_values_are_those_observed_and_rows_sum_to_one(translator):
    answer = look_for_page(translator, SOURCE, TARGET)
    with torch.inference_mode(), observed_attention(translator.model) as seen:
        translator.model.forward(batch_of(translator))
    expected = {}
    for name, calls in seen.items():
        side, layer, *_ = name.split(".")
        kind = "cross" if "cross_attention" in name else side
        expected[kind, int(layer) + 1] = torch.cat(calls, 2)[0].numpy()
    assert {(each["kind"], each["layer"]) for each in answer["maps"]} == set(expected)
    for one in answer["maps"]:
        shown = unpack(answer, one)
        wanted = expected[one["kind"], one["layer"]]
        assert np.abs(shown / 255 - wanted).max() <= 1 / 255
        assert (shown.sum(-1, dtype=np.int64) == 255).all()


@pytest.mark.parametrize(
    ("shape", "kinds"),
    [
        (LuongOptions(num_layers=1, model_dim=8), {"cross"}),
        (Seq2seqOptions(num_layers=1, model_dim=8), {"gradient"}),
        (
            TransformerOptions(num_encoder_layers=1, num_decoder_layers=1, model_dim=8,
                               feed_forward_dim=8, num_heads=2, decoder_attention="feedback"),
            {"cross", "encoder", "decoder"},
        ),
    ],
)  # fmt: skip
def test_every_family_is_shown(translator_of, shape, kinds):
    translator = translator_of(shape)
    answer = look_for_page(translator, SOURCE, TARGET)
    assert {each["kind"] for each in answer["maps"]} == kinds
    assert bool(answer["remark"]) == (kinds == {"gradient"})
    expected = {
        (each.kind, each.layer): each.weights
        for each in look_at(translator, SOURCE, translation=TARGET).maps
    }
    for one in answer["maps"]:
        weights = expected[one["kind"], one["layer"]]
        assert np.abs(unpack(answer, one) / 255 - weights).max() <= 1 / 255


@given(
    st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=5),
    st.booleans(),
)
def test_bytes_are_near_and_keep_their_sum(rows, is_normal):
    weights = np.array([rows])
    sums = weights.sum(-1, keepdims=True)
    weights = weights / np.maximum(sums, 1 if not is_normal else 1e-300)
    weights = np.where(np.isfinite(weights), np.minimum(weights, 1), 0)
    found = to_bytes(weights).astype(np.int64)
    assert np.abs(found / 255 - weights).max() <= 1 / 255 + 1e-9
    assert (np.abs(found.sum(-1) - weights.sum(-1) * 255) <= 0.5 + 1e-6).all()


def test_many_small_weights_still_sum_to_one():
    found = to_bytes(np.full((1, 1, 400), 1 / 400))
    assert found.sum(dtype=np.int64) == 255
    assert set(found.ravel()) == {0, 1}


def test_sides_name_what_is_read_and_written(translator):
    answer = look_for_page(translator, SOURCE, TARGET)
    sides = answer["sides"]
    assert list(sides["source"]["words"]) == [*SOURCE.split(), END]
    assert list(sides["target"]["words"]) == [*TARGET.split(), END]
    assert list(sides["read"]["words"]) == [START, *TARGET.split()]
    for side in sides.values():
        assert len(side["pieces"]) == len(side["wordOf"])
        assert max(side["wordOf"]) == len(side["words"]) - 1


def test_without_a_head_the_translation_is_searched_anew(translator):
    off = [Head("cross", 1, 1), Head("cross", 2, 1)]
    answer = look_for_page(translator, SOURCE, TARGET, off=off, beam_size=2)
    told = answer["without"]
    assert told["heads"] == [["cross", 1, 1], ["cross", 2, 1]]
    assert told["translation"] == translate_without(translator, SOURCE, off, beam_size=2).text
    with torch.inference_mode():
        whole = token_log_probabilities(translator.model, batch_of(translator)).sum().item()
    assert told["logProbability"] == pytest.approx(whole, abs=1e-3)
    assert told["logProbabilityWithout"] != pytest.approx(whole, abs=1e-3)
    for one in answer["maps"]:
        if one["kind"] == "cross":
            assert not unpack(answer, one)[0].any()
    assert "without" not in look_for_page(translator, SOURCE, TARGET)


def test_heads_that_are_not_there_are_refused(translator):
    with pytest.raises(OptionError, match="this model has no head 9"):
        look_for_page(translator, SOURCE, TARGET, off=[Head("cross", 1, 9)])


def test_alignment_and_probabilities_of_any_translation(translator):
    told = align_for_page(translator, SOURCE, TARGET)
    links = Aligner.of(translator).align([(SOURCE, TARGET)])[0]
    assert told["alignment"] == find_spans(SOURCE, TARGET, links)
    assert list(told["words"]) == TARGET.split()
    with torch.inference_mode():
        logs = token_log_probabilities(translator.model, batch_of(translator))[0]
    pieces = translator.folder.vocabularies.target.pieces(batch_of(translator).target.ids[0])
    first = 1 + next(i for i, piece in enumerate(pieces[1:]) if piece.startswith("▁"))
    assert told["probabilities"][0] == pytest.approx(logs[:first].sum().exp().item(), abs=1e-4)


def test_model_without_attention_aligns_nothing(translator_of):
    translator = translator_of(Seq2seqOptions(num_layers=1, model_dim=8))
    told = align_for_page(translator, SOURCE, TARGET)
    assert told["alignment"] == ()
    assert len(told["probabilities"]) == 3


def test_a_choice_of_maps_is_written(translator):
    seen = look_at(translator, SOURCE, translation=TARGET, kinds=["cross"], layers=[2], heads=[1])
    (one,) = write_look(translator, seen)["maps"]
    assert (one["kind"], one["layer"], one["numHeads"]) == ("cross", 2, 1)


@pytest.fixture(scope="module")
def found(tiny_folder):
    translator = Translator.load(tiny_folder.path, "cpu")
    return explain(translator, "The old dog sees.", translation="Le chien.", num_masks=16)


def test_numbers_survive_json(found):
    told = json.loads(json.dumps(write_explanation(found, 300)))
    for name, numbers in (
        ("rise", found.rise.values),
        ("errors", found.rise.errors),
        ("gradient", found.gradient),
        ("attention", found.attention),
    ):
        np.testing.assert_allclose(told[name], numbers, atol=6e-6)
    assert (told["sourceWords"], told["targetWords"]) == (
        list(found.source_words),
        list(found.target_words),
    )
    assert told["captions"] == CAPTIONS


def test_exact_explanations_have_as_many_masks_as_they_need(tiny_folder):
    translator = Translator.load(tiny_folder.path, "cpu")
    exact = explain(translator, "The dog.", translation="Le chien.", num_masks=10)
    told = write_progress(exact, 300)
    assert (told["isExact"], told["numMasks"], told["ofMasks"]) == (True, 4, 4)


def test_progress_says_how_far_it_is(tiny_folder):
    translator = Translator.load(tiny_folder.path, "cpu")
    text = "The old dog sees a small garden."
    part = explain(translator, text, translation="Le chien.", num_masks=30)
    told = write_progress(part, 300)
    assert (told["isExact"], told["numMasks"], told["ofMasks"]) == (False, 30, 300)
    assert set(told) == {"rise", "errors", "numMasks", "ofMasks", "isExact"}


def test_what_is_no_number_is_zero(found):
    broken = found.gradient.copy()
    broken[0, 0] = np.nan
    object.__setattr__(found, "gradient", broken)
    assert write_explanation(found, 300)["gradient"][0][0] == 0.0
