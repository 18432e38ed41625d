"""Gradients are those of the summed loss, however they are computed."""

import os

import numpy as np
import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.data.packing import Capacity, pack
from dragoman.kernels import language
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import Seq2seqOptions
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.gradients import Gradients, can_pack, precision_context

PAD = 2
SHAPE = {
    "num_encoder_layers": 1, "num_decoder_layers": 1, "model_dim": 32, "feed_forward_dim": 64,
    "num_heads": 2,
}  # fmt: skip


def make_step(dropout=0.0, device="cpu"):
    torch.manual_seed(1)
    model = build_model(TransformerOptions(**SHAPE, dropout=dropout), Vocabulary(50, 50, PAD, 0))
    return TrainingStep(model.to(device), 0.1).train()


def make_pairs(seed):
    random = np.random.default_rng(seed)
    return [
        flatten([random.integers(3, 50, length).tolist() for length in random.integers(1, 20, 6)])
        for _ in range(2)
    ]


def packed(seed):
    return pack(*make_pairs(seed), PAD, Capacity(128, 128, 20))


def take(step):
    """The gradients, which are gone from the weights afterwards."""
    found = [each.grad.clone() for each in step.parameters()]
    for each in step.parameters():
        each.grad = None
    return found


@pytest.mark.parametrize("is_packed", [True, False])
def test_gradients_of_several_batches_are_added(is_packed):
    step = make_step()
    gradients = Gradients(step, TrainingOptions(), torch.device("cpu"))
    batches = [packed(seed) if is_packed else make_batch(*make_pairs(seed), PAD) for seed in (1, 2)]
    count = sum(batch.num_target_tokens for batch in batches)
    losses = [gradients([batch], count) for batch in batches]
    found = take(step)
    expected = sum(step(batch) for batch in batches) / count
    expected.backward()
    torch.testing.assert_close(sum(losses) / count, expected.detach())
    torch.testing.assert_close(found, take(step))


def test_kernels_in_the_interpreter_train_as_pytorch_does(monkeypatch):
    if not language.has_triton or os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("Triton's interpreter is off")
    step = make_step()
    gradients = Gradients(step, TrainingOptions(), torch.device("cpu"))
    batch = packed(1)
    expected, grads = gradients([batch], 10), take(step)
    monkeypatch.setattr(language, "uses_kernels", lambda _: True)
    torch.testing.assert_close(gradients([batch], 10), expected)
    torch.testing.assert_close(take(step), grads, rtol=1e-4, atol=1e-5)


def test_kernels_can_be_switched_off():
    seen = []

    class Step(torch.nn.Linear):
        def forward(self, _batch):
            seen.append(language._switched_off.get())
            return self.weight.sum()

    for kernels in ("auto", "off"):
        options = TrainingOptions(kernels=kernels)
        Gradients(Step(2, 2), options, torch.device("cpu"))([make_batch(*make_pairs(1), PAD)], 1)
    assert seen == [False, True]
    assert not language._switched_off.get()


def test_packing_is_for_transformers_on_a_gpu_with_triton_or_a_cpu_with_numba(monkeypatch):
    monkeypatch.setattr("dragoman.training.updates.gradients.has_triton", True)
    gpu, options, model = torch.device("cuda"), TrainingOptions(), TransformerOptions()
    assert can_pack(model, options, gpu)
    for can_compile in (True, False):
        monkeypatch.setattr(
            "dragoman.training.updates.gradients.can_compile", lambda can=can_compile: can
        )
        assert can_pack(model, options, torch.device("cpu")) is can_compile
    assert not can_pack(model, options, torch.device("mps"))
    assert not can_pack(Seq2seqOptions(), options, gpu)
    assert not can_pack(TransformerOptions(positions="alibi"), options, gpu)
    assert not can_pack(model, TrainingOptions(kernels="off"), gpu)
    assert not can_pack(model, TrainingOptions(objective="reward"), gpu)
    monkeypatch.setattr("dragoman.training.updates.gradients.has_triton", False)
    assert not can_pack(model, options, gpu)


def test_precision():
    cpu = torch.device("cpu")
    with precision_context(TrainingOptions(precision="bfloat16"), cpu):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    with precision_context(TrainingOptions(), cpu):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.mark.gpu
class TestCapture:
    """What is captured must do what the same operations do one by one."""

    def test_replayed_gradients_are_those_of_the_operations(self):
        gpu = torch.device("cuda")
        step = make_step(device=gpu)
        options = TrainingOptions()
        one_by_one = Gradients(step, options, gpu, captures=False)
        captured = Gradients(step, options, gpu)
        for seed in (1, 2, 3):
            batch = packed(seed)
            expected, grads = one_by_one([batch], 100), take(step)
            torch.testing.assert_close(captured([batch], 100), expected)
            torch.testing.assert_close(take(step), grads)

    def test_replayed_gradients_are_added(self):
        gpu = torch.device("cuda")
        step = make_step(device=gpu)
        captured = Gradients(step, TrainingOptions(), gpu)
        grads = []
        for seed in (1, 2, 3):
            captured([packed(seed)], 100)
            grads.append(take(step))
        for seed in (1, 2, 3):
            captured([packed(seed)], 100)
        expected = [sum(each) for each in zip(*grads, strict=True)]
        torch.testing.assert_close(take(step), expected)

    def test_dropout_differs_between_replays_and_a_seed_repeats_it(self):
        gpu = torch.device("cuda")
        step = make_step(dropout=0.3, device=gpu)
        captured = Gradients(step, TrainingOptions(), gpu)
        captured([packed(1)], 1)
        torch.manual_seed(5)
        first = [captured([packed(1)], 1).item() for _ in range(3)]
        torch.manual_seed(5)
        again = [captured([packed(1)], 1).item() for _ in range(3)]
        assert len(set(first)) == 3
        assert first == again

    def test_capturing_draws_no_random_numbers(self):
        gpu = torch.device("cuda")
        step = make_step(dropout=0.3, device=gpu)
        losses = []
        for warm in (False, True):
            captured = Gradients(step, TrainingOptions(), gpu)
            if warm:
                captured([packed(2)], 1)
            torch.manual_seed(5)
            losses.append(captured([packed(1)], 1).item())
        assert losses[0] == losses[1]

    def test_another_shape_is_another_graph_and_many_are_computed_one_by_one(self):
        gpu = torch.device("cuda")
        step = make_step(device=gpu)
        captured = Gradients(step, TrainingOptions(), gpu)
        expected = Gradients(step, TrainingOptions(), gpu, captures=False)([packed(1)], 10)
        for room in (128, 256, 384, 512, 640, 768):
            batch = pack(*make_pairs(1), PAD, Capacity(room, 128, 20))
            torch.testing.assert_close(captured([batch], 10), expected, rtol=1e-3, atol=1e-3)
        assert len(captured._graphs) == 4
        captured.forget()
        assert not captured._graphs
