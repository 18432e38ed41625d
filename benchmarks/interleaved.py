"""Two versions of Dragoman in turns: loading, translating and training on this machine's CPU.

    git worktree add ../before COMMIT
    python benchmarks/interleaved.py --before ../before [--rounds 7] [--results DIR]

Every round runs each piece of work once with either version, each in a process of its own, the
order turned from round to round. Figures are medians of the ratios of a round, so that a busy
minute counts for both; over 1 means that the working tree is faster. Each version writes its own
model (the paper's base, weights drawn at random by the same seed), as folders of one may not be
those of the other.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from record import RESULTS, require_commit, write_result

ROOT = Path(__file__).parents[1]

MAKE = """
import random, sys, torch
from pathlib import Path
from dragoman.folder import Facts, ModelFolder
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.options import to_plain
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.weights import vocabulary_of, write_model
chosen = random.Random(1)
letters = "abcdefghiklmnoprstu"
words = ["".join(chosen.choices(letters, k=chosen.randint(2, 9))) for _ in range(30000)]
lines = [" ".join(chosen.choices(words, k=12)) for _ in range(20000)]
subwords = Subwords.from_bytes(train_subwords(lines, vocabulary_size=32000))
vocabularies, options = Vocabularies(subwords, subwords), TransformerOptions()
torch.manual_seed(1)
path = Path(sys.argv[1])
folder = ModelFolder(
    path=path, config={"model": to_plain(options)}, options=options, vocabularies=vocabularies,
    facts=Facts(source_language="en", target_language="de", fits_int8=True, longest_source=100),
)
write_model(path, folder, build_model(options, vocabulary_of(vocabularies)))
(path.parent / "lines").write_text("\\n".join(lines[:400]) + "\\n")
"""
LOAD = """
import sys, time
from dragoman.decoding.translator import Translator
Translator.load(sys.argv[1], "cpu", precision=sys.argv[2])  # compiles, or reads what was
started = time.perf_counter()
Translator.load(sys.argv[1], "cpu", precision=sys.argv[2])
print(time.perf_counter() - started)
"""
START = """
import subprocess, sys, time
started = time.perf_counter()
subprocess.run([sys.executable, "-m", "dragoman", "translate", sys.argv[1], "--device", "cpu",
                "--max-extra-tokens", "3", "--beam-size", "1"],
               input=b"ab cd\\n", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
print(time.perf_counter() - started)
"""
TRANSLATE = """
import sys, time
from pathlib import Path
from dragoman.decoding.translator import Translator
translator = Translator.load(sys.argv[1], "cpu", precision="int8")
lines = (Path(sys.argv[1]).parent / "lines").read_text().splitlines()
wanted = {"beam_size": int(sys.argv[2]), "max_extra_tokens": 0}
if hasattr(translator.options, "search_again"):  # random weights repeat themselves in every line
    wanted["search_again"] = False
options = translator.options_with(wanted)
translator.translate_all(lines[:20], options=options)
started = time.perf_counter()
translator.translate_all(lines, options=options)
print(time.perf_counter() - started)
"""
TRAIN = """
import sys, time
import torch
from training_systems import ours
from training_work import SIZES, make_sentence_sets
size, device = SIZES["small"], torch.device("cpu")
system = ours(size, make_sentence_sets(size, None), device)
for place in range(system.num_updates):
    system.update(place)
started = time.perf_counter()
for place in range(system.num_updates):
    system.update(place)
print(time.perf_counter() - started)
"""


def run(tree: Path, code: str, *words: str) -> float:
    """Run some code with one version; return the seconds that it prints."""
    paths = os.pathsep.join((str(tree / "src"), str(tree / "benchmarks")))
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return float(done.stdout.split()[-1]) if done.stdout.strip() else 0.0


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument(
        "--before", type=Path, required=True, help="a checkout of the other version"
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    require_commit()
    trees = {"before": options.before.resolve(), "now": ROOT}
    with tempfile.TemporaryDirectory() as scratch:
        models = {name: str(Path(scratch) / name / "model") for name in trees}
        for name, tree in trees.items():
            run(tree, MAKE, models[name])
        works = {
            "load_int8": lambda name: run(trees[name], LOAD, models[name], "int8"),
            "load_float32": lambda name: run(trees[name], LOAD, models[name], "float32"),
            "start_and_first_line": lambda name: run(trees[name], START, models[name]),
            "translate_beam4": lambda name: run(trees[name], TRANSLATE, models[name], "4"),
            "translate_greedy": lambda name: run(trees[name], TRANSLATE, models[name], "1"),
            "train_small": lambda name: run(trees[name], TRAIN),
        }
        seconds: dict[str, dict[str, list[float]]] = {
            work: {name: [] for name in trees} for work in works
        }
        for turn in range(options.rounds):
            for work, measure in works.items():
                for name in sorted(trees, reverse=bool(turn % 2)):
                    seconds[work][name].append(measure(name))
    figures: dict[str, float] = {}
    for work, found in seconds.items():
        ratios = [old / new for old, new in zip(found["before"], found["now"], strict=True)]
        figures[f"{work}_seconds"] = statistics.median(found["now"])
        figures[f"{work}_speed_ratio_to_before"] = statistics.median(ratios)
        spread = f"({min(ratios):.3f}–{max(ratios):.3f})"
        median = statistics.median(found["now"])
        print(f"{work:<22} {median:8.3f} s  {statistics.median(ratios):.3f} of before {spread}")
    asked = ["git", "-C", str(options.before), "rev-parse", "--short", "HEAD"]
    before = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    notes = {"before": before, "rounds": options.rounds, "seconds": json.loads(json.dumps(seconds))}
    print(write_result("interleaved", figures, seeds=[1], notes=notes, folder=options.results))


if __name__ == "__main__":
    main()
