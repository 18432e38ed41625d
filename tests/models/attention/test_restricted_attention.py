"""Restricted attention against PyTorch's full attention under a band, and its growth."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dragoman.models.attention.observer import observed_attention
from dragoman.models.attention.restricted_attention import RestrictedAttention
from dragoman.models.attention.self_attention import Cache, SelfAttention

DIM, HEADS = 6, 2


def make_attention(window, *, causal, scaled=True, bias=True, dtype=torch.float64, dim=DIM):
    torch.manual_seed(window)
    attention = RestrictedAttention(
        dim, HEADS, key_dim=3, value_dim=4, bias=bias, scaled=scaled, window=window, causal=causal
    )
    return attention.to(dtype)


def band(length, window, causal):
    """Say who sees whom, straight from the definition."""
    allowed = torch.zeros(length, length, dtype=torch.bool)
    for query, key in itertools.product(range(length), repeat=2):
        if causal:
            allowed[query, key] = query - window + 1 <= key <= query
        else:
            allowed[query, key] = abs(query - key) <= window // 2
    return allowed


def masked_full_attention(attention, states, lengths):
    """Use PyTorch's attention with an explicit matrix of who sees whom."""
    length = states.size(1)
    allowed = band(length, attention.window, attention.causal).expand(len(states), 1, -1, -1)
    if lengths is not None:
        allowed = allowed & (torch.arange(length) < lengths[:, None, None, None])
    query, key, value = (
        layer(states).unflatten(-1, (HEADS, -1)).transpose(1, 2)
        for layer in (attention.query, attention.key, attention.value)
    )
    scale = 1 / math.sqrt(3) if attention.scale != 1 else 1.0
    found = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=allowed, scale=scale
    )
    return attention.output(found.transpose(1, 2).flatten(-2))


def gradients(found, states, attention, is_real):
    probe = torch.linspace(-1, 1, found.numel(), dtype=found.dtype).view_as(found)
    loss = (found * probe)[is_real].sum()
    return torch.autograd.grad(loss, [states, *attention.parameters()])


# Against full attention


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 7, 16, 17, 40, 64])
def test_equals_masked_full_attention(window, causal):
    attention = make_attention(window, causal=causal)
    for length in (1, 2, 15, 16, 17, 40, 63):
        states = torch.randn(3, length, DIM, dtype=torch.float64, requires_grad=True)
        for lengths in (None, torch.tensor([length, 1, max(1, length - 9)])):
            ends = torch.full((3,), length) if lengths is None else lengths
            is_real = torch.arange(length) < ends[:, None]
            found = attention.attend(states, lengths)
            expected = masked_full_attention(attention, states, lengths)
            torch.testing.assert_close(found[is_real], expected[is_real])
            assert found.isfinite().all()
            pairs = zip(
                gradients(found, states, attention, is_real),
                gradients(expected, states, attention, is_real),
                strict=True,
            )
            for ours, theirs in pairs:
                torch.testing.assert_close(ours, theirs)


@settings(max_examples=60)
@given(
    window=st.integers(1, 70),
    length=st.integers(1, 90),
    causal=st.booleans(),
    scaled=st.booleans(),
    is_double=st.booleans(),
)
def test_equals_masked_full_attention_at_any_size(window, length, causal, scaled, is_double):
    dtype = torch.float64 if is_double else torch.float32
    attention = make_attention(window, causal=causal, scaled=scaled, bias=False, dtype=dtype)
    states = torch.randn(2, length, DIM, dtype=dtype)
    lengths = torch.tensor([length, (length + 1) // 2])
    is_real = torch.arange(length) < lengths[:, None]
    found = attention.attend(states, lengths)
    expected = masked_full_attention(attention, states, lengths)
    torch.testing.assert_close(found[is_real], expected[is_real], rtol=1e-5, atol=1e-5)


def test_scaling_matters():
    states = torch.randn(1, 9, DIM, dtype=torch.float64)
    scaled, unscaled = (make_attention(4, causal=True, scaled=each) for each in (True, False))
    assert not torch.allclose(scaled.attend(states, None), unscaled.attend(states, None))


# Who sees whom


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [1, 2, 5, 24])
def test_gradients_reach_exactly_the_window(window, causal):
    length = 61
    attention = make_attention(window, causal=causal, dtype=torch.float32)
    states = torch.randn(1, length, DIM, requires_grad=True)
    found = attention.attend(states, None)
    allowed = band(length, window, causal)
    for place in range(0, length, 3):
        (gradient,) = torch.autograd.grad(found[0, place].sum(), states, retain_graph=True)
        assert torch.equal(gradient[0].ne(0).any(-1), allowed[place])


@pytest.mark.parametrize("causal", [False, True])
def test_contents_of_the_padding_never_matter(causal):
    attention = make_attention(4, causal=causal, dtype=torch.float32)
    states, lengths = torch.randn(2, 50, DIM), torch.tensor([50, 23])
    other = states.clone()
    other[1, 23:] = 1e3
    found, changed = attention.attend(states, lengths), attention.attend(other, lengths)
    assert torch.equal(found[0], changed[0])
    assert torch.equal(found[1, :23], changed[1, :23])


# Word by word


@torch.no_grad()
@pytest.mark.parametrize("window", [1, 2, 5, 8, 30])
@pytest.mark.parametrize("capacity", [20, 25])
def test_steps_equal_attend(window, capacity):
    attention = make_attention(window, causal=True)
    states = torch.randn(3, 20, DIM, dtype=torch.float64)
    whole = attention.attend(states, None)
    cache = attention.start(3, capacity, states)
    assert isinstance(cache, Cache)
    assert cache.keys.size(2) == min(window, capacity)
    for place in range(20):
        found, cache = attention.step(states[:, place : place + 1], cache, place)
        torch.testing.assert_close(found, whole[:, place : place + 1])


@torch.no_grad()
def test_chosen_rows_go_on_as_they_would_have():
    attention = make_attention(3, causal=True)
    states = torch.randn(3, 8, DIM, dtype=torch.float64)
    chosen = torch.tensor([2, 0, 2, 1])
    for moved_at in (1, 2, 5):
        cache = attention.start(3, 8, states)
        for place in range(moved_at):
            _, cache = attention.step(states[:, place : place + 1], cache, place)
        old, cache = cache, cache.rows(chosen, moved_at)
        rows = states[chosen]
        for place in range(moved_at, 8):
            found, cache = attention.step(rows[:, place : place + 1], cache, place)
        torch.testing.assert_close(found, attention.attend(rows, None)[:, -1:])
        for place in range(moved_at, 8):
            found, old = attention.step(states[:, place : place + 1], old, place)
        torch.testing.assert_close(found, attention.attend(states, None)[:, -1:])


def test_only_a_causal_attention_goes_word_by_word():
    with pytest.raises(AssertionError, match="causal"):
        make_attention(3, causal=False).start(1, 1, torch.zeros(1))


# Looking


@pytest.mark.parametrize("causal", [False, True])
def test_observer_sees_the_weights_in_use(causal):
    attention = make_attention(5, causal=causal)
    states, lengths = torch.randn(2, 40, DIM, dtype=torch.float64), torch.tensor([40, 33])
    unseen = attention.attend(states, lengths)
    with observed_attention(attention) as maps:
        seen = attention.attend(states, lengths)
    is_real = torch.arange(40) < lengths[:, None]
    torch.testing.assert_close(seen[is_real], unseen[is_real])
    (weights,) = maps[""]
    assert weights.shape == (2, HEADS, 40, 40)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, 40, dtype=torch.float64))
    allowed = band(40, 5, causal) & (torch.arange(40) < lengths[:, None, None])
    used = weights.ne(0).all(1)[is_real]
    assert torch.equal(used, allowed[is_real])


def test_observer_may_replace_the_weights():
    attention = make_attention(5, causal=False)
    states = torch.randn(2, 30, DIM, dtype=torch.float64)
    only_itself = torch.eye(30, dtype=torch.float64).expand(2, HEADS, -1, -1)
    with observed_attention(attention, lambda *_: only_itself):
        found = attention.attend(states, None)
    torch.testing.assert_close(found, attention.output(attention.value(states)))


@torch.no_grad()
def test_observer_sees_the_same_word_by_word():
    attention = make_attention(4, causal=True)
    states = torch.randn(2, 11, DIM, dtype=torch.float64)
    with observed_attention(attention) as maps:
        whole = attention.attend(states, None)
        cache = attention.start(2, 11, states)
        for place in range(11):
            found, cache = attention.step(states[:, place : place + 1], cache, place)
            torch.testing.assert_close(found, whole[:, place : place + 1])
    weights, *steps = maps[""]
    for place, step in enumerate(steps):
        torch.testing.assert_close(step, weights[:, :, place : place + 1, : place + 1])


@torch.no_grad()
def test_observer_may_replace_the_weights_word_by_word():
    attention = make_attention(4, causal=True)
    states = torch.randn(2, 7, DIM, dtype=torch.float64)

    def look_two_back(name, weights):
        place = max(weights.size(-1) - 3, 0)
        return functional.one_hot(torch.tensor(place), weights.size(-1)).expand_as(weights).double()

    cache = attention.start(2, 7, states)
    with observed_attention(attention, look_two_back):
        for place in range(7):
            found, cache = attention.step(states[:, place : place + 1], cache, place)
            seen = states[:, max(place - 2, 0)].unsqueeze(1)
            torch.testing.assert_close(found, attention.output(attention.value(seen)))


# Growth


class Allocated(TorchDispatchMode):
    """Count the bytes of every tensor that is made, and remember the largest."""

    def __init__(self):
        super().__init__()
        self.total, self.largest = 0, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        known = {each.untyped_storage()._cdata for each in tree_leaves((args, kwargs))
                 if isinstance(each, torch.Tensor)}  # fmt: skip
        for each in tree_leaves(made):
            if isinstance(each, torch.Tensor):
                storage = each.untyped_storage()
                if storage._cdata not in known:
                    self.total += storage.nbytes()
                    self.largest = max(self.largest, storage.nbytes())
        return made


def measure(attention, length):
    """Run forward and backward; give the bytes made, the largest tensor, the bytes kept between."""
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    states = torch.randn(1, length, DIM, requires_grad=True)
    lengths = torch.tensor([length - 5])
    with Allocated() as allocated:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            found = attention.attend(states, lengths)
        found.sum().backward()
    assert states.grad.isfinite().all()
    return allocated.total, allocated.largest, sum(kept.values())


@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_linearly(causal):
    attention = make_attention(16, causal=causal, dtype=torch.float32)
    lengths = [2**power for power in range(10, 17)]
    figures = [measure(attention, length) for length in lengths]
    for shorter, longer in itertools.pairwise(figures):
        for less, more in zip(shorter, longer, strict=True):
            assert 1.9 < more / less < 2.1
    total, largest, kept = figures[-1]
    bytes_of_a_row_of_full_attention = 4 * lengths[-1]
    assert max(total, largest, kept) / lengths[-1] < bytes_of_a_row_of_full_attention / 10


@torch.no_grad()
def test_memory_grows_with_the_window():
    wide, narrow = (
        make_attention(window, causal=True, dtype=torch.float32) for window in (512, 128)
    )
    states = torch.randn(1, 8192, DIM)
    bytes_made = []
    for attention in (narrow, wide):
        with Allocated() as allocated:
            attention.attend(states, None)
        bytes_made.append(allocated.largest)
    assert 3.5 < bytes_made[1] / bytes_made[0] < 4.5


def test_long_sentences_equal_short_ones():
    """A window of 65,536 words equals the same words alone, with their neighbours."""
    attention = make_attention(8, causal=True, dtype=torch.float32)
    states = torch.randn(1, 65536, DIM)
    with torch.no_grad():
        found = attention.attend(states, None)
        for first in (0, 31_000, 65_500):
            alone = attention.attend(states[:, max(first - 7, 0) : first + 36], None)
            expected = alone[:, min(first, 7) :]
            ours = found[:, first : first + expected.size(1)]
            torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


# Other numbers, and none


@torch.no_grad()
def test_half_precision_differs_little():
    attention = make_attention(5, causal=True, dtype=torch.float32)
    states = torch.randn(2, 40, DIM)
    exact = attention.attend(states, None)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(
            attention.attend(states, None).float(), exact, rtol=0.05, atol=0.05
        )
        cache = attention.start(2, 40, states)
        for place in range(8):
            found, cache = attention.step(states[:, place : place + 1], cache, place)
    torch.testing.assert_close(found.float(), exact[:, 7:8], rtol=0.05, atol=0.05)


@pytest.mark.parametrize("length", [7, 40])
def test_runs_without_numbers(length):
    """A dry run has shapes alone."""
    attention = make_attention(5, causal=False).to("meta")
    states = torch.empty(2, length, DIM, dtype=torch.float64, device="meta", requires_grad=True)
    attention.attend(states, torch.empty(2, dtype=torch.int64, device="meta")).sum().backward()
    assert states.grad.shape == states.shape


def test_satisfies_the_seam():
    assert isinstance(make_attention(3, causal=True), SelfAttention)
