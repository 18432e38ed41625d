"""The systems of the paper's table 2, small, on Multi30k English→German with equal budget.

    python benchmarks/systems.py DATA [--seeds 1 2 3] [--jobs 1] [--systems NAME …] [--work DIR]

DATA is a folder with train, val and test_2016_flickr in .en and .de (plain, .gz or .xz). Each run
is a “dragoman train” and a “dragoman evaluate” as a user would call them. What was trained stays
in the work folder: the same command goes on where it was stopped.
"""

import argparse
import json
import sys
from pathlib import Path

from dragoman.paper.experiments.tables.systems import (
    SYSTEMS,
    SystemsOptions,
    compare_systems,
    list_figures,
)
from dragoman.paper.training_runs.corpora import DataOptions
from dragoman.paper.training_runs.experiment_runs import WorkOptions, read_seeds
from multi30k import find
from record import RESULTS, require_commit, write_result


def read_options() -> tuple[SystemsOptions, Path]:
    """Read the command line.

    Returns
    -------
    tuple[SystemsOptions, Path]
        What to run, and where the result goes.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS))
    parser.add_argument("--seeds", nargs="+", default=["1", "2", "3"])
    parser.add_argument("--max-steps", type=int, default=8000)
    parser.add_argument("--batch-tokens", type=int, default=8000)
    parser.add_argument("--validate-every", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=1, help="runs at once")
    parser.add_argument("--work", default="paper-runs", help="folder of the runs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    names = {"source": "train.en", "target": "train.de", "valid_source": "val.en",
             "valid_target": "val.de", "test_source": "test_2016_flickr.en",
             "test_reference": "test_2016_flickr.de"}  # fmt: skip
    options = SystemsOptions(
        systems=tuple(given.systems),
        seeds=tuple(given.seeds),
        max_steps=given.max_steps,
        batch_tokens=given.batch_tokens,
        validate_every=given.validate_every,
        data=DataOptions(**{name: find(given.data, file) for name, file in names.items()}),
        runs=WorkOptions(work=given.work, jobs=given.jobs),
    )
    return options, given.results


def main() -> None:
    """Run all systems and write the result."""
    options, results = read_options()
    require_commit()
    compared, corpus, missing = compare_systems(options, lambda line: print(line, file=sys.stderr))
    figures = list_figures(compared, "multi30k_en_de_systems")
    path = write_result(
        "systems",
        figures,
        seeds=list(read_seeds(options.seeds)),
        notes={
            "max_steps": options.max_steps,
            "batch_tokens": options.batch_tokens,
            "vocabulary_size": corpus.vocabulary_size,
            "runs_at_once": options.runs.jobs,
            "order": [each.name for each in compared],
            "bleu": {each.name: [run.bleu for run in each.runs] for each in compared},
            "signature": compared[0].runs[0].signature,
            "missing": list(missing),
        },
        folder=results,
    )
    print(f"{path}\n{json.dumps(figures, indent=1)}")


if __name__ == "__main__":
    main()
