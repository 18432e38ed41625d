"""The systems of the paper's table 2, scaled down, trained alike on the same data."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.options import option, require_least
from dragoman.paper.experiments.tables.published import BASE, TABLE_2, SystemRow
from dragoman.paper.report.result import Bar, Bars, Column, Experiment, Plot, Say, Table, spread
from dragoman.paper.training_runs.corpora import Corpus, DataOptions, prepare_corpus
from dragoman.paper.training_runs.experiment_runs import (
    WorkOptions,
    check_choice,
    read_seeds,
    run_all,
    tell_failures,
)
from dragoman.paper.training_runs.outcomes import Outcome, Plan

_BUILT_IN_VOCABULARY = 2048


@dataclass(frozen=True, kw_only=True)
class System:
    """A system of the comparison.

    Parameters
    ----------
    title : str
        What to call it.
    preset : str
        Its recipe.
    published : str | None
        Its row of table 2; None: it has none.
    """

    title: str
    preset: str
    published: str | None = None


SYSTEMS = {
    "transformer": System(title="Transformer", preset="transformer", published=BASE),
    "moe": System(title="Transformer with experts", preset="moe"),
    "moe-lstm": System(title="LSTM stack with experts (MoE)", preset="moe-lstm", published="MoE"),
    "convs2s": System(title="ConvS2S", preset="convs2s", published="ConvS2S"),
    "bytenet": System(title="ByteNet", preset="bytenet", published="ByteNet"),
    "gnmt": System(title="GNMT's stack", preset="gnmt", published="GNMT + RL"),
    "deep-att": System(title="Deep-Att", preset="deep-att", published="Deep-Att + PosUnk"),
    "luong": System(title="LSTM, Luong's attention", preset="luong"),
    "rnnsearch": System(title="RNNsearch", preset="rnnsearch"),
    "seq2seq": System(title="plain LSTM", preset="seq2seq"),
}


@dataclass(frozen=True, kw_only=True)
class SystemsOptions:
    """Options: the systems, the corpus and the length of runs."""

    systems: tuple[str, ...] = option(tuple(SYSTEMS), "which systems")
    seeds: tuple[str, ...] = option(("1", "2"), "seeds of the runs of each system")
    max_steps: int = option(1000, "updates of every run")
    batch_tokens: int = option(1200, "subwords per update, source plus target, of every run")
    validate_every: int = option(500, "updates between validations")
    average_checkpoints: int = option(10, "weights averaged at the end, if that helps")
    vocabulary_size: int | None = option(
        None, "subwords of all; off: 2,048 for the built-in corpus, else by the corpus's size"
    )
    beam_size: int = option(4, "hypotheses kept while the test set is translated")
    data: DataOptions = field(default_factory=DataOptions)
    runs: WorkOptions = field(default_factory=WorkOptions)

    def __post_init__(self) -> None:
        check_choice("--systems", self.systems, tuple(SYSTEMS))
        read_seeds(self.seeds)
        require_least(self, max_steps=1, batch_tokens=1, validate_every=1, average_checkpoints=1)


@dataclass(frozen=True, kw_only=True)
class SystemResults:
    """Results of the runs of one system.

    Parameters
    ----------
    name : str
        Its key in `SYSTEMS`.
    runs : tuple[Outcome, ...]
        One for each seed that came to its end.
    """

    name: str
    runs: tuple[Outcome, ...]

    @property
    def system(self) -> System:
        """The system."""
        return SYSTEMS[self.name]

    @property
    def published(self) -> SystemRow | None:
        """The system's figures in table 2."""
        return next((row for row in TABLE_2 if row.system == self.system.published), None)

    def spread(self, figure: str) -> tuple[float, float | None]:
        """Compute mean and deviation of one figure over the seeds."""
        return spread([getattr(each, figure) for each in self.runs])


def plan_system(name: str, seed: int, corpus: Corpus, options: SystemsOptions) -> Plan:
    """Plan the run of one system.

    Notes
    -----
    Shape and dropout are the recipe's. So is the learning rate, times √(B/B₀) if the batches of B
    subwords are smaller than the B₀ of the recipe, whose gradients are as much less noisy; and so
    is the warm-up, as long as it is no more than a quarter of the run.
    """
    from dragoman.presets import read_preset

    preset = SYSTEMS[name].preset
    recipe = read_preset(preset)["training"]
    share = min(1.0, options.batch_tokens / recipe["batch_tokens"])
    budget = {
        "max-steps": options.max_steps,
        "batch-tokens": options.batch_tokens,
        "peak-learning-rate": round(recipe["peak_learning_rate"] * share**0.5, 6),
        "warmup-steps": min(recipe["warmup_steps"], max(1, options.max_steps // 4)),
        "validate-every": min(options.validate_every, options.max_steps),
        "average-checkpoints": options.average_checkpoints,
        "patience": "off",
    }
    flags = [word for flag, value in budget.items() for word in (f"--{flag}", str(value))]
    search = ("--beam-size", str(options.beam_size))
    return Plan(
        name=name, preset=preset, seed=seed, corpus=corpus, flags=tuple(flags), search=search
    )


def compare_systems(
    options: SystemsOptions, say: Say
) -> tuple[list[SystemResults], Corpus, tuple[str, ...]]:
    """Train and score every system with every seed.

    Returns
    -------
    tuple[list[Compared], Corpus, tuple[str, ...]]
        The systems, best BLEU first; the corpus; and a sentence for each run that is missing.
    """
    work = Path(options.runs.work)
    size = options.vocabulary_size or (None if options.data.given else _BUILT_IN_VOCABULARY)
    corpus = prepare_corpus(options.data.find(work), work, size, say)
    seeds = read_seeds(options.seeds)
    # By seed first, so that an interrupted comparison has runs of every system.
    plans = [plan_system(name, seed, corpus, options) for seed in seeds for name in options.systems]
    outcomes, failures = run_all(plans, options.runs, say)
    compared = [
        SystemResults(name=name, runs=runs)
        for name in options.systems
        if (runs := tuple(each for each in outcomes if each.plan.name == name))
    ]
    compared.sort(key=lambda each: -each.spread("bleu")[0])
    return compared, corpus, tell_failures(failures)


def list_figures(compared: Sequence[SystemResults], prefix: str) -> dict[str, float]:
    """List the measurements under descriptive names."""
    figures: dict[str, float] = {}
    for each in compared:
        key = f"{prefix}_{each.name.replace('-', '_')}"
        for figure in ("bleu", "chrf", "perplexity"):
            mean, deviation = each.spread(figure)
            figures[f"{key}_{figure}_mean"] = mean
            if deviation is not None:
                figures[f"{key}_{figure}_deviation"] = deviation
        figures[f"{key}_parameters"] = each.runs[0].num_parameters
        figures[f"{key}_seconds"] = each.spread("seconds")[0]
        figures[f"{key}_tokens_per_second"] = each.spread("tokens_per_second")[0]
    return figures


def run(options: SystemsOptions, say: Say) -> Experiment:
    """Compare the systems.

    Notes
    -----
    By default all ten systems, two seeds each, on the built-in corpus: about an hour on two cores.
    That is enough to see them all learn, and too little to rank the best of them.
    """
    compared, corpus, missing = compare_systems(options, say)
    title = "The systems of table 2, small, with equal budget"
    return Experiment(
        title=title,
        claim="The Transformer translates better than the best recurrent and convolutional systems "
        "before it, at a fraction of their training cost (table 2); systems without attention are "
        "the weakest.",
        findings=(*_findings(compared, options, corpus), *missing),
        tables=(_tabulate(compared, options, corpus),),
        plots=(_plot(compared, options),),
        seeds=read_seeds(options.seeds),
    )


def _findings(
    compared: Sequence[SystemResults], options: SystemsOptions, corpus: Corpus
) -> list[str]:
    """Summarise the results, whether or not they agree with the paper."""
    first, last = compared[0], compared[-1]
    found = [f"Best: {_tell(first)}; last: {_tell(last)}."]
    names = [each.name for each in compared]
    if "transformer" in names and len(names) > 1:
        found.append(_judge_first(compared))
    if "seq2seq" in names and len(names) > 1:
        place = names.index("seq2seq") + 1
        found.append(
            "The plain LSTM, which must put the whole sentence into one state, is last."
            if last.name == "seq2seq"
            else f"The plain LSTM is not last but number {place} of {len(names)}: behind it "
            f"{'is' if place == len(names) - 1 else 'are'} "
            f"{', '.join(_tell(each) for each in compared[place:])}."
        )
    tokens = options.max_steps * options.batch_tokens
    found.append(
        f"Every run had {options.max_steps:,} updates of {options.batch_tokens:,} subwords, "
        f"{tokens / max(1, corpus.num_tokens):,.1f} passes over the {corpus.num_pairs:,} pairs of "
        f"{options.data.title}, and the same {corpus.vocabulary_size:,} subwords."
    )
    return found


def _judge_first(compared: Sequence[SystemResults]) -> str:
    """Describe whether the Transformer is first, and by how much."""
    place = next(index for index, each in enumerate(compared) if each.name == "transformer")
    ours = compared[place]
    if place == 0:
        rival = compared[1]
        ahead = ours.spread("bleu")[0] - rival.spread("bleu")[0]
        deviations = [each.spread("bleu")[1] for each in (ours, rival)]
        first = f"The Transformer is first, {ahead:.2f} BLEU ahead of {rival.system.title}"
        if None in deviations:
            return f"{first}; a single seed cannot tell whether that is more than chance."
        more = "more" if ahead > max(each or 0.0 for each in deviations) else "no more"
        return f"{first}: {more} than the deviation between seeds."
    ahead_of_it = ", ".join(_tell(each) for each in compared[:place])
    return (
        f"The Transformer is not first but number {place + 1} of {len(compared)} with "
        f"{ours.spread('bleu')[0]:.2f} BLEU: ahead of it {'is' if place == 1 else 'are'} "
        f"{ahead_of_it}. With a corpus and models of this size that need not be otherwise with "
        "more of both."
    )


def _tell(each: SystemResults) -> str:
    mean, deviation = each.spread("bleu")
    return f"{each.system.title} ({mean:.2f}{f' ± {deviation:.2f}' if deviation else ''} BLEU)"


def _tabulate(compared: Sequence[SystemResults], options: SystemsOptions, corpus: Corpus) -> Table:
    """Tabulate the systems by score."""
    rows = []
    for each in compared:
        bleu, deviation = each.spread("bleu")
        published = each.published or SystemRow(system="")
        rows.append(
            (
                each.system.title, each.system.preset, each.runs[0].num_parameters, len(each.runs),
                bleu, deviation, each.spread("chrf")[0], each.spread("perplexity")[0],
                each.spread("seconds")[0], each.spread("tokens_per_second")[0],
                published.german_bleu, published.french_bleu,
            )
        )  # fmt: skip
    return Table(
        name="systems",
        title=f"Systems trained on {options.data.title}, best first",
        columns=(
            Column("system"), Column("recipe"), Column("parameters"), Column("seeds"),
            Column("BLEU", ".2f"), Column("± deviation", ".2f"), Column("chrF", ".2f"),
            Column("validation perplexity", ".2f"), Column("training, s", ",.0f"),
            Column("tokens/s", ",.0f"), Column("published EN-DE BLEU"),
            Column("published EN-FR BLEU"),
        ),
        rows=tuple(rows),
        notes=(
            f"Equal budget: {options.max_steps:,} updates of {options.batch_tokens:,} subwords "
            f"(source plus target), the same {corpus.vocabulary_size:,} subwords and the same beam "
            f"search of {options.beam_size}. Shape, dropout and learning rate are those of each "
            "recipe, the rate lowered by the square root for batches smaller than the recipe's.",
            "Seconds are of training alone, on a machine that trains "
            f"{options.runs.jobs} run{'s' if options.runs.jobs > 1 else ''} at once.",
            f"BLEU by sacreBLEU: {compared[0].runs[0].signature}.",
            "The published figures are of table 2: WMT 2014, models some hundred times as large, "
            "tokenised BLEU. GNMT's is after refinement by reward, Deep-Att's with PosUnk. MoE was "
            "an LSTM stack with experts; the Transformer with experts came later.",
        ),
    )  # fmt: skip


def _plot(compared: Sequence[SystemResults], options: SystemsOptions) -> Plot:
    """Plot the systems' BLEU and training times."""
    quality = tuple(
        Bar(name=each.system.title, group="BLEU", end=mean, deviation=deviation)
        for each in compared
        for mean, deviation in (each.spread("bleu"),)
    )
    speed = tuple(
        Bar(name=each.system.title, group="seconds", end=each.spread("seconds")[0])
        for each in compared
    )
    return Plot(
        name="systems",
        title=f"Equal budget on {options.data.title}",
        panels=(
            Bars(title="Quality", x_label="BLEU on the test set", bars=quality),
            Bars(title="Cost", x_label="seconds of training", bars=speed),
        ),
    )
