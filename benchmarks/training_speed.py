"""How fast models train: Dragoman and its rivals on the same sizes and sentences, in one run.

    python benchmarks/training_speed.py [--data FOLDER] [--device cuda] [--sizes base big]
        [--rivals NAME …] [--repeats 7] [--threads 2] [--results DIR]

Rivals: Hugging Face's Marian (if “transformers” is installed) and PyTorch's nn.Transformer; on a
GPU eager and compiled, with products in bfloat16 (autocast); on a CPU in float32 and in bfloat16,
each in the fastest of several settings, and Marian NMT (if “pymarian” is on the path: see
marian_nmt.py). Dragoman is measured as it comes, on a CPU also in the faster of its two ways to
multiply float32: what it takes where a processor has no bfloat16. All have the paper's
dropout and label smoothing and a fused AdamW.

Sentence sets are made once by Dragoman's own plan, which puts similar lengths together; every rival
gets the same sets, padded to the longest sentence. Where Dragoman packs instead of padding, it
packs the same sentences anew; Marian NMT makes batches of them itself. Without --data, lengths are
lognormal (28 subwords on average) and words follow Zipf's law. Each system first sees all batches
twice, so that compiling and capturing are over; then the systems take turns, each updating once
with every batch, as often as --repeats says. Figures are medians of these rounds, ratios medians of
the ratios within a round; the notes give the least and the most.

Tokens are source plus target without padding. FLOP/s count matrix products only (see
“count_flops”), and the limit is the fastest of several large products of the same precision in the
same run. Peak memory is what a system adds at most while it is built and first sees all batches.
"""

import argparse
import gc
import os
import statistics
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch

from dragoman.data.workers import count_cores
from record import RESULTS, require_commit, status_bytes, write_result
from training_systems import RIVALS, Build, System, Timed, list_float32, ours
from training_work import (
    SEED,
    SIZES,
    SentenceSet,
    Size,
    count_flops,
    make_sentence_sets,
    measure_limits,
)

OURS = "dragoman"
OURS_IN_FLOAT32 = "dragoman_float32"
VERSION = torch.__version__


@dataclass(kw_only=True)
class Measured:
    """What one system did at one size."""

    system: Timed
    peak_bytes: float | None
    seconds: list[float] = field(default_factory=list)


def main() -> None:
    """Measure, print the table and write the result."""
    given = _read_options()
    require_commit()
    device = torch.device(given.device)
    if given.threads:
        torch.set_num_threads(given.threads)
    limits = measure_limits(device)
    figures: dict[str, float] = {}
    notes: dict[str, object] = {"data": "random" if given.data is None else given.data.name}
    if device.type == "cpu":
        notes["threads"] = torch.get_num_threads()
    for name in given.sizes:
        size = SIZES[name]
        sentences = make_sentence_sets(size, given.data)
        measured, remarks = _measure(size, sentences, device, given, limits)
        told = ", ".join(f"{each / 1e12:.4g} TFLOP/s in {name}" for name, each in limits.items())
        print(f"\nproducts: {told}, {_threads(device)}torch {VERSION}")
        found, spread = _summarise(size, sentences, measured, limits, _prefix(device))
        figures |= found
        notes[name] = {"rounds": given.repeats, "tokens_per_second": spread, **remarks}
        del measured
        _forget(device)
    for precision, limit in limits.items():
        kind = f"_{precision}" if device.type == "cpu" else ""
        figures[f"{_prefix(device)}matmul{kind}_teraflops_per_second"] = limit / 1e12
    first = f"{_prefix(device)}{given.sizes[0]}"
    figures[f"{_prefix(device)}padding_share"] = figures[f"{first}_padding_share"]
    if device.type == "cpu":
        figures["cpu_training_share_of_limit"] = figures[f"{first}_share_of_matmul_limit"]
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
    parser.add_argument("--rivals", nargs="*", choices={*RIVALS["cuda"], *RIVALS["cpu"]})
    parser.add_argument("--repeats", type=int, default=7, help="rounds that are timed")
    parser.add_argument("--threads", type=int, help="threads of a CPU; default: all cores")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if given.device == "cpu" and given.threads is None:
        given.threads = count_cores()
    if given.sizes is None:
        given.sizes = ["base", "big"] if given.device == "cuda" else ["small"]
    known = RIVALS[given.device]
    if given.rivals is None:
        given.rivals = [name for name in known if name != "pytorch_compiled"]
    for name in given.rivals:
        if name not in known:
            parser.error(f"--rivals {name}: on {given.device} there are {', '.join(known)}")
    return given


def _measure(
    size: Size,
    sentences: list[SentenceSet],
    device: torch.device,
    given: argparse.Namespace,
    limits: dict[str, float],
) -> tuple[dict[str, Measured], dict[str, object]]:
    """Let all systems of one size take turns; raise the limits; return also what is to be said."""
    measured: dict[str, Measured] = {}
    remarks: dict[str, object] = {}
    systems: dict[str, dict[str, Build]] = {OURS: {"": ours}}
    if device.type == "cpu":
        systems[OURS_IN_FLOAT32] = {name: partial(ours, precision=name) for name in list_float32()}
    systems |= {name: RIVALS[device.type][name] for name in given.rivals}
    for name, settings in systems.items():
        chosen = _choose_setting(name, settings, size, sentences, device, remarks)
        if chosen is not None:
            measured[name] = chosen
    num_graphs = _count_graphs()
    idle_before, started = _idle_and_own_seconds(), time.perf_counter()
    for _ in range(given.repeats):
        for each in measured.values():
            each.seconds.append(each.system.time_round())
        for precision, limit in measure_limits(device).items():
            limits[precision] = max(limits[precision], limit)
    idle_after, seconds = _idle_and_own_seconds(), time.perf_counter() - started
    if device.type == "cpu" and idle_before is not None and idle_after is not None:
        others = (os.cpu_count() or 1) - (idle_after - idle_before) / seconds
        remarks["cores_taken_by_other_processes"] = round(max(others, 0.0), 2)
        print(f"{size.name}: other processes took {max(others, 0.0):.2f} cores meanwhile")
    if _count_graphs() != num_graphs:
        remarks["warning"] = "something was compiled while it was timed"
        print(f"{size.name}: {remarks['warning']}")
    return measured, remarks


def _choose_setting(
    name: str,
    settings: dict[str, Build],
    size: Size,
    sentences: list[SentenceSet],
    device: torch.device,
    remarks: dict[str, object],
) -> Measured | None:
    """Build a system in each of its settings and keep the one whose second round is fastest."""
    num_tokens = sum(each.num_tokens for each in sentences)
    rates: dict[str, float] = {}
    best: Measured | None = None
    for setting, build in settings.items():
        title = f"{name} ({setting})" if setting else name
        started = time.perf_counter()
        before = _start_memory(device)
        try:
            system = build(size, sentences, device)
            system.time_round()
            seconds = system.time_round()
        except Exception as error:  # a rival that fails must not end the run
            if name == OURS:
                raise
            why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            remarks[f"{title}_left_out"] = why
            print(f"{size.name}: {title} is left out: {why}", flush=True)
            continue
        taken = time.perf_counter() - started
        rates[setting] = round(num_tokens / seconds)
        print(
            f"{size.name}: {title} ready after {taken:.1f} s, {rates[setting]:,} tokens/s",
            flush=True,
        )
        if rates[setting] == max(rates.values()):
            is_here = isinstance(system, System)
            peak = _peak_memory(device, before) if is_here else None
            best = Measured(system=system, peak_bytes=peak)
    if len(rates) > 1:
        remarks[f"{name}_settings_tokens_per_second"] = rates
    return best


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
    limits: dict[str, float],
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
        places, limit = each.system.num_places, limits[each.system.precision]
        pairs = zip(each.seconds, measured[OURS].seconds, strict=True)
        ratio = statistics.median(theirs / own for theirs, own in pairs)
        figures[f"{key}_tokens_per_second"] = num_tokens / seconds
        figures[f"{key}_teraflops_per_second"] = flops / seconds / 1e12
        figures[f"{key}_share_of_matmul_limit"] = flops / seconds / limit
        padding = None if places is None else 1 - num_tokens / places
        if padding is not None:
            figures[f"{key}_padding_share"] = padding
        peak = each.peak_bytes
        if peak is not None:
            figures[f"{key}_peak_gigabytes"] = peak / 1e9
        if name != OURS:
            figures[f"{prefix}{size.name}_ratio_to_{name}"] = ratio
        if OURS_IN_FLOAT32 in measured and name.endswith("float32") and name != OURS_IN_FLOAT32:
            pairs = zip(each.seconds, measured[OURS_IN_FLOAT32].seconds, strict=True)
            full = statistics.median(theirs / own for theirs, own in pairs)
            figures[f"{prefix}{size.name}_without_bfloat16_ratio_to_{name}"] = full
            print(f"{'':22} without bfloat16, ours is {full:.2f}×")
        print(
            f"{name:<22} {num_tokens / seconds:11,.0f} {min(rates):11,.0f} {max(rates):11,.0f} "
            f"{flops / seconds / 1e12:8.4g} {flops / seconds / limit:8.1%} "
            f"{'–' if peak is None else f'{peak / 1e9:.2f}':>8} "
            f"{'–' if padding is None else f'{padding:.1%}':>8} {ratio:7.2f}×"
        )
    print()
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
        torch.cuda.empty_cache()
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
