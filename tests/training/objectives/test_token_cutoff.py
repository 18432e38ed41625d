"""Words that are cut off are not heard, and nothing else changes."""

import pytest
import torch
from tests.models import contract
from tests.models.variants import FAMILIES

from dragoman.data.batches import Batch, flatten
from dragoman.data.packing import Capacity, pack
from dragoman.kernels.language import own_random_numbers
from dragoman.models.build import build_model
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.objectives.token_cutoff import cut_off_tokens

PAD = contract.VOCABULARY.pad_id


def pairs(count=6):
    return contract.batch_of(contract.make_pairs(count, seed=4))


def packed_pairs(count=6):
    sources, targets = zip(*contract.make_pairs(count, seed=4), strict=True)
    return pack(flatten(sources), flatten(targets), PAD, Capacity(128, 128, 16))


@pytest.mark.parametrize("make", [pairs, packed_pairs])
def test_a_share_is_read_as_padding_and_targets_stay(make):
    torch.manual_seed(1)
    batch = make(400)
    cut = cut_off_tokens(batch, 0.3, PAD)
    lost = total = 0
    for before, after in ((batch.source, cut.source), (batch.target, cut.target)):
        assert torch.equal(before.ids, after.ids)
        is_cut = before.ids != after.read_ids
        assert (after.read_ids[is_cut] == PAD).all()
        lost, total = lost + int(is_cut.sum()), total + int((before.ids != PAD).sum())
        start = after.shifted(PAD)
        if before.ids.dim() == 2:
            assert torch.equal(start[:, 1:], after.read_ids[:, :-1])
        else:
            inside = after.places != 0
            assert torch.equal(start[inside], after.read_ids.roll(1)[inside])
    spread = (0.3 * 0.7 / total) ** 0.5
    assert abs(lost / total - 0.3) < 5 * spread


@pytest.mark.parametrize("make", [pairs, packed_pairs])
def test_a_share_of_nothing_is_the_batch_itself(make):
    batch = make()
    assert cut_off_tokens(batch, 0.0, PAD) is batch


@pytest.mark.parametrize("make", [pairs, packed_pairs])
def test_what_is_heard_travels_with_the_batch(make):
    cut = cut_off_tokens(make(), 0.5, PAD)
    meta = cut.to(torch.device("meta"))
    assert meta.source.masked_ids.is_meta
    assert meta.target.masked_ids.shape == cut.target.masked_ids.shape


def test_a_thread_draws_from_its_own_generator():
    batch = pairs(50)
    with own_random_numbers(3):
        expected = cut_off_tokens(batch, 0.3, PAD)
    torch.manual_seed(9)
    state = torch.get_rng_state()
    with own_random_numbers(3):
        found = cut_off_tokens(batch, 0.3, PAD)
    assert torch.equal(found.source.masked_ids, expected.source.masked_ids)
    assert torch.equal(found.target.masked_ids, expected.target.masked_ids)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_hears_it_as_if_the_vectors_were_zero(name):
    """Two spare words with vectors of zero stand in for what is cut off."""
    torch.manual_seed(2)
    model = build_model(FAMILIES[name], contract.VOCABULARY).eval()
    with torch.no_grad():
        for embedding in (model.source_embedding, model.target_embedding):
            embedding.words[22] = 0
    batch = contract.batch_of(
        [([*words[:-1], 0], [*others[:-1], 0]) for words, others in contract.make_pairs(5, seed=4)]
    )
    cut = cut_off_tokens(batch, 0.4, PAD)
    named = [
        type(side)(torch.where((side.read_ids == PAD) & side.is_token, 22, side.ids), side.lengths)
        for side in (cut.source, cut.target)
    ]
    other = Batch(*named, batch.num_tokens, batch.num_target_tokens)
    assert not torch.equal(other.source.ids, batch.source.ids)
    with torch.no_grad():
        found, expected = (model.forward(each).hidden for each in (cut, other))
        plain = model.forward(batch).hidden
    is_token = batch.target.is_token
    torch.testing.assert_close(found[is_token], expected[is_token])
    assert not torch.allclose(found[is_token], plain[is_token])


def test_the_step_cuts_off_in_training_only():
    torch.manual_seed(2)
    model = build_model(FAMILIES["transformer"], contract.VOCABULARY)
    batch = pairs()
    expected = TrainingStep(model, 0.1)(batch)
    step = TrainingStep(model, 0.1, token_cutoff=0.4)
    torch.testing.assert_close(step.eval()(batch), expected)
    torch.manual_seed(3)
    found = step.train()(batch)
    assert found != expected
    torch.manual_seed(3)
    torch.testing.assert_close(found, TrainingStep(model, 0.1)(cut_off_tokens(batch, 0.4, PAD)))
    found.backward()
    assert not model.target_embedding.words.grad[PAD].any()
