"""GNMT's wiring against a literal loop over words and layers, its experts, and the contract."""

import math

import pytest
import torch
from tests.models import contract

from dragoman.models.attention.observer import observed_attention
from dragoman.models.interface import DecoderState, TranslationModel
from dragoman.models.layers.experts import Experts
from dragoman.models.recurrent.gnmt import GNMT
from dragoman.models.recurrent.options import GNMTOptions

EXPERTS = {"num_experts": 3, "experts_per_token": 2, "expert_dim": 10}
VARIANTS = {
    "one layer": {"num_encoder_layers": 1, "num_decoder_layers": 1},
    "two layers": {"num_encoder_layers": 2, "num_decoder_layers": 2},
    "deep": {"num_encoder_layers": 4, "num_decoder_layers": 4, "tied_embeddings": "all"},
    "experts": {**EXPERTS},
    "experts under the last": {"num_encoder_layers": 2, "num_decoder_layers": 2, **EXPERTS},
    "one expert": {**EXPERTS, "num_experts": 1, "experts_per_token": 1},
}


def make_model(*, lively=True, **changes):
    """Make a small model, with weights large enough for every path to show."""
    torch.manual_seed(0)
    shape = {"num_encoder_layers": 3, "num_decoder_layers": 3, "model_dim": 12, "dropout": 0.0}
    model = GNMT(GNMTOptions(**shape | changes), contract.VOCABULARY)
    if lively:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1.5)
            for module in model.modules():
                if isinstance(module, Experts):
                    module.weight_gate.normal_()
                    module.bias_inner.normal_()
    return model


@pytest.fixture(scope="module", params=VARIANTS)
def model(request):
    return make_model(**VARIANTS[request.param])


def ask(between, state):
    """Compute x + σ(Σ G(x)_i E_i(x)) for one word."""
    experts = between.experts
    scores = state @ experts.weight_gate
    best = scores.argsort(descending=True)[: experts.experts_per_token]
    mixed = torch.zeros_like(state)
    for share, index in zip(scores[best].softmax(0), best, strict=True):
        inner = state @ experts.weight_inner[index] + experts.bias_inner[index]
        said = inner.clamp(min=0) @ experts.weight_outer[index] + experts.bias_outer[index]
        mixed = mixed + share * said
    return state + 1 / (1 + torch.exp(-mixed))


def run(cell, vectors):
    """Let a cell read vectors one after another."""
    state, outputs = (torch.zeros(cell.hidden_dim), torch.zeros(cell.hidden_dim)), []
    for vector in vectors:
        state = cell(cell.project(vector), state)
        outputs.append(state[0])
    return outputs


def encode_literally(model, source):
    encoder = model.encoder
    vectors = [model.source_embedding.words[word] for word in source]
    ahead = run(encoder.bottom.forwards.cell, vectors)
    behind = run(encoder.bottom.backwards.cell, vectors[::-1])[::-1]
    states = [torch.cat(pair) for pair in zip(ahead, behind, strict=True)]
    cells = [layer.cell for layer in encoder.upper]
    for number, cell in enumerate(cells, start=2):
        if encoder.experts is not None and (number == 3 or number == len(cells) + 1 == 2):
            states = [ask(encoder.experts, each) for each in states]
        outputs = run(cell, states)
        if number >= 3:
            outputs = [said + read for said, read in zip(outputs, states, strict=True)]
        states = outputs
    return states


def decode_literally(model, memory, target):
    decoder, attention = model.decoder, model.decoder.cross_attention
    cells = [layer.cell for layer in decoder.upper]
    width = decoder.bottom.hidden_dim
    bottom = (torch.zeros(width), torch.zeros(width))
    above = [(torch.zeros(width), torch.zeros(width)) for _ in cells]
    said = []
    for word in [contract.VOCABULARY.pad_id, *target[:-1]]:
        scores = torch.stack([
            attention.score
            @ torch.tanh(attention.query.weight @ bottom[0] + attention.key.weight @ each)
            for each in memory
        ])  # fmt: skip
        context = sum(a * each for a, each in zip(scores.softmax(0), memory, strict=True))
        inputs = torch.cat([model.target_embedding.words[word], context])
        both = torch.cat([decoder.word.weight, decoder.bottom.weight_input], dim=1)
        bottom = decoder.bottom(both @ inputs + decoder.bottom.bias, bottom)
        state = bottom[0] if decoder.experts is None else ask(decoder.experts, bottom[0])
        for index, cell in enumerate(cells):
            above[index] = cell(cell.project(torch.cat([state, context])), above[index])
            is_residual = index + 2 >= 3
            state = above[index][0] + state if is_residual else above[index][0]
        said.append(state)
    return torch.stack(said)


@torch.no_grad()
def test_equals_a_literal_loop(model):
    model.eval()
    pairs = contract.make_pairs(3, seed=9, longest=6)
    found = model.forward(contract.batch_of(pairs)).hidden
    for row, (source, target) in zip(found, pairs, strict=True):
        expected = decode_literally(model, encode_literally(model, source), target)
        torch.testing.assert_close(row[: len(target)], expected, atol=1e-5, rtol=1e-5)


def test_the_contract(model):
    contract.check_all(model)


@pytest.mark.parametrize("name", ["one layer", "experts"])
def test_learns_by_heart(name):
    wider = {"model_dim": 24, "tied_embeddings": "none"}
    contract.check_overfits(make_model(lively=False, **VARIANTS[name] | wider))


def test_experts_add_a_loss_only_in_training():
    batch = contract.batch_of(contract.make_pairs(4))
    model = make_model(**VARIANTS["experts"])
    losses = model.train().forward(batch).auxiliary_loss
    assert losses.item() > 0
    assert model.eval().forward(batch).auxiliary_loss is None
    assert make_model().train().forward(batch).auxiliary_loss is None


def test_padding_does_not_count_in_the_balance(monkeypatch):
    """A pair has the same loss with and without padding behind it."""
    monkeypatch.setattr(torch, "randn_like", torch.zeros_like)
    model = make_model(**VARIANTS["experts"]).train()
    pair, longer = ([5, 6, 0], [7, 0]), ([5, 6, 0, 2, 2, 2], [7, 0, 2, 2])
    alone = contract.batch_of([pair])
    padded = contract.batch_of([longer])
    for side, length in ((padded.source, 3), (padded.target, 2)):
        side.lengths.fill_(length)
    torch.testing.assert_close(
        model.forward(padded).auxiliary_loss, model.forward(alone).auxiliary_loss
    )


def test_begins_as_published():
    options = GNMTOptions(num_encoder_layers=3, num_decoder_layers=2, model_dim=256, **EXPERTS)
    model = GNMT(options, contract.VOCABULARY)
    bound = 0.04 * math.sqrt(1024 / 256)
    for name, parameter in model.named_parameters():
        if ".experts." in name:
            continue
        assert parameter.abs().max() <= bound
        assert parameter.abs().max() > 0.9 * bound
    for layer in (model.source_embedding, model.target_embedding, model.output):
        assert not layer.words[contract.VOCABULARY.pad_id].any()
    assert not model.decoder.experts.experts.weight_gate.any()


@pytest.mark.parametrize("name", ["source_embedding", "target_embedding", "encoder", "decoder"])
def test_dropout_acts_in_every_part(name):
    batch = contract.batch_of(contract.make_pairs(2))
    model = make_model(dropout=0.5).train()
    for other in ("source_embedding", "target_embedding", "encoder", "decoder"):
        if other != name:
            getattr(model, other).dropout.p = 0.0
    first, second = (model.forward(batch).hidden for _ in range(2))
    assert not torch.allclose(first, second)
    model.eval()
    torch.testing.assert_close(model.forward(batch).hidden, model.forward(batch).hidden)


@pytest.mark.parametrize("name", ["two layers", "experts"])
def test_runs_without_data(name):
    batch = contract.batch_of(contract.make_pairs(3)).to(torch.device("meta"))
    with torch.device("meta"):
        model = make_model(lively=False, **VARIANTS[name])
        assert model.forward(batch).hidden.shape == (*batch.target.ids.shape, 12)


@torch.no_grad()
def test_attention_is_seen_and_covers_the_source():
    model = make_model().eval()
    batch = contract.batch_of(contract.make_pairs(3))
    with observed_attention(model) as maps:
        model.forward(batch)
    (name,) = maps
    assert name == "decoder.cross_attention"
    seen = torch.cat(maps[name], dim=2)
    assert seen.shape == (3, 1, batch.target.ids.size(1), batch.source.ids.size(1))
    state = model.start(model.encode(batch.source), 10)
    shifted = batch.target.shifted(contract.VOCABULARY.pad_id)
    for place in range(shifted.size(1)):
        _, state = model.step(shifted[:, [place]], state)
    assert isinstance(model, TranslationModel)
    assert isinstance(state, DecoderState)
    covered = seen.sum(2).where(batch.source.is_token[:, None], 1.0)
    torch.testing.assert_close(state.coverage, covered, atol=1e-5, rtol=1e-5)
