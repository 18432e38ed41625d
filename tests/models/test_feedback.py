"""The Feedback Transformer against its equations, followed word by word and head by head."""

import math

import pytest
import torch
from tests.models import contract

from dragoman.data.batches import flatten, pad_sequences
from dragoman.models.attention.observer import observed_attention
from dragoman.models.build import count_parameters
from dragoman.models.feedback import FeedbackTransformer
from dragoman.models.interface import DecoderState, TranslationModel
from dragoman.models.options import TransformerOptions
from dragoman.models.transformer import Transformer
from dragoman.training.objectives.loss import TrainingStep

DIM, INNER, HEADS, LAYERS = 16, 24, 2, 3
SIZE = contract.VOCABULARY.target_size


def make_options(**changes):
    shape = {
        "num_encoder_layers": 1, "num_decoder_layers": LAYERS, "model_dim": DIM,
        "feed_forward_dim": INNER, "num_heads": HEADS, "dropout": 0.0,
        "decoder_attention": "feedback",
    }  # fmt: skip
    return TransformerOptions(**shape | changes)


def make_model(**changes):
    """Make a model whose vectors and biases are not the plain ones they begin with."""
    torch.manual_seed(0)
    model = FeedbackTransformer(make_options(**changes), contract.VOCABULARY).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.normal_(float("norm.weight" in name), 0.3)
    return model


VARIANTS = {
    "post": {},
    "pre": {"norm_position": "pre"},
    "widths": {
        "key_dim": 3,
        "value_dim": 5,
        "attention_bias": True,
        "scaled": False,
        "norm": "rms",
        "positions": "learned",
        "max_positions": 12,
        "tied_embeddings": "none",
    },
    "normalised": {"positions": "normalised"},
}


@pytest.fixture(params=VARIANTS)
def model(request):
    return make_model(**VARIANTS[request.param])


def test_the_contract(model):
    contract.check_all(model)


def test_overfits():
    torch.manual_seed(0)
    options = make_options(norm_position="pre", num_decoder_layers=1)
    contract.check_overfits(FeedbackTransformer(options, contract.VOCABULARY), steps=80)


def test_satisfies_the_seam(model):
    assert isinstance(model, TranslationModel)
    batch = contract.batch_of(contract.make_pairs(2))
    assert isinstance(model.start(model.encode(batch.source), 3), DecoderState)
    assert model(batch).auxiliary_loss is None


def test_runs_without_numbers():
    """A dry run has shapes alone."""
    with torch.device("meta"):
        model = FeedbackTransformer(make_options(), contract.VOCABULARY)
    batch = contract.batch_of(contract.make_pairs(2)).to(torch.device("meta"))
    loss = TrainingStep(model, 0.1)(batch)
    loss.backward()
    assert loss.shape == ()


def test_half_precision_works_and_differs_little(model):
    batch = contract.batch_of(contract.make_pairs(3))
    with torch.no_grad():
        exact = model(batch).hidden
        with torch.autocast("cpu", torch.bfloat16):
            rough = model(batch).hidden
            state = model.start(model.encode(batch.source), 2)
            model.step(torch.full((3, 1), contract.VOCABULARY.pad_id), state)
    assert (exact - rough).abs().mean() < 0.1 * exact.abs().mean()


# Against the equations


def attend(query, keys, values, scale):
    """Average values by the softmax of the scores of one head."""
    scores = torch.stack([query @ key for key in keys]) * scale
    weights = scores.softmax(0)
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def split(vector):
    return vector.chunk(HEADS)


def attend_in_heads(attention, word, keys, values, scale):
    """Look at vectors already projected; where there are none, find zero."""
    if not keys:
        return attention.output(torch.zeros(attention.output.in_features, dtype=word.dtype))
    found = [
        attend(
            query,
            [split(each)[head] for each in keys],
            [split(each)[head] for each in values],
            scale,
        )
        for head, query in enumerate(split(attention.query(word)))
    ]
    return attention.output(torch.cat(found))


def add_and_norm(wrapper, word, sublayer):
    norm, is_pre = wrapper.norm, wrapper.position == "pre"
    return word + sublayer(norm(word)) if is_pre else norm(word + sublayer(word))


def define(model, source, target):
    """Translate by the equations, one sentence, one word, one layer and one head at a time."""
    scale = model.decoder[0].self_attention.scale
    read = [contract.VOCABULARY.pad_id, *target[:-1]]
    encoded = model.encode(pad_sequences(flatten([source]), contract.VOCABULARY.pad_id)).hidden[0]
    shares = model.feedback.layer_weights.exp() / model.feedback.layer_weights.exp().sum()
    memory, hidden = [], []
    for word in model.target_embedding(torch.tensor([read]))[0]:
        layers = [word]
        for layer in model.decoder:
            crossing = layer.cross_attention
            state = add_and_norm(
                layer.self_attention_norm,
                layers[-1],
                lambda x, layer=layer: attend_in_heads(
                    layer.self_attention,
                    x,
                    [model.feedback.key(each) for each in memory],
                    [model.feedback.value(each) for each in memory],
                    scale,
                ),
            )
            state = add_and_norm(
                layer.cross_attention_norm,
                state,
                lambda x, crossing=crossing: attend_in_heads(
                    crossing,
                    x,
                    [crossing.key(each) for each in encoded],
                    [crossing.value(each) for each in encoded],
                    scale,
                ),
            )
            layers.append(add_and_norm(layer.feed_forward_norm, state, layer.feed_forward))
        memory.append(sum(share * each for share, each in zip(shares, layers, strict=True)))
        hidden.append(layers[-1] if model.decoder_norm is None else model.decoder_norm(layers[-1]))
    return torch.stack(hidden)


@torch.no_grad()
@pytest.mark.parametrize("kind", ["post", "pre", "widths"])
def test_equals_its_equations(kind):
    model = make_model(**VARIANTS[kind]).double()
    pairs = contract.make_pairs(3, seed=11)
    found = model(contract.batch_of(pairs)).hidden
    for row, (source, target) in enumerate(pairs):
        expected = define(model, source, target)
        torch.testing.assert_close(found[row, : len(target)], expected, rtol=1e-6, atol=1e-6)


def test_scale_is_that_of_the_options():
    assert make_model().decoder[0].self_attention.scale == 1 / math.sqrt(DIM // HEADS)
    assert make_model(scaled=False).decoder[0].self_attention.scale == 1


@torch.no_grad()
def test_the_first_word_finds_nothing():
    model = make_model()
    batch = contract.batch_of(contract.make_pairs(2))
    found = []
    model.decoder[1].self_attention.register_forward_hook(lambda *call: found.append(call[-1]))
    model(batch)
    assert found[0].eq(0).all()
    assert all(each.ne(0).any() for each in found[1:])


# What feeds back


def layer_outputs(model, batch):
    """Record what the lowest and the highest layer of the decoder say in each call."""
    lowest, highest = [], []
    for layer, outputs in ((model.decoder[0], lowest), (model.decoder[-1], highest)):
        layer.register_forward_hook(lambda *call, outputs=outputs: outputs.append(call[-1]))
    model(batch)
    return lowest, highest


def test_the_lowest_layer_depends_on_the_highest_one_word_earlier():
    lowest, highest = layer_outputs(make_model(), contract.batch_of(contract.make_pairs(2)))
    assert len(lowest) == len(highest) > 3
    for place in range(1, len(lowest)):
        said = lowest[place].square().sum()
        earlier = torch.autograd.grad(said, highest[:place], retain_graph=True)
        assert all(each.ne(0).any() for each in earlier)
        present = torch.autograd.grad(said, highest[place], retain_graph=True, allow_unused=True)
        assert present == (None,)


def test_a_plain_transformer_has_no_such_dependence():
    torch.manual_seed(0)
    model = Transformer(make_options(decoder_attention="full"), contract.VOCABULARY)
    lowest, highest = layer_outputs(model, contract.batch_of(contract.make_pairs(2)))
    said = lowest[0].square().sum()
    assert torch.autograd.grad(said, highest[0], allow_unused=True) == (None,)


@torch.no_grad()
@pytest.mark.parametrize("num_layers", [1, 2, 5])
def test_cache_holds_one_key_and_value_a_word_whatever_the_number_of_layers(num_layers):
    model = make_model(num_decoder_layers=num_layers)
    batch = contract.batch_of(contract.make_pairs(3))
    state = model.start(model.encode(batch.source), 9)
    for length in range(5):
        numbers = sum(each[0, 0].numel() for each in state.hypotheses.values())
        assert numbers == length * 2 * DIM
        assert state.length == length
        _, state = model.step(torch.full((3, 1), 5), state)


@torch.no_grad()
def test_memory_is_the_weighted_mean_of_all_layers():
    """With all weight on the embedding, what later words see is the embedding alone."""
    model = make_model()
    batch = contract.batch_of(contract.make_pairs(1))
    for chosen in range(LAYERS + 1):
        model.feedback.layer_weights.fill_(-1e4)
        model.feedback.layer_weights[chosen] = 0
        said = []
        hooks = [
            each.register_forward_hook(lambda *call, said=said: said.append(call[-1]))
            for each in (model.target_embedding, *model.decoder)
        ]
        state = model.start(model.encode(batch.source), 1)
        _, state = model.step(torch.tensor([[7]]), state)
        key = model.feedback.key(said[chosen][0, 0]).view(HEADS, -1)
        torch.testing.assert_close(state.hypotheses["keys"][0, 0, :, 0], key)
        for each in hooks:
            each.remove()


# Weights


@pytest.mark.parametrize("num_layers", [1, 4])
@pytest.mark.parametrize("is_pre", [False, True])
def test_parameters_are_as_many_as_the_formula_says(num_layers, is_pre):
    model = make_model(
        num_decoder_layers=num_layers,
        norm_position="pre" if is_pre else "post",
        key_dim=3,
        value_dim=5,
    )
    keys, values, norm = HEADS * 3 * DIM, HEADS * 5 * DIM, 2 * DIM
    feed_forward = 2 * DIM * INNER + INNER + DIM
    attention = 2 * keys + 2 * values
    encoder = attention + feed_forward + 2 * norm
    # A layer's own queries and outputs, its attention to the source, its feed-forward layer.
    layer = keys + values + attention + feed_forward + 3 * norm
    memory = keys + values + num_layers + 1
    total = SIZE * DIM + encoder + num_layers * layer + memory + 2 * norm * is_pre
    assert count_parameters(model) == total


def test_fresh_memory_is_the_plain_mean():
    model = FeedbackTransformer(make_options(), contract.VOCABULARY)
    assert model.feedback.layer_weights.softmax(0).eq(1 / (LAYERS + 1)).all()


# Looking


@torch.no_grad()
def test_observer_sees_each_word_look_back_and_at_the_source():
    model = make_model()
    batch = contract.batch_of(contract.make_pairs(2, seed=3))
    num_words, num_source = batch.target.ids.size(1), batch.source.ids.size(1)
    unseen = model(batch).hidden
    with observed_attention(model) as maps:
        seen = model(batch).hidden
    torch.testing.assert_close(seen, unseen, rtol=1e-5, atol=1e-5)
    for layer in range(LAYERS):
        own = torch.cat(maps[f"decoder.{layer}.self_attention"], dim=2)
        assert own.shape == (2, HEADS, num_words, num_words)
        past = torch.ones(num_words, num_words).tril(-1)
        assert torch.equal(own.ne(0), past.bool().expand_as(own))
        torch.testing.assert_close(own[:, :, 1:].sum(-1), torch.ones(2, HEADS, num_words - 1))
        source = torch.cat(maps[f"decoder.{layer}.cross_attention"], dim=2)
        assert source.shape == (2, HEADS, num_words, num_source)
        torch.testing.assert_close(source.sum(-1), torch.ones(2, HEADS, num_words))


@torch.no_grad()
def test_observer_may_replace_the_weights():
    """A decoder that looks only at the start symbol forgets the other words before."""
    model = make_model(num_decoder_layers=1, positions="none")

    def look_at_the_start(name, weights):
        if "self_attention" not in name or "decoder" not in name or weights.eq(0).all():
            return weights
        return torch.zeros_like(weights).index_fill(-1, torch.tensor(0), 1.0)

    source = [5, 6, contract.VOCABULARY.eos_id]
    batch = contract.batch_of([(source, [7, 8, 9, 9]), (source, [8, 7, 7, 9])])
    with observed_attention(model, look_at_the_start):
        hidden = model(batch).hidden
    torch.testing.assert_close(hidden[0, 2], hidden[1, 1])
    torch.testing.assert_close(hidden[0, 1], hidden[1, 2])
    assert not torch.allclose(model(batch).hidden[0, 2], model(batch).hidden[1, 1])


@torch.no_grad()
def test_observer_sees_steps_too():
    model = make_model()
    batch = contract.batch_of(contract.make_pairs(2))
    state = model.start(model.encode(batch.source), 3)
    with observed_attention(model) as maps:
        for _ in range(3):
            _, state = model.step(torch.full((2, 1), 4), state)
    own = maps["decoder.0.self_attention"]
    assert [each.shape for each in own] == [(2, HEADS, 1, length) for length in (1, 2, 3)]
    assert all(each[..., -1].eq(0).all() for each in own)
