"""How fast models train: Dragoman and its rivals on the same sizes and sentences, in one run.

    python benchmarks/training_speed.py [--data FOLDER] [--device cuda] [--sizes base big]
        [--rivals NAME …] [--repeats 7] [--threads 2] [--results DIR]

Rivals: Hugging Face's Marian, eager and compiled (if “transformers” is installed), and PyTorch's
nn.Transformer, eager and compiled. On a GPU products are in bfloat16 (autocast), on a CPU in
float32; all have the paper's dropout and label smoothing and a fused AdamW.

Sentence sets are made once by Dragoman's own plan, which puts similar lengths together; every rival
gets the same sets, padded to the longest sentence. Where Dragoman packs instead of padding, it
packs the same sentences anew. Without --data, lengths are lognormal (28 subwords on average) and
words follow Zipf's law. Each system first sees all batches twice, so that compiling and capturing
are over; then the systems take turns, each updating once with every batch, as often as --repeats
says. Figures are medians of these rounds, ratios medians of the ratios within a round; the notes
give the least and the most.

Tokens are source plus target without padding. FLOP/s count matrix products only (see
“count_flops”), and the limit is the fastest of several large products in the same run. Peak memory
is what a system adds at most while it is built and first sees all batches.
"""

import argparse
import gc
import os
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from record import RESULTS, require_commit, status_bytes, write_result
from training_systems import RIVALS, System, ours
from training_work import (
    SEED,
    SIZES,
    SentenceSet,
    Size,
    count_flops,
    make_sentence_sets,
    measure_limit,
    synchronise,
)

OURS = "dragoman"
VERSION = torch.__version__


@dataclass(kw_only=True)
class Measured:
    """What one system did at one size."""

    system: System
    peak_bytes: float | None
    seconds: list[float] = field(default_factory=list)


def main() -> None:
    """Measure, print the table and write the result."""
    given = _read_options()
    require_commit()
    device = torch.device(given.device)
    if given.threads:
        torch.set_num_threads(given.threads)
    limits = [measure_limit(device)]
    figures: dict[str, float] = {}
    notes: dict[str, object] = {"data": "random" if given.data is None else given.data.name}
    if device.type == "cpu":
        notes["threads"] = torch.get_num_threads()
    for name in given.sizes:
        size = SIZES[name]
        sentences = make_sentence_sets(size, given.data)
        measured, remarks = _measure(size, sentences, device, given, limits)
        print(f"\nproducts: {max(limits) / 1e12:.4g} TFLOP/s, {_threads(device)}torch {VERSION}")
        found, spread = _summarise(size, sentences, measured, max(limits), _prefix(device))
        figures |= found
        notes[name] = {"rounds": given.repeats, "tokens_per_second": spread, **remarks}
        del measured
        _forget(device)
    figures[f"{_prefix(device)}matmul_teraflops_per_second"] = max(limits) / 1e12
    first = f"{_prefix(device)}{given.sizes[0]}_padding_share"
    figures[f"{_prefix(device)}padding_share"] = figures[first]
    name = f"training_speed-{device.type}"
    print(write_result(name, figures, seeds=[SEED], notes=notes, folder=given.results))


def _read_options() -> argparse.Namespace:
    """Read the command line."""
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of tab-separated pairs (.tsv, .tsv.xz)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if has_gpu else "cpu")
    parser.add_argument("--sizes", nargs="+", choices=SIZES)
    parser.add_argument("--rivals", nargs="*", choices=RIVALS)
    parser.add_argument("--repeats", type=int, default=7, help="rounds that are timed")
    parser.add_argument("--threads", type=int, help="threads of a CPU; default: all cores")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.device == "cpu" and given.threads is None:
        given.threads = os.cpu_count()
    if given.sizes is None:
        given.sizes = ["base", "big"] if given.device == "cuda" else ["small"]
    if given.rivals is None:
        compiled = ["huggingface_compiled"] if given.device == "cuda" else []
        given.rivals = ["huggingface_eager", *compiled, "pytorch_eager"]
    return given


def _measure(
    size: Size,
    sentences: list[SentenceSet],
    device: torch.device,
    given: argparse.Namespace,
    limits: list[float],
) -> tuple[dict[str, Measured], dict[str, object]]:
    """Let all systems of one size take turns; add to the limits; return also what is to be said."""
    measured: dict[str, Measured] = {}
    remarks: dict[str, object] = {}
    for name, build in {OURS: ours, **{each: RIVALS[each] for each in given.rivals}}.items():
        started = time.perf_counter()
        before = _start_memory(device)
        try:
            system = build(size, sentences, device)
            for place in 2 * list(range(system.num_updates)):
                system.update(place)
            synchronise(device)
        except Exception as error:  # a rival that fails must not end the run
            if name == OURS:
                raise
            why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            remarks[f"{name}_left_out"] = why
            print(f"{size.name}: {name} is left out: {why}")
            _forget(device)
            continue
        measured[name] = Measured(system=system, peak_bytes=_peak_memory(device, before))
        print(f"{size.name}: {name} ready after {time.perf_counter() - started:.1f} s")
    num_graphs = _count_graphs()
    idle_before, started = _idle_and_own_seconds(), time.perf_counter()
    for _ in range(given.repeats):
        for each in measured.values():
            each.seconds.append(_time_round(each.system, device))
        limits.append(measure_limit(device))
    idle_after, seconds = _idle_and_own_seconds(), time.perf_counter() - started
    if device.type == "cpu" and idle_before is not None and idle_after is not None:
        others = (os.cpu_count() or 1) - (idle_after - idle_before) / seconds
        remarks["cores_taken_by_other_processes"] = round(max(others, 0.0), 2)
        print(f"{size.name}: other processes took {max(others, 0.0):.2f} cores meanwhile")
    if _count_graphs() != num_graphs:
        remarks["warning"] = "something was compiled while it was timed"
        print(f"{size.name}: {remarks['warning']}")
    return measured, remarks


def _time_round(system: System, device: torch.device) -> float:
    """Time one update with each batch."""
    synchronise(device)
    started = time.perf_counter()
    for place in range(system.num_updates):
        system.update(place)
    synchronise(device)
    return time.perf_counter() - started


def _idle_and_own_seconds() -> float | None:
    """Add up the seconds in which cores idled or worked for this process, if Linux tells."""
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    used = os.times()
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK") + used.user + used.system


def _summarise(
    size: Size,
    sentences: list[SentenceSet],
    measured: dict[str, Measured],
    limit: float,
    prefix: str,
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Print one size's table; return its figures, and the least, median and most of each rate."""
    num_tokens = sum(each.num_tokens for each in sentences)
    flops = count_flops(size, sentences)
    figures: dict[str, float] = {}
    spread: dict[str, list[float]] = {}
    columns = f"{'tokens/s':>11} {'(least':>11} {'most)':>11} {'TFLOP/s':>8} {'of limit':>8}"
    print(f"\n{size.name:<22} {columns} {'peak GB':>8} {'padding':>8} {'ours is':>8}")
    for name, each in measured.items():
        key = f"{prefix}{size.name}" if name == OURS else f"{prefix}{size.name}_{name}"
        seconds = statistics.median(each.seconds)
        rates = [num_tokens / value for value in each.seconds]
        spread[name] = [min(rates), num_tokens / seconds, max(rates)]
        padding = 1 - num_tokens / each.system.num_places
        pairs = zip(each.seconds, measured[OURS].seconds, strict=True)
        ratio = statistics.median(theirs / own for theirs, own in pairs)
        figures[f"{key}_tokens_per_second"] = num_tokens / seconds
        figures[f"{key}_teraflops_per_second"] = flops / seconds / 1e12
        figures[f"{key}_share_of_matmul_limit"] = flops / seconds / limit
        figures[f"{key}_padding_share"] = padding
        peak = each.peak_bytes
        if peak is not None:
            figures[f"{key}_peak_gigabytes"] = peak / 1e9
        if name != OURS:
            figures[f"{prefix}{size.name}_ratio_to_{name}"] = ratio
        print(
            f"{name:<22} {num_tokens / seconds:11,.0f} {min(rates):11,.0f} {max(rates):11,.0f} "
            f"{flops / seconds / 1e12:8.4g} {flops / seconds / limit:8.1%} "
            f"{'–' if peak is None else f'{peak / 1e9:.2f}':>8} {padding:8.1%} {ratio:7.2f}×"
        )
    print()
    if prefix and f"{prefix}{size.name}_ratio_to_huggingface_eager" in figures:
        ratio = figures[f"{prefix}{size.name}_ratio_to_huggingface_eager"]
        figures[f"{prefix}{size.name}_ratio_to_huggingface"] = ratio
    return figures, spread


def _prefix(device: torch.device) -> str:
    """Name the figures of a CPU as such."""
    return "cpu_" if device.type == "cpu" else ""


def _threads(device: torch.device) -> str:
    return f"{torch.get_num_threads()} threads, " if device.type == "cpu" else ""


def _count_graphs() -> int:
    """Count what has been compiled so far."""
    from torch._dynamo.utils import counters

    return counters["stats"]["unique_graphs"]


def _start_memory(device: torch.device) -> float | None:
    """Begin to watch for the most memory in use; return what is in use now, if it can be told."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return torch.cuda.memory_allocated(device)
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return status_bytes("VmRSS")
    except OSError:
        return None


def _peak_memory(device: torch.device, before: float | None) -> float | None:
    """Return the most memory in use since it was watched, less what was in use then."""
    if before is None:
        return None
    is_cuda = device.type == "cuda"
    peak = torch.cuda.max_memory_allocated(device) if is_cuda else status_bytes("VmHWM")
    return peak - before


def _forget(device: torch.device) -> None:
    """Free what nobody holds any longer."""
    gc.collect()
    torch.compiler.reset()
    if device.type == "cuda":
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
