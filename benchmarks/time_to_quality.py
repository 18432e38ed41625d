"""How good a model is after so many minutes of training, beside its rivals.

    python benchmarks/time_to_quality.py --device cpu --corpus tatoeba-en-de-full --minutes 15
        --data DATA --work DIR [--seeds 1 2] [--systems auto huggingface-float32 marian]
    python benchmarks/time_to_quality.py --device cpu --corpus … --minutes 15 --summary
    python benchmarks/time_to_quality.py --device cuda --corpus europarl-en-de --minutes 8
        --data DATA --work DIR [--systems auto paper huggingface] [--points 12]
        [--sitting-minutes 9]
    python benchmarks/time_to_quality.py --corpus … --merge FILE …
        take in curves from elsewhere, or those in the notes of dated results

On a CPU: “dragoman train --max-minutes N” and nothing else, Hugging Face's Marian in float32 and in
bfloat16, and Marian NMT (if “pymarian” is on the path), all for the same minutes of wall clock; see
equal_minutes.py. A finished run is not repeated, so many short sittings add up; the summary takes
in all seeds that are there.

On a card: validation BLEU over minutes of training of “auto”, the paper's recipe and Hugging Face's
Marian. Same corpus, same subwords, same validation lines, same card, greedy search for all; what
validation takes does not count, what compiling takes does. Each system is trained for so many
minutes, or until its own recipe ends. Ours then translate the lines that report, with a beam. A
sitting stops in time; the same command goes on. A system that is trained for other minutes anew
takes the place of its older curve.

Curves are kept in the work folder, and copied to $OUT if that is set.
"""

import argparse
import json
import math
import os
import re
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import torch

from dragoman.files import write_file
from dragoman.models.options import TransformerOptions
from dragoman.paper.training_runs.corpora import Corpus
from dragoman.paper.training_runs.outcomes import is_finished
from dragoman.training.configuration import resolve_options
from dragoman.training.options import ENDING_SCHEDULES
from equal_minutes import SHAPES, Recipe, Wanted, list_equal_figures, train_for_minutes
from equal_minutes import SYSTEMS as CPU_SYSTEMS
from huggingface_recipe import Marian, Rival
from recipe_corpora import SELF_TEST, STUDIES, find_missing, prepare_study, read_sets
from recipe_runs import LOG, SAVING_SECONDS, Bench, Interrupted, score_run, translate_sets
from record import RESULTS, describe_machine, require_commit, write_result

SYSTEMS = {"auto": "auto", "paper": "paper-base", "huggingface": ""}
TITLES = {
    "auto": "Dragoman, auto",
    "paper": "Dragoman, the paper's recipe",
    "huggingface": "Hugging Face Marian",
}
# What a schedule that has to end within the minutes is planned with: a little less than an H200
# does with the base model of “auto”.
GUESSED_TOKENS_PER_SECOND = 1_900_000
SELF_TEST_SHAPE = TransformerOptions(
    num_encoder_layers=1, num_decoder_layers=1, model_dim=64, feed_forward_dim=128, num_heads=2
)
SELF_TEST_WORDS = (
    "--num-encoder-layers=1", "--num-decoder-layers=1", "--model-dim=64", "--feed-forward-dim=128",
    "--num-heads=2", "--batch-tokens=2000", "--warmup-steps=40", "--peak-learning-rate=0.005",
)  # fmt: skip

Curve = dict[str, Any]


def main() -> None:
    """Do what the command line asks for."""
    given = _read_options()
    folder = given.work / "curves"
    for path in given.merge:
        merge(path, folder)
    if given.summary:
        (summarise if given.device == "cuda" else summarise_equal)(given, folder)
    if given.merge or given.summary:
        return
    missing = find_missing(given.corpus, given.data)
    if missing:
        raise SystemExit(f"{missing}: not there")
    bench = Bench(
        work=given.work,
        jobs=1,
        ends=time.monotonic() + 60 * given.sitting_minutes - SAVING_SECONDS - 5,
        commit=require_commit(),
        machine=describe_machine(),
    )
    corpus = prepare_study(given.corpus, given.data, given.work, given.vocabulary_size, _say)
    for seed, system in product(given.seeds, given.systems):
        wanted = Wanted(
            study=given.corpus, system=system, minutes=given.minutes, seed=seed, recipe=given.recipe
        )
        on_card = given.device == "cuda"
        name = f"{given.corpus}-{system}-{seed}" if on_card else wanted.name
        if _is_there(folder / f"{name}.json", given.minutes):
            _say(f"{name}: is there")
            continue
        try:
            curve = train_system(wanted, given, corpus, bench)
        except Interrupted:
            _say(f"{name}: stopped; the same command goes on")
            break
        text = json.dumps(curve, indent=1) + "\n"
        for place in (folder, *([Path(given.out)] if given.out else [])):
            place.mkdir(parents=True, exist_ok=True)
            write_file(place / f"{name}.json", text)
        _say(f"{name}: {json.dumps(curve.get('report', curve['points'][-1:]))}")


def merge(path: Path, folder: Path) -> None:
    """Take in a curve from elsewhere, or all curves that a dated result was made of.

    Parameters
    ----------
    path : Path
        A curve's file, or a result's.
    folder : Path
        Of the curves.
    """
    told = json.loads(path.read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, curve in (told["notes"] if "figures" in told else {path.stem: told}).items():
        write_file(folder / f"{name}.json", json.dumps(curve, indent=1) + "\n")


def _is_there(path: Path, minutes: float) -> bool:
    """Say whether there is a curve of a training of so many minutes."""
    return path.exists() and json.loads(path.read_text(encoding="utf-8"))["minutes"] == minutes


def _read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--corpus", default="europarl-en-de", choices=list(STUDIES))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--work", type=Path, default=Path("../recipes-work"))
    choices = [*SYSTEMS, *CPU_SYSTEMS[1:]]
    parser.add_argument("--systems", nargs="+", choices=choices, help="default: all of the device")
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--points", type=int, default=12, help="validations, about")
    parser.add_argument("--vocabulary-size", type=int, help="default: by the size of the corpus")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--device", default=device, choices=("cuda", "cpu"))
    parser.add_argument("--sitting-minutes", type=float, default=math.inf)
    parser.add_argument("--rival-shape", choices=SHAPES, default=Recipe.shape, help="on a CPU")
    parser.add_argument("--rival-batch-tokens", type=int)
    parser.add_argument("--huggingface-rate", type=float)
    parser.add_argument("--huggingface-compiled", action="store_true", help="on a card")
    parser.add_argument("--marian-rate", type=float, default=Recipe.marian_rate)
    parser.add_argument("--merge", type=Path, nargs="+", default=[], metavar="FILE")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--out", type=Path, default=os.environ.get("OUT"), help="copies go here")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--docs", type=Path, default=Path(__file__).parent.parent / "docs")
    given = parser.parse_args()
    on_card = given.device == "cuda"
    known = tuple(SYSTEMS) if on_card else CPU_SYSTEMS
    given.systems = given.systems or known
    for system in given.systems:
        if system not in known:
            parser.error(f"--systems {system}: on {given.device} there are {', '.join(known)}")
    given.recipe = Recipe(
        shape=given.rival_shape,
        batch_tokens=given.rival_batch_tokens or (25_000 if on_card else Recipe.batch_tokens),
        huggingface_rate=given.huggingface_rate or (3e-4 if on_card else Recipe.huggingface_rate),
        marian_rate=given.marian_rate,
    )
    if not on_card:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a process that is started finds the CPU alone
    return given


def train_system(wanted: Wanted, given: argparse.Namespace, corpus: Corpus, bench: Bench) -> Curve:
    """Train one system and return its curve.

    Parameters
    ----------
    wanted : Wanted
        The run.
    given : argparse.Namespace
        The command line.
    corpus : Corpus
        Prepared.
    bench : Bench
        Where.

    Returns
    -------
    dict[str, Any]
        Points of seconds of training, BLEU and updates, scores on the lines that report, and what
        was run where.
    """
    if given.device == "cpu":
        folder = given.work / "equal-minutes" / wanted.name
        sets = read_sets(given.corpus, given.data, given.work)
        curve = train_for_minutes(wanted, corpus, sets, bench, folder)
    else:
        name = f"{given.corpus}-{wanted.system}-{wanted.seed}-{given.minutes:g}"
        folder = given.work / "quality" / name
        if wanted.system == "huggingface":
            curve = _train_huggingface(wanted, given, corpus, bench, folder)
        else:
            curve = _train_dragoman(wanted, given, corpus, bench, folder)
    facts = {"system": wanted.system, "corpus": given.corpus, "minutes": given.minutes}
    facts |= {"seed": wanted.seed, "commit": bench.commit, "machine": bench.machine}
    return facts | {"vocabulary_size": corpus.vocabulary_size, "pairs": corpus.num_pairs} | curve


def _train_dragoman(
    wanted: Wanted, given: argparse.Namespace, corpus: Corpus, bench: Bench, folder: Path
) -> Curve:
    """Train as anybody would, and read the log."""
    preset = SYSTEMS[wanted.system]
    words = [*(SELF_TEST_WORDS if given.corpus == SELF_TEST else ())]
    recipe = resolve_options(preset, {}, {}, corpus.num_pairs)[1].training
    batch_tokens = 2000 if words else recipe.batch_tokens
    speed = GUESSED_TOKENS_PER_SECOND
    if recipe.consistency != "none":  # every sentence goes through the model twice
        speed //= 2
    every = max(1, round(speed * 60 * given.minutes / batch_tokens / given.points))
    if recipe.max_steps:
        every = min(every, max(1, recipe.max_steps // given.points))
    words += ["--patience", "off", "--max-minutes", str(given.minutes), "--seed", str(wanted.seed)]
    words += ["--validate-every", str(every), "--device", given.device]
    if recipe.schedule in ENDING_SCHEDULES:  # it has to fall within the minutes
        words += ["--max-steps", str(every * given.points)]
    model, texts = folder / "model", corpus.texts
    files = [
        "--source", str(texts.source), "--target", str(texts.target),
        "--valid-source", str(texts.valid_source), "--valid-target", str(texts.valid_target),
        "--store", str(corpus.store), "--subwords", str(corpus.subwords),
    ]  # fmt: skip
    if not is_finished(model):
        going_on = (model / "run.json").exists()
        start = ["--resume"] if going_on else [*files, "--preset", preset, *words]
        bench.call(["train", "--out", str(model), *start], folder / LOG)
    sets = read_sets(given.corpus, given.data, given.work)
    translations = translate_sets(folder, corpus, sets, bench)
    scores = score_run(translations, sets, STUDIES[given.corpus].languages[1], given.corpus)
    text = (model / "metrics.jsonl").read_text(encoding="utf-8")
    events = [json.loads(line) for line in text.splitlines()]
    seconds = {each["step"]: each["seconds"] for each in events if each["event"] == "update"}
    points = [
        [seconds[each["step"]], each["bleu"], each["step"]]
        for each in events
        if each["event"] == "validation"
    ]
    start = next(each for each in events if each["event"] == "start")
    told = " ".join([f"--preset {preset}", *words])
    return scores | {"points": points, "parameters": start["parameters"], "recipe": told}


def _train_huggingface(
    wanted: Wanted, given: argparse.Namespace, corpus: Corpus, bench: Bench, folder: Path
) -> Curve:
    """Train the rival in this process."""
    is_test = given.corpus == SELF_TEST
    rival = Rival(
        shape=SELF_TEST_SHAPE if is_test else TransformerOptions(),
        minutes=given.minutes,
        num_points=given.points,
        batch_tokens=2000 if is_test else given.recipe.batch_tokens,
        peak_learning_rate=given.recipe.huggingface_rate,
        compiled=given.huggingface_compiled,
        seed=wanted.seed,
    )
    language = STUDIES[given.corpus].languages[1]
    device = torch.device(given.device)
    marian = Marian(rival, corpus.store, corpus.subwords, language, device)
    if not marian.train(folder / "checkpoint.pt", bench.ends):
        raise Interrupted
    parameters = sum(each.numel() for each in marian.model.parameters())
    return {"points": marian.points, "parameters": parameters, "recipe": str(rival)}


def find_time(points: list[list[float]], quality: float) -> float | None:
    """Find when a quality was reached.

    Parameters
    ----------
    points : list[list[float]]
        Seconds and BLEU, in order.
    quality : float
        BLEU.

    Returns
    -------
    float | None
        Seconds of training, on the line between two validations; None if it was never reached.
    """
    before_seconds, before_bleu = 0.0, 0.0
    for seconds, bleu, *_ in points:
        if bleu >= quality:
            share = (quality - before_bleu) / (bleu - before_bleu) if bleu > before_bleu else 1.0
            return before_seconds + share * (seconds - before_seconds)
        if bleu >= before_bleu:
            before_seconds, before_bleu = seconds, bleu
    return None


def summarise(given: argparse.Namespace, folder: Path) -> None:
    """Make the plot and the dated result of the curves that are there.

    Parameters
    ----------
    given : argparse.Namespace
        The command line.
    folder : Path
        Of the curves.
    """
    curves: dict[str, Curve] = {}
    for system in SYSTEMS:
        path = folder / f"{given.corpus}-{system}-{given.seeds[0]}.json"
        if path.exists():
            curves[system] = json.loads(path.read_text(encoding="utf-8"))
    if not curves:
        raise SystemExit(f"{folder}: no curve of {given.corpus}")
    figures = list_figures(given.corpus, curves)
    name = re.sub(r"\W", "_", given.corpus)
    picture = given.docs / "pictures" / f"time-to-quality-{given.corpus}.png"
    draw(curves, STUDIES[given.corpus].title, picture)
    path = write_result(
        f"time_to_quality-{name}", figures, seeds=given.seeds[:1], notes=curves,
        folder=given.results, machine=next(iter(curves.values()))["machine"],
    )  # fmt: skip
    print(f"{picture}\n{path}\n{json.dumps(figures, indent=1)}")


def summarise_equal(given: argparse.Namespace, folder: Path) -> None:
    """Make the dated result of the runs on a CPU that had the same minutes.

    Parameters
    ----------
    given : argparse.Namespace
        The command line.
    folder : Path
        Of the curves.
    """
    start = f"{given.corpus}-{given.minutes:g}-minutes"
    paths = sorted(folder.glob(f"{start}-*.json"))
    curves = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}
    if not curves:
        raise SystemExit(f"{folder}: no curve of {start}")
    figures = list_equal_figures(given.corpus, given.minutes, list(curves.values()))
    path = write_result(
        f"time_to_quality-cpu-{start}",
        figures,
        seeds=sorted({curve["seed"] for curve in curves.values()}),
        notes=curves,
        folder=given.results,
        machine=next(iter(curves.values()))["machine"],
    )
    print(f"{path}\n{json.dumps(figures, indent=1)}")


def list_figures(corpus: str, curves: dict[str, Curve]) -> dict[str, float]:
    """List the figures of the dated result.

    Parameters
    ----------
    corpus : str
        Its name.
    curves : dict[str, dict[str, Any]]
        By system.

    Returns
    -------
    dict[str, float]
        The best scores, those on the lines that report, the minutes that “auto” took, minutes to
        the quality of the others, and ratios of minutes.

    Notes
    -----
    Two systems are compared at the best quality that both reach: the ratio says how many times as
    long the other takes to it as “auto” does.
    """
    prefix = re.sub(r"\W", "_", corpus)
    points = {system: curve["points"] for system, curve in curves.items()}
    best = {system: max(point[1] for point in each) for system, each in points.items()}
    figures = {f"{prefix}_{system}_best_valid_bleu": value for system, value in best.items()}
    figures |= _list_scores(STUDIES[corpus].languages, curves)
    if "auto" in points:
        first, *_ = prefix.split("_")
        figures[f"{first}_minutes"] = points["auto"][-1][0] / 60
    if "paper" in best:
        for system, each in points.items():
            seconds = find_time(each, best["paper"])
            if seconds is not None:
                figures[f"{prefix}_{system}_minutes_to_best_of_paper"] = seconds / 60
    for other in ("paper", "huggingface"):
        if "auto" not in best or other not in best:
            continue
        quality = min(best["auto"], best[other])
        ours, theirs = (find_time(points[system], quality) for system in ("auto", other))
        assert ours is not None
        assert theirs is not None
        ratio = theirs / ours
        figures[f"{prefix}_equal_quality_with_{other}_bleu"] = quality
        figures[f"{prefix}_time_to_equal_quality_ratio_to_{other}"] = ratio
        if other == "huggingface" and corpus != SELF_TEST:
            figures["time_to_equal_quality_ratio_to_huggingface"] = ratio
    return figures


def _list_scores(languages: tuple[str, str], curves: dict[str, Curve]) -> dict[str, float]:
    """List the scores on the lines that report: those of “auto” by the name of the set alone."""
    pair = "_".join(languages)
    prefixes = {system: f"{system}_" for system in curves} | {"auto": ""}
    return {
        f"{prefixes[system]}{name}_{pair}_{metric}": value
        for system, curve in curves.items()
        for name, scores in curve.get("report", {}).items()
        for metric, value in scores.items()
    }


def draw(curves: dict[str, Curve], title: str, path: Path) -> None:
    """Draw BLEU over minutes.

    Parameters
    ----------
    curves : dict[str, dict[str, Any]]
        By system.
    title : str
        Of the picture.
    path : Path
        The picture.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    for system in (name for name in SYSTEMS if name in curves):
        points = curves[system]["points"]
        minutes, scores = [each[0] / 60 for each in points], [each[1] for each in points]
        panel.plot(minutes, scores, "o-", markersize=3.5, linewidth=1.4, label=TITLES[system])
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("minutes of training")
    panel.set_ylabel("BLEU on validation (greedy)")
    panel.set_title(title, fontsize=10)
    panel.grid(color="0.92")
    panel.legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
