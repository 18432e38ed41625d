"""How fast a model translates: ours beside CTranslate2 and Hugging Face, the same weights.

    python benchmarks/inference_speed.py MODEL --source FILE --target FILE [--systems NAME …]
        [--single 40] [--bulk 400] [--rounds 3] [--beams 4 1] [--batch N] [--device cpu]
        [--results DIR]
    python benchmarks/inference_speed.py --random-weights SUBWORDS --source FILE --device cuda …

MODEL is a folder of “dragoman train”; it is exported to the others' formats first. With a model of
subwords in its place, the paper's base model with random weights is measured, whose end symbol is
so improbable that every translation becomes as long as its source, where it is cut off; of such
translations there is no BLEU. Every system
translates the same raw lines in a process of its own, alone on the machine, in turns, so that what
disturbs one disturbs all; the medians of the rounds count. Of CTranslate2's ways to use threads and
batch sizes the one that is best in bulk on this machine is found first, for each beam. No
short-lists on any side. Tokens are the subwords of a system's own translations and one end symbol
each.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

from dragoman.data.corpus import read_lines
from dragoman.decoding.products import Int8Product
from dragoman.eight_bits import round_matrix
from dragoman.folder import Facts, ModelFolder, read_folder
from dragoman.kernels.int8.layout import lay_out
from dragoman.kernels.processor import can_compile
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.options import to_plain
from dragoman.quantised import Quantised
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.weights import load_model, vocabulary_of, write_model
from record import RESULTS, require_commit, write_result

HERE = Path(__file__).parent
SEED = 1
RIVAL = "ctranslate2_int8"
CPU_SYSTEMS = (
    "dragoman_int8", "dragoman_float32", "ctranslate2_int8", "ctranslate2_float32", "huggingface"
)  # fmt: skip
GPU_SYSTEMS = ("dragoman_float16", "huggingface")
BATCHES = {"ctranslate2": (64, -32, -64), "huggingface": (32,), "dragoman": (0,)}
GPU_BATCHES = BATCHES | {"huggingface": (256, 512)}
EXPORTS = {"ctranslate2_int8": ("ctranslate2", "int8"), "ctranslate2_float32": ("ctranslate2",),
           "huggingface": ("huggingface",)}  # fmt: skip


def main() -> None:
    """Export, time all systems in turns, print the table and write the result."""
    given = _read_options()
    require_commit()
    sources = [line for path in given.source for line in read_lines(path)]
    references = [] if given.target is None else list(read_lines(given.target))
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        if given.random_weights is not None:
            given.model = _write_random(given.random_weights, work / "random")
        folders = {name: _export(name, given.model, work) for name in given.systems}
        files = {"single": work / "single.txt", "bulk": work / "bulk.txt"}
        counts = {"single": given.single, "bulk": given.bulk}
        for mode, path in files.items():
            path.write_text("".join(f"{line}\n" for line in sources[: counts[mode]]))
        for name in given.systems[:1]:  # what is compiled at the first use, is so before it counts
            _run(name, folders[name], files["single"], "single", 1, 1, given)
        batches = {
            (name, beam): _find_batch(name, folders[name], work, given, beam)
            for name in given.systems
            for beam in given.beams
        }
        runs: dict[tuple[str, str, int], list[dict]] = {}
        bleu: dict[tuple[str, int], float] = {}
        for _ in range(given.rounds):
            for beam in given.beams:
                for mode in files:
                    for name in given.systems:
                        batch = 1 if mode == "single" else batches[name, beam]
                        found = _run(name, folders[name], files[mode], mode, beam, batch, given)
                        runs.setdefault((name, mode, beam), []).append(found)
                        if mode == "bulk":
                            bleu[name, beam] = _bleu(found.pop("texts"), references)
                        rate = found["tokens"] / sum(found["seconds"])
                        print(f"{name} {mode} beam {beam}: {rate:,.0f} tokens/s", flush=True)
        sizes = {name: _size(folder) for name, folder in folders.items()}
        figures = _figures(runs, bleu, sizes, given)
        if given.device == "cpu":
            figures |= _roofline(runs, given, sources)
    _print_table(runs, bleu, sizes)
    notes: dict[str, object] = {
        "sentences": {mode: min(count, len(sources)) for mode, count in counts.items()},
        "batches": {f"{name} beam {beam}": size for (name, beam), size in batches.items()},
    }
    notes |= _notes(runs, given)
    name = f"inference_speed-{given.device}-{given.source[0].name.split('.')[0]}"
    seeds = [SEED] if given.random_weights else []
    print(write_result(name, figures, seeds=seeds, notes=notes, folder=given.results))


def _read_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--random-weights", type=Path, metavar="SUBWORDS")
    parser.add_argument("--source", type=Path, nargs="+", required=True)
    parser.add_argument("--target", type=Path)
    parser.add_argument("--systems", nargs="+", choices=(*CPU_SYSTEMS, *GPU_SYSTEMS))
    parser.add_argument("--single", type=int, default=40, help="sentences translated one by one")
    parser.add_argument("--bulk", type=int, default=400, help="sentences translated together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, help="the rivals' sentences a batch, if known")
    parser.add_argument("--beams", type=int, nargs="+", default=[4, 1])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if (given.model is None) == (given.random_weights is None):
        parser.error("give a model folder, or --random-weights and a model of subwords")
    if given.target is None and given.random_weights is None:
        parser.error("give --target, for BLEU")
    given.extra = 50 if given.random_weights is None else 0
    systems = CPU_SYSTEMS if given.device == "cpu" else GPU_SYSTEMS
    # In this order whatever was said: the first is ours, with which the others are compared.
    given.systems = [name for name in systems if name in (given.systems or systems)]
    return given


def _write_random(subwords: Path, path: Path) -> Path:
    """Write a base model with random weights, whose translations end only where they must."""
    both = Subwords.from_file(subwords)
    vocabularies, options = Vocabularies(both, both), TransformerOptions()
    torch.manual_seed(SEED)
    model = build_model(options, vocabulary_of(vocabularies))
    with torch.no_grad():
        model.output.words[both.eos_id] = 0  # a score of 0, where thousands of words have more
    config = {"model": to_plain(options), "search": {}}
    folder = ModelFolder(
        path=path, config=config, options=options, vocabularies=vocabularies, facts=Facts()
    )
    write_model(path, folder, model)
    return path


def _bleu(texts: list[str], references: list[str]) -> float:
    """Score translations; not a number without references."""
    if not references:
        return float("nan")
    import sacrebleu

    return sacrebleu.corpus_bleu(texts, [references[: len(texts)]]).score


def _export(name: str, model: Path, work: Path) -> Path:
    """Write the model in a system's own format."""
    if name == "dragoman_int8":
        out = work / name
        subprocess.run(
            [sys.executable, "-m", "dragoman", "quantise", str(model), str(out)], check=True
        )
        return out
    if name not in EXPORTS:
        return model
    form, *quantisation = EXPORTS[name]
    out = work / name
    command = [sys.executable, "-m", "dragoman", "export", str(model), "--to", form, str(out)]
    subprocess.run(command + [f"--quantisation={each}" for each in quantisation], check=True)
    return out


def _find_batch(name: str, folder: Path, work: Path, given: argparse.Namespace, beam: int) -> int:
    """Find a system's best batch on a part of the text."""
    choices = (BATCHES if given.device == "cpu" else GPU_BATCHES)[name.split("_")[0]]
    if given.batch and not name.startswith("dragoman"):
        choices = (given.batch,)
    if len(choices) == 1:
        return choices[0]
    lines = (work / "bulk.txt").read_text().splitlines(keepends=True)
    part = work / "part.txt"
    part.write_text("".join(lines[: max(64, given.bulk // 4)]))
    rates = {}
    for batch in choices:
        found = _run(name, folder, part, "bulk", beam, batch, given)
        rates[batch] = found["tokens"] / sum(found["seconds"])
        rate = f"{rates[batch]:,.0f} tokens/s"
        print(f"{name} beam {beam} in batches of {batch}: {rate}", flush=True)
    return max(rates, key=lambda batch: rates[batch])


def _run(
    name: str,
    folder: Path,
    lines: Path,
    mode: str,
    beam: int,
    batch: int,
    given: argparse.Namespace,
) -> dict:
    """Let one system translate once."""
    out = lines.with_suffix(".out")
    command = [
        sys.executable, str(HERE / "inference_systems.py"), name, str(folder), str(lines),
        f"--mode={mode}", f"--beam={beam}", f"--batch={batch}", f"--threads={given.threads}",
        f"--device={given.device}", f"--out={out}", f"--extra={given.extra}",
    ]  # fmt: skip
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{name}: {run.stderr}")
    return json.loads(run.stdout.splitlines()[-1]) | {"texts": out.read_text().splitlines()}


def _notes(runs: dict, given: argparse.Namespace) -> dict[str, object]:
    """Say what else there is to know of the runs."""
    rates = {
        key: [each["tokens"] / sum(each["seconds"]) for each in found]
        for key, found in runs.items()
    }
    is_random = given.random_weights is not None
    return {
        "source": [path.name for path in given.source],
        "weights": "random; translations as long as their sources" if is_random else "trained",
        "rounds": given.rounds,
        "threads": given.threads,
        "tokens per second, least and most": {
            f"{name} {mode} beam {beam}": [min(each), max(each)]
            for (name, mode, beam), each in rates.items()
        },
    }


def _rate(found: list[dict]) -> float:
    return statistics.median(each["tokens"] / sum(each["seconds"]) for each in found)


def _figures(runs: dict, bleu: dict, sizes: dict, given: argparse.Namespace) -> dict[str, float]:
    """Name all that was measured, and how ours compares."""
    place = "cpu" if given.device == "cpu" else _card()
    ours = given.systems[0]
    figures: dict[str, float] = {}
    for (name, mode, beam), found in runs.items():
        search = "greedy" if beam == 1 else f"beam{beam}"
        key = f"{place}_{mode}_{search}_{name}"
        figures[f"{key}_tokens_per_second"] = _rate(found)
        figures[f"{key}_sentences_per_second"] = statistics.median(
            each["sentences"] / sum(each["seconds"]) for each in found
        )
        if mode == "single":
            every = sorted(one for each in found for one in each["seconds"])
            figures[f"{key}_latency_p50_seconds"] = every[len(every) // 2]
            figures[f"{key}_latency_p95_seconds"] = every[int(0.95 * (len(every) - 1))]
        figures[f"{key}_peak_megabytes"] = max(each["peak_bytes"] for each in found) / 1e6
        if name == ours:
            if given.device != "cpu":
                figures[f"{place}_{mode}_{search}_tokens_per_second"] = _rate(found)
            for rival in given.systems[1:]:
                ratio = _rate(found) / _rate(runs[rival, mode, beam])
                figures[f"{place}_{mode}_{search}_ratio_to_{rival}"] = ratio
    for (name, beam), score in bleu.items():
        if score != score:  # nobody knows
            continue
        figures[f"bleu_{'greedy' if beam == 1 else f'beam{beam}'}_{name}"] = score
    figures |= {f"size_{name}_megabytes": size / 1e6 for name, size in sizes.items()}
    if {"dragoman_int8", "dragoman_float32"} <= set(given.systems):
        losses = [
            bleu["dragoman_float32", beam] - bleu["dragoman_int8", beam] for beam in given.beams
        ]
        figures["cpu_int8_bleu_loss"] = max(losses)
    if RIVAL in given.systems:
        figures["cpu_peak_memory_ratio_to_ctranslate2"] = max(
            found[0]["peak_bytes"] / runs[RIVAL, mode, beam][0]["peak_bytes"]
            for (name, mode, beam), found in runs.items()
            if name == ours
        )
    return figures


def _card() -> str:
    """Name the card in one word."""
    return "h200" if "H200" in torch.cuda.get_device_name() else "gpu"


def _measure_products(num_threads: int) -> float:
    """Find how many operations in eight bits all cores do in a second, each in products alone."""
    if not can_compile():
        torch.set_num_threads(num_threads)
        product = Int8Product(Quantised.of(round_matrix(torch.randn(2048, 2048).numpy())), None)
        states = torch.randn(512, 2048)
        seconds = [_time(lambda: product(states)) for _ in range(20)]
        return 2 * 512 * 2048 * 2048 / statistics.median(seconds)
    from dragoman.kernels.int8.tiles import multiply_rows

    rows, times = 96, 50
    chance = np.random.default_rng(SEED)
    states = chance.normal(size=(rows, 2048)).astype(np.float32)
    matrix = lay_out(round_matrix(chance.normal(size=(512, 2048)).astype(np.float32)), None)
    rooms = [np.empty((rows, 512), np.float32) for _ in range(num_threads)]

    def multiply(products: np.ndarray) -> None:
        for _ in range(times):
            multiply_rows(states, rows, *matrix, products)

    with ThreadPoolExecutor(num_threads) as threads:
        seconds = [_time(lambda: list(threads.map(multiply, rooms))) for _ in range(10)]
    return 2 * rows * 512 * 2048 * times * num_threads / statistics.median(seconds[1:])


def _time(work: Callable[[], object]) -> float:
    """Say how many seconds something takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _roofline(runs: dict, given: argparse.Namespace, sources: list[str]) -> dict[str, float]:
    """Compare the bulk rate with what products in eight bits alone would allow."""
    limit = _measure_products(given.threads)
    folder = read_folder(given.model)
    model = load_model(folder)
    encoder = sum(each.numel() for each in model.encoder.parameters())  # type: ignore[union-attr]
    decoder = sum(each.numel() for each in model.decoder.parameters())  # type: ignore[union-attr]
    words = model.output.words.numel()
    found = runs[given.systems[0], "bulk", given.beams[0]]
    lines = sources[: given.bulk]
    read = sum(len(ids) + 1 for ids in folder.vocabularies.source.encode(lines))
    written = statistics.median(each["tokens"] for each in found) * given.beams[0]
    operations = 2 * (read * encoder + written * (decoder + words))
    taken = statistics.median(sum(each["seconds"]) for each in found)
    return {
        "cpu_int8_product_operations_per_second": limit,
        "cpu_share_of_roofline": operations / taken / limit,
    }


def _size(folder: Path) -> int:
    """Weigh the weights."""
    names = ("model.safetensors", "model.bin")
    return sum((folder / name).stat().st_size for name in names if (folder / name).exists())


def _print_table(runs: dict, bleu: dict, sizes: dict) -> None:
    """Print all systems."""
    print(f"\n{'system':22}{'mode':8}{'beam':>5}{'tokens/s':>10}{'p50 ms':>9}{'p95 ms':>9}"
          f"{'peak MB':>9}{'size MB':>9}{'BLEU':>7}")  # fmt: skip
    for (name, mode, beam), found in sorted(runs.items(), key=lambda each: each[0][1:]):
        every = sorted(1e3 * one for each in found for one in each["seconds"])
        latency = ("", "")
        if mode == "single":
            latency = tuple(f"{every[int(q * (len(every) - 1))]:.1f}" for q in (0.5, 0.95))
        peak = max(each["peak_bytes"] for each in found) / 1e6
        score = f"{bleu[name, beam]:.2f}" if mode == "bulk" else ""
        print(f"{name:22}{mode:8}{beam:5}{_rate(found):10,.0f}{latency[0]:>9}{latency[1]:>9}"
              f"{peak:9,.0f}{sizes[name] / 1e6:9,.0f}{score:>7}")  # fmt: skip


if __name__ == "__main__":
    main()
