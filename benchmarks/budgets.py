"""What few minutes on a CPU buy: shape, batch, rate, dropout and more, one at a time.

    python benchmarks/budgets.py --corpora tatoeba-en-de-full --minutes 5 15 [--device cuda]
        [--variations NAME …] [--seeds 1] [--jobs 1] [--work DIR] [--data DIR] [--ledger FILE]
    python benchmarks/budgets.py --summary

A run is “dragoman train” with one of the shapes and variations below. On a CPU it gets the minutes
(--max-minutes, so that updates and schedule are planned from this machine's speed). With --device
cuda it is trained on a card instead, with as many updates as two cores make in those minutes: see
SPEEDS, tokens a second on two cores of an AMD EPYC with AVX-512 and bfloat16, timed before what
prepares batches was counted: 10 to 20 % too many for small models. That tells how good a recipe is
after so many minutes, in seconds; it does not measure the speed of anything.

Every finished run adds a line to the ledger, benchmarks/results/budgets.jsonl, and is not repeated.
--summary draws BLEU over minutes and writes the table of all runs into docs.
"""

import argparse
import json
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dragoman.paper.training_runs.corpora import Corpus
from recipe_corpora import STUDIES, prepare_study, read_sets
from recipe_ledger import Line, append_lines, read_ledger
from record import RESULTS, find_commit, require_commit

LEDGER = RESULTS / "budgets.jsonl"
DOCS = Path(__file__).parent.parent / "docs"

SPEEDS = {
    "2+2x128": 65_000, "4+4x128": 42_000, "2+2x192": 48_000, "4+4x192": 30_600,
    "6+3x192": 28_600, "2+1x256": 40_000, "3+1x256": 32_500, "2+2x256": 34_000,
    "3+2x256": 28_500, "3+3x256": 24_700, "6+3x256": 18_800, "6+6x256": 14_600,
    "2+2x384": 19_500, "4+2x384": 14_000, "3+3x384": 14_000, "6+3x384": 10_500,
    "6+6x384": 8_200,
}  # fmt: skip
"""By shape: encoder+decoder layers x width."""

SHAPES = ("2+2x128", "4+4x128", "4+4x192", "2+2x256", "3+3x256", "6+6x256")
SECONDS = {1: 25, 5: 235, 15: 800, 60: 3350, 150: 8600}
"""Of training within so many minutes."""


class Variation(NamedTuple):
    """What is changed, and what that does to the speed."""

    flags: dict[str, str]
    speed: float = 1.0


R_DROP = {"consistency": "r-drop", "consistency-weight": "5.0"}
VARIATIONS = {
    "plain": Variation({}),
    "dropout-0": Variation({"dropout": "0.0"}),
    "dropout-0.2": Variation({"dropout": "0.2"}),
    "dropout-0.3": Variation({"dropout": "0.3"}),
    "batch-2000": Variation({"batch-tokens": "2000"}, 0.93),
    "batch-8000": Variation({"batch-tokens": "8000"}),
    "rate-0.002": Variation({"peak-learning-rate": "0.002"}),
    "rate-0.005": Variation({"peak-learning-rate": "0.005"}),
    "muon": Variation({"optimiser": "muon"}, 0.85),
    "ema": Variation({"ema-decay": "0.998"}),
    "smoothing-0": Variation({"label-smoothing": "0.0"}),
    "stable-decay": Variation({"schedule": "warmup-stable-decay"}),
    "swiglu": Variation({"feed-forward": "swiglu"}, 0.85),
    "rotary": Variation({"positions": "rotary"}),
    "subwords-4000": Variation({"vocabulary-size": "4000"}, 1.1),
    "subwords-16000": Variation({"vocabulary-size": "16000"}, 0.82),
    "r-drop": Variation(R_DROP, 0.5),
    "r-drop-dropout-0.2": Variation(R_DROP | {"dropout": "0.2"}, 0.5),
    "r-drop-dropout-0.3": Variation(R_DROP | {"dropout": "0.3"}, 0.5),
}
USUAL = {
    "vocabulary-size": "8000", "norm-position": "pre", "dropout": "0.1", "batch-tokens": "4000",
    "peak-learning-rate": "0.003", "clip-norm": "1.0", "schedule": "cosine",
    "average-checkpoints": "1", "patience": "off",
}  # fmt: skip


class Run(NamedTuple):
    """One training of the study."""

    corpus: str
    minutes: int
    shape: str
    variation: str
    seed: int
    device: str

    @property
    def name(self) -> str:
        """A name for its folder."""
        return "-".join(map(str, self)).replace("+", "_")


def main() -> None:
    """Make the runs that are wanted and not yet in the ledger."""
    given = _read_options()
    if given.summary:
        summarise(read_ledger(given.ledger))
        return
    require_commit()
    known = {_key(line) for line in read_ledger(given.ledger)}
    wanted = [
        Run(corpus, minutes, shape, variation, seed, given.device)
        for corpus in given.corpora
        for minutes in given.minutes
        for shape in given.shapes
        for variation in given.variations
        for seed in given.seeds
    ]
    prepared: dict[tuple[str, str], Corpus] = {}
    for run in wanted:
        size = _flags(run)["vocabulary-size"]
        if (run.corpus, size) not in prepared:
            prepared[run.corpus, size] = prepare_study(
                run.corpus, given.data, given.work, int(size), print
            )
    with ThreadPoolExecutor(given.jobs) as pool:
        missing = [run for run in wanted if run not in known]
        for line in pool.map(partial(_make, given=given, prepared=prepared), missing):
            append_lines(given.ledger, [line])
            print(json.dumps(line), flush=True)


def _read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", nargs="+", choices=STUDIES, default=["tatoeba-en-de-full"])
    parser.add_argument("--minutes", type=int, nargs="+", choices=SECONDS, default=[5, 15])
    parser.add_argument("--shapes", nargs="+", choices=SPEEDS, default=list(SHAPES))
    parser.add_argument("--variations", nargs="+", choices=VARIATIONS, default=["plain"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once; on a CPU one")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=Path("../budgets-work"))
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--summary", action="store_true")
    return parser.parse_args()


def _key(line: Line) -> Run:
    return Run(*(line[name] for name in Run._fields))


def _flags(run: Run) -> dict[str, str]:
    """Say how a run is trained, but for its length."""
    layers, width = run.shape.split("x")
    encoder, decoder = layers.split("+")
    heads = 6 if width == "384" else 4
    shape = {
        "num-encoder-layers": encoder, "num-decoder-layers": decoder, "model-dim": width,
        "feed-forward-dim": str(4 * int(width)), "num-heads": str(heads),
    }  # fmt: skip
    return USUAL | shape | VARIATIONS[run.variation].flags


def _make(run: Run, *, given: argparse.Namespace, prepared: dict[tuple[str, str], Corpus]) -> Line:
    """Train and score one run."""
    flags = _flags(run)
    corpus, model = prepared[run.corpus, flags["vocabulary-size"]], given.work / "runs" / run.name
    if run.device == "cpu":
        flags |= {"max-minutes": str(run.minutes)}
    else:
        tokens = SPEEDS[run.shape] * VARIATIONS[run.variation].speed * SECONDS[run.minutes]
        updates = int(tokens / int(flags["batch-tokens"]))
        warm_up = max(1, min(300, updates // 10))
        flags |= {"max-steps": str(updates), "warmup-steps": str(warm_up)}
        flags |= {"validate-every": str(updates)}
    del flags["vocabulary-size"]  # the subwords are ready
    texts = corpus.texts
    words = [
        "train", "--out", model, "--preset", "tiny", "--seed", run.seed, "--device", run.device,
        "--source", texts.source, "--target", texts.target, "--store", corpus.store,
        "--valid-source", texts.valid_source, "--valid-target", texts.valid_target,
        "--subwords", corpus.subwords,
    ]  # fmt: skip
    model.parent.mkdir(parents=True, exist_ok=True)
    _dragoman([*words, *(word for name, value in flags.items() for word in (f"--{name}", value))])
    events = [json.loads(line) for line in (model / "metrics.jsonl").read_text().splitlines()]
    validations = [each for each in events if each["event"] == "validation"]
    (report,) = list(read_sets(run.corpus, given.data, given.work).report.values())[:1]
    paths = [model / f"report.{side}" for side in ("source", "reference")]
    for side, path in enumerate(paths):
        path.write_text("".join(f"{pair[side]}\n" for pair in report), encoding="utf-8")
    said = ["evaluate", model, "--source", paths[0], "--reference", paths[1], "--json"]
    scores = json.loads(_dragoman([*said, "--metrics", "bleu", "chrf"]))["scores"]
    updates = max(each["step"] for each in validations)
    return run._asdict() | {
        "updates": updates,
        "tokens": updates * int(flags["batch-tokens"]),
        "parameters": events[0]["parameters"],
        "passes": round(updates * int(flags["batch-tokens"]) / events[0]["tokens"], 1),
        "choose_bleu": round(max(each["bleu"] for each in validations), 2),
        "report_bleu": round(scores[0]["value"], 2),
        "report_chrf": round(scores[1]["value"], 2),
        "commit": find_commit(),
        "date": date.today().isoformat(),
    }


def _dragoman(words: list[object]) -> str:
    asked = [sys.executable, "-m", "dragoman", *map(str, words)]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"{' '.join(asked)}\n{found.stderr}")
    return found.stdout


def summarise(lines: list[Line]) -> None:
    """Draw BLEU over minutes, and write the table of all runs.

    Parameters
    ----------
    lines : list[dict[str, Any]]
        The ledger.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    table = [
        "# Runs of the study of budgets", "",
        "Made by `python benchmarks/budgets.py --summary` from the ledger.", "",
        "| corpus | minutes | shape | variation | seed | updates | passes | chooses | reports |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    points: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in sorted(lines, key=lambda each: (each["corpus"], each["minutes"], each["shape"])):
        score = line["report_bleu"]
        names = ("corpus", "minutes", "shape", "variation", "seed", "updates", "passes")
        row = [str(line[name]) for name in names] + [f"{line['choose_bleu']:.1f}"]
        row.append("" if score is None else f"{score:.1f}")
        table.append(f"| {' | '.join(row)} |")
        if score is not None:
            points[line["corpus"]][line["minutes"]].append(score)
    for corpus, by_minutes in points.items():
        minutes = sorted(by_minutes)
        label = STUDIES[corpus].title
        best = panel.plot(minutes, [max(by_minutes[each]) for each in minutes], "-", label=label)
        for each in minutes:
            scores = by_minutes[each]
            panel.plot(
                np.full(len(scores), each), scores, ".", color=best[0].get_color(), alpha=0.5
            )
    panel.set_xscale("log")
    panel.set_xticks([5, 15, 60], ["5", "15", "60"])
    panel.set_xlim(left=4)
    panel.set_xlabel("minutes on two cores")
    panel.set_ylabel("BLEU on the lines that report")
    panel.grid(color="0.92")
    panel.legend(frameon=False, fontsize=8)
    (DOCS / "pictures").mkdir(exist_ok=True)
    figure.savefig(DOCS / "pictures" / "budgets.png", dpi=130)
    (DOCS / "budgets-table.md").write_text("\n".join(table) + "\n", encoding="utf-8")
    print(DOCS / "pictures" / "budgets.png")


if __name__ == "__main__":
    main()
