"""Choose model size, batch and schedule for a time budget, from speed measured on this machine."""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from dragoman.data.prefetch import prefetched
from dragoman.data.store.store import Store
from dragoman.data.workers import count_cores
from dragoman.decoding.device import choose_device
from dragoman.errors import OptionError
from dragoman.models.build import build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.options import OFF, Plain
from dragoman.presets import AUTO
from dragoman.training.assembly import Assembly, assemble_training
from dragoman.training.budget.budget_recipe import (
    ENOUGH_TOKENS,
    FEW_PAIRS,
    LARGEST_FOR_FEW_PAIRS,
    LONGEST_WARMUP,
    MOST_PASSES,
    SHAPES,
    TOKENS_PER_PARAMETER,
    WARMUP_SHARE,
    Shape,
    choose_batch,
    choose_regularisation,
    make_recipe,
)
from dragoman.training.budget.time_budget import finishing_seconds
from dragoman.training.configuration import RunOptions
from dragoman.training.options import ENDING_SCHEDULES, TrainingOptions
from dragoman.training.updates.gradient_accumulation import apply_gradient
from dragoman.training.updates.gradients import precision_context
from dragoman.training.updates.memory_estimate import estimate_run_memory

DEFAULT_CPU_MINUTES = 60.0
"""The time budget of a run on a CPU if the user gives no limit."""


FEWEST_VALIDATIONS, MOST_VALIDATIONS = 3, 10
VALIDATION_COST = 10.0
"""Cost of translating a validation token, relative to training on one token."""
_TRIAL: Plain = {"max_steps": 4000, "warmup_steps": 100}
"""A placeholder schedule, valid with every preset, until the plan has chosen one."""
WARM_UPDATES, LEAST_TIMED, TIMED_SECONDS = 4, 4, 1.5


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Options chosen for a time budget, with the expected speed, memory and passes.

    Parameters
    ----------
    recipe : dict[str, Any]
        The options that the plan sets, by section.
    options : RunOptions
        All options: the plan's, and over them what the user said.
    seconds : float
        What the run takes from start to finished model, preparation included.
    tokens_per_second : float
        Measured.
    parameters : int
        Of the model.
    memory : int
        Bytes, estimated.
    passes : float
        Over the corpus.
    """

    recipe: Plain
    options: RunOptions
    seconds: float
    tokens_per_second: float
    parameters: int
    memory: int
    passes: float


def find_budget(
    preset: str, said: Mapping[str, Any], *, has_accelerator: bool, starts_anew: bool
) -> float | None:
    """Return the time budget for which a run is planned, if any.

    Returns
    -------
    float | None
        ``max_minutes``, or on a CPU the default; None where the user gives another limit or
        schedule, an objective or a start that the plan does not know, or where on a GPU nobody
        spoke of minutes.
    """
    training = said.get("training", {})
    others = ("max_epochs", "patience")
    has_limit = any(training.get(name) not in (None, OFF) for name in others)
    has_limit |= "max_steps" in training  # even if off: a planned schedule needs an end
    is_other = training.get("schedule", "cosine") not in ENDING_SCHEDULES or (
        training.get("optimiser") == "schedule-free" or training.get("objective") == "reward"
    )
    if has_limit or is_other or not starts_anew:
        return None
    minutes = training.get("max_minutes")
    if minutes not in (None, OFF):
        return float(minutes)
    family = said.get("model", {}).get("family", TransformerOptions().family)
    is_default = preset == AUTO and family == TransformerOptions().family
    return DEFAULT_CPU_MINUTES if is_default and not has_accelerator and minutes is None else None


def make_plan(
    resolve: Callable[[Plain], RunOptions],
    store: Store,
    vocabulary: Vocabulary,
    minutes: float,
    *,
    may_choose_size: bool,
    elapsed: float,
) -> Plan:
    """Choose model size, batch size, dropout and schedule for the rest of a time budget.

    Notes
    -----
    Candidates are timed from the smallest on, for a second or two each, until the next one would
    see fewer than three tokens for each of its parameters.
    """
    bench = _CandidateTimer(store, vocabulary, minutes, elapsed, resolve)
    if not may_choose_size:
        return bench.plan({})
    largest = len(SHAPES)
    if len(store.train) < FEW_PAIRS:
        largest = LARGEST_FOR_FEW_PAIRS + 1
    smallest, *others = _list_candidates(resolve, SHAPES[:largest])
    chosen = bench.plan(make_recipe(smallest))
    for shape in others:
        parameters = _count(resolve(make_recipe(shape)), vocabulary)
        foreseen = chosen.tokens_per_second * chosen.parameters / parameters
        if bench.tokens_after(foreseen) < 0.8 * TOKENS_PER_PARAMETER * parameters:
            break
        plan = bench.plan(make_recipe(shape))
        tokens = plan.options.training.max_steps * plan.options.training.batch_tokens  # type: ignore[operator]
        if tokens < TOKENS_PER_PARAMETER * plan.parameters:
            break
        chosen = plan
    return chosen


def _list_candidates(
    resolve: Callable[[Plain], RunOptions], shapes: Sequence[Shape]
) -> list[Shape]:
    """List one shape for each distinct model: of several that the user made equal, the nearest.

    So a model whose shape the user gave is timed once, and gets the learning rate of its width.
    """
    found: dict[object, Shape] = {}
    for shape in shapes:
        try:
            model = resolve(make_recipe(shape)).model
        except OptionError:  # the number of heads does not divide the width set by the user
            continue
        width = getattr(model, "model_dim", shape.model_dim)
        known = found.get(model)
        if known is None or abs(shape.model_dim - width) < abs(known.model_dim - width):
            found[model] = shape
    return list(found.values()) or [shapes[0]]  # that one tells what is wrong


def describe_plan(plan: Plan, budget: float, *, is_default: bool) -> list[str]:
    """Describe the plan in lines for the terminal."""
    from dragoman.training.log import format_time

    training, model = plan.options.training, plan.options.model
    device = choose_device(training.device)
    where = f"{count_cores()} cores" if device.type == "cpu" else "one GPU"
    shape: str = model.family
    if isinstance(model, TransformerOptions):
        layers = f"{model.num_encoder_layers}+{model.num_decoder_layers} layers"
        shape = f"{layers} of width {model.model_dim}"
    passes = f"{plan.passes:.0f}" if plan.passes >= 10 else f"{plan.passes:.1f}"
    twice = ", each pair read twice (R-Drop)" if training.consistency == "r-drop" else ""
    lines = [
        f"plan: {where}: {shape} ({plan.parameters / 1e6:.1f} million parameters), "
        f"{training.max_steps:,} updates of {training.batch_tokens:,} tokens in "
        f"{_precision_name(training, device)}, {passes} passes over the corpus{twice}",
        f"plan: {plan.tokens_per_second:,.0f} tokens/s here, {plan.memory / 1e9:.1f} GB; about "
        f"{format_time(plan.seconds)} in all",
    ]
    if is_default:
        lines.append(
            f"plan: made for {budget:g} minutes, as none were given; --max-minutes 15 is less, "
            f"--max-minutes {4 * budget:g} more"
        )
    elif plan.seconds < 0.8 * 60 * budget:
        lines.append("plan: longer training on this corpus is not known to help")
    return lines


class _CandidateTimer:
    """Times updates of candidate models, and plans a run for each."""

    def __init__(
        self,
        store: Store,
        vocabulary: Vocabulary,
        minutes: float,
        elapsed: float,
        resolve: Callable[[Plain], RunOptions],
    ) -> None:
        self._store, self._vocabulary, self._resolve = store, vocabulary, resolve
        self._minutes, self._elapsed = minutes, elapsed
        self._began = time.monotonic()
        self._corpus_tokens = store.train.num_tokens
        wanted = min(MOST_VALIDATIONS, round(minutes))
        self._num_validations = max(FEWEST_VALIDATIONS, wanted)
        self._validated = self._num_validations * VALIDATION_COST * store.valid.num_tokens

    def tokens_after(self, tokens_per_second: float) -> float:
        """Estimate the training tokens that fit the remaining time, less validations."""
        spent = self._elapsed + time.monotonic() - self._began
        budget = 60 * self._minutes
        left = budget - spent - finishing_seconds(budget)
        trained = max(left, 0.2 * budget) * tokens_per_second
        return max(trained - self._validated, 0.5 * trained)

    def plan(self, recipe: Plain) -> Plan:
        """Time one candidate, and plan a run of it that fits the budget."""
        options = self._resolve(_merge(recipe, {"batch_tokens": 4000} | _TRIAL))
        speed = self._measure(options)
        tokens = self.tokens_after(speed)
        passes = tokens / self._corpus_tokens
        training: Plain = {}
        if recipe:
            dropout, training = choose_regularisation(passes)
            recipe = {**recipe, "model": recipe["model"] | {"dropout": dropout}}
        consistent = self._resolve(_merge(recipe, training | _TRIAL))
        is_consistent = consistent.training.consistency != "none"
        if is_consistent and options.training.consistency == "none":
            speed = self._measure(consistent)
            tokens = self.tokens_after(speed)
        needed = max(MOST_PASSES * self._corpus_tokens, ENOUGH_TOKENS)
        tokens = min(tokens, needed)
        if recipe:
            training["batch_tokens"] = choose_batch(tokens)
        batch = self._resolve(_merge(recipe, training | _TRIAL)).training.batch_tokens
        updates = max(2, round(tokens / batch))
        every = max(1, math.ceil(updates / self._num_validations))
        training |= {
            "schedule": "cosine",
            "max_steps": updates,
            "max_minutes": self._minutes,
            "max_epochs": OFF,
            "patience": OFF,
            "warmup_steps": max(1, min(LONGEST_WARMUP, round(WARMUP_SHARE * updates))),
            "validate_every": every,
            "average_checkpoints": 1,
            "log_every": max(1, min(50, every)),
        }
        recipe = _merge(recipe, training)
        chosen = self._resolve(recipe)
        seconds = self._elapsed + time.monotonic() - self._began
        seconds += (updates * batch + self._validated) / speed
        seconds += finishing_seconds(60 * self._minutes)
        device = choose_device(chosen.training.device)
        return Plan(
            recipe=recipe,
            options=chosen,
            seconds=seconds,
            tokens_per_second=speed,
            parameters=_count(chosen, self._vocabulary),
            memory=estimate_run_memory(chosen, self._vocabulary, device).total,
            passes=updates * batch / self._corpus_tokens,
        )

    def _measure(self, options: RunOptions) -> float:
        """Measure the training speed of a model in tokens per second."""
        settings = options.training
        device = choose_device(settings.device)
        with torch.random.fork_rng():
            torch.manual_seed(settings.seed)
            model = build_model(options.model, self._vocabulary).train()
            parts = assemble_training(model, options, self._vocabulary, self._store.train, device)
            return _time_updates(parts, settings.clip_norm)


def _time_updates(parts: Assembly, clip_norm: float | None) -> float:
    """Time real training updates; return tokens per second."""
    rates, spent, started = [], 0.0, time.perf_counter()
    planner = parts.planner
    made = (planner.make_update(rows, 1) for epoch in count() for rows in planner.plan(epoch))
    for index, update in enumerate(prefetched(made)):
        parts.gradients(update.batches, update.num_target_tokens)
        apply_gradient(parts.trained, clip_norm)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        if index >= WARM_UPDATES:
            spent += now - started
            rates.append(sum(batch.num_tokens for batch in update.batches) / (now - started))
        started = now
        if len(rates) >= LEAST_TIMED and spent > TIMED_SECONDS:
            break
    return statistics.median(rates)


def _merge(recipe: Plain, training: Plain) -> Plain:
    return {**recipe, "training": recipe.get("training", {}) | training}


def _count(options: RunOptions, vocabulary: Vocabulary) -> int:
    with torch.device("meta"):
        return count_parameters(build_model(options.model, vocabulary))


def _precision_name(training: TrainingOptions, device: torch.device) -> str:
    is_half = not isinstance(precision_context(training, device), nullcontext)
    return "bfloat16" if is_half else "float32"
