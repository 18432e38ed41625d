"""Calibration: the regression against its equation, reliability against its definitions."""

import math
import random
import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.serving.word_model import DICTIONARY, make_pair, write_word_model

import dragoman
from dragoman.cli.command import main
from dragoman.decoding.confidence import (
    CONFIDENCE_FILE,
    FEATURES,
    Evidence,
    read_calibration,
)
from dragoman.decoding.translation import Translation
from dragoman.errors import DataError
from dragoman.evaluation.calibration import (
    EXPECTED,
    check_enough,
    fit_confidence,
    fit_logistic,
    fit_regression,
    measure_reliability,
    rank_good,
)
from dragoman.folder import read_folder

KNOWN = "the old dog sees a tree"
PREDICTED = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.99, 1.0]), st.booleans()), min_size=1
)


def test_weights_are_where_the_loss_is_lowest():
    """Against a general minimiser of the loss as it is written in the docstring."""
    chance = np.random.default_rng(1)
    design = np.column_stack([np.ones(80), chance.normal(size=(80, 3))])
    is_good = chance.random(80) < 1 / (1 + np.exp(-design @ [0.5, 1.0, -2.0, 0.0]))
    expected = np.array([0.0, 0.0, -1.0, 2.0])
    found = fit_logistic(design, is_good, expected)
    weights = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=200, tolerance_grad=1e-12)

    def loss():
        optimiser.zero_grad()
        logits = torch.from_numpy(design) @ weights
        total = torch.nn.functional.binary_cross_entropy_with_logits(
            logits, torch.from_numpy(is_good).double(), reduction="sum"
        )
        total = total + 0.5 * ((weights - torch.from_numpy(expected))[1:] ** 2).sum()
        total.backward()
        return total

    for _ in range(5):
        optimiser.step(loss)
    assert found == pytest.approx(weights.detach().numpy(), abs=1e-5)


@given(PREDICTED)
def test_ranking_is_a_comparison_of_all_pairs(rows):
    predicted, is_good = np.array([one for one, _ in rows]), np.array([two for _, two in rows])
    pairs = [
        1.0 if good > bad else 0.5 if good == bad else 0.0
        for good in predicted[is_good]
        for bad in predicted[~is_good]
    ]
    expected = sum(pairs) / len(pairs) if pairs else 0.5
    assert rank_good(predicted, is_good) == pytest.approx(expected)


@given(PREDICTED)
def test_reliability_is_what_its_words_say(rows):
    predicted, is_good = np.array([one for one, _ in rows]), np.array([two for _, two in rows])
    found = measure_reliability(predicted, is_good)
    assert sum(each.num_lines for each in found.bins) == len(rows)
    assert found.brier == pytest.approx(
        sum((one - two) ** 2 for one, two in rows) / len(rows), abs=1e-6
    )
    groups = {}
    for one, two in rows:
        groups.setdefault(min(9, int(one * 10)), []).append((one, two))
    error = sum(abs(sum(one - two for one, two in each)) for each in groups.values()) / len(rows)
    assert found.calibration_error == pytest.approx(error, abs=1e-6)


def draw_evidence(count, seed=3, slope=2.0):
    """Draw lines whose truth depends on the mean log-probability alone."""
    chance = random.Random(seed)
    evidence, is_good = [], []
    for _ in range(count):
        mean = chance.uniform(-2, 0)
        logs = tuple(mean + chance.uniform(-0.1, 0.1) for _ in range(4))
        evidence.append(Evidence("ein Haus hier", "a house here", 5, logs))
        is_good.append(chance.random() < 1 / (1 + math.exp(-slope * (sum(logs) / 4 + 1))))
    return evidence, np.array(is_good)


def test_a_law_is_found_again():
    evidence, is_good = draw_evidence(4000)
    regression = fit_regression(evidence, is_good)
    for mean in (-1.8, -1.0, -0.3):
        found = regression.predict(Evidence("ein Haus hier", "a house here", 5, (mean,) * 4))
        assert found == pytest.approx(1 / (1 + math.exp(-2 * (mean + 1))), abs=0.05)


def test_what_was_never_seen_has_the_weight_that_is_expected():
    evidence, is_good = draw_evidence(300)
    features = fit_regression(evidence, is_good).features
    for name, weight in EXPECTED.items():
        assert features[name] == (0.0, 1.0, weight)
    assert features["unknown_words"].weight == 0.0


def test_weights_of_the_wrong_sign_are_left_out():
    evidence, is_good = draw_evidence(600, slope=-2.0)  # the surer the model, the worse
    features = fit_regression(evidence, is_good).features
    assert all(features[name].weight * sign >= 0 for name, sign in FEATURES.items())
    assert features["mean_log_probability"].weight == 0.0


def write(evidence, is_good):
    """Translations, and references that make them good or not."""
    translations = [Translation(text=each.text, score=0.0, evidence=(each,)) for each in evidence]
    return translations, ["a house here" if good else "Wednesday's rain" for good in is_good]


def test_reliability_is_of_lines_that_were_not_fitted():
    translations, references = write(*draw_evidence(1000))
    found = fit_confidence(translations, [references], "lines of a law")
    assert found.num_lines == 1000
    assert found.fitted_on == "lines of a law"
    assert 0 < found.reliability.calibration_error < 0.06
    assert 0.7 < found.reliability.ranking < 0.9
    unknowable = list(references)
    random.Random(5).shuffle(unknowable)
    chance = fit_confidence(translations, [unknowable], "lines of chance")
    assert chance.reliability.ranking == pytest.approx(0.5, abs=0.06)


def test_the_nearest_of_several_references_counts():
    translations, references = write(*draw_evidence(300))
    wrong = ["quite another text"] * 300
    both = fit_confidence(translations, [wrong, references], "lines")
    assert both == fit_confidence(translations, [references], "lines")


def test_lines_of_several_sentences_are_left_out():
    translations, references = write(*draw_evidence(300))
    first = translations[0].evidence[0]
    double = Translation(text="a house here. a house here", score=0.0, evidence=(first, first))
    found = fit_confidence([double, *translations], [["whatever", *references]], "lines")
    assert found == fit_confidence(translations, [references], "lines")


@pytest.mark.parametrize(("num_lines", "num_good"), [(199, 100), (300, 19), (300, 281), (0, 0)])
def test_too_few_lines_are_refused(num_lines, num_good):
    with pytest.raises(DataError, match="200 or more, with 20 good and 20 others among them"):
        check_enough(num_lines, num_good, "my lines")
    check_enough(200, 20, "my lines")


@pytest.fixture(scope="module")
def words(tmp_path_factory, vocabularies):
    """A model of ten words, and sentences of which half have words that it has never seen."""
    folder = tmp_path_factory.mktemp("words")
    write_word_model(folder / "model", vocabularies)
    chance = random.Random(4)
    pairs = [make_pair(chance) for _ in range(240)]
    for row in range(0, 240, 2):
        strange = [chance.choice(["bird", "river", "moon", "Tuesday"]) for _ in range(4)]
        pairs[row] = (" ".join(strange), " ".join(strange).upper())
    for name, side in (("source", 0), ("reference", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / name).write_text(lines, encoding="utf-8")
    return folder


def test_from_calibrating_to_the_column(words, tmp_path, capsys):
    path = tmp_path / "model"
    shutil.copytree(words / "model", path)
    before = {each.name: each.read_bytes() for each in path.iterdir()}
    texts = ["--source", str(words / "source"), "--reference", str(words / "reference")]
    main(["evaluate", str(path), *texts, "--metrics", "chrf", "--calibrate"])
    said = capsys.readouterr().out
    assert "confidence calibrated on 240 lines of source; good is chrF ≥ 60" in said
    assert "predicted  observed   lines" in said
    assert {name: (path / name).read_bytes() for name in before} == before
    assert read_calibration(read_folder(path)).reliability.ranking > 0.9
    (tmp_path / "text").write_text(f"{KNOWN}\nmoon bird river moon\n\n")
    main(["translate", str(path), str(tmp_path / "text"), "--confidence"])
    columns = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert columns[0][0] == " ".join(DICTIONARY[each] for each in KNOWN.split())
    assert float(columns[0][1]) > 0.8 > 0.4 > float(columns[1][1])
    assert columns[2] == ["", "1.00"]
    found = dragoman.load(path, "cpu").translate(KNOWN)
    assert f"{found.confidence:.2f}" == columns[0][1]
    main(["translate", str(path), str(tmp_path / "text"), "--confidence", "--n-best", "2"])
    rows = [line.split(" ||| ") for line in capsys.readouterr().out.splitlines()]
    assert rows[0][0] == "0"
    assert rows[0][-1] == columns[0][1]


def test_from_python(words, tmp_path):
    path = tmp_path / "model"
    shutil.copytree(words / "model", path)
    found = dragoman.evaluate(
        path, words / "source", words / "reference", metrics=["chrf"], calibrate=True
    )
    assert found.calibration == read_calibration(read_folder(path))
    assert '"calibration_error"' in found.as_json()


@pytest.mark.parametrize("fits_int8", [True, False])
def test_eight_bits_take_it_along_where_nothing_is_lost(words, tmp_path, capsys, fits_int8):
    path, out = tmp_path / "model", tmp_path / "int8"
    shutil.copytree(words / "model", path)
    facts = (path / "dragoman.json").read_text()
    facts = facts.replace('"fits_int8": false', f'"fits_int8": {str(fits_int8).lower()}')
    (path / "dragoman.json").write_text(without_digest(facts))
    texts = ["--source", str(words / "source"), "--reference", str(words / "reference")]
    main(["evaluate", str(path), *texts, "--metrics", "chrf", "--calibrate"])
    main(["quantise", str(path), str(out)])
    told = capsys.readouterr().err
    assert (out / CONFIDENCE_FILE).exists() == fits_int8
    assert ("is not calibrated" in told) == (not fits_int8)
    if fits_int8:
        found = read_calibration(read_folder(out))
        assert "before it was rounded to eight bits" in found.fitted_on


def without_digest(facts):
    """Take the digest out of a description, as a person does who has edited it."""
    head, _, _ = facts.rpartition(',\n "digest"')
    return head + "\n}\n"
