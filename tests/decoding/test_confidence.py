"""Confidence: what it is computed from, and that it is nothing where nobody calibrated it."""

import json
import math
import pickle
import shutil
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.decoding.made_calibration import CALIBRATION, copy_calibrated

from dragoman.decoding.confidence import (
    CONFIDENCE_FILE,
    Evidence,
    read_calibration,
    require_calibration,
    write_calibration,
)
from dragoman.decoding.constraints.constraints import Constraints
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.translation import Translation
from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError, OptionError
from dragoman.files import digest_of
from dragoman.folder import read_folder
from dragoman.kernels.processor import can_compile
from dragoman.weights import load_model, write_model

TEXTS = ["The dog sees a house.", "A red tree.", "Old garden near the big house!", "dog"]
REGRESSION = CALIBRATION.regression


@pytest.fixture
def calibrated(tiny_folder, tmp_path):
    return copy_calibrated(tiny_folder.path, tmp_path / "model")


def test_features_are_what_their_names_say():
    evidence = Evidence("Der große Hund ", "the dog the dog", 6, (-0.5, -2.0, 0.0, -1.5), 1, True)
    found = evidence.measure(0.25)
    lengths = math.log((len("the dog the dog") + 3) / (len("Der große Hund") + 3))
    assert found == pytest.approx(
        (-1.0, -2.0, abs(lengths - 0.25), math.log(6 / 3), math.log(4 / 4), 1 / 10, 1.0, 1.0)
    )


def test_probability_is_a_logistic_regression():
    evidence = Evidence("Der große Hund ", "the dog the dog", 6, (-0.5, -2.0, 0.0, -1.5), 1, True)
    total = REGRESSION.intercept
    weighed = zip(evidence.measure(0.1), REGRESSION.features.values(), strict=True)
    for value, (mean, spread, weight) in weighed:
        total += weight * (value - mean) / spread
    assert REGRESSION.predict(evidence) == pytest.approx(1 / (1 + math.exp(-total)))


@given(
    st.lists(st.floats(-30, 0), min_size=1, max_size=8),
    st.floats(0, 30),
    st.integers(0, 5),
    st.booleans(),
)
def test_nothing_bad_makes_it_higher(logs, less, num_unknown, is_suspicious):
    better = Evidence("one two", "un deux", 4, tuple(logs))
    worse = Evidence(
        "one two", "un deux", 4, tuple(log - less for log in logs), num_unknown, is_suspicious
    )
    assert 0 <= REGRESSION.predict(worse) <= REGRESSION.predict(better) <= 1


def test_no_words_for_words_are_never_good():
    assert REGRESSION.predict(Evidence("a house", " ", 3, (-math.inf,))) == 0.0
    assert 0 <= REGRESSION.predict(Evidence("a house", "x", 3, (-math.inf,))) < 0.5


def test_the_file_gives_back_what_was_written(calibrated):
    assert read_calibration(read_folder(calibrated)) == CALIBRATION


def change(path, **changes):
    """Change a calibration file, its digest too."""
    plain = json.loads((path / CONFIDENCE_FILE).read_text()) | changes
    del plain["digest"]
    plain["digest"] = digest_of(json.dumps(plain, sort_keys=True).encode())
    (path / CONFIDENCE_FILE).write_text(json.dumps(plain))


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"num_lines": "many"},
        {"num_lines": math.nan},
        {"good_chrf": 1e300},
        {"regression": []},
        {"regression": {"length_ratio": 0.0, "intercept": 0.0, "features": {}}},
        {"reliability": {"bins": [[0.5, 2.0, 3]]}},
    ],
    ids=str,
)
def test_nonsense_in_the_file_is_refused(calibrated, changes):
    change(calibrated, **changes)
    with pytest.raises(FolderError, match="damaged, or of another version; calibrate with"):
        read_calibration(read_folder(calibrated))
    assert Translator.load(calibrated, "cpu").translate("dog").confidence is None


@pytest.mark.parametrize("contents", ["", "[]", "{", "[" * 60_000, '{"digest": "x"}', "x" * 70_000])
def test_a_damaged_file_is_refused(calibrated, contents):
    (calibrated / CONFIDENCE_FILE).write_text(contents)
    with pytest.raises(FolderError, match=CONFIDENCE_FILE):
        read_calibration(read_folder(calibrated))


def test_a_changed_number_is_noticed(calibrated):
    path = calibrated / CONFIDENCE_FILE
    path.write_text(path.read_text().replace('"intercept": 0.4', '"intercept": 4.4'))
    with pytest.raises(FolderError, match="damaged"):
        read_calibration(read_folder(calibrated))


def test_other_weights_have_no_calibration(calibrated):
    folder = read_folder(calibrated)
    model = load_model(folder)
    for each in model.parameters():
        each.data.mul_(1.01)
    write_model(calibrated, folder, model)
    with pytest.raises(FolderError, match="belongs to other weights"):
        read_calibration(read_folder(calibrated))
    assert Translator.load(calibrated, "cpu").translate("dog").confidence is None


def test_without_calibration_the_remedy_is_said(tiny_folder):
    found = Translator.load(tiny_folder.path, "cpu").translate(TEXTS[0])
    assert found.confidence is None
    assert found.part_confidences is None
    with pytest.raises(FolderError, match=r"calibrate with “dragoman evaluate .* --calibrate"):
        require_calibration(tiny_folder.folder, is_single=True)


def test_several_models_together_have_none(calibrated):
    translator = Translator.load(calibrated, "cpu", others=[calibrated])
    assert translator.translate("dog").confidence is None
    with pytest.raises(OptionError, match="leave out one of --confidence and --with"):
        require_calibration(translator.folder, is_single=False)


@pytest.mark.parametrize("precision", ["int8", "float32"])
def test_alone_and_in_a_batch(calibrated, precision):
    translator = Translator.load(calibrated, "cpu", precision=precision)
    together = [each.confidence for each in translator.translate_all(TEXTS * 3)]
    alone = [translator.translate(text).confidence for text in TEXTS]
    assert len(set(alone)) > 1
    assert together == pytest.approx(alone * 3, abs=1e-5)


def test_engines_agree(calibrated):
    compiled = Translator.load(calibrated, "cpu", precision="float32")
    folder = read_folder(calibrated)
    plain = Translator(folder, load_model(folder), "cpu")
    found, expected = (
        [each.confidence for each in translator.translate_all(TEXTS)]
        for translator in (compiled, plain)
    )
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.skipif(not can_compile(), reason="needs Numba")
def test_compiled_engine_needs_no_pytorch(calibrated):
    program = (
        "import sys, dragoman; translator = dragoman.load(sys.argv[1], 'cpu'); "
        "found = translator.translate('The old dog.').confidence; "
        "assert 0 < found < 1 and 'torch' not in sys.modules, found"
    )
    subprocess.run([sys.executable, "-c", program, calibrated], check=True)


def test_a_text_has_the_mean_of_its_parts(calibrated):
    translator = Translator.load(calibrated, "cpu")
    found = translator.translate(" ".join(TEXTS))
    assert len(found.parts) == len(found.part_confidences) > 1
    assert found.confidence == pytest.approx(sum(found.part_confidences) / len(found.parts))
    alone = [translator.translate(part.source).confidence for part in found.parts]
    assert found.part_confidences == pytest.approx(alone, abs=1e-5)
    assert translator.translate(" ").confidence == 1.0


def test_alternatives_have_their_own(calibrated):
    found = Translator.load(calibrated, "cpu").translate(TEXTS[0], num_best=3)
    assert len({each.confidence for each in (found, *found.alternatives)}) > 1


def test_scores_that_nobody_wanted_tell_nothing(calibrated):
    translator = Translator.load(calibrated, "cpu")
    greedy = SearchOptions(beam_size=1, max_extra_tokens=6)
    unscored = translator.translate("dog", options=greedy, constraints=Constraints(is_scored=False))
    assert unscored.confidence is None
    assert translator.translate("dog", options=greedy).confidence is not None


def test_translations_can_still_be_sent_to_other_processes(calibrated):
    found = Translator.load(calibrated, "cpu").translate(TEXTS[0])
    assert pickle.loads(pickle.dumps(found)).confidence == found.confidence
    assert Translation(text="by hand", score=0.0).confidence is None


def test_a_copy_of_a_folder_keeps_its_calibration(calibrated, tmp_path):
    shutil.copytree(calibrated, tmp_path / "elsewhere")
    assert read_calibration(read_folder(tmp_path / "elsewhere")) == CALIBRATION
    write_calibration(read_folder(tmp_path / "elsewhere"), CALIBRATION)  # over the old one
