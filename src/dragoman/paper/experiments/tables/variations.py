"""Rows of the paper's table 3, trained at a fraction of their width."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dragoman.errors import OptionError
from dragoman.options import option, require, require_least
from dragoman.paper.experiments.tables.published import TABLE_3, VariationRow
from dragoman.paper.report.result import Column, Experiment, Lines, Plot, Say, Series, Table, spread
from dragoman.paper.training_runs.corpora import Corpus, DataOptions, prepare_corpus
from dragoman.paper.training_runs.experiment_runs import (
    WorkOptions,
    check_choice,
    read_seeds,
    run_all,
    tell_failures,
)
from dragoman.paper.training_runs.outcomes import Outcome, Plan

_WIDTHS = ("model_dim", "feed_forward_dim", "key_dim", "value_dim")
_BUILT_IN_VOCABULARY = 2048
_FEWEST_RANKED = 3


def name_row(row: VariationRow) -> str:
    """Give a row its name on the command line."""
    return row.preset.removeprefix("paper-")


ROWS = {name_row(row): row for row in TABLE_3}


@dataclass(frozen=True, kw_only=True)
class VariationsOptions:
    """Options: the rows of table 3, their scale, the corpus and the length of runs."""

    rows: tuple[str, ...] = option(
        ("base", "a-1-head", "b-16", "c-2-layers", "c-256", "c-ff-1024", "d-dropout-0", "e"),
        f"of {', '.join(ROWS)}",
    )
    scale: int = option(8, "what every width of a row is divided by; the heads stay")
    seeds: tuple[str, ...] = option(("1", "2"), "seeds of the runs of each row")
    max_steps: int = option(1000, "updates of every run")
    batch_tokens: int = option(1200, "subwords per update, source plus target, of every run")
    peak_learning_rate: float = option(0.003, "learning rate at the end of warm-up")
    vocabulary_size: int | None = option(
        None, "subwords of all; off: 2,048 for the built-in corpus, else by the corpus's size"
    )
    data: DataOptions = field(default_factory=DataOptions)
    runs: WorkOptions = field(default_factory=WorkOptions)

    def __post_init__(self) -> None:
        check_choice("--rows", self.rows, tuple(ROWS))
        read_seeds(self.seeds)
        require_least(self, scale=1, max_steps=1, batch_tokens=1)
        rate = self.peak_learning_rate
        require(rate > 0, "--peak-learning-rate", rate, "give more than 0")
        for name in self.rows:
            scale_row(ROWS[name], self.scale)


def scale_row(row: VariationRow, scale: int) -> VariationRow:
    """Divide all widths of a row.

    Returns
    -------
    VariationRow
        The same heads and layers, so that what the row changes stays what it changes.
    """
    widths = {name: getattr(row, name) for name in _WIDTHS}
    for name, value in widths.items():
        if value % scale:
            raise OptionError(
                f"--scale is {scale}, but row “{name_row(row)}” has {name} = {value}, which that "
                "does not divide; take a smaller --scale, or leave the row out"
            )
    small = replace(row, **{name: value // scale for name, value in widths.items()})
    if small.model_dim % 2:
        raise OptionError(
            f"--scale is {scale}, but row “{name_row(row)}” would get an odd width "
            f"({small.model_dim}), and sinusoids come in pairs; take a smaller --scale"
        )
    return small


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Results of the runs of one row.

    Parameters
    ----------
    row : VariationRow
        The row as published.
    runs : tuple[Outcome, ...]
        One for each seed that came to its end.
    """

    row: VariationRow
    runs: tuple[Outcome, ...]

    def spread(self, figure: str) -> tuple[float, float | None]:
        """Compute mean and deviation of one figure over the seeds."""
        return spread([getattr(each, figure) for each in self.runs])


def correlate_ranks(first: Sequence[float], second: Sequence[float]) -> float:
    r"""Compute Spearman's rank correlation.

    Notes
    -----
    :math:`\rho`, the correlation of the ranks, equal values sharing the mean of theirs.
    """
    import numpy as np

    def rank(values: Sequence[float]) -> np.ndarray:
        array = np.asarray(values, dtype=float)
        below = (array[:, None] > array[None, :]).sum(1)
        equal = (array[:, None] == array[None, :]).sum(1)
        return below + (equal - 1) / 2

    ranks = [rank(each) - (len(each) - 1) / 2 for each in (first, second)]
    scale = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / scale if scale else float("nan")


def run(options: VariationsOptions, say: Say) -> Experiment:
    """Train the rows and compare them with table 3.

    Notes
    -----
    By default eight rows, two seeds each, at an eighth of the width on the built-in corpus: about
    half an hour on two cores.
    """
    work = Path(options.runs.work)
    size = options.vocabulary_size or (None if options.data.given else _BUILT_IN_VOCABULARY)
    found = options.data.find(work)
    # As in the paper, variations are compared on the validation set.
    texts = replace(found, test_source=found.valid_source, test_reference=found.valid_target)
    corpus = prepare_corpus(texts, work, size, say)
    seeds = read_seeds(options.seeds)
    plans = [_plan(name, seed, corpus, options) for seed in seeds for name in options.rows]
    outcomes, failures = run_all(plans, options.runs, say)
    measured = [
        Measured(row=ROWS[name], runs=runs)
        for name in options.rows
        if (runs := tuple(each for each in outcomes if each.plan.name == _name_run(name)))
    ]
    return Experiment(
        title=f"Variations on the Transformer (table 3) at 1/{options.scale} of the width",
        claim="One head is 0.9 BLEU worse than the best number of heads, small keys hurt, bigger "
        "models are better, dropout helps, and learned positions are as good as sinusoids (table "
        "3, section 6.2 of the paper).",
        findings=(*_findings(measured), *tell_failures(failures)),
        tables=(_tabulate(measured, options, corpus),),
        plots=(_plot(measured, options),),
        seeds=seeds,
    )


def _name_run(name: str) -> str:
    return f"variation-{name}"


def _plan(name: str, seed: int, corpus: Corpus, options: VariationsOptions) -> Plan:
    """Plan the run of one row."""
    small = scale_row(ROWS[name], options.scale)
    said = {each.replace("_", "-"): getattr(small, each) for each in _WIDTHS} | {
        "max-steps": options.max_steps,
        "batch-tokens": options.batch_tokens,
        "peak-learning-rate": options.peak_learning_rate,
        "warmup-steps": max(1, options.max_steps // 4),
        "validate-every": options.max_steps,
        "average-checkpoints": 1,
    }
    return Plan(
        name=_name_run(name),
        preset=small.preset,
        seed=seed,
        corpus=corpus,
        flags=tuple(word for flag, value in said.items() for word in (f"--{flag}", str(value))),
    )


def _findings(measured: Sequence[Measured]) -> list[str]:
    """Summarise the results."""
    best = min(measured, key=lambda each: each.spread("loss")[0])
    worst = max(measured, key=lambda each: each.spread("loss")[0])
    found = [
        f"Lowest perplexity: {best.row.title} ({best.spread('perplexity')[0]:.2f}); highest: "
        f"{worst.row.title} ({worst.spread('perplexity')[0]:.2f})."
    ]
    if len(measured) >= _FEWEST_RANKED:
        for name, figure, column in (
            ("perplexity", "loss", "perplexity"),
            ("BLEU",) + ("bleu",) * 2,
        ):
            ours = [each.spread(figure)[0] for each in measured]
            theirs = [getattr(each.row, column) for each in measured]
            found.append(
                f"Rank correlation of our {name} with the published column over {len(measured)} "
                f"rows: {correlate_ranks(ours, theirs):+.2f}."
            )
    deviations = [each.spread("bleu")[1] for each in measured]
    if None not in deviations:
        largest = max(each or 0.0 for each in deviations)
        means = [each.spread("bleu")[0] for each in measured]
        found.append(
            f"The largest deviation between seeds is {largest:.2f} BLEU, the rows span "
            f"{max(means) - min(means):.2f}: differences below the first say nothing."
        )
    return found


def _tabulate(measured: Sequence[Measured], options: VariationsOptions, corpus: Corpus) -> Table:
    """Tabulate the rows beside the published ones."""
    rows = []
    for each in measured:
        small = scale_row(each.row, options.scale)
        perplexity, bleu = each.spread("perplexity"), each.spread("bleu")
        rows.append(
            (
                each.row.title, small.num_layers, small.model_dim, small.feed_forward_dim,
                small.num_heads, small.key_dim, small.value_dim, each.runs[0].num_parameters,
                *perplexity, each.row.perplexity, *bleu, each.row.bleu, each.spread("seconds")[0],
            )
        )  # fmt: skip
    return Table(
        name="variations",
        title=f"Rows of table 3 with widths divided by {options.scale}, on {options.data.title}",
        columns=(
            Column("row"), Column("N"), Column("d_model"), Column("d_ff"), Column("h"),
            Column("d_k"), Column("d_v"), Column("parameters"), Column("perplexity", ".3f"),
            Column("± perplexity", ".3f"), Column("published perplexity", ".2f"),
            Column("BLEU", ".2f"), Column("± BLEU", ".2f"), Column("published BLEU", ".1f"),
            Column("training, s", ",.0f"),
        ),
        rows=tuple(rows),
        notes=(
            f"Every run: {options.max_steps:,} updates of {options.batch_tokens:,} subwords (of "
            f"{corpus.vocabulary_size:,}), peak learning rate {options.peak_learning_rate:g}; "
            f"{len(read_seeds(options.seeds))} seed(s). The paper's big model was trained three "
            "times as long as the others; here all are trained alike.",
            "Both figures are of the validation set, of the last weights, as in the paper: beam "
            "4, no averaging of checkpoints, perplexity per subword.",
            "The names of the rows are those of the paper; the columns beside them are what was "
            "trained.",
        ),
    )  # fmt: skip


def _plot(measured: Sequence[Measured], options: VariationsOptions) -> Plot:
    """Plot our figures over the published ones."""
    panels = []
    for name, figure, column in (
        ("perplexity", "perplexity", "perplexity"), ("BLEU", "bleu", "bleu")
    ):  # fmt: skip
        spreads = [each.spread(figure) for each in measured]
        points = Series(
            name=name,
            x=[getattr(each.row, column) for each in measured],
            y=[mean for mean, _ in spreads],
            style="dots",
            point_names=tuple(name_row(each.row) for each in measured),
        )
        panels.append(
            Lines(title=name, x_label=f"published {name}", y_label=f"our {name}", series=(points,))
        )
    title = f"Table 3 at 1/{options.scale} of the width, beside the published figures"
    return Plot(name="variations", title=title, panels=tuple(panels))
