"""Damage model folders at random, and see that each gives a translation or one clear line.

    python benchmarks/attacks/folders.py --cases 3000 --served 150

Every case is translated by `dragoman translate` and by `dragoman.load`, each in a process of its
own that is forked from one in which all is imported, and some are served by `dragoman serve`. What
counts as a failure: death by a signal, a traceback, more than one line, more than 20 seconds, or
more than 1 GB over what an undamaged model takes and its own size.
"""

import argparse
import collections
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.attacks.mutations import mutate_folder

MOST_SECONDS = 20
MOST_BYTES = 1 << 30
TEXT = "Jane sees the old house.\nA small dog likes the garden.\n"
WORDS = [
    "the",
    "a",
    "small",
    "old",
    "dog",
    "house",
    "tree",
    "garden",
    "sees",
    "likes",
    "finds",
    "jane",
    "le",
    "un",
    "petit",
    "vieux",
]
UNCAUGHT = 70


class Outcome(NamedTuple):
    """How one case ended: “translated”, “refused”, or what went wrong."""

    what: str
    said: str
    seconds: float
    bytes_taken: int


def make_models(folder: Path) -> list[Path]:
    """Write small models of several kinds, with weights drawn at random."""
    import torch

    from dragoman.decoding.quantise import write_int8
    from dragoman.decoding.search.shortlist import ShortList
    from dragoman.folder import Facts, ModelFolder, read_folder
    from dragoman.models.build import build_model
    from dragoman.models.convolutional.options import ConvS2SOptions
    from dragoman.models.families import ModelOptions
    from dragoman.models.options import TransformerOptions
    from dragoman.models.recurrent.options import RNNsearchOptions
    from dragoman.options import to_plain
    from dragoman.text.dictionary import Dictionary
    from dragoman.text.subwords import Subwords, train_subwords
    from dragoman.text.vocabulary import Vocabularies
    from dragoman.text.word_vocabulary import learn_words
    from dragoman.weights import vocabulary_of, write_model

    chosen = random.Random(1)
    sentences = [" ".join(chosen.choices(WORDS, k=6)) for _ in range(200)]
    small, large = (
        Subwords.from_bytes(train_subwords(sentences[:count], vocabulary_size=size))
        for count, size in ((100, 320), (200, 340))
    )
    words = learn_words(sentences)
    joint, apart = Vocabularies(small, small), Vocabularies(large, small)
    closed = Vocabularies(words, words, Dictionary({"dog": " le", "house": " un"}))
    shape = {"num_encoder_layers": 2, "num_decoder_layers": 2, "model_dim": 32}
    usual = TransformerOptions(**shape, feed_forward_dim=48, num_heads=4)
    kinds: dict[str, tuple[ModelOptions, Vocabularies]] = {
        "usual": (usual, joint),
        "apart": (
            replace(usual, tied_embeddings="target", positions="learned", max_positions=64), apart,
        ),
        "gated": (replace(usual, feed_forward="swiglu", norm_position="pre", norm="rms"), joint),
        "experts": (replace(usual, num_experts=4), joint),
        "rnnsearch": (RNNsearchOptions(model_dim=16, embedding_dim=12, maxout_dim=10), closed),
        "convs2s": (
            ConvS2SOptions(encoder_blocks="2x16k3", decoder_blocks="2x16k3", model_dim=16,
                           output_dim=16, max_positions=64), apart,
        ),
    }  # fmt: skip
    for name, (options, vocabularies) in kinds.items():
        torch.manual_seed(1)
        model = build_model(options, vocabulary_of(vocabularies))
        search = {"beam_size": 2, "max_extra_tokens": 5}
        described = ModelFolder(
            path=folder / name,
            config={"model": to_plain(options), "search": search},
            options=options,
            vocabularies=vocabularies,
            facts=Facts(source_language="en", target_language="fr", fits_int8=True,
                        longest_source=30, scores={"validation": "BLEU 1"}),
        )  # fmt: skip
        write_model(folder / name, described, model)
    write_int8(read_folder(folder / "usual"), folder / "eight-bits")
    import numpy as np

    likely = np.arange(2 * len(small)).reshape(len(small), 2) % len(small)
    ShortList(likely, np.arange(5)).write(folder / "eight-bits")
    return sorted(folder.iterdir())


def by_command(folder: Path) -> None:
    """Translate as `dragoman translate` does."""
    from dragoman.cli.command import main

    source = folder.parent / f"{folder.name}.txt"
    source.write_text(TEXT, encoding="utf-8")
    more = ["--short-list"] if (folder / "short-list.safetensors").exists() else []
    main(["translate", str(folder), str(source), "--device", "cpu", *more])


def by_function(folder: Path) -> None:
    """Translate as a program does that imports Dragoman."""
    import dragoman
    from dragoman.errors import DragomanError

    try:
        translator = dragoman.load(str(folder), "cpu")
        for line in TEXT.splitlines():
            translator.translate(line, num_best=2)
    except DragomanError as error:
        sys.stderr.write(f"dragoman: {error}\n")
        sys.exit(2)


def run_forked(work: Callable[[Path], None], folder: Path) -> Outcome:
    """Run a case in a process forked from this one."""
    said = folder.parent / f"{folder.name}.said"
    began = time.monotonic()
    child = os.fork()
    if not child:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        status = UNCAUGHT
        try:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            work(folder)
            status = 0
        except SystemExit as exit_:
            status = int(exit_.code or 0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    while True:
        found, status, usage = os.wait4(child, os.WNOHANG)
        seconds = time.monotonic() - began
        if found or seconds > MOST_SECONDS:
            break
        time.sleep(0.005)
    if not found:
        os.kill(child, signal.SIGKILL)
        _, status, usage = os.wait4(child, 0)
        return Outcome("hang", "", seconds, 1024 * usage.ru_maxrss)
    lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
    return Outcome(_judge(status, lines), "\n".join(lines), seconds, 1024 * usage.ru_maxrss)


def _judge(status: int, lines: list[str]) -> str:
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return "translated"
    if code == 2 and len(lines) == 1 and lines[0].startswith("dragoman: "):
        return "refused"
    return f"status {code}, {len(lines)} lines"


def by_server(folder: Path) -> Outcome:
    """Serve a folder by a real `dragoman serve`, and ask for one translation."""
    command = [sys.executable, "-m", "dragoman", "serve", str(folder), "--port", "0"]
    began = time.monotonic()
    server = subprocess.Popen(
        [*command, "--device", "cpu"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    assert server.stderr is not None
    what, said, printed = "hang", "", b""
    try:
        while time.monotonic() - began < 3 * MOST_SECONDS:  # most of it are imports
            if not select.select([server.stdout], [], [], 0.2)[0]:
                continue
            more = os.read(server.stdout.fileno(), 4096)
            printed += more
            if not more:
                server.wait(MOST_SECONDS)
                said = server.stderr.read()
                is_clear = server.returncode == 2 and "Traceback" not in said
                what = "refused" if is_clear else f"status {server.returncode}"
                break
            urls = [line for line in printed.decode().splitlines() if line.startswith("http")]
            if urls and printed.endswith(b"\n"):
                what = _ask(urls[0].rstrip("/"))
                break
    finally:
        server.terminate()
        try:
            server.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            what = "hang at the end"
    return Outcome(what, said, time.monotonic() - began, 0)


def _ask(url: str) -> str:
    body = json.dumps({"q": TEXT, "source": "en", "target": "fr"}).encode()
    asked = urllib.request.Request(f"{url}/translate", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(asked, timeout=MOST_SECONDS) as answer:
            return "translated" if "translatedText" in json.load(answer) else "no translation"
    except urllib.error.HTTPError as error:
        return "refused" if error.code == 400 else f"HTTP {error.code}"  # other languages
    except OSError as error:
        return f"no answer ({error})"


def main() -> None:
    """Run the cases and print what came of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--served", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as scratch:
        failures = attack(Path(scratch), options.cases, options.served, options.seed)
    sys.exit(1 if failures else 0)


def attack(scratch: Path, num_cases: int, num_served: int, seed: int) -> int:
    """Damage folders, translate with them, and print counts; return how many cases failed."""
    import torch

    from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine
    from dragoman.folder import read_folder

    torch.set_num_threads(1)  # threads do not survive a fork
    models = make_models(scratch / "models")
    usual_folder = read_folder(scratch / "models" / "usual")
    CpuEngine.load(usual_folder, "int8")  # compiled before anything forks
    ways = {"translate": by_command, "load": by_function}
    usual = {
        (name, model): run_forked(work, model) for name, work in ways.items() for model in models
    }
    assert all(each.what == "translated" for each in usual.values()), usual
    counts: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in ways}
    failures = 0
    for case in range(num_cases):
        model, folder, done = _damage(scratch, models, seed, case)
        for name, work in ways.items():
            found = run_forked(work, folder)
            size = sum(each.stat().st_size for each in model.iterdir())
            taken = found.bytes_taken - usual[name, model].bytes_taken - size
            if taken > MOST_BYTES:
                found = found._replace(what=f"{taken >> 20} MB")
            counts[name][found.what] += 1
            if found.what not in ("translated", "refused"):
                failures += 1
                print(f"case {case}, {name}, {model.name}, {done}: {found.what}\n{found.said}")
        shutil.rmtree(folder.parent)
    counts["serve"] = collections.Counter()
    assert not num_served or by_server(models[0]).what == "translated"
    with ThreadPoolExecutor(2) as threads:
        served = [_damage(scratch, models, seed + 1, case) for case in range(num_served)]
        for (model, _, done), found in zip(
            served, threads.map(lambda each: by_server(each[1]), served), strict=True
        ):
            counts["serve"][found.what] += 1
            if found.what not in ("translated", "refused"):
                failures += 1
                print(f"served, {model.name}, {done}: {found.what}\n{found.said}")
    for name, found_counts in counts.items():
        print(f"{name}: {found_counts.total()} tried, {dict(found_counts)}")
    return failures


def _damage(scratch: Path, models: list[Path], seed: int, case: int) -> tuple[Path, Path, str]:
    chosen = random.Random(f"{seed} {case}")
    model = chosen.choice(models)
    folder = scratch / f"case-{seed}-{case}" / model.name
    shutil.copytree(model, folder)
    others = [each for each in models if each != model]
    return model, folder, mutate_folder(folder, others, chosen)


if __name__ == "__main__":
    main()
