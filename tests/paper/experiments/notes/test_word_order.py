"""Words in another order, and places read back from states."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.models.layers.normalisation import LayerNorm
from dragoman.models.layers.residual import AddAndNorm
from dragoman.paper.experiments.notes.word_order import (
    EOS_ID,
    PAD_ID,
    NoResidual,
    build_transformer,
    draw_order,
    draw_sentences,
    measure_permutation,
    measure_prefix_permutation,
    probe_positions,
    train_to_reverse,
)


@given(st.integers(1, 5), st.integers(0, 99), st.integers(1, 6), st.integers(0, 6))
def test_sentences_end_with_the_end_symbol_and_padding(count, seed, shortest, more):
    generator = torch.Generator().manual_seed(seed)
    longest = shortest + more
    sentences = draw_sentences(count, generator, shortest=shortest, longest=longest)
    for ids, length in zip(sentences.ids.tolist(), sentences.lengths.tolist(), strict=True):
        assert shortest < length <= longest + 1
        assert ids[length - 1] == EOS_ID
        assert set(ids[length:]) <= {PAD_ID}
        assert not {PAD_ID, EOS_ID} & set(ids[: length - 1])


@given(st.integers(0, 99))
def test_orders_move_words_alone(seed):
    generator = torch.Generator().manual_seed(seed)
    sentences = draw_sentences(4, generator, shortest=2, longest=9)
    order = draw_order(sentences, generator)
    places = list(range(order.size(1)))
    for row, length in zip(order.tolist(), sentences.lengths.tolist(), strict=True):
        assert sorted(row) == places
        assert row[length - 1 :] == places[length - 1 :]


@pytest.mark.parametrize("position", ["pre", "post"])
def test_without_the_sum_only_the_sub_layer_remains(position):
    connection = AddAndNorm(LayerNorm(8), dropout=0.0, position=position)
    torch.manual_seed(1)
    states, matrix = torch.randn(2, 5, 8), torch.randn(8, 8)
    said = NoResidual(connection)(states, lambda x: x @ matrix)
    if position == "pre":
        # With the norm first, the sum can simply be taken away again.
        torch.testing.assert_close(said, connection(states, lambda x: x @ matrix) - states)
    else:
        torch.testing.assert_close(said, LayerNorm(8)(states @ matrix))


def test_only_positions_make_order_visible():
    for positions in ("none", "sinusoidal", "alibi"):
        model = build_transformer(positions, num_layers=2, model_dim=16, seed=1)
        found = measure_permutation(model, count=4, seed=1)
        if positions == "none":
            assert max(found) < 1e-4
        else:
            assert min(found) > 1e-2


def test_one_decoder_layer_sees_a_bag_two_see_an_order():
    one, two = (
        measure_prefix_permutation(
            build_transformer("none", num_layers=layers, model_dim=16, seed=1), count=4, seed=1
        )
        for layers in (1, 2)
    )
    assert one < 1e-4
    assert two > 1e-2


def test_probe_reads_index_positions_exactly_and_nothing_where_there_is_none():
    scores = {
        positions: probe_positions(
            build_transformer(positions, num_layers=1, model_dim=16, seed=1),
            num_train=200,
            num_test=100,
            seed=1,
        )
        for positions in ("index", "none")
    }
    assert scores["index"][0] > 0.99
    assert all(abs(score) < 0.1 for score in scores["none"])
    assert all(len(each) == 2 for each in scores.values())


def test_probe_equals_the_normal_equations():
    model = build_transformer("sinusoidal", num_layers=1, model_dim=16, seed=2)
    score = probe_positions(model, num_train=30, num_test=20, seed=3)[0]
    generator = torch.Generator().manual_seed(3)
    sides = []
    for count in (30, 20):
        sentences = draw_sentences(count, generator)
        with torch.no_grad():
            states = model.source_embedding(sentences.ids)
        rows, places = [], []
        for sentence, length in enumerate(sentences.lengths.tolist()):
            rows.append(states[sentence, : length - 1].double())
            places.append(torch.arange(length - 1.0, dtype=torch.float64))
        features = torch.cat(rows)
        sides.append((torch.cat([features, torch.ones(len(features), 1)], 1), torch.cat(places)))
    (known, known_places), (new, new_places) = sides
    solution = torch.linalg.solve(known.T @ known, known.T @ known_places)
    errors = new_places - new @ solution
    expected = 1 - errors.var(correction=0) / new_places.var(correction=0)
    # The mean of the errors on new sentences is nearly, not wholly, zero.
    assert score == pytest.approx(expected.item(), abs=0.01)


def test_residuals_carry_positions_and_can_be_left_out():
    scores = {}
    for has_residuals in (True, False):
        model = build_transformer(
            "sinusoidal", num_layers=3, model_dim=32, seed=1, has_residuals=has_residuals
        )
        scores[has_residuals] = probe_positions(model, num_train=150, num_test=75, seed=1)
    # The weights are the same, and so is what comes before the first layer.
    assert scores[True][0] == scores[False][0]
    assert scores[True][-1] > scores[False][-1] + 0.2


def test_training_lowers_the_loss():
    losses = [
        train_to_reverse(
            build_transformer("sinusoidal", num_layers=1, model_dim=16, seed=1),
            num_steps=steps,
            seed=1,
        )
        for steps in (1, 40)
    ]
    assert losses[1] < losses[0]
