"""Scaling: validation loss over model size and corpus size, with fitted power laws."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from dragoman.options import option, require, require_least
from dragoman.paper.experiments.claims.scaling_law import EXPONENTS, Law, fit_law
from dragoman.paper.report.result import (
    Cell,
    Column,
    Experiment,
    Lines,
    Plot,
    Say,
    Series,
    Table,
    spread,
)
from dragoman.paper.training_runs.corpora import (
    Corpus,
    DataOptions,
    hash_contents,
    make_digest,
    prepare_corpus,
)
from dragoman.paper.training_runs.experiment_runs import (
    WorkOptions,
    check_choice,
    read_seeds,
    run_all,
    tell_failures,
)
from dragoman.paper.training_runs.outcomes import Outcome, Plan

_PRESET = "nano"
_BUILT_IN_VOCABULARY = 2048
_HEADS = 4
_NUM_VALIDATIONS = 8
_CURVE_POINTS = 60


@dataclass(frozen=True, kw_only=True)
class ScaleOptions:
    """Options: the sizes that are trained, the corpus and the length of runs."""

    widths: tuple[str, ...] = option(
        ("16", "24", "32", "48", "64", "96", "128"), "widths of the models (d_model)"
    )
    pairs: tuple[str, ...] = option(
        ("500", "1000", "2000", "4000", "8000", "16000"), "sentence pairs of the corpora"
    )
    seeds: tuple[str, ...] = option(("1",), "seeds of the runs of each size")
    max_steps: int = option(800, "updates of every run")
    batch_tokens: int = option(1000, "subwords per update, source plus target, of every run")
    vocabulary_size: int | None = option(
        None, "subwords of all; off: 2,048 for the built-in corpus, else by the corpus's size"
    )
    data: DataOptions = field(default_factory=DataOptions)
    runs: WorkOptions = field(default_factory=WorkOptions)

    def __post_init__(self) -> None:
        read_seeds(self.seeds)
        for name in ("widths", "pairs"):
            sizes = getattr(self, name)
            flag = f"--{name}"
            check_choice(flag, sizes, [each for each in sizes if each.isdecimal() and int(each)])
            require(len(sizes) >= 2, flag, " ".join(sizes), "give at least two, to compare them")
        for width in self.widths:
            good = int(width) % _HEADS == 0
            require(good, "--widths", width, f"give multiples of {_HEADS}, the number of heads")
        most = max(map(int, self.pairs))
        enough = bool(self.data.given) or most <= self.data.sentences
        require(enough, "--pairs", most, f"--sentences is only {self.data.sentences}")
        require_least(self, max_steps=1, batch_tokens=1)


@dataclass(frozen=True, kw_only=True)
class Point:
    """Results of the runs of one size.

    Parameters
    ----------
    width : int
        Of the model.
    num_weights : int
        Its parameters without the word vectors (N).
    num_pairs, num_tokens : int
        Of the corpus (D: tokens).
    runs : tuple[Outcome, ...]
        One for each seed.
    """

    width: int
    num_weights: int
    num_pairs: int
    num_tokens: int
    runs: tuple[Outcome, ...]

    @property
    def losses(self) -> list[float]:
        """One for each seed."""
        return [each.loss for each in self.runs]


class _Line(NamedTuple):
    """A series of sizes in which one quantity grows."""

    title: str
    symbol: str
    axis: str
    points: list[Point]
    sizes: list[int]


def run(options: ScaleOptions, say: Say) -> Experiment:
    """Train models of several sizes on corpora of several sizes.

    Notes
    -----
    Two lines through the plane of sizes: models on the largest corpus, and corpora with the
    largest model. By default twelve runs, some ten minutes on two cores.
    """
    widths, counts = (sorted(map(int, each)) for each in (options.widths, options.pairs))
    corpora = _make_corpora(options, counts, say)
    sizes = [(width, corpora[-1]) for width in widths]
    sizes += [(widths[-1], corpus) for corpus in corpora[:-1]]
    plans = [
        _plan(width, corpus, seed, options)
        for seed in read_seeds(options.seeds)
        for width, corpus in sizes
    ]
    outcomes, missing = run_all(plans, options.runs, say)
    points = [
        point for width, corpus in sizes if (point := _collect(width, corpus, outcomes)) is not None
    ]
    largest = max(point.num_tokens for point in points)
    by_model = [point for point in points if point.num_tokens == largest]
    by_corpus = sorted(
        (point for point in points if point.width == widths[-1]), key=lambda each: each.num_tokens
    )
    lines = (
        _Line("size of the model", "N", "parameters without words (N)", by_model,
              [point.num_weights for point in by_model]),
        _Line("size of the corpus", "D", "subwords of the corpus (D)", by_corpus,
              [point.num_tokens for point in by_corpus]),
    )  # fmt: skip
    laws = [_fit(line.points, line.sizes) for line in lines]
    return Experiment(
        title="Loss over the size of model and corpus",
        claim="Loss falls with the size of the model and of the corpus by a power law, as far as "
        "neither holds the other up (scaling laws, one of the notes, 003).",
        findings=(*map(_tell, lines, laws), *tell_failures(missing)),
        tables=(_tabulate(points, options), _tabulate_laws(lines, laws)),
        plots=(_plot(lines, laws),),
        seeds=read_seeds(options.seeds),
    )


def _make_corpora(options: ScaleOptions, counts: Sequence[int], say: Say) -> list[Corpus]:
    """Prepare subsets of a corpus of several sizes, all with the subwords of the largest."""
    from dragoman.data.corpus import read_aligned
    from dragoman.files import write_file

    work = Path(options.runs.work)
    size = options.vocabulary_size or (None if options.data.given else _BUILT_IN_VOCABULARY)
    texts = options.data.find(work)
    sides = read_aligned([texts.source, texts.target], ["source", "target"])
    there = len(sides[0])
    require(counts[-1] <= there, "--pairs", counts[-1], f"the corpus has only {there}")
    digest = make_digest(hash_contents((texts.source, texts.target)))
    corpora: list[Corpus] = []
    for count in reversed(counts):
        folder = work / "data" / f"first-{count}-{digest}"
        paths = [folder / _plain_name(path) for path in (texts.source, texts.target)]
        for path, lines in zip(paths, sides, strict=True):
            if not path.exists():
                write_file(path, "".join(f"{line}\n" for line in lines[:count]))
        part = replace(texts, source=paths[0], target=paths[1])
        subwords = corpora[0].subwords if corpora else None
        corpora.append(prepare_corpus(part, work, size, say, subwords=subwords))
    return corpora[::-1]


def _plain_name(path: Path) -> str:
    """Strip the compression suffix of a file name, so that the language suffix is last."""
    return path.name.removesuffix(".gz").removesuffix(".xz")


def _name_run(width: int, corpus: Corpus) -> str:
    return f"scale-{width}-wide-{corpus.num_pairs}-pairs"


def _plan(width: int, corpus: Corpus, seed: int, options: ScaleOptions) -> Plan:
    """Plan the run of one size."""
    said = {
        "model-dim": width,
        "feed-forward-dim": 2 * width,
        "num-heads": _HEADS,
        "label-smoothing": 0,
        "max-steps": options.max_steps,
        "batch-tokens": options.batch_tokens,
        "warmup-steps": max(1, options.max_steps // 4),
        "validate-every": max(1, options.max_steps // _NUM_VALIDATIONS),
        "best-by": "loss",
        "average-checkpoints": 1,
        "max-minutes": "off",
    }
    return Plan(
        name=_name_run(width, corpus),
        preset=_PRESET,
        seed=seed,
        corpus=corpus,
        flags=tuple(word for flag, value in said.items() for word in (f"--{flag}", str(value))),
        search=("--beam-size", "1"),
    )


def _collect(width: int, corpus: Corpus, outcomes: Sequence[Outcome]) -> Point | None:
    """Collect the runs of one size, if there are any."""
    name = _name_run(width, corpus)
    runs = tuple(each for each in outcomes if each.plan.name == name)
    if not runs:
        return None
    return Point(
        width=width,
        num_weights=runs[0].num_parameters - corpus.vocabulary_size * width,
        num_pairs=corpus.num_pairs,
        num_tokens=corpus.num_tokens,
        runs=runs,
    )


def _fit(points: Sequence[Point], sizes: Sequence[int]) -> Law:
    """Fit a power law to all runs of some sizes."""
    pairs = [(size, loss) for size, point in zip(sizes, points, strict=True)
             for loss in point.losses]  # fmt: skip
    return fit_law([size for size, _ in pairs], [loss for _, loss in pairs])


def _tell(line: _Line, law: Law) -> str:
    """Describe a fitted law."""
    return (
        f"Over the {line.title} from {line.sizes[0]:,} to {line.sizes[-1]:,}: "
        f"L = {law.floor:.3f} + {law.factor:.3g}·{line.symbol}^−{law.exponent:.2f} nats, α between "
        f"{law.low:.2f} and {law.high:.2f}; what was measured is {law.deviation:.3f} off the law."
    )


def _tabulate(points: Sequence[Point], options: ScaleOptions) -> Table:
    """Put all sizes into one table."""
    rows: list[tuple[Cell, ...]] = []
    for point in points:
        loss, deviation = spread(point.losses)
        seconds = statistics.fmean(each.seconds for each in point.runs)
        rows.append(
            (point.width, point.num_weights, point.num_pairs, point.num_tokens, loss, deviation,
             seconds)
        )  # fmt: skip
    return Table(
        name="losses",
        title=f"Validation loss on {options.data.title}",
        columns=(
            Column("width"), Column("parameters without words (N)"), Column("pairs"),
            Column("subwords of the corpus (D)"), Column("loss, nats", ".3f"),
            Column("± deviation", ".3f"), Column("training, s", ",.0f"),
        ),
        rows=tuple(rows),
        notes=(
            f"Pre-norm Transformers of two layers on each side, {options.max_steps:,} updates of "
            f"{options.batch_tokens:,} subwords each, without dropout; the best of "
            f"{_NUM_VALIDATIONS} validations counts. All have the same subwords, and the small "
            "corpora are the beginning of the large one.",
        ),
    )  # fmt: skip


def _tabulate_laws(lines: Sequence[_Line], laws: Sequence[Law]) -> Table:
    """Put the laws into one table."""
    return Table(
        name="laws",
        title="Fitted laws L = L∞ + a·x^−α",
        columns=(
            Column("over"), Column("points"), Column("L∞", ".3f"), Column("a", ".3g"),
            Column("α", ".2f"), Column("α from", ".2f"), Column("α to", ".2f"),
            Column("deviation, nats", ".3f"),
        ),
        rows=tuple(
            (line.title, len(line.points), law.floor, law.factor, law.exponent, law.low, law.high,
             law.deviation)
            for line, law in zip(lines, laws, strict=True)
        ),
        notes=(
            "Least squares on a grid of α. From–to is one standard error, as far as errors are "
            "normal and alike; “from” or “to” at an end of the grid "
            f"({EXPONENTS[0]:g} to {EXPONENTS[1]:g}) means that the data do not bound it.",
            "The budget of updates is the same for all, so the laws are those of this budget, not "
            "of training to the end.",
        ),
    )  # fmt: skip


def _plot(lines: Sequence[_Line], laws: Sequence[Law]) -> Plot:
    """Plot the measurements and the fitted laws."""
    panels = []
    for line, law in zip(lines, laws, strict=True):
        runs = [(size, loss) for size, point in zip(line.sizes, line.points, strict=True)
                for loss in point.losses]  # fmt: skip
        measured = Series(
            name="measured", x=[size for size, _ in runs], y=[loss for _, loss in runs],
            style="dots",
        )  # fmt: skip
        ratio = (line.sizes[-1] / line.sizes[0]) ** (1 / _CURVE_POINTS)
        smooth = [line.sizes[0] * ratio**step for step in range(_CURVE_POINTS + 1)]
        fitted = Series(
            name=f"L = {law.floor:.2f} + a·{line.symbol}^−{law.exponent:.2f}", x=smooth,
            y=[law.at(size) for size in smooth], style="dashes",
        )  # fmt: skip
        panels.append(
            Lines(title=line.title, x_label=line.axis, y_label="validation loss, nats",
                  series=(measured, fitted), x_scale="log")
        )  # fmt: skip
    return Plot(name="laws", title="Loss over size", panels=tuple(panels))
