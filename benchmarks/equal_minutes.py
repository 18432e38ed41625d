"""Systems trained on a CPU for the same minutes of wall clock, and what their translations score.

Each starts from the same lines, is trained for so many minutes, and translates the lines that
report with a beam of five. The minutes of Dragoman are those of the whole command, “dragoman train”
with its files and a budget and no other option: cleaning, subwords, validation and writing are in
them. The rivals get more: their corpus is cleaned and their subwords are learnt before, Hugging
Face's model is built and validated in time that does not count, and their recipe is set by hand for
the minutes: a small shape, small batches, a warm-up of a tenth of the time, dropout by the size of
the corpus.

A finished run leaves “trained.json” and its translations in its folder and is not repeated; one
that was stopped begins anew, since its clock cannot be stopped.
"""

import json
import re
import shutil
import signal
import statistics
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

import marian_nmt
from dragoman.data.corpus import read_lines
from dragoman.data.workers import count_cores
from dragoman.files import write_file
from dragoman.models.options import TransformerOptions
from dragoman.paper.training_runs.corpora import Corpus
from huggingface_recipe import Marian, Rival
from recipe_corpora import STUDIES, Sets
from recipe_runs import LOG, TRANSLATIONS, Bench, score_run, translate_sets

SYSTEMS = ("auto", "huggingface-float32", "huggingface-bfloat16", "marian")
SHAPES = {
    "tiny": TransformerOptions(
        num_encoder_layers=3, num_decoder_layers=3, model_dim=256, feed_forward_dim=512, num_heads=4
    ),
    "small": TransformerOptions(model_dim=256, feed_forward_dim=1024, num_heads=4),
}
BEAM_SIZE = 5
TRAINED = "trained.json"
# Few passes need little dropout.
MANY_PAIRS, LITTLE_DROPOUT, MUCH_DROPOUT = 100_000, 0.1, 0.3
# Of Marian NMT: updates of the warm-up for every minute of training, and seconds to save and leave.
WARMUP_PER_MINUTE = 20
SAVING_SECONDS = 2.0

Curve = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How the rivals are trained.

    Parameters
    ----------
    shape : str
        One of “SHAPES”.
    batch_tokens : int
        Subwords of an update, source plus target.
    huggingface_rate, marian_rate : float
        Learning rates at the end of the warm-up.
    """

    shape: str = "tiny"
    batch_tokens: int = 2000
    huggingface_rate: float = 1e-3
    marian_rate: float = 1e-3

    def shape_for(self, num_pairs: int) -> TransformerOptions:
        """Give the shape dropout for so many pairs."""
        dropout = LITTLE_DROPOUT if num_pairs >= MANY_PAIRS else MUCH_DROPOUT
        return replace(SHAPES[self.shape], dropout=dropout)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A run that is wanted.

    Parameters
    ----------
    study : str
        The name of its corpus.
    system : str
        Which.
    minutes : float
        Of training.
    seed : int
        Of all chance in it.
    recipe : Recipe
        Of the rivals.
    """

    study: str
    system: str
    minutes: float
    seed: int
    recipe: Recipe

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.study}-{self.minutes:g}-minutes-{self.system}-{self.seed}"


def train_for_minutes(
    wanted: Wanted, corpus: Corpus, sets: Sets, bench: Bench, folder: Path
) -> Curve:
    """Train, translate and score one run, as far as that was not done before.

    Parameters
    ----------
    wanted : Wanted
        The run.
    corpus : Corpus
        Prepared.
    sets : Sets
        The held-out lines.
    bench : Bench
        Where.
    folder : Path
        Of the run.

    Returns
    -------
    dict[str, Any]
        Scores, seconds of training by the wall clock, points of a curve, and the recipe.
    """
    if (folder / TRAINED).exists():
        told = json.loads((folder / TRAINED).read_text(encoding="utf-8"))
    else:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if wanted.system == "auto":
            told = _train_auto(wanted, corpus, bench, folder)
        elif wanted.system == "marian":
            told = _train_marian(wanted, corpus, folder)
        else:
            told = _train_huggingface(wanted, corpus, folder)
        write_file(folder / TRAINED, json.dumps(told) + "\n")
    translations = translate_sets(folder, corpus, sets, bench)
    language = STUDIES[wanted.study].languages[1]
    return told | score_run(translations, sets, language, wanted.study)


def _train_auto(wanted: Wanted, corpus: Corpus, bench: Bench, folder: Path) -> Curve:
    """Train as anybody would who has so many minutes."""
    texts, options = corpus.texts, [f"--max-minutes={wanted.minutes:g}", f"--seed={wanted.seed}"]
    files = [
        "--source", str(texts.source), "--target", str(texts.target),
        "--valid-source", str(texts.valid_source), "--valid-target", str(texts.valid_target),
    ]  # fmt: skip
    began = time.monotonic()
    bench.call(["train", *files, "--out", str(folder / "model"), *options], folder / LOG)
    seconds = time.monotonic() - began
    text = (folder / "model" / "metrics.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    found = [each for each in events if each["event"] == "validation"]
    times = {each["step"]: each["seconds"] for each in events if each["event"] == "update"}
    points = [[times.get(each["step"], 0.0), each["bleu"], each["step"]] for each in found]
    return _tell(seconds, points, " ".join(options))


def _train_huggingface(wanted: Wanted, corpus: Corpus, folder: Path) -> Curve:
    """Train Hugging Face's Marian in this process, and translate before it is gone."""
    rival = Rival(
        shape=wanted.recipe.shape_for(corpus.num_pairs),
        minutes=wanted.minutes,
        num_points=2,
        batch_tokens=wanted.recipe.batch_tokens,
        peak_learning_rate=wanted.recipe.huggingface_rate,
        precision=wanted.system.removeprefix("huggingface-"),
        attention="eager",
        seed=wanted.seed,
    )
    torch.set_float32_matmul_precision("medium")  # its fastest setting: see training_systems.py
    language = STUDIES[wanted.study].languages[1]
    marian = Marian(rival, corpus.store, corpus.subwords, language, torch.device("cpu"))
    marian.train(folder / "checkpoint.pt", float("inf"))
    lines = marian.translate(list(read_lines(corpus.texts.test_source)), BEAM_SIZE)
    write_file(folder / TRANSLATIONS, "".join(f"{line}\n" for line in lines))
    (folder / "checkpoint.pt").unlink()
    return _tell(marian.seconds, marian.points, str(rival))


def _train_marian(wanted: Wanted, corpus: Corpus, folder: Path) -> Curve:
    """Train Marian NMT until its time is up, and translate."""
    texts = corpus.texts
    sides = [str(texts.source.resolve()), str(texts.target.resolve())]
    _learn_pieces(sides, corpus.vocabulary_size, folder / "pieces")
    words = marian_words(wanted, corpus.num_pairs, count_cores())
    command = [marian_nmt.find_marian(), "train", "--train-sets", *sides, *words]
    began = time.monotonic()
    with (folder / LOG).open("w", encoding="utf-8") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        try:
            process.wait(timeout=60 * wanted.minutes - SAVING_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)  # it saves and exits
        finally:
            process.wait()
    seconds = time.monotonic() - began
    said = (folder / LOG).read_text(encoding="utf-8")
    updates = marian_nmt.read_updates(said)
    if not (folder / "model.npz").exists() or not updates:
        raise SystemExit(f"pymarian: {said[-500:]}")
    threads = str(count_cores())
    with (folder / "translations.part").open("w", encoding="utf-8") as answers:
        subprocess.run(
            [
                marian_nmt.find_marian(), "decode", "--models", "model.npz", "--vocabs",
                "pieces.spm", "pieces.spm", "--input", str(texts.test_source.resolve()),
                "--beam-size", str(BEAM_SIZE), "--normalize", "0.6", "--cpu-threads", threads,
                "--maxi-batch", "100", "--maxi-batch-sort", "src", "--mini-batch", "32", "--quiet",
                "--quiet-translation",
            ],
            cwd=folder, stdout=answers, check=True,
        )  # fmt: skip
    (folder / "translations.part").rename(folder / TRANSLATIONS)
    told = " ".join(words) + f"; {updates[-1].step} updates"
    return _tell(seconds, [], told)


def marian_words(wanted: Wanted, num_pairs: int, num_threads: int) -> list[str]:
    """Write the usual recipe of Marian NMT as flags, with a warm-up that fits the minutes.

    Parameters
    ----------
    wanted : Wanted
        The run.
    num_pairs : int
        Sentence pairs.
    num_threads : int
        That share each update.

    Returns
    -------
    list[str]
        Words for “pymarian train”.
    """
    warmup = str(max(1, round(WARMUP_PER_MINUTE * wanted.minutes)))
    return [
        *marian_nmt.shape_words(wanted.recipe.shape_for(num_pairs)),
        "--model", "model.npz", "--vocabs", "pieces.spm", "pieces.spm", "--max-length", "100",
        "--mini-batch-words", str(wanted.recipe.batch_tokens // 2), "--maxi-batch", "100",
        "--maxi-batch-sort", "src", "--optimizer-params", "0.9", "0.98", "1e-09",
        "--learn-rate", str(wanted.recipe.marian_rate), "--lr-warmup", warmup,
        "--lr-decay-inv-sqrt", warmup, "--clip-norm", "5", "--exponential-smoothing",
        "--sync-sgd", "--cpu-threads", str(num_threads), "--seed", str(wanted.seed),
        "--disp-freq", "10u", "--save-freq", "1000000u",
    ]  # fmt: skip


def _learn_pieces(sides: Sequence[str], vocabulary_size: int, prefix: Path) -> None:
    """Learn SentencePiece's own pieces, with the ids that Marian NMT asks for."""
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        input=list(sides), model_prefix=str(prefix), vocab_size=vocabulary_size,
        bos_id=-1, eos_id=0, unk_id=1, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    prefix.with_suffix(".model").rename(prefix.with_suffix(".spm"))


def _tell(seconds: float, points: list[list[float]], recipe: str) -> Curve:
    return {"wall_seconds": round(seconds, 1), "points": points, "recipe": recipe}


def list_equal_figures(study: str, minutes: float, curves: Sequence[Curve]) -> dict[str, float]:
    """List the figures of the runs of a corpus that had the same minutes.

    Parameters
    ----------
    study : str
        The name of the corpus.
    minutes : float
        Of training.
    curves : Sequence[dict[str, Any]]
        Of all systems and seeds.

    Returns
    -------
    dict[str, float]
        Means over seeds, deviations where there are several, the longest time by the wall clock,
        and how much BLEU ours is above each rival.
    """
    prefix = re.sub(r"\W", "_", f"{study.replace('-en-de', '')}_{minutes:g}_minutes")
    first = STUDIES[study].report
    figures: dict[str, float] = {}
    for system in SYSTEMS:
        runs = [curve for curve in curves if curve["system"] == system]
        if not runs:
            continue
        key = prefix if system == "auto" else f"{prefix}_{system.replace('-', '_')}"
        for metric in runs[0]["report"][first]:
            values = [run["report"][first][metric] for run in runs]
            figures[f"{key}_{metric}"] = statistics.mean(values)
            if len(values) > 1:
                figures[f"{key}_{metric}_deviation"] = statistics.stdev(values)
        figures[f"{key}_wall_minutes"] = max(run["wall_seconds"] for run in runs) / 60
        if system != "auto" and f"{prefix}_bleu" in figures:
            ahead = figures[f"{prefix}_bleu"] - figures[f"{key}_bleu"]
            figures[f"{prefix}_bleu_above_{system.replace('-', '_')}"] = ahead
    return figures
