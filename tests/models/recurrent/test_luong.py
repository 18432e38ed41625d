"""Luong's model: its contract in every variant, and a literal run as oracle."""

import dataclasses

import pytest
import torch
from tests.models import contract
from torch import nn

from dragoman.data.batches import Sequences
from dragoman.errors import DataError
from dragoman.models.attention.observer import observed_attention
from dragoman.models.recurrent.cells import LSTMCell
from dragoman.models.recurrent.layer import reverse_sequences
from dragoman.models.recurrent.luong import Luong
from dragoman.models.recurrent.options import LuongOptions
from dragoman.training.objectives.loss import TrainingStep

PLAIN = LuongOptions(num_layers=2, model_dim=20, half_width=2, max_positions=16, dropout=0.0)


def variant(**changes: object) -> LuongOptions:
    return dataclasses.replace(PLAIN, **changes)


VARIANTS = {
    "general": PLAIN,
    "dot-unfed": variant(score="dot", input_feeding=False, tied_embeddings="all"),
    "concat-local-p": variant(score="concat", attention_span="local-p", embedding_dim=9),
    "location-local-m": variant(score="location", attention_span="local-m", num_layers=1),
    "local-p-unfed": variant(attention_span="local-p", input_feeding=False, reverse_source=False),
    "local-m-unfed": variant(attention_span="local-m", input_feeding=False, score="dot"),
}


def make_model(options: LuongOptions = PLAIN, **changes: object) -> Luong:
    torch.manual_seed(0)
    return Luong(dataclasses.replace(options, **changes), contract.VOCABULARY).eval()


def read_words(model: Luong, batch) -> tuple[list[torch.Tensor], object]:
    """Read the targets word by word, as a search would."""
    state = model.start(model.encode(batch.source), batch.target.ids.size(1))
    found = []
    for tokens in batch.target.shifted(model.pad_id).split(1, dim=1):
        hidden, state = model.step(tokens, state)
        found.append(hidden)
    return found, state


@pytest.mark.parametrize("name", VARIANTS)
def test_the_contract(name):
    model = make_model(VARIANTS[name])
    contract.check_all(model)


@pytest.mark.parametrize("name", ["general", "concat-local-p", "location-local-m"])
def test_a_few_pairs_are_learnt_by_heart(name):
    contract.check_overfits(make_model(VARIANTS[name], num_layers=1), steps=70)


def joined_cell(cell: LSTMCell, feed: nn.Linear | None) -> nn.LSTMCell:
    """PyTorch's cell that reads the word and what was fed as one vector."""
    weights = [cell.weight_input] + ([] if feed is None else [feed.weight])
    weight = torch.cat(weights, dim=1)
    theirs = nn.LSTMCell(weight.size(1), cell.hidden_dim)
    with torch.no_grad():
        theirs.weight_ih.copy_(weight)
        theirs.weight_hh.copy_(cell.weight_hidden)
        theirs.bias_ih.copy_(cell.bias)
        theirs.bias_hh.zero_()
    return theirs


@pytest.mark.parametrize("is_fed", [True, False])
@torch.no_grad()
def test_equals_the_papers_equations_read_word_by_word(is_fed):
    model = make_model(input_feeding=is_fed)
    (pair,) = contract.make_pairs(1, seed=3)
    batch = contract.batch_of([pair])
    encoder = [joined_cell(each.cell, None) for each in model.encoder.layers]
    decoder = [joined_cell(each.cell, None) for each in model.decoder.stack.layers]
    decoder[0] = joined_cell(model.decoder.stack.layers[0].cell, model.decoder.feed)
    states = [(torch.zeros(1, 20), torch.zeros(1, 20)) for _ in encoder]
    memory = {}
    for place in reversed(range(len(pair[0]))):
        below = model.source_embedding(batch.source.ids[:, place : place + 1])[:, 0]
        for index, cell in enumerate(encoder):
            states[index] = cell(below, states[index])
            below = states[index][0]
        memory[place] = below[0]
    found, fed = [], torch.zeros(1, 20)
    for token in batch.target.shifted(model.pad_id).unbind(1):
        below = model.target_embedding(token[:, None])[:, 0]
        below = torch.cat([below, fed], dim=1) if is_fed else below
        for index, cell in enumerate(decoder):
            states[index] = cell(below, states[index])
            below = states[index][0]
        keys = torch.stack([memory[place] for place in range(len(pair[0]))])
        scores = below[0] @ model.decoder.cross_attention.key.weight @ keys.T
        context = scores.softmax(0) @ keys
        joined = torch.cat([context, below[0]])
        fed = torch.tanh(model.decoder.combine.weight @ joined)[None]
        found.append(fed)
    expected = torch.stack(found, dim=1)
    torch.testing.assert_close(model.forward(batch).hidden, expected, atol=1e-5, rtol=1e-5)


def test_input_feeding_of_nothing_is_no_input_feeding():
    fed, unfed = make_model(), make_model(input_feeding=False)
    weights = fed.state_dict()
    weights["decoder.feed.weight"].zero_()
    unfed.load_state_dict({k: v for k, v in weights.items() if k != "decoder.feed.weight"})
    batch = contract.batch_of(contract.make_pairs(5))
    torch.testing.assert_close(
        fed.forward(batch).hidden, unfed.forward(batch).hidden, atol=1e-6, rtol=1e-5
    )


def test_without_input_feeding_there_is_no_loop_over_words(monkeypatch):
    model = make_model(input_feeding=False)

    def refuse(*_):
        raise AssertionError("a cell was called for a single word")

    monkeypatch.setattr(LSTMCell, "forward", refuse)
    model.forward(contract.batch_of(contract.make_pairs(3)))


def test_a_reversed_source_is_put_back_into_order():
    backwards, forwards = make_model(), make_model(reverse_source=False)
    forwards.load_state_dict(backwards.state_dict())
    source = contract.batch_of(contract.make_pairs(4)).source
    turned = Sequences(reverse_sequences(source.ids, source.lengths), source.lengths)
    found, expected = backwards.encode(source), forwards.encode(turned)
    torch.testing.assert_close(found.states, expected.states)
    put_back = reverse_sequences(expected.annotations.values, source.lengths)
    real = source.is_token
    torch.testing.assert_close(found.annotations.values[real], put_back[real])


@pytest.mark.parametrize("is_fed", [True, False])
@pytest.mark.parametrize("is_reversed", [True, False])
def test_windows_lie_where_the_words_were_written(is_reversed, is_fed):
    model = make_model(attention_span="local-m", half_width=1, reverse_source=is_reversed,
                       input_feeding=is_fed)  # fmt: skip
    source, target = [5, 6, 7, 8, 9, 10, 0], [11, 12, 13, 14, 0]
    batch = contract.batch_of([(source, target), (source[-3:], target[-2:])])
    with observed_attention(model) as seen:
        model.forward(batch)
    assert set(seen) == {"decoder.cross_attention"}
    weights = torch.cat(seen["decoder.cross_attention"], dim=2)
    assert weights.shape == (2, 1, 5, 7)
    for place in range(5):
        near = [place + shift for shift in (-1, 0, 1) if place + shift >= 0]
        assert weights[0, 0, place].nonzero().flatten().tolist() == near
    assert weights[1, 0, 4].nonzero().flatten().tolist() == [1, 2]


@pytest.mark.parametrize("name", VARIANTS)
def test_coverage_is_the_sum_of_what_was_seen(name):
    model = make_model(VARIANTS[name])
    batch = contract.batch_of(contract.make_pairs(4))
    beams = torch.zeros(4, 3, dtype=torch.int64)
    with torch.no_grad(), observed_attention(model) as seen:
        state = model.start(model.encode(batch.source), 5)
        padding = (~batch.source.is_token).float()
        assert torch.equal(state.coverage, padding.unsqueeze(1))
        _, state = model.step(torch.full((4, 1), 2), state)
        _, state = model.step(torch.randint(3, 20, (4, 3)), state.reorder(beams))
    first, second = seen["decoder.cross_attention"]
    assert second.shape == (4, 1, 3, batch.source.ids.size(1))
    expected = padding.unsqueeze(1) + first.squeeze(1) + second.squeeze(1)
    torch.testing.assert_close(state.coverage, expected)


def test_an_observer_changes_what_is_said():
    model = make_model()
    batch = contract.batch_of(contract.make_pairs(4))
    expected = model.forward(batch).hidden
    with observed_attention(model, lambda _, weights: torch.zeros_like(weights)):
        changed = model.forward(batch).hidden
    assert not torch.allclose(changed, expected, atol=1e-3)
    torch.testing.assert_close(model.forward(batch).hidden, expected, atol=0, rtol=0)


def test_location_refuses_long_sources():
    model = make_model(score="location", max_positions=4)
    batch = contract.batch_of([([5, 6, 7, 8, 0], [9, 0])])
    for read in (model.forward, lambda batch: read_words(model, batch)):
        with pytest.raises(DataError, match="5 subwords is longer than the 4 places"):
            read(batch)
    model.forward(contract.batch_of([([5, 6, 7, 0], [9, 0])]))


def test_first_weights_are_those_of_the_paper():
    model = make_model(num_layers=1, model_dim=1000)
    for each in model.parameters():
        if each.dim() == 2 and each.size(1) == 1000:
            assert 0.099 < each.abs().max() <= 0.1
    assert torch.equal(model.encoder.layers[0].cell.forget_bias, torch.ones(1000))
    assert not model.output.words[model.pad_id].any()


@pytest.mark.parametrize("name", VARIANTS)
def test_trains_under_autocast_and_without_numbers(name):
    model = make_model(VARIANTS[name]).train()
    batch = contract.batch_of(contract.make_pairs(4))
    step = TrainingStep(model, 0.1)
    exact = step(batch)
    with torch.autocast("cpu", torch.bfloat16):
        loss = step(batch)
        _, state = read_words(model, batch)
    assert state.hypotheses["states"].dtype == torch.float32
    torch.testing.assert_close(loss.float(), exact, atol=0, rtol=0.03)
    loss.backward()
    assert all(each.grad.isfinite().all() for each in model.parameters())
    assert TrainingStep(model.to("meta"), 0.1)(batch.to(torch.device("meta"))).shape == ()


def test_dropout_on_what_the_output_layer_reads():
    model = make_model(num_layers=1, dropout=0.5).train()
    hidden = model.forward(contract.batch_of(contract.make_pairs(8))).hidden
    assert 0.35 < (hidden == 0).float().mean() < 0.65
