"""What suits a budget: more passes want more regularisation, more tokens larger batches."""

import itertools

import pytest

from dragoman.training.budget.budget_recipe import (
    BATCHES,
    MOST_UPDATES,
    SHAPES,
    choose_batch,
    choose_regularisation,
    make_recipe,
)
from dragoman.training.configuration import resolve_options


def test_shapes_grow():
    sizes = [(each.model_dim, each.num_encoder_layers) for each in SHAPES]
    assert sizes[0] == min(sizes)
    assert [each.model_dim for each in SHAPES] == sorted(each.model_dim for each in SHAPES)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_recipe_is_one(shape):
    recipe = make_recipe(shape)
    _, options = resolve_options("auto", {}, {}, 1000, recipe)
    assert options.model.model_dim == shape.model_dim
    assert options.model.feed_forward_dim == 4 * shape.model_dim
    assert options.training.schedule == "cosine"


def test_more_passes_are_regularised_more():
    found = [choose_regularisation(passes) for passes in (1, 10, 40, 70, 100, 500)]
    for (one, first), (other, second) in itertools.pairwise(found):
        assert one <= other or (not first and second)
    assert found[0] == (0.0, {})
    assert found[-1] == (0.3, {"consistency": "r-drop", "consistency_weight": 5.0})


def test_batches_grow_with_the_tokens_and_bound_the_updates():
    chosen = [choose_batch(tokens) for tokens in (1e5, 1e6, 1e7, 1e8, 2e8, 4e8)]
    assert chosen == sorted(chosen)
    assert set(chosen) <= set(BATCHES)
    assert 4e8 / chosen[-1] <= MOST_UPDATES
    assert choose_batch(1e5) == BATCHES[0]
