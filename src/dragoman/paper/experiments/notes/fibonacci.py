"""The notes' smallest experiment: the next Fibonacci number, with attention and without.

One of the notes trains a recurrent cell of two units on the series 1, 2, 3, 5, …, scaled to lie
between 0 and 1, and says that attention lowers the error on the test set. Its numbers show what
kind of series that is: of 1,180 targets all but 15 are below a thousandth, and in 32-bit floats
most inputs are zero. So everything here is computed in 64 bits, from several seeds, and beside
what costs nothing: to predict zero, or the last number once more.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from dragoman.options import option, require, require_least
from dragoman.paper.report.result import (
    Bar,
    Bars,
    Cell,
    Column,
    Experiment,
    Plot,
    Say,
    Table,
    number,
    show,
    spread,
)

if TYPE_CHECKING:
    from dragoman.paper.tasks.series_models import SeriesModel, Split

NUM_NUMBERS, NUM_STEPS, HIDDEN_DIM = 1200, 20, 2
_TRAIN_SHARE, _SPLIT_SEED = 0.7, 13
# What the note prints of the first window, by time step.
PRINTED_INPUTS = {1: 0.0, 2: 2.2664e-251, 3: 4.5327e-251, 4: 9.0654e-251, 5: 1.5865e-250,
                  19: 1.5330e-247, 20: 2.4805e-247}  # fmt: skip
_PRINTED_WEIGHTS = {1: -0.6759, 2: -0.6923, 3: -0.7468, 4: -0.7456, 5: -0.8025, 19: 0.7771,
                    20: 0.7768}  # fmt: skip
# Mean squared errors that the tutorial prints: train and test.
_TUTORIAL = {"none": (5.6314e-05, 2.6235e-05), "tutorial": (5.3511e-05, 9.0534e-06)}


@dataclass(frozen=True, kw_only=True)
class FibonacciOptions:
    """Options of training the small models."""

    epochs: int = option(30, "how often each window of the series is seen")
    batch_size: int = option(16, "windows of an update; the tutorial has 1, which takes longer")
    learning_rate: float = option(0.01, "of Adam; the tutorial has 0.001, with its batches of 1")
    seeds: int = option(10, "how many seeds each error is averaged over")

    def __post_init__(self) -> None:
        require_least(self, epochs=1, batch_size=1, seeds=1)
        require(self.learning_rate > 0, "--learning-rate", self.learning_rate, "give a number > 0")


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A model variant of the comparison.

    Parameters
    ----------
    name : str
        What to call it.
    attention : Literal["none", "note", "tutorial"]
        Which parametrisation.
    is_squashed : bool
        Whether the output is a tanh instead of linear.
    """

    name: str
    attention: Literal["none", "note", "tutorial"]
    is_squashed: bool

    def make(self) -> "SeriesModel":
        """Make a model with fresh weights."""
        from dragoman.paper.tasks.series_models import (
            AlignedWeights,
            FixedWeights,
            LastState,
            SeriesModel,
        )

        match self.attention:
            case "none":
                context: LastState | FixedWeights | AlignedWeights = LastState()
            case "note":
                context = FixedWeights(HIDDEN_DIM, NUM_STEPS)
            case "tutorial":
                context = AlignedWeights(HIDDEN_DIM, NUM_STEPS)
        return SeriesModel(context, HIDDEN_DIM, is_squashed=self.is_squashed)


VARIANTS = (
    Variant(name="no attention, linear output (the note)", attention="none", is_squashed=False),
    Variant(name="attention, the note's form", attention="note", is_squashed=False),
    Variant(name="attention, the tutorial's form", attention="tutorial", is_squashed=False),
    Variant(name="no attention, tanh output (the tutorial)", attention="none", is_squashed=True),
    Variant(name="attention, the tutorial's form, tanh", attention="tutorial", is_squashed=True),
)


def make_series(num_numbers: int = NUM_NUMBERS) -> list[float]:
    """Make the note's series: Fibonacci numbers scaled to lie between 0 and 1.

    Notes
    -----
    Computed with whole numbers of any size and rounded once.
    """
    from fractions import Fraction

    numbers = [1, 2]
    while len(numbers) < num_numbers:
        numbers.append(numbers[-1] + numbers[-2])
    return [float(Fraction(number - 1, numbers[-1] - 1)) for number in numbers]


def split_series(series: Sequence[float]) -> "tuple[Split, Split]":
    """Cut a series into windows and divide them as the tutorial does."""
    import numpy as np
    import torch

    from dragoman.paper.tasks.series_models import Split

    numbers = torch.tensor(series, dtype=torch.float64)
    windows = numbers.unfold(0, NUM_STEPS + 1, 1)
    order = np.random.RandomState(_SPLIT_SEED).permutation(len(windows))
    num_train = int(_TRAIN_SHARE * len(windows))
    parts = (windows[torch.from_numpy(part)] for part in (order[:num_train], order[num_train:]))
    train, test = (Split(part[:, :-1], part[:, -1]) for part in parts)
    return train, test


def run(options: FibonacciOptions, say: Say) -> Experiment:
    """Train the models of the note and of the tutorial."""
    from dragoman.paper.tasks.series_models import train_together

    seeds = tuple(range(1, options.seeds + 1))
    series = make_series()
    train, test = split_series(series)
    trained: dict[str, list[SeriesModel]] = {}
    for variant in VARIANTS:
        say(f"training {options.seeds} models: {variant.name}")
        trained[variant.name] = train_together(
            variant.make, train, seeds, num_epochs=options.epochs, batch_size=options.batch_size,
            learning_rate=options.learning_rate,
        )  # fmt: skip
    errors = _tabulate_errors(trained, train, test, options)
    zero = next(row[5] for row in errors.rows if row[0] == "predict zero")
    small = sum(each < 1e-3 for each in [*train.following.tolist(), *test.following.tolist()])
    return Experiment(
        title="Fibonacci: the next number, with attention and without",
        claim="“For Fibonacci series, the mean square error on the test set is lower with the "
        "attention layer” (003:141).",
        findings=(
            *(_compare(errors, *pair) for pair in ((0, 1), (0, 2), (3, 4))),
            f"To predict zero gives {show(zero, '.1e')} on the test set.",
            f"{small:,} of {len(train.following) + len(test.following):,} targets are below a "
            "thousandth; the errors are those of the few others, so the split decides them as "
            "much as the model.",
        ),
        tables=(_tabulate_series(series), errors, _tabulate_context(trained, series)),
        plots=(_plot(errors),),
        seeds=seeds,
    )


def _compare(errors: Table, without: int, with_attention: int) -> str:
    """Tell whether attention lowered the test error significantly."""
    before, after = errors.rows[without], errors.rows[with_attention]
    (one, one_spread), (other, other_spread) = (
        (float(row[5] or 0), float(row[6] or 0)) for row in (before, after)
    )
    seeds = int(before[2] or 1)
    margin = 2 * math.sqrt((one_spread**2 + other_spread**2) / seeds)
    verdict = "no difference beyond chance"
    if abs(other - one) > margin and seeds > 1:
        verdict = "lower" if other < one else "higher"
    return (
        f"Test error of “{after[0]}”: {show(other, '.1e')} ± {show(other_spread, '.0e')}, of "
        f"“{before[0]}”: {show(one, '.1e')} ± {show(one_spread, '.0e')}: {verdict}."
    )


def _tabulate_series(series: Sequence[float]) -> Table:
    """Compare the series with the figures that the note prints."""
    return Table(
        name="series",
        title=f"The first window of the series, of {NUM_NUMBERS:,} numbers",
        columns=(Column("time step"), Column("computed", ".4e"), Column("in the note", ".4e")),
        rows=tuple((step, series[step - 1], printed) for step, printed in PRINTED_INPUTS.items()),
        notes=(
            "(F − 1)/(F_last − 1) for F = 1, 2, 3, 5, …; the last is 4.41236·10²⁵⁰. In 32-bit "
            "floats the first 983 of the 1,200 numbers are zero.",
        ),
    )


def _tabulate_errors(
    trained: "dict[str, list[SeriesModel]]", train: "Split", test: "Split",
    options: FibonacciOptions,
) -> Table:  # fmt: skip
    """Tabulate test errors of every model and of trivial baselines."""
    import torch

    from dragoman.models.build import count_parameters

    def error(predict: "Callable[[torch.Tensor], torch.Tensor]", part: "Split") -> float:
        with torch.no_grad():
            return (predict(part.series) - part.following).square().mean().item()

    rows: list[tuple[Cell, ...]] = []
    for variant in VARIANTS:
        models = trained[variant.name]
        errors = [[error(model, part) for model in models] for part in (train, test)]
        printed = _TUTORIAL.get(variant.attention) if variant.is_squashed else None
        rows.append((variant.name, count_parameters(models[0]), len(models), *spread(errors[0]),
                     *spread(errors[1]), *(printed or (None, None))))  # fmt: skip
    for name, predict in (
        ("predict zero", lambda numbers: torch.zeros_like(numbers[:, 0])),
        ("predict the last number", lambda numbers: numbers[:, -1]),
        ("predict the sum of the last two", lambda numbers: numbers[:, -2:].sum(1)),
    ):
        rows.append((name, 0, None, error(predict, train), None, error(predict, test), None, None,
                     None))  # fmt: skip
    return Table(
        name="errors",
        title=f"Mean squared error after {options.epochs} epochs in batches of "
        f"{options.batch_size}",
        columns=(
            Column("model"), Column("parameters"), Column("seeds"), Column("train", ".2e"),
            Column("± train", ".1e"), Column("test", ".2e"), Column("± test", ".1e"),
            Column("tutorial's train", ".2e"), Column("tutorial's test", ".2e"),
        ),
        rows=tuple(rows),
        notes=(
            "The tutorial printed one run each, of 30 epochs in batches of 1 with a learning rate "
            "of 0.001. Seven windows of ten are for training, chosen by its own shuffle.",
            "X11: the note gives attention a weight for each time step (20), a bias for each unit "
            "(2) and no softmax; the tutorial it cites has a weight for each unit, a bias for "
            "each time step, tanh and softmax. X12: the note's output is linear, the tutorial's a "
            "tanh.",
        ),
    )  # fmt: skip


def _tabulate_context(trained: "dict[str, list[SeriesModel]]", series: Sequence[float]) -> Table:
    """Show states, weights and context of the first window in the note's model."""
    import torch

    model = trained[VARIANTS[1].name][0]
    window = torch.tensor([series[:NUM_STEPS]], dtype=torch.float64)
    with torch.no_grad():
        states, context = model.read(window)
    rows: list[tuple[Cell, ...]] = [
        (str(step), series[step - 1], context.weights[0, step - 1].item(),
         *states[0, step - 1].tolist(), _PRINTED_WEIGHTS[step])
        for step in PRINTED_INPUTS
    ]  # fmt: skip
    rows.append(("c = Σ α h + b", None, None, *context.vector[0].tolist(), None))
    return Table(
        name="context",
        title="A context vector, number by number: the note's form of attention, first seed",
        columns=(
            Column("time step"), Column("input", ".4e"), Column("α", ".4f"),
            Column("h, unit 1", ".3f"), Column("h, unit 2", ".3f"), Column("α in the note", ".4f"),
        ),
        rows=tuple(rows),
        notes=(
            "The sum is over all 20 time steps. The note's weights come from its own training, "
            "of which only the shape can be repeated: some are negative, so no softmax made them.",
            "X22: the note (003:217) writes Σ over i where j is meant.",
        ),
    )  # fmt: skip


def _plot(errors: Table) -> Plot:
    """Plot the test errors."""
    shown = [row for row in errors.rows if row[2] is not None or row[0] == "predict zero"]
    bars = [
        Bar(name=str(row[0]), group=group, end=number(row[place]),
            deviation=None if row[place + 1] is None else number(row[place + 1]))
        for row in shown
        for group, place in (("train", 3), ("test", 5))
    ]  # fmt: skip
    panel = Bars(title="", x_label="mean squared error", bars=tuple(bars), x_scale="log")
    return Plot(name="errors", title="Predicting the next Fibonacci number", panels=(panel,))
