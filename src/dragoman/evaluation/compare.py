"""Tell whether one system translates better than another, or whether chance explains it.

Two tests are run on the same lines: paired bootstrap resampling (Koehn 2004) and paired
approximate randomisation (Riezler and Maxwell 2005). Counts and scores are sacreBLEU’s.
"""

# Why not `sacrebleu.significance`: it finds a system significantly different from itself, its
# bootstrap gives about half the two-sided p-value, it has no interval of a difference, and on 3,000
# lines it takes six times as long (22 s and 385 MiB instead of 3.4 s and 95 MiB). With the same
# draws its randomisation and its intervals are those here, as tests show.
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman.errors import OptionError
from dragoman.evaluation.bleu import (
    Score,
    build_metric,
    check_line_counts,
    check_resampling,
    find_interval,
    resample_totals,
    score_rows,
)

if TYPE_CHECKING:
    import numpy as np

# Rounding in sums of fractional counts (TER with several references) must not break a tie.
_TOLERANCE = 1e-9

_TRIALS_AT_A_TIME = 500


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The difference between a system and the baseline, with p-values.

    Attributes
    ----------
    baseline, system : str
        The names of the two.
    value : float
        The score of the system minus that of the baseline.
    low, high : float
        The bounds of the 95 % bootstrap interval of that difference.
    p_bootstrap : float
        Two-sided p-value by paired bootstrap resampling.
    p_randomisation : float
        Two-sided p-value by paired approximate randomisation.
    num_changed_lines : int
        The number of lines that the two translate differently.
    """

    baseline: str
    system: str
    value: float
    low: float
    high: float
    p_bootstrap: float
    p_randomisation: float
    num_changed_lines: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The scores of several systems, and their differences from the first.

    Attributes
    ----------
    metric : str
        The metric, as sacreBLEU writes it.
    lower_is_better : bool
        True for TER.
    num_lines : int
        The number of lines compared.
    scores : dict[str, Score]
        The score of each system with its interval and signature, the baseline first.
    differences : tuple[Difference, ...]
        One for each system but the baseline.
    """

    metric: str
    lower_is_better: bool
    num_lines: int
    scores: dict[str, Score]
    differences: tuple[Difference, ...]

    def in_words(self, alpha: float = 0.05) -> str:
        """Summarise the tests, one sentence per system.

        Parameters
        ----------
        alpha : float
            The p-value below which a difference counts as shown.

        Returns
        -------
        str
            One line per system compared with the baseline, and a caution where there are several.
        """
        if not 0 < alpha < 1:
            raise OptionError(f"alpha is {alpha}; give a number between 0 and 1, such as 0.05")
        lines = [self._describe(difference, alpha) for difference in self.differences]
        if len(lines) > 1:
            lines.append(
                f"Each system was tested by itself; of {len(lines)} tests, one may succeed by "
                f"chance. To be strict, ask for p < {alpha / len(lines):.2g}."
            )
        return "\n".join(lines)

    def _describe(self, difference: Difference, alpha: float) -> str:
        """Summarise the difference between one system and the baseline."""
        one, other = difference.baseline, difference.system
        if difference.num_changed_lines == 0:
            return f"{one} and {other} are the same, line for line: there is nothing to tell apart."
        bootstrap = f"{_write_p(difference.p_bootstrap)} by bootstrap"
        randomisation = f"{_write_p(difference.p_randomisation)} by randomisation"
        amount = f"{_write_amount(abs(difference.value))} {self.metric}"
        better, worse = (other, one)
        if (difference.value < 0) != self.lower_is_better:
            better, worse = (one, other)
        if self.lower_is_better:
            amount += ", where lower is better"
        shown = (difference.p_bootstrap < alpha, difference.p_randomisation < alpha)
        if all(shown):
            return f"{better} is better than {worse} by {amount} ({bootstrap}, {randomisation})."
        if any(shown):
            return (
                f"The tests disagree on {one} and {other}: {better} is ahead by {amount}, but "
                f"{bootstrap} and {randomisation}; take it as undecided at {alpha:g} and test on "
                "more lines."
            )
        return (
            f"No difference can be shown between {one} and {other}: {amount} "
            f"({bootstrap}, {randomisation}); that does not prove they are equal."
        )


def compare_systems(
    references: Sequence[Sequence[str]],
    systems: Mapping[str, Sequence[str]],
    *,
    metric: str = "bleu",
    lowercase: bool = False,
    tokenize: str | None = None,
    num_samples: int = 1000,
    num_trials: int = 10000,
    seed: int = 12345,
) -> Comparison:
    """Compare each system with the first by two significance tests.

    Parameters
    ----------
    references : Sequence[Sequence[str]]
        One sequence of lines per reference file.
    systems : Mapping[str, Sequence[str]]
        The translations of each system by its name; the first is the baseline.
    metric : str
        One of “bleu”, “chrf”, “chrf++” and “ter”.
    lowercase : bool
        Whether upper and lower case count as the same.
    tokenize : str or None
        sacreBLEU's name of a tokeniser; None means “13a”.
    num_samples : int
        The number of bootstrap resamples.
    num_trials : int
        The number of trials of approximate randomisation.
    seed : int
        The seed of both tests.

    Returns
    -------
    Comparison
        Scores, differences and p-values.

    Notes
    -----
    With d the difference of the two scores, bootstrap draws lines with replacement and computes
    d* each time. Koehn counts how often the better system stays ahead; as it was not chosen
    beforehand which system that would be, the share of the rest is doubled:
    p = 2 (1 + min(#{d* ≤ 0}, #{d* ≥ 0})) / (1 + samples), at most 1.

    Randomisation swaps the outputs of the two systems on each line with probability ½ and counts
    how often the difference is as large as the real one: p = (1 + #{|d*| ≥ |d|}) / (1 + trials).

    Every pair is tested with the same draws, so that a result depends neither on the order nor on
    the number of the other systems.
    """
    if len(systems) < 2:
        raise OptionError(
            f"systems to compare: {len(systems)} given; give two or more, the baseline first"
        )
    check_line_counts({f"system “{name}”": lines for name, lines in systems.items()}, references)
    check_resampling(num_samples, seed, smallest=1)
    if num_trials < 1:
        raise OptionError(f"{num_trials} trials of randomisation were asked for; give 1 or more")
    scorer = build_metric(metric, lowercase=lowercase, tokenize=tokenize)
    statistics = {
        name: scorer._extract_corpus_statistics(lines, references)
        for name, lines in systems.items()
    }
    totals = resample_totals(list(statistics.values()), num_samples, seed)
    samples = {
        name: score_rows(scorer, total) for name, total in zip(statistics, totals, strict=True)
    }
    signature = scorer.get_signature()
    for key, setting in (("bs", num_samples), ("ar", num_trials), ("seed", seed)):
        signature.update(key, setting)
    scores = {
        name: _score(scorer, statistics[name], samples[name], str(signature)) for name in systems
    }
    baseline, *others = systems
    differences = []
    for name in others:
        sampled = samples[name] - samples[baseline]
        low, high = find_interval(sampled)
        difference = Difference(
            baseline=baseline,
            system=name,
            value=scores[name].value - scores[baseline].value,
            low=low,
            high=high,
            p_bootstrap=_test_by_bootstrap(sampled),
            p_randomisation=_test_by_randomisation(
                scorer, statistics[baseline], statistics[name], num_trials, seed
            ),
            num_changed_lines=sum(map(operator.ne, systems[baseline], systems[name])),
        )
        differences.append(difference)
    return Comparison(
        metric=scores[baseline].name,
        lower_is_better=scores[baseline].name == "TER",
        num_lines=len(systems[baseline]),
        scores=scores,
        differences=tuple(differences),
    )


def _score(
    metric: Any,  # noqa: ANN401
    statistics: Sequence[Sequence[float]],
    sampled: "np.ndarray",
    signature: str,
) -> Score:
    """Score the whole text and compute the interval of its resamples."""
    whole = metric._aggregate_and_compute(statistics)
    low, high = find_interval(sampled)
    return Score(name=whole.name, value=whole.score, low=low, high=high, signature=signature)


def _test_by_bootstrap(differences: "np.ndarray") -> float:
    """Compute the two-sided p-value of paired bootstrap resampling."""
    not_ahead = int((differences <= _TOLERANCE).sum())
    not_behind = int((differences >= -_TOLERANCE).sum())
    return min(1.0, 2 * (1 + min(not_ahead, not_behind)) / (1 + len(differences)))


def _test_by_randomisation(
    metric: Any,  # noqa: ANN401
    baseline: Sequence[Sequence[float]],
    system: Sequence[Sequence[float]],
    num_trials: int,
    seed: int,
) -> float:
    """Compute the p-value of approximate randomisation."""
    import numpy as np

    one = np.asarray(baseline, dtype=np.float64)
    other = np.asarray(system, dtype=np.float64)
    both = one.sum(axis=0) + other.sum(axis=0)
    real = abs(np.diff(score_rows(metric, np.stack([one.sum(axis=0), other.sum(axis=0)]))).item())
    generator = np.random.default_rng(seed)
    num_as_large = 0
    for start in range(0, num_trials, _TRIALS_AT_A_TIME):
        num_rows = min(_TRIALS_AT_A_TIME, num_trials - start)
        swapped = generator.integers(2, size=(num_rows, len(one)), dtype=np.int8)
        shuffled = one.sum(axis=0) + swapped.astype(np.float64) @ (other - one)
        differences = score_rows(metric, shuffled) - score_rows(metric, both - shuffled)
        num_as_large += int((np.abs(differences) >= real - _TOLERANCE).sum())
    return (1 + num_as_large) / (1 + num_trials)


def _write_p(p: float) -> str:
    if p < 0.001:
        return "p < 0.001"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def _write_amount(amount: float) -> str:
    if amount >= 0.095:
        return f"{amount:.1f}"
    return f"{amount:.2f}" if amount >= 0.005 else "less than 0.01"
