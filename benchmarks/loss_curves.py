"""Does the fast path train as the plain one does? Loss over 500 updates, same data, same seeds.

    python benchmarks/loss_curves.py STORE [--steps 500] [--seeds 3] [--results DIR]

STORE is a prepared corpus: the folder “store” of a run of “dragoman train”. Transformer base is
trained from the same weights on the same sentences in the same order, once with packed batches, our
kernels and captured graphs, and once with padded batches and PyTorch's own operations, both in
bfloat16. Seeds change the weights and what dropout drops. Compared are the mean losses of 20
updates each: how far the two paths of one seed lie apart, and how far seeds lie apart on one path.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from dragoman.data.batches import make_batch
from dragoman.data.packing import choose_capacity, pack, plan_packed
from dragoman.data.store import PairStore, open_store
from dragoman.decoding.device import choose_device
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.training.gradients import Gradients
from dragoman.training.loss import TrainingStep
from dragoman.training.optimiser import build_optimiser
from dragoman.training.options import TrainingOptions
from dragoman.training.schedule import learning_rate, paper_peak
from record import RESULTS, require_commit, write_result

END_ID, PAD_ID = 0, 2
BATCH_TOKENS = 25_000
WARM_UP = 1000
WINDOW = 20


def main() -> None:
    """Train both paths with every seed, print the table and write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    pairs = open_store(given.store).train
    rows = list(islice(_plan(pairs), given.steps))
    seeds = list(range(1, given.seeds + 1))
    curves = {
        (kernels, seed): _smooth(_train(pairs, rows, seed, kernels))
        for seed in seeds
        for kernels in ("auto", "off")
    }
    print(f"{'updates':>8} " + " ".join(f"{k:>5}/{s}" for k, s in curves))
    for place in range(len(curves["auto", 1])):
        values = " ".join(f"{curve[place]:7.3f}" for curve in curves.values())
        print(f"{WINDOW * (place + 1):8} {values}")
    fast, plain = ([curves[kind, seed] for seed in seeds] for kind in ("auto", "off"))
    between_paths = [_distance(one, other) for one, other in zip(fast, plain, strict=True)]
    between_seeds = [
        _distance(one, other)
        for path in (fast, plain)
        for place, one in enumerate(path)
        for other in path[:place]
    ]
    last = statistics.mean(a[-1] - b[-1] for a, b in zip(fast, plain, strict=True))
    figures = {
        "loss_curve_distance_between_paths_nats": statistics.mean(between_paths),
        "loss_curve_distance_between_seeds_nats": statistics.mean(between_seeds),
        "loss_curve_fast_minus_plain_at_the_end_nats": last,
        "loss_curve_updates": given.steps,
    }
    for name, value in figures.items():
        print(f"{name}: {value:.4f}")
    notes = {
        f"mean losses of {WINDOW} updates, {'fast' if kind == 'auto' else 'plain'}, seed {seed}": [
            round(value, 4) for value in curve
        ]
        for (kind, seed), curve in curves.items()
    }
    print(write_result("loss_curves", figures, seeds=seeds, notes=notes, folder=given.results))


def _plan(pairs: PairStore) -> Iterator[np.ndarray]:
    """Yield the pairs of each update, as packing has them."""
    lengths = (pairs.source_lengths, pairs.target_lengths)
    order = np.random.default_rng(1).permutation(len(pairs))
    return plan_packed(*lengths, order, choose_capacity(*lengths, BATCH_TOKENS))


def _train(pairs: PairStore, updates: list[np.ndarray], seed: int, kernels: str) -> list[float]:
    """Train one model; return the loss of each update."""
    torch.manual_seed(seed)
    device = choose_device("cuda")
    size = 1 + max(int(pairs.ids(rows)[side].ids.max()) for rows in updates for side in (0, 1))
    shape = TransformerOptions()
    model = build_model(shape, Vocabulary(size, size, PAD_ID, END_ID)).to(device).train()
    options = TrainingOptions(kernels=kernels)  # type: ignore[arg-type]
    gradients = Gradients(TrainingStep(model, options.label_smoothing), options, device)
    optimiser = build_optimiser(model, options)
    peak = paper_peak(shape.model_dim, WARM_UP)
    make = _packer(pairs) if kernels == "auto" else _padder(pairs)
    losses = []
    for step, rows in enumerate(updates, start=1):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, peak=peak, warmup_steps=WARM_UP)
        count = int(pairs.target_lengths[rows].sum())
        losses.append(gradients(list(make(rows)), count) / count)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    found = torch.stack(losses).tolist()
    print(f"seed {seed}, kernels {kernels}: {found[-1]:.3f} nats at the end", flush=True)
    return found


def _packer(pairs: PairStore) -> Callable[[np.ndarray], list]:
    """Make packed batches, one an update."""
    capacity = choose_capacity(pairs.source_lengths, pairs.target_lengths, BATCH_TOKENS)
    return lambda rows: [pack(*pairs.ids(rows), PAD_ID, capacity)]


def _padder(pairs: PairStore) -> Callable[[np.ndarray], list]:
    """Make padded batches of the same pairs, one an update."""
    return lambda rows: [make_batch(*pairs.ids(rows), PAD_ID)]


def _smooth(losses: list[float]) -> list[float]:
    """Take the means of windows."""
    return [
        statistics.mean(losses[start : start + WINDOW]) for start in range(0, len(losses), WINDOW)
    ]


def _distance(one: list[float], other: list[float]) -> float:
    """Average how far two curves lie apart."""
    return statistics.mean(abs(a - b) for a, b in zip(one, other, strict=True))


if __name__ == "__main__":
    main()
