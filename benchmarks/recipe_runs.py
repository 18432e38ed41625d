"""One run of the study: train, translate, score.

Each step leaves a file, so that a run that was stopped goes on where it was.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from dragoman.cli.command import build_parser
from dragoman.cli.flags import given_flags
from dragoman.data.workers import count_cores
from dragoman.errors import DragomanError
from dragoman.evaluation.bleu import score_translations, tokenizer_for
from dragoman.paper.training_runs.corpora import Corpus, make_digest
from dragoman.paper.training_runs.outcomes import is_finished
from dragoman.presets import AUTO, choose_preset, read_preset
from dragoman.training.configuration import RunOptions, resolve_options
from moses import score_as_published
from recipe_corpora import SELF_TEST, STUDIES, Sets, read_translations
from recipe_factors import Factor, find_factor
from recipe_ledger import FAILED, FINISHED, NOT_AVAILABLE, Line

NUM_VALIDATIONS = 10
SAVING_SECONDS = 20.0
SEARCH = ("--beam-size", "5")
LOG, TRANSLATIONS = "log.txt", "translations.txt"
# The built-in corpus tests the script, not the recipes: every model is made small.
SELF_TEST_WORDS = (
    "--num-encoder-layers=1", "--num-decoder-layers=1", "--model-dim=64", "--feed-forward-dim=128",
    "--num-heads=2", "--batch-tokens=2000", "--warmup-steps=40", "--peak-learning-rate=0.005",
    "--device=cpu",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A run that is wanted.

    Parameters
    ----------
    corpus : str
        The name of its corpus.
    factor : str
        The name of what it varies.
    seed : int
        Of all chance in it.
    tokens : int
        To train on.
    """

    corpus: str
    factor: str
    seed: int
    tokens: int

    @property
    def title(self) -> str:
        """What to call it to people."""
        return f"{self.corpus}, {self.factor}, seed {self.seed}"

    @property
    def recipe(self) -> Factor:
        """What to do."""
        return find_factor(self.factor)

    @property
    def words(self) -> tuple[str, ...]:
        """The words that make the recipe, on any machine."""
        return (*(SELF_TEST_WORDS if self.corpus == SELF_TEST else ()), *self.recipe.words)

    @property
    def digest(self) -> str:
        """A short name that differs when anything that decides the outcome differs."""
        recipe = self.recipe
        pairs = STUDIES[self.corpus].num_pairs
        preset = choose_preset(pairs) if recipe.preset == AUTO else read_preset(recipe.preset)
        size, share = recipe.vocabulary_size, recipe.warmup_share
        return make_digest(
            self.corpus, self.seed, self.tokens, self.words, json.dumps(preset), size, share, SEARCH
        )


class Unavailable(Exception):  # noqa: N818
    """A recipe that this Dragoman does not know."""


class Interrupted(Exception):  # noqa: N818
    """The sitting is over; the run goes on in the next one."""


class Failed(Exception):  # noqa: N818
    """A run that came to nothing."""


def plan_updates(wanted: Wanted, num_pairs: int) -> tuple[list[str], RunOptions]:
    """Find how many updates a run has, and check that its recipe is known.

    Parameters
    ----------
    wanted : Wanted
        The run.
    num_pairs : int
        Of its corpus.

    Returns
    -------
    tuple[list[str], RunOptions]
        The words for “dragoman train” that steer it, and what they come to.
    """
    words = [*wanted.words, "--patience", "off", "--max-epochs", "off", "--max-minutes", "off"]
    batch_tokens = _resolve(wanted, words, num_pairs).training.batch_tokens
    updates = max(1, wanted.tokens // batch_tokens)
    words += ["--max-steps", str(updates), "--seed", str(wanted.seed)]
    words += ["--validate-every", str(max(1, updates // NUM_VALIDATIONS))]
    if wanted.recipe.warmup_share is not None:
        words += ["--warmup-steps", str(max(1, round(wanted.recipe.warmup_share * updates)))]
    return words, _resolve(wanted, words, num_pairs)


def _resolve(wanted: Wanted, words: Sequence[str], num_pairs: int) -> RunOptions:
    try:
        parsed = build_parser().parse(["train", "--out", "nowhere", *words])
        flags = given_flags(parsed, RunOptions)
        return resolve_options(wanted.recipe.preset, {}, flags, num_pairs)[1]
    except DragomanError as error:
        raise Unavailable(" ".join(str(error).split())) from None


@dataclass(frozen=True, kw_only=True)
class Bench:
    """Where runs are made.

    Parameters
    ----------
    work : Path
        The work folder.
    jobs : int
        Runs at once.
    ends : float
        When the sitting is over, by the monotonic clock.
    commit, machine : str
        For the ledger.
    keeps_models : bool
        Whether models stay when they are scored.
    """

    work: Path
    jobs: int
    ends: float
    commit: str
    machine: str
    keeps_models: bool = False

    def call(self, words: Sequence[str], log: Path, answer: Path | None = None) -> None:
        """Run “dragoman” until it is done or the sitting is over.

        Parameters
        ----------
        words : Sequence[str]
            Its command line.
        log : Path
            Where what it says goes.
        answer : Path | None
            Where what it answers goes.
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        threads = str(max(1, count_cores() // self.jobs))
        limits = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", threads)}
        with log.open("a", encoding="utf-8") as told, _opened(answer) as answered:
            told.write(f"$ dragoman {' '.join(words)}\n")
            told.flush()
            process = subprocess.Popen(
                [sys.executable, "-m", "dragoman", *words],
                stdout=answered or told, stderr=told, env=os.environ | limits,
            )  # fmt: skip
            try:
                process.wait(timeout=max(0.0, self.ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                raise Interrupted from None
            finally:
                _end(process)
        if process.returncode == 130:
            raise Interrupted
        if process.returncode:
            raise Failed(_last_line(log))


def run_one(wanted: Wanted, corpus: Corpus, sets: Sets, bench: Bench) -> tuple[Line, dict]:
    """Train, translate and score one run, as far as that was not done before.

    Parameters
    ----------
    wanted : Wanted
        The run.
    corpus : Corpus
        Prepared.
    sets : Sets
        The held-out lines.
    bench : Bench
        Where.

    Returns
    -------
    tuple[dict[str, Any], dict[str, list[str]]]
        The line for the ledger, and the translations of the sets that report.
    """
    began = time.monotonic()
    line = _begin_line(wanted, corpus, bench)
    try:
        words, options = plan_updates(wanted, corpus.num_pairs)
    except Unavailable as error:
        return line | {"status": NOT_AVAILABLE, "why": str(error)}, {}
    line["batch_tokens"] = options.training.batch_tokens
    line["updates"] = options.training.max_steps
    folder = bench.work / "runs" / f"{wanted.corpus}-{wanted.factor}-{wanted.seed}-{wanted.digest}"
    model = folder / "model"
    try:
        if not (folder / TRANSLATIONS).exists() and not is_finished(model):
            bench.call(_training_words(wanted, corpus, words, model), folder / LOG)
        translations = translate_sets(folder, corpus, sets, bench)
    except Failed as error:
        return line | {"status": FAILED, "why": str(error)}, {}
    line |= score_run(translations, sets, STUDIES[wanted.corpus].languages[1], wanted.corpus)
    line |= _read_log(model) | {"total_seconds": round(time.monotonic() - began, 1)}
    if not bench.keeps_models:
        shutil.rmtree(model / "checkpoints", ignore_errors=True)
        (model / "model.safetensors").unlink(missing_ok=True)
    report = {name: translations[name] for name in sets.report}
    return line | {"status": FINISHED}, report


def translate_sets(folder: Path, corpus: Corpus, sets: Sets, bench: Bench) -> dict[str, list[str]]:
    """Translate the held-out lines with a run's model, if that was not done before.

    Parameters
    ----------
    folder : Path
        Of the run.
    corpus : Corpus
        Prepared.
    sets : Sets
        The held-out lines.
    bench : Bench
        Where.

    Returns
    -------
    dict[str, list[str]]
        The translations by the name of the set.
    """
    answers, beside = folder / TRANSLATIONS, folder / "translations.part"
    if not answers.exists():
        words = ["translate", str(folder / "model"), str(corpus.texts.test_source), *SEARCH]
        bench.call(words, folder / LOG, beside)
        beside.rename(answers)
    return read_translations(answers, sets)


def score_run(
    translations: dict[str, list[str]], sets: Sets, language: str, corpus: str
) -> dict[str, Any]:
    """Score the translations of all sets.

    Parameters
    ----------
    translations : dict[str, list[str]]
        By the name of the set.
    sets : Sets
        With their references.
    language : str
        Of the translations.
    corpus : str
        Multi30k is also scored as it was published.

    Returns
    -------
    dict[str, Any]
        What chooses, what reports, and the signatures.
    """
    scores, signatures = {}, {}
    for name, pairs in sets.all.items():
        references = [target for _, target in pairs]
        found = score_translations(
            translations[name], [references], metrics=("bleu", "chrf"), num_samples=0,
            tokenize=tokenizer_for(language),
        )  # fmt: skip
        scores[name] = {"bleu": round(found[0].value, 3), "chrf": round(found[1].value, 3)}
        signatures |= {"bleu": found[0].signature, "chrf": found[1].signature}
        if corpus.startswith("multi30k"):
            published = score_as_published(translations[name], references, language)
            scores[name]["tokenised_bleu"] = round(published.value, 3)
            signatures["tokenised_bleu"] = f"Moses, lowercased|{published.signature}"
    choose = scores.pop("choose")
    return {"choose": choose, "report": scores, "signature": signatures}


def _begin_line(wanted: Wanted, corpus: Corpus, bench: Bench) -> Line:
    return {
        "kind": "run", "corpus": wanted.corpus, "factor": wanted.factor, "seed": wanted.seed,
        "tokens": wanted.tokens, "digest": wanted.digest, "preset": wanted.recipe.preset,
        "words": " ".join(wanted.words), "vocabulary_size": corpus.vocabulary_size,
        "pairs": corpus.num_pairs, "runs_at_once": bench.jobs, "date": date.today().isoformat(),
        "commit": bench.commit, "machine": bench.machine,
    }  # fmt: skip


def _training_words(wanted: Wanted, corpus: Corpus, words: list[str], model: Path) -> list[str]:
    """Write the command that starts a run, or goes on with it."""
    if (model / "run.json").exists():
        return ["train", "--resume", "--out", str(model)]
    shutil.rmtree(model, ignore_errors=True)
    texts = corpus.texts
    return [
        "train", "--source", str(texts.source), "--target", str(texts.target),
        "--valid-source", str(texts.valid_source), "--valid-target", str(texts.valid_target),
        "--store", str(corpus.store), "--subwords", str(corpus.subwords),
        "--preset", wanted.recipe.preset, "--out", str(model), *words,
    ]  # fmt: skip


def _read_log(model: Path) -> dict[str, Any]:
    """Read a finished run's own log: speed, seconds and size."""
    text = (model / "metrics.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    speeds = sorted(each["tokens_per_second"] for each in events if each["event"] == "update")
    return {
        "seconds": round(events[-1]["seconds"], 1),
        "tokens_per_second": round(speeds[len(speeds) // 2]) if speeds else None,
        "parameters": next(each["parameters"] for each in events if each["event"] == "start"),
        "divergences": sum(each["event"] == "divergence" for each in events),
    }


def _opened(path: Path | None) -> Any:  # noqa: ANN401
    """Open a file to write, or nothing."""
    from contextlib import nullcontext

    return path.open("w", encoding="utf-8") if path else nullcontext()


def _end(process: subprocess.Popen) -> None:
    """Ask a process to save and leave; make it leave if it does not."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(timeout=SAVING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_line(log: Path) -> str:
    """Find what a process said last, without where this machine keeps its files."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return last.removeprefix("dragoman: ").replace(str(log.parent), "RUN")
