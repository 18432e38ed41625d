"""What is written for each line."""

from dataclasses import replace
from functools import partial

import pytest
from tests.decoding.made_calibration import copy_calibrated

from dragoman.decoding.output.alignments import Aligner, write_pharaoh
from dragoman.decoding.stream.line_translation import LineTranslator
from dragoman.decoding.translation import Translation
from dragoman.decoding.translator import Translator

TEXTS = ["The dog sees a house.", "", "Old garden near the big house!", "dog"]


@pytest.fixture(scope="module")
def translator(tiny_folder):
    return Translator.load(tiny_folder.path, device="cpu")


def make(translator, warn=lambda _: None, num_best=1, **kwargs):
    translate = partial(translator.translate_all, num_best=num_best)
    return LineTranslator(translate, place="here", warn=warn, **kwargs)


def test_one_line_for_each(translator):
    expected = [each.text for each in translator.translate_all(TEXTS)]
    assert make(translator)(TEXTS, 1) == expected
    assert expected[1] == ""


def test_alternatives_with_numbers_and_scores(translator):
    records = make(translator, num_best=3, is_n_best=True)(TEXTS, 11)
    found = translator.translate_all(TEXTS, num_best=3)
    assert len(records) == len(TEXTS)
    for number, (record, best) in enumerate(zip(records, found, strict=True), start=10):
        every = (best, *best.alternatives)
        rows = [row.split(" ||| ") for row in record.split("\n")]
        assert [row[0] for row in rows] == [str(number)] * len(every)
        assert [row[1] for row in rows] == [each.text for each in every]
        assert [row[2] for row in rows] == [f"{each.score:.4f}" for each in every]


@pytest.mark.parametrize("is_n_best", [False, True])
def test_alignments(translator, is_n_best):
    aligner = Aligner.of(translator)
    num_best = 2 if is_n_best else 1
    records = make(translator, num_best=num_best, is_n_best=is_n_best, aligner=aligner)(TEXTS, 1)
    found = translator.translate_all(TEXTS, num_best=num_best)
    for text, record, best in zip(TEXTS, records, found, strict=True):
        for row, each in zip(record.split("\n"), (best, *best.alternatives), strict=True):
            columns = row.split(" ||| ")
            (links,) = aligner.align_translations([text], [each])
            assert columns[1 if is_n_best else 0] == each.text
            assert columns[2 if is_n_best else 1] == write_pharaoh(links)
            assert bool(links) == bool(text and each.text)


@pytest.mark.parametrize("is_n_best", [False, True])
def test_confidence_is_the_last_column(tiny_folder, tmp_path, is_n_best):
    calibrated = Translator.load(copy_calibrated(tiny_folder.path, tmp_path / "model"), "cpu")
    name_tokens = calibrated.folder.vocabularies.target.pieces
    found = calibrated.translate_all(TEXTS)
    expected = [f"{each.confidence:.2f}" for each in found]
    for names in (None, name_tokens):
        lines = make(calibrated, is_n_best=is_n_best, name_tokens=names, is_confident=True)
        rows = [record.split(" ||| ") for record in lines(TEXTS, 1)]
        assert [row[-1] for row in rows] == expected
        assert {len(row) for row in rows} == {2 + 2 * is_n_best + (2 - is_n_best) * bool(names)}


def test_what_is_to_be_said_of_a_translation_is_said_with_its_line():
    good = Translation(text="no, never", score=-1.0)
    odd = replace(good, notes=("translation far too long", "no room"))
    told = []
    lines = LineTranslator(
        lambda texts: [odd if text == "non" else good for text in texts],
        place="here",
        warn=told.append,
    )
    assert lines(["jamais", "non"], 5) == ["no, never", "no, never"]
    assert told == ["here, line 6: translation far too long", "here, line 6: no room"]
