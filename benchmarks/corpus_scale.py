"""What a large corpus costs before and while training: seconds, bytes on disk, memory.

    python benchmarks/corpus_scale.py FOLDER [--files 1] [--workers N]

FOLDER holds TSV files ``train.*.tsv*``. Cleaning, learning 37,000 subwords, encoding, planning a
pass and reading its batches are timed; anonymous memory is that of each process at its peak, less
that of an idle process that has imported PyTorch. Disk and hours for 36 million pairs are
extrapolated; the memory that grows with the corpus is measured with 36 million pairs whose hashes
and lengths are drawn at random, since it does not depend on the text.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import torch  # noqa: F401 - an idle process is one that has imported it

from dragoman.data.store.mapped import SIDES, mapped
from record import RESULTS, require_commit, write_result

VOCABULARY_SIZE = 37_000
BATCH_TOKENS = 50_000
GPU_TOKENS_PER_SECOND = 2.2e6
LARGE_PAIRS = 36e6
SEED = 1
MEGABYTE = 1e6


def main() -> None:
    """Measure, print a table and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, help="how many of its files (default: all)")
    parser.add_argument("--workers", type=int, help="processes that prepare (default: cores)")
    parser.add_argument("--scratch", type=Path, help="where to put the store meanwhile")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    given = parser.parse_args()
    require_commit()
    files = sorted(given.folder.glob("train.*.tsv*"))[: given.files]
    if given.stage:
        print(json.dumps(STAGES[given.stage](files, given.scratch, given.workers)))
        return
    if not files:
        raise SystemExit(f"{given.folder}: has no files train.*.tsv*")
    load = os.getloadavg()[1]
    figures = _measure(given, len(files))
    figures |= _extrapolate(figures)
    for key, value in figures.items():
        print(f"{key:62} {value:>16,.3f}" if value < 1000 else f"{key:62} {value:>16,.0f}")
    notes = {
        "files": [path.name for path in files],
        "load_of_the_machine_before": f"{load:.1f} processes in the five minutes before",
        "workers": given.workers or len(os.sched_getaffinity(0)),
        "extrapolated": "seconds and bytes in proportion to the pairs; not run at that size",
        "drawn": "36 million pairs of random hashes and lengths, run at that size",
    }
    print(write_result("corpus_scale", figures, seeds=[SEED], notes=notes, folder=given.results))


def _measure(given: argparse.Namespace, num_files: int) -> dict[str, float]:
    """Run every stage in a process of its own."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=given.scratch) as scratch:
        for stage in STAGES:
            words = [sys.executable, __file__, str(given.folder), "--stage", stage]
            words += ["--files", str(num_files), "--scratch", scratch]
            words += ["--workers", str(given.workers)] if given.workers else []
            output = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
            figures |= json.loads(output.splitlines()[-1])
    idle = figures.pop("idle_anonymous_megabytes")
    for key in figures:
        if key.endswith("added_anonymous_megabytes"):
            figures[key] -= idle
    for name in ("deduplicate", "pass"):
        key = f"drawn_36_million_pairs_{name}_added_anonymous"
        figures[f"{key}_bytes_per_pair"] = figures[f"{key}_megabytes"] * MEGABYTE / LARGE_PAIRS
    return figures


def _extrapolate(figures: dict[str, float]) -> dict[str, float]:
    """Say what 36 million pairs would take in proportion; subwords are learnt from a sample."""
    millions = LARGE_PAIRS / 1e6
    start = f"extrapolated_to_{millions:.0f}_million_pairs"
    names = ("clean_seconds_per_million_pairs", "encode_seconds_per_million_pairs")
    seconds = sum(figures[name] for name in names) * millions + figures["learn_subwords_seconds"]
    return {
        f"{start}_disk_gigabytes": figures["disk_bytes_per_pair"] * LARGE_PAIRS / 1e9,
        f"{start}_prepare_hours": seconds / 3600,
        f"{start}_plan_seconds_a_pass": figures["plan_seconds_per_million_pairs"] * millions,
    }


def _idle(_files: list[Path], _scratch: Path, _workers: int | None) -> dict[str, float]:
    """Do nothing."""
    time.sleep(0.5)
    return {"idle_anonymous_megabytes": _anonymous(os.getpid())}


def _clean(files: list[Path], scratch: Path, workers: int | None) -> dict[str, float]:
    """Clean the text."""
    from dragoman.data.corpus import CorpusFiles
    from dragoman.data.options import CorpusOptions
    from dragoman.data.store.clean_text import store_text

    corpus = CorpusFiles(tsv=tuple(files))
    with _watched("clean") as figures:
        text = store_text(scratch / "store", corpus, None, CorpusOptions(), num_workers=workers)
    millions = text.report.read / 1e6
    figures["pairs"] = text.report.read
    figures["clean_seconds_per_million_pairs"] = figures["clean_seconds"] / millions
    return figures


def _learn(files: list[Path], scratch: Path, workers: int | None) -> dict[str, float]:
    """Learn subwords from a sample of the clean text."""
    from dragoman.text.subwords import train_subwords
    from dragoman.training.preparation import SUBWORD_PAIRS

    text = _clean_again(files, scratch, workers)
    with _watched("learn_subwords") as figures:
        model = train_subwords(text.lines(max_pairs=SUBWORD_PAIRS), vocabulary_size=VOCABULARY_SIZE)
    (scratch / "subwords.model").write_bytes(model)
    return figures


def _encode(files: list[Path], scratch: Path, workers: int | None) -> dict[str, float]:
    """Encode the clean text."""
    from dragoman.data.store.store import store_ids
    from dragoman.text.subwords import Subwords
    from dragoman.text.vocabulary import Vocabularies

    text = _clean_again(files, scratch, workers)
    joint = Subwords.from_file(scratch / "subwords.model")
    with _watched("encode") as figures:
        store = store_ids(text, Vocabularies(joint, joint), 256, num_workers=workers)
    num_pairs = text.report.read
    size = sum(path.stat().st_size for path in (scratch / "store").rglob("*") if path.is_file())
    figures["encode_seconds_per_million_pairs"] = figures["encode_seconds"] / num_pairs * 1e6
    figures["disk_bytes_per_pair"] = size / num_pairs
    figures["disk_gigabytes_per_million_pairs"] = size / num_pairs / 1e3
    figures["tokens_per_pair"] = store.train.num_tokens / len(store.train)
    return figures


def _pass(_files: list[Path], scratch: Path, _workers: int | None) -> dict[str, float]:
    """Plan a pass, then make another pass over all of its batches."""
    from dragoman.data.batches import make_batch, plan_epoch
    from dragoman.data.store.store import open_store

    with _watched("pass") as figures:
        pairs = open_store(scratch / "store").train

        def plan(epoch: int) -> Iterator:
            order = pairs.epoch_order(SEED, epoch)
            lengths = (pairs.source_lengths, pairs.target_lengths)
            return plan_epoch(*lengths, order, batch_tokens=BATCH_TOKENS, seed=SEED, epoch=epoch)

        started = time.monotonic()
        next(plan(0))
        first = time.monotonic() - started
        started = time.monotonic()
        num_batches = sum(1 for _ in plan(0))
        planned = time.monotonic() - started
        started = time.monotonic()
        num_tokens = 0
        for rows in plan(1):
            source, target = pairs.ids(rows)
            num_tokens += len(source.ids) + len(target.ids)
        read = time.monotonic() - started
        started = time.monotonic()
        for rows in plan(2):
            make_batch(*pairs.ids(rows), 2)
        padded = time.monotonic() - started
    figures["plan_seconds_per_million_pairs"] = planned / len(pairs) * 1e6
    figures["plan_seconds_to_the_first_batch"] = first
    figures["plan_batches"] = num_batches
    figures["plan_and_gather_tokens_per_second"] = num_tokens / read
    figures["plan_and_gather_ratio_to_gpu"] = num_tokens / read / GPU_TOKENS_PER_SECOND
    figures["plan_gather_and_pad_tokens_per_second"] = num_tokens / padded
    return figures


def _drawn(_files: list[Path], scratch: Path, _workers: int | None) -> dict[str, float]:
    """Find repetitions among 36 million pairs, set some aside, and begin a pass over them."""
    from dragoman.data.batches import plan_epoch
    from dragoman.data.corpus import Report
    from dragoman.data.store import clean_text
    from dragoman.data.store.store import PairStore

    folder = scratch / "drawn"
    _draw_store(folder, int(LARGE_PAIRS))
    hashes = mapped(folder / "train.hashes", np.uint64).reshape(-1, 2)
    with _watched("drawn_36_million_pairs_deduplicate") as figures:
        keep = clean_text._first_occurrences(hashes)
        clean_text._set_aside(folder, hashes, keep, Report(), 1000, {})
    del hashes, keep
    with _watched("drawn_36_million_pairs_pass") as more:
        pairs = PairStore(folder, "train")
        order = pairs.epoch_order(SEED, 0)
        lengths = (pairs.source_lengths, pairs.target_lengths)
        next(plan_epoch(*lengths, order, batch_tokens=BATCH_TOKENS, seed=SEED, epoch=0))
    return figures | more


def _draw_store(folder: Path, num_pairs: int) -> None:
    """Write what of a store is looked at before its text and ids are."""
    folder.mkdir()
    random = np.random.default_rng(SEED)
    chunk = num_pairs // 36
    totals = dict.fromkeys(SIDES, 0)
    for first in range(0, num_pairs, chunk):
        with (folder / "train.hashes").open("ab") as file:
            file.write(random.integers(0, 1 << 63, (chunk, 2), dtype=np.uint64).tobytes())
        with (folder / "train.index").open("ab") as file:
            file.write(np.arange(first, first + chunk).tobytes())
        for side in SIDES:
            ends = totals[side] + np.cumsum(random.integers(1, 61, chunk))
            totals[side] = int(ends[-1])
            for name in ("text-ends", "ids-ends"):
                with (folder / f"train.{side}.{name}").open("ab") as file:
                    file.write(ends.tobytes())
    for side in SIDES:
        for name in ("text", "ids"):
            with (folder / f"train.{side}.{name}").open("wb") as file:
                file.truncate(4 * totals[side])


STAGES = {
    "idle": _idle,
    "clean": _clean,
    "learn": _learn,
    "encode": _encode,
    "pass": _pass,
    "drawn": _drawn,
}


def _clean_again(files: list[Path], scratch: Path, workers: int | None) -> object:
    """Find the clean text that is there."""
    from dragoman.data.corpus import CorpusFiles
    from dragoman.data.options import CorpusOptions
    from dragoman.data.store.clean_text import store_text

    corpus = CorpusFiles(tsv=tuple(files))
    return store_text(scratch / "store", corpus, None, CorpusOptions(), num_workers=workers)


@contextmanager
def _watched(name: str) -> Iterator[dict[str, float]]:
    """Time what happens, and note the largest anonymous memory of this process and its workers."""
    peaks = {"own": 0.0, "worker": 0.0}
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(0.02):
            peaks["own"] = max(peaks["own"], _anonymous(os.getpid()))
            for process in _workers_of_this():
                peaks["worker"] = max(peaks["worker"], _anonymous(process))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    figures: dict[str, float] = {}
    started = time.monotonic()
    yield figures
    figures[f"{name}_seconds"] = time.monotonic() - started
    is_over.set()
    watcher.join()
    figures[f"{name}_added_anonymous_megabytes"] = peaks["own"]
    if peaks["worker"]:
        figures[f"{name}_worker_anonymous_megabytes"] = peaks["worker"]


def _workers_of_this() -> Iterator[int]:
    """List the worker processes, without those that are only just being started."""
    for path in Path("/proc/self/task").glob("*/children"):
        for process in path.read_text().split():
            with suppress(OSError):
                if b"serve(" in Path(f"/proc/{process}/cmdline").read_bytes():
                    yield int(process)


def _anonymous(process: int) -> float:
    """Read how much memory of a process is backed by no file, in megabytes."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has just ended
        return 0.0
    sizes = [int(line.split()[1]) for line in lines if line.startswith("RssAnon")]
    return sizes[0] * 1024 / MEGABYTE if sizes else 0.0


if __name__ == "__main__":
    main()
