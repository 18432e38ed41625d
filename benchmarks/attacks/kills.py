"""Kill training runs at random moments, and see that each goes on and ends with the same bytes.

    python benchmarks/attacks/kills.py [--kills 200] [--seed 1] [--out FILE.json]

A tiny run on the built-in corpus is killed (SIGKILL), terminated (SIGTERM) or left without disk
space (RLIMIT_FSIZE), either after a random time or at a random one of its operations on files, in
preparation, training or final write. Then it is started again, by the same command or by --resume,
and perhaps killed again. When it ends, its files must be those of a run that nothing happened to.
Attempts are forks of one process that has imported everything, since that takes longest.
"""

import argparse
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import torch

import dragoman.training.run
from dragoman.cli.command import main as run_command
from dragoman.data.store.checked_files import check_store
from dragoman.training.checkpoints.checkpoint import list_checkpoints
from dragoman.training.checkpoints.recovery import check_checkpoints

KINDS = ("kill", "term", "full disk")
WEIGHTS = (5, 3, 2)
CHANCE_TO_END = 0.3
MOST_SECONDS = 300
# What comes before a change on the disk; an attempt is cut off before the nth of these.
OPERATIONS = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")
MODEL_FILES = ("model.safetensors", "dragoman.json", "config.toml", "README.md", "subwords.model")
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True, kw_only=True)
class Blow:
    """What happens to an attempt, and when: after seconds, or at an operation on files."""

    kind: str
    seconds: float | None = None
    operation: int | None = None


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How an attempt ended: its status (negative: a signal), what it said, and how long it took."""

    status: int
    errors: str
    seconds: float
    operations: int


def main() -> None:
    """Kill runs, print counts, and leave with status 1 if one did not go on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="write the counts here, as JSON")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        counts = attack(Path(scratch), given.kills, random.Random(given.seed))
    counts |= {"seed": given.seed, "seconds": round(time.monotonic() - began, 1)}
    print(json.dumps(counts, indent=1))
    if given.out:
        given.out.write_text(json.dumps(counts, indent=1) + "\n")
    sys.exit(1 if counts["failures"] else 0)


def attack(scratch: Path, num_kills: int, chance: random.Random) -> dict:
    """Kill runs so often, and compare those that end."""
    corpus = scratch / "corpus"
    words = ["data", "builtin", "--out", corpus, "--sentences", "300", "--held-out", "20"]
    assert attempt(words, scratch).status == 0
    whole = scratch / "whole"
    model = attempt(train_words(corpus, whole), scratch)
    assert model.status == 0, model.errors
    hit, resumed, failures, num_ended = Counter(), Counter(), [], 0
    out = scratch / "run"
    while hit.total() < num_kills or out.exists():
        is_last = hit.total() >= num_kills or (out.exists() and chance.random() < CHANCE_TO_END)
        blow = None if is_last else draw_blow(chance, model)
        goes_on = (out / "run.json").exists()
        resumed["--resume" if goes_on else "same command" if out.exists() else "new"] += 1
        command = ["train", "--resume", "--out", out] if goes_on else train_words(corpus, out)
        found = attempt(command, scratch, blow)
        if found.status == 0:
            problem = compare(whole, out)
            num_ended += 1
        else:
            problem = judge(found, blow)
            hit[f"{blow.kind if blow else 'nothing'}, {moment(out)}, status {found.status}"] += 1
        if problem:
            failures.append(f"{blow}: {problem}")
            print(failures[-1], file=sys.stderr)
        if problem or found.status == 0:
            shutil.rmtree(out, ignore_errors=True)
    return {
        "hits": dict(sorted(hit.items())),
        "starts": dict(resumed),
        "runs that ended": num_ended,
        "failures": failures,
    }


def train_words(corpus: Path, out: Path) -> list[str | Path]:
    """Make the command of a tiny run."""
    return [
        *("train", "--source", corpus / "train.fr", "--target", corpus / "train.en"),
        *("--out", out, "--preset", "nano", "--device", "cpu", "--vocabulary-size", "350"),
        *("--valid-pairs", "5", "--max-extra-tokens", "2", "--batch-tokens", "400"),
        *("--max-steps", "9", "--validate-every", "3", "--average-checkpoints", "2"),
        *("--log-every", "3", "--num-encoder-layers", "1", "--num-decoder-layers", "1"),
        *("--model-dim", "32", "--feed-forward-dim", "32", "--num-heads", "2"),
    ]


def draw_blow(chance: random.Random, model: Ended) -> Blow:
    """Draw what happens, and a moment within the time or the operations of a whole run."""
    (kind,) = chance.choices(KINDS, WEIGHTS)
    if kind == "full disk" or chance.random() < 0.6:
        return Blow(kind=kind, operation=chance.randrange(1, model.operations + 1))
    return Blow(kind=kind, seconds=chance.uniform(0, model.seconds))


def attempt(words: list, scratch: Path, blow: Blow | None = None) -> Ended:
    """Run a command in a fork, and let a blow fall."""
    errors, theirs = os.pipe()
    counted = scratch / "operations"
    began = time.monotonic()
    pid = os.fork()
    if not pid:
        os.close(errors)
        live([str(word) for word in words], theirs, scratch, counted, blow)
    os.close(theirs)
    told = listen(pid, errors, began, blow)
    _, status = os.waitpid(pid, 0)
    os.close(errors)
    operations = int(counted.read_text() or 0) if counted.exists() else 0
    counted.unlink(missing_ok=True)
    return Ended(
        status=os.waitstatus_to_exitcode(status),
        errors=told.decode(errors="replace"),
        seconds=time.monotonic() - began,
        operations=operations,
    )


def listen(pid: int, errors: int, began: float, blow: Blow | None) -> bytes:
    """Read what an attempt says until it ends, and signal to it when it is time."""
    told = b""
    due = began + blow.seconds if blow and blow.seconds is not None else None
    while True:
        now = time.monotonic()
        if now > began + MOST_SECONDS:
            os.kill(pid, signal.SIGKILL)
            raise RuntimeError(f"an attempt takes over {MOST_SECONDS} seconds: {told!r}")
        if due is not None and now >= due:
            os.kill(pid, signal.SIGKILL if blow and blow.kind == "kill" else signal.SIGTERM)
            due = None
        wait = 1.0 if due is None else max(0.0, due - now)
        if select.select([errors], [], [], wait)[0]:
            part = os.read(errors, 1 << 16)
            if not part:
                return told
            told += part


def live(words: list[str], theirs: int, scratch: Path, counted: Path, blow: Blow | None) -> None:
    """Be an attempt, and count operations on files under the scratch folder; never return."""
    status, count, is_over = 70, 0, False

    def watch(event: str, arguments: tuple) -> None:
        nonlocal count
        if is_over or event not in OPERATIONS or str(scratch) not in str(arguments[0]):
            return
        count += 1
        if blow and blow.operation == count:
            if blow.kind == "full disk":
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            else:
                os.kill(os.getpid(), signal.SIGKILL if blow.kind == "kill" else signal.SIGTERM)

    try:
        os.dup2(theirs, 2)
        os.dup2(theirs, 1)
        sys.stdout, sys.stderr = (os.fdopen(os.dup(2), "w", buffering=1) for _ in range(2))
        torch.set_num_threads(1)
        sys.addaudithook(watch)
        run_command(words)
        status = 0
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - a traceback is what is looked for
        sys.excepthook(*sys.exc_info())
    finally:
        is_over = True
        if not blow:
            counted.write_text(str(count))
        os._exit(status)


def judge(found: Ended, blow: Blow | None) -> str:
    """Say what is wrong with how an attempt ended, if anything is."""
    last = found.errors.strip().splitlines()[-1:] or [""]
    if TRACEBACK in found.errors:
        return f"a traceback: {last[0]}"
    if blow is None:
        return f"status {found.status} without a blow: {last[0]}"
    if blow.kind == "full disk":
        is_told = re.match(r"dragoman: .*(File too large|cannot be written)", last[0])
        return "" if found.status == 2 and is_told else f"status {found.status}: {last[0]}"
    if blow.kind == "kill":
        return "" if found.status == -signal.SIGKILL else f"status {found.status}: {last[0]}"
    # Before a run has said anything, and after “done”, SIGTERM ends it at once.
    may_end = not last[0] or last[0].startswith("done: ")
    is_fine = (found.status == 130 and last[0]) or (found.status == -signal.SIGTERM and may_end)
    return "" if is_fine else f"status {found.status}: {last[0]}"


def compare(whole: Path, out: Path) -> str:
    """Say what differs from the run that nothing happened to, if anything does."""
    for name in MODEL_FILES:
        if (whole / name).read_bytes() != (out / name).read_bytes():
            return f"{name} differs"
    steps = [
        [path.name for path in list_checkpoints(each / "checkpoints")] for each in (whole, out)
    ]
    if steps[0][-1] != steps[1][-1]:
        return f"checkpoints {steps[1]}, not {steps[0]}"
    for name in ("model.safetensors", "optimiser.safetensors"):
        one, other = (each / "checkpoints" / steps[0][-1] / name for each in (whole, out))
        if one.read_bytes() != other.read_bytes():
            return f"{name} of the last checkpoint differs"
    left = [path.name for path in out.rglob(".*")]
    broken = check_store(out / "store") + check_checkpoints(out / "checkpoints")
    return "; ".join([*broken, *(f"{name} is left" for name in left)])


def moment(out: Path) -> str:
    """Say in what part of a run it was hit."""
    if not (out / "run.json").exists():
        return "preparing"
    steps = [path.name for path in list_checkpoints(out / "checkpoints")]
    return "final write" if "step-00000009" in steps else "training"


if __name__ == "__main__":
    assert dragoman.training.run  # imported before the forks
    main()
