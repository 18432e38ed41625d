"""How fast “dragoman train” is from files to weights, beside the benchmark of the step alone.

    python benchmarks/end_to_end.py DATA [--subwords MODEL] [--steps 1500] [--device cuda]
        [--benchmark benchmarks/results/DATE-training_speed-cuda.json] [--results DIR]

DATA is a folder with train.*.tsv.xz and valid.en.xz, valid.de.xz. The command trains the paper's
base model as anybody would; its own log says how fast, how much was padding, and what share of the
time it waited for batches. The first 200 updates, in which kernels are compiled and the graph is
captured, do not count. Anonymous memory (which mapped files are not) is sampled meanwhile and
compared with that of a process that has loaded PyTorch and does nothing. Without --subwords a
vocabulary of 37,000 is learnt first.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from record import RESULTS, require_commit, write_result

WARM_UP = 200
IDLE = "import time, torch; torch.zeros(1, device='{}'); print('ready', flush=True); time.sleep(60)"


def main() -> None:
    """Train, read the log, and write the result."""
    given = _read_options()
    require_commit()
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "run"
        command = [
            sys.executable, "-m", "dragoman", "train", "--out", str(out), "--preset", "paper-base",
            "--tsv", *map(str, sorted(given.data.glob("train.*.tsv.xz"))),
            "--valid-source", str(given.data / "valid.en.xz"),
            "--valid-target", str(given.data / "valid.de.xz"),
            "--max-steps", str(given.steps), "--validate-every", str(given.steps),
            "--device", given.device, *given.options,
        ]  # fmt: skip
        if given.subwords:
            command += ["--subwords", str(given.subwords)]
        idle = _idle_memory(given.device)
        started = time.perf_counter()
        peak = _run_and_watch(command)
        seconds = time.perf_counter() - started
        events = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    updates = [each for each in events if each["event"] == "update" and each["step"] > given.skip]
    rates = [each["tokens_per_second"] for each in updates]
    figures = {
        "end_to_end_tokens_per_second": statistics.median(rates),
        "end_to_end_padding_share": statistics.median(each["padding_share"] for each in updates),
        "end_to_end_waiting_share": statistics.median(each["waiting_share"] for each in updates),
        "end_to_end_anonymous_gigabytes_over_idle": (peak - idle) / 1e9,
        "end_to_end_seconds_from_files_to_model": seconds,
    }
    if given.benchmark:
        alone = json.loads(given.benchmark.read_text())["figures"]["base_tokens_per_second"]
        figures["end_to_end_share_of_benchmark"] = statistics.median(rates) / alone
    for name, value in figures.items():
        print(f"{name}: {value:,.4g}")
    notes = {
        "updates": f"{given.skip} to {given.steps}",
        "least and most tokens per second between two lines of the log": [min(rates), max(rates)],
        "pairs": next(each["pairs"] for each in events if each["event"] == "start"),
        "options": " ".join(given.options),
    }
    print(write_result("end_to_end", figures, seeds=[1], notes=notes, folder=given.results))


def _read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--subwords", type=Path)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--skip", type=int, default=WARM_UP, help="updates that do not count")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--benchmark", type=Path)
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=[], help="of dragoman train")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def _idle_memory(device: str) -> float:
    """Measure the anonymous memory of a process that only loads PyTorch."""
    words = [sys.executable, "-c", IDLE.format(device)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = _anonymous_bytes(process.pid)
        process.kill()
    return found


def _run_and_watch(command: list[str]) -> float:
    """Run a command; return the most anonymous memory that any of its processes had."""
    peak = 0.0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            for pid in (process.pid, *_children(process.pid)):
                peak = max(peak, _anonymous_bytes(pid))
            time.sleep(0.2)
    if process.returncode:
        raise SystemExit(process.returncode)
    return peak


def _children(pid: int) -> list[int]:
    """List the processes that a process has started."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _anonymous_bytes(pid: int) -> float:
    """Read one of Linux's figures about a process; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0.0
    return 1024.0 * sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))


if __name__ == "__main__":
    main()
