"""How fast a model translates: ours beside CTranslate2 and Hugging Face, the same weights.

    python benchmarks/inference_speed.py MODEL --source FILE --target FILE [--systems NAME …]
        [--single 40] [--bulk 400] [--rounds 3] [--beams 4 1] [--device cpu]
        [--instructions avx2] [--results DIR]
        [--systems dragoman_int8 … marian_packed8avx512]
    python benchmarks/inference_speed.py --random-weights SUBWORDS --source FILE --device cuda …

MODEL is a folder of “dragoman train”; it is exported to the others' formats first. With a model of
subwords in its place, the paper's base model with random weights is measured, whose end symbol is
so improbable that every translation becomes as long as its source, where it is cut off; of such
translations there is no BLEU. Every system
translates the same raw lines in a process of its own, alone on the machine, in turns, so that what
disturbs one disturbs all; the medians of the rounds count. Each rival works in its best way: of
CTranslate2's threads, batch sizes and libraries (with MKL and without) the fastest is found first,
for each work and each beam. Marian NMT takes part if it is named and the model has its positions:
“pymarian” must be on the path, and PYMARIAN name the folder of its packages (see marian_nmt.py).
With --instructions all systems are kept to an instruction set, as on a processor that has no more.
No short-lists on any side. Tokens are the subwords of a system's own translations and one end
symbol each.
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
from typing import NamedTuple

import numpy as np
import torch

import marian_nmt
from dragoman.data.corpus import read_lines
from dragoman.eight_bits import round_matrix
from dragoman.folder import Facts, ModelFolder, read_folder
from dragoman.kernels.cpu_search.weight_layout import lay_out
from dragoman.kernels.processor import VARIABLE
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.options import to_plain
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.weights import load_model, vocabulary_of, write_model
from record import RESULTS, require_commit, write_result

HERE = Path(__file__).parent
SEED = 1
RIVAL = "ctranslate2_int8"
CPU_SYSTEMS = (
    "dragoman_int8", "dragoman_float32", "ctranslate2_int8", "ctranslate2_float32", "huggingface",
    "marian_packed8avx2", "marian_packed8avx512", "marian_float32",
)  # fmt: skip
MARIAN = ("marian_packed8avx2", "marian_packed8avx512", "marian_float32")
GPU_SYSTEMS = ("dragoman_float16", "huggingface")
RESTRICTIONS = {"avx2": ("AVX2", "AVX2"), "avxvnni": ("AVX2", "AVX2_VNNI")}


class Way(NamedTuple):
    """How a system works: threads, sentences a batch, and whether CTranslate2 uses MKL."""

    threads: int
    batch: int
    mkl: str = ""


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
            _run(name, folders[name], files["single"], "single", 1, Way(given.threads, 1), given)
        ways = {
            (name, mode, beam): _find_way(name, folders[name], path, mode, beam, given)
            for name in given.systems
            for beam in given.beams
            for mode, path in files.items()
        }
        runs: dict[tuple[str, str, int], list[dict]] = {}
        bleu: dict[tuple[str, int], float] = {}
        for _ in range(given.rounds):
            for beam in given.beams:
                for mode in files:
                    for name in given.systems:
                        way = ways[name, mode, beam]
                        found = _run(name, folders[name], files[mode], mode, beam, way, given)
                        runs.setdefault((name, mode, beam), []).append(found)
                        if mode == "bulk":
                            bleu[name, beam] = _bleu(found.pop("texts"), references)
                        rate = found["tokens"] / sum(found["seconds"])
                        print(f"{name} {mode} beam {beam}: {rate:,.0f} tokens/s", flush=True)
        sizes = {name: _size(folder) for name, folder in folders.items()}
        figures = _figures(runs, bleu, sizes, given)
        if given.device == "cpu" and not given.instructions:
            figures |= _roofline(runs, given, sources)
    _print_table(runs, bleu, sizes)
    notes: dict[str, object] = {
        "sentences": {mode: min(count, len(sources)) for mode, count in counts.items()},
        "ways": {
            f"{name} {mode} beam {beam}": way._asdict() for (name, mode, beam), way in ways.items()
        },
    }
    notes |= _notes(runs, given)
    place = given.device if not given.instructions else f"{given.device}-{given.instructions}"
    name = f"inference_speed-{place}-{given.source[0].name.split('.')[0]}"
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
    parser.add_argument("--instructions", choices=RESTRICTIONS, help="no more than these")
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
    usual = [name for name in systems if name not in MARIAN]
    given.systems = [name for name in systems if name in (given.systems or usual)]
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
    if name in MARIAN:
        return _export_marian(name.removeprefix("marian_"), model, work / name)
    if name not in EXPORTS:
        return model
    form, *quantisation = EXPORTS[name]
    out = work / name
    command = [sys.executable, "-m", "dragoman", "export", str(model), "--to", form, str(out)]
    subprocess.run(command + [f"--quantisation={each}" for each in quantisation], check=True)
    return out


def _export_marian(gemm: str, model: Path, out: Path) -> Path:
    """Write the model for Marian, and pack its weights."""
    command = [sys.executable, "-m", "dragoman", "export", str(model), "--to", "marian", str(out)]
    subprocess.run(command, check=True)
    if gemm != "float32":
        files = [str(out / each) for each in ("model.npz", "model.bin")]
        convert = [marian_nmt.find_marian(), "convert", "-f", files[0], "-t", files[1], "-g", gemm]
        subprocess.run(convert, check=True, capture_output=True)
    return out


def _list_ways(name: str, mode: str, given: argparse.Namespace) -> list[Way]:
    """List the ways in which a system may do a work."""
    threads, kind = given.threads, name.split("_")[0]
    if kind == "dragoman":
        return [Way(threads, 0)]
    if kind == "huggingface":
        batches = (256, 512) if given.device == "cuda" else (32,)
        return [Way(threads, batch) for batch in (batches if mode == "bulk" else (1,))]
    if kind == "marian":
        return [Way(1, 1)] if mode == "single" else [Way(threads, size) for size in (32, 64)]
    if mode == "single":
        shapes = [(count, 1) for count in sorted({1, threads})]
    else:
        shapes = [(threads, batch) for batch in (64, -32, -64)]
    return [Way(*shape, mkl) for shape in shapes for mkl in ("0", "1")]


def _find_way(
    name: str, folder: Path, lines: Path, mode: str, beam: int, given: argparse.Namespace
) -> Way:
    """Find the way in which a system is fastest, on a part of the text."""
    ways = _list_ways(name, mode, given)
    if len(ways) == 1:
        return ways[0]
    part = lines.with_name("part.txt")
    every = lines.read_text().splitlines(keepends=True)
    part.write_text("".join(every[: max(10 if mode == "single" else 64, len(every) // 4)]))
    rates = {}
    for way in ways:
        found = _run(name, folder, part, mode, beam, way, given)
        rates[way] = found["tokens"] / sum(found["seconds"])
        print(f"{name} {mode} beam {beam} {way}: {rates[way]:,.0f} tokens/s", flush=True)
    return max(rates, key=lambda way: rates[way])


def _run(
    name: str,
    folder: Path,
    lines: Path,
    mode: str,
    beam: int,
    way: Way,
    given: argparse.Namespace,
) -> dict:
    """Let one system translate once."""
    out = lines.with_suffix(".out")
    command = [
        sys.executable, str(HERE / "inference_systems.py"), name, str(folder), str(lines),
        f"--mode={mode}", f"--beam={beam}", f"--batch={way.batch}", f"--threads={way.threads}",
        f"--device={given.device}", f"--out={out}", f"--extra={given.extra}",
    ]  # fmt: skip
    environment = dict(os.environ)
    if given.instructions:
        environment[VARIABLE] = given.instructions
        # CTranslate2's own loops, oneDNN and MKL: each asks the processor by itself.
        environment["CT2_FORCE_CPU_ISA"], most = RESTRICTIONS[given.instructions]
        environment |= dict.fromkeys(("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"), most)
        environment["MKL_ENABLE_INSTRUCTIONS"] = most.removesuffix("_VNNI")
    if way.mkl:
        environment["CT2_USE_MKL"] = way.mkl
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
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
    place = given.instructions or ("cpu" if given.device == "cpu" else _card())
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
            rates = [_rate(runs[each, mode, beam]) for each in given.systems[1:] if each[0] != "d"]
            if rates:
                best = _rate(found) / max(rates)
                figures[f"{place}_{mode}_{search}_ratio_to_best_rival"] = best
        floats = "ctranslate2_float32"
        if name == "dragoman_float32" and floats in given.systems:
            ratio = _rate(found) / _rate(runs[floats, mode, beam])
            figures[f"{place}_float32_{mode}_{search}_ratio_to_{floats}"] = ratio
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
    from dragoman.kernels.cpu_search.tiles import multiply_rows

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
