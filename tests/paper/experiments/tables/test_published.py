"""The paper's tables, transcribed: counts, arithmetic and relations that a slip would break."""

import pytest

from dragoman.paper.experiments.tables.published import (
    BASE,
    BIG,
    SPEEDS,
    TABLE_1,
    TABLE_2,
    TABLE_3,
    TRAINING_TIMES,
)
from dragoman.presets import preset_names
from dragoman.training.configuration import resolve_options

ROWS = {row.preset: row for row in TABLE_3}


def test_table_2_has_31_filled_cells_in_10_rows():
    assert len(TABLE_2) == 10
    assert sum(cell is not None for row in TABLE_2 for cell in row.cells) == 31


def test_table_2_arithmetic():
    systems = {row.system: row for row in TABLE_2}
    big, base = systems[BIG], systems[BASE]
    others = [row for row in TABLE_2 if row not in (big, base)]
    best_german = max(row.german_bleu for row in others if row.german_bleu)
    assert big.german_bleu - best_german == pytest.approx(2.04)
    single = max(row.french_bleu for row in others if row.french_bleu and not row.is_ensemble)
    ensemble = max(row.french_bleu for row in others if row.french_bleu and row.is_ensemble)
    assert big.french_bleu - single == pytest.approx(1.24)
    assert big.french_bleu - ensemble == pytest.approx(0.51)
    ratios = {
        ("GNMT + RL Ensemble", "french_cost", BIG): 48,
        ("ConvS2S Ensemble", "french_cost", BIG): 52,
        ("GNMT + RL Ensemble", "german_cost", BASE): 55,
        ("ConvS2S Ensemble", "german_cost", BASE): 23,
        ("ConvS2S Ensemble", "french_cost", BASE): 364,
    }
    for (system, cost, ours), ratio in ratios.items():
        found = getattr(systems[system], cost) / systems[ours].german_cost
        assert round(found) == ratio


def test_every_cost_has_its_hardware():
    costs = {
        (row.system, pair)
        for row in TABLE_2
        for pair, cost in (("EN-DE", row.german_cost), ("EN-FR", row.french_cost))
        if cost is not None and row.system not in (BASE, BIG)
    } | {(BASE, "both"), (BIG, "both")}
    assert {(time.system, time.pair) for time in TRAINING_TIMES} == costs
    assert len(TRAINING_TIMES) == len(costs) == 14
    assert SPEEDS == {"K80": 2.8e12, "K40": 3.7e12, "M40": 6.0e12, "P100": 9.5e12}


def test_table_3_has_20_rows():
    assert len(TABLE_3) == len(ROWS) == 20
    groups = [row.group for row in TABLE_3]
    counts = {group: groups.count(group) for group in dict.fromkeys(groups)}
    assert counts == {"base": 1, "(A)": 4, "(B)": 2, "(C)": 7, "(D)": 4, "(E)": 1, "big": 1}
    assert sum(row.millions is not None for row in TABLE_3) == 11
    # The sums of the printed columns.
    assert sum(row.bleu for row in TABLE_3) == pytest.approx(507.7)
    assert sum(row.perplexity for row in TABLE_3) == pytest.approx(101.87)
    assert sum(row.millions or 0 for row in TABLE_3) == 901


def test_table_3_relations():
    best = max(row.bleu for row in TABLE_3 if row.group in ("base", "(A)"))
    assert best - ROWS["paper-a-1-head"].bleu == pytest.approx(0.9)
    assert ROWS["paper-b-16"].bleu == 25.1
    assert ROWS["paper-d-dropout-0"].bleu == 24.6
    smoothing = ROWS["paper-d-smoothing-0"]
    assert (smoothing.perplexity, smoothing.bleu) == (4.67, 25.3)
    assert smoothing.perplexity < ROWS["paper-base"].perplexity
    assert (ROWS["paper-big"].perplexity, ROWS["paper-big"].bleu) == (4.33, 26.4)


def test_heads_share_the_width():
    for row in TABLE_3:
        if row.group in ("base", "(A)", "(D)", "(E)", "big"):
            assert row.num_heads * row.key_dim == row.num_heads * row.value_dim == row.model_dim


@pytest.mark.parametrize("row", TABLE_3, ids=lambda row: row.preset)
def test_presets_are_the_rows(row):
    assert row.preset in preset_names()
    _, options = resolve_options(row.preset, {}, {}, num_pairs=0)
    model = options.model
    assert (model.num_encoder_layers, model.num_decoder_layers) == (row.num_layers, row.num_layers)
    assert (model.model_dim, model.feed_forward_dim) == (row.model_dim, row.feed_forward_dim)
    assert (model.num_heads, model.head_key_dim, model.head_value_dim) == (
        row.num_heads, row.key_dim, row.value_dim,
    )  # fmt: skip
    assert (model.dropout, options.training.label_smoothing) == (row.dropout, row.smoothing)
    assert options.training.max_steps == row.steps
    assert model.positions == ("learned" if row.learned_positions else "sinusoidal")
    assert options.text.vocabulary_size == 37_000


def test_table_1():
    assert [row.complexity for row in TABLE_1] == ["O(n²·d)", "O(n·d²)", "O(k·n·d²)", "O(r·n·d)"]
    assert [row.sequential for row in TABLE_1] == ["O(1)", "O(n)", "O(1)", "O(1)"]
    assert [row.path for row in TABLE_1] == ["O(1)", "O(n)", "O(log_k(n))", "O(n/r)"]
