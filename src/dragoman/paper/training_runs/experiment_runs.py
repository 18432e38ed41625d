"""Start or resume several runs of “dragoman train” at once, and score them.

A run's folder is named by what it is and by a digest of all that decides its outcome, so that the
same run is found again and another one never takes its place.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dragoman.errors import TrainingError
from dragoman.options import option, require
from dragoman.paper.report.result import Say
from dragoman.paper.training_runs.corpora import hash_contents, make_digest
from dragoman.paper.training_runs.outcomes import (
    SCORES,
    TRANSLATIONS,
    Failure,
    Outcome,
    Plan,
    date_weights,
    forget_longest,
    is_finished,
    read_json,
    read_outcome,
    write_json,
)

_DRAGOMAN = (sys.executable, "-m", "dragoman")
_LOG = "log.txt"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, kw_only=True)
class WorkOptions:
    """Options: the work folder, the number of parallel runs, and the device."""

    work: str = option(
        "paper-runs", "folder of corpora and runs; what is there is used again or gone on with"
    )
    jobs: int = option(2, "runs at once, each with its share of the cores")
    device: Literal["auto", "cpu", "cuda", "mps"] = option("auto", "where to train")

    def __post_init__(self) -> None:
        require(self.jobs >= 1, "--jobs", self.jobs, "give ≥ 1")
        require(bool(self.work), "--work", "empty", "name a folder")


def read_seeds(words: Sequence[str]) -> tuple[int, ...]:
    """Parse the seeds of an experiment."""
    good = bool(words) and all(word.isdecimal() for word in words) and len(set(words)) == len(words)
    require(good, "--seeds", " ".join(words) or "empty", "give different whole numbers")
    return tuple(map(int, words))


def check_choice(flag: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Refuse unknown names, duplicates, and an empty list."""
    for name in names:
        require(name in known, flag, f"“{name}”", f"there are {', '.join(known)}")
        require(names.count(name) == 1, flag, f"“{name}” twice", "name each once")
    require(bool(names), flag, "empty", f"there are {', '.join(known)}")


def run_all(
    plans: Sequence[Plan], options: WorkOptions, say: Say
) -> tuple[list[Outcome], list[Failure]]:
    """Train and score every run that is not finished.

    Returns
    -------
    tuple[list[Outcome], list[Failure]]
        Both in the order of the plans; at least one outcome, or else the first failure is raised.

    Notes
    -----
    Each run is a process of its own. When the experiment is interrupted, they save what they have
    and go on from there the next time.
    """
    running: list[subprocess.Popen] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(_run_one, plan, options, running, say) for plan in plans]
        try:
            results = [each.result() for each in waiting]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.terminate()
            raise
    failures = [each for each in results if isinstance(each, Failure)]
    outcomes = [each for each in results if isinstance(each, Outcome)]
    if not outcomes:
        raise TrainingError(f"no run came to its end; {failures[0].plan.title}: {failures[0].why}")
    return outcomes, failures


def tell_failures(failures: Sequence[Failure]) -> tuple[str, ...]:
    """Describe which runs are missing from a result."""
    return tuple(f"Missing: {each.plan.title} came to nothing ({each.why})." for each in failures)


def _run_one(
    plan: Plan, options: WorkOptions, running: list[subprocess.Popen], say: Say
) -> Outcome | Failure:
    """Train and score one run, reusing what is finished."""
    folder = _folder_of(plan, options)
    model, log = folder / "model", folder / _LOG
    threads = _share_of_cores(options.jobs)
    was_there = is_finished(model)
    if not was_there:
        say(f"{plan.title}: training; its log is {log}")
        words = _training_words(plan, options, model)
        problem, _ = _call(words, log, threads, running)
        if problem or not is_finished(model):
            problem = problem or f"it was stopped; run the same command to go on (log: {log})"
            say(f"{plan.title}: {problem}")
            return Failure(plan=plan, why=problem)
    if plan.is_whole:
        forget_longest(model)
    texts = plan.corpus.texts
    tests = (texts.test_source, texts.test_reference)
    key = make_digest(hash_contents(tests), plan.search, plan.is_whole, date_weights(model))
    if read_json(folder / SCORES).get("key") != key:
        words = [
            "evaluate", str(model), "--source", str(tests[0]), "--reference", str(tests[1]),
            "--metrics", "bleu", "chrf", "--json", "--output", str(folder / TRANSLATIONS),
            "--device", options.device, *plan.search,
            *(("--split-sentences", "off") if plan.is_whole else ()),
        ]  # fmt: skip
        problem, answer = _call(words, log, threads, running)
        if problem:
            say(f"{plan.title}: {problem}")
            return Failure(plan=plan, why=problem)
        write_json(folder / SCORES, {"key": key} | json.loads(answer))
    outcome = read_outcome(plan, folder)
    took = "was there" if was_there else f"{outcome.seconds:,.0f} s"
    say(f"{plan.title}: BLEU {outcome.bleu:.2f} ({took})")
    return outcome


def _folder_of(plan: Plan, options: WorkOptions) -> Path:
    """Name the folder of a run by a digest of all that decides its outcome."""
    from dragoman import __version__
    from dragoman.presets import read_preset

    recipe = json.dumps(read_preset(plan.preset), sort_keys=True)
    digest = make_digest(__version__, recipe, plan.flags, plan.corpus.key, options.device)
    return Path(options.work) / "runs" / f"{plan.name}-seed{plan.seed}-{digest}"


def _training_words(plan: Plan, options: WorkOptions, model: Path) -> list[str]:
    """Build the command that starts or resumes a run."""
    from dragoman.folder import RUN_FILE

    if (model / RUN_FILE).exists():
        return ["train", "--resume", "--out", str(model)]
    # Without that file the run never began, and cannot be resumed.
    shutil.rmtree(model, ignore_errors=True)
    corpus = plan.corpus
    texts = corpus.texts
    return [
        "train", "--source", str(texts.source), "--target", str(texts.target),
        "--valid-source", str(texts.valid_source), "--valid-target", str(texts.valid_target),
        "--store", str(corpus.store), "--subwords", str(corpus.subwords),
        "--preset", plan.preset, "--seed", str(plan.seed), "--device", options.device,
        "--out", str(model), *plan.flags,
    ]  # fmt: skip


def _call(
    words: Sequence[str], log: Path, num_threads: int, running: list[subprocess.Popen]
) -> tuple[str, str]:
    """Run dragoman; return its error, if any, and its output."""
    limits = {name: str(num_threads) for name in _THREAD_VARIABLES}
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ dragoman {' '.join(words)}\n")
        file.flush()
        process = subprocess.Popen(
            [*_DRAGOMAN, *words], stdout=subprocess.PIPE, stderr=file, text=True,
            encoding="utf-8", env=os.environ | limits,
        )  # fmt: skip
        running.append(process)
        answer, _ = process.communicate()
        running.remove(process)
    if process.returncode == 0:
        return "", answer
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{last.removeprefix('dragoman: ')} (status {process.returncode}, log: {log})", answer


def _share_of_cores(jobs: int) -> int:
    """Return the number of threads of a run, so that all runs together fit the cores."""
    is_told = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if is_told else os.cpu_count() or 1
    share = max(1, cores // jobs)
    said = os.environ.get(_THREAD_VARIABLES[0], "")
    return min(share, int(said)) if said.isdecimal() and int(said) else share
