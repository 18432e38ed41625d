"""Name recall by distance: recurrent layers against attention."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dragoman.options import option, require_least
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
    spread,
)

if TYPE_CHECKING:
    from dragoman.paper.tasks.name_recall import ReaderKind

_SHORTEST = 5
_GOOD = 0.9


@dataclass(frozen=True, kw_only=True)
class RecallOptions:
    """Options: distances of the name, and training of the readers."""

    limit: int = option(20, "longest distance of training, in words between name and blank")
    max_distance: int = option(320, "longest distance of the test: the limit is doubled up to it")
    steps: int = option(600, "updates of each reader, of 64 sentences each")
    seeds: int = option(3, "how many seeds each number is averaged over")
    sentences: int = option(400, "sentences that test each distance")

    def __post_init__(self) -> None:
        require_least(
            self, limit=_SHORTEST + 1, max_distance=self.limit, steps=1, seeds=1, sentences=1
        )

    @property
    def distances(self) -> tuple[int, ...]:
        """The tested distances: two below the training limit, the limit, and its doubles."""
        middle = (_SHORTEST + self.limit) // 2
        doubles = (self.limit << power for power in range(32))
        beyond = [each for each in doubles if each <= self.max_distance]
        return tuple(dict.fromkeys((_SHORTEST, middle, *beyond)))


class RecallResult(NamedTuple):
    """Results of the readers of one kind.

    Attributes
    ----------
    num_parameters : int
        Of each.
    seconds : tuple[float, ...]
        Of training, for each seed.
    accuracies : dict[int, tuple[float, ...]]
        By distance the share of right names, for each seed.
    """

    num_parameters: int
    seconds: tuple[float, ...]
    accuracies: dict[int, tuple[float, ...]]

    def mean(self, distance: int) -> float:
        """Average the accuracy over the seeds."""
        return spread(self.accuracies[distance])[0]

    @property
    def reach(self) -> int | None:
        """The longest distance up to which accuracy is at least 0.9; None if not even the first."""
        reached = None
        for distance in self.accuracies:
            if self.mean(distance) < _GOOD:
                break
            reached = distance
        return reached


def recall_names(kind: "ReaderKind", options: RecallOptions) -> RecallResult:
    """Train readers of one kind and test them."""
    import time

    from dragoman.models.build import count_parameters
    from dragoman.paper.tasks.name_recall import make_reader, measure_recall, train_reader

    readers, seconds = [], []
    for seed in range(1, options.seeds + 1):
        reader = make_reader(kind, seed)
        began = time.monotonic()
        train_reader(reader, limit=options.limit, num_steps=options.steps, seed=seed)
        seconds.append(time.monotonic() - began)
        readers.append(reader)
    accuracies = {
        # A seed for test sentences, the same for all kinds.
        distance: tuple(
            measure_recall(reader, distance, count=options.sentences, seed=1_000_000 + seed)
            for seed, reader in enumerate(readers)
        )
        for distance in options.distances
    }
    return RecallResult(count_parameters(readers[0]), tuple(seconds), accuracies)


def run(options: RecallOptions, say: Say) -> Experiment:
    """Compare name recall over distance."""
    from dragoman.paper.tasks.name_recall import KINDS

    recalled = {}
    for kind in KINDS:
        recalled[kind] = recall_names(kind, options)
        farthest = options.distances[-1]
        say(
            f"{kind}: {recalled[kind].mean(options.limit):.0%} of the names after {options.limit} "
            f"words, {recalled[kind].mean(farthest):.0%} after {farthest}"
        )
    return Experiment(
        title="Recalling a name over growing distance",
        claim="Recurrent networks are forgetful: a name must be put into the state, carried from "
        "word to word and read out again (000:55–62). Attention looks at it directly, at whatever "
        "distance.",
        findings=_find(recalled, options),
        tables=(_tabulate_accuracy(recalled, options), _tabulate_readers(recalled, options),
                _tabulate_sentences(options)),
        plots=(_plot(recalled, options),),
        seeds=tuple(range(1, options.seeds + 1)),
    )  # fmt: skip


def _find(recalled: Mapping["ReaderKind", RecallResult], options: RecallOptions) -> tuple[str, ...]:
    """Summarise the results, whether or not they agree with the notes."""
    first, last = options.distances[0], options.distances[-1]

    def tell(distance: int, *kinds: "ReaderKind") -> str:
        return ", ".join(f"{kind} {recalled[kind].mean(distance):.0%}" for kind in kinds)

    lost = {kind: each.mean(first) - each.mean(last) for kind, each in recalled.items()}
    found = [
        f"At {options.limit} words, the longest distance of training: "
        f"{tell(options.limit, *recalled)}.",
        f"At {last} words, {last / options.limit:g} times as far as any sentence of training: "
        f"{tell(last, *recalled)}. Guessing gets {_chance():.0%}.",
        f"From {first} to {last} words are lost, of all names: "
        + ", ".join(f"{kind} {share:.1%}" for kind, share in lost.items())
        + ". The RNN with attention is the plain RNN whose last state may look back at all states.",
    ]
    if lost["Transformer"] > lost["Transformer without positions"] + 0.01:
        found.append(
            "What the Transformer loses beyond its training it loses to positions that it has "
            "never seen: without them, which this task can do without, attention is as good at "
            "any distance."
        )
    return tuple(found)


def _tabulate_accuracy(
    recalled: Mapping["ReaderKind", RecallResult], options: RecallOptions
) -> Table:
    """Tabulate accuracies, two rows for each kind of reader."""
    rows: list[tuple[Cell, ...]] = []
    for kind, each in recalled.items():
        spreads = [spread(each.accuracies[distance]) for distance in options.distances]
        rows.append((kind, "mean", *(mean for mean, _ in spreads)))
        rows.append((kind, "±", *(deviation for _, deviation in spreads)))
    return Table(
        name="accuracy",
        title="Names recalled, over the words between the name and the blank",
        columns=(
            Column("reader"), Column("figure"),
            *(Column(f"{distance} words", ".1%") for distance in options.distances),
        ),
        rows=tuple(rows),
        notes=(
            f"Mean and deviation of {options.seeds} seeds, {options.sentences} new sentences each; "
            f"guessing gets {_chance():.1%}. Trained for {options.steps} updates on distances from "
            f"{_SHORTEST} to {options.limit} words.",
        ),
    )  # fmt: skip


def _tabulate_readers(
    recalled: Mapping["ReaderKind", RecallResult], options: RecallOptions
) -> Table:
    """Tabulate the readers."""
    from dragoman.paper.tasks.name_recall import RECIPES

    rows = tuple(
        (kind, each.num_parameters, RECIPES[kind].learning_rate, spread(each.seconds)[0],
         each.reach, each.mean(options.distances[0]) - each.mean(options.distances[-1]))
        for kind, each in recalled.items()
    )  # fmt: skip
    return Table(
        name="readers",
        title="The readers",
        columns=(
            Column("reader"), Column("parameters"), Column("learning rate"),
            Column("training (s)", ".1f"), Column(f"distance with ≥ {_GOOD:.0%} right"),
            Column("lost from shortest to longest", ".1%"),
        ),
        rows=rows,
        notes=(
            "One layer each, 64 wide. Recurrent matrices begin orthogonal and the LSTM's forget "
            "gate open, which favours them; gradients are cut at a norm of 1. The RNN with "
            "attention has additive attention from its last state to all. The Transformer is one "
            "layer of the encoder with four heads and, unless said otherwise, sinusoidal "
            "positions. Of two learning rates, each kind has the one with which it recalls more.",
        ),
    )  # fmt: skip


def _tabulate_sentences(options: RecallOptions) -> Table:
    """Tabulate example sentences."""
    import torch

    from dragoman.paper.tasks.name_recall import WORDS, sample_sentences

    generator = torch.Generator().manual_seed(1)
    rows = []
    for distance in (_SHORTEST, min(12, options.limit)):
        (sentence,) = sample_sentences(1, distance, generator).tolist()
        rows.append((distance, " ".join(WORDS[word] for word in sentence), WORDS[sentence[0]]))
    return Table(
        name="sentences",
        title="Two of the sentences",
        columns=(Column("distance (words)"), Column("sentence"), Column("at the blank")),
        rows=tuple(rows),
        notes=(
            "After one of the notes (000:55): “… Professor Martin-Martin assigned us to read the "
            "… Paper. … <Additional unrelated text>. I am so happy that ____ picked this paper.”",
        ),
    )


def _plot(recalled: Mapping["ReaderKind", RecallResult], options: RecallOptions) -> Plot:
    """Plot accuracy over distance, recurrent readers beside attentive ones."""
    distances = options.distances
    # In both panels, so that they share their scales.
    chance = Series(name="guessing", x=distances, y=[_chance()] * len(distances), style="dashes")
    panels = []
    for title, attends in (("What is carried in a state", False), ("What is looked up", True)):
        series = tuple(
            Series(
                name=kind, x=distances, y=[each.mean(distance) for distance in distances],
                deviation=[spread(several)[1] or 0.0 for several in each.accuracies.values()],
            )
            for kind, each in recalled.items()
            if ("attention" in kind or "Transformer" in kind) == attends
        )  # fmt: skip
        panels.append(
            Lines(
                title=title, x_label="words between the name and the blank",
                y_label="share of names recalled", series=(*series, chance), x_scale="log",
                marks=(Mark(value=options.limit, text="trained up to here"),),
            )
        )  # fmt: skip
    title = "“I am so happy that ____ picked this paper”"
    return Plot(name="accuracy", title=title, panels=tuple(panels))


def _chance() -> float:
    from dragoman.paper.tasks.name_recall import NAMES

    return 1 / len(NAMES)
