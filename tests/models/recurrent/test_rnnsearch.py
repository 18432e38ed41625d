"""RNNsearch against its published equations, sentence by sentence, and the contract."""

import pytest
import torch
from tests.models import contract
from torch import nn

from dragoman.models.attention.observer import observed_attention
from dragoman.models.interface import DecoderState, TranslationModel
from dragoman.models.recurrent.options import RNNsearchOptions
from dragoman.models.recurrent.rnnsearch import RNNsearch

VARIANTS = {
    "published": {},
    "tied": {"tied_embeddings": "all", "embedding_dim": 12, "maxout_dim": 12},
    "output tied": {"tied_embeddings": "target", "embedding_dim": None, "maxout_dim": 16},
    "alignment": {"alignment_dim": 5},
}


def make_model(*, lively=True, **changes):
    """Make a small model, with weights large enough for every path to show."""
    torch.manual_seed(0)
    shape = {"model_dim": 16, "embedding_dim": 10, "maxout_dim": 7}
    model = RNNsearch(RNNsearchOptions(**shape | changes), contract.VOCABULARY)
    if lively:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if not name.endswith("words"):
                    parameter.normal_(std=0.4)
                else:
                    parameter.mul_(100)
    return model


@pytest.fixture(scope="module", params=VARIANTS)
def model(request):
    return make_model(**VARIANTS[request.param])


def gated(cell, inputs, state, words=None):
    """Compute equations of appendix A.1.1, in which z and 1 − z have changed places."""
    reset_input, keep_input, new_input = cell.weight_input.chunk(3)
    reset_state, keep_state, new_state = cell.weight_hidden.chunk(3)
    reset_bias, keep_bias, new_bias = cell.bias.chunk(3)
    extra = torch.zeros_like(cell.bias) if words is None else words
    reset_extra, keep_extra, new_extra = extra.chunk(3)
    r = torch.sigmoid(reset_input @ inputs + reset_extra + reset_state @ state + reset_bias)
    z = torch.sigmoid(-(keep_input @ inputs + keep_extra + keep_state @ state + keep_bias))
    new = torch.tanh(new_input @ inputs + new_extra + new_state @ (r * state) + new_bias)
    return (1 - z) * state + z * new


def annotations(model, source):
    vectors = [model.source_embedding.words[word] for word in source]
    cells = model.encoder.forwards.cell, model.encoder.backwards.cell
    ahead, behind = [], []
    for states, cell, order in ((ahead, cells[0], vectors), (behind, cells[1], vectors[::-1])):
        state = torch.zeros(cell.hidden_dim)
        for vector in order:
            state = gated(cell, vector, state)
            states.append(state)
    return list(map(torch.cat, zip(ahead, behind[::-1], strict=True)))


def published(model, source, target):
    """Compute what the output layer reads at each word of one pair, from one number to the next."""
    memory = annotations(model, source)
    decoder, attention = model.decoder, model.decoder.cross_attention
    first = memory[0][len(memory[0]) // 2 :]
    state = torch.tanh(decoder.first.weight @ first + decoder.first.bias)
    said = []
    for word in [contract.VOCABULARY.pad_id, *target[:-1]]:
        vector = model.target_embedding.words[word]
        scores = torch.stack([
            attention.score
            @ torch.tanh(attention.query.weight @ state + attention.key.weight @ each)
            for each in memory
        ])  # fmt: skip
        context = sum(a * each for a, each in zip(scores.softmax(0), memory, strict=True))
        deep = decoder.deep_state.weight @ state + decoder.deep_state.bias
        deep = deep + decoder.deep_word.weight @ vector + decoder.deep_context.weight @ context
        said.append(torch.stack([max(pair) for pair in zip(deep[::2], deep[1::2], strict=True)]))
        state = gated(decoder.cell, context, state, decoder.word.weight @ vector)
    return torch.stack(said)


@torch.no_grad()
def test_equals_the_published_equations(model):
    model.eval()
    pairs = contract.make_pairs(3, seed=9, longest=6)
    found = model.forward(contract.batch_of(pairs)).hidden
    for row, (source, target) in zip(found, pairs, strict=True):
        expected = published(model, source, target)
        torch.testing.assert_close(row[: len(target)], expected, atol=1e-5, rtol=1e-5)


def test_the_contract(model):
    contract.check_all(model)


@pytest.mark.parametrize("name", ["published", "tied"])
def test_learns_by_heart_from_the_published_beginning(name):
    wider = {"model_dim": 32, "embedding_dim": 24, "maxout_dim": 24}
    changes = {key: value for key, value in VARIANTS[name].items() if key not in wider}
    contract.check_overfits(make_model(lively=False, **wider | changes))


def test_begins_as_published():
    options = RNNsearchOptions(model_dim=200, embedding_dim=100, maxout_dim=50)
    model = RNNsearch(options, contract.VOCABULARY)
    alignment = model.decoder.cross_attention
    for matrix in (alignment.query.weight, alignment.key.weight):
        assert matrix.std().item() == pytest.approx(0.001, rel=0.05)
    assert not alignment.score.any()
    for cell in (model.encoder.forwards.cell, model.encoder.backwards.cell, model.decoder.cell):
        assert cell.weight_input.std().item() == pytest.approx(0.01, rel=0.05)
        assert not cell.bias.any()
        for gate in cell.weight_hidden.chunk(3):
            torch.testing.assert_close(gate @ gate.T, torch.eye(200), atol=1e-5, rtol=0)
    rest = [model.decoder.first, model.decoder.word, model.decoder.deep_state]
    rest += [model.decoder.deep_word, model.decoder.deep_context]
    for layer in rest:
        assert layer.weight.std().item() == pytest.approx(0.01, rel=0.05)
        assert layer.bias is None or not layer.bias.any()


def test_has_the_published_number_of_weights():
    """Count n=1000, m=620, l=500 and 30,000 words of each language by the equations."""
    n, m, l, words = 1000, 620, 500, 30_000
    with torch.device("meta"):
        vocabulary = contract.VOCABULARY._replace(source_size=words, target_size=words)
        model = RNNsearch(RNNsearchOptions(), vocabulary)
    encoder = 2 * 3 * (n * m + n * n + n)
    alignment = n * n + n * 2 * n + n
    decoder = 3 * (n * m + n * n + n * 2 * n + n) + (n * n + n)
    deep = 2 * l * (n + m + 2 * n) + 2 * l
    expected = encoder + alignment + decoder + deep + words * (2 * m + l)
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_runs_without_data():
    batch = contract.batch_of(contract.make_pairs(3)).to(torch.device("meta"))
    with torch.device("meta"):
        model = make_model(lively=False)
        assert model.forward(batch).hidden.shape == (*batch.target.ids.shape, 7)


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
    assert isinstance(state, DecoderState)
    covered = seen.sum(2).where(batch.source.is_token[:, None], 1.0)
    torch.testing.assert_close(state.coverage, covered, atol=1e-5, rtol=1e-5)


def test_offers_what_every_family_offers():
    model = make_model()
    assert isinstance(model, TranslationModel)
    assert isinstance(model, nn.Module)
