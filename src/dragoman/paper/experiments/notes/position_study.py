"""Position schemes: sinusoids as a picture, criteria of the notes, offsets as linear maps.

The paper adds PE(pos, 2i) = sin(pos/10000^(2i/d)) and PE(pos, 2i+1) = cos(pos/10000^(2i/d)) to the
words, since for any fixed offset k, PE(pos + k) is a linear function of PE(pos): a rotation of each
pair of sine and cosine. One of the notes gives four criteria for such a scheme and rejects two
simpler ones by them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.options import option, require, require_least
from dragoman.paper.report.result import (
    Column,
    Experiment,
    HeatMap,
    Lines,
    Plot,
    Say,
    Series,
    Table,
    show,
)

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.models.layers.embedding import Positions

_OFFSETS = (1, 2, 10, 100, 1000)
_SHOWN_POSITIONS, _SHOWN_DISTANCES, _SHOWN_MAP = 100, 100, 12
_STARTS = (0, 50, 1000)


@dataclass(frozen=True, kw_only=True)
class PositionsOptions:
    """Options: the width and the range of positions."""

    model_dim: int = option(512, "width of the position vectors (d_model)")
    max_positions: int = option(1024, "rows of the learned table that is judged")
    longest: int = option(10_000, "longest sentence that a scheme must go on to")
    last_position: int = option(4000, "offset maps are tried at every position up to this")

    def __post_init__(self) -> None:
        width = self.model_dim
        require(width >= 16 and width % 2 == 0, "--model-dim", width, "give an even number ≥ 16")
        require_least(self, max_positions=128, longest=129, last_position=1)


def list_schemes(model_dim: int, max_positions: int) -> dict[str, "Positions"]:
    """List the schemes as functions from positions to vectors.

    Returns
    -------
    dict[str, Positions]
        By name. A scheme that turns queries and keys is shown by what it makes of a vector of
        ones; one that adds to scores, by what each of 8 heads adds between a word and another so
        many places before it.
    """
    import torch
    from torch import nn

    from dragoman.models.attention.score_bias import AlibiBias, RelativeBias, RotaryPositions
    from dragoman.models.positions.positional_encoding import (
        IndexPositions,
        LearnedPositions,
        NormalisedPositions,
        SinusoidalPositions,
    )

    torch.manual_seed(1)
    learned = LearnedPositions(max_positions, model_dim)
    nn.init.normal_(learned.weight, std=model_dim**-0.5)
    rotary, alibi, relative = RotaryPositions(64), AlibiBias(8), RelativeBias(8, 64, 32)

    def nothing(first: int, count: int, lengths: "Tensor | None") -> "Tensor":
        del first, lengths
        return torch.zeros(count, model_dim)

    def turned(first: int, count: int, lengths: "Tensor | None") -> "Tensor":
        del lengths
        return rotary(torch.ones(1, 1, count, 64), first)[0, 0]

    def added(bias: "Callable[[Tensor, int], Tensor]") -> "Positions":
        def by_distance(first: int, count: int, lengths: "Tensor | None") -> "Tensor":
            del lengths
            found = bias(torch.ones(1, 8, 1, 64), first + count)[0, :, 0]
            return found.flip(-1).T[first:]

        return by_distance

    return {
        "sinusoidal": SinusoidalPositions(model_dim),
        "learned": learned,
        "normalised to [0, 1]": NormalisedPositions(model_dim),
        "plain index": IndexPositions(model_dim),
        "none": nothing,
        "rotary": turned,
        "ALiBi": added(alibi),
        "relative": added(relative),
    }


def measure_offset_error(offset: int, model_dim: int, last_position: int) -> float:
    """Measure the error of the linear map of an offset over all positions.

    Returns
    -------
    float
        The largest error of any entry of M_k PE(pos) − PE(pos + k), in double precision.
    """
    import torch

    from dragoman.models.positions.positional_encoding import offset_map, sinusoidal_positions

    here = sinusoidal_positions(0, last_position + 1, model_dim, dtype=torch.float64)
    there = sinusoidal_positions(offset, last_position + 1, model_dim, dtype=torch.float64)
    return (here @ offset_map(offset, model_dim).T - there).abs().max().item()


def run(options: PositionsOptions, say: Say) -> Experiment:
    """Test every scheme against the criteria, and sinusoids against the paper's claim."""
    say("judging every scheme by the four criteria")
    verdicts = _tabulate_verdicts(options)
    say("moving positions by maps")
    offsets = _tabulate_offsets(options)
    waves = _tabulate_wavelengths(options.model_dim)
    passed = [str(row[0]) for row in verdicts.rows if all(row[2:6])]
    return Experiment(
        title="Positions: sinusoids and their rivals",
        claim="For any fixed offset k, PE(pos + k) is a linear function of PE(pos). A scheme "
        "should be unique, consistent across lengths, bounded as it goes on, and deterministic.",
        findings=(
            f"All four criteria are met by: {', '.join(passed)}.",
            f"The map M_k of an offset moves every position up to {options.last_position:,} with "
            f"an error of at most {show(max(offsets.numbers('largest error')), '.0e')}; it does "
            "not depend on the position.",
            f"The longest wavelength at d = {options.model_dim} is "
            f"{waves.numbers('wavelength (positions)')[-1]:,.0f} positions; the paper's text says "
            f"10000·2π = {20_000 * math.pi:,.0f}, which the formula reaches only for very wide "
            "vectors.",
        ),
        tables=(verdicts, offsets, waves, _tabulate_products(options.model_dim)),
        plots=(_plot_vectors(options.model_dim), _plot_properties(options.model_dim)),
        seeds=(1,),
    )


def _tabulate_verdicts(options: PositionsOptions) -> Table:
    """Tabulate which criteria each scheme meets."""
    from dragoman.models.positions.position_criteria import judge

    where = {"rotary": "queries and keys", "ALiBi": "scores", "relative": "scores"}
    rows = []
    for name, scheme in list_schemes(options.model_dim, options.max_positions).items():
        verdict = judge(scheme, longest=options.longest)
        rows.append((
            name, where.get(name, "words"), verdict.is_unique, verdict.is_consistent,
            verdict.is_bounded, verdict.is_deterministic, verdict.smallest_distance,
            verdict.largest_inconsistency, verdict.largest_value, verdict.largest_value_beyond,
        ))  # fmt: skip
    return Table(
        name="criteria",
        title=f"The four criteria of one of the notes (001:269), up to {options.longest:,} words",
        columns=(
            Column("scheme"), Column("acts on"), Column("unique"), Column("consistent"),
            Column("goes on, bounded"), Column("deterministic"),
            Column("smallest distance between two places", ".2g"),
            Column("largest change of a distance with length", ".2g"),
            Column("largest value up to 128 words", ",.5g"),
            Column("largest value beyond", ",.5g"),
        ),
        rows=tuple(rows),
        notes=(
            "As the note says, values in [0, 1] fail the second criterion and plain numbers the "
            "third. An empty last cell: the scheme ended.",
            "X16: one of the notes (000:216) calls Transformers “fixed length”; of these only the "
            "learned table ends. That a model works beyond the lengths of its training is "
            "another question, which “dragoman paper length” asks.",
            "Of rotary positions a turned vector of ones is judged; of ALiBi and relative "
            "positions what 8 heads add to the score of a word so many places away. Relative "
            "positions stop telling places apart at a distance of 32.",
        ),
    )  # fmt: skip


def _tabulate_offsets(options: PositionsOptions) -> Table:
    """Tabulate the errors of the maps of some offsets."""
    import torch

    from dragoman.models.positions.positional_encoding import offset_map

    rows = []
    for offset in _OFFSETS:
        moved = offset_map(offset, options.model_dim)
        identity = torch.eye(options.model_dim, dtype=torch.float64)
        repeated = torch.linalg.matrix_power(offset_map(1, options.model_dim), offset)
        rows.append((
            offset, measure_offset_error(offset, options.model_dim, options.last_position),
            (moved @ moved.T - identity).abs().max().item(), (repeated - moved).abs().max().item(),
        ))  # fmt: skip
    return Table(
        name="offsets",
        title=f"Offset maps M_k, d = {options.model_dim}: PE(pos + k) = M_k PE(pos) for all "
        f"positions up to {options.last_position:,}",
        columns=(
            Column("offset k"), Column("largest error", ".1e"),
            Column("from a rotation (M Mᵀ − 1)", ".1e"), Column("from M₁ taken k times", ".1e"),
        ),
        rows=tuple(rows),
        notes=("M_k turns each pair of sine and cosine by ω·k: [[cos, sin], [−sin, cos]].",),
    )  # fmt: skip


def _tabulate_wavelengths(model_dim: int) -> Table:
    """List the wavelengths of some pairs of sine and cosine."""
    pairs = sorted({0, 1, *(round(share * (model_dim // 2 - 1)) for share in (0.25, 0.5, 0.75, 1))})
    return Table(
        name="wavelengths",
        title=f"Wavelengths at d = {model_dim}",
        columns=(Column("pair i"), Column("dimensions"), Column("wavelength (positions)", ",.1f")),
        rows=tuple(
            (pair, f"{2 * pair}, {2 * pair + 1}", _wavelength(pair, model_dim)) for pair in pairs
        ),
        notes=(
            "2π·10000^(2i/d): a geometric progression from 2π. tensor2tensor's variant, which "
            "lays all sines before all cosines, ends at 10000·2π exactly.",
        ),
    )


def _tabulate_products(model_dim: int) -> Table:
    """Tabulate dot products of positions, which depend on their distance only."""
    distances = (0, 1, 2, 5, 10, 20, 50, 100, 1000)
    products = {start: _products(start, distances, model_dim) for start in _STARTS}
    rows = tuple(
        (distance, *(products[start][index] for start in _STARTS),
         max(products[start][index] for start in _STARTS)
         - min(products[start][index] for start in _STARTS))
        for index, distance in enumerate(distances)
    )  # fmt: skip
    return Table(
        name="products",
        title="PE(pos)·PE(pos + k), which tells the distance k and not the place",
        columns=(
            Column("distance k"),
            *(Column(f"pos = {start:,}", ".4f") for start in _STARTS),
            Column("largest difference", ".1e"),
        ),
        rows=rows,
        notes=(f"At distance 0 it is d/2 = {model_dim // 2}: all position vectors are as long.",),
    )


def _plot_vectors(model_dim: int) -> Plot:
    """Plot the sinusoids as the notes do."""
    from dragoman.models.positions.positional_encoding import sinusoidal_positions

    vectors = sinusoidal_positions(0, _SHOWN_POSITIONS, model_dim)
    panels = tuple(
        HeatMap(title=title, x_label="pair of dimensions, i", y_label="position",
                value_label="value", is_signed=True, values=vectors[:, first::2].tolist())
        for title, first in (("Sines: PE(pos, 2i)", 0), ("Cosines: PE(pos, 2i + 1)", 1))
    )  # fmt: skip
    title = f"The paper's position vectors, d = {model_dim}"
    return Plot(name="heat-map", title=title, panels=panels)


def _plot_properties(model_dim: int) -> Plot:
    """Plot products, wavelengths and maps."""
    from dragoman.models.positions.positional_encoding import offset_map

    distances = tuple(range(_SHOWN_DISTANCES + 1))
    pairs = list(range(model_dim // 2))
    styles = zip(_STARTS, ("line", "dashes", "dots"), strict=True)
    return Plot(
        name="properties",
        title=f"What position vectors tell, d = {model_dim}",
        panels=(
            Lines(
                title="The product of two positions tells their distance",
                x_label="distance k (positions)", y_label="PE(pos)·PE(pos + k)",
                series=tuple(
                    Series(name=f"pos = {start:,}", x=distances, style=style,  # type: ignore[arg-type]
                           y=_products(start, distances, model_dim))
                    for start, style in styles
                ),
            ),
            Lines(
                title="Wavelengths", x_label="pair of dimensions, i",
                y_label="wavelength (positions)", y_scale="log",
                series=(Series(name="2π·10000^(2i/d)", x=pairs,
                               y=[_wavelength(pair, model_dim) for pair in pairs]),),
            ),
            *(HeatMap(title=f"Offset map of k = {offset}, first {_SHOWN_MAP} dimensions",
                      x_label="from dimension", y_label="to dimension", value_label="entry",
                      is_signed=True, largest=1.0,
                      values=offset_map(offset, model_dim)[:_SHOWN_MAP, :_SHOWN_MAP].tolist())
              for offset in (1, 10)),
        ),
    )  # fmt: skip


def _products(start: int, distances: tuple[int, ...], model_dim: int) -> list[float]:
    """Compute the dot products of a position with others at some distances."""
    import torch

    from dragoman.models.positions.positional_encoding import sinusoidal_positions

    vectors = sinusoidal_positions(start, max(distances) + 1, model_dim, dtype=torch.float64)
    return (vectors[list(distances)] @ vectors[0]).tolist()


def _wavelength(pair: int, model_dim: int) -> float:
    return 2 * math.pi * 10_000 ** (2 * pair / model_dim)
