"""Flip bits of weights, checkpoints and stores, and load models while they are being replaced.

    python benchmarks/attacks/damage.py --flips 120 --loads 60

A small run is trained first. Each flip must be noticed when the file is read, or change nothing; a
run whose newest checkpoint is damaged must go on from the one before and end with the same bytes;
a model that is loaded while two others take turns in its place must be one of the two.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SHAPE = ["--preset", "nano", "--max-steps", "60", "--validate-every", "20", "--log-every", "20",
         "--device", "cpu", "--seed", "1"]  # fmt: skip
TEXTS = ("Jane visite l’Afrique en septembre.", "Le chat noir dort.", "Nous aimons la mer.")


def dragoman(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    command = [sys.executable, "-m", "dragoman", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def train_run(scratch: Path) -> tuple[Path, Path]:
    """Train a small model; return a run stopped before its end, and one that reached it."""
    data, half, whole = scratch / "data", scratch / "half", scratch / "whole"
    dragoman("data", "builtin", "--sentences", 2000, "--held-out", 50, "--out", data)
    files = ["--source", data / "train.fr", "--target", data / "train.en"]
    assert not dragoman("train", *files, "--out", whole, *SHAPE).returncode
    stopped = [*SHAPE[:3], "40", *SHAPE[4:]]
    assert not dragoman("train", *files, "--out", half, *stopped).returncode
    return half, whole


def flip_bit(path: Path, chosen: random.Random) -> None:
    """Change one bit of a file."""
    raw = bytearray(path.read_bytes())
    raw[chosen.randrange(len(raw))] ^= 1 << chosen.randrange(8)
    path.write_bytes(raw)


def translations(path: Path) -> list[str]:
    """Load a model and translate a few sentences."""
    import dragoman

    translator = dragoman.load(str(path), "cpu")
    return [each.text for each in translator.translate_all(TEXTS)]


def flip_weights(scratch: Path, whole: Path, count: int) -> dict[str, int]:
    """Flip bits of a model's weights."""
    from dragoman.errors import DragomanError

    expected = translations(whole)
    counts = {"noticed": 0, "harmless": 0, "wrong in silence": 0}
    path = scratch / "flipped"
    shutil.copytree(whole, path, ignore=shutil.ignore_patterns("store", "checkpoints"))
    for case in range(count):
        shutil.copy(whole / "model.safetensors", path)
        flip_bit(path / "model.safetensors", random.Random(case))
        try:
            is_same = translations(path) == expected
        except DragomanError:
            counts["noticed"] += 1
        else:
            counts["harmless" if is_same else "wrong in silence"] += 1
    return counts


def flip_checkpoints(scratch: Path, half: Path, whole: Path, count: int) -> dict[str, int]:
    """Flip bits of the newest checkpoint, and go on with the run."""
    counts = {"found by check": 0, "not found": 0, "resumed to the same": 0, "resumed to others": 0}
    resumed = ["--resume", "--max-steps", "60"]
    for case in range(count):
        chosen = random.Random(case)
        path = scratch / f"run-{case}"
        shutil.copytree(half, path)
        newest = sorted((path / "checkpoints").glob("step-*"))[-1]
        flip_bit(chosen.choice(sorted(newest.iterdir())), chosen)
        is_found = dragoman("check", path).returncode == 2
        counts["found by check" if is_found else "not found"] += 1
        if case % 5 == 0:
            ended = dragoman("train", *resumed, "--out", path)
            is_same = not ended.returncode and (
                (path / "model.safetensors").read_bytes()
                == (whole / "model.safetensors").read_bytes()
            )
            counts["resumed to the same" if is_same else "resumed to others"] += 1
            if not is_same:
                print(ended.stderr[-500:])
        shutil.rmtree(path)
    return counts


def damage_store(scratch: Path, half: Path, count: int) -> dict[str, int]:
    """Flip bits of the prepared corpus, or cut its files."""
    from dragoman.data.store.mapped import read_facts, write_facts

    counts = {"found by check": 0, "not found": 0}
    for case in range(count):
        chosen = random.Random(case)
        path = scratch / f"store-{case}"
        shutil.copytree(half, path)
        files = sorted(each for each in (path / "store").rglob("*") if each.is_file())
        file = chosen.choice([each for each in files if each.stat().st_size > 1])
        if case % 2:
            with file.open("r+b") as opened:
                opened.truncate(file.stat().st_size // 2)
        else:
            flip_bit(file, chosen)
        facts = read_facts(path / "run.json")
        write_facts(path / "run.json", facts | {"store": str(path / "store")})
        said = dragoman("check", path)
        counts["found by check" if said.returncode == 2 else "not found"] += 1
        if said.returncode != 2:
            print(f"not found: {file.name}, {'cut' if case % 2 else 'flipped'}")
        shutil.rmtree(path)
    return counts


def load_during_swaps(scratch: Path, whole: Path, count: int) -> dict[str, int]:
    """Load a model while two others take turns in its place, whole folders and file by file."""
    from dragoman.errors import DragomanError
    from dragoman.folder import read_folder
    from dragoman.weights import load_model

    ignored = shutil.ignore_patterns("store", "checkpoints", "log.jsonl", "run.json")
    copies = [shutil.copytree(whole, scratch / f"swap-{index}", ignore=ignored) for index in (0, 1)]
    _change_weights(copies[1])
    known = [_fingerprint(load_model(read_folder(each))) for each in copies]
    served = shutil.copytree(copies[0], scratch / "served")
    is_over = threading.Event()

    def swap() -> None:
        turn = 0
        while not is_over.is_set():
            turn += 1
            fresh = shutil.copytree(copies[turn % 2], scratch / "fresh")
            if turn % 4 < 2:
                served.rename(scratch / "old")
                fresh.rename(served)
                shutil.rmtree(scratch / "old")
            else:
                for each in fresh.iterdir():
                    each.replace(served / each.name)
                fresh.rmdir()
            time.sleep(0.002)

    counts = {"one of the two": 0, "refused": 0, "mixture": 0}
    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(count):
            try:
                found = _fingerprint(load_model(read_folder(served)))
            except DragomanError:
                counts["refused"] += 1
                continue
            counts["one of the two" if found in known else "mixture"] += 1
    finally:
        is_over.set()
        swapping.join()
    return counts


def _change_weights(path: Path) -> None:
    """Give a folder other weights."""
    import torch

    from dragoman.folder import read_folder
    from dragoman.weights import load_model, write_model

    folder = read_folder(path)
    model = load_model(folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    write_model(path, folder, model)


def _fingerprint(model: object) -> list[bytes]:
    from dragoman.weights import weights_of

    return [each.numpy().tobytes() for each in weights_of(model).values()]  # type: ignore[arg-type]


def main() -> None:
    """Run the attacks and print what came of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--flips", type=int, default=120)
    parser.add_argument("--checkpoint-flips", type=int, default=40)
    parser.add_argument("--store-damages", type=int, default=40)
    parser.add_argument("--loads", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        half, whole = train_run(scratch)
        outcomes = {
            "weights": flip_weights(scratch, whole, options.flips),
            "loads during swaps": load_during_swaps(scratch, whole, options.loads),
            "checkpoints": flip_checkpoints(scratch, half, whole, options.checkpoint_flips),
            "store": damage_store(scratch, half, options.store_damages),
        }
    for name, counts in outcomes.items():
        print(f"{name}: {counts}")
    wrong = ("wrong in silence", "mixture", "not found", "resumed to others")
    sys.exit(any(counts.get(each) for counts in outcomes.values() for each in wrong))


if __name__ == "__main__":
    main()
