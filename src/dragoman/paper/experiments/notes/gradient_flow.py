"""Gradient norm by distance: vanishing and exploding gradients, and attention."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dragoman.options import option, require_least
from dragoman.paper.report.result import (
    Cell,
    Column,
    Experiment,
    Lines,
    Plot,
    Say,
    Series,
    Table,
    show,
    spread,
)

if TYPE_CHECKING:
    from dragoman.paper.tasks.name_recall import ReaderKind

_SHORTEST = 5
_RADII = (0.5, 0.9, 1.0, 1.1, 1.5, 2.0)
_STATE_DISTANCES = (1, 10, 20, 30, 40, 50, 60)
_SMALL = 0.01
_FRESH, _TRAINED = "fresh", "trained"

Norms = Mapping["ReaderKind", Sequence[Sequence[float]]]
"""For each kind of reader, for each seed, the norm at each distance."""


@dataclass(frozen=True, kw_only=True)
class GradientsOptions:
    """Options: distances at which gradients are measured, and training of the readers."""

    max_distance: int = option(160, "longest distance in words: 5, 10, 20, … up to it")
    steps: int = option(300, "updates of each reader before its gradients are taken again; 0: none")
    limit: int = option(20, "longest distance of training")
    seeds: int = option(3, "how many seeds each number is averaged over")
    sentences: int = option(4, "sentences on which each norm is taken")

    def __post_init__(self) -> None:
        require_least(
            self, max_distance=4 * _SHORTEST, steps=0, limit=_SHORTEST + 1, seeds=1, sentences=1
        )

    @property
    def distances(self) -> tuple[int, ...]:
        """The distances at which gradients are taken."""
        doubles = (_SHORTEST << power for power in range(32))
        return tuple(each for each in doubles if each <= self.max_distance)


class Decay(NamedTuple):
    """Fitted decay or growth of norms with distance.

    Attributes
    ----------
    factor : float
        Fitted to norm ∝ factor^distance: what one more word leaves of the gradient.
    exponent : float
        Fitted to norm ∝ distance^exponent.
    is_exponential : bool
        Whether the first fits better, by the correlation of the logarithms.
    """

    factor: float
    exponent: float
    is_exponential: bool


def fit_decay(distances: Sequence[float], norms: Sequence[float]) -> Decay:
    r"""Fit both laws by least squares in the logarithm of the norm."""
    heights = [math.log(each) for each in norms]
    logarithms = [math.log(each) for each in distances]
    if max(heights) - min(heights) < 1e-12:
        return Decay(1.0, 0.0, True)
    by_distance, by_logarithm = (
        abs(statistics.correlation(each, heights)) for each in (distances, logarithms)
    )
    factor = math.exp(statistics.linear_regression(distances, heights).slope)
    exponent = statistics.linear_regression(logarithms, heights).slope
    return Decay(factor, exponent, by_distance >= by_logarithm)


def run(options: GradientsOptions, say: Say) -> Experiment:
    """Measure gradient norms over growing distance."""
    norms = _follow_readers(options, say)
    say("following the state of plain cells whose matrix shrinks or stretches")
    states = _follow_states(options)
    rates = _tabulate_rates(norms, options)
    radii = _tabulate_radii(states)
    return Experiment(
        title="Gradient norm against distance",
        claim="Information takes a long path through recurrent networks, so their gradients vanish "
        "or explode (000:51, 004:24–26); with attention every word is one step away (004:154–157).",
        findings=_find(norms, rates, radii, options),
        tables=(_tabulate_norms(norms, options), rates, radii),
        plots=(_plot(norms, states, options),),
        seeds=tuple(range(1, options.seeds + 1)),
    )


def _follow_readers(options: GradientsOptions, say: Say) -> Mapping[str, Norms]:
    """Measure the gradients of all readers, untrained and trained."""
    from dragoman.paper.experiments.notes.gradient_norms import measure_gradient
    from dragoman.paper.tasks.name_recall import KINDS, Reader, make_reader, train_reader

    def follow(reader: Reader, seed: int) -> list[float]:
        return [measure_gradient(reader, distance, count=options.sentences, seed=1_000_000 + seed)
                for distance in options.distances]  # fmt: skip

    fresh: dict[ReaderKind, list[list[float]]] = {kind: [] for kind in KINDS}
    trained: dict[ReaderKind, list[list[float]]] = {kind: [] for kind in KINDS}
    for kind in KINDS:
        say(f"following the gradients of readers: {kind}")
        for seed in range(1, options.seeds + 1):
            reader = make_reader(kind, seed)
            fresh[kind].append(follow(reader, seed))
            if options.steps:
                train_reader(reader, limit=options.limit, num_steps=options.steps, seed=seed)
                trained[kind].append(follow(reader, seed))
    return {_FRESH: fresh} | ({_TRAINED: trained} if options.steps else {})


def _follow_states(options: GradientsOptions) -> dict[tuple[float, bool], list[list[float]]]:
    """Measure the gradients of states by spectral radius, with and without inputs."""
    from dragoman.paper.experiments.notes.gradient_norms import (
        make_scaled_cell,
        measure_state_gradients,
    )

    return {
        (radius, reads): [
            measure_state_gradients(
                make_scaled_cell(radius, seed), _STATE_DISTANCES, reads=reads, seed=seed
            )
            for seed in range(1, options.seeds + 1)
        ]
        for radius in _RADII
        for reads in (False, True)
    }


def _average(several: Sequence[Sequence[float]]) -> list[float]:
    """Take the geometric mean over the seeds at each distance."""
    return [math.exp(statistics.fmean(map(math.log, at))) for at in zip(*several, strict=True)]


def _find(
    norms: Mapping[str, Norms], rates: Table, radii: Table, options: GradientsOptions
) -> tuple[str, ...]:
    """Summarise the results."""
    factors = dict(zip(zip(rates.column("weights"), rates.column("reader"), strict=True),
                       rates.numbers("factor per word"), strict=True))  # fmt: skip
    exponents = dict(zip(zip(rates.column("weights"), rates.column("reader"), strict=True),
                         rates.numbers("∝ distance^"), strict=True))  # fmt: skip
    first, last = options.distances[0], options.distances[-1]

    def left(weights: str, kind: "ReaderKind") -> str:
        averaged = _average(norms[weights][kind])
        share = averaged[-1] / averaged[0]
        return show(share, ".0%" if share > _SMALL else ".1e")

    found = [
        f"With fresh weights every further word leaves {factors[_FRESH, 'RNN']:.3f} of the "
        f"gradient of the plain RNN, {factors[_FRESH, 'GRU']:.3f} of the GRU's and "
        f"{factors[_FRESH, 'LSTM']:.3f} of the LSTM's: from {first} to {last} words "
        f"{left(_FRESH, 'RNN')}, {left(_FRESH, 'GRU')} and {left(_FRESH, 'LSTM')} remain.",
        "The Transformer's falls not by a factor a word but like distance^"
        f"{show(exponents[_FRESH, 'Transformer'], '.2f')}, as it still looks at all "
        f"words alike: {left(_FRESH, 'Transformer')} remain.",
    ]
    if _TRAINED in norms:
        found.append(
            f"After {options.steps} updates the Transformer has learnt where to look, and "
            f"{left(_TRAINED, 'Transformer')} of its gradient remain at {last} words; of the plain "
            f"RNN's {left(_TRAINED, 'RNN')}. An LSTM's may vanish although it recalls: what its "
            "gates hold fast does not change with the name's vector a little."
        )
    silent = dict(zip(radii.column("spectral radius"), radii.column("factor, silent"), strict=True))
    reading = dict(
        zip(radii.column("spectral radius"), radii.column("factor, reading"), strict=True)
    )
    found.append(
        f"A recurrent matrix of spectral radius {_RADII[-1]:g} multiplies gradients by "
        f"{silent[_RADII[-1]]:.3f} a word where tanh is steepest, and still by "
        f"{reading[_RADII[-1]]:.3f} while it reads: they explode. At radius 1 they stay only in a "
        f"silent cell; while it reads, tanh leaves {reading[1.0]:.3f} a word."
    )
    return tuple(found)


def _tabulate_norms(norms: Mapping[str, Norms], options: GradientsOptions) -> Table:
    """Tabulate norms by distance."""
    kinds = list(norms[_FRESH])
    rows: list[tuple[Cell, ...]] = []
    for weights, of_kinds in norms.items():
        averaged = [_average(of_kinds[kind]) for kind in kinds]
        for index, distance in enumerate(options.distances):
            rows.append((weights, distance, *(each[index] for each in averaged)))
    return Table(
        name="norms",
        title="Norm of the gradient of what is said at the blank, with respect to the name",
        columns=(
            Column("weights"), Column("distance (words)"),
            *(Column(kind, ".2e") for kind in kinds),
        ),
        rows=tuple(rows),
        notes=(
            f"Geometric mean of {options.seeds} seeds and {options.sentences} sentences each. The "
            "readers are those of “dragoman paper recall”: recurrent matrices begin orthogonal, "
            f"the LSTM's forget gate open. Trained on distances up to {options.limit} words.",
        ),
    )  # fmt: skip


def _tabulate_rates(norms: Mapping[str, Norms], options: GradientsOptions) -> Table:
    """Fit both laws to each reader."""
    rows: list[tuple[Cell, ...]] = []
    for weights, of_kinds in norms.items():
        for kind, several in of_kinds.items():
            decays = [fit_decay(options.distances, each) for each in several]
            factor = spread([each.factor for each in decays])
            exponent = spread([each.exponent for each in decays])
            half = math.log(0.5) / math.log(factor[0]) if factor[0] < 1 else None
            num_exponential = sum(each.is_exponential for each in decays)
            law = "exponential" if 2 * num_exponential > len(decays) else "power"
            averaged = _average(several)
            rows.append((
                weights, kind, *factor, half, *exponent, law, averaged[-1] / averaged[0]
            ))  # fmt: skip
    return Table(
        name="rates",
        title=f"How gradients fall from {options.distances[0]} to {options.distances[-1]} words",
        columns=(
            Column("weights"), Column("reader"), Column("factor per word", ".4f"),
            Column("± factor", ".4f"), Column("half is left after (words)", ",.1f"),
            Column("∝ distance^", ".2f"), Column("± exponent", ".2f"), Column("fits better"),
            Column("left at the longest", ".1e"),
        ),
        rows=tuple(rows),
        notes=(
            "Two laws are fitted in logarithms: norm ∝ factor^distance, as of a chain of so many "
            "products, and norm ∝ distance^exponent, as of an average over so many words.",
        ),
    )  # fmt: skip


def _tabulate_radii(states: Mapping[tuple[float, bool], Sequence[Sequence[float]]]) -> Table:
    """Tabulate the effect of the spectral radius on the gradient of the state."""
    rows: list[tuple[Cell, ...]] = []
    for radius in _RADII:
        cells: list[Cell] = [radius]
        for reads in (False, True):
            several = states[radius, reads]
            factors = [fit_decay(_STATE_DISTANCES, each).factor for each in several]
            cells += [*spread(factors), _average(several)[-1]]
        rows.append(tuple(cells))
    far = _STATE_DISTANCES[-1]
    return Table(
        name="radii",
        title="Gradient of a plain RNN's state with respect to an earlier one",
        columns=(
            Column("spectral radius", ".1f"), Column("factor, silent", ".4f"),
            Column("± silent", ".4f"), Column(f"norm after {far} words, silent", ".1e"),
            Column("factor, reading", ".4f"), Column("± reading", ".4f"),
            Column(f"norm after {far} words, reading", ".1e"),
        ),
        rows=tuple(rows),
        notes=(
            "The largest singular value of ∂h_T/∂h_t. The recurrent matrix is the radius times an "
            "orthogonal one. Silent: state and input are zero, tanh has slope 1, and the gradient "
            "is the matrix's power. Reading: random words, where tanh is flatter; beyond 1 the "
            "states become chaotic and gradients grow more slowly than the radius says.",
        ),
    )  # fmt: skip


def _plot(
    norms: Mapping[str, Norms],
    states: Mapping[tuple[float, bool], Sequence[Sequence[float]]],
    options: GradientsOptions,
) -> Plot:
    """Plot norms over distance on a logarithmic scale."""
    titles = {_FRESH: "Readers with fresh weights", _TRAINED: "The same readers, trained"}
    readers = tuple(
        Lines(
            title=titles[weights], x_label="words between the name and the blank",
            y_label="norm of the gradient", y_scale="log",
            series=tuple(
                Series(name=kind, x=options.distances, y=_average(several))
                for kind, several in of_kinds.items()
            ),
        )
        for weights, of_kinds in norms.items()
    )  # fmt: skip
    cells = tuple(
        Lines(
            title=title, x_label="words between two states", y_label="norm of the gradient",
            y_scale="log",
            series=tuple(
                Series(name=f"radius {radius:g}", x=_STATE_DISTANCES,
                       y=_average(states[radius, reads]))
                for radius in _RADII
            ),
        )
        for title, reads in (("A plain RNN's state, silent", False), ("The same, reading", True))
    )  # fmt: skip
    return Plot(name="norms", title="Gradient norm against distance", panels=(*readers, *cells))
