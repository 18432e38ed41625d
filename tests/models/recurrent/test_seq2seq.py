"""The plain encoder–decoder: its contract, its bottleneck, and PyTorch's LSTMs as oracle."""

import dataclasses

import pytest
import torch
from tests.models import contract
from torch import nn

from dragoman.data.batches import Sequences
from dragoman.models.recurrent.cells import LSTMCell
from dragoman.models.recurrent.layer import reverse_sequences
from dragoman.models.recurrent.options import Seq2seqOptions
from dragoman.models.recurrent.seq2seq import RecurrentStack, Seq2seq
from dragoman.training.objectives.loss import TrainingStep

PLAIN = Seq2seqOptions(num_layers=2, model_dim=20, dropout=0.0)
VARIANTS = {
    "lstm": PLAIN,
    "forwards": dataclasses.replace(PLAIN, reverse_source=False, tied_embeddings="all"),
    "gru": dataclasses.replace(PLAIN, cell="gru", embedding_dim=9),
    "rnn": dataclasses.replace(PLAIN, cell="rnn", num_layers=1, tied_embeddings="target"),
    "deep": dataclasses.replace(PLAIN, num_layers=4),
}


def make_model(options: Seq2seqOptions = PLAIN, **changes: object) -> Seq2seq:
    torch.manual_seed(0)
    return Seq2seq(dataclasses.replace(options, **changes), contract.VOCABULARY).eval()


@pytest.mark.parametrize("name", VARIANTS)
def test_the_contract(name):
    model = make_model(VARIANTS[name])
    contract.check_all(model)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_a_few_pairs_are_learnt_by_heart(name):
    contract.check_overfits(make_model(VARIANTS[name], model_dim=32), steps=120)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@torch.no_grad()
def test_nothing_but_the_last_states_reaches_the_decoder(cell):
    model = make_model(cell=cell, num_layers=1)
    batch = contract.batch_of(contract.make_pairs(4))
    memory = model.encode(batch.source)
    assert [each.shape for each in memory] == [(4, 1, 2 if cell == "lstm" else 1, 20)]
    expected = model.forward(batch).hidden

    def disturb(module, inputs, result):
        return torch.randn_like(result[0]), result[1]

    def forget(module, inputs, result):
        return result[0], tuple(torch.zeros_like(each) for each in result[1])

    layer = model.encoder.layers[0]
    with layer.register_forward_hook(disturb):
        torch.testing.assert_close(model.forward(batch).hidden, expected, atol=0, rtol=0)
    with layer.register_forward_hook(forget):
        assert not torch.allclose(model.forward(batch).hidden, expected, atol=1e-3)


def test_reading_backwards_is_reading_a_reversed_sentence():
    backwards = make_model()
    forwards = make_model(reverse_source=False)
    forwards.load_state_dict(backwards.state_dict())
    source = contract.batch_of(contract.make_pairs(4)).source
    turned = Sequences(reverse_sequences(source.ids, source.lengths), source.lengths)
    expected = forwards.encode(turned).states
    torch.testing.assert_close(backwards.encode(source).states, expected)
    assert not torch.allclose(forwards.encode(source).states, expected, atol=1e-3)


def copied_to_torch(stack: RecurrentStack) -> nn.LSTM:
    layers = [each.cell for each in stack.layers]
    theirs = nn.LSTM(layers[0].input_dim, layers[0].hidden_dim, len(layers), batch_first=True)
    with torch.no_grad():
        for index, cell in enumerate(layers):
            getattr(theirs, f"weight_ih_l{index}").copy_(cell.weight_input)
            getattr(theirs, f"weight_hh_l{index}").copy_(cell.weight_hidden)
            getattr(theirs, f"bias_ih_l{index}").copy_(cell.bias)
            getattr(theirs, f"bias_hh_l{index}").zero_()
    return theirs


def test_equals_two_stacks_of_torch():
    model = make_model(reverse_source=False, num_layers=3, embedding_dim=11)
    encoder, decoder = copied_to_torch(model.encoder), copied_to_torch(model.decoder)
    batch = contract.batch_of(contract.make_pairs(5))
    packed = nn.utils.rnn.pack_padded_sequence(
        model.source_embedding(batch.source.ids),
        batch.source.lengths,
        batch_first=True,
        enforce_sorted=False,
    )
    _, last = encoder(packed)
    words = model.target_embedding(batch.target.shifted(contract.VOCABULARY.pad_id))
    expected, _ = decoder(words, last)
    torch.testing.assert_close(model.forward(batch).hidden, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn"])
def test_teacher_forcing_has_no_loop_over_words(name, monkeypatch):
    model = make_model(VARIANTS[name])

    def refuse(*_):
        raise AssertionError("a cell was called for a single word")

    monkeypatch.setattr(type(model.decoder.layers[0].cell), "forward", refuse)
    model.forward(contract.batch_of(contract.make_pairs(3)))


def test_dropout_acts_between_layers_and_never_in_time():
    inputs = torch.randn(3, 5, 4)
    for num_layers, is_same in ((1, True), (2, False)):
        torch.manual_seed(1)
        stack = RecurrentStack("lstm", num_layers, input_dim=4, hidden_dim=6, dropout=0.5)
        noisy, states = stack(inputs)
        clean, expected = stack.eval()(inputs)
        assert torch.equal(noisy, clean) == is_same
        assert all(torch.equal(*pair) for pair in zip(states[0], expected[0], strict=True))


def test_dropout_on_what_is_read_and_said():
    model = make_model(num_layers=1, dropout=0.5).train()
    hidden = model.forward(contract.batch_of(contract.make_pairs(8))).hidden
    assert 0.35 < (hidden == 0).float().mean() < 0.65
    assert model.source_embedding.dropout.p == model.target_embedding.dropout.p == 0.5


def test_first_weights_at_the_published_width():
    model = make_model(num_layers=1, model_dim=1000)
    matrices = [each for each in model.parameters() if each.dim() == 2]
    for each in matrices:
        assert 0.079 < each.abs().max() <= 0.08
    for module in (model.source_embedding, model.target_embedding, model.output):
        assert not module.words[module.pad_id].any()
    for stack in (model.encoder, model.decoder):
        cell = stack.layers[0].cell
        assert isinstance(cell, LSTMCell)
        assert torch.equal(cell.forget_bias, torch.ones(1000))
        assert cell.bias.sum() == 1000


def test_first_sums_are_as_large_at_any_width():
    spreads = []
    for width in (50, 800):
        weight = make_model(num_layers=1, model_dim=width).encoder.layers[0].cell.weight_hidden
        spreads.append((torch.randn(64, width) @ weight.T).std().item())
    assert spreads[0] == pytest.approx(spreads[1], rel=0.1)


def test_trains_under_autocast_and_without_numbers():
    model = make_model().train()
    batch = contract.batch_of(contract.make_pairs(4))
    step = TrainingStep(model, 0.1)
    exact = step(batch)
    with torch.autocast("cpu", torch.bfloat16):
        loss = step(batch)
        state = model.start(model.encode(batch.source), 3)
        for _ in range(2):
            _, state = model.step(torch.full((4, 1), 2), state)
    assert state.hypotheses["states"].dtype == torch.float32
    torch.testing.assert_close(loss.float(), exact, atol=0, rtol=0.02)
    loss.backward()
    assert all(each.grad.isfinite().all() for each in model.parameters())
    assert TrainingStep(model.to("meta"), 0.1)(batch.to(torch.device("meta"))).shape == ()
