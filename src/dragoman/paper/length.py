"""BLEU against the length of the sentence: what a single state forgets, and attention does not."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.options import option, require
from dragoman.paper.corpora import Corpus, make_digest, name_texts, prepare_corpus
from dragoman.paper.joined_lines import (
    LONGEST_SENTENCE,
    SHORTEST_LINE,
    Bucket,
    make_buckets,
    write_lines,
)
from dragoman.paper.outcomes import Outcome, Plan
from dragoman.paper.result import (
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
from dragoman.paper.runs import (
    WorkOptions,
    check_choice,
    read_seeds,
    run_all,
    tell_failures,
)

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
    TRANSFORMER: System(title="Transformer", preset="nano"),
}  # fmt: skip
SINUSOIDAL = "sinusoidal"
POSITIONS = ("learned", "rotary", "alibi", "relative", "none", "normalised", "index")


@dataclass(frozen=True, kw_only=True)
class LengthOptions:
    """Which systems are trained, on lines of which length, for how long."""

    systems: tuple[str, ...] = option(
        ("seq2seq", "luong", "convs2s", TRANSFORMER), f"of {', '.join(SYSTEMS)}"
    )
    positions: tuple[str, ...] = option(
        POSITIONS, "position schemes of the Transformer; sinusoidal is one of the systems"
    )
    seeds: tuple[str, ...] = option(("1",), "seeds of the runs of each system")
    max_words: int = option(28, "source words of the longest line of training")
    num_within: int = option(4, "buckets of the test set up to that length")
    num_beyond: int = option(2, "buckets beyond that length")
    lines: int = option(30_000, "lines to train on")
    lines_per_bucket: int = option(80, "lines to test in each bucket")
    max_steps: int = option(2000, "updates of every system")
    position_steps: int = option(1200, "updates of every position scheme besides sinusoids")
    batch_tokens: int = option(1500, "subwords per update, source plus target, of every run")
    vocabulary_size: int = option(2000, "subwords of all")
    beam_size: int = option(1, "hypotheses kept while the test set is translated")
    runs: WorkOptions = field(default_factory=WorkOptions)

    def __post_init__(self) -> None:
        check_choice("--systems", self.systems, tuple(SYSTEMS))
        check_choice("--positions", self.positions, (SINUSOIDAL, *POSITIONS))
        read_seeds(self.seeds)
        for name in (
            "lines", "lines_per_bucket", "max_steps", "position_steps", "batch_tokens", "beam_size"
        ):  # fmt: skip
            value = getattr(self, name)
            require(value >= 1, "--" + name.replace("_", "-"), value, "give ≥ 1")
        require(self.num_within >= 2, "--num-within", self.num_within, "give ≥ 2, to compare them")
        require(self.num_beyond >= 0, "--num-beyond", self.num_beyond, "give ≥ 0")
        least = 3 * self.num_within
        good = self.max_words >= least
        require(good, "--max-words", self.max_words, f"give ≥ {least}, three for each bucket")

    @property
    def schemes(self) -> tuple[str, ...]:
        """The position schemes that are trained besides the systems."""
        return tuple(each for each in self.positions if each != SINUSOIDAL)

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """The lengths of the test set's lines."""
        return make_buckets(self.max_words, self.num_within, self.num_beyond)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """How one system's BLEU goes with length.

    Parameters
    ----------
    title : str
        What to call it.
    positions : str
        The position scheme; empty: it has none to choose.
    runs : tuple[Outcome, ...]
        One for each seed.
    scores : tuple[tuple[float, ...], ...]
        For each run, BLEU of each bucket.
    """

    title: str
    positions: str
    runs: tuple[Outcome, ...]
    scores: tuple[tuple[float, ...], ...]

    @property
    def means(self) -> list[float]:
        """BLEU of each bucket, over the seeds."""
        return [statistics.fmean(each) for each in zip(*self.scores, strict=True)]

    @property
    def deviations(self) -> list[float] | None:
        """The deviation of each bucket between seeds; None of a single seed."""
        found = [spread(each)[1] for each in zip(*self.scores, strict=True)]
        return [each for each in found if each is not None] or None

    def fall(self, num_within: int) -> float:
        """Compute how much BLEU is lost from the shortest lines to the longest of training.

        Parameters
        ----------
        num_within : int
            Buckets within the range of training.

        Returns
        -------
        float
            Positive: lost.
        """
        return self.means[0] - self.means[num_within - 1]


def score_buckets(
    translations: Sequence[str], references: Sequence[str], num_buckets: int
) -> tuple[float, ...]:
    """Score each bucket of a test set by itself.

    Parameters
    ----------
    translations, references : Sequence[str]
        Of the whole test set, bucket after bucket, as many in each.
    num_buckets : int
        How many.

    Returns
    -------
    tuple[float, ...]
        BLEU.
    """
    from dragoman.evaluation.bleu import corpus_bleu

    size = len(references) // num_buckets
    parts = [slice(first, first + size) for first in range(0, size * num_buckets, size)]
    return tuple(corpus_bleu(translations[part], [references[part]]) for part in parts)


def run(options: LengthOptions, say: Say) -> Experiment:
    """Train the systems and draw BLEU against length.

    Parameters
    ----------
    options : LengthOptions
        What, on lines of which length, for how long.
    say : Callable[[str], None]
        Tells a person one line.

    Returns
    -------
    Experiment
        A table and a picture.

    Notes
    -----
    By default some 25 minutes on two cores, eleven runs in all.
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
        tables=(_tabulate(curves, options, corpus),),
        plots=(_plot(curves, options),),
        seeds=read_seeds(options.seeds),
    )


def _make_lines(options: LengthOptions, work: Path) -> Path:
    """Write the lines, if they are not there yet."""
    digest = make_digest(options.lines, options.buckets, options.lines_per_bucket)
    folder = work / "data" / f"joined-{options.max_words}-{digest}"
    if not (folder / "test.en").exists():
        write_lines(
            folder, num_lines=options.lines, buckets=options.buckets,
            lines_per_bucket=options.lines_per_bucket,
        )  # fmt: skip
    return folder


def _plan(options: LengthOptions, corpus: Corpus) -> list[Plan]:
    """Write down every run."""
    wanted = [(name, SYSTEMS[name], "", options.max_steps) for name in options.systems]
    wanted += [
        (f"transformer-{scheme}", SYSTEMS[TRANSFORMER], f"--positions {scheme}",
         options.position_steps)
        for scheme in options.schemes
    ]  # fmt: skip
    return [
        Plan(
            name=f"length-{name}", preset=system.preset, seed=seed, corpus=corpus,
            is_whole=True,
            flags=(
                *f"{system.flags} {more}".split(), "--max-steps", str(steps),
                "--validate-every", str(steps), "--batch-tokens", str(options.batch_tokens),
                "--warmup-steps", str(max(1, min(300, steps // 4))), "--ema-decay", "0.99",
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
    titles = {f"length-{name}": (SYSTEMS[name].title, "") for name in options.systems}
    titles[f"length-{TRANSFORMER}"] = (SYSTEMS[TRANSFORMER].title, SINUSOIDAL)
    for scheme in options.schemes:
        titles[f"length-transformer-{scheme}"] = (SYSTEMS[TRANSFORMER].title, scheme)
    curves = []
    for name, (title, positions) in titles.items():
        runs = tuple(each for each in outcomes if each.plan.name == name)
        scores = tuple(
            score_buckets(each.translations, references, len(options.buckets)) for each in runs
        )
        if runs:
            curves.append(Curve(title=title, positions=positions, runs=runs, scores=scores))
    return curves


def _findings(curves: Sequence[Curve], options: LengthOptions) -> list[str]:
    """Say what came out."""
    buckets, within = options.buckets, options.num_within
    short, long = buckets[0].title, buckets[within - 1].title
    families = [each for each in curves if each.positions in ("", SINUSOIDAL)]
    found = [
        f"{each.title}: {each.means[0]:.1f} BLEU on lines of {short} words, "
        f"{each.means[within - 1]:.1f} on lines of {long}: {_judge(each.fall(within))}."
        for each in families
    ]
    if options.num_beyond:
        beyond = ", ".join(
            f"{each.title} {each.means[within - 1]:.1f} → {each.means[-1]:.1f}" for each in families
        )
        found.append(
            f"Beyond the lengths of training it is another question, of generalising: from {long} "
            f"to {buckets[-1].title} words {beyond}."
        )
        schemes = sorted(
            (each for each in curves if each.positions), key=lambda each: -each.means[-1]
        )
        if len(schemes) > 1:
            told = ", ".join(f"{each.positions} {each.means[-1]:.1f}" for each in schemes)
            found.append(
                f"The Transformer on {buckets[-1].title} words by position scheme: {told}."
            )
    seconds = sum(run.seconds for each in curves for run in each.runs)
    found.append(
        f"Run: {sum(len(each.runs) for each in curves)} trainings, {seconds:,.0f} s of training "
        f"together, {options.runs.jobs} at once; {options.max_steps:,} updates of "
        f"{options.batch_tokens:,} subwords for every system, {options.position_steps:,} for the "
        "other position schemes."
    )
    return found


def _judge(fall: float) -> str:
    """Say how much a fall is."""
    if fall >= _STRONG_FALL:
        return f"it falls by {fall:.1f}"
    if fall < _WEAK_FALL:
        return f"it {'falls by only' if fall > 0 else 'even gains'} {abs(fall):.1f}"
    return f"it falls by {fall:.1f}, which is neither steep nor flat"


def _tabulate(curves: Sequence[Curve], options: LengthOptions, corpus: Corpus) -> Table:
    """Put all curves into one table."""
    within = options.num_within
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            each.title, each.positions, each.runs[0].num_parameters, each.runs[0].num_updates,
            statistics.fmean(run.seconds for run in each.runs), *each.means, each.fall(within),
        )
        for each in curves
    )  # fmt: skip
    headings = (
        f"{each.title} words{' (beyond)' if each.is_beyond else ''}" for each in options.buckets
    )
    last = options.buckets[within - 1].title
    return Table(
        name="length",
        title="BLEU by source words of the line",
        columns=(
            Column("system"), Column("positions"), Column("parameters"), Column("updates"),
            Column("training, s", ",.0f"), *(Column(each, ".1f") for each in headings),
            Column(f"lost up to {last} words", ".1f"),
        ),
        rows=rows,
        notes=(
            f"Lines are joined from sentences of the built-in French–English grammar of at most "
            f"{LONGEST_SENTENCE} words, drawn independently, so that a long line is word for word "
            f"as hard as a short one. Training: {corpus.num_pairs:,} lines of {SHORTEST_LINE} to "
            f"{options.max_words} source words, every length as often as any other.",
            f"Test: {options.lines_per_bucket} lines in each bucket, of sentences never trained "
            f"on, each line translated in one piece with a beam of {options.beam_size}.",
            f"Every run: {corpus.vocabulary_size:,} subwords, updates of {options.batch_tokens:,} "
            "of them (source plus target), moving average of the weights.",
            f"{len(read_seeds(options.seeds))} seed(s); figures are means over them.",
        ),
    )  # fmt: skip


def _plot(curves: Sequence[Curve], options: LengthOptions) -> Plot:
    """Draw the families, and the position schemes."""
    places = [(each.first + each.last) / 2 for each in options.buckets]

    def series(each: Curve, name: str) -> Series:
        return Series(name=name, x=places, y=each.means, deviation=each.deviations)

    families = tuple(
        series(each, each.title) for each in curves if each.positions in ("", SINUSOIDAL)
    )
    schemes = tuple(series(each, each.positions) for each in curves if each.positions)
    marks = (Mark(value=options.max_words + 0.5, text="longest in training"),)
    panels = [
        Lines(title="Families", x_label="source words of the line", y_label="BLEU",
              series=families, marks=marks)
    ]  # fmt: skip
    if len(schemes) > 1:
        panels.append(
            Lines(title="Position schemes of the Transformer", x_label="source words of the line",
                  y_label="BLEU", series=schemes, marks=marks)
        )  # fmt: skip
    return Plot(name="length", title="BLEU against sentence length", panels=tuple(panels))
