"""Divided models: every family computes the same, and files show nothing of it.

One process divides among itself alone here, which takes all the ways of many; that many agree is
shown with the other tests of several processes.
"""

import copy

import pytest
import torch
from tests.models.variants import ALL, ALL_BY_TURNS
from torch import distributed, nn
from torch.distributed import HashStore

from dragoman.data.batches import flatten, make_batch
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.training.checkpoints.checkpoint import (
    Progress,
    TrainingState,
    restore_checkpoint,
    save_checkpoint,
)
from dragoman.training.objectives.loss import make_training_step
from dragoman.training.optimisers.optimiser import MovingAverage, build_average, build_optimiser
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.distributed import Workers
from dragoman.training.updates.sharding import (
    gather_full,
    gathered_model,
    local_shard,
    shard_like,
    shard_step,
)
from dragoman.weights import weights_of

VOCABULARY = Vocabulary(30, 30, 2, 0)
CPU = torch.device("cpu")
SINGLE_PROCESS = Workers()


@pytest.fixture(scope="module", autouse=True)
def group():
    """A group of one process, in which rounding is too small for Adam's first step to magnify."""
    distributed.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
    distributed.destroy_process_group()


def batch_of(seed=0):
    chance = torch.Generator().manual_seed(seed)
    sides = [
        flatten([torch.randint(3, 30, (n,), generator=chance).tolist() for n in counts])
        for counts in ((4, 7, 3), (5, 6, 2))
    ]
    return make_batch(*sides, VOCABULARY.pad_id)


def divided_and_whole(name="transformer", objective="likelihood", **more):
    options = TrainingOptions(objective=objective, reward_samples=2, clip_norm=0.5, **more)
    torch.manual_seed(1)
    model = build_model(ALL[name], VOCABULARY)
    twin = copy.deepcopy(model)
    steps = [make_training_step(each, options, VOCABULARY, 20) for each in (model, twin)]
    shard_step(steps[0], SINGLE_PROCESS, CPU)
    averages = [build_average(each, options) or MovingAverage(each, 0.9) for each in (model, twin)]
    trained = [
        TrainingState(
            model=each, optimiser=build_optimiser(each, options, average), average=average
        )
        for each, average in zip((model, twin), averages, strict=True)
    ]
    return list(zip(steps, trained, strict=True))


def update(step, trained, seed):
    for group in trained.optimiser.param_groups:
        group["lr"] = 0.01
    for part in (0, 1):
        torch.manual_seed(seed)
        (step(batch_of(seed + part)) / 20).backward()
    torch.nn.utils.clip_grad_norm_(trained.model.parameters(), 0.5)
    trained.optimiser.step()
    trained.optimiser.zero_grad(set_to_none=True)
    trained.average.update(1)


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], atol=1e-8, rtol=0, msg=name)


@pytest.mark.parametrize("name", ALL_BY_TURNS)
def test_every_family_computes_the_same(name):
    (step, divided), (twin_step, whole) = divided_and_whole(name)
    before = {key: each.clone() for key, each in weights_of(whole.model).items()}
    update(step, divided, seed=3)
    update(twin_step, whole, seed=3)
    assert_same(gather_full(weights_of(divided.model), SINGLE_PROCESS), weights_of(whole.model))
    assert_same(gather_full(divided.average.weights, SINGLE_PROCESS), whole.average.weights)
    assert any(not torch.equal(before[key], each) for key, each in weights_of(whole.model).items())


def test_training_for_reward_computes_the_same():
    (step, divided), (twin_step, whole) = divided_and_whole(objective="reward")
    update(step, divided, seed=3)
    update(twin_step, whole, seed=3)
    assert_same(gather_full(weights_of(divided.model), SINGLE_PROCESS), weights_of(whole.model))


@pytest.mark.parametrize("chosen", [{}, {"optimiser": "schedule-free", "schedule": "constant"}])
def test_checkpoints_are_whole_and_go_both_ways(tmp_path, chosen):
    (step, divided), (twin_step, whole) = divided_and_whole(**chosen)
    update(step, divided, seed=3)
    path = save_checkpoint(tmp_path, divided, Progress(step=1), validate_every=1, keep=1)
    restore_checkpoint(path, whole)
    update(step, divided, seed=5)
    update(twin_step, whole, seed=5)
    assert_same(gather_full(weights_of(divided.model), SINGLE_PROCESS), weights_of(whole.model))
    path = save_checkpoint(tmp_path, whole, Progress(step=2), validate_every=1, keep=1)
    update(step, divided, seed=7)
    restore_checkpoint(path, divided)
    update(step, divided, seed=9)
    update(twin_step, whole, seed=9)
    assert_same(gather_full(weights_of(divided.model), SINGLE_PROCESS), weights_of(whole.model))
    assert_same(gather_full(divided.average.weights, SINGLE_PROCESS), whole.average.weights)


def test_the_copy_for_validation_is_filled():
    (step, divided), (_, whole) = divided_and_whole()
    update(step, divided, seed=3)
    with gathered_model(divided.model, whole.model, SINGLE_PROCESS, CPU):
        assert_same(gather_full(weights_of(divided.model), SINGLE_PROCESS), weights_of(whole.model))
    with gathered_model(divided.model, None, SINGLE_PROCESS, CPU):  # as on the other workers
        pass
    with gathered_model(whole.model, whole.model, SINGLE_PROCESS, CPU):
        pass


def test_what_is_not_divided_stays_as_it_is():
    weight = nn.Parameter(torch.ones(3))
    value = torch.arange(3.0)
    assert local_shard(weight) is weight
    assert shard_like(value, weight) is value
    assert gather_full({"a": value}, SINGLE_PROCESS)["a"] is value


def test_only_the_first_worker_gets_the_whole():
    (_, divided), _ = divided_and_whole()
    tensors = weights_of(divided.model) | {"plain": torch.ones(1)}
    assert gather_full(tensors, Workers(rank=1, num_workers=2)).keys() == {"plain"}
    share = local_shard(next(divided.model.parameters()))
    assert type(share) is torch.Tensor
