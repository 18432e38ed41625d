"""ConvS2S against its equations, sentence by sentence, and the contract."""

import math

import pytest
import torch
from tests.models import contract
from torch.nn import functional

from dragoman.data.batches import Sequences, flatten, make_batch, pad_sequences
from dragoman.models.attention.observer import observed_attention
from dragoman.models.convolutional.convolution import Convolution, WeightNormLinear, receptive_field
from dragoman.models.convolutional.convs2s import ConvS2S
from dragoman.models.convolutional.options import ConvS2SOptions
from dragoman.models.interface import DecoderState, TranslationModel, Vocabulary
from dragoman.training.objectives.loss import TrainingStep

PAD, EOS = contract.VOCABULARY.pad_id, contract.VOCABULARY.eos_id
SHAPE = {
    "encoder_blocks": "2x12k3", "decoder_blocks": "2x12k3", "model_dim": 10, "output_dim": 14,
    "max_positions": 16, "dropout": 0.0,
}  # fmt: skip
VARIANTS = {
    "even": {},
    "widths": {"encoder_blocks": "1x8k3 1x12k5 1x16k1", "decoder_blocks": "1x8k3 1x12k5 1x16k1"},
    "points": {"encoder_blocks": "1x12k1", "decoder_blocks": "2x12k1"},
    "even kernels": {"decoder_blocks": "1x12k2 1x9k4"},
    "tied": {"output_dim": 10, "tied_embeddings": "all"},
}


def make_model(vocabulary=contract.VOCABULARY, **changes):
    torch.manual_seed(0)
    model = ConvS2S(ConvS2SOptions(**SHAPE | changes), vocabulary)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.3)
            elif name.endswith("magnitude"):
                parameter.mul_(torch.empty_like(parameter).uniform_(0.7, 1.4))
    return model


@pytest.fixture(scope="module", params=VARIANTS)
def model(request):
    return make_model(**VARIANTS[request.param])


# The contract


def test_the_contract(model):
    contract.check_all(model)


@pytest.mark.parametrize("variant", ["widths", "tied"])
def test_learns_by_heart(variant):
    torch.manual_seed(0)
    options = ConvS2SOptions(**SHAPE | VARIANTS[variant])
    contract.check_overfits(ConvS2S(options, contract.VOCABULARY), steps=40)


def test_satisfies_the_seam(model):
    assert isinstance(model, TranslationModel)
    state = model.start(model.encode(contract.batch_of(contract.make_pairs(2)).source), 3)
    assert isinstance(state, DecoderState)
    assert state.coverage is None
    assert model(contract.batch_of(contract.make_pairs(2))).auxiliary_loss is None


# Against the equations


def convolve(convolution, states, padding):
    """Convolve one sentence [length, width] by PyTorch, and gate."""
    size = convolution.kernel_size
    weight = convolution.linear.weight.unflatten(1, (size, -1)).transpose(1, 2)
    padded = functional.pad(states.T, padding)
    both = functional.conv1d(padded[None], weight, convolution.linear.bias)[0].T
    first, second = both.chunk(2, dim=1)
    return first * torch.sigmoid(second)


def pass_by(block, states):
    same = block.convolution.linear.out_features == 2 * states.size(1)
    return states if same else block.shortcut(states)


def hidden_by_hand(model, source, target):
    """Follow one pair through the paper's equations, without batches, masks or padding."""
    root = math.sqrt(0.5)
    read = [PAD, *target[:-1]]
    embedding = model.source_embedding
    e = embedding.words[source] + embedding.positions.weight[: len(source)]
    z = model.encoder_input(e)
    for block in model.encoder:
        around = block.convolution.kernel_size // 2
        z = (pass_by(block, z) + convolve(block.convolution, z, (around, around))) * root
    z = model.encoder_output(z)
    embedding = model.target_embedding
    g = embedding.words[read] + embedding.positions.weight[: len(read)]
    states = model.decoder_input(g)
    for block in model.decoder:
        h = convolve(block.convolution, states, (block.convolution.kernel_size - 1, 0))
        attention, rows = block.cross_attention, []
        for h_i, g_i in zip(h, g, strict=True):
            d = attention.query.weight @ h_i + attention.query.bias + g_i
            a = torch.softmax(torch.stack([d @ z_j for z_j in z]), 0)
            c = sum(a_j * (z_j + e_j) for a_j, z_j, e_j in zip(a, z, e, strict=True))
            m = len(source)
            rows.append((h_i + attention.output(c * (m * math.sqrt(1 / m)))) * root)
        states = (pass_by(block, states) + torch.stack(rows)) * root
    return model.decoder_output(states)


@torch.no_grad()
def test_equals_the_papers_equations(model):
    pairs = contract.make_pairs(3, seed=11)
    found = model.eval()(contract.batch_of(pairs)).hidden
    for row, (source, target) in zip(found, pairs, strict=True):
        expected = hidden_by_hand(model, source, target)
        torch.testing.assert_close(row[: len(target)], expected, rtol=1e-4, atol=1e-5)


# Attention


@torch.no_grad()
def test_every_decoder_layers_attention_can_be_seen(model):
    batch = contract.batch_of(contract.make_pairs(3, seed=12))
    with observed_attention(model) as seen:
        observed = model(batch).hidden
    names = [f"decoder.{index}.cross_attention" for index in range(len(model.decoder))]
    assert list(seen) == names
    size = (3, 1, batch.target.ids.size(1), batch.source.ids.size(1))
    for (weights,) in seen.values():
        assert weights.shape == size
        torch.testing.assert_close(weights.sum(-1), torch.ones(size[:-1]))
        assert weights.transpose(1, 3)[~batch.source.is_token].eq(0).all()
    torch.testing.assert_close(observed, model(batch).hidden)


@torch.no_grad()
def test_weights_put_in_their_place_are_used(model):
    batch = contract.batch_of(contract.make_pairs(3, seed=13))
    memory = model.encode(batch.source)
    attention = model.decoder[0].cross_attention
    width = attention.query.in_features
    states, embedded = torch.randn(3, 4, width), torch.randn(3, 4, memory.keys.size(2))
    is_token = batch.source.is_token[:, None]
    uniform = is_token / is_token.sum(-1, keepdim=True)
    attention.observer = lambda weights: uniform[:, None].expand_as(weights)
    try:
        found = attention(states, embedded, memory)
    finally:
        attention.observer = None
    lengths = batch.source.lengths[:, None]
    mean = memory.values.where(is_token.transpose(1, 2), 0).sum(1) / lengths
    context = (mean * lengths.sqrt())[:, None]
    expected = (states + attention.output(context)) * math.sqrt(0.5)
    torch.testing.assert_close(found, expected)


@torch.no_grad()
def test_hypotheses_of_a_sentence_are_queries_of_one_map(model):
    batch = contract.batch_of(contract.make_pairs(2, seed=14))
    state = model.start(model.encode(batch.source), 4)
    _, state = model.step(torch.full((2, 1), PAD), state)
    state = state.reorder(torch.zeros(2, 3, dtype=torch.int64))
    with observed_attention(model) as seen:
        model.step(torch.tensor([[3, 4, 5], [6, 7, 8]]), state)
    for (weights,) in seen.values():
        assert weights.shape == (2, 1, 3, batch.source.ids.size(1))


# Gradients


def test_gradients_into_the_encoder_are_divided_by_twice_the_attentions(model):
    model.eval()
    source = contract.batch_of(contract.make_pairs(3, seed=15)).source
    kept = {}

    def keep(name):
        def hook(module, inputs, output):
            kept[name] = output

        return hook

    handles = [
        model.encoder_output.register_forward_hook(keep("z")),
        model.source_embedding.register_forward_hook(keep("e")),
    ]
    memory = model.encode(source)
    for handle in handles:
        handle.remove()
    assert torch.equal(memory.keys, kept["z"])
    weight = torch.randn_like(memory.keys)
    scale = 1 / (2 * len(model.decoder))

    def gradient(of, by):
        return torch.autograd.grad((of * weight).sum(), by, retain_graph=True)[0]

    plain = gradient(kept["z"], kept["e"])
    torch.testing.assert_close(gradient(memory.keys, kept["e"]), plain * scale)
    torch.testing.assert_close(gradient(memory.values, kept["e"]), plain * scale + weight)
    bias = model.encoder_output.bias
    torch.testing.assert_close(gradient(memory.keys, bias), gradient(kept["z"], bias) * scale)


def gradient_places(model, embedding, output):
    """Say which words' vectors change the sum of an output."""
    kept = []

    def hook(module, inputs, output):
        output.retain_grad()
        kept.append(output)

    handle = embedding.register_forward_hook(hook)
    output().backward()
    handle.remove()
    return kept[0].grad[0].ne(0).any(-1).nonzero().flatten().tolist()


def test_receptive_fields_are_those_of_contiguous_convolutions():
    shape = {"encoder_blocks": "4x6k3", "decoder_blocks": "3x6k3", "max_positions": 40}
    model = make_model(**shape).double().eval()
    words = [3 + place % 9 for place in range(29)]
    batch = make_batch(flatten([[*words, EOS]]), flatten([[*words, EOS]]), PAD)
    place, field = 17, receptive_field(3, [1] * 4)
    found = gradient_places(
        model, model.source_embedding, lambda: model.encode(batch.source).keys[0, place].sum()
    )
    assert found == list(range(place - field // 2, place + field // 2 + 1))
    field = receptive_field(3, [1] * 3)
    found = gradient_places(
        model, model.target_embedding, lambda: model(batch).hidden[0, place].sum()
    )
    assert found == list(range(place - field + 1, place + 1))
    found = gradient_places(
        model, model.source_embedding, lambda: model(batch).hidden[0, place].sum()
    )
    assert found == list(range(30))


# Weights


def test_initial_weights_have_their_variances():
    torch.manual_seed(0)
    options = ConvS2SOptions(
        encoder_blocks="2x64k3 1x96k5", decoder_blocks="2x64k3 1x96k1", model_dim=80,
        output_dim=72, max_positions=300, dropout=0.25,
    )  # fmt: skip
    model = ConvS2S(options, Vocabulary(400, 300, PAD, EOS))
    gated = {each.linear for each in model.modules() if isinstance(each, Convolution)}
    assert len(gated) == 6
    for module in model.modules():
        if isinstance(module, WeightNormLinear):
            expected = math.sqrt((4 if module in gated else 1) * 0.75 / module.in_features)
            assert module.weight.std().item() == pytest.approx(expected, rel=0.06)
            assert module.bias.eq(0).all()
    is_word = torch.arange(300) != PAD
    assert model.output.words[is_word].std().item() == pytest.approx(math.sqrt(0.75 / 72), rel=0.03)
    for embedding in (model.source_embedding, model.target_embedding):
        assert embedding.words[PAD].eq(0).all()
        assert embedding.words.std().item() == pytest.approx(0.1, rel=0.03)
        assert embedding.positions.weight.std().item() == pytest.approx(0.1, rel=0.03)
    assert model.output.words[PAD].eq(0).all()


@torch.no_grad()
def test_depth_keeps_the_variance():
    """Twenty blocks neither fade nor blow up, which is what √½ and the initial weights are for.

    The paper's argument holds for small values, whose gates stand at one half.
    """
    blocks = {"encoder_blocks": "20x128k3", "decoder_blocks": "1x128k3", "max_positions": 64}
    torch.manual_seed(0)
    model = ConvS2S(ConvS2SOptions(**SHAPE | blocks), contract.VOCABULARY).eval()
    states = 0.01 * torch.randn(4, 64, 128)
    is_token = torch.ones(4, 64, dtype=torch.bool)
    for block in model.encoder:
        states = block(states, is_token)
        assert states.std().item() == pytest.approx(0.01, rel=0.25)


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_are_saved_and_loaded_by_name(variant):
    model = make_model(**VARIANTS[variant]).eval()
    other = ConvS2S(ConvS2SOptions(**SHAPE | VARIANTS[variant]), contract.VOCABULARY).eval()
    saved = {name: each.detach().clone() for name, each in model.named_parameters()}
    with torch.no_grad():
        for name, each in other.named_parameters():
            each.copy_(saved.pop(name))
    assert not saved
    assert set(model.state_dict()) == set(dict(model.named_parameters(remove_duplicate=False)))
    batch = contract.batch_of(contract.make_pairs(3))
    assert torch.equal(other(batch).hidden, model(batch).hidden)


# Devices and types


def test_shapes_are_known_without_numbers():
    with torch.device("meta"):
        model = ConvS2S(ConvS2SOptions(**SHAPE), Vocabulary(1000, 900, PAD, EOS))
        ids, lengths = torch.zeros(4, 15, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
        batch = contract.batch_of([([3, EOS], [4, EOS])])
        sequences = Sequences(ids, lengths)
        batch = type(batch)(sequences, sequences, 160, 80)
        TrainingStep(model, 0.1)(batch).backward()
    assert all(each.grad is not None for each in model.parameters())


def test_half_precision_says_nearly_the_same(model):
    model.eval()
    batch = contract.batch_of(contract.make_pairs(3, seed=16))
    expected = model(batch).hidden
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = model(batch).hidden
        state = model.start(model.encode(batch.source), 9)
        read = batch.target.shifted(PAD)
        for place in range(read.size(1)):
            hidden, state = model.step(read[:, place : place + 1], state)
            real = batch.target.lengths > place
            torch.testing.assert_close(
                hidden[real, 0].float(), expected[real, place], rtol=0.1, atol=0.1
            )
    real = batch.target.is_token
    torch.testing.assert_close(found[real].float(), expected[real], rtol=0.1, atol=0.1)
    found.float().square().sum().backward()
    assert all(each.grad.isfinite().all() for each in model.parameters() if each.grad is not None)
    model.zero_grad()


@torch.no_grad()
def test_the_state_does_not_grow(model):
    state = model.start(model.encode(pad_sequences(flatten([[5, 6, EOS]]), PAD)), 9)
    sizes = {name: each.shape for name, each in state.hypotheses.items()}
    assert [size[2] for size in sizes.values()] == [
        block.convolution.kernel_size - 1 for block in model.decoder
    ]
    for _ in range(9):
        _, state = model.step(torch.tensor([[7]]), state)
        assert {name: each.shape for name, each in state.hypotheses.items()} == sizes
