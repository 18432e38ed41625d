"""Table 1 of the paper measured: time, memory, sequential operations and longest paths."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from dragoman.options import option, require, require_least
from dragoman.paper.experiments.tables.paths import find_longest_path, list_wirings
from dragoman.paper.experiments.tables.published import TABLE_1
from dragoman.paper.report.result import (
    Cell,
    Column,
    Experiment,
    Lines,
    Mark,
    Plot,
    Say,
    Series,
    Table,
    fit_exponent,
)

if TYPE_CHECKING:
    import torch

    from dragoman.paper.experiments.tables.layers import LayerKind

_SMALLEST = 64
_FITTED = 4
_CHAIN_LENGTHS = (16, 32, 64, 128)
_PATH_LENGTHS = (16, 32, 64, 128, 256, 512)


@dataclass(frozen=True, kw_only=True)
class ComplexityOptions:
    """Options: the ranges of lengths and widths that are measured."""

    max_length: int = option(2048, "longest sentence: lengths are the powers of two from 64 (n)")
    width: int = option(256, "width of a layer while the length grows (d)")
    max_width: int = option(1024, "largest width: widths are the powers of two from 64")
    length: int = option(256, "length of the sentence while the width grows")
    kernel_size: int = option(3, "words that a convolution sees (k)")
    window: int = option(32, "words that restricted attention sees (r)")
    repeats: int = option(5, "how often each time is taken; the shortest counts")
    device: Literal["auto", "cpu", "cuda", "mps"] = option("cpu", "where to measure")

    def __post_init__(self) -> None:
        require_least(
            self,
            max_length=2 * _SMALLEST,
            max_width=2 * _SMALLEST,
            width=2,
            length=2,
            window=2,
            repeats=1,
        )
        size = self.kernel_size
        require(size >= 3 and size % 2 == 1, "--kernel-size", size, "give an odd number ≥ 3")


class Measured(NamedTuple):
    """The measurements of one layer at one size."""

    layer: str
    length: int
    width: int
    operations: int
    seconds: float
    peak_bytes: int


def measure_layer(
    kind: "LayerKind", length: int, width: int, *, repeats: int, device: "torch.device"
) -> Measured:
    """Measure one layer at one size.

    Returns
    -------
    Measured
        Operations of the layer alone; time and memory of the layer and of the way back through it.
    """
    import torch

    from dragoman.paper.experiments.tables.layers import make_pass
    from dragoman.paper.experiments.tables.measuring import (
        count_operations,
        measure_peak_bytes,
        measure_seconds,
    )

    with torch.device("meta"):
        layer, words = kind.make_spelt_out(width), torch.zeros(1, length, width)
        operations = count_operations(lambda: layer(words))
    with torch.device(device):
        torch.manual_seed(1)
        there_and_back = make_pass(kind.make(width), torch.randn(1, length, width))
        seconds = measure_seconds(there_and_back, repeats=repeats)
        peak = measure_peak_bytes(there_and_back, device)
    return Measured(kind.name, length, width, operations, seconds, peak)


def count_chain(kind: "LayerKind", length: int) -> int:
    """Count the sequential operations of a layer."""
    import torch

    from dragoman.paper.experiments.tables.measuring import find_longest_chain

    return find_longest_chain(kind.make_spelt_out(8)(torch.zeros(1, length, 8, requires_grad=True)))


def run(options: ComplexityOptions, say: Say) -> Experiment:
    """Measure table 1."""
    from dragoman.decoding.device import choose_device
    from dragoman.paper.experiments.tables.layers import list_layers

    kinds = list_layers(options.kernel_size, options.window)
    device = choose_device(options.device)
    over_length, over_width = [], []
    for kind in kinds:
        say(f"measuring {kind.name}")
        for length in _powers(options.max_length):
            over_length.append(measure_layer(kind, length, options.width, repeats=options.repeats,
                                             device=device))  # fmt: skip
        for width in _powers(options.max_width):
            over_width.append(measure_layer(kind, options.length, width, repeats=options.repeats,
                                            device=device))  # fmt: skip
    crossover = _tabulate_crossover(over_length, options.width)
    paths = _tabulate_paths(options)
    exponents = _tabulate_exponents(over_length, over_width)
    return Experiment(
        title="Table 1 measured: what a layer costs as sentences grow",
        claim="Self-attention takes O(n²·d) operations, recurrence O(n·d²), convolution O(k·n·d²), "
        "restricted self-attention O(r·n·d); only recurrence needs O(n) steps one after another.",
        findings=_find(exponents, over_length, options.width),
        tables=(exponents, _tabulate_chains(kinds), paths, crossover,
                _tabulate_measurements([*over_length, *over_width])),
        plots=(_plot(over_length, over_width, options),),
        seeds=(1,),
    )  # fmt: skip


def _find(exponents: Table, over_length: Sequence[Measured], width: int) -> tuple[str, ...]:
    """Summarise the results."""
    grown = dict(zip(exponents.column("layer"), exponents.numbers("time ∝ n^"), strict=True))
    words = ", ".join(f"{name} {power:.2f}" for name, power in grown.items())
    attention = {each.length: each.seconds for each in over_length if each.layer == _name(0)}
    recurrent = {each.length: each.seconds for each in over_length if each.layer == _name(1)}
    slower = [length for length in attention if attention[length] > recurrent[length]]
    return (
        f"Time grows as n to the power {words} (fitted to the {_FITTED} largest lengths).",
        "Counted in operations, self-attention and a plain recurrent layer cost the same at "
        "exactly n = d: fewer for shorter sentences, more for longer ones.",
        f"On this machine self-attention of width {width} was slower than recurrence from "
        f"n = {min(slower):,} on." if slower else
        f"On this machine self-attention of width {width} was never slower than recurrence up to "
        f"n = {max(attention):,}: recurrence must wait for itself at every word.",
        "A path of logarithmic length is that of dilated convolutions; contiguous ones need a "
        "number of layers in proportion to n/k.",
    )  # fmt: skip


def _tabulate_exponents(over_length: Sequence[Measured], over_width: Sequence[Measured]) -> Table:
    """Fit powers of n and d to what was measured."""
    rows = []
    for index, published in enumerate(TABLE_1):
        longer = [each for each in over_length if each.layer == _name(index)][-_FITTED:]
        wider = [each for each in over_width if each.layer == _name(index)][-_FITTED:]
        lengths, widths = [each.length for each in longer], [each.width for each in wider]
        rows.append((
            _name(index), published.complexity,
            fit_exponent(lengths, [each.operations for each in longer]),
            fit_exponent(widths, [each.operations for each in wider]),
            fit_exponent(lengths, [each.seconds for each in longer]),
            fit_exponent(widths, [each.seconds for each in wider]),
            fit_exponent(lengths, [each.peak_bytes for each in longer]),
        ))  # fmt: skip
    return Table(
        name="exponents",
        title="Complexity of a layer: the published order, and powers fitted to what was measured",
        columns=(
            Column("layer"), Column("published"), Column("operations ∝ n^", ".2f"),
            Column("operations ∝ d^", ".2f"), Column("time ∝ n^", ".2f"),
            Column("time ∝ d^", ".2f"), Column("peak memory ∝ n^", ".2f"),
        ),
        rows=tuple(rows),
        notes=(
            f"Fitted by least squares in logarithms to the {_FITTED} largest sizes. Operations "
            "are counted; times depend on the machine, and small layers cost more than their "
            "arithmetic.",
            "Without projections, which the table leaves out: four of them add 8·n·d² operations "
            "to a layer of attention. Time and memory are of the layer and of the way back to its "
            "input.",
            "Self-attention is equation 1 spelt out, which keeps the n × n weights; the fused "
            "kernel of training has the same operations without that memory.",
        ),
    )  # fmt: skip


def _tabulate_chains(kinds: Sequence["LayerKind"]) -> Table:
    """Tabulate the sequential operations."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (kind.name, published.sequential, *(count_chain(kind, length) for length in _CHAIN_LENGTHS))
        for kind, published in zip(kinds, TABLE_1, strict=True)
    )
    return Table(
        name="sequential",
        title="Sequential operations: the longest chain of operations that wait for one another",
        columns=(Column("layer"), Column("published"),
                 *(Column(f"n = {length}") for length in _CHAIN_LENGTHS)),
        rows=rows,
        notes=("The longest path in the graph that PyTorch records, recurrence word by word.",),
    )  # fmt: skip


def _tabulate_paths(options: ComplexityOptions) -> Table:
    """Tabulate the longest paths between two words."""
    published = (TABLE_1[0].path, TABLE_1[1].path, "O(n/k), in the text", TABLE_1[3].path,
                 TABLE_1[2].path)  # fmt: skip
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (wiring.name, order, wiring.formula,
         *(find_longest_path(wiring, length) for length in _PATH_LENGTHS))
        for wiring, order in zip(
            list_wirings(options.kernel_size, options.window), published, strict=True
        )
    )  # fmt: skip
    return Table(
        name="paths",
        title=f"Longest path between two words, in steps (k = {options.kernel_size}, "
        f"r = {options.window})",
        columns=(Column("layer"), Column("published"), Column("exactly"),
                 *(Column(f"n = {length}") for length in _PATH_LENGTHS)),
        rows=rows,
        notes=(
            "By breadth-first search through layer upon layer. Convolutions look back only, as in "
            "a decoder.",
            "X10: a convolutional row with path O(log_k(n)), as one of the notes (002:67) has it, "
            "is true of dilated convolutions; the paper says so, and gives O(n/k) for contiguous "
            "ones.",
            "Restricted attention sees r/2 words to each side, hence 2n/r layers.",
        ),
    )  # fmt: skip


def _tabulate_crossover(over_length: Sequence[Measured], width: int) -> Table:
    """Tabulate self-attention against recurrence by length."""
    attention = [each for each in over_length if each.layer == _name(0)]
    recurrent = [each for each in over_length if each.layer == _name(1)]
    rows = tuple(
        (one.length, one.length / width, one.operations, other.operations,
         one.operations / other.operations, one.seconds / other.seconds)
        for one, other in zip(attention, recurrent, strict=True)
    )  # fmt: skip
    return Table(
        name="crossover",
        title=f"Self-attention against recurrence at width d = {width}",
        columns=(
            Column("n"), Column("n/d", "g"), Column("operations, self-attention"),
            Column("operations, recurrent"), Column("ratio of operations", "g"),
            Column("ratio of times", ".3f"),
        ),
        rows=rows,
        notes=(
            "X20: one of the notes (002:60) says self-attention's complexity “is lower”; it is "
            "where n < d: 4n²d operations against 4nd².",
        ),
    )  # fmt: skip


def _tabulate_measurements(measured: Sequence[Measured]) -> Table:
    """Tabulate all measurements."""
    return Table(
        name="measurements",
        title="Everything that was measured",
        columns=(
            Column("layer"), Column("n"), Column("d"), Column("operations"),
            Column("time (ms)", ".3f"), Column("peak memory (MB)", ".3f"),
        ),
        rows=tuple(
            (*each[:4], each.seconds * 1e3, each.peak_bytes / 1e6) for each in measured
        ),
    )  # fmt: skip


def _plot(
    over_length: Sequence[Measured], over_width: Sequence[Measured], options: ComplexityOptions
) -> Plot:
    """Plot time and memory over length, time over width, and paths over length."""

    def panel(title: str, x_label: str, y_label: str, measured: Sequence[Measured], x: str,
              y: str, unit: float, marks: tuple[Mark, ...] = ()) -> Lines:  # fmt: skip
        names = dict.fromkeys(each.layer for each in measured)
        series = tuple(
            Series(name=name,
                   x=[getattr(each, x) for each in measured if each.layer == name],
                   y=[getattr(each, y) * unit for each in measured if each.layer == name])
            for name in names
        )  # fmt: skip
        return Lines(title=title, x_label=x_label, y_label=y_label, series=series, marks=marks,
                     x_scale="log", y_scale="log")  # fmt: skip

    wirings = list_wirings(options.kernel_size, options.window)
    paths = tuple(
        Series(name=wiring.name, x=_PATH_LENGTHS,
               y=[find_longest_path(wiring, length) for length in _PATH_LENGTHS])
        for wiring in wirings
    )  # fmt: skip
    mark = Mark(value=options.width, text=f"n = d = {options.width}")
    words = "length of the sentence, n (words)"
    return Plot(
        name="layers",
        title="What one layer costs",
        panels=(
            panel(f"Time over length, d = {options.width}", words, "time (ms)", over_length,
                  "length", "seconds", 1e3, (mark,)),
            panel(f"Time over width, n = {options.length}", "width, d", "time (ms)", over_width,
                  "width", "seconds", 1e3),
            panel(f"Peak memory over length, d = {options.width}", words, "peak memory (MB)",
                  over_length, "length", "peak_bytes", 1e-6),
            Lines(title="Longest path between two words", x_label=words, y_label="steps",
                  series=paths, x_scale="log", y_scale="log"),
        ),
    )  # fmt: skip


def _powers(largest: int) -> list[int]:
    """List the powers of two from the smallest size on."""
    return [
        1 << power for power in range(largest.bit_length()) if _SMALLEST <= 1 << power <= largest
    ]


def _name(index: int) -> str:
    """Name a layer as `list_layers` does, by its row of table 1."""
    return TABLE_1[index].layer.lower()
