"""The same laws for every family of models and every variant of the Transformer."""

import pytest
import torch
from tests.models import contract
from tests.models.variants import ALL, ALL_BY_TURNS, FAMILIES

from dragoman.data.batches import Sequences
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.models.build import build_model
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.memory_estimate import estimate_memory
from dragoman.weights import put_weights, read_weights, weights_of, write_weights

# Without positions the encoder is a bag of words: what order they came in, it cannot tell.
BAGS = ("positions-none",)


def make(name: str):
    torch.manual_seed(11)
    return build_model(ALL[name], contract.VOCABULARY)


every_family = pytest.mark.parametrize("name", ALL)
every_family_by_turns = pytest.mark.parametrize("name", ALL_BY_TURNS)


@every_family
def test_step_equals_teacher_forcing(name):
    contract.check_step_equals_forward(make(name))


@every_family
def test_hypotheses_can_be_rearranged(name):
    contract.check_reorder_and_keep(make(name))


@pytest.mark.parametrize("name", FAMILIES)
def test_padding_and_neighbours_change_nothing(name):
    model = make(name)
    contract.check_padding_and_batching(model)
    contract.check_padding_while_searching(model)


@every_family
def test_the_future_is_unseen(name):
    contract.check_future_is_unseen(make(name))


@every_family_by_turns
def test_learns_a_batch_by_heart(name):
    contract.check_overfits(make(name))


@every_family
def test_is_saved_and_loaded_bit_for_bit(name, tmp_path):
    model, path = make(name), tmp_path / "model.safetensors"
    batch = contract.batch_of(contract.make_pairs(5))
    model.train().forward(batch)  # so that statistics move
    write_weights(path, weights_of(model))
    other = build_model(ALL[name], contract.VOCABULARY)
    put_weights(other, read_weights(path), path)
    with torch.no_grad():
        found, expected = (each.eval().forward(batch).hidden for each in (other, model))
    assert torch.equal(found, expected)


@every_family_by_turns
def test_is_translated_by_the_one_search(name):
    model = make(name).eval()
    source = contract.batch_of(contract.make_pairs(4)).source
    options = SearchOptions(beam_size=3, max_extra_tokens=4)
    together = search(model, source, options, contract.VOCABULARY, num_best=2)
    for row, (best, second) in enumerate(together):
        assert best.score >= second.score
        length = int(source.lengths[row])
        alone = Sequences(source.ids[row : row + 1, :length], source.lengths[row : row + 1])
        (found,) = search(model, alone, options, contract.VOCABULARY, num_best=2)
        assert [each.tokens for each in found] == [best.tokens, second.tokens]


@every_family_by_turns
def test_memory_is_told_without_computing(name):
    with torch.device("meta"):
        model = build_model(ALL[name], contract.VOCABULARY)
    estimate = estimate_memory(
        TrainingStep(model, 0.1), TrainingOptions(batch_tokens=1000), half=False
    )
    assert estimate.activations > 0
    assert estimate.weights == 16 * sum(each.numel() for each in make(name).parameters())


@pytest.mark.slow
@pytest.mark.parametrize("task", ["copy", "reversal"])
@pytest.mark.parametrize("name", [each for each in ALL if each not in BAGS])
def test_learns_to_copy_and_to_reverse(name, task):
    contract.check_learns_task(make(name), is_reversed=task == "reversal")
