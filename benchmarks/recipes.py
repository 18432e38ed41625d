"""What helps where: one factor at a time from the paper's recipe, on corpora of many sizes.

    python benchmarks/recipes.py --data DATA --work DIR [--sitting-minutes 8] [--jobs 4]
        [--seeds 1 2 3] [--corpora NAME …] [--factors NAME …] [--tokens CORPUS=N …] [--list]
    python benchmarks/recipes.py --merge FILE …      take in a ledger or translations from elsewhere
    python benchmarks/recipes.py --summary           the table, the plot and the dated result

DATA has the folders multi30k, tatoeba-en-de, tatoeba-en-fr, europarl-en-de and newstest; what is
not there is left out. All runs of a corpus are trained on equally many tokens. One half of the
held-out lines chooses (checkpoints, and what survives), the other reports. A sitting ends in time:
it starts no run that would not, stops what still goes on (which saves itself), says what is left.
Results accumulate in results/recipes.jsonl, also in $OUT if that is set, beside the translations.
Factors can be combined by name, as in “shape-small+dropout-0.3”; with --around NAME they are laid
over that combination, and --summary --around NAME shows how they differ from it.
"""

import argparse
import os
import statistics
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.paper.training_runs.corpora import Corpus
from recipe_corpora import SELF_TEST, STUDIES, Sets, find_missing, prepare_study, read_sets
from recipe_factors import FACTORS, PAPER, find_factor, list_names
from recipe_ledger import (
    FAILED,
    FINISHED,
    LEDGER,
    NOT_AVAILABLE,
    Line,
    append_lines,
    bundle_translations,
    keep_translations,
    merge_file,
    newest_runs,
    read_ledger,
)
from recipe_runs import SAVING_SECONDS, Bench, Interrupted, Wanted, run_one
from recipe_summary import summarise
from record import RESULTS, describe_machine, require_commit

# Before a corpus was ever timed: what a card does in a second, shared by the runs at once, and
# what a run takes besides (loading, compiling, validating, translating). An H200 did so much with
# seven small models at once.
GUESSED_TOKENS_PER_SECOND = 4_500_000
GUESSED_SECONDS_BESIDES = 40.0
UNTRIED = 1.3


def main() -> None:
    """Do what the command line asks for."""
    given = _read_options()
    for path in given.merge:
        print(merge_file(path, given.ledger, given.work))
    if given.summary:
        summarise(
            given.ledger, given.data, given.work,
            results=given.results, docs=given.docs, around=given.around,
        )  # fmt: skip
    if given.merge or given.summary:
        return
    wanted = list_wanted(given)
    runs = newest_runs(read_ledger(given.ledger))
    todo = [each for each in wanted if not _is_done(each, runs, retry=given.retry)]
    print(f"{len(wanted)} runs are wanted, {len(wanted) - len(todo)} are there")
    if given.list:
        for each in todo:
            print(f"{each.title}: about {estimate(each, runs, given.jobs):,.0f} s")
        return
    left = Sitting(given, todo).run()
    print(f"{len(left)} runs are left" + (":" if left else ""))
    for corpus in dict.fromkeys(each.corpus for each in left):
        factors = dict.fromkeys(each.factor for each in left if each.corpus == corpus)
        print(f"  {corpus}: {', '.join(factors)}")


def _read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=Path("../recipes-work"))
    parser.add_argument("--sitting-minutes", type=float, default=8.0)
    parser.add_argument("--jobs", type=int, default=4, help="runs at once")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument(
        "--corpora", nargs="+", metavar="NAME", choices=list(STUDIES),
        default=[name for name in STUDIES if not name.startswith(("europarl", "mixed", SELF_TEST))],
        help=f"of {', '.join(STUDIES)}; by default all but the last four",
    )  # fmt: skip
    parser.add_argument(
        "--factors", nargs="+", metavar="NAME", default=list_names(),
        help="factors, combinations, or several joined by “+”; the paper's recipe is always there",
    )  # fmt: skip
    parser.add_argument(
        "--around", default=PAPER, metavar="NAME",
        help="lay the factors over this factor or combination instead of the paper's recipe",
    )  # fmt: skip
    parser.add_argument("--tokens", nargs="+", default=[], metavar="CORPUS=N")
    parser.add_argument("--retry", action="store_true", help="run again what failed")
    parser.add_argument("--keep-models", action="store_true")
    parser.add_argument("--list", action="store_true", help="say what is left, and do nothing")
    parser.add_argument("--merge", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--out", type=Path, default=os.environ.get("OUT"), help="copies go here")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parent.parent / "docs")
    return parser.parse_args()


def list_wanted(given: argparse.Namespace) -> list[Wanted]:
    """List the runs that are wanted in the order in which they are made.

    Parameters
    ----------
    given : argparse.Namespace
        The command line.

    Returns
    -------
    list[Wanted]
        The first seed of all factors before the second of any, the paper's recipe first.
    """
    tokens = {name: study.tokens for name, study in STUDIES.items()}
    for word in given.tokens:
        name, _, number = word.partition("=")
        if name not in STUDIES or not number.isdecimal():
            raise SystemExit(
                f"--tokens {word}: give CORPUS=N with a corpus of {', '.join(STUDIES)}"
            )
        tokens[name] = int(number)
    missing = {name: find_missing(name, given.data) for name in given.corpora}
    for name, paths in missing.items():
        if paths:
            print(f"{name}: left out, as {paths} is not there")
    factors = dict.fromkeys([given.around, *given.factors])
    if given.around != PAPER:
        varied = (name for name in FACTORS if name in given.factors and name != PAPER)
        factors = dict.fromkeys([given.around, *(f"{given.around}+{name}" for name in varied)])
    for name in factors:
        find_factor(name)
    return [
        Wanted(corpus=corpus, factor=factor, seed=seed, tokens=tokens[corpus])
        for seed in given.seeds
        for factor in factors
        for corpus in given.corpora
        if not missing[corpus]
    ]


def estimate(wanted: Wanted, runs: dict[tuple[str, str, int], Line], jobs: int) -> float:
    """Guess how long a run takes.

    Parameters
    ----------
    wanted : Wanted
        The run.
    runs : dict[tuple[str, str, int], dict[str, Any]]
        Those that are there.
    jobs : int
        Runs at once.

    Returns
    -------
    float
        Seconds: as long as the same took with another seed, or else as its corpus takes.
    """
    alike = [
        run
        for run in runs.values()
        if run["status"] == FINISHED and run["corpus"] == wanted.corpus
        and run["tokens"] == wanted.tokens and run["runs_at_once"] == jobs
    ]  # fmt: skip
    same = [run["total_seconds"] for run in alike if run["factor"] == wanted.factor]
    if same:
        return statistics.mean(same)
    if alike:
        return UNTRIED * statistics.median(run["total_seconds"] for run in alike)
    if wanted.corpus == SELF_TEST:
        return 10.0
    return GUESSED_SECONDS_BESIDES + wanted.tokens * jobs / GUESSED_TOKENS_PER_SECOND


def _is_done(wanted: Wanted, runs: dict[tuple[str, str, int], Line], *, retry: bool) -> bool:
    """Whether a run is there; what was not available is tried again, as it may be by now."""
    run = runs.get((wanted.corpus, wanted.factor, wanted.seed))
    done = (FINISHED,) if retry else (FINISHED, FAILED)
    return run is not None and run["status"] in done and run["digest"] == wanted.digest


class Sitting:
    """Some minutes in which runs are made, several at once.

    Parameters
    ----------
    given : argparse.Namespace
        The command line.
    todo : list[Wanted]
        What to run, in order.
    """

    def __init__(self, given: argparse.Namespace, todo: list[Wanted]) -> None:
        self._given = given
        self._todo = list(todo)
        self._left: list[Wanted] = []
        self._finished: list[str] = []
        self._lock, self._preparing = threading.Lock(), threading.Lock()
        self._prepared: dict[tuple[str, int | None], tuple[Corpus, Sets]] = {}
        self._runs = newest_runs(read_ledger(given.ledger))
        self._bench = Bench(
            work=given.work,
            jobs=given.jobs,
            ends=time.monotonic() + 60 * given.sitting_minutes - SAVING_SECONDS - 5,
            commit=require_commit(),
            machine=describe_machine(),
            keeps_models=given.keep_models,
        )

    def run(self) -> list[Wanted]:
        """Run what can be run in time.

        Returns
        -------
        list[Wanted]
            What is left.
        """
        with ThreadPoolExecutor(self._given.jobs) as pool:
            workers = [pool.submit(self._work) for _ in range(self._given.jobs)]
            for each in workers:
                each.result()
        return self._left + self._todo

    def _work(self) -> None:
        """Run one after the other, as long as there is time."""
        while (wanted := self._take()) is not None:
            began = time.monotonic()
            try:
                corpus, sets = self._prepare(wanted)
                line, translations = run_one(wanted, corpus, sets, self._bench)
            except Interrupted:
                self._say(f"{wanted.title}: stopped; it goes on where it is in this work folder")
                self._left.append(wanted)
                continue
            self._note(wanted, line, translations, time.monotonic() - began)

    def _take(self) -> Wanted | None:
        """Take the first run that will end in time."""
        with self._lock:
            remaining = self._bench.ends - time.monotonic()
            for wanted in self._todo:
                if estimate(wanted, self._runs, self._given.jobs) <= remaining:
                    self._todo.remove(wanted)
                    return wanted
        return None

    def _prepare(self, wanted: Wanted) -> tuple[Corpus, Sets]:
        """Prepare a corpus once, whoever asks first."""
        key = (wanted.corpus, wanted.recipe.vocabulary_size)
        with self._preparing:
            if key not in self._prepared:
                corpus = prepare_study(
                    wanted.corpus, self._given.data, self._given.work, key[1], self._say
                )
                sets = read_sets(wanted.corpus, self._given.data, self._given.work)
                self._prepared[key] = (corpus, sets)
            return self._prepared[key]

    def _note(self, wanted: Wanted, line: Line, translations: dict, seconds: float) -> None:
        """Write down what came of a run, and tell it."""
        out = self._given.out
        with self._lock:
            if line["status"] == FINISHED:
                keep_translations(self._given.work, wanted.digest, translations)
                self._finished.append(wanted.digest)
            append_lines(self._given.ledger, [line])
            if out is not None:
                append_lines(Path(out) / self._given.ledger.name, [line])
                bundle_translations(self._given.work, self._finished, Path(out))
            self._runs[wanted.corpus, wanted.factor, wanted.seed] = line
        if line["status"] == FINISHED:
            scores = " ".join(
                f"{name} " + "/".join(f"{value:.2f}" for value in score.values())
                for name, score in line["report"].items()
            )
            told = f"chooses {line['choose']['bleu']:.2f}, {scores} ({seconds:.0f} s)"
        else:
            told = f"{line['status']}: {line['why']}"
        self._say(f"{wanted.title}: {told}")
        if line["status"] == NOT_AVAILABLE:
            self._drop_unavailable(wanted.corpus, wanted.factor)

    def _drop_unavailable(self, corpus: str, factor: str) -> None:
        """Leave out the other seeds of what is not available."""
        with self._lock:
            self._todo = [
                each for each in self._todo if (each.corpus, each.factor) != (corpus, factor)
            ]

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
