"""Tables of attention worked through: their numbers are consistent with one another."""

import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.insight.machine.attention_trace import trace_attention
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.paper.experiments.notes.word_order import VOCABULARY
from dragoman.paper.experiments.notes.worked_tables import (
    ShownModule,
    number_tokens,
    plot_heads,
    plot_steps,
    tabulate_checks,
    tabulate_contexts,
    tabulate_heads,
    tabulate_scores,
    tabulate_sum,
    tabulate_vectors,
    tabulate_weights,
)
from dragoman.paper.report.result import number

SOURCE, TARGET = ("a", "b", "c", "⟨end⟩"), ("⟨start⟩", "d", "e")


def work(num_heads: int = 2, *, attention_bias: bool = False):
    torch.manual_seed(1)
    options = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=1, model_dim=20, feed_forward_dim=24,
        num_heads=num_heads, attention_bias=attention_bias,
    )  # fmt: skip
    model = build_model(options, VOCABULARY).eval().double()
    return trace_attention(model, make_batch(flatten([[5, 9, 7, 1]]), flatten([[8, 4, 1]]), 0))


@pytest.fixture(scope="module")
def shown():
    labels = {"encoder": (SOURCE, SOURCE), "decoder": (TARGET, TARGET), "cross": (TARGET, SOURCE)}
    return {
        each.kind: ShownModule(worked=each, queries=labels[each.kind][0], keys=labels[each.kind][1],
                         head=2, token=2, entries=3)
        for each in work(attention_bias=True)
    }  # fmt: skip


def test_tokens_are_numbered_as_in_the_notes():
    assert number_tokens(("Jane", "visite")) == ["<1> Jane", "<2> visite"]


def test_vectors_are_those_of_the_module(shown):
    table = tabulate_vectors(shown["encoder"])
    worked = shown["encoder"].worked
    assert table.column("token") == number_tokens(SOURCE)
    assert table.numbers("x[1]") == worked.query_tokens[:, 0].tolist()
    assert table.numbers("v[3]") == worked.value[1, :, 2].tolist()


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_weights_are_the_softmax_of_the_scores(shown, kind):
    scores, weights = tabulate_scores(shown[kind]), tabulate_weights(shown[kind])
    assert scores.columns[0] == weights.columns[0]
    for score_row, weight_row in zip(scores.rows, weights.rows, strict=True):
        assert score_row[0] == weight_row[0]
        numbers = torch.tensor(
            [-torch.inf if cell == "−∞" else number(cell) for cell in score_row[1:]],
            dtype=torch.float64,
        )
        assert numbers.softmax(0).tolist() == pytest.approx(weight_row[1:])
    masked = [row[1:].count("−∞") for row in scores.rows]
    assert masked == ([2, 1, 0] if kind == "decoder" else [0] * len(masked))


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_rows_of_the_sum_add_up_to_its_last_rows(shown, kind):
    table = tabulate_sum(shown[kind])
    *rows, total, matrices, own = table.rows
    for place in range(3, 8):
        parts = [number(row[place]) for row in rows if row[place] is not None]
        assert sum(parts) == pytest.approx(total[place])
    assert total[5:] == pytest.approx(matrices[5:])
    assert total[5:] == pytest.approx(own[5:])
    assert "A<2>" in table.title


def test_token_by_token_is_all_at_once(shown):
    table = tabulate_contexts(shown["encoder"])
    assert len(table.rows) == len(SOURCE)
    for row in table.rows:
        assert row[1:4] == pytest.approx(row[4:7])
        assert number(row[7]) < 1e-12


def test_heads_add_up_to_the_output(shown):
    table = tabulate_heads(shown["encoder"])
    *heads, total, own = table.rows
    bias = shown["encoder"].worked.module.output.bias
    for place in range(3):
        column = 6 + place
        parts = sum(number(row[column]) for row in heads) + bias[place].item()
        assert parts == pytest.approx(total[column])
        assert own[column] == pytest.approx(total[column])
    assert total[0] == "sum over heads, and bias"


def test_checks_tell_every_module():
    table = tabulate_checks(work())
    assert len(table.rows) == 3
    assert all(number(cell) < 1e-12 for row in table.rows for cell in row[2:])


def test_pictures_have_the_tokens_as_labels(shown):
    steps, heads = plot_steps(shown["encoder"]), plot_heads(shown["cross"])
    assert [panel.is_signed for panel in steps.panels] == [True, False]
    assert len(heads.panels) == 2
    for panel in heads.panels:
        assert (panel.y_names, panel.x_names) == (TARGET, SOURCE)
        assert [sum(row) for row in panel.values] == pytest.approx([1] * len(TARGET))


def test_no_more_than_eight_heads_are_drawn_and_it_says_so():
    each = work(num_heads=10)[0]
    shown = ShownModule(worked=each, queries=SOURCE, keys=SOURCE, head=1, token=1, entries=1)
    plot = plot_heads(shown)
    assert len(plot.panels) == 8
    assert plot.title.endswith("heads 1 to 8 of 10")
