"""Three accounts of one translation, in the same words, each equal to its own source."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.output.unknown_words import source_attention
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError
from dragoman.insight.attribution import gradient_times_input
from dragoman.insight.explanation import (
    CAPTIONS,
    explain,
    explain_in_steps,
    merge_words,
)
from dragoman.insight.rise import MaskedScorer, Rise
from dragoman.insight.word_groups import END, WordGroups, group_words
from dragoman.models.build import build_model
from dragoman.models.recurrent.options import Seq2seqOptions
from dragoman.weights import vocabulary_of

SOURCE, TARGET = "The old dog sees a garden.", "Le vieux chien."


def test_words_are_rows_and_columns(translator):
    found = explain(translator, SOURCE, translation=TARGET, num_masks=40)
    assert found.source_words == tuple(SOURCE.split())
    assert found.target_words == (*TARGET.split(), END)
    shape = (len(found.target_words), len(found.source_words))
    for numbers in (found.rise.values, found.rise.errors, found.gradient, found.attention):
        assert numbers.shape == shape
    assert (found.source, found.translation) == (SOURCE, TARGET)


def test_translation_is_the_models_own_unless_given(translator):
    assert explain(translator, "The dog.", num_masks=20).translation == (
        translator.translate("The dog.").text
    )


def test_rise_is_that_of_the_pair(translator):
    found = explain(translator, SOURCE, translation=TARGET, num_masks=50, seed=3)
    expected = Rise(MaskedScorer.of(translator, SOURCE, TARGET), 50, seed=3)
    *_, last = expected.estimates(256)
    np.testing.assert_allclose(found.rise.values, last.values)
    np.testing.assert_allclose(found.rise.errors, last.errors)


def test_gradients_add_up_and_attention_is_shared_out(translator):
    """Merging loses no gradient but that of the end, and keeps attention a share."""
    found = explain(translator, SOURCE, translation=TARGET, num_masks=20)
    vocabularies = translator.folder.vocabularies
    source, target = (
        group_words(vocabulary, text)
        for vocabulary, text in zip(vocabularies, (SOURCE, TARGET), strict=True)
    )
    batch = make_batch(flatten([source.ids]), flatten([target.ids]), vocabularies.pad_id)
    signed = gradient_times_input(translator.model, batch).double().numpy()
    assert found.gradient.sum() == pytest.approx(signed[:, :-1].sum(), rel=1e-4, abs=1e-6)
    seen = source_attention(translator.model, batch)[0].double().numpy()
    first = [place for place, word in enumerate(target.word_of) if word == 0]
    expected = seen[first][:, : source.word_of.index(1)].sum(1).mean()
    assert found.attention[0, 0] == pytest.approx(expected, rel=1e-5)
    assert (found.attention.sum(1) <= 1 + 1e-6).all()


def test_gradients_are_found_where_nobody_else_wants_them(translator):
    with torch.inference_mode():
        found = explain(translator, SOURCE, translation=TARGET, num_masks=20)
    assert found.gradient.any()


def test_merging_by_hand():
    source = WordGroups((5, 6, 7, 0), ("", "", "", ""), ("a", "b", END), (0, 0, 1, 2))
    target = WordGroups((5, 6, 0), ("", "", ""), ("x", END), (0, 0, 1))
    places = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(
        merge_words(places, source, target, is_averaged=False), [[10, 8], [17, 10]]
    )
    np.testing.assert_array_equal(
        merge_words(places, source, target, is_averaged=True), [[5, 4], [17, 10]]
    )


def test_steps_know_ever_more(translator):
    steps = list(explain_in_steps(translator, SOURCE, TARGET, num_masks=60, block_size=20))
    assert [each.rise.num_masks for each in steps] == [20, 40, 60]


def test_model_without_attention_has_two_accounts(translator, vocabularies):
    shape = Seq2seqOptions(num_layers=1, model_dim=8)
    model = build_model(shape, vocabulary_of(vocabularies)).eval()
    plain = Translator(replace(translator.folder, options=shape), model, torch.device("cpu"))
    found = explain(plain, SOURCE, translation=TARGET, num_masks=30)
    assert found.attention is None
    assert found.gradient.any()


def test_nothing_cannot_be_explained(translator):
    with pytest.raises(DataError, match="the sentence to explain is empty"):
        explain(translator, "  ", translation=TARGET)
    with pytest.raises(DataError, match="the translation to explain is empty; give at least one"):
        explain(translator, SOURCE, translation=" ")


def test_every_account_says_what_it_does_not_show():
    assert set(CAPTIONS) == {"rise", "gradient", "attention"}
    assert "not an explanation" in CAPTIONS["attention"]
    assert "not trained on" in CAPTIONS["rise"]
    assert "linear" in CAPTIONS["gradient"]
