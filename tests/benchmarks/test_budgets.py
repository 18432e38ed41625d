"""The study of budgets: every variation is a recipe, and what is in the ledger is not repeated."""

import sys
from pathlib import Path

import pytest

from dragoman.cli.command import build_parser
from dragoman.cli.flags import given_flags
from dragoman.training.configuration import RunOptions, resolve_options

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import budgets


@pytest.mark.parametrize("variation", budgets.VARIATIONS)
@pytest.mark.parametrize("shape", ["2+2x128", "6+6x384"])
def test_every_variation_is_a_recipe(shape, variation):
    run = budgets.Run("builtin", 5, shape, variation, 1, "cpu")
    words = [word for name, value in budgets._flags(run).items() for word in (f"--{name}", value)]
    parsed = build_parser().parse(
        ["train", "--out", "x", *words, "--max-steps", "900", "--warmup-steps", "9"]
    )
    _, options = resolve_options("tiny", {}, given_flags(parsed, RunOptions), 1000)
    assert options.model.model_dim == int(shape.split("x")[1])
    assert options.model.model_dim % options.model.num_heads == 0


def test_the_ledger_knows_its_runs():
    lines = budgets.read_ledger(budgets.LEDGER)
    assert lines
    assert all(line["shape"] in budgets.SPEEDS for line in lines)
    assert len({budgets._key(line) for line in lines}) == len(lines)
