"""BLEU against sentence length on the built-in corpus: “dragoman paper length” as a result.

    python benchmarks/length.py [--out paper-results]

If the folder has no result of that experiment yet, it is run first (under half an hour on two
cores).
"""

import argparse
import subprocess
import sys
from pathlib import Path

from dragoman.paper.report.result_files import read_record
from record import RESULTS, require_commit, write_result

PREFIX = "builtin_fr_en_length"


def main() -> None:
    """Run the experiment if need be, and write its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("paper-results"))
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    path = given.out / "length.json"
    if not path.exists():
        words = [sys.executable, "-m", "dragoman", "paper", "length", "--out", str(given.out)]
        subprocess.run(words, check=True)
    record = read_record(path)
    figures = {f"{PREFIX}_total_seconds": record.circumstances.seconds}
    for table in record.tables:
        kind = "positions_" if table.name == "positions" else ""
        for row in table.rows:
            name = str(row[0]).lower().replace(" ", "_").replace("-", "_")
            scores = [float(cell) for cell in row[4:-1]]
            headings = [column.heading.split(" ")[0] for column in table.columns[4:-1]]
            for heading, score in zip(headings, scores, strict=True):
                words = heading.replace("–", "_to_")
                figures[f"{PREFIX}_{kind}{name}_bleu_{words}_words"] = score
            figures[f"{PREFIX}_{kind}{name}_bleu_lost_within_training_lengths"] = float(row[-1])
    notes = {"findings": list(record.findings), "machine_of_the_run": record.circumstances.machine}
    seeds = list(record.circumstances.seeds)
    print(write_result("length", figures, seeds=seeds, notes=notes, folder=given.results))


if __name__ == "__main__":
    main()
