"""The learning-rate finder: raise the rate at every update until the loss diverges.

After Smith (2017). The weights are discarded; the curve is kept as a picture and as numbers.
"""

import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.decoding.device import choose_device
from dragoman.errors import OptionError, TrainingError
from dragoman.files import locked, write_file
from dragoman.folder import read_folder
from dragoman.training.assembly import assemble_training
from dragoman.training.checkpoints.checkpoint import SINGLE_PROCESS
from dragoman.training.optimisers.schedule import paper_peak
from dragoman.training.preparation import RunRequest, resolve_request
from dragoman.training.run_setup import (
    RATE_FILE,
    RATE_PICTURE,
    Prepared,
    build_initial_model,
    check_output_folder,
    prepare_corpus,
)
from dragoman.training.updates.distributed import Workers
from dragoman.training.updates.gradient_accumulation import apply_gradient, compute_gradient
from dragoman.training.updates.update_planner import segment_pairs
from dragoman.weights import vocabulary_of

LOWEST_RATE = 1e-7
HIGHEST_RATE = 1.0
NUM_UPDATES = 200
DIVERGED = 4.0
"""The test ends when the running mean of the loss is this many times its lowest."""
MEMORY = 0.9
WINDOW = 6.0
"""Standard deviation, in updates, of the window that smooths the finished curve."""
HIGHEST_SEEN = 1.25
"""Losses are clipped at this many times the first one before smoothing."""
LEAST_FALL = 0.01
SAFETY = 4.0
"""The suggested rate is at least this factor below the rate of the lowest loss."""

# The colours of the plots in `dragoman.paper`.
_BLUE, _ORANGE, _INK, _FAINT, _GRID = "#0072b2", "#d55e00", "#221d29", "#8d8796", "#e4e0e8"


@dataclass(frozen=True, kw_only=True)
class RateTest:
    """The curve of a learning-rate test, and the rate it suggests.

    Parameters
    ----------
    rates : tuple[float, ...]
        The learning rate of each update.
    losses : tuple[float, ...]
        The mean loss of each batch before its update.
    smoothed : tuple[float, ...]
        The same, smoothed.
    steepest : float
        The rate at which the loss fell fastest.
    turning : float
        The rate at which it was lowest; from there on it rises.
    suggested : float
        The peak to train with: the steepest, but never over a quarter of the turning point.
    has_diverged : bool
        Whether the loss diverged before the highest rate.
    """

    rates: tuple[float, ...]
    losses: tuple[float, ...]
    smoothed: tuple[float, ...]
    steepest: float
    turning: float
    suggested: float
    has_diverged: bool


def find_learning_rate(
    request: RunRequest,
    say: Callable[[str], None],
    workers: Workers = SINGLE_PROCESS,
) -> RateTest:
    """Run the learning-rate test on a corpus, and write the curve to ``--out``."""
    if not workers.is_single:
        raise OptionError(
            f"--find-learning-rate is for one process, not {workers.num_workers}; start it "
            "without torchrun"
        )
    with locked(request.out):
        return _find(request, say, workers)


def _find(request: RunRequest, say: Callable[[str], None], workers: Workers) -> RateTest:
    """Prepare the corpus, run the test, and write the curve."""
    check_output_folder(request.out)
    start = read_folder(request.start_from) if request.start_from else None
    _, early = resolve_request(request, start, 0)
    if early.training.objective != "likelihood":
        raise OptionError(
            f"--objective {early.training.objective}: --find-learning-rate knows only likelihood; "
            "leave one out"
        )
    ready = prepare_corpus(request, say, workers)
    losses, has_diverged = _try_rates(ready, say)
    found = analyse_curve(losses, has_diverged=has_diverged)
    write_file(request.out / RATE_PICTURE, draw_test(found))
    write_file(request.out / RATE_FILE, json.dumps(asdict(found), indent=1))
    return found


def describe_test(found: RateTest, out: Path) -> str:
    """Describe the result of a learning-rate test."""
    last = f"{found.rates[-1]:.2g}"
    end = f"at {last} it had broken out" if found.has_diverged else f"the test ended at {last}"
    return (
        f"the loss fell fastest at a learning rate of {found.steepest:.2g} and was lowest at "
        f"{found.turning:.2g}; {end}\n"
        f"suggested: --peak-learning-rate {found.suggested:.2g} (at most "
        f"{found.turning / SAFETY:.2g})\n"
        f"the curve is in {out / RATE_PICTURE}, its numbers are in {out / RATE_FILE}"
    )


def rate_of(index: int) -> float:
    """Compute the learning rate of one update of the test."""
    return LOWEST_RATE * (HIGHEST_RATE / LOWEST_RATE) ** (index / (NUM_UPDATES - 1))


def is_diverging(losses: Sequence[float]) -> bool:
    """Tell whether the loss has diverged, so that the test should end.

    Returns
    -------
    bool
        True if the last is not finite, or the running mean is four times its lowest.
    """
    if not math.isfinite(losses[-1]):
        return True
    total, weight, means = 0.0, 0.0, []
    for loss in losses:
        total = MEMORY * total + (1 - MEMORY) * loss
        weight = MEMORY * weight + (1 - MEMORY)
        means.append(total / weight)
    return means[-1] > DIVERGED * min(means)


def analyse_curve(losses: Sequence[float], *, has_diverged: bool) -> RateTest:
    """Smooth the curve, and find its steepest and its lowest point."""
    kept = [loss for loss in losses if math.isfinite(loss)]
    rates = np.array([rate_of(index) for index in range(len(kept))])
    if len(kept) < 2:
        raise TrainingError(_never_fell("is no number from the beginning"))
    smoothed = _smooth(np.minimum(kept, HIGHEST_SEEN * kept[0]))
    lowest = int(smoothed.argmin())
    if smoothed[0] - smoothed[lowest] < LEAST_FALL * smoothed[0]:
        raise TrainingError(_never_fell(f"stays over {smoothed[lowest]:.2f}"))
    slopes = np.gradient(smoothed, np.log(rates))[: lowest + 1]
    steepest, turning = float(rates[slopes.argmin()]), float(rates[lowest])
    return RateTest(
        rates=tuple(rates.tolist()),
        losses=tuple(kept),
        smoothed=tuple(smoothed.tolist()),
        steepest=steepest,
        turning=turning,
        suggested=float(f"{min(steepest, turning / SAFETY):.2g}"),
        has_diverged=has_diverged,
    )


def draw_test(found: RateTest) -> bytes:
    """Draw the curve as a PNG."""
    import matplotlib
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "font.family": ["DejaVu Sans"], "text.color": _INK, "axes.labelcolor": _INK,
        "axes.edgecolor": _FAINT, "axes.spines.top": False, "axes.spines.right": False,
        "xtick.color": _INK, "ytick.color": _INK, "legend.frameon": False,
    }  # fmt: skip
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(7.3, 4.5), facecolor="white", layout="constrained")
        figure.suptitle(
            "Loss while the learning rate rises at every update", size=12, weight="bold"
        )
        axes = figure.subplots()
        axes.plot(found.rates, found.losses, color="#c3bfc9", linewidth=0.9, label="each update")
        axes.plot(found.rates, found.smoothed, color=_BLUE, linewidth=2, label="smoothed")
        low, high = min(found.losses), found.smoothed[0]
        axes.set_ylim(low - 0.05 * (high - low), high + 0.2 * (high - low))
        axes.set_xlim(LOWEST_RATE, HIGHEST_RATE)
        marks = [("lowest", found.turning, _INK, ":"), ("suggested", found.suggested, _ORANGE, "-")]
        if found.suggested < 0.9 * found.steepest:
            marks.insert(0, ("falls fastest", found.steepest, _INK, "--"))
        for name, rate, colour, dashes in marks:
            label = f"{name}: {rate:.2g}"
            axes.axvline(rate, color=colour, linestyle=dashes, linewidth=1.4, label=label)
        axes.set_xscale("log")
        axes.set_xlabel("learning rate")
        axes.set_ylabel("training loss (nats a subword)")
        axes.grid(color=_GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.legend(loc="lower left", fontsize=9)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


def _try_rates(ready: Prepared, say: Callable[[str], None]) -> tuple[list[float], bool]:
    """Train a new model at rising rates; return the losses and whether they diverged."""
    options, settings = ready.options, ready.options.training
    device = choose_device(settings.device)
    model = build_initial_model(options, ready.vocabularies, ready.start)
    pairs = segment_pairs(
        ready.store.train, ready.store_folder, ready.vocabularies, options, SINGLE_PROCESS
    )
    vocabulary = vocabulary_of(ready.vocabularies)
    trained, gradients, planner, _ = assemble_training(model, options, vocabulary, pairs, device)
    usual = settings.peak_learning_rate or paper_peak(
        options.model.model_dim, settings.warmup_steps
    )
    say(f"trying {NUM_UPDATES} learning rates; the recipe's peak is {usual:.2g}")
    losses: list[float] = []
    num_parts, epoch = settings.accumulate or 1, 0
    model.train()
    while True:
        for rows in planner.plan(epoch):
            update = planner.make_update(rows, num_parts)
            loss, update = compute_gradient(update, gradients, planner, trained)
            num_parts = update.num_parts
            losses.append(loss.item() / update.num_target_tokens)
            if is_diverging(losses):
                return losses, True
            if len(losses) == NUM_UPDATES:
                return losses, False
            apply_gradient(trained, settings.clip_norm, rate_of(len(losses) - 1))
        epoch += 1


def _smooth(losses: np.ndarray) -> np.ndarray:
    """Smooth with a centred Gaussian window, so that the curve is not delayed."""
    indices = np.arange(len(losses))
    weights = np.exp(-0.5 * ((indices[:, None] - indices) / WINDOW) ** 2)
    return weights @ losses / weights.sum(axis=1)


def _never_fell(how: str) -> str:
    return (
        f"--find-learning-rate: the loss {how} at every learning rate; give a higher "
        "--batch-tokens, or see whether the corpus can be learnt"
    )
