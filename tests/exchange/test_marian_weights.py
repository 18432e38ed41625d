"""What Marian makes of sentences, its weights make of them here: scores and translations.

Marian's models and what it made are in `marian_models`, which `make_marian_models.py` makes.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.decoding.options import SearchOptions
from dragoman.decoding.translator import Translator
from dragoman.exchange.marian import import_marian
from dragoman.exchange.marian_export import export_marian
from dragoman.exchange.marian_files import read_npz, read_settings

MODELS = Path(__file__).parent / "marian_models"
EXPECTED = json.loads((MODELS / "expected.json").read_text(encoding="utf-8"))
NAMES = list(EXPECTED["models"])
TRANSLATED = [name for name in NAMES if "greedy" in EXPECTED["models"][name]]
COMPARED = EXPECTED["compared"]
TOLERANCE = 2e-4  # nats of sums of some -100


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Import a model once, with the vocabularies that Marian had."""
    found = {}

    def give(name):
        if name not in found:
            files = [MODELS / each for each in EXPECTED["models"][name]["vocabularies"]]
            found[name] = tmp_path_factory.mktemp("imported") / name
            import_marian(MODELS / name, found[name], vocabularies=files)
        return found[name]

    return give


@pytest.mark.parametrize("name", NAMES)
def test_scores(name, imported, own):
    scores = own(imported(name)).likelihoods(EXPECTED["texts"], EXPECTED["others"])
    np.testing.assert_allclose(
        scores, EXPECTED["models"][name]["scores"], atol=TOLERANCE, rtol=1e-6
    )


def translate(folder, beam_size):
    search = SearchOptions(
        beam_size=beam_size,
        length_penalty=0.0,
        max_extra_tokens=200,
        split_sentences="off",
        search_again=False,
    )
    translator = Translator.load(folder, "cpu", precision="float32")
    return [each.text for each in translator.translate_all(EXPECTED["texts"], options=search)]


@pytest.mark.parametrize("name", TRANSLATED)
def test_translations_of_greedy_search(name, imported):
    found = [each[:COMPARED] for each in translate(imported(name), 1)]
    assert found == EXPECTED["models"][name]["greedy"]


@pytest.mark.parametrize("name", TRANSLATED)
def test_translations_of_a_beam(name, imported, own):
    """They are Marian's, or more probable ones: such models are unsure when to end."""
    pairs = zip(
        EXPECTED["texts"],
        translate(imported(name), EXPECTED["beam"]),
        EXPECTED["models"][name]["beam"],
        strict=True,
    )
    others = [each for each in pairs if each[1][:COMPARED] != each[2] and len(each[2]) < COMPARED]
    if others:
        texts, ours, marians = zip(*others, strict=True)
        model = own(imported(name))
        assert (model.likelihoods(texts, ours) > model.likelihoods(texts, marians)).all()


def test_translations_are_no_trivial_ones():
    """So that the others could fail: some models translate each sentence otherwise, and end."""
    for kind in ("greedy", "beam"):
        lines = [EXPECTED["models"][name].get(kind, []) for name in NAMES]
        assert sum(len(set(each)) > 4 for each in lines) > len(NAMES) / 2
        assert sum(each.endswith(".") for line in lines for each in line) > len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_all_goes_back_to_marian(name, imported, own, tmp_path):
    export_marian(imported(name), tmp_path / "marian")
    import_marian(tmp_path / "marian", tmp_path / "again")
    before, after = own(imported(name)), own(tmp_path / "again")
    options = after.folder.options
    assert replace(options, output_bias=True) == replace(before.folder.options, output_bias=True)
    expected = before.likelihoods(EXPECTED["texts"], EXPECTED["others"])
    found = after.likelihoods(EXPECTED["texts"], EXPECTED["others"])
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=1e-6)


def test_all_were_made_by_the_same_marian():
    for name in NAMES:
        file = MODELS / name / "model.npz"
        _, text = read_npz(file)
        assert read_settings(text, file)["version"].startswith("v1.12.42 ")


def test_what_marian_wrote_is_small():
    assert sum(each.stat().st_size for each in MODELS.rglob("*") if each.is_file()) < 500_000
