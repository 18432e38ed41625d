"""Deep-Att's wiring against a literal loop over words and layers, and the contract."""

import pytest
import torch
from tests.models import contract

from dragoman.models.attention.observer import observed_attention
from dragoman.models.interface import DecoderState, TranslationModel
from dragoman.models.recurrent.deep_att import DeepAtt
from dragoman.models.recurrent.options import DeepAttOptions

VARIANTS = {
    "one layer": {"num_encoder_layers": 1, "num_decoder_layers": 1},
    "two layers": {"num_encoder_layers": 2, "num_decoder_layers": 2, "model_dim": 7},
    "deep": {"num_encoder_layers": 5, "num_decoder_layers": 4},
    "tied": {"embedding_dim": None, "tied_embeddings": "all"},
}


def make_model(**changes):
    torch.manual_seed(0)
    shape = {"num_encoder_layers": 3, "num_decoder_layers": 3, "model_dim": 10,
             "embedding_dim": 6, "dropout": 0.0}  # fmt: skip
    return DeepAtt(DeepAttOptions(**shape | changes), contract.VOCABULARY)


@pytest.fixture(scope="module", params=VARIANTS)
def model(request):
    return make_model(**VARIANTS[request.param])


def run(cell, vectors):
    """Let a cell read vectors one after another."""
    state, outputs = (torch.zeros(cell.hidden_dim), torch.zeros(cell.hidden_dim)), []
    for vector in vectors:
        state = cell(cell.project(vector), state)
        outputs.append(state[0])
    return outputs


def encode_literally(model, source):
    tops = []
    for column_index, column in enumerate(model.encoder.columns):
        states = [model.source_embedding.words[word] for word in source]
        for layer_index, layer in enumerate(column):
            fast = [layer.fast.weight @ each for each in states]
            halves = [each[: len(each) // 2] for each in fast]
            if (column_index, layer_index % 2) in ((0, 0), (1, 1)):
                hidden = run(layer.recurrent.cell, halves)
            else:
                hidden = run(layer.recurrent.cell, halves[::-1])[::-1]
            states = [torch.cat(pair) for pair in zip(fast, hidden, strict=True)]
        tops.append(states)
    return [model.encoder.project.weight @ torch.cat(both) for both in zip(*tops, strict=True)]


def decode_literally(model, memory, target):
    decoder, attention = model.decoder, model.decoder.cross_attention
    cells = [layer.recurrent.cell for layer in decoder.upper]
    width = decoder.bottom.hidden_dim
    silence = (torch.zeros(width), torch.zeros(width))
    bottom, above = silence, [silence for _ in cells]
    said = []
    for word in [contract.VOCABULARY.pad_id, *target[:-1]]:
        scores = torch.stack([
            attention.score
            @ torch.tanh(attention.query.weight @ bottom[0] + attention.key.weight @ each)
            for each in memory
        ])  # fmt: skip
        context = sum(a * each for a, each in zip(scores.softmax(0), memory, strict=True))
        both = torch.cat([decoder.fast_word.weight, decoder.fast_context.weight], dim=1)
        fast = both @ torch.cat([model.target_embedding.words[word], context])
        bottom = decoder.bottom(decoder.bottom.project(fast[: 2 * width]), bottom)
        hidden = bottom[0]
        for index, (layer, cell) in enumerate(zip(decoder.upper, cells, strict=True)):
            fast = layer.fast.weight @ torch.cat([fast, hidden])
            above[index] = cell(cell.project(fast[: 2 * width]), above[index])
            hidden = above[index][0]
        said.append(decoder.top.weight @ torch.cat([fast, hidden]))
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


@pytest.mark.parametrize("num_layers", [1, 3])
def test_learns_by_heart(num_layers):
    contract.check_overfits(
        make_model(num_encoder_layers=num_layers, num_decoder_layers=num_layers, model_dim=16)
    )


@torch.no_grad()
def test_the_fast_path_is_linear():
    """With the LSTMs silent the encoder is one matrix, whatever its depth."""
    model = make_model(num_encoder_layers=5).eval()
    for column in model.encoder.columns:
        for layer in column:
            for parameter in layer.recurrent.parameters():
                parameter.zero_()
    one, other = torch.randn(2, 1, 4, 6).unbind()
    lengths = torch.tensor([4])
    together = model.encoder(2 * one - 3 * other, lengths)
    apart = 2 * model.encoder(one, lengths) - 3 * model.encoder(other, lengths)
    assert together.abs().max() > 0.1
    torch.testing.assert_close(together, apart, atol=1e-5, rtol=1e-5)


def test_has_the_published_widths():
    with torch.device("meta"):
        model = DeepAtt(DeepAttOptions(), contract.VOCABULARY)
    assert [len(column) for column in model.encoder.columns] == [9, 9]
    assert 1 + len(model.decoder.upper) == 7
    assert model.encoder.project.in_features == 5120
    assert model.encoder.memory_dim == model.decoder.fast_context.in_features == 1280
    assert model.source_embedding.words.size(1) == 256


def test_dropout_acts_on_h_alone():
    batch = contract.batch_of(contract.make_pairs(2))
    model = make_model(dropout=0.5).train()
    for part in (model.encoder, model.decoder):
        model.encoder.dropout.p = model.decoder.dropout.p = 0.0
        part.dropout.p = 0.5
        first, second = (model.forward(batch).hidden for _ in range(2))
        assert not torch.allclose(first, second)
    model.encoder.dropout.p = model.decoder.dropout.p = 0.0
    whole = model.forward(batch).hidden
    torch.testing.assert_close(whole, model.eval().forward(batch).hidden)


def test_runs_without_data():
    batch = contract.batch_of(contract.make_pairs(3)).to(torch.device("meta"))
    with torch.device("meta"):
        assert make_model().forward(batch).hidden.shape == (*batch.target.ids.shape, 10)


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
