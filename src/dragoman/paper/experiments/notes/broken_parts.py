"""What each part of the Transformer is good for: seven small models, each without one of them."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.files import write_file, written_beside
from dragoman.options import option, require, require_least, write_toml
from dragoman.paper.experiments.tables.published import TABLE_3
from dragoman.paper.report.result import Bar, Bars, Column, Experiment, Plot, Say, Table
from dragoman.paper.training_runs.corpora import Corpus, DataOptions, make_digest, prepare_corpus
from dragoman.paper.training_runs.experiment_runs import WorkOptions, run_all, tell_failures
from dragoman.paper.training_runs.outcomes import Outcome, Plan

MANIFEST = "broken.json"
_VOCABULARY = 2048
_NUM_EXAMPLES = 8
_LEFT_OUT = ("checkpoints", "snapshots", "store", "tensorboard", "run.json", ".*")


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part that a model can do without, or the whole model.

    Parameters
    ----------
    name : str
        What its model's folder is called.
    title : str
        What to call the model.
    change : str
        What is different in it.
    section : str
        Where the paper speaks of it.
    says : str
        What it says there.
    row : str | None
        The recipe of the row of table 3 that tries it; None: none does.
    options : dict[str, Any]
        Options of the model that differ.
    preset : str
        The recipe.
    """

    name: str
    title: str
    change: str
    section: str
    says: str
    row: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    preset: str = "nano"


PARTS = (
    Part(
        name="whole",
        title="the whole model",
        change="Nothing is left out.",
        section="table 3, base",
        says="The base model.",
        row="paper-base",
    ),
    Part(
        name="no-scaling",
        title="no scaling",
        change="Scores are not divided by √d_k.",
        section="section 3.2.1",
        says="Large scores push the softmax to where its gradient is very small; the larger d_k, "
        "the more so.",
        options={"scaled": False},
    ),
    Part(
        name="no-positions",
        title="no positions",
        change="Nothing tells the model where a word stands.",
        section="section 3.5",
        says="Without recurrence or convolution, order must be put in; learned positions do as "
        "well as sinusoids (row E).",
        options={"positions": "none"},
    ),
    Part(
        name="no-mask",
        title="no mask",
        change="In training, the decoder sees the words that it is to say.",
        section="section 3.2.3",
        says="Later words are masked out, so that the model stays one that says word after word.",
        options={"decoder_mask": False},
    ),
    Part(
        name="one-head",
        title="one head",
        change="One head as wide as all of them together.",
        section="table 3, row A",
        says="One head is 0.9 BLEU worse than the best number of heads.",
        row="paper-a-1-head",
        options={"num_heads": 1},
    ),
    Part(
        name="no-residual",
        title="no residual",
        change="What goes into a sub-layer is not added to what comes out.",
        section="section 3.1",
        says="Each sub-layer has a residual connection around it, for which all have one width.",
        options={"residual": False},
    ),
    Part(
        name="no-attention",
        title="no attention",
        change="A plain LSTM: the whole sentence must fit into one vector.",
        section="sections 1 and 2",
        says="Recurrent models read word by word; attention makes the distance between any two "
        "words one step.",
        preset="seq2seq",
        options={"model_dim": 128},
    ),
)


@dataclass(frozen=True, kw_only=True)
class BrokenOptions:
    """Options: the length of the runs, the corpus, and where the models are left."""

    models: str = option(
        "broken-models", "folder of the trained models, for “dragoman serve --broken”"
    )
    max_steps: int = option(600, "updates of every run")
    batch_tokens: int = option(1500, "subwords per update, source plus target, of every run")
    seed: int = option(1, "seed of every run")
    data: DataOptions = field(default_factory=DataOptions)
    runs: WorkOptions = field(default_factory=WorkOptions)

    def __post_init__(self) -> None:
        require_least(self, max_steps=1, batch_tokens=1, seed=0)
        require(bool(self.models), "--models", "empty", "name a folder")


def run(options: BrokenOptions, say: Say) -> Experiment:
    """Train the seven models and leave them in a folder.

    Notes
    -----
    By default on the built-in corpus, each in under a minute on one core.
    """
    work = Path(options.runs.work)
    size = None if options.data.given else _VOCABULARY
    corpus = prepare_corpus(options.data.find(work), work, size, say)
    plans = [_plan(part, corpus, options, work) for part in PARTS]
    outcomes, failures = run_all(plans, options.runs, say)
    found = {outcome.plan.name.removeprefix("broken-"): outcome for outcome in outcomes}
    _leave_models(Path(options.models), found, corpus, options)
    say(f"look at them: dragoman serve {options.models}/whole --broken {options.models}")
    return Experiment(
        title="What each part of the Transformer is good for",
        claim="Scores are divided by √d_k, positions are added, later words are masked, several "
        "heads look at once, and residual connections surround each sub-layer (sections 3.1 to "
        "3.5).",
        findings=(*_findings(found), *tell_failures(failures)),
        tables=(_tabulate(found, options),),
        plots=(_plot(found),),
        seeds=(options.seed,),
    )


def _plan(part: Part, corpus: Corpus, options: BrokenOptions, work: Path) -> Plan:
    """Plan the run of one model."""
    settings = write_toml({"model": part.options})
    config = work / "configs" / f"broken-{part.name}-{make_digest(settings)}.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    write_file(config, settings)
    said = {
        "config": config, "max-steps": options.max_steps, "batch-tokens": options.batch_tokens,
        "warmup-steps": max(1, options.max_steps // 4), "validate-every": options.max_steps,
        "average-checkpoints": 1, "log-every": 50, "max-minutes": "off", "dropout": 0.0,
    }  # fmt: skip
    return Plan(
        name=f"broken-{part.name}",
        preset=part.preset,
        seed=options.seed,
        corpus=corpus,
        flags=tuple(word for flag, value in said.items() for word in (f"--{flag}", str(value))),
    )


def _leave_models(
    place: Path, found: dict[str, Outcome], corpus: Corpus, options: BrokenOptions
) -> None:
    """Copy the models without what only training needs, and write what the page shows of them."""
    for name, outcome in found.items():
        with written_beside(place / name) as beside:
            shutil.copytree(outcome.folder, beside, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    texts = corpus.texts
    lines = [
        path.read_text(encoding="utf-8").splitlines()[:_NUM_EXAMPLES]
        for path in (texts.test_source, texts.test_reference)
    ]
    told = {
        "format": 1,
        "corpus": options.data.title,
        "updates": options.max_steps,
        "examples": [list(pair) for pair in zip(*lines, strict=True)],
        "models": [_describe(part, found[part.name]) for part in PARTS if part.name in found],
    }
    write_file(place / MANIFEST, json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _describe(part: Part, outcome: Outcome) -> dict[str, Any]:
    """Describe a model and its row of the paper as JSON."""
    row = next((each for each in TABLE_3 if each.preset == part.row), None)
    return {
        "name": part.name, "title": part.title, "change": part.change, "section": part.section,
        "says": part.says, "published": row and {"bleu": row.bleu, "perplexity": row.perplexity},
        "bleu": round(outcome.bleu, 2), "chrf": round(outcome.chrf, 2),
        "perplexity": round(outcome.perplexity, 3), "parameters": outcome.num_parameters,
        "seconds": round(outcome.seconds, 1),
    }  # fmt: skip


def _findings(found: dict[str, Outcome]) -> list[str]:
    """Say what became of each model."""
    told = []
    whole = found.get("whole")
    for part in PARTS[1:]:
        outcome = found.get(part.name)
        if outcome is None or whole is None:
            continue
        told.append(
            f"With {part.title}: {outcome.bleu:.1f} BLEU where the whole model has "
            f"{whole.bleu:.1f}; perplexity {outcome.perplexity:.2f} where it has "
            f"{whole.perplexity:.2f}."
        )
    return told


def _tabulate(found: dict[str, Outcome], options: BrokenOptions) -> Table:
    """Tabulate the models beside what the paper says."""
    rows = []
    for part in PARTS:
        outcome = found.get(part.name)
        if outcome is None:
            continue
        row = next((each for each in TABLE_3 if each.preset == part.row), None)
        rows.append(
            (
                part.title, outcome.num_parameters, outcome.perplexity, outcome.bleu,
                outcome.seconds, part.section, row.bleu if row else None,
            )
        )  # fmt: skip
    return Table(
        name="broken",
        title=f"Seven small models on {options.data.title}",
        columns=(
            Column("model"), Column("parameters"), Column("perplexity", ".2f"),
            Column("BLEU", ".2f"), Column("training, s", ",.0f"), Column("in the paper"),
            Column("published BLEU", ".1f"),
        ),
        rows=tuple(rows),
        notes=(
            f"{options.max_steps:,} updates of {options.batch_tokens:,} subwords each, seed "
            f"{options.seed}. How much a part matters depends on size and training: with more of "
            "both, the models without scaling or positions come nearer, and one head falls behind.",
            "Perplexity is measured as in training, with the reference at hand; a model without a "
            "mask reads the answer there. Only translating shows that it has learnt nothing.",
        ),
    )  # fmt: skip


def _plot(found: dict[str, Outcome]) -> Plot:
    """Plot the BLEU of each model."""
    bars = tuple(
        Bar(name=part.title, group="BLEU", end=found[part.name].bleu)
        for part in PARTS
        if part.name in found
    )
    panel = Bars(title="", x_label="BLEU on held-out sentences", bars=bars)
    return Plot(name="broken", title="Without one part each", panels=(panel,))
