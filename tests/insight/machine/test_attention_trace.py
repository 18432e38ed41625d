"""What is worked out of attention, against the modules and against PyTorch's own."""

import copy

import pytest
import torch
from torch.nn import functional

from dragoman.data.batches import flatten, make_batch
from dragoman.insight.machine.attention_trace import trace_attention
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.paper.experiments.notes.word_order import VOCABULARY

SOURCE, TARGET = [5, 9, 7, 7, 1], [8, 4, 6, 1]
VARIANTS = {
    "plain": {},
    "biases": {"attention_bias": True},
    "widths": {"key_dim": 6, "value_dim": 10},
    "unscaled": {"scaled": False},
    "pre-norm": {"norm_position": "pre"},
    "rotary": {"positions": "rotary"},
    "alibi": {"positions": "alibi"},
    "relative": {"positions": "relative"},
}


def make_model(**variant):
    torch.manual_seed(1)
    options = TransformerOptions(
        num_encoder_layers=2, num_decoder_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2,
        **variant,
    )  # fmt: skip
    model = build_model(options, VOCABULARY).eval().double()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter)
    return model


def make_pair():
    return make_batch(flatten([SOURCE]), flatten([TARGET]), VOCABULARY.pad_id)


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_what_is_worked_out_is_what_the_modules_did(variant):
    several = trace_attention(make_model(**variant), make_pair())
    assert [(each.kind, each.layer) for each in several] == [
        ("encoder", 1), ("encoder", 2), ("decoder", 1), ("cross", 1), ("decoder", 2), ("cross", 2),
    ]  # fmt: skip
    for each in several:
        assert max(each.compare()) < 1e-12


def test_contexts_are_those_of_pytorch():
    for each in trace_attention(make_model(), make_pair()):
        expected = functional.scaled_dot_product_attention(
            each.query, each.key, each.value, attn_mask=each.may_attend
        )
        torch.testing.assert_close(each.contexts, expected)


def test_tokens_see_what_they_may():
    shapes = {"encoder": (5, 5), "decoder": (4, 4), "cross": (4, 5)}
    for each in trace_attention(make_model(), make_pair()):
        assert each.may_attend.shape == shapes[each.kind]
        expected = torch.ones(shapes[each.kind], dtype=torch.bool)
        if each.kind == "decoder":
            expected = expected.tril()
        assert torch.equal(each.may_attend, expected)
        assert torch.equal(each.weights == 0, ~expected.expand_as(each.weights))


def test_cross_attention_offers_what_the_encoder_made():
    model = make_model()
    several = {(each.kind, each.layer): each for each in trace_attention(model, make_pair())}
    with torch.no_grad():
        memory = model.encode(make_pair().source).hidden[0]
    for layer in (1, 2):
        torch.testing.assert_close(several["cross", layer].key_tokens, memory)


def test_steps_add_up_and_leave_out_what_is_not_seen():
    decoder = next(
        each for each in trace_attention(make_model(), make_pair()) if each.kind == "decoder"
    )
    steps = decoder.compute_token(1, 2)
    assert [each is None for each in steps.products] == [False, False, False, True]
    assert [each is None for each in steps.exponentials] == [False, False, False, True]
    assert steps.weights[3] == 0
    assert sum(steps.weights) == pytest.approx(1)
    for product, score in zip(steps.products[:3], steps.scores[:3], strict=True):
        assert score == pytest.approx(product / 8**0.5)
    torch.testing.assert_close(steps.total, decoder.contexts[1, 2])


def test_a_wrong_number_is_noticed():
    worked = trace_attention(make_model(), make_pair())[0]
    spoilt = copy.copy(worked)
    object.__setattr__(spoilt, "weights", worked.weights.flip(-1))
    assert spoilt.compare().weights > 1e-3
    object.__setattr__(spoilt, "output", worked.output + 1e-3)
    assert spoilt.compare().output == pytest.approx(1e-3, rel=1e-6)


def test_model_is_left_as_it_was():
    model = make_model()
    trace_attention(model, make_pair())
    for module in model.modules():
        assert not module._forward_hooks
        assert getattr(module, "observer", None) is None
