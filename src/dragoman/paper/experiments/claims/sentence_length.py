"""BLEU by sentence length: a fixed-size state against attention."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.options import option, require, require_least
from dragoman.paper.report.result import (
    Cell,
    Column,
    Experiment,
    Lines,
    Mark,
    Plot,
    Say,
    Series,
    Table,
    spread,
)
from dragoman.paper.tasks.joined_lines import (
    LONGEST_SENTENCE,
    SHORTEST_LINE,
    Bucket,
    make_buckets,
    write_lines,
)
from dragoman.paper.training_runs.corpora import Corpus, make_digest, name_texts, prepare_corpus
from dragoman.paper.training_runs.experiment_runs import (
    WorkOptions,
    check_choice,
    read_seeds,
    run_all,
    tell_failures,
)
from dragoman.paper.training_runs.outcomes import Outcome, Plan

TRANSFORMER = "transformer"
_STRONG_FALL, _WEAK_FALL = 20.0, 3.0


@dataclass(frozen=True, kw_only=True)
class System:
    """One of the systems that are compared.

    Parameters
    ----------
    title : str
        What to call it.
    preset : str
        The recipe it is based on.
    flags : str
        Words for “dragoman train” by which it differs.
    """

    title: str
    preset: str
    flags: str = ""


SYSTEMS = {
    "seq2seq": System(
        title="plain LSTM", preset="seq2seq",
        flags="--num-layers 1 --model-dim 256 --dropout 0 --peak-learning-rate 0.004",
    ),
    "luong": System(
        title="LSTM with attention", preset="luong",
        flags="--num-layers 1 --model-dim 128 --dropout 0 --peak-learning-rate 0.004",
    ),
    "rnnsearch": System(
        title="RNNsearch", preset="rnnsearch",
        flags="--model-dim 128 --embedding-dim 128 --maxout-dim 128 --dropout 0 "
        "--peak-learning-rate 0.004",
    ),
    "convs2s": System(
        title="ConvS2S", preset="convs2s",
        flags="--encoder-blocks 3x128k3 --decoder-blocks 3x128k3 --model-dim 128 "
        "--output-dim 128 --dropout 0 --peak-learning-rate 0.004",
    ),
    TRANSFORMER: System(title="Transformer", preset="nano", flags="--num-heads 8"),
}  # fmt: skip
POSITIONS = (
    "sinusoidal", "learned", "rotary", "alibi", "relative", "none", "normalised", "index",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class LengthOptions:
    """Options: the systems, the lengths of lines and the length of runs."""

    systems: tuple[str, ...] = option(
        ("seq2seq", "luong", "convs2s", TRANSFORMER), f"of {', '.join(SYSTEMS)}"
    )
    positions: tuple[str, ...] = option(
        POSITIONS, "position schemes of the Transformer, compared among themselves"
    )
    seeds: tuple[str, ...] = option(("1",), "seeds of the runs of each system")
    max_words: int = option(24, "source words of the longest line of training")
    num_within: int = option(4, "buckets of the test set up to that length")
    num_beyond: int = option(2, "buckets beyond that length")
    lines: int = option(40_000, "lines to train on")
    lines_per_bucket: int = option(120, "lines to test in each bucket")
    max_steps: int = option(2500, "updates of every system")
    position_steps: int = option(1000, "updates of every position scheme; 0: none is trained")
    batch_tokens: int = option(1500, "subwords per update, source plus target, of every run")
    vocabulary_size: int = option(2000, "subwords of all")
    beam_size: int = option(1, "hypotheses kept while the test set is translated")
    runs: WorkOptions = field(default_factory=WorkOptions)

    def __post_init__(self) -> None:
        check_choice("--systems", self.systems, tuple(SYSTEMS))
        check_choice("--positions", self.positions, POSITIONS)
        read_seeds(self.seeds)
        require_least(self, lines=1, lines_per_bucket=1, max_steps=1, batch_tokens=1, beam_size=1)
        require(self.position_steps >= 0, "--position-steps", self.position_steps, "give ≥ 0")
        require(self.num_within >= 2, "--num-within", self.num_within, "give ≥ 2, to compare them")
        require(self.num_beyond >= 0, "--num-beyond", self.num_beyond, "give ≥ 0")
        least = 3 * self.num_within
        good = self.max_words >= least
        require(good, "--max-words", self.max_words, f"give ≥ {least}, three for each bucket")

    @property
    def schemes(self) -> tuple[str, ...]:
        """The position schemes that are trained."""
        return self.positions if self.position_steps else ()

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """The lengths of the test set's lines."""
        return make_buckets(self.max_words, self.num_within, self.num_beyond)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """BLEU of one system by sentence length.

    Parameters
    ----------
    title : str
        What to call it.
    is_scheme : bool
        Whether it is a position scheme, and not a system.
    runs : tuple[Outcome, ...]
        One for each seed.
    scores : tuple[tuple[float, ...], ...]
        For each run, BLEU of each bucket.
    """

    title: str
    is_scheme: bool
    runs: tuple[Outcome, ...]
    scores: tuple[tuple[float, ...], ...]

    @property
    def means(self) -> list[float]:
        """Mean BLEU of each bucket over the seeds."""
        return [statistics.fmean(each) for each in zip(*self.scores, strict=True)]

    @property
    def deviations(self) -> list[float] | None:
        """Standard deviation of each bucket over the seeds; None for a single seed."""
        found = [spread(each)[1] for each in zip(*self.scores, strict=True)]
        return [each for each in found if each is not None] or None

    def fall(self, num_within: int) -> float:
        """Compute the loss of BLEU from the shortest lines to the longest seen in training."""
        return self.means[0] - self.means[num_within - 1]


def score_buckets(
    translations: Sequence[str], references: Sequence[str], num_buckets: int
) -> tuple[float, ...]:
    """Compute BLEU of each bucket of a test set."""
    from dragoman.evaluation.bleu import corpus_bleu

    size = len(references) // num_buckets
    parts = [slice(first, first + size) for first in range(0, size * num_buckets, size)]
    return tuple(corpus_bleu(translations[part], [references[part]]) for part in parts)


def run(options: LengthOptions, say: Say) -> Experiment:
    """Train the systems and draw BLEU against length.

    Notes
    -----
    By default some 22 minutes on two cores, twelve runs in all.
    """
    work = Path(options.runs.work)
    corpus = prepare_corpus(
        name_texts(_make_lines(options, work)), work, options.vocabulary_size, say
    )
    outcomes, failures = run_all(_plan(options, corpus), options.runs, say)
    curves = _curves(options, outcomes, corpus)
    return Experiment(
        title="BLEU against sentence length",
        claim="A plain encoder–decoder must carry the whole sentence in one state, and falters "
        "when it is long; attention keeps every state, and does not (the notes 000, 001 and 003; "
        "figure 2 of Bahdanau et al.). Sinusoids may extend to lengths never trained on (section "
        "3.5 of the paper).",
        findings=(*_findings(curves, options), *tell_failures(failures)),
        tables=tuple(_tabulate(curves, options, corpus)),
        plots=(_plot(curves, options),),
        seeds=read_seeds(options.seeds),
    )


def _make_lines(options: LengthOptions, work: Path) -> Path:
    """Write the corpus of joined lines, unless it exists."""
    digest = make_digest(options.lines, options.buckets, options.lines_per_bucket)
    folder = work / "data" / f"joined-{options.max_words}-{digest}"
    if not (folder / "test.en").exists():
        write_lines(
            folder, num_lines=options.lines, buckets=options.buckets,
            lines_per_bucket=options.lines_per_bucket,
        )  # fmt: skip
    return folder


def _name_system(name: str) -> str:
    return f"length-{name}"


def _name_scheme(scheme: str) -> str:
    return f"length-positions-{scheme}"


def _plan(options: LengthOptions, corpus: Corpus) -> list[Plan]:
    """Plan every run."""
    wanted = [
        (_name_system(name), SYSTEMS[name], "", options.max_steps) for name in options.systems
    ]
    wanted += [
        (_name_scheme(scheme), SYSTEMS[TRANSFORMER], f"--positions {scheme}",
         options.position_steps)
        for scheme in options.schemes
    ]  # fmt: skip
    return [
        Plan(
            name=name, preset=system.preset, seed=seed, corpus=corpus, is_whole=True,
            flags=(
                *f"{system.flags} {more}".split(), "--max-steps", str(steps),
                "--validate-every", str(steps), "--batch-tokens", str(options.batch_tokens),
                "--warmup-steps", str(max(1, min(300, steps // 4))), "--ema-decay", "0.995",
                "--average-checkpoints", "1", "--patience", "off", "--max-minutes", "off",
            ),
            search=("--beam-size", str(options.beam_size)),
        )
        for seed in read_seeds(options.seeds)
        for name, system, more, steps in wanted
    ]  # fmt: skip


def _curves(options: LengthOptions, outcomes: Sequence[Outcome], corpus: Corpus) -> list[Curve]:
    """Score the buckets of every run."""
    references = corpus.texts.test_reference.read_text(encoding="utf-8").split("\n")[:-1]
    titles = {_name_system(name): (SYSTEMS[name].title, False) for name in options.systems}
    titles |= {_name_scheme(scheme): (scheme, True) for scheme in options.schemes}
    curves = []
    for name, (title, is_scheme) in titles.items():
        runs = tuple(each for each in outcomes if each.plan.name == name)
        scores = tuple(
            score_buckets(each.translations, references, len(options.buckets)) for each in runs
        )
        if runs:
            curves.append(Curve(title=title, is_scheme=is_scheme, runs=runs, scores=scores))
    return curves


def _findings(curves: Sequence[Curve], options: LengthOptions) -> list[str]:
    """Summarise the results."""
    buckets, within = options.buckets, options.num_within
    short, long, farthest = buckets[0].title, buckets[within - 1].title, buckets[-1].title
    families = [each for each in curves if not each.is_scheme]
    schemes = [each for each in curves if each.is_scheme]
    found = [
        f"{each.title}: {each.means[0]:.1f} BLEU on lines of {short} words, "
        f"{each.means[within - 1]:.1f} on lines of {long}: {_judge(each.fall(within))}."
        for each in families
    ]
    if options.num_beyond:
        told = ", ".join(
            f"{each.title} {each.means[within - 1]:.1f} → {each.means[-1]:.1f}" for each in families
        )
        found.append(
            f"Beyond the lengths of training it is another question, of generalising: from {long} "
            f"to {farthest} words {told}."
        )
    if schemes:
        schemes.sort(key=lambda each: -each.means[-1])
        told = ", ".join(f"{each.title} {each.means[-1]:.1f}" for each in schemes)
        found.append(f"Position schemes on lines of {farthest} words: {told}.")
    seconds = sum(run.seconds for each in curves for run in each.runs)
    found.append(
        f"Run: {sum(len(each.runs) for each in curves)} trainings, {seconds:,.0f} s of training "
        f"together, {options.runs.jobs} at once; {options.max_steps:,} updates of "
        f"{options.batch_tokens:,} subwords for every system, {options.position_steps:,} for every "
        "position scheme."
    )
    return found


def _judge(fall: float) -> str:
    """Describe the size of a fall."""
    if fall >= _STRONG_FALL:
        return f"it falls by {fall:.1f}"
    if fall < _WEAK_FALL:
        return f"it {'falls by only' if fall > 0 else 'even gains'} {abs(fall):.1f}"
    return f"it falls by {fall:.1f}, which is neither steep nor flat"


def _tabulate(curves: Sequence[Curve], options: LengthOptions, corpus: Corpus) -> list[Table]:
    """Put the systems into one table, and the position schemes into another."""
    within = options.num_within
    headings = [
        f"{each.title} words{' (beyond)' if each.is_beyond else ''}" for each in options.buckets
    ]
    last = options.buckets[within - 1].title
    tables = []
    for name, title, is_scheme in (
        ("families", "BLEU by source words of the line", False),
        ("positions", "BLEU of the Transformer by position scheme", True),
    ):
        rows: list[tuple[Cell, ...]] = [
            (
                each.title, each.runs[0].num_parameters, each.runs[0].num_updates,
                statistics.fmean(run.seconds for run in each.runs), *each.means,
                each.fall(within),
            )
            for each in curves
            if each.is_scheme == is_scheme
        ]  # fmt: skip
        columns = (
            Column("positions" if is_scheme else "system"), Column("parameters"),
            Column("updates"), Column("training, s", ",.0f"),
            *(Column(each, ".1f") for each in headings), Column(f"lost up to {last} words", ".1f"),
        )  # fmt: skip
        notes = _notes(options, corpus, is_scheme=is_scheme)
        if rows:
            tables.append(
                Table(name=name, title=title, columns=columns, rows=tuple(rows), notes=notes)
            )
    return tables


def _notes(options: LengthOptions, corpus: Corpus, *, is_scheme: bool) -> tuple[str, ...]:
    """Write the notes of a table: how its figures were measured."""
    if is_scheme:
        return (
            f"The Transformer of the other table, but with {options.position_steps:,} updates: "
            "compare the schemes with one another.",
            "“none” tells the encoder no order at all; its decoder still has one, since it sees "
            "only what it wrote so far.",
        )
    return (
        f"Lines are joined from sentences of the built-in French–English grammar of at most "
        f"{LONGEST_SENTENCE} words, drawn independently, so that a long line is word for word as "
        f"hard as a short one. Training: {corpus.num_pairs:,} lines of {SHORTEST_LINE} to "
        f"{options.max_words} source words, every length as often as any other.",
        f"Test: {options.lines_per_bucket} lines in each bucket, of sentences never trained on, "
        f"each line translated in one piece with a beam of {options.beam_size}.",
        f"Every run: {corpus.vocabulary_size:,} subwords, updates of {options.batch_tokens:,} of "
        "them (source plus target), moving average of the weights. The Transformer has sinusoids.",
        f"{len(read_seeds(options.seeds))} seed(s); figures are means over them.",
    )


def _plot(curves: Sequence[Curve], options: LengthOptions) -> Plot:
    """Plot the families, and the position schemes."""
    places = [(each.first + each.last) / 2 for each in options.buckets]

    def series(each: Curve) -> Series:
        return Series(name=each.title, x=places, y=each.means, deviation=each.deviations)

    families = tuple(series(each) for each in curves if not each.is_scheme)
    schemes = tuple(series(each) for each in curves if each.is_scheme)
    marks = (Mark(value=options.max_words + 0.5, text="longest in training"),)
    panels = [
        Lines(title="Families", x_label="source words of the line", y_label="BLEU",
              series=families, marks=marks)
    ]  # fmt: skip
    if schemes:
        panels.append(
            Lines(title="Position schemes of the Transformer", x_label="source words of the line",
                  y_label="BLEU", series=schemes, marks=marks)
        )  # fmt: skip
    return Plot(name="length", title="BLEU against sentence length", panels=tuple(panels))
