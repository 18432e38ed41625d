"""Luong's scores and windows against their formulas, spelt out entry by entry."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.models.attention.additive_attention import AdditiveAttention
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.multiplicative_attention import MultiplicativeAttention
from dragoman.models.attention.observer import observed_attention
from dragoman.models.attention.scaled_dot_product_attention import scaled_dot_product_attention

SCORES = ("dot", "general", "concat", "location")
SPANS = ("global", "local-m", "local-p")
DIM = 4
LENGTHS = torch.tensor([7, 3])
PLACES = torch.tensor([0, 2, 9])


def make_attention(**options: object) -> MultiplicativeAttention:
    torch.manual_seed(0)
    return MultiplicativeAttention(DIM, **{"max_positions": 8, **options}).double()


def make_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(2, len(PLACES), DIM, generator=generator, dtype=torch.float64)
    memory = torch.randn(2, 7, DIM, generator=generator, dtype=torch.float64)
    return query, memory


def attend(attention, query, memory, mask=None, places=PLACES):
    mask = mask or Mask(key_lengths=LENGTHS)
    return attention(query, attention.prepare(memory), memory, mask, places)


def literal_score(attention, h, s_index, s):
    """Equation 8 of the paper for one pair of states."""
    match attention.score:
        case "dot":
            return sum(h[i] * s[i] for i in range(DIM))
        case "general":
            matrix = attention.key.weight.tolist()
            return sum(h[i] * matrix[i][j] * s[j] for i in range(DIM) for j in range(DIM))
        case "concat":
            joined = torch.cat([attention.query.weight, attention.key.weight], dim=1).tolist()
            inner = [math.tanh(sum(a * b for a, b in zip(row, [*h, *s], strict=True)))
                     for row in joined]  # fmt: skip
            return sum(a * b for a, b in zip(attention.weigh.weight[0].tolist(), inner,
                                             strict=True))  # fmt: skip
        case "location":
            row = attention.location.weight[s_index].tolist()
            return sum(a * b for a, b in zip(row, h, strict=True))


def literal_weights(attention, h, place, memory, length):
    """Equations 7 to 10 of the paper for one target word."""
    centre = min(place, length - 1)
    if attention.span == "local-p":
        inner = [math.tanh(sum(a * b for a, b in zip(row, h, strict=True)))
                 for row in attention.centre[0].weight.tolist()]  # fmt: skip
        total = sum(a * b for a, b in zip(attention.centre[2].weight[0].tolist(), inner,
                                          strict=True))  # fmt: skip
        centre = length / (1 + math.exp(-total))
    reach = math.inf if attention.span == "global" else attention.half_width
    seen = [s for s in range(length) if centre - reach <= s <= centre + reach]
    powers = {s: math.exp(literal_score(attention, h, s, memory[s])) for s in seen}
    weights = [powers.get(s, 0.0) / sum(powers.values()) for s in range(len(memory))]
    if attention.span == "local-p":
        variance = (attention.half_width / 2) ** 2
        weights = [w * math.exp(-((s - centre) ** 2) / (2 * variance))
                   for s, w in enumerate(weights)]  # fmt: skip
    return weights


@pytest.mark.parametrize("span", SPANS)
@pytest.mark.parametrize("score", SCORES)
def test_weights_equal_the_formulas(score, span):
    attention = make_attention(score=score, span=span, half_width=2)
    query, memory = make_inputs()
    attended = attend(attention, query, memory)
    for row, length in enumerate(LENGTHS.tolist()):
        for index, place in enumerate(PLACES.tolist()):
            expected = literal_weights(
                attention, query[row, index].tolist(), place, memory[row].tolist(), length
            )
            assert attended.weights[row, index].tolist() == pytest.approx(expected, abs=1e-12)
            value = sum(w * v for w, v in zip(expected, memory[row], strict=True))
            torch.testing.assert_close(attended.values[row, index], value)


def test_dot_is_scaled_dot_product_without_its_factor():
    query, memory = make_inputs()
    mask = Mask(key_lengths=LENGTHS)
    found = attend(make_attention(score="dot"), query, memory, mask)
    enlarged, keys = (query * math.sqrt(DIM)).unsqueeze(1), memory.unsqueeze(1)
    expected = scaled_dot_product_attention(enlarged, keys, keys, mask)
    torch.testing.assert_close(found.weights, expected.weights.squeeze(1))
    torch.testing.assert_close(found.values, expected.values.squeeze(1))


def test_concat_is_additive_attention():
    attention = make_attention(score="concat")
    additive = AdditiveAttention(DIM, DIM, DIM).double()
    with torch.no_grad():
        additive.query.weight.copy_(attention.query.weight)
        additive.key.weight.copy_(attention.key.weight)
        additive.score.copy_(attention.weigh.weight[0])
    query, memory = make_inputs()
    mask = Mask(key_lengths=LENGTHS)
    expected = additive(query, additive.prepare(memory), memory, mask)
    torch.testing.assert_close(attend(attention, query, memory, mask).weights, expected.weights)


@pytest.mark.parametrize("span", ["local-m", "local-p"])
def test_a_window_that_holds_everything_is_global(span):
    wide = make_attention(score="dot", span=span, half_width=10**9)
    query, memory = make_inputs()
    expected = attend(make_attention(score="dot"), query, memory)
    torch.testing.assert_close(attend(wide, query, memory).weights, expected.weights)


@given(
    st.sampled_from(SCORES),
    st.sampled_from(SPANS),
    st.integers(1, 4),
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    st.integers(0, 30),
    st.floats(0.1, 30),
)
def test_weights_lie_in_the_window(score, span, half_width, lengths, place, size):
    attention = make_attention(score=score, span=span, half_width=half_width)
    generator = torch.Generator().manual_seed(place)
    query = size * torch.randn(len(lengths), 1, DIM, generator=generator, dtype=torch.float64)
    memory = torch.randn(len(lengths), 8, DIM, generator=generator, dtype=torch.float64)
    mask = Mask(key_lengths=torch.tensor(lengths))
    weights = attend(attention, query, memory, mask, torch.tensor([place])).weights
    assert weights.isfinite().all()
    assert (weights >= 0).all()
    totals = weights.sum(-1)
    if span == "local-p":
        assert (totals <= 1 + 1e-9).all()
        # The word nearest to the centre is less than one place away.
        assert weights.count_nonzero(-1).min() >= 1
    else:
        torch.testing.assert_close(totals, torch.ones_like(totals))
    for row, length in enumerate(lengths):
        seen = weights[row, 0].nonzero().flatten().tolist()
        assert all(s < length for s in seen)
        if span == "local-m":
            centre = min(place, length - 1)
            assert seen == [s for s in range(length) if abs(s - centre) <= half_width]
        if span == "local-p":
            assert seen == list(range(seen[0], seen[-1] + 1))
            assert len(seen) <= 2 * half_width + 1


def test_without_lengths_all_keys_are_real():
    query, memory = make_inputs()
    full = Mask(key_lengths=torch.tensor([7, 7]))
    for span in SPANS:
        attention = make_attention(span=span, half_width=2)
        found = attend(attention, query, memory, Mask())
        torch.testing.assert_close(found.weights, attend(attention, query, memory, full).weights)


def test_location_ignores_what_stands_there():
    attention = make_attention(score="location")
    query, memory = make_inputs()
    found = attend(attention, query, memory)
    torch.testing.assert_close(found.weights, attend(attention, query, memory.flip(1)).weights)


def test_location_refuses_longer_sentences():
    attention = make_attention(score="location", max_positions=6)
    with pytest.raises(DataError) as caught:
        attend(attention, *make_inputs())
    assert str(caught.value) == (
        "a source sentence of 7 subwords is longer than the 6 places of the score “location”; "
        "lower max_length or raise max_positions"
    )


def test_the_predicted_centre_can_be_learnt():
    attention = make_attention(span="local-p", half_width=2)
    query, memory = make_inputs()
    attend(attention, query, memory).values.square().sum().backward()
    for weight in attention.parameters():
        assert weight.grad.abs().max() > 0


def test_half_precision_moves_no_window():
    attention = make_attention(span="local-p", half_width=3).float()
    query, memory = (each.float() for each in make_inputs())
    exact = attend(attention, query, memory)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = attend(attention, query, memory)
    torch.testing.assert_close(rounded.weights.float(), exact.weights, atol=0.03, rtol=0.03)


@pytest.mark.parametrize("span", SPANS)
def test_observer_sees_and_replaces_weights(span):
    attention = make_attention(span=span)
    query, memory = make_inputs()
    first = torch.zeros(2, 1, 3, 7, dtype=torch.float64)
    first[..., 0] = 1
    with observed_attention(attention, lambda _, weights: first * weights.shape[1]) as seen:
        attended = attend(attention, query, memory)
    assert torch.equal(seen[""][0], first)
    assert torch.equal(attended.weights, first.squeeze(1))
    torch.testing.assert_close(attended.values, memory[:, :1].expand(2, 3, DIM))
    with observed_attention(attention) as seen:
        attended = attend(attention, query, memory)
    assert torch.equal(seen[""][0].squeeze(1), attended.weights)
