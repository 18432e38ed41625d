"""Put together what trains a model: objective, optimiser, gradients and batches."""

import copy
from typing import NamedTuple

import torch
from torch import nn

from dragoman.data.segmentation.segmentation import SegmentedPairs
from dragoman.data.store.store import PairStore
from dragoman.models.build import Model
from dragoman.models.interface import Vocabulary
from dragoman.training.checkpoints.checkpoint import SINGLE_PROCESS, TrainingState
from dragoman.training.configuration import RunOptions
from dragoman.training.objectives.loss import make_training_step
from dragoman.training.optimisers.optimiser import build_average, build_optimiser
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.distributed import Workers
from dragoman.training.updates.gradients import Gradients
from dragoman.training.updates.sharding import shard_step
from dragoman.training.updates.update_planner import UpdatePlanner, prepare_updates


class Assembly(NamedTuple):
    """What makes updates: the state they change, the gradients and the batches.

    `full_model` is the model itself, or where its weights are sharded a copy on the first worker.
    """

    trained: TrainingState
    gradients: Gradients
    planner: UpdatePlanner
    full_model: nn.Module | None


def assemble_training(
    model: Model,
    options: RunOptions,
    vocabulary: Vocabulary,
    pairs: PairStore | SegmentedPairs,
    device: torch.device,
    workers: Workers = SINGLE_PROCESS,
) -> Assembly:
    """Move a model to a device, or shard it, and make all that its updates need."""
    settings = options.training
    step = make_training_step(model, settings, vocabulary, options.model.max_length)
    full_model: nn.Module | None = model
    if settings.parallel == "shard" and not workers.is_single:
        full_model = copy.deepcopy(model) if workers.is_first else None
        shard_step(step, workers, device)
    else:
        step.to(device)
    trained = make_training_state(model, settings)
    gradients, planner = prepare_updates(
        step,
        pairs,
        options,
        vocabulary.pad_id,
        device,
        workers=workers,
        is_whole=full_model is model,
    )
    return Assembly(trained, gradients, planner, full_model)


def make_training_state(model: nn.Module, settings: TrainingOptions) -> TrainingState:
    """Make the optimiser and the average of a model, on the device where its weights are."""
    average = build_average(model, settings)
    optimiser = build_optimiser(model, settings, average)
    return TrainingState(model=model, optimiser=optimiser, average=average)
