"""How far the confidence in a translation can be relied on, at home and out of domain.

    python benchmarks/confidence.py DATA [--models models] [--directions de-en en-de fr-en en-fr]

DATA is a folder with tatoeba-en-XX (train and valid), europarl-en-XX (valid) and newstest
(newstest2013.en-XX). The models of the box are calibrated on every second of Tatoeba's held-out
lines and tested on the others, and on newstest2013, of which neither model nor calibration knows
anything; then calibrated on as many lines of Europarl too (“wide”). Beside that: what the first
calibration is worth in float32, what it takes to compute, and how near to each other two people's
translations of the same sentence are, by which `GOOD_CHRF` was chosen.
"""

import argparse
import random
import tarfile
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.data.corpus import read_aligned
from dragoman.decoding.confidence import Bin, Evidence, Regression, Reliability
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import build_metric
from dragoman.evaluation.calibration import (
    GOOD_CHRF,
    fit_regression,
    measure_reliability,
)
from record import RESULTS, ROOT, require_commit, write_result

SEED = 1
NUM_HUMAN = 3000
PICTURE = ROOT / "docs" / "pictures" / "confidence.png"
NAMES = {
    "tatoeba": "Tatoeba, lines not fitted",
    "newstest2013": "newstest2013, out of domain",
    "newstest2013_wide": "newstest2013, calibrated on Europarl too",
}
COLOURS = ("#86207c", "#c77d1e", "#2a7f8e")


class Judged(NamedTuple):
    """Translated lines: what is known of each, which are good, and the seconds they took."""

    evidence: list[Evidence]
    is_good: np.ndarray
    seconds: float

    def rows(self, start: int) -> "Judged":
        """Take every second line."""
        return Judged(self.evidence[start::2], self.is_good[start::2], self.seconds / 2)

    def first(self, count: int) -> "Judged":
        """Take the first lines."""
        return self._replace(evidence=self.evidence[:count], is_good=self.is_good[:count])


def main() -> None:
    """Measure, print, draw and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    parser.add_argument("--directions", nargs="+", default=["de-en", "en-de", "fr-en", "en-fr"])
    parser.add_argument("--picture", type=Path, default=PICTURE)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    figures: dict[str, float] = {}
    curves: dict[str, dict[str, Reliability]] = {}
    weights = {}
    for direction in given.directions:
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(given.models / f"{direction}.tar.xz") as archive:
                archive.extractall(folder, filter="data")
            measured = measure(Path(folder) / direction, given.data, direction)
        curves[direction] = {name: measured.found[name] for name in NAMES}
        weights[direction] = {
            name: each.weight for name, each in measured.regression.features.items()
        }
        key = direction.replace("-", "_")
        for name, each in measured.found.items():
            figures |= list_figures(f"{key}_{name}", each)
        figures |= {f"{key}_{name}": value for name, value in measured.figures.items()}
    for key, value in figures.items():
        print(f"{value:8.4f}  {key}")
    draw(curves, given.picture)
    notes: dict[str, object] = {
        "good": f"sentence chrF of at least {GOOD_CHRF:g}",
        "curves": {
            direction: {name: each.bins for name, each in some.items()}
            for direction, some in curves.items()
        },
        "weights": weights,
    }
    print(write_result("confidence", figures, seeds=[SEED], notes=notes, folder=given.results))


class Measured(NamedTuple):
    """What was found of one direction."""

    regression: Regression
    found: dict[str, Reliability]
    figures: dict[str, float]


def measure(model: Path, data: Path, direction: str) -> Measured:
    """Calibrate a model on one half of Tatoeba and test it on the other, and on news.

    Parameters
    ----------
    model : Path
        Its folder.
    data : Path
        The folder of texts.
    direction : str
        Such as “de-en”.

    Returns
    -------
    Measured
        Reliability on each set.
    """
    source, target = direction.split("-")
    other = source if target == "en" else target
    patterns = {
        "tatoeba": f"tatoeba-en-{other}/valid.{{}}.xz",
        "europarl": f"europarl-en-{other}/valid.{{}}.xz",
        "newstest2013": f"newstest/newstest2013.en-{other}.{{}}.xz",
    }
    texts = {
        name: read_aligned(
            [data / each.format(side) for side in (source, target)], ["source", "reference"]
        )
        for name, each in patterns.items()
    }
    translator = Translator.load(model, "cpu")
    judged = {name: judge(translator, *each) for name, each in texts.items()}
    fitted = judged["tatoeba"].rows(0)
    regression = fit_regression(fitted.evidence, fitted.is_good)
    more = judged["europarl"].first(len(fitted.evidence))
    wide = fit_regression(
        [*fitted.evidence, *more.evidence], np.concatenate([fitted.is_good, more.is_good])
    )
    tested = {"tatoeba": judged["tatoeba"].rows(1), "newstest2013": judged["newstest2013"]}
    begun = time.perf_counter()
    predicted = {name: predict(regression, each) for name, each in tested.items()}
    seconds = time.perf_counter() - begun
    found = {
        name: measure_reliability(predicted[name], each.is_good) for name, each in tested.items()
    }
    found |= {
        f"{name}_wide": measure_reliability(predict(wide, each), each.is_good)
        for name, each in tested.items()
    }
    exact = judge(Translator.load(model, "cpu", precision="float32"), *texts["tatoeba"]).rows(1)
    found["tatoeba_float32"] = measure_reliability(predict(regression, exact), exact.is_good)
    num_lines = sum(len(each.evidence) for each in tested.values())
    figures = {
        "microseconds_of_a_line": 1e6 * seconds / num_lines,
        "share_of_translating": seconds / sum(each.seconds for each in tested.values()),
    }
    chrf = compare_people(data / f"tatoeba-en-{other}", source, target)
    figures["two_people_median_chrf"] = float(np.median(chrf))
    figures["two_people_share_good"] = float((chrf >= GOOD_CHRF).mean())
    return Measured(regression, found, figures)


def judge(translator: Translator, sources: list[str], references: list[str]) -> Judged:
    """Translate lines and say which translations are good; those in several parts are left out.

    Parameters
    ----------
    translator : Translator
        The model.
    sources : list[str]
        The lines.
    references : list[str]
        What people made of them.

    Returns
    -------
    Judged
        The others.
    """
    begun = time.perf_counter()
    translations = translator.translate_all(sources)
    seconds = time.perf_counter() - begun
    metric = build_metric("chrf")
    pairs = [
        (each.evidence[0], metric.sentence_score(each.text, [reference]).score >= GOOD_CHRF)
        for each, reference in zip(translations, references, strict=True)
        if len(each.evidence) == 1
    ]
    return Judged([each for each, _ in pairs], np.array([good for _, good in pairs]), seconds)


def predict(regression: Regression, judged: Judged) -> np.ndarray:
    """Compute the confidence in lines.

    Parameters
    ----------
    regression : Regression
        By which.
    judged : Judged
        The lines.

    Returns
    -------
    np.ndarray
        One a line.
    """
    return np.array([regression.predict(each) for each in judged.evidence])


def list_figures(key: str, found: Reliability) -> dict[str, float]:
    """Name the figures of a set.

    Parameters
    ----------
    key : str
        Direction and set.
    found : Reliability
        What was measured.

    Returns
    -------
    dict[str, float]
        The Brier score beside that of who always says the share of good ones (which is known only
        afterwards), the error, the ranking, and how far the mean is off.
    """
    num_lines = sum(each.num_lines for each in found.bins)
    mean = sum(each.predicted * each.num_lines for each in found.bins) / num_lines
    return {
        f"{key}_lines": num_lines,
        f"{key}_share_good": found.share_good,
        f"{key}_mean_confidence": mean,
        f"{key}_brier": found.brier,
        f"{key}_brier_of_the_share": found.share_good * (1 - found.share_good),
        f"{key}_calibration_error": found.calibration_error,
        f"{key}_area_under_roc": found.ranking,
    }


def compare_people(folder: Path, source: str, target: str) -> np.ndarray:
    """Score translations that people made against others of the same sentence.

    Parameters
    ----------
    folder : Path
        Texts in which a sentence may have several translations.
    source : str
        Code of the language translated from.
    target : str
        Code of that translated to.

    Returns
    -------
    np.ndarray
        The chrF of a pair for each of some sentences.
    """
    files = [folder / f"train.{each}.xz" for each in (source, target)]
    known = defaultdict(dict)
    for sentence, translation in zip(*read_aligned(files, ["source", "target"]), strict=True):
        known[sentence][translation] = None
    chance = random.Random(SEED)
    several = [list(each) for each in known.values() if len(each) > 1]
    metric = build_metric("chrf")
    pairs = (chance.sample(each, 2) for each in chance.sample(several, NUM_HUMAN))
    return np.array([metric.sentence_score(one, [other]).score for one, other in pairs])


def draw(curves: dict[str, dict[str, Reliability]], path: Path) -> None:
    """Draw the reliability curves, a panel for each direction.

    Parameters
    ----------
    curves : dict[str, dict[str, Reliability]]
        By direction and set.
    path : Path
        The picture.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        1, len(curves), figsize=(3.1 * len(curves), 3.7), sharey=True, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    colours = dict(zip(NAMES, COLOURS, strict=True))
    for panel, (direction, some) in zip(panels[0], curves.items(), strict=True):
        panel.plot([0, 1], [0, 1], color="#bbb", linewidth=1, zorder=1)
        for name, found in some.items():
            draw_curve(panel, found.bins, colours[name], NAMES[name])
        panel.set_title(direction.replace("-", " → "), fontsize=11)
        panel.set_xlabel("confidence")
        panel.set_aspect("equal")
        panel.set_xlim(0, 1)
        panel.set_ylim(0, 1)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel(f"share with chrF ≥ {GOOD_CHRF:g}")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def draw_curve(panel: object, bins: tuple[Bin, ...], colour: str, label: str) -> None:
    """Draw one curve, a bin as large as its lines are many.

    Parameters
    ----------
    panel : object
        Axes of Matplotlib.
    bins : tuple[Bin, ...]
        The curve.
    colour : str
        Its colour.
    label : str
        Its name.
    """
    num_lines = sum(each.num_lines for each in bins)
    points = [[each.predicted for each in bins], [each.observed for each in bins]]
    panel.plot(*points, color=colour, linewidth=1.4, marker="o", markersize=3, label=label)
    panel.scatter(*points, [400 * each.num_lines / num_lines for each in bins], colour, alpha=0.3)


if __name__ == "__main__":
    main()
