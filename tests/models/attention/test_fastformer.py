"""Fastformer against its definitions, written as loops over words and heads."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.models.attention.fastformer import Fastformer, running_averages
from dragoman.models.attention.observer import observed_attention
from dragoman.models.attention.self_attention import Cache, SelfAttention

DIM, HEADS, HEAD_DIM = 6, 2, 3


def make_fastformer(*, causal, head_dim=HEAD_DIM, dtype=torch.float64, loudness=1.0):
    """Make a layer; one that is loud has large scores."""
    torch.manual_seed(3)
    attention = Fastformer(DIM, HEADS, head_dim=head_dim, causal=causal).to(dtype)
    with torch.no_grad():
        for scorer in (attention.query_scorer, attention.key_scorer):
            scorer.normal_(0, 2 * loudness)
    return attention


def make_states(*shape):
    return torch.randn(*shape, DIM, dtype=torch.float64)


def average(scores, values):
    """Average vectors by the softmax of their scores, the slow and certain way."""
    largest = max(scores)
    weights = [math.exp(score - largest) for score in scores]
    weighted = (weight * value for weight, value in zip(weights, values, strict=True))
    return sum(weighted) / sum(weights), [weight / sum(weights) for weight in weights]


def heads_of(layer, word, head, head_dim):
    return layer(word)[head * head_dim : (head + 1) * head_dim]


def define(attention, sentence):
    """Follow one sentence through the equations; give the output and the weights beta."""
    size = attention.head_dim
    joined, betas = [[] for _ in sentence], []
    for head in range(HEADS):
        queries = [heads_of(attention.query, word, head, size) for word in sentence]
        keys = [heads_of(attention.key, word, head, size) for word in sentence]
        w_q, w_k = attention.query_scorer[head], attention.key_scorer[head]
        alphas = [float(w_q @ query) / math.sqrt(size) for query in queries]
        mixed, scores, rows = [], [], []
        for place, key in enumerate(keys):
            end = place + 1 if attention.causal else len(sentence)
            mixed.append(average(alphas[:end], queries[:end])[0] * key)
            scores.append(float(w_k @ mixed[-1]) / math.sqrt(size))
        for place, value in enumerate(queries):
            end = place + 1 if attention.causal else len(sentence)
            global_key, weights = average(scores[:end], mixed[:end])
            joined[place].append(global_key * value)
            rows.append(weights + [0.0] * (len(sentence) - end))
        betas.append(rows)
    out = [
        attention.output(attention.transform(torch.cat(each)) + attention.query(word))
        for each, word in zip(joined, sentence, strict=True)
    ]
    return torch.stack(out), torch.tensor(betas, dtype=torch.float64)


# Against the definitions


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("loudness", [1.0, 30.0])
@pytest.mark.parametrize("length", [1, 2, 32, 47])
def test_equals_its_definition(length, loudness, causal):
    attention = make_fastformer(causal=causal, loudness=loudness)
    states = make_states(2, length)
    found = attention.attend(states, None)
    for row in range(2):
        torch.testing.assert_close(found[row], define(attention, states[row])[0])


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_heads_of_another_width_are_brought_back(causal):
    attention = make_fastformer(causal=causal, head_dim=5)
    states = make_states(2, 8)
    found = attention.attend(states, None)
    assert found.shape == states.shape
    for row in range(2):
        torch.testing.assert_close(found[row], define(attention, states[row])[0])


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_padding_changes_nothing(causal):
    attention = make_fastformer(causal=causal)
    lengths = [9, 1, 40]
    states = make_states(3, 40)
    found = attention.attend(states, torch.tensor(lengths))
    assert found.isfinite().all()
    for row, length in enumerate(lengths):
        alone = attention.attend(states[row : row + 1, :length], None)
        torch.testing.assert_close(found[row : row + 1, :length], alone)


def test_gradients_of_padding_are_zero():
    attention = make_fastformer(causal=False)
    states = make_states(2, 9).requires_grad_()
    lengths = torch.tensor([9, 4])
    found = attention.attend(states, lengths)
    is_real = torch.arange(9) < lengths[:, None]
    (gradient,) = torch.autograd.grad(found[is_real].square().sum(), states)
    assert torch.equal(gradient.ne(0).any(-1), is_real)


@torch.no_grad()
def test_order_means_nothing_to_the_published_form():
    states, order = make_states(2, 12), torch.randperm(12)
    both_ways = make_fastformer(causal=False)
    found = both_ways.attend(states, None)[:, order]
    torch.testing.assert_close(both_ways.attend(states[:, order], None), found)
    causal = make_fastformer(causal=True)
    assert not torch.allclose(
        causal.attend(states[:, order], None), causal.attend(states, None)[:, order]
    )


@torch.no_grad()
def test_value_shares_the_projection_of_the_query():
    """Without a transform only the query is left; there is no third projection."""
    attention = make_fastformer(causal=False)
    count = sum(each.numel() for each in attention.parameters())
    assert count == 3 * DIM * DIM + 2 * HEADS * HEAD_DIM
    attention.transform.weight.zero_()
    states = make_states(1, 5)
    torch.testing.assert_close(attention.attend(states, None), attention.query(states))


# The causal form


@settings(max_examples=25)
@given(
    length=st.integers(1, 100), spread=st.sampled_from([0.1, 1.0, 30.0, 1000.0]), seed=st.integers()
)
def test_running_averages_equal_a_loop(length, spread, seed):
    generator = torch.Generator().manual_seed(seed % 2**32)
    scores = spread * torch.randn(length, generator=generator, dtype=torch.float64)
    values = torch.randn(length, 3, generator=generator, dtype=torch.float64)
    expected = [average(scores[:end].tolist(), values[:end])[0] for end in range(1, length + 1)]
    torch.testing.assert_close(running_averages(scores, values), torch.stack(expected))


@pytest.mark.parametrize("length", [64, 70, 1500])
@pytest.mark.parametrize("spread", [1.0, 50.0])
def test_running_averages_equal_a_triangular_matrix(length, spread):
    """So do their gradients; the longest needs chunks of chunks."""
    scores = (spread * torch.randn(1, length, dtype=torch.float64)).requires_grad_()
    values = torch.randn(1, length, 2, dtype=torch.float64, requires_grad=True)
    probe = torch.randn(1, length, 2, dtype=torch.float64)
    is_past = torch.ones(length, length, dtype=torch.bool).tril()
    spelt_out = scores[:, None].masked_fill(~is_past, -torch.inf).softmax(-1) @ values
    found = running_averages(scores, values)
    torch.testing.assert_close(found, spelt_out)
    ours = torch.autograd.grad((found * probe).sum(), (scores, values))
    theirs = torch.autograd.grad((spelt_out * probe).sum(), (scores, values))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("loudness", [1.0, 30.0])
def test_never_sees_the_future(loudness):
    attention = make_fastformer(causal=True, dtype=torch.float32, loudness=loudness)
    states = make_states(1, 100).float().requires_grad_()
    found = attention.attend(states, None)
    for place in (0, 1, 30, 31, 32, 33, 64, 98):
        (gradient,) = torch.autograd.grad(found[0, place].sum(), states, retain_graph=True)
        assert gradient[0, place + 1 :].eq(0).all()
        changed = states.detach().clone()
        changed[:, place + 1 :] = 100 * torch.randn(1, 99 - place, DIM)
        assert torch.equal(attention.attend(changed, None)[:, : place + 1], found[:, : place + 1])


@pytest.mark.parametrize("length", [20, 80])
def test_sees_all_of_the_past(length):
    attention = make_fastformer(causal=True, loudness=0.1)
    states = make_states(1, length).requires_grad_()
    found = attention.attend(states, None)
    (gradient,) = torch.autograd.grad(found[0, -1].sum(), states)
    assert gradient.ne(0).any(-1).all()


# Word by word


def make_extreme(dtype):
    """Make a layer and words whose scores are 200 and -200 in turn, and others between."""
    attention = make_fastformer(causal=True, dtype=dtype)
    states = make_states(3, 90).to(dtype)
    with torch.no_grad():
        query = attention.query(states).unflatten(-1, (HEADS, -1))
        scores = (query * attention.query_scorer).sum(-1) / math.sqrt(HEAD_DIM)
        attention.query_scorer.mul_(200 / scores.abs().max())
        attention.key_scorer.mul_(100)
    return attention, states


@torch.no_grad()
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-3)])
def test_steps_equal_attend_even_with_huge_scores(dtype, tolerance):
    attention, states = make_extreme(dtype)
    seen = []
    attention.observer = lambda weights: seen.append(weights) or weights
    observed = attention.attend(states, None)
    attention.observer = None
    whole = attention.attend(states, None)
    torch.testing.assert_close(whole, observed, rtol=tolerance, atol=tolerance)
    assert seen[0].max() > 0.999, "the scores were not extreme"
    assert whole.isfinite().all()
    cache = attention.start(3, 90, states)
    assert isinstance(cache, Cache)
    for place in range(90):
        found, cache = attention.step(states[:, place : place + 1], cache, place)
        torch.testing.assert_close(
            found, whole[:, place : place + 1], rtol=tolerance, atol=tolerance
        )


def falling_and_rising(length):
    """Give scores that would overflow or vanish if any were taken relative to another's maximum."""
    falling = torch.linspace(200, -200, length)
    return {"falling": falling, "rising": falling.flip(0), "jumping": falling.abs() * 2 - 200}


@pytest.mark.parametrize("kind", ["falling", "rising", "jumping"])
def test_single_precision_survives_huge_scores(kind):
    scores = falling_and_rising(100)[kind].expand(2, -1).clone().requires_grad_()
    values = torch.randn(2, 100, 3)
    found = running_averages(scores, values)
    exact = running_averages(scores.detach().double(), values.double())
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-4)
    (gradient,) = torch.autograd.grad(found.square().sum(), scores)
    assert gradient.isfinite().all()
    sums = make_fastformer(causal=True, dtype=torch.float32).start(2, 1, values).queries
    for place in range(100):
        sums = sums.add(
            scores[:, place : place + 1].expand(2, HEADS).detach(),
            values[:, None, place].expand(2, HEADS, 3),
        )
        torch.testing.assert_close(sums.mean[:, 0].double(), exact[:, place], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_cache_does_not_grow():
    attention = make_fastformer(causal=True)
    states = make_states(2, 12)
    cache = attention.start(2, 5000, states)
    sizes = [[each.shape for sums in cache for each in sums]]
    for place in range(12):
        _, cache = attention.step(states[:, place : place + 1], cache, place)
        sizes.append([each.shape for sums in cache for each in sums])
    assert all(each == sizes[0] for each in sizes)
    assert sum(math.prod(shape) for shape in sizes[0]) == 2 * 2 * HEADS * (HEAD_DIM + 2)


@torch.no_grad()
def test_chosen_rows_go_on_as_they_would_have():
    attention = make_fastformer(causal=True)
    states, chosen = make_states(3, 6), torch.tensor([2, 0, 2, 1])
    cache = attention.start(3, 6, states)
    for place in range(4):
        _, cache = attention.step(states[:, place : place + 1], cache, place)
    cache, rows = cache.rows(chosen, 4), states[chosen]
    for place in (4, 5):
        found, cache = attention.step(rows[:, place : place + 1], cache, place)
    torch.testing.assert_close(found, attention.attend(rows, None)[:, -1:])


def test_only_the_causal_form_goes_word_by_word():
    with pytest.raises(AssertionError, match="causal"):
        make_fastformer(causal=False).start(1, 1, torch.zeros(1))


# Looking


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_observer_sees_the_weights_of_the_global_key(causal):
    attention = make_fastformer(causal=causal)
    states = make_states(2, 40)
    unseen = attention.attend(states, None)
    with observed_attention(attention) as maps:
        seen = attention.attend(states, None)
    torch.testing.assert_close(seen, unseen)
    (weights,) = maps[""]
    assert weights.shape == (2, HEADS, 40, 40)
    for row in range(2):
        torch.testing.assert_close(weights[row], define(attention, states[row])[1])


@torch.no_grad()
def test_observer_sees_no_weight_on_padding():
    attention = make_fastformer(causal=False)
    with observed_attention(attention) as maps:
        attention.attend(make_states(2, 7), torch.tensor([7, 3]))
    (weights,) = maps[""]
    assert weights[1, :, :, 3:].eq(0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, 7, dtype=torch.float64))


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_observer_may_replace_the_weights(causal):
    """With all weight on the first word, its p takes the place of every global key."""
    attention = make_fastformer(causal=causal)
    states = make_states(2, 9)

    def look_at_the_first(name, weights):
        weights[:] = 0
        weights[..., 0] = 1
        return weights

    with observed_attention(attention, look_at_the_first):
        found = attention.attend(states, None)
    lone = attention if causal else make_fastformer(causal=True)
    query = attention.query(states)
    first = query[:, :1] if causal else global_query(attention, states)
    mixed = first * attention.key(states[:, :1])
    torch.testing.assert_close(found, lone.transform(mixed * query) + query)


def global_query(attention, states):
    """Average the queries of each head over a sentence."""
    query = attention.query(states).unflatten(-1, (HEADS, -1))
    scores = (query * attention.query_scorer).sum(-1, keepdim=True) / math.sqrt(HEAD_DIM)
    return (scores.softmax(1) * query).sum(1, keepdim=True).flatten(-2)


# Growth


def kept_bytes(attention, length):
    """Count what is kept between forward and backward."""
    kept = {}

    def keep(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    states = torch.randn(1, length, DIM, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        attention.attend(states, None).sum().backward()
    assert states.grad.isfinite().all()
    return sum(kept.values())


@pytest.mark.parametrize("causal", [False, True])
def test_memory_grows_linearly(causal):
    attention = make_fastformer(causal=causal, dtype=torch.float32)
    figures = [kept_bytes(attention, 2**power) for power in range(10, 17)]
    for shorter, longer in itertools.pairwise(figures):
        assert 1.8 < longer / shorter < 2.1


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_half_precision_keeps_its_type(causal, dtype):
    attention = make_fastformer(causal=causal, dtype=dtype)
    assert attention.attend(torch.randn(2, 40, DIM).to(dtype), None).dtype == dtype
    if causal:
        cache = attention.start(2, 3, torch.zeros(1, dtype=dtype))
        assert cache.queries.totals.dtype == torch.float32
        found, _ = attention.step(torch.randn(2, 1, DIM).to(dtype), cache, 0)
        assert found.dtype == dtype


@torch.no_grad()
@pytest.mark.parametrize("causal", [False, True])
def test_mixed_precision_differs_little(causal):
    attention = make_fastformer(causal=causal, dtype=torch.float32, loudness=0.3)
    states = torch.randn(2, 100, DIM)
    exact = attention.attend(states, None)
    with torch.autocast("cpu", torch.bfloat16):
        rough = attention.attend(states, None).float()
    torch.testing.assert_close(rough, exact, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [7, 100])
def test_runs_without_numbers(length, causal):
    """A dry run has shapes alone."""
    attention = make_fastformer(causal=causal).to("meta")
    states = torch.empty(2, length, DIM, dtype=torch.float64, device="meta", requires_grad=True)
    attention.attend(states, torch.empty(2, dtype=torch.int64, device="meta")).sum().backward()
    assert states.grad.shape == states.shape


def test_satisfies_the_seam():
    assert isinstance(make_fastformer(causal=True), SelfAttention)
