"""Looking at attention changes nothing; replacing its weights changes what it should."""

import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.models.attention.observer import observed_attention
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions

PAD = 2


@pytest.fixture
def model():
    torch.manual_seed(0)
    shape = TransformerOptions(
        num_encoder_layers=2, num_decoder_layers=1, model_dim=12, feed_forward_dim=8, num_heads=3
    )
    return build_model(shape, Vocabulary(12, 12, PAD, 0)).eval()


@pytest.fixture
def batch():
    return make_batch(flatten([[3, 4, 5, 0], [6, 0]]), flatten([[7, 0], [8, 9, 10, 11, 0]]), PAD)


def attentions(model):
    return [each for each in model.modules() if hasattr(each, "observer")]


def test_looking_changes_nothing(model, batch):
    fused = model(batch).hidden
    with observed_attention(model):
        observed = model(batch).hidden
    torch.testing.assert_close(observed, fused, rtol=1e-6, atol=1e-6)


def test_every_module_is_recorded_with_its_shape(model, batch):
    with observed_attention(model) as maps:
        model(batch)
    shapes = {name: [tuple(call.shape) for call in calls] for name, calls in maps.items()}
    assert shapes == {
        "encoder.0.self_attention": [(2, 3, 4, 4)],
        "encoder.1.self_attention": [(2, 3, 4, 4)],
        "decoder.0.self_attention": [(2, 3, 5, 5)],
        "decoder.0.cross_attention": [(2, 3, 5, 4)],
    }


def test_weights_sum_to_one_and_keep_off_the_padding(model, batch):
    with observed_attention(model) as maps:
        model(batch)
    for calls in maps.values():
        torch.testing.assert_close(calls[0].sum(-1), torch.ones_like(calls[0][..., 0]))
    for name in ("encoder.1.self_attention", "decoder.0.cross_attention"):
        weights = maps[name][0]
        assert weights[1, :, :, 2:].eq(0).all()
        assert weights[1, :, :, :2].gt(0).all()
        assert weights[0].gt(0).all()
    past = maps["decoder.0.self_attention"][0]
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    assert past[:, :, later].eq(0).all()
    assert past[:, :, ~later].gt(0).all()


def test_switching_a_head_off_is_zeroing_its_block_of_the_output(model, batch):
    head, name = 1, "decoder.0.cross_attention"

    def switch_off(module, weights):
        if module != name:
            return weights
        changed = weights.clone()
        changed[:, head] = 0
        return changed

    whole = model(batch).hidden
    with observed_attention(model, switch_off) as maps:
        without_head = model(batch).hidden
    assert maps[name][0][:, head].eq(0).all()
    width = 12 // 3
    with torch.no_grad():
        weight = model.get_submodule(name).output.weight
        weight[:, head * width : (head + 1) * width] = 0
    torch.testing.assert_close(without_head, model(batch).hidden, rtol=1e-6, atol=1e-6)
    assert not torch.allclose(without_head, whole, atol=1e-3)


def test_replaced_weights_are_used(model, batch):
    """Where all look at the first source word alone, no other one matters."""

    def look_at_the_first(name, weights):
        first = torch.zeros_like(weights)
        first[..., 0] = 1
        return first

    others = make_batch(flatten([[3, 9, 9, 0], [6, 0]]), flatten([[7, 0], [8, 9, 10, 11, 0]]), PAD)
    assert not torch.allclose(model(batch).hidden, model(others).hidden, atol=1e-3)
    with observed_attention(model, look_at_the_first):
        torch.testing.assert_close(model(batch).hidden, model(others).hidden)


def test_observers_go_away(model, batch):
    with observed_attention(model):
        assert all(each.observer is not None for each in attentions(model))
    assert len(attentions(model)) == 4
    assert all(each.observer is None for each in attentions(model))


def test_observers_go_away_after_an_exception(model, batch):
    def fail(name, weights):
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError), observed_attention(model, fail):
        model(batch)
    assert all(each.observer is None for each in attentions(model))
