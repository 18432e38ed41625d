"""Refinement by reward: its gradient against enumeration, and whole second stages."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from safetensors.torch import load_file

from dragoman.data.batches import Batch, flatten, make_batch
from dragoman.decoding.search.sampling import Samples, sample_translations
from dragoman.errors import OptionError
from dragoman.evaluation.gleu import sentence_gleu
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import RNNsearchOptions
from dragoman.training.checkpoints.checkpoint import list_checkpoints
from dragoman.training.objectives.loss import TrainingStep, make_training_step
from dragoman.training.objectives.reward import RewardStep, pair_samples, reward_samples
from dragoman.training.options import TrainingOptions
from dragoman.training.preparation import RunRequest
from dragoman.training.run import resume_run, start_run
from dragoman.training.run_setup import describe_run

EOS, UNK, PAD = 0, 1, 2
WORDS = (UNK, 3, 4)
VOCABULARY = Vocabulary(5, 5, PAD, EOS)
SHAPE = TransformerOptions(
    num_encoder_layers=1,
    num_decoder_layers=1,
    model_dim=4,
    feed_forward_dim=4,
    num_heads=1,
    dropout=0.3,
)
RECURRENT = RNNsearchOptions(model_dim=4, embedding_dim=4, maxout_dim=4, dropout=0.3)
SOURCE, TARGET = [3, 4, EOS], [4, EOS]
REWARD = TrainingOptions(objective="reward", label_smoothing=0.0)


def make_model(shape=SHAPE, seed=1):
    torch.manual_seed(seed)
    model = build_model(shape, VOCABULARY)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.3)
        for each in (model.source_embedding, model.target_embedding, model.output):
            each.words[PAD] = 0
    return model


def copies(count: int) -> Batch:
    return make_batch(flatten([SOURCE] * count), flatten([TARGET] * count), PAD)


def gradient(model) -> torch.Tensor:
    found = [
        torch.zeros_like(each) if each.grad is None else each.grad for each in model.parameters()
    ]
    model.zero_grad(set_to_none=True)
    return torch.cat([each.flatten() for each in found])


def exact_gradient(model):
    """Differentiate the expected reward summed over every sequence that can be drawn."""
    model.eval()
    limit = 2 * len(TARGET)
    ended = [(*words, EOS) for n in range(limit) for words in product(WORDS, repeat=n)]
    everything = [*ended, *product(WORDS, repeat=limit)]
    batch = make_batch(flatten([SOURCE] * len(everything)), flatten(everything), PAD)
    probabilities = token_log_probabilities(model, batch).sum(1).exp()
    assert probabilities.sum().item() == pytest.approx(1, abs=1e-4)
    words = batch.target.lengths - batch.target.ids.eq(EOS).sum(1)
    references = torch.tensor([TARGET] * len(everything))
    rewards = sentence_gleu(batch.target.ids, words, references, torch.ones_like(words))
    expected = (probabilities * rewards).sum()
    expected.backward()
    return expected.item(), gradient(model)


@pytest.mark.parametrize(
    ("shape", "num_samples", "num_copies"),
    [(SHAPE, 30, 40), (SHAPE, 2, 600), (RECURRENT, 30, 40)],
    ids=["transformer", "two samples", "rnnsearch"],
)
def test_gradient_is_that_of_the_expected_reward(shape, num_samples, num_copies):
    model = make_model(shape)
    value, expected = exact_gradient(model)
    model.train()  # its dropout must not be felt
    options = replace(REWARD, reward_samples=num_samples, likelihood_weight=0.0)
    step = RewardStep(TrainingStep(model, 0.0), options, VOCABULARY, None)
    values, gradients = [], []
    for _ in range(12):
        loss = step(copies(num_copies)) / num_copies
        loss.backward()
        values.append(-loss.item())
        gradients.append(-gradient(model))
    found = torch.stack(gradients)
    error = found.std(0) / len(found) ** 0.5
    # Twelve repetitions tell the error only roughly, and there are some hundred weights.
    assert ((found.mean(0) - expected).abs() <= 8 * error + 1e-4).all()
    assert torch.cosine_similarity(found.mean(0), expected, dim=0) > 0.98
    assert found.mean(0).norm().item() == pytest.approx(expected.norm().item(), rel=0.1)
    assert sum(values) / len(values) == pytest.approx(value, abs=0.02)
    assert model.training


def test_likelihood_is_mixed_in_with_its_weight():
    model = make_model(replace(SHAPE, dropout=0.0))
    batch = copies(3)
    options = replace(REWARD, reward_samples=4)
    losses, gradients = [], []
    for weight in (0.0, 0.5):
        step = make_training_step(
            model, replace(options, likelihood_weight=weight), VOCABULARY, None
        )
        torch.manual_seed(3)
        losses.append(step(batch))
        losses[-1].backward()
        gradients.append(gradient(model))
    plain = TrainingStep(model, 0.0)(batch)
    plain.backward()
    torch.testing.assert_close(losses[1] - losses[0], 0.5 * plain)
    difference = gradients[1] - gradients[0]
    torch.testing.assert_close(difference, 0.5 * gradient(model), atol=1e-5, rtol=1e-4)


def test_dropout_works_in_the_likelihood():
    model = make_model()
    step = make_training_step(model, REWARD, VOCABULARY, None)
    seen = []
    model.encoder[0].register_forward_pre_hook(
        lambda module, _: seen.append((module.training, torch.is_grad_enabled()))
    )
    step(copies(2))
    assert seen == [(True, True), (False, False), (False, True)]


def test_value_is_the_mean_reward():
    model = make_model()
    batch = copies(2)
    options = replace(REWARD, reward_samples=7, likelihood_weight=0.0)
    model.eval()
    torch.manual_seed(8)
    loss = make_training_step(model, options, VOCABULARY, None)(batch)
    torch.manual_seed(8)
    limits = 2 * batch.target.lengths
    samples = sample_translations(model, batch.source, VOCABULARY, num_samples=7, limits=limits)
    rewards = reward_samples(samples, batch.target)
    torch.testing.assert_close(loss, -rewards.mean(1).sum())
    assert rewards.shape == (2, 7)
    assert not model.training


def test_longest_translation_is_heeded(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "dragoman.training.objectives.reward.sample_translations",
        lambda *given, **named: (
            seen.append(named["limits"]) or sample_translations(*given, **named)
        ),
    )
    model = make_model(replace(SHAPE, positions="learned", max_positions=3))
    make_training_step(model, REWARD, VOCABULARY, 3)(copies(1))
    make_training_step(make_model(), REWARD, VOCABULARY, None)(copies(1))
    assert [each.tolist() for each in seen] == [[3], [4]]


def test_samples_stand_beside_their_sources():
    ids = torch.tensor([[[3, EOS, PAD], [3, 4, 4]], [[EOS, PAD, PAD], [4, EOS, PAD]]])
    lengths = torch.tensor([[2, 3], [1, 2]])
    samples = Samples(ids, lengths, torch.tensor([[True, False], [True, True]]))
    batch = make_batch(flatten([[3, 4, EOS], [4, EOS]]), flatten([[3, EOS], [4, 4, EOS]]), PAD)
    pairs = pair_samples(batch.source, samples)
    assert pairs.source.ids[:, 0].tolist() == [3, 3, 4, 4]
    assert pairs.source.lengths.tolist() == [3, 3, 2, 2]
    assert pairs.target.lengths.tolist() == [2, 3, 1, 2]
    assert (pairs.num_tokens, pairs.num_target_tokens) == (18, 8)
    # “3” alone is right; of “3 4 4” one of six n-grams; nothing; of “4 4” one of three.
    rewards = reward_samples(samples, batch.target)
    torch.testing.assert_close(rewards, torch.tensor([[1, 1 / 6], [0, 1 / 3]]))


@pytest.mark.parametrize("shape", [SHAPE, RECURRENT], ids=["transformer", "rnnsearch"])
def test_every_weight_learns_in_half_precision(shape):
    model = make_model(shape)
    # Without likelihood, so that all of the gradient comes through the samples.
    options = replace(REWARD, reward_samples=20, likelihood_weight=0.0)
    step = make_training_step(model, options, VOCABULARY, None)
    with torch.autocast("cpu", torch.bfloat16):
        loss = step(copies(20))
    loss.backward()
    dummy_batches = {name for name, each in model.named_parameters() if each.grad is None}
    assert not dummy_batches
    half = -gradient(model)
    assert torch.cosine_similarity(half, exact_gradient(model)[1], dim=0) > 0.5


def test_refinement_raises_the_reward():
    torch.manual_seed(2)
    vocabulary = Vocabulary(9, 9, PAD, EOS)
    shape = replace(SHAPE, model_dim=16, feed_forward_dim=32, num_heads=2, dropout=0.0)
    model = build_model(shape, vocabulary)
    words = torch.randint(3, 9, (32, 3)).tolist()
    batch = make_batch(
        flatten([[*each, EOS] for each in words]), flatten([[*each[::-1], EOS] for each in words]),
        PAD,
    )  # fmt: skip

    def update(options, rate, count):
        step = make_training_step(model, options, vocabulary, None)
        optimiser = torch.optim.Adam(model.parameters(), lr=rate)
        for _ in range(count):
            optimiser.zero_grad()
            (step(batch) / batch.num_target_tokens).backward()
            optimiser.step()

    def mean_reward():
        model.eval()
        limits = 2 * batch.target.lengths
        found = sample_translations(
            model, batch.source, vocabulary, num_samples=100, limits=limits,
            generator=torch.Generator().manual_seed(1),
        )  # fmt: skip
        model.train()
        return reward_samples(found, batch.target).mean().item()

    update(TrainingOptions(label_smoothing=0.0), 0.01, 30)
    before = mean_reward()
    assert 0.1 < before < 0.8
    update(REWARD, 0.005, 20)
    assert mean_reward() > before + 0.05


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"reward_samples": 1}, "training.reward_samples is 1: must be ≥ 2, to compare them"),
        ({"likelihood_weight": -1.0}, "training.likelihood_weight is -1.0: must not be negative"),
    ],
)
def test_complains(values, message):
    with pytest.raises(OptionError) as caught:
        TrainingOptions(**values)
    assert str(caught.value) == message


# Whole runs


@pytest.fixture
def second():
    """The options of a second stage."""
    return {
        "corpus": {"valid_pairs": 20},
        "search": {"max_extra_tokens": 2},
        "training": {
            "objective": "reward",
            "reward_samples": 3,
            "batch_tokens": 200,
            "warmup_steps": 2,
            "peak_learning_rate": 1e-3,
            "validate_every": 4,
            "log_every": 2,
            "max_steps": 6,
            "average_checkpoints": 2,
            "device": "cpu",
        },
    }


@pytest.fixture
def first(tmp_path, run, small):
    """A model to refine."""
    small |= {"search": {"max_extra_tokens": 2}}
    small["training"]["max_steps"] = 2
    return run(tmp_path / "first", small)


def test_second_stage_resumes_bit_for_bit(tmp_path, run, first, second, said, events):
    whole = run(tmp_path / "whole", second, start_from=first)
    # The reward is at most 1 a sentence, and a sentence has at least two tokens.
    assert all(-0.5 <= each["loss"] < 0.2 for each in events(whole, "update"))
    second["training"]["max_steps"] = 3
    parts = run(tmp_path / "parts", second, start_from=first)
    torch.rand(100)
    resume_run(parts, {"training": {"max_steps": 6}}, said.append)
    ends = [list_checkpoints(out / "checkpoints")[-1] for out in (whole, parts)]
    for name in ("model", "optimiser"):
        one, other = (load_file(each / f"{name}.safetensors") for each in ends)
        assert one.keys() == other.keys()
        assert all(torch.equal(value, other[key]) for key, value in one.items())
    start = load_file(first / "model.safetensors")
    assert any(not torch.equal(value, start[key]) for key, value in load_file(
        ends[0] / "model.safetensors").items())  # fmt: skip


def test_reward_alone_is_no_beginning(tmp_path, corpus, small, second, said):
    small["training"] |= second["training"]
    request = RunRequest(out=tmp_path / "out", files=corpus, preset="tiny", config=small)
    for begin in (start_run, describe_run):
        with pytest.raises(OptionError, match="--objective reward is a second stage: give --from"):
            begin(request, said.append)
    assert not (tmp_path / "out").exists()


def test_dry_run_counts_the_samples(tmp_path, corpus, first, second):
    sizes = []
    for objective in ("likelihood", "reward"):
        second["training"] |= {"objective": objective, "batch_tokens": 100_000}
        told = []
        request = RunRequest(
            out=tmp_path / "out", files=corpus, preset="tiny", config=second, start_from=first
        )
        describe_run(request, told.append)
        sizes.append(float(told[-1].split("activations of a batch about ")[1].rstrip(")")))
    assert sizes[1] == pytest.approx(4 * sizes[0], rel=0.05)
