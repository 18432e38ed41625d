"""The calibrated probability that a translation is good, and the file that it is computed with.

``confidence.json`` in a model folder holds a logistic regression as plain numbers, what it was
fitted on, and how far its probabilities could be relied on. `dragoman.evaluation.calibration` makes
it. It belongs to the weights beside it: with others it is refused, since they give other scores.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from dragoman.errors import FolderError, OptionError
from dragoman.files import digest_of, read_bounded, write_file
from dragoman.folder import ModelFolder
from dragoman.text.repetition import find_repetition

CONFIDENCE_FILE = "confidence.json"
FORMAT = 1
LARGEST_FILE = 1 << 16
MOST_BINS = 100
LONGEST_NAME = 1000
LARGEST_NUMBER = 1e6

FEATURES: Mapping[str, int] = {
    "mean_log_probability": 1,
    "lowest_log_probability": 1,
    "odd_length": -1,
    "source_pieces": -1,
    "target_pieces": -1,
    "unknown_words": -1,
    "repetition": -1,
    "suspicion": -1,
}
"""What is looked at, and whether more of it makes a translation more or less likely to be good."""

LEAST_LOG = -20.0
MOST_REPEATS = 3
LONGEST_PHRASE = 12
FEW_CHARACTERS = 3
MOST_DEVIATIONS = 5.0


class Evidence(NamedTuple):
    """What is known of a translated sentence.

    Tokens and log-probabilities are counted with end symbols; `is_suspicious` says that it had to
    be searched for again.
    """

    source: str
    text: str
    num_source_tokens: int
    log_probabilities: tuple[float, ...]
    num_unknown: int = 0
    is_suspicious: bool = False

    @property
    def length_ratio(self) -> float:
        """The logarithm of the characters of the translation over those of its source."""
        text, source = (len(each.strip()) + FEW_CHARACTERS for each in (self.text, self.source))
        return math.log(text / source)

    def measure(self, length_ratio: float) -> tuple[float, ...]:
        """Compute the features, in the order of `FEATURES`.

        Notes
        -----
        Coverage of the source by attention is none of them: it made no calibration better, and
        engines on a card would have to read everything once more for it.
        """
        logs = [max(each, LEAST_LOG) for each in self.log_probabilities]
        source, text = self.source.lower().split(), self.text.lower().split()
        times = [find_repetition(each, LONGEST_PHRASE).num_times for each in (source, text)]
        return (
            sum(logs) / len(logs),
            min(logs),
            abs(self.length_ratio - length_ratio),
            math.log(self.num_source_tokens / max(1, len(source))),
            math.log(len(logs) / max(1, len(text))),
            self.num_unknown / (self.num_source_tokens + len(logs)),
            float(min(MOST_REPEATS, max(0, times[1] - times[0]))),
            float(self.is_suspicious),
        )


class Weighed(NamedTuple):
    """A feature's mean and spread where it was fitted, and its weight in their units."""

    mean: float
    spread: float
    weight: float


class Bin(NamedTuple):
    """Lines of similar confidence: its mean, the share that were good, and how many they are."""

    predicted: float
    observed: float
    num_lines: int


@dataclass(frozen=True, kw_only=True)
class Reliability:
    """How far confidence could be relied on, on lines that it was not fitted on.

    Parameters
    ----------
    share_good : float
        Of the translations.
    brier : float
        Mean squared difference between confidence and what was (1: good, 0: not). Who always says
        `share_good` has share_good · (1 − share_good).
    calibration_error : float
        Mean difference between predicted and observed over the bins, weighted by their lines (ECE).
    ranking : float
        The probability that of a good and a bad translation the good one has the higher confidence
        (the area under the ROC curve).
    bins : tuple[Bin, ...]
        The reliability curve.
    """

    share_good: float
    brier: float
    calibration_error: float
    ranking: float
    bins: tuple[Bin, ...]


@dataclass(frozen=True, kw_only=True)
class Regression:
    """A logistic regression that turns features of a translation into a probability.

    Parameters
    ----------
    length_ratio : float
        The usual logarithm of the length of a translation over that of its source.
    intercept : float
        The log-odds of a translation whose features are all at their means.
    features : dict[str, Weighed]
        By the names of `FEATURES`, in their order.
    """

    length_ratio: float
    intercept: float
    features: dict[str, Weighed]

    def predict(self, evidence: Evidence) -> float:
        """Compute the probability that a translation is good.

        Notes
        -----
        What is further than five spreads from the mean counts as five. An empty translation is
        never good.
        """
        if not evidence.text.strip():
            return 0.0
        total = self.intercept
        values = evidence.measure(self.length_ratio)
        for value, each in zip(values, self.features.values(), strict=True):
            total += each.weight * bound_deviation(value, each)
        return (1 + math.tanh(total / 2)) / 2


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A regression, what it was fitted on, and how far it can be relied on.

    Parameters
    ----------
    good_chrf : float
        From which sentence chrF against the reference a translation counted as good.
    fitted_on : str
        What it was fitted on, in words.
    num_lines : int
        How many lines that was.
    regression : Regression
        What was fitted.
    reliability : Reliability
        On lines that it was not fitted on, by cross-validation.
    """

    good_chrf: float
    fitted_on: str
    num_lines: int
    regression: Regression
    reliability: Reliability

    def in_words(self) -> str:
        """Write the reliability curve for people."""
        found = self.reliability
        lines = [
            f"confidence calibrated on {self.num_lines:,} {self.fitted_on}; good is chrF ≥ "
            f"{self.good_chrf:g}, as {found.share_good:.1%} are",
            f"on lines not fitted: Brier score {found.brier:.3f}, calibration error "
            f"{found.calibration_error:.1%}, good above bad {found.ranking:.1%}",
            "predicted  observed   lines",
        ]
        lines += [f"{one:9.0%} {other:9.0%} {count:7,}" for one, other, count in found.bins]
        return "\n".join(lines)


def bound_deviation(value: float, feature: Weighed) -> float:
    """Compute how many spreads a value is from its mean, at most five."""
    deviation = (value - feature.mean) / feature.spread
    return max(-MOST_DEVIATIONS, min(MOST_DEVIATIONS, deviation))


def write_calibration(folder: ModelFolder, calibration: Calibration) -> None:
    """Write a calibration into a model folder."""
    plain = {"format": FORMAT, "weights": folder.open_weights().identity} | asdict(calibration)
    plain["digest"] = _digest(plain)
    text = json.dumps(plain, indent=1, ensure_ascii=False) + "\n"
    write_file(folder.path / CONFIDENCE_FILE, text)


def read_calibration(folder: ModelFolder) -> Calibration:
    """Read the calibration of a model folder, checking that it is whole and of these weights."""
    path = folder.path / CONFIDENCE_FILE
    remedy = (
        f"calibrate with “dragoman evaluate {folder.path} --calibrate --source FILE --reference "
        "FILE” on lines that the model was not trained on"
    )
    if not path.exists():
        raise FolderError(f"{folder.path}: has no calibration of its confidence; {remedy}")
    try:
        plain = json.loads(read_bounded(path, LARGEST_FILE, remedy))
        if plain.pop("digest") != _digest(plain) or plain["format"] != FORMAT:
            raise ValueError
        calibration = _from_plain(plain)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FolderError(f"{path}: damaged, or of another version; {remedy}") from None
    if plain["weights"] != folder.open_weights().identity:
        raise FolderError(f"{path}: belongs to other weights than those beside it; {remedy}")
    return calibration


def require_calibration(folder: ModelFolder, *, is_single: bool) -> None:
    """Refuse to tell the confidence of what has no calibration."""
    if not is_single:
        raise OptionError(
            "--confidence: several models together have no calibration; leave out one of "
            "--confidence and --with"
        )
    read_calibration(folder)


def carry_calibration(folder: ModelFolder, rounded: ModelFolder) -> None:
    """Give a calibration to the same model in eight bits, if nothing measurable is lost there."""
    if not folder.facts.fits_int8:
        return
    try:
        calibration = read_calibration(folder)
    except FolderError:  # none, or not this model's
        return
    said = f"{calibration.fitted_on}, before it was rounded to eight bits"
    write_calibration(rounded, replace(calibration, fitted_on=said))


def _digest(plain: Mapping[str, Any]) -> str:
    return digest_of(json.dumps(plain, sort_keys=True).encode())


def _from_plain(plain: dict[str, Any]) -> Calibration:
    """Build a calibration; one of the errors of a wrong type or value refuses an invalid one."""
    regression, reliability = plain["regression"], plain["reliability"]
    features = {name: Weighed(*map(_number, regression["features"][name])) for name in FEATURES}
    if any(each.spread <= 0 for each in features.values()):
        raise ValueError("spread")
    bins = [
        Bin(_share(one), _share(other), int(_number(count)))
        for one, other, count in reliability["bins"][:MOST_BINS]
    ]
    shares = ("share_good", "brier", "calibration_error", "ranking")
    return Calibration(
        good_chrf=_number(plain["good_chrf"]),
        fitted_on=str(plain["fitted_on"])[:LONGEST_NAME],
        num_lines=int(_number(plain["num_lines"])),
        regression=Regression(
            length_ratio=_number(regression["length_ratio"]),
            intercept=_number(regression["intercept"]),
            features=features,
        ),
        reliability=Reliability(
            bins=tuple(bins), **{name: _share(reliability[name]) for name in shares}
        ),
    )


def _number(value: Any) -> float:  # noqa: ANN401
    if type(value) not in (int, float) or not abs(value) <= LARGEST_NUMBER:
        raise ValueError(value)
    return float(value)


def _share(value: Any) -> float:  # noqa: ANN401
    if not 0 <= _number(value) <= 1:
        raise ValueError(value)
    return float(value)
