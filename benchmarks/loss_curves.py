"""Does the fast path train as the plain one does? Loss over 500 updates, same data, same seeds.

    python benchmarks/loss_curves.py STORE [--device cuda] [--steps 500] [--seeds 3] [--results DIR]

STORE is a prepared corpus: the folder “store” of a run of “dragoman train”. A Transformer is
trained from the same weights on the same sentences in the same order, once with packed batches and
our kernels, and once with padded batches and PyTorch's own operations. On a card it is base, with
captured graphs, both in bfloat16; on a CPU it is small, and the plain path computes in float32, the
fast one in what is fastest there. Seeds change the weights and what dropout drops. Compared are the
mean losses of 20 updates each: how far the two paths of one seed lie apart, and how far seeds lie
apart on one path.
"""

import argparse
import statistics
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import nn

from dragoman.data.store.store import PairStore, open_store
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.training.checkpoints.checkpoint import SINGLE_PROCESS
from dragoman.training.configuration import RunOptions
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.optimisers.optimiser import build_optimiser
from dragoman.training.optimisers.schedule import learning_rate, paper_peak
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.gradients import Gradients
from dragoman.training.updates.precision import choose_precision
from dragoman.training.updates.update_planner import UpdatePlanner, prepare_updates
from record import RESULTS, require_commit, write_result

END_ID, PAD_ID = 0, 2
CPU_SHAPE = TransformerOptions(
    num_encoder_layers=4, num_decoder_layers=4, model_dim=192, feed_forward_dim=768, num_heads=4
)
WARM_UP = 1000
WINDOW = 20


def main() -> None:
    """Train both paths with every seed, print the table and write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    require_commit()
    device = torch.device(given.device)
    pairs = open_store(given.store).train
    _, planner, _, options = _prepare(pairs, device, "auto")
    rows = list(islice((each for epoch in count() for each in planner.plan(epoch)), given.steps))
    seeds = list(range(1, given.seeds + 1))
    paths: tuple[Literal["auto", "off"], ...] = ("auto", "off")
    curves = {
        (kernels, seed): _smooth(_train(pairs, rows, seed, device, kernels))
        for seed in seeds
        for kernels in paths
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
    prefix = "cpu_" if device.type == "cpu" else ""
    figures = {
        f"{prefix}loss_curve_distance_between_paths_nats": statistics.mean(between_paths),
        f"{prefix}loss_curve_distance_between_seeds_nats": statistics.mean(between_seeds),
        f"{prefix}loss_curve_fast_minus_plain_at_the_end_nats": last,
        f"{prefix}loss_curve_updates": given.steps,
    }
    for name, value in figures.items():
        print(f"{name}: {value:.4f}")
    notes: dict[str, object] = {"precision of the fast path": options.training.precision}
    notes |= {
        f"mean losses of {WINDOW} updates, {'fast' if kind == 'auto' else 'plain'}, seed {seed}": [
            round(value, 4) for value in curve
        ]
        for (kind, seed), curve in curves.items()
    }
    name = "loss_curves-cpu" if prefix else "loss_curves"
    print(write_result(name, figures, seeds=seeds, notes=notes, folder=given.results))


def _options(device: torch.device, kernels: Literal["auto", "off"]) -> RunOptions:
    """Give the options of a path: on a CPU a shape and batch that a budget of an hour buys."""
    if device.type == "cuda":
        training = TrainingOptions(kernels=kernels, batch_tokens=25_000)
        return RunOptions(model=TransformerOptions(), training=training)
    training = TrainingOptions(kernels=kernels, batch_tokens=4000, precision="float32")
    if kernels == "auto":
        training = replace(training, precision="auto")
        precision = choose_precision(training, CPU_SHAPE.model_dim, device)
        training = replace(training, precision=precision)  # type: ignore[arg-type]
    return RunOptions(model=CPU_SHAPE, training=training)


def _prepare(
    pairs: PairStore, device: torch.device, kernels: Literal["auto", "off"]
) -> tuple[Gradients, UpdatePlanner, nn.Module, RunOptions]:
    """Build a model and what trains it, as “dragoman train” does."""
    options = _options(device, kernels)
    every = pairs.ids(np.arange(len(pairs)))
    size = 1 + max(int(side.ids.max()) for side in every)
    vocabulary = Vocabulary(size, size, PAD_ID, END_ID)
    model = build_model(options.model, vocabulary).to(device).train()
    step = TrainingStep(model, options.training.label_smoothing)
    return (
        *prepare_updates(step, pairs, options, PAD_ID, device, workers=SINGLE_PROCESS),
        model,
        options,
    )


def _train(
    pairs: PairStore,
    updates: list[np.ndarray],
    seed: int,
    device: torch.device,
    kernels: Literal["auto", "off"],
) -> list[float]:
    """Train one model; return the loss of each update."""
    torch.manual_seed(seed)
    gradients, planner, model, options = _prepare(pairs, device, kernels)
    optimiser = build_optimiser(model, options.training)
    peak = paper_peak(options.model.model_dim, WARM_UP)
    losses = []
    for step, rows in enumerate(updates, start=1):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, peak=peak, warmup_steps=WARM_UP)
        update = planner.make_update(rows, 1)
        num_tokens = update.num_target_tokens
        losses.append(gradients(update.batches, num_tokens) / num_tokens)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    found = torch.stack(losses).tolist()
    print(f"seed {seed}, kernels {kernels}: {found[-1]:.3f} nats at the end", flush=True)
    return found


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
