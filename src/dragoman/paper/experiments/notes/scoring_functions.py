"""Attention scores: scaling, additive against dot product, several heads against one."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.options import option, require_least
from dragoman.paper.report.result import (
    Cell,
    Column,
    Experiment,
    HeatMap,
    Lines,
    Plot,
    Say,
    Series,
    Table,
    number,
    spread,
)

_SMALLEST_KEY_DIM, _MODEL_DIM = 2, 512


@dataclass(frozen=True, kw_only=True)
class ScoresOptions:
    """Options: the range of widths, and training of the small models."""

    max_key_dim: int = option(512, "largest width of queries and keys: 2, 8, 32, … up to it (d_k)")
    steps: int = option(250, "updates of each small model")
    seeds: int = option(3, "how many seeds each number is averaged over")
    length: int = option(256, "words of the sentence on which time and memory are measured (n)")
    repeats: int = option(5, "how often each time is taken; the shortest counts")

    def __post_init__(self) -> None:
        require_least(self, max_key_dim=8, steps=1, seeds=1, length=2, repeats=1)

    @property
    def key_dims(self) -> list[int]:
        """The widths that are tried."""
        powers = (_SMALLEST_KEY_DIM << 2 * power for power in range(16))
        return [each for each in powers if each <= self.max_key_dim]


def run(options: ScoresOptions, say: Say) -> Experiment:
    """Compare scalings, scores and numbers of heads."""
    from dragoman.paper.tasks.roles import learn_roles

    seeds = tuple(range(1, options.seeds + 1))
    say("measuring how attention spreads over random keys")
    entropy = _tabulate_entropy(options, seeds)
    accuracy = _tabulate_accuracy(options, seeds, say)
    costs = _tabulate_costs(options)
    say("training readers of one and of eight heads")
    readers = {
        heads: [learn_roles(heads, seed=seed, num_steps=2 * options.steps) for seed in seeds]
        for heads in (1, 8)
    }
    heads = _tabulate_heads(options)
    scores = {count: [each.accuracy for each in several] for count, several in readers.items()}
    looks = {count: several[0].attention for count, several in readers.items()}
    return Experiment(
        title="Scores: scaling, additive against dot product, eight heads against one",
        claim="Scores are divided by √d_k, since large ones push softmax to where its gradient "
        "vanishes; dot product is faster and smaller than additive attention; eight heads cost "
        "what one costs, and a single head's averaging inhibits what several can do.",
        findings=_find(entropy, accuracy, heads, scores, options),
        tables=(entropy, accuracy, costs, heads, _tabulate_looks(looks, scores)),
        plots=(_plot_scores(entropy, accuracy, costs), _plot_looks(looks)),
        seeds=seeds,
    )


def _find(
    entropy: Table,
    accuracy: Table,
    heads: Table,
    scores: dict[int, list[float]],
    options: ScoresOptions,
) -> tuple[str, ...]:
    """Summarise the results."""
    from dragoman.paper.experiments.notes.sharpness import NUM_KEYS

    widest = options.key_dims[-1]
    last = [number(row[3]) for row in entropy.rows if row[0] == widest]
    best = {str(row[1]): number(row[2]) for row in accuracy.rows if row[0] == widest}
    small = {str(row[1]): number(row[2]) for row in accuracy.rows if row[0] == _SMALLEST_KEY_DIM}
    told = ", ".join(f"{name} {value:.0%}" for name, value in best.items())
    told_small = ", ".join(f"{name} {value:.0%}" for name, value in small.items())
    operations = set(heads.numbers("operations"))
    return (
        f"At d_k = {widest}, attention over {NUM_KEYS} random keys has an entropy of "
        f"{last[0]:.2f} nats unscaled, {last[1]:.2f} with 1/√d_k and {last[2]:.3f} with 1/d_k, "
        f"where even attention has {math.log(NUM_KEYS):.3f}: the first sees one key, the last "
        "all alike.",
        f"After {options.steps} updates at d_k = {widest}, new questions are answered by {told}; "
        f"at d_k = {_SMALLEST_KEY_DIM}, by {told_small}.",
        "From one head to 32, the operations of a layer are "
        f"{'equal' if len(operations) == 1 else 'not equal'}; one head reads "
        f"{spread(scores[1])[0]:.0%} of the roles rightly, eight {spread(scores[8])[0]:.0%}.",
    )  # fmt: skip


def _tabulate_entropy(options: ScoresOptions, seeds: Sequence[int]) -> Table:
    """Tabulate the entropy of attention by width and scaling."""
    from dragoman.paper.experiments.notes.sharpness import NUM_KEYS, SCALES, measure_sharpness

    rows = []
    for key_dim in options.key_dims:
        measured = [measure_sharpness(key_dim, seed) for seed in seeds]
        for scale in SCALES:
            found = [each[scale] for each in measured]
            mean, deviation = spread([each.entropy for each in found])
            rows.append((
                key_dim, scale, spread([each.variance for each in found])[0], mean, deviation,
                spread([each.largest for each in found])[0],
                spread([each.gradient for each in found])[0],
            ))  # fmt: skip
    return Table(
        name="entropy",
        title=f"Attention of random queries over {NUM_KEYS} random keys",
        columns=(
            Column("d_k"), Column("scores times"), Column("variance of the scores"),
            Column("entropy (nats)", ".3f"), Column("±", ".3f"),
            Column("largest weight", ".3f"), Column("norm of softmax's derivative", ".4f"),
        ),
        rows=tuple(rows),
        notes=(
            f"Even attention has an entropy of ln {NUM_KEYS} = {math.log(NUM_KEYS):.4f}. The "
            "variance of q·k is d_k; divided by √d_k it is 1.",
            "X1: one of the notes (000:97) says “dividing by d_k makes [the] algorithm easier to "
            "train”; the formula below it has √d_k. 1/d_k flattens attention until it hardly "
            "chooses, as another (002:127) suspects.",
            "X13: one of the notes (001:74) leaves the scaling out of A(q, K, V), and has it "
            "later. X21: scaling is all that divides it from Luong's dot product, not from his "
            "“general”, which has a matrix between.",
        ),
    )  # fmt: skip


def _tabulate_accuracy(options: ScoresOptions, seeds: Sequence[int], say: Say) -> Table:
    """Tabulate the accuracy of small models that learn to match keys."""
    from dragoman.paper.tasks.matching import NUM_PAIRS, NUM_SYMBOLS, SCORES, learn_to_match

    rows = []
    for key_dim in options.key_dims:
        say(f"learning to match keys with d_k = {key_dim}")
        for score in SCORES:
            shares = [learn_to_match(score, key_dim, seed=seed, num_steps=options.steps)
                      for seed in seeds]  # fmt: skip
            rows.append((key_dim, score, *spread(shares), len(shares)))
    return Table(
        name="accuracy",
        title=f"Finding the key that matches: right answers after {options.steps} updates",
        columns=(
            Column("d_k"), Column("score"), Column("right answers", ".1%"), Column("±", ".1%"),
            Column("seeds"),
        ),
        rows=tuple(rows),
        notes=(
            f"{NUM_PAIRS} pairs of key and value, a query for one of the keys; {NUM_SYMBOLS} "
            "symbols; the space in which additive attention compares is d_k wide too.",
            "X7: one of the notes (002:37) says additive attention is better “for the small "
            "values of d_k”. The paper says: similar for small d_k, better than dot product "
            "without scaling for large.",
        ),
    )  # fmt: skip


def _tabulate_costs(options: ScoresOptions) -> Table:
    """Tabulate time and memory of the two kinds of scores."""
    import torch

    from dragoman.models.attention.additive_attention import AdditiveAttention
    from dragoman.models.attention.mask import Mask
    from dragoman.models.attention.scaled_dot_product_attention import attention_weights
    from dragoman.paper.experiments.tables.layers import Unchanged
    from dragoman.paper.experiments.tables.measuring import measure_peak_bytes, measure_seconds

    rows: list[tuple[Cell, ...]] = []
    for key_dim in options.key_dims:
        words = torch.randn(1, options.length, key_dim)
        additive = AdditiveAttention(key_dim, key_dim, key_dim)
        # Only the scores are measured, as for the dot product.
        setattr(additive, "query", Unchanged(key_dim))  # noqa: B010

        def dot(words: torch.Tensor = words) -> object:
            return attention_weights(words.unsqueeze(1), words.unsqueeze(1), Mask())

        def add(words: torch.Tensor = words, score: AdditiveAttention = additive) -> object:
            return score(words, words, words[..., :1], Mask())

        figures: list[float] = []
        with torch.no_grad():
            for compute in (dot, add):
                figures.append(measure_seconds(compute, repeats=options.repeats) * 1e3)
                figures.append(measure_peak_bytes(compute, torch.device("cpu")) / 1e6)
        dot_time, dot_memory, add_time, add_memory = figures
        rows.append((key_dim, dot_time, add_time, add_time / dot_time, dot_memory, add_memory,
                     add_memory / dot_memory))  # fmt: skip
    return Table(
        name="costs",
        title=f"Comparing {options.length} queries with {options.length} keys",
        columns=(
            Column("d_k"), Column("dot product (ms)", ".3f"), Column("additive (ms)", ".3f"),
            Column("times slower", ".1f"), Column("dot product (MB)", ".2f"),
            Column("additive (MB)", ".2f"), Column("times larger", ".1f"),
        ),
        rows=tuple(rows),
        notes=("Weights alone, without projections. Additive attention has a vector of d_k "
               "numbers inside its tanh for every pair of query and key.",),
    )  # fmt: skip


def _tabulate_heads(options: ScoresOptions) -> Table:
    """Tabulate the cost of a layer with one head and with several."""
    import torch

    from dragoman.models.attention.mask import Mask
    from dragoman.models.attention.multihead_attention import MultiheadAttention
    from dragoman.models.build import count_parameters
    from dragoman.paper.experiments.tables.measuring import count_operations, measure_seconds

    rows = []
    words = torch.randn(1, options.length, _MODEL_DIM)
    for num_heads in (1, 2, 4, 8, 16, 32):
        width = _MODEL_DIM // num_heads
        layer = MultiheadAttention(
            _MODEL_DIM, num_heads, key_dim=width, value_dim=width, bias=False
        )

        def attend(words: torch.Tensor, layer: MultiheadAttention = layer) -> torch.Tensor:
            return layer(words, layer.keys_and_values(words), Mask())

        with torch.no_grad():
            seconds = measure_seconds(lambda: attend(words), repeats=options.repeats)
            layer.to("meta")
            operations = count_operations(lambda: attend(words.to("meta")))
        rows.append((num_heads, width, count_parameters(layer), operations, seconds * 1e3))
    return Table(
        name="heads",
        title=f"A layer of width {_MODEL_DIM} on {options.length} words",
        columns=(
            Column("heads"), Column("d_k = d_v"), Column("parameters"), Column("operations"),
            Column("time (ms)", ".2f"),
        ),
        rows=tuple(rows),
        notes=(
            "X2: one of the notes (000:116) puts a non-linearity after the concatenation; W^O is "
            "linear. X3: another line of it gives values the dimension d; it is d_v. X8: a third "
            "note (002:39) lets heads keep the model's width; it is divided among them. X14: a "
            "fourth (001:205) projects twice, which is one projection by their product.",
        ),
    )  # fmt: skip


def _tabulate_looks(looks: dict[int, list[list[float]]], scores: dict[int, list[float]]) -> Table:
    """Tabulate what each head of the first seed's readers attends to."""
    from dragoman.paper.tasks.roles import ROLES

    rows = tuple(
        (f"{count} head{'s' if count > 1 else ''}", index + 1, *shares, *spread(scores[count]))
        for count, heads in looks.items()
        for index, shares in enumerate(heads)
    )
    return Table(
        name="looks",
        title="Who, what, when: where each head of a trained layer looks",
        columns=(
            Column("layer"), Column("head"), *(Column(f"on “{role}”", ".2f") for role in ROLES),
            Column("on other words", ".2f"), Column("right answers of the layer", ".1%"),
            Column("±", ".1%"),
        ),
        rows=rows,
        notes=(
            "Mean weights of the first seed's model on new sentences; right answers of all seeds. "
            "The questions are those of one of the notes (001:194): what, when, who.",
        ),
    )  # fmt: skip


def _plot_scores(entropy: Table, accuracy: Table, costs: Table) -> Plot:
    """Plot entropy, accuracy, time and memory over d_k."""
    from dragoman.paper.experiments.notes.sharpness import NUM_KEYS

    def lines(table: Table, value: int, prefix: str = "") -> tuple[Series, ...]:
        return tuple(
            Series(name=f"{prefix}{name}",
                   x=[number(row[0]) for row in table.rows if row[1] == name],
                   y=[number(row[value]) for row in table.rows if row[1] == name],
                   deviation=[number(row[value + 1] or 0) for row in table.rows if row[1] == name])
            for name in dict.fromkeys(table.column(table.columns[1].heading))
        )  # fmt: skip

    dims = costs.numbers("d_k")
    width = "width of queries and keys, d_k"
    return Plot(
        name="scores",
        title="Scaling and scoring over the width of queries and keys",
        panels=(
            Lines(title=f"Entropy over {NUM_KEYS} random keys", x_label=width,
                  y_label="entropy (nats)", series=lines(entropy, 3, "scores × "), x_scale="log"),
            Lines(title="Finding the key that matches", x_label=width,
                  y_label="share of right answers", series=lines(accuracy, 2), x_scale="log",
                  y_limits=(0, 1.03)),
            *(Lines(title=title, x_label=width, y_label=f"{what} ({unit})", x_scale="log",
                    y_scale="log",
                    series=tuple(Series(name=name, x=dims, y=costs.numbers(f"{name} ({unit})"))
                                 for name in ("dot product", "additive")))
              for title, what, unit in (("Time of comparing", "time", "ms"),
                                        ("Peak memory of comparing", "peak memory", "MB"))),
        ),
    )  # fmt: skip


def _plot_looks(looks: dict[int, list[list[float]]]) -> Plot:
    """Plot what the heads attend to."""
    from dragoman.paper.tasks.roles import ROLES

    names = [f"{index + 1} of {count}" for count, heads in looks.items()
             for index in range(len(heads))]  # fmt: skip
    panel = HeatMap(
        title="", x_label="the word's role", y_label="head", value_label="mean weight",
        values=[shares for heads in looks.values() for shares in heads],
        x_names=(*ROLES, "others"), y_names=tuple(names), largest=1.0,
    )  # fmt: skip
    return Plot(
        name="looks", title="A single head averages, several share the work", panels=(panel,)
    )
