"""ByteNet against its blocks written out, its receptive field, its unfolding, and the contract."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models import contract
from torch import nn
from torch.nn import functional

from dragoman.data.batches import Sequences, flatten, make_batch, pad_sequences
from dragoman.models.attention.observer import observed_attention
from dragoman.models.convolutional.bytenet import Block, ByteNet, multiplicative_unit
from dragoman.models.convolutional.convolution import receptive_field
from dragoman.models.convolutional.options import ByteNetOptions
from dragoman.models.interface import DecoderState, TranslationModel, Vocabulary
from dragoman.training.objectives.loss import TrainingStep

PAD, EOS = contract.VOCABULARY.pad_id, contract.VOCABULARY.eos_id
SHAPE = {"num_encoder_sets": 1, "num_decoder_sets": 1, "max_dilation": 4, "model_dim": 8}
VARIANTS = {
    "relu": {},
    "multiplicative": {"block": "multiplicative"},
    "kernel 5": {"kernel_size": 5, "max_dilation": 2, "length_extra": 3},
    "one set of five": {"max_dilation": 16, "length_ratio": 1.0},
    "two sets": {
        "num_encoder_sets": 2, "num_decoder_sets": 2, "max_dilation": 2, "length_ratio": 1.55,
    },
    "tied": {"max_dilation": 1, "tied_embeddings": "all"},
}  # fmt: skip


def make_model(**changes):
    torch.manual_seed(0)
    model = ByteNet(ByteNetOptions(**SHAPE | changes), contract.VOCABULARY)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.normal_(float("norm.weight" in name), 0.3)
    return model.eval()


@pytest.fixture(scope="module", params=VARIANTS)
def model(request):
    return make_model(**VARIANTS[request.param])


# The contract


def test_the_contract(model):
    contract.check_all(model)


@pytest.mark.parametrize("variant", ["relu", "multiplicative"])
def test_learns_by_heart(variant):
    torch.manual_seed(0)
    options = ByteNetOptions(**SHAPE | VARIANTS[variant])
    contract.check_overfits(ByteNet(options, contract.VOCABULARY), steps=40)


def test_satisfies_the_seam(model):
    assert isinstance(model, TranslationModel)
    batch = contract.batch_of(contract.make_pairs(2))
    state = model.start(model.encode(batch.source), 3)
    assert isinstance(state, DecoderState)
    assert state.coverage is None
    with observed_attention(model) as seen:
        assert model(batch).auxiliary_loss is None
    assert not seen


# Against the blocks written out


def normalise(norm, states):
    mean, variance = states.mean(-1, keepdim=True), states.var(-1, correction=0, keepdim=True)
    return (states - mean) / torch.sqrt(variance + norm.eps) * norm.weight + norm.bias


def apply_block(block, states, *, causal):
    """Apply a block to one sentence [length, 2d] with PyTorch's convolution."""
    convolution = block.convolution
    size, dilation = convolution.kernel_size, convolution.dilation
    inner = block.narrow(functional.relu(normalise(block.input_norm, states)))
    inner = normalise(block.inner_norm, inner)
    reach = (size - 1) * dilation
    sides = (reach, 0) if causal else (reach // 2, reach // 2)
    weight = convolution.linear.weight.unflatten(1, (size, -1)).transpose(1, 2)

    def convolve(read):
        padded = functional.pad(read.T, sides)[None]
        return functional.conv1d(padded, weight, convolution.linear.bias, dilation=dilation)[0].T

    if convolution.linear.out_features == inner.size(1):
        found = convolve(functional.relu(inner))
    else:
        g1, g2, g3, u = convolve(inner).chunk(4, dim=1)
        new = torch.sigmoid(g2) * inner + torch.sigmoid(g3) * torch.tanh(u)
        found = torch.sigmoid(g1) * torch.tanh(new)
    return states + block.widen(functional.relu(normalise(block.output_norm, found)))


def hidden_by_hand(model, source, target, num_places):
    """Follow one pair through the network, without batches, masks or padding to a batch."""
    dim = model.source_embedding.words.size(1)
    states = torch.zeros(num_places, dim)
    states[: len(source)] = model.source_embedding.words[source] * math.sqrt(dim)
    for block in model.encoder:
        states = apply_block(block, states, causal=False)
    upon = model.encoder_output(functional.relu(normalise(model.encoder_norm, states)))
    states = model.target_embedding.words[[PAD, *target[:-1]]] * math.sqrt(dim)
    both = min(num_places, len(target))
    states[:both] += upon[:both]
    for block in model.decoder:
        states = apply_block(block, states, causal=True)
    return functional.relu(model.decoder_output(normalise(model.decoder_norm, states)))


@torch.no_grad()
def test_equals_the_blocks_written_out(model):
    pairs = [
        ([3, 4, 5, EOS], [6, 7, EOS]),
        ([8, EOS], [9, 10, 11, 12, 13, 14, 15, 16, EOS]),
        ([7, 3, 9, 4, 12, 20, 21, EOS], [5, EOS]),
    ]
    found = model(contract.batch_of(pairs)).hidden
    for row, (source, target) in zip(found, pairs, strict=True):
        exact = Fraction(model.length_ratio) * len(source)
        expected = hidden_by_hand(model, source, target, math.ceil(exact) + model.length_extra)
        torch.testing.assert_close(row[: len(target)], expected, rtol=1e-4, atol=1e-5)


def test_multiplicative_unit_can_keep_forget_and_replace():
    h, u = torch.randn(3, 5), torch.randn(3, 5)
    on, off = torch.full_like(h, 40.0), torch.full_like(h, -40.0)
    cases = [
        ((on, on, off), torch.tanh(h)),
        ((on, off, on), torch.tanh(torch.tanh(u))),
        ((off, on, on), torch.zeros_like(h)),
        ((on, on, on), torch.tanh(h + torch.tanh(u))),
    ]
    for gates, expected in cases:
        torch.testing.assert_close(multiplicative_unit(h, torch.cat([*gates, u], -1)), expected)


# How far it sees


def gradient_places(embedding, output):
    """Say which words' vectors change the sum of an output, to the last bit."""
    kept = []

    def hook(module, inputs, output):
        output.retain_grad()
        kept.append(output)

    handle = embedding.register_forward_hook(hook)
    output().backward()
    handle.remove()
    return kept[0].grad[0].ne(0).any(-1).nonzero().flatten().tolist()


def long_batch(length):
    words = [3 + place * place % 17 for place in range(length - 1)]
    return make_batch(flatten([[*words, EOS]]), flatten([[*words, EOS]]), PAD)


@pytest.mark.parametrize("block", ["relu", "multiplicative"])
@pytest.mark.parametrize(
    ("kernel_size", "num_sets", "field"), [(3, 1, 63), (5, 1, 125), (3, 2, 125), (3, 6, 373)]
)
def test_decoder_sees_its_receptive_field_and_no_more(block, kernel_size, num_sets, field):
    changes = {"max_dilation": 16, "kernel_size": kernel_size, "num_decoder_sets": num_sets}
    model = make_model(**changes, block=block).double()
    assert field == receptive_field(kernel_size, num_sets * ByteNetOptions().dilations)
    length, place = field + 7, field + 3
    batch = long_batch(length)
    found = gradient_places(model.target_embedding, lambda: model(batch).hidden[0, place].sum())
    assert found == list(range(place - field + 1, place + 1))


@pytest.mark.parametrize("block", ["relu", "multiplicative"])
def test_encoder_sees_as_far_to_both_sides(block):
    model = make_model(max_dilation=16, block=block).double()
    place = 40
    found = gradient_places(
        model.source_embedding,
        lambda: model.encode(long_batch(90).source)[0, place].sum(),
    )
    assert found == list(range(place - 31, place + 32))


def test_no_word_depends_on_later_ones(model):
    batch = long_batch(9)
    for place in range(9):
        found = gradient_places(
            model.target_embedding,
            lambda: model(batch).hidden[0, place].square().sum(),  # noqa: B023
        )
        assert found[-1] == place
    model.zero_grad()


# Dynamic unfolding


@settings(max_examples=25)
@given(
    ratio=st.fractions(1, 100, max_denominator=1000), extra=st.integers(0, 9),
    lengths=st.lists(st.integers(0, 10_000), min_size=1, max_size=5),
)  # fmt: skip
def test_unfolds_exactly(ratio, extra, lengths):
    with torch.device("meta"):
        options = ByteNetOptions(
            **SHAPE | {"max_dilation": 1}, length_ratio=float(ratio), length_extra=extra
        )
        model = ByteNet(options, contract.VOCABULARY)
    expected = [math.ceil(ratio * length) + extra for length in lengths]
    assert [model.unfold(length) for length in lengths] == expected
    assert model.unfold(torch.tensor(lengths)).tolist() == expected


def test_the_papers_ratio_is_a_fifth_more():
    model = make_model(length_ratio=1.2)
    assert [model.unfold(length) for length in (1, 3, 5, 10, 50)] == [2, 4, 6, 12, 60]


@torch.no_grad()
def test_encoder_speaks_up_to_the_unfolded_length_and_not_beyond(model):
    batch = contract.batch_of([([3, 4, 5, 6, 7, 8, EOS], [9, EOS]), ([10, EOS], [11, EOS])])
    found = model.encode(batch.source)
    lengths = model.unfold(batch.source.lengths)
    assert found.size(1) == lengths.max()
    places = torch.arange(found.size(1)) < lengths[:, None]
    assert torch.equal(found.ne(0).any(-1), places)
    assert places[1].sum() == model.unfold(2)


@torch.no_grad()
def test_decoder_goes_on_beyond_the_encoder(model):
    """The source is still seen there, through the decoder's own convolutions."""
    long = [5, 6, 7, 8, 9, 10, EOS]
    one, other = (model(contract.batch_of([([word, EOS], long)])).hidden[0] for word in (3, 4))
    end = model.unfold(2)
    assert end < 7
    assert not torch.allclose(one[end], other[end])


def test_contents_of_the_padding_never_matter(model):
    batch = contract.batch_of(contract.make_pairs(4, seed=5))
    dirty = Sequences(batch.source.ids.where(batch.source.is_token, 11), batch.source.lengths)
    assert not torch.equal(dirty.ids, batch.source.ids)
    assert torch.equal(model.encode(dirty), model.encode(batch.source))


@torch.no_grad()
def test_the_state_does_not_grow(model):
    state = model.start(model.encode(pad_sequences(flatten([[5, 6, EOS]]), PAD)), 9)
    sizes = {name: each.shape for name, each in state.hypotheses.items()}
    assert [size[2] for size in sizes.values()] == [
        (block.convolution.kernel_size - 1) * block.convolution.dilation for block in model.decoder
    ]
    for _ in range(9):
        _, state = model.step(torch.tensor([[7]]), state)
        assert {name: each.shape for name, each in state.hypotheses.items()} == sizes


# Weights, devices, types


@pytest.mark.parametrize("block", ["relu", "multiplicative"])
def test_initial_weights_have_their_variances(block):
    torch.manual_seed(0)
    options = ByteNetOptions(num_encoder_sets=1, num_decoder_sets=1, model_dim=48, block=block)
    model = ByteNet(options, Vocabulary(300, 200, PAD, EOS))
    gates = {
        each.convolution.linear
        for each in model.modules()
        if isinstance(each, Block) and block == "multiplicative"
    }
    for module in model.modules():
        if isinstance(module, nn.Linear):
            expected = math.sqrt((1 if module in gates else 2) / module.in_features)
            assert module.weight.std().item() == pytest.approx(expected, rel=0.06)
            assert module.bias.eq(0).all()
    for part, size in ((model.source_embedding, 300), (model.target_embedding, 200)):
        assert part.words.shape == (size, 96)
        assert part.words[PAD].eq(0).all()
        assert (part.words.std() * part.scale).item() == pytest.approx(1, rel=0.03)
    assert model.output.words[PAD].eq(0).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_are_saved_and_loaded_by_name(variant):
    model = make_model(**VARIANTS[variant])
    other = ByteNet(ByteNetOptions(**SHAPE | VARIANTS[variant]), contract.VOCABULARY).eval()
    saved = {name: each.detach().clone() for name, each in model.named_parameters()}
    with torch.no_grad():
        for name, each in other.named_parameters():
            each.copy_(saved.pop(name))
    assert not saved
    assert set(model.state_dict()) == set(dict(model.named_parameters(remove_duplicate=False)))
    batch = contract.batch_of(contract.make_pairs(3))
    assert torch.equal(other(batch).hidden, model(batch).hidden)


@pytest.mark.parametrize("block", ["relu", "multiplicative"])
def test_shapes_are_known_without_numbers(block):
    with torch.device("meta"):
        model = ByteNet(ByteNetOptions(**SHAPE, block=block), Vocabulary(1000, 900, PAD, EOS))
        ids, lengths = torch.zeros(4, 20, dtype=torch.int64), torch.zeros(4, dtype=torch.int64)
        sequences = Sequences(ids, lengths)
        batch = type(long_batch(2))(sequences, sequences, 160, 80)
        TrainingStep(model, 0.1)(batch).backward()
    assert all(each.grad is not None for each in model.parameters())


def test_half_precision_says_nearly_the_same(model):
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
                hidden[real, 0].float(), expected[real, place], rtol=0.1, atol=0.2
            )
    real = batch.target.is_token
    torch.testing.assert_close(found[real].float(), expected[real], rtol=0.1, atol=0.2)
    found.float().square().sum().backward()
    assert all(each.grad.isfinite().all() for each in model.parameters() if each.grad is not None)
    model.zero_grad()
