"""Multi30k English→German with one command and no tuning: BLEU on test_2016, with its spread.

    python benchmarks/multi30k.py DATA [--seeds 1 2 3] [--jobs 1] [--preset auto] [--results DIR]
        [--ledger FILE] [--merge RESULT …]

DATA is a folder with train, val and test_2016_flickr in .en and .de (plain, .gz or .xz). Each
seed runs ``dragoman train`` and ``dragoman evaluate`` exactly as a user would. “bleu” is scored as
published, on Moses-tokenised lowercased text; “sacrebleu” is sacreBLEU's own, on raw cased text.

With a ledger every finished seed is written down there at once and not run again by the same
command, so that the seeds of a short lease add up. --merge takes in the runs of earlier results;
their commits and machines stand in the notes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dragoman.data.corpus import read_lines
from moses import score_as_published
from record import RESULTS, require_commit, write_result

# Student's t for 95 % by the number of runs.
STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
DRAGOMAN = [sys.executable, "-m", "dragoman"]


def find(data: Path, name: str) -> str:
    """Find a file of the data set, packed or not.

    Parameters
    ----------
    data : Path
        The folder.
    name : str
        Its name without the packing's suffix.

    Returns
    -------
    str
        Its path.
    """
    for suffix in ("", ".xz", ".gz"):
        if (data / f"{name}{suffix}").exists():
            return str(data / f"{name}{suffix}")
    raise SystemExit(f"{data / name}: not there, neither plain nor .xz nor .gz")


def run_seed(data: Path, preset: str, seed: int, folder: Path) -> dict[str, object]:
    """Train and evaluate one model.

    Parameters
    ----------
    data : Path
        The data set.
    preset : str
        The recipe.
    seed : int
        Of the run.
    folder : Path
        Where the model goes.

    Returns
    -------
    dict[str, object]
        Scores, seconds and the signature.
    """
    files = {
        f"--{prefix}{side}": find(data, f"{split}.{language}")
        for prefix, split in (("", "train"), ("valid-", "val"))
        for side, language in (("source", "en"), ("target", "de"))
    }
    words = [word for pair in files.items() for word in pair]
    began = time.monotonic()
    subprocess.run(
        [*DRAGOMAN, "train", *words, "--out", str(folder), "--preset", preset, "--seed", str(seed)],
        check=True,
    )
    seconds = time.monotonic() - began
    source, reference = (find(data, f"test_2016_flickr.{each}") for each in ("en", "de"))
    evaluate = [*DRAGOMAN, "evaluate", str(folder), "--source", source, "--reference", reference]
    output = folder.with_suffix(".translations")
    evaluate += ["--output", str(output), "--json"]
    answer = subprocess.run(evaluate, check=True, capture_output=True, text=True)
    found = json.loads(answer.stdout)
    names = {"BLEU": "sacrebleu"}
    scores = {names.get(each["name"], each["name"]): each for each in found["scores"]}
    texts = [list(read_lines(path)) for path in (output, Path(reference))]
    published = score_as_published(*texts, "de")
    scores["bleu"] = {"value": published.value, "signature": f"Moses, lc|{published.signature}"}
    return {"seconds": seconds, "perplexity": found["perplexity"], "scores": scores}


def run_or_recall(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, object]:
    """Run a seed, or read what the ledger says of it.

    Parameters
    ----------
    options : argparse.Namespace
        The command line.
    seed : int
        Of the run.
    folder : Path
        Where the model goes.

    Returns
    -------
    dict[str, object]
        What `run_seed` found.
    """
    wanted = {"seed": seed, "preset": options.preset, "commit": require_commit()}
    if options.ledger and options.ledger.exists():
        for line in options.ledger.read_text(encoding="utf-8").splitlines():
            run = json.loads(line)
            if all(run.pop(name) == value for name, value in wanted.items()):
                return run
    run = run_seed(options.data, options.preset, seed, folder)
    if options.ledger:
        with options.ledger.open("a", encoding="utf-8") as ledger:
            ledger.write(json.dumps(wanted | run) + "\n")
    return run


def main() -> None:
    """Run all seeds and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--preset", default="auto")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--jobs", type=int, default=1, help="seeds to run at once")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--ledger", type=Path, help="where finished seeds are kept")
    parser.add_argument("--merge", type=Path, nargs="+", default=[], metavar="RESULT")
    options = parser.parse_args()
    require_commit()
    earlier = [json.loads(path.read_text(encoding="utf-8")) for path in options.merge]
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        waiting = [
            pool.submit(run_or_recall, options, seed, Path(scratch) / str(seed))
            for seed in options.seeds
        ]
        runs = [each.result() for each in waiting]
    seeds = [*options.seeds, *(seed for result in earlier for seed in result["seeds"])]
    if len(set(seeds)) < len(seeds):
        raise SystemExit(f"--merge: seeds {sorted(seeds)}: each must be there once")
    runs += [run for result in earlier for run in result["notes"]["runs"]]
    figures: dict[str, float] = {}
    for name in runs[0]["scores"]:
        values = [run["scores"][name]["value"] for run in runs]
        key = f"multi30k_en_de_test2016_{name.lower()}"
        figures[f"{key}_mean"] = statistics.mean(values)
        if len(values) > 1:
            figures[f"{key}_deviation"] = deviation = statistics.stdev(values)
            figures[f"{key}_interval_95"] = (
                STUDENT.get(len(values), 2.0) * deviation / len(values) ** 0.5
            )
    longest = max(run["seconds"] for run in runs)
    figures["multi30k_gpu_seconds"] = longest
    figures["multi30k_seconds_median"] = statistics.median(run["seconds"] for run in runs)
    path = write_result(
        "multi30k",
        figures,
        seeds=sorted(seeds),
        notes={
            "preset": options.preset,
            "runs_at_once": options.jobs,
            "merged": [
                {key: result[key] for key in ("seeds", "commit", "machine")} for result in earlier
            ],
            "runs": runs,
        },
        folder=options.results,
        machine=earlier[-1]["machine"] if earlier and not options.seeds else None,
    )
    print(f"{path}\n{json.dumps(figures, indent=1)}")


if __name__ == "__main__":
    main()
