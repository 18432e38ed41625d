"""Parameter counts of every row of table 3, beside the published ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.options import option, require
from dragoman.paper.experiments.tables.published import TABLE_3, VariationRow
from dragoman.paper.report.result import Bar, Bars, Column, Experiment, Mark, Plot, Say, Table

MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ParametersOptions:
    """Options of counting parameters."""

    vocabulary_size: int = option(37_000, "subwords, shared by source and target")

    def __post_init__(self) -> None:
        require(self.vocabulary_size >= 4, "--vocabulary-size", self.vocabulary_size, "give ≥ 4")


@dataclass(frozen=True, kw_only=True)
class Range:
    """The range of vocabulary sizes that give the published count.

    Parameters
    ----------
    first, last : int
        The smallest and the largest.
    """

    first: int
    last: int

    def __contains__(self, size: int) -> bool:
        return self.first <= size <= self.last


def count_by_formula(
    row: VariationRow, vocabulary_size: int, *, attention_bias: bool = False
) -> int:
    r"""Count a row's parameters by a formula.

    Notes
    -----
    :math:`N[3(2hd\,d_k + 2hd\,d_v) + 2(2d\,d_{ff} + d_{ff} + d) + 10d] + Vd`: three attentions and
    two feed-forward layers for each of the N layers on both sides, five norms of two vectors, and
    the words. Biases of attention add :math:`3N(2h\,d_k + h\,d_v + d)`; learned positions one
    vector each, shared by both sides.
    """
    width, heads = row.model_dim, row.num_heads
    attention = 2 * heads * width * (row.key_dim + row.value_dim)
    if attention_bias:
        attention += heads * (2 * row.key_dim + row.value_dim) + width
    feed_forward = 2 * width * row.feed_forward_dim + row.feed_forward_dim + width
    layers = row.num_layers * (3 * attention + 2 * feed_forward + 10 * width)
    return layers + (vocabulary_size + row.learned_positions) * width


def count_in_model(row: VariationRow, vocabulary_size: int, *, attention_bias: bool = False) -> int:
    """Count a row's parameters in the model built from its recipe."""
    import torch

    from dragoman.models.build import build_model, count_parameters
    from dragoman.models.interface import Vocabulary
    from dragoman.training.configuration import resolve_options

    flags = {"model": {"attention_bias": attention_bias}}
    _, options = resolve_options(row.preset, {}, flags, num_pairs=0)
    with torch.device("meta"):
        model = build_model(options.model, Vocabulary(vocabulary_size, vocabulary_size, 2, 0))
    return count_parameters(model)


def find_range(
    row: VariationRow, *, attention_bias: bool = False, truncated: bool = False
) -> Range | None:
    """Find the vocabulary sizes that give a row's published count."""
    if row.millions is None:
        return None
    least = row.millions * MILLION - (0 if truncated else MILLION // 2)
    without_words = count_by_formula(row, 0, attention_bias=attention_bias)
    first = -(-(least - without_words) // row.model_dim)
    last = (least + MILLION - 1 - without_words) // row.model_dim
    return Range(first=first, last=last)


def find_best_range(ranges: Sequence[Range]) -> tuple[int, Range]:
    """Find the vocabulary sizes that fit the most rows."""
    starts = sorted({each.first for each in ranges})
    most = max(sum(start in each for each in ranges) for start in starts)
    first = next(start for start in starts if sum(start in each for each in ranges) == most)
    return most, Range(first=first, last=min(each.last for each in ranges if first in each))


def run(options: ParametersOptions, say: Say) -> Experiment:
    """Count the parameters of every row of table 3, and of the notes' small models."""
    say("building every row of table 3 without memory")
    counts = _tabulate_counts(options.vocabulary_size)
    fits = _tabulate_fits()
    small = _tabulate_small_models()
    ranges = {row.title: each for row in TABLE_3 if (each := find_range(row))}
    agree = [title for title, each in ranges.items() if options.vocabulary_size in each]
    most, best = find_best_range(list(ranges.values()))
    equal = sum(built == exact for _, _, built, exact, *_ in counts.rows)
    return Experiment(
        title="Parameters of every row of table 3",
        claim="Table 3 gives the parameters of eleven models in millions: base has 65, big 213.",
        findings=(
            f"With {options.vocabulary_size:,} subwords, {len(agree)} of {len(ranges)} rows "
            f"round to the published figure{': ' + ', '.join(agree) if agree else ''}.",
            f"{most} of {len(ranges)} rows come out together with {best.first:,} to "
            f"{best.last:,} subwords; big alone wants "
            f"{_words(ranges['big'])}. No vocabulary fits all.",
            f"In {equal} of {len(TABLE_3)} rows the count in the built model equals the formula "
            "to the last unit.",
        ),
        tables=(counts, fits, small),
        plots=(_plot_ranges(options.vocabulary_size),),
    )


def _tabulate_counts(size: int) -> Table:
    """Tabulate the counts of every row, by model and by formula."""
    rows = []
    for row in TABLE_3:
        built = count_in_model(row, size)
        rows.append((
            row.title, row.preset, built, count_by_formula(row, size),
            count_in_model(row, size, attention_bias=True), built / MILLION, row.millions,
            _words(find_range(row)),
        ))  # fmt: skip
    return Table(
        name="counts",
        title=f"Parameters with {size:,} subwords",
        columns=(
            Column("row"), Column("preset"), Column("in the built model"), Column("by formula"),
            Column("with attention biases"), Column("millions", ".1f"),
            Column("published millions"), Column("subwords that round to it"),
        ),
        rows=tuple(rows),
        notes=(
            "Rows (A) and (D) change nothing that is counted: h·d_k stays 512.",
            "Row (E) has 1,024 learned positions, shared by encoder and decoder; the paper gives "
            "neither their number nor a count.",
            "X8: one of the notes (002:39) says the projections keep “the same with the original "
            "dimensions”; each of the h heads has d_k = d_v = d_model/h = 64.",
            "X19: that note calls this table “Table 2”; in the paper it is table 3.",
        ),
    )  # fmt: skip


def _tabulate_fits() -> Table:
    """Tabulate which vocabulary size fits most rows, under three interpretations."""
    published = [row for row in TABLE_3 if row.millions is not None]
    readings = (
        ("rounded, no attention biases", False, False),
        ("rounded, attention biases", True, False),
        ("cut off, no attention biases", False, True),
    )
    rows = []
    for name, bias, truncated in readings:
        found = {row.title: find_range(row, attention_bias=bias, truncated=truncated)
                 for row in published}  # fmt: skip
        most, best = find_best_range([each for each in found.values() if each])
        out = ", ".join(title for title, each in found.items() if each and best.first not in each)
        rows.append((name, most, len(published), best.first, best.last, out))
    return Table(
        name="fits",
        title="Vocabularies that suit the most published counts at once",
        columns=(
            Column("reading of the printed figure"), Column("rows that fit"), Column("of"),
            Column("subwords from"), Column("to"), Column("rows left out"),
        ),
        rows=tuple(rows),
        notes=(
            "The paper speaks of “about 37,000” subwords for English–German. Two separate "
            "matrices would need some 20,500 subwords, three 13,700.",
        ),
    )  # fmt: skip


def _tabulate_small_models() -> Table:
    """Tabulate the small models of a note, with one and with two bias vectors a cell."""
    from torch import nn

    from dragoman.models.build import count_parameters
    from dragoman.models.recurrent.cells import LSTMCell
    from dragoman.paper.tasks.series_models import (
        AlignedWeights,
        FixedWeights,
        LastState,
        SeriesModel,
    )

    plain, fixed, aligned = (
        count_parameters(SeriesModel(context, is_squashed=False))
        for context in (LastState(), FixedWeights(2, 20), AlignedWeights(2, 20))
    )
    pair = nn.ModuleList([LSTMCell(74, 256), LSTMCell(78, 256), nn.Linear(256, 78)])
    naive = count_parameters(nn.ModuleList([nn.RNN(1, 2), nn.Linear(2, 1)]))
    naive_pair = nn.ModuleList([nn.LSTM(74, 256), nn.LSTM(78, 256), nn.Linear(256, 78)])
    attention = "(1+2+1)·2 + (20+2)·1 + (2+1)·1"
    rows = (
        ("SimpleRNN(2), Dense(1)", plain, "(1+2+1)·2 + (2+1)·1", 11, naive),
        ("the same with attention, the note's form", fixed, attention, 33, naive + 22),
        ("the same with attention, the tutorial's form", aligned, attention, 33, naive + 22),
        (
            "LSTM(256) of 74, LSTM(256) of 78, Dense(78)", count_parameters(pair),
            "4·256·(74+256+1) + 4·256·(78+256+1) + 78·(256+1)", 702_030,
            count_parameters(naive_pair),
        ),
    )  # fmt: skip
    return Table(
        name="small-models",
        title="The small models of one of the notes (003)",
        columns=(
            Column("model"), Column("in the built model"), Column("formula"),
            Column("in the note"), Column("with PyTorch's own cells"),
        ),
        rows=rows,
        notes=(
            "PyTorch's cells have two bias vectors that are only ever added; Keras and our cells "
            "have one, which is what the note counted.",
            "X11: the note's attention has 20 weights and 2 biases, the tutorial it cites 2 "
            "weights and 20 biases: 22 either way.",
        ),
    )  # fmt: skip


def _plot_ranges(size: int) -> Plot:
    """Plot the vocabulary sizes that fit each row."""
    bars = tuple(
        Bar(name=f"{row.title}: {row.millions} M", group="fits", start=each.first, end=each.last)
        for row in TABLE_3
        if (each := find_range(row))
    )
    panel = Bars(
        title="",
        x_label="subwords with which a row rounds to its published count",
        bars=bars,
        marks=(Mark(value=size, text=f"{size:,}"),),
    )
    return Plot(name="vocabularies", title="No vocabulary fits every published count",
                panels=(panel,))  # fmt: skip


def _words(found: Range | None) -> str:
    return "" if found is None else f"{found.first:,}–{found.last:,}"
