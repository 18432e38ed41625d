"""Word order in a Transformer: with and without positions, with and without residuals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args, get_type_hints

from dragoman.models.options import TransformerOptions
from dragoman.options import option, require, require_least
from dragoman.paper.report.result import (
    Bar,
    Bars,
    Cell,
    Column,
    Experiment,
    HeatMap,
    Plot,
    Say,
    Table,
    show,
    spread,
)

_SCHEMES: tuple[str, ...] = get_args(get_type_hints(TransformerOptions)["positions"])
_PAPERS, _NONE = "sinusoidal", "none"
# Rounding errors are far below, real effects of order far above.
_INVISIBLE = 1e-4
_WITH, _WITHOUT = "with residuals", "without residuals"
_DECODER_LAYERS = (1, 2, 4)


@dataclass(frozen=True, kw_only=True)
class OrderOptions:
    """Options: the models, and the probing of word order."""

    num_layers: int = option(4, "layers of the encoder, and of the decoder")
    model_dim: int = option(64, "width of the residual stream, which four heads share")
    sentences: int = option(300, "sentences that the probe learns from; half as many test it")
    steps: int = option(200, "updates of the models that are also probed when trained; 0: none")
    seeds: int = option(3, "how many seeds each number is averaged over")

    def __post_init__(self) -> None:
        require_least(self, num_layers=1, model_dim=8, sentences=2, steps=0, seeds=1)
        # Rotary positions rotate pairs of entries, in each of four heads.
        require(self.model_dim % 8 == 0, "--model-dim", self.model_dim, "give a multiple of 8")


class ProbeResult(NamedTuple):
    """Probing results of one kind of model: R² of positions by layer.

    Attributes
    ----------
    scheme : str
        The position scheme.
    is_trained : bool
        Whether the model is trained.
    has_residuals : bool
        Whether its encoder has residual connections.
    scores : tuple[tuple[float, ...], ...]
        For each seed R² after the embedding and after each layer.
    """

    scheme: str
    is_trained: bool
    has_residuals: bool
    scores: tuple[tuple[float, ...], ...]

    @property
    def name(self) -> str:
        """The label of the model."""
        return f"{self.scheme}, trained" if self.is_trained else self.scheme

    @property
    def means(self) -> list[float]:
        """R² by layer, averaged over the seeds."""
        return [spread(at)[0] for at in zip(*self.scores, strict=True)]


def probe(
    scheme: str, options: OrderOptions, *, is_trained: bool, has_residuals: bool
) -> ProbeResult:
    """Probe models of one kind for positions."""
    from dragoman.paper.experiments.notes.word_order import (
        build_transformer,
        probe_positions,
        train_to_reverse,
    )

    scores = []
    for seed in range(1, options.seeds + 1):
        model = build_transformer(
            scheme, num_layers=options.num_layers, model_dim=options.model_dim, seed=seed,
            has_residuals=has_residuals,
        )  # fmt: skip
        if is_trained:
            train_to_reverse(model, num_steps=options.steps, seed=seed)
        scores.append(tuple(probe_positions(
            model, num_train=options.sentences, num_test=options.sentences // 2, seed=seed
        )))  # fmt: skip
    return ProbeResult(scheme, is_trained, has_residuals, tuple(scores))


def run(options: OrderOptions, say: Say) -> Experiment:
    """Measure what models know of word order."""
    seeds = range(1, options.seeds + 1)
    say("putting words in another order")
    disorder = _tabulate_disorder(options, seeds)
    prefixes = _tabulate_prefixes(options, seeds)
    say("reading positions back from every layer")
    probed = [probe(scheme, options, is_trained=False, has_residuals=has_residuals)
              for scheme in _SCHEMES for has_residuals in (True, False)]  # fmt: skip
    for has_residuals in (True, False) if options.steps else ():
        say(f"training models {_WITH if has_residuals else _WITHOUT}, and reading them as well")
        probed.append(probe(_PAPERS, options, is_trained=True, has_residuals=has_residuals))
    probed.sort(key=lambda each: (_SCHEMES.index(each.scheme), each.is_trained))
    return Experiment(
        title="Word order: a very advanced bag of words",
        claim="A weighted average of words loses all positions; effectively it is “a very advanced "
        "bag of words” (004:82–83), unless positions are told. Residual connections pass them on "
        "through the layers (001:334).",
        findings=_find(disorder, prefixes, probed),
        tables=(disorder, prefixes, _tabulate_probes(probed, options)),
        plots=(_plot(disorder, probed, options),),
        seeds=tuple(seeds),
    )


def _find(disorder: Table, prefixes: Table, probed: Sequence[ProbeResult]) -> tuple[str, ...]:
    """Summarise the results."""
    changes = dict(zip(disorder.column("positions"), disorder.numbers("encoder: largest change"),
                       strict=True))  # fmt: skip
    by_kind = {(each.scheme, each.is_trained, each.has_residuals): each.means for each in probed}
    kept, lost = by_kind[_PAPERS, False, True], by_kind[_PAPERS, False, False]
    shallow, *_, deep = prefixes.numbers("largest change")
    found = [
        f"Positions “{_NONE}”: exchanging the source's words exchanges what the encoder says of "
        f"them, to {show(changes[_NONE], '.1e')}, and leaves a translation's probability as it "
        "was. With any other scheme the encoder's change is at least "
        f"{min(change for scheme, change in changes.items() if scheme != _NONE):.2f}.",
        "The decoder sees some order without being told: its mask lets each word see only those "
        "before. With one layer the words before the newest are a bag "
        f"({show(shallow, '.1e')}), with {_DECODER_LAYERS[-1]} layers they are not ({deep:.2f}).",
        f"Sinusoids can be read off the embedding with R² = {kept[0]:.2f}; after {len(kept) - 1} "
        f"layers with {kept[-1]:.2f} if there are residuals, with {lost[-1]:.2f} without.",
    ]
    if (_PAPERS, True, True) in by_kind:
        found.append(
            "In trained models R² after the last layer is "
            f"{by_kind[_PAPERS, True, True][-1]:.2f} with residuals, and "
            f"{by_kind[_PAPERS, True, False][-1]:.2f} without."
        )
    index = by_kind["index", False, True]
    found.append(
        "Plain numbers and numbers from 0 to 1 are the same in every entry of a vector, which is "
        f"what layer normalisation takes away: of “index” R² falls from {index[0]:.2f} to "
        f"{index[1]:.2f} in one layer. Rotary, ALiBi and relative positions tell distances, not "
        "places: order matters to them, though no place can be read off."
    )
    return tuple(found)


def _tabulate_disorder(options: OrderOptions, seeds: Sequence[int]) -> Table:
    """Tabulate the effect of permuting the source, for every scheme."""
    from dragoman.paper.experiments.notes.word_order import build_transformer, measure_permutation

    rows: list[tuple[Cell, ...]] = []
    for scheme in _SCHEMES:
        found = [
            measure_permutation(
                build_transformer(scheme, num_layers=options.num_layers,
                                  model_dim=options.model_dim, seed=seed),
                count=16, seed=seed,
            )
            for seed in seeds
        ]  # fmt: skip
        encoder, probability = (spread(each) for each in zip(*found, strict=True))
        sees = "yes" if encoder[0] > _INVISIBLE else "no"
        rows.append((scheme, *encoder, *probability, sees))
    return Table(
        name="disorder",
        title="The source's words in another order",
        columns=(
            Column("positions"), Column("encoder: largest change", ".1e"),
            Column("± encoder", ".1e"), Column("log-probability: largest change", ".1e"),
            Column("± log-probability", ".1e"), Column("sees the order"),
        ),
        rows=tuple(rows),
        notes=(
            "16 random sentences for each seed, fresh weights, single precision. The encoder's "
            "change is between what it says of a word in its new place and what it said of the "
            "same word before; the log-probability is that of a whole translation.",
        ),
    )  # fmt: skip


def _tabulate_prefixes(options: OrderOptions, seeds: Sequence[int]) -> Table:
    """Tabulate the effect of permuting the decoder's prefix, without positions."""
    from dragoman.paper.experiments.notes.word_order import (
        build_transformer,
        measure_prefix_permutation,
    )

    rows = []
    for num_layers in _DECODER_LAYERS:
        found = [
            measure_prefix_permutation(
                build_transformer(_NONE, num_layers=num_layers, model_dim=options.model_dim,
                                  seed=seed),
                count=16, seed=seed,
            )
            for seed in seeds
        ]  # fmt: skip
        rows.append((num_layers, *spread(found)))
    return Table(
        name="prefixes",
        title="The words before the newest in another order: the decoder, without positions",
        columns=(Column("layers"), Column("largest change", ".1e"), Column("±", ".1e")),
        rows=tuple(rows),
        notes=(
            "Of the state at the newest word. A layer averages over the words up to each; from the "
            "second layer on, what they say depends on what stood before them.",
        ),
    )


def _tabulate_probes(probed: Sequence[ProbeResult], options: OrderOptions) -> Table:
    """Tabulate the probing results."""
    rows = tuple(
        (each.scheme, "trained" if each.is_trained else "fresh",
         _WITH if each.has_residuals else _WITHOUT, *each.means,
         spread([scores[-1] for scores in each.scores])[1])
        for each in probed
    )  # fmt: skip
    layers = [Column(f"layer {index}", ".3f") for index in range(1, options.num_layers + 1)]
    return Table(
        name="probes",
        title="A word's place read off its state by linear regression: R² on new sentences",
        columns=(
            Column("positions"), Column("weights"), Column("residuals"),
            Column("embedding", ".3f"), *layers, Column("± last layer", ".3f"),
        ),
        rows=rows,
        notes=(
            f"1: exact; 0 or less: nothing. {options.sentences} random sentences of 8 to 24 words "
            f"to learn from, {options.sentences // 2} others to test; width {options.model_dim}. "
            "Without residuals a layer is LayerNorm(Sublayer(x)), with the same weights at first. "
            f"Trained: {options.steps} updates on saying random sentences from their end.",
            "Learned positions are at first small random vectors beside those of the words: there "
            "is little to read before they are learnt.",
        ),
    )  # fmt: skip


def _plot(disorder: Table, probed: Sequence[ProbeResult], options: OrderOptions) -> Plot:
    """Plot the effects of permutation, and R² by layer."""
    changes = tuple(
        Bar(name=str(scheme), group="encoder", end=change)
        for scheme, change in zip(
            disorder.column("positions"), disorder.numbers("encoder: largest change"), strict=True
        )
    )
    last = tuple(
        Bar(
            name=each.name, group=_WITH if each.has_residuals else _WITHOUT, end=each.means[-1],
            deviation=spread([scores[-1] for scores in each.scores])[1],
        )
        for each in probed
    )  # fmt: skip
    maps = []
    for title, has_residuals in ((_WITH, True), (_WITHOUT, False)):
        chosen = [each for each in probed if each.has_residuals == has_residuals]
        maps.append(
            HeatMap(
                title=f"The same in every layer, {title}", x_label="layer (0: the embedding)",
                y_label="", value_label="R² (0 for less)",
                values=[[max(0.0, mean) for mean in each.means] for each in chosen],
                x_names=tuple(str(index) for index in range(options.num_layers + 1)),
                y_names=tuple(each.name for each in chosen),
            )
        )  # fmt: skip
    return Plot(
        name="order",
        title="Word order in a Transformer",
        panels=(
            Bars(title="Another order of the source's words",
                 x_label="largest change of what the encoder says of a word", bars=changes),
            Bars(title="A word's place read off the last layer", x_label="R²", bars=last),
            *maps,
        ),
    )  # fmt: skip
