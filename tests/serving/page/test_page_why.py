"""An explanation as the page gets it: all of it first, then what changes."""

import json

import numpy as np
import pytest

from dragoman.decoding.translator import Translator
from dragoman.insight.explanation import CAPTIONS, explain
from dragoman.serving.page.page_why import write_explanation, write_progress


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
