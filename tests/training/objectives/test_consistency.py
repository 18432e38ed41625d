"""Training for consistency: its value, its gradient, every family, packed and in shares."""

from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file
from tests.models import contract
from tests.models.variants import FAMILIES, transformer
from torch.nn import functional

from dragoman.data.batches import flatten
from dragoman.data.packing import Capacity, pack
from dragoman.errors import OptionError
from dragoman.models.build import build_model
from dragoman.training.checkpoints.checkpoint import list_checkpoints
from dragoman.training.objectives.consistency import ConsistencyStep
from dragoman.training.objectives.loss import TrainingStep, make_training_step
from dragoman.training.objectives.token_cutoff import cut_off_tokens
from dragoman.training.options import TrainingOptions
from dragoman.training.run import resume_run
from dragoman.training.updates.cpu_data_parallel import count_threads
from dragoman.training.updates.gradients import Gradients
from dragoman.training.updates.memory_estimate import estimate_memory

PAD = contract.VOCABULARY.pad_id
R_DROP = TrainingOptions(consistency="r-drop", consistency_weight=5.0)
SIMCUT = TrainingOptions(consistency="simcut", cutoff=0.3)
BOTH = pytest.mark.parametrize("options", [R_DROP, SIMCUT], ids=["r-drop", "simcut"])
CPU = torch.device("cpu")


def make_model(dropout=0.3, **changes):
    torch.manual_seed(7)
    return build_model(transformer(dropout=dropout, **changes), contract.VOCABULARY).double()


def pairs(count=6):
    return contract.batch_of(contract.make_pairs(count, seed=4))


def predict(model, batch, targets):
    """Predictions of the real target tokens, without the padding's column."""
    is_word = torch.arange(contract.VOCABULARY.target_size) != PAD
    logits = model.output(model.forward(batch).hidden)[..., is_word]
    return logits[targets.is_token].log_softmax(-1)


def divergence(log_p, log_q):
    return functional.kl_div(log_q, log_p, log_target=True, reduction="sum")


@BOTH
def test_value_and_gradient_are_those_of_the_published_formula(options):
    model, batch = make_model(), pairs()
    weight, second_share = options.consistency_weight, 0.0
    if options.consistency == "simcut":
        second_share = options.cutoff
    torch.manual_seed(1)
    loss = make_training_step(model, options, contract.VOCABULARY, None)(batch)
    ours = torch.autograd.grad(loss, list(model.parameters()))
    torch.manual_seed(1)
    log_p = predict(model, batch, batch.target)
    log_q = predict(model, cut_off_tokens(batch, second_share, PAD), batch.target)
    words = batch.target.ids[batch.target.is_token]
    places = words - (words > PAD).long()
    entropies = [
        functional.cross_entropy(each, places, label_smoothing=0.1, reduction="sum")
        for each in (log_p, log_q)
    ]
    if options.consistency == "r-drop":
        apart = (divergence(log_p, log_q) + divergence(log_q, log_p)) / 2
        expected = (sum(entropies) + weight * apart) / 2
    else:
        expected = entropies[0] + weight * divergence(log_p, log_q)
    torch.testing.assert_close(loss, expected)
    theirs = torch.autograd.grad(expected, list(model.parameters()))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_two_equal_readings_cost_what_one_does():
    model, batch = make_model(dropout=0.0), pairs()
    expected = TrainingStep(model, 0.1)(batch)
    torch.testing.assert_close(ConsistencyStep(model, R_DROP)(batch), expected)
    uncut = replace(SIMCUT, cutoff=0.0)
    torch.testing.assert_close(ConsistencyStep(model, uncut)(batch), expected)
    torch.testing.assert_close(ConsistencyStep(model, SIMCUT).eval()(batch), expected)
    assert ConsistencyStep(model, SIMCUT).train()(batch) > expected


def test_ordinary_cut_off_is_drawn_for_each_reading():
    model, batch = make_model(dropout=0.0), pairs()
    options = replace(R_DROP, token_cutoff=0.3, label_smoothing=0.0)
    one = ConsistencyStep(model, replace(options, consistency_weight=0.0))
    torch.manual_seed(1)
    plain = one(batch)
    torch.manual_seed(1)
    assert ConsistencyStep(model, options)(batch) > plain


@BOTH
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_trained_for_it(name, options):
    torch.manual_seed(7)
    model = build_model(FAMILIES[name], contract.VOCABULARY).train()
    loss = make_training_step(model, options, contract.VOCABULARY, None)(pairs())
    loss.backward()
    assert loss.isfinite()
    assert all(each.grad is None or each.grad.isfinite().all() for each in model.parameters())
    assert not model.output.words.grad[PAD].any()


def test_the_loss_of_the_family_is_the_mean_of_both_readings():
    torch.manual_seed(7)
    model = build_model(FAMILIES["moe"], contract.VOCABULARY).train()
    batch = pairs()
    options = replace(R_DROP, consistency_weight=0.0)
    torch.manual_seed(1)
    found = ConsistencyStep(model, options)(batch)
    torch.manual_seed(1)
    step = TrainingStep(model, 0.1)
    torch.testing.assert_close(found, (step(batch) + step(batch)) / 2)


def test_packed_pairs_cost_what_padded_ones_do():
    model, batch = make_model(dropout=0.0), pairs()
    sources, targets = zip(*contract.make_pairs(6, seed=4), strict=True)
    packed = pack(flatten(sources), flatten(targets), PAD, Capacity(128, 128, 16))
    step = ConsistencyStep(model, R_DROP)
    torch.testing.assert_close(step(packed), step(batch))
    cut = ConsistencyStep(model, SIMCUT)
    torch.manual_seed(3)
    loss = cut(packed)
    assert loss > step(batch)
    loss.backward()
    assert all(each.grad.isfinite().all() for each in model.parameters())


@BOTH
def test_nothing_waits_for_a_number(options):
    """Without numbers there is nothing to wait for, and no shape that could depend on them."""
    with torch.device("meta"):
        model = build_model(transformer(dropout=0.1), contract.VOCABULARY)
    sources, targets = zip(*contract.make_pairs(6, seed=4), strict=True)
    packed = pack(flatten(sources), flatten(targets), PAD, Capacity(128, 128, 16))
    step = ConsistencyStep(model, replace(options, token_cutoff=0.1))
    for batch in (packed, pairs()):
        loss = step(batch.to(torch.device("meta")))
        loss.backward()
        assert loss.shape == ()


@pytest.mark.gpu
@BOTH
def test_captured_gradients_are_drawn_anew_and_repeated_by_a_seed(options):
    gpu = torch.device("cuda")
    model = make_model(attention_dropout=0.1, activation_dropout=0.1).float().to(gpu)
    step = ConsistencyStep(model, options)
    sources, targets = zip(*contract.make_pairs(6, seed=4), strict=True)
    packed = pack(flatten(sources), flatten(targets), PAD, Capacity(128, 128, 16))
    gradients = Gradients(step, options, gpu)
    found = []
    for seed in (1, None, 1):
        if seed is not None:
            torch.cuda.manual_seed(seed)
        step.zero_grad(set_to_none=True)
        found.append(float(gradients([packed], 30)))
        assert all(each.grad.isfinite().all() for each in model.parameters())
    assert found[0] == found[2]
    assert found[0] != found[1]


@BOTH
def test_threads_draw_the_same_numbers_every_time(options, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert count_threads(transformer(), options, CPU) == 3
    monkeypatch.undo()
    step = ConsistencyStep(make_model(), options)
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        step.zero_grad(set_to_none=True)
        losses = Gradients(step, options, CPU, num_threads=3)([pairs(20), pairs(7)], 100)
        grads = [each.grad.flatten() for each in step.parameters()]
        found.append(torch.cat([losses.flatten(), *grads]))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_a_second_reading_takes_memory():
    with torch.device("meta"):
        step = TrainingStep(build_model(transformer(), contract.VOCABULARY), 0.1)
    one, two = (estimate_memory(step, each, half=False) for each in (TrainingOptions(), R_DROP))
    assert two.activations == 2 * one.activations


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cutoff": 1.0}, r"training.cutoff is 1.0: must be in \[0, 1\)"),
        ({"token_cutoff": -0.1}, r"training.token_cutoff is -0.1: must be in \[0, 1\)"),
        ({"consistency_weight": -1.0}, "training.consistency_weight is -1.0: must not be negative"),
        (
            {"consistency": "simcut", "objective": "reward"},
            "training.consistency is simcut: goes with --objective likelihood only",
        ),
    ],
)
def test_complaints(changes, message):
    with pytest.raises(OptionError, match=message):
        TrainingOptions(**changes)


@BOTH
def test_resumed_equals_uninterrupted_bit_for_bit(tmp_path, run, small, said, options):
    small["model"] |= {
        "attention_dropout": 0.1,
        "activation_dropout": 0.1,
        "feed_forward": "swiglu",
    }
    small["training"] |= {"consistency": options.consistency, "token_cutoff": 0.05}
    small["training"] |= {"max_steps": 4, "validate_every": 2}
    whole = run(tmp_path / "whole", small)
    small["training"]["max_steps"] = 2
    parts = run(tmp_path / "parts", small)
    resume_run(parts, {"training": {"max_steps": 4}}, said.append)
    expected, found = (
        load_file(list_checkpoints(each / "checkpoints")[-1] / "model.safetensors")
        for each in (whole, parts)
    )
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
