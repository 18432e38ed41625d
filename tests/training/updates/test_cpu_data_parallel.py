"""Gradients computed by several threads: those of one thread, the same every time."""

import numpy as np
import pytest
import torch
from torch import Tensor

from dragoman.data.batches import Batch, flatten, make_batch
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import Seq2seqOptions
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.cpu_data_parallel import ThreadedGradients, batched, count_threads
from dragoman.training.updates.gradients import Gradients

PAD = 2
SHAPE = {
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "model_dim": 16,
    "feed_forward_dim": 32,
    "num_heads": 2,
}
CPU = torch.device("cpu")


def make_pairs(num_pairs: int) -> Batch:
    random = np.random.default_rng(num_pairs)
    sides = [
        flatten(
            [
                [*random.integers(3, 40, random.integers(0, 20)).tolist(), 0]
                for _ in range(num_pairs)
            ]
        )
        for _ in range(2)
    ]
    return make_batch(*sides, PAD)


def make_step(dropout: float) -> TrainingStep:
    torch.manual_seed(1)
    options = TransformerOptions(**SHAPE, dropout=dropout)
    model = build_model(options, Vocabulary(40, 40, PAD, 0)).double().train()
    return TrainingStep(model, 0.1)


def compute(step: TrainingStep, batches: list[Batch], num_threads: int) -> tuple[Tensor, Tensor]:
    step.zero_grad(set_to_none=True)
    gradients = Gradients(step, TrainingOptions(), CPU, num_threads=num_threads)
    loss = gradients(batches, 100)
    flat = [each.grad.flatten() for each in step.parameters() if each.grad is not None]
    return loss, torch.cat(flat)


@pytest.mark.parametrize("num_batches", [1, 2, 3, 7])
@pytest.mark.parametrize("num_threads", [2, 3])
def test_equals_one_thread(num_batches: int, num_threads: int) -> None:
    step = make_step(dropout=0.0)
    batches = [make_pairs(3 + each) for each in range(num_batches)]
    expected, found = compute(step, batches, 1), compute(step, batches, num_threads)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_same_seed_same_gradient_to_the_last_bit() -> None:
    step = make_step(dropout=0.3)
    found = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        found.append(compute(step, [make_pairs(40), make_pairs(9)], 3))
    assert torch.equal(found[0][1], found[1][1])
    assert torch.equal(found[0][0], found[1][0])
    assert not torch.equal(found[0][1], found[2][1])


def test_threads_drop_differently() -> None:
    step = make_step(dropout=0.3)
    batch = make_pairs(1)
    seen: list[float] = []

    def compute_loss(share: Batch) -> Tensor:
        loss = step(share)
        seen.append(float(loss.detach()))
        return loss

    ThreadedGradients(compute_loss, list(step.parameters()), 2)([batch, batch], 1.0)
    assert len(seen) == 2
    assert seen[0] != seen[1]


def test_a_later_batch_is_added() -> None:
    step = make_step(dropout=0.0)
    both = compute(step, [make_pairs(6), make_pairs(7)], 2)[1]
    alone = [compute(step, [make_pairs(num_pairs)], 2)[1] for num_pairs in (6, 7)]
    torch.testing.assert_close(both, alone[0] + alone[1])


def test_an_error_in_a_thread_is_raised_and_the_threads_are_as_before() -> None:
    step = make_step(dropout=0.0)

    def fail(_: Batch) -> Tensor:
        raise torch.OutOfMemoryError("no memory")

    num_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        with pytest.raises(torch.OutOfMemoryError, match="no memory"):
            ThreadedGradients(fail, list(step.parameters()), 2)([make_pairs(4)], 1.0)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(num_threads)


def test_batches_are_taken_so_many_at_a_time() -> None:
    batches = [make_pairs(each) for each in range(1, 6)]
    taken = list(batched(batches, 2))
    assert [len(each) for each in taken] == [2, 2, 1]
    assert [batch for some in taken for batch in some] == batches


def test_only_transformers_on_a_cpu_take_several_threads() -> None:
    transformer, likelihood = TransformerOptions(**SHAPE), TrainingOptions()
    num_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert count_threads(transformer, likelihood, CPU) == 2
        assert count_threads(transformer, likelihood, torch.device("cuda")) == 1
        assert count_threads(transformer, TrainingOptions(objective="reward"), CPU) == 1
        assert count_threads(TransformerOptions(**SHAPE, norm="batch"), likelihood, CPU) == 1
        assert count_threads(TransformerOptions(**SHAPE, num_experts=4), likelihood, CPU) == 1
        assert count_threads(Seq2seqOptions(), likelihood, CPU) == 1
        torch.set_num_threads(1)
        assert count_threads(transformer, likelihood, CPU) == 1
    finally:
        torch.set_num_threads(num_threads)
