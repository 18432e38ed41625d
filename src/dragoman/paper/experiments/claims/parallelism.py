"""Training speed of each model family by sentence length, at a constant batch size in words."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from dragoman.options import option, require
from dragoman.paper.experiments.tables.systems import SYSTEMS
from dragoman.paper.report.result import (
    Cell,
    Column,
    Experiment,
    Lines,
    Plot,
    Say,
    Series,
    Table,
    fit_exponent,
)
from dragoman.paper.training_runs.experiment_runs import check_choice, read_seeds

if TYPE_CHECKING:
    import torch

    from dragoman.data.batches import Batch
    from dragoman.training.objectives.loss import TrainingStep

_SHORTEST = 8
_PAD_ID, _EOS_ID = 2, 0
_FIRST_WORD_ID = 4


@dataclass(frozen=True, kw_only=True)
class ParallelOptions:
    """Options: the families and lengths that are measured."""

    systems: tuple[str, ...] = option(tuple(SYSTEMS), "which families")
    max_length: int = option(256, "longest sentence: lengths are the powers of two from 8")
    batch_tokens: int = option(2048, "words of every batch, source plus target")
    vocabulary_size: int = option(2048, "subwords")
    repeats: int = option(3, "how often each time is taken, after one that does not count")
    seeds: tuple[str, ...] = option(("1",), "the first is the seed of weights and words")
    device: Literal["auto", "cpu", "cuda", "mps"] = option("auto", "where to measure")

    def __post_init__(self) -> None:
        check_choice("--systems", self.systems, tuple(SYSTEMS))
        read_seeds(self.seeds)
        longest = self.max_length
        require(longest >= 2 * _SHORTEST, "--max-length", longest, f"give ≥ {2 * _SHORTEST}")
        tokens = self.batch_tokens
        require(tokens >= 2 * longest, "--batch-tokens", tokens,
                f"give ≥ {2 * longest}, a pair of the longest sentences")  # fmt: skip
        require(self.repeats >= 1, "--repeats", self.repeats, "give ≥ 1")
        least = _FIRST_WORD_ID + 1
        require(self.vocabulary_size >= least, "--vocabulary-size", self.vocabulary_size,
                f"give ≥ {least}")  # fmt: skip

    @property
    def lengths(self) -> tuple[int, ...]:
        """The sentences' lengths."""
        powers = range(_SHORTEST.bit_length() - 1, self.max_length.bit_length())
        return tuple(1 << power for power in powers if 1 << power <= self.max_length)


class Measured(NamedTuple):
    """The speed of one family at one length."""

    name: str
    num_parameters: int
    length: int
    seconds: float
    tokens_per_second: float


def make_words(length: int, options: ParallelOptions, device: "torch.device", seed: int) -> "Batch":
    """Make a batch of random words without padding."""
    import torch

    from dragoman.data.batches import Batch, Sequences

    count = options.batch_tokens // (2 * length)
    generator = torch.Generator().manual_seed(seed)
    shape = (count, length)

    def draw() -> Sequences:
        ids = torch.randint(_FIRST_WORD_ID, options.vocabulary_size, shape, generator=generator)
        ids[:, -1] = _EOS_ID
        return Sequences(ids, torch.full((count,), length)).to(device)

    tokens = count * length
    return Batch(draw(), draw(), num_tokens=2 * tokens, num_target_tokens=tokens)


def time_step(step: "TrainingStep", batch: "Batch", repeats: int) -> float:
    """Measure a forward and a backward pass."""
    import torch

    from dragoman.training.options import TrainingOptions
    from dragoman.training.updates.gradients import precision_context

    device = batch.source.ids.device
    times = []
    for _ in range(repeats + 1):
        _wait(device)
        began = time.perf_counter()
        with precision_context(TrainingOptions(), device):
            loss = step(batch)
        (loss / batch.num_target_tokens).backward()
        _wait(device)
        times.append(time.perf_counter() - began)
        step.zero_grad(set_to_none=True)
    assert torch.isfinite(loss)
    return statistics.median(times[1:])


def measure_family(
    name: str, options: ParallelOptions, device: "torch.device", say: Say
) -> list[Measured]:
    """Measure one family at every length."""
    import torch

    from dragoman.models.build import build_model, count_parameters
    from dragoman.models.interface import Vocabulary
    from dragoman.training.configuration import resolve_options
    from dragoman.training.objectives.loss import TrainingStep

    seed = read_seeds(options.seeds)[0]
    torch.manual_seed(seed)
    size = options.vocabulary_size
    _, resolved = resolve_options(SYSTEMS[name].preset, {}, {}, num_pairs=0)
    model = build_model(resolved.model, Vocabulary(size, size, _PAD_ID, _EOS_ID)).to(device)
    step = TrainingStep(model.train(), resolved.training.label_smoothing)
    found = []
    for length in options.lengths:
        batch = make_words(length, options, device, seed)
        seconds = time_step(step, batch, options.repeats)
        speed = batch.num_tokens / seconds
        found.append(Measured(name, count_parameters(model), length, seconds, speed))
    told = ", ".join(f"{each.tokens_per_second:,.0f} at {each.length}" for each in found)
    say(f"{SYSTEMS[name].title}, tokens/s: {told}")
    return found


def run(options: ParallelOptions, say: Say) -> Experiment:
    """Measure how fast each family trains.

    Notes
    -----
    By default some three minutes on two cores.
    """
    from dragoman.decoding.device import choose_device

    device = choose_device(options.device)
    measured = {name: measure_family(name, options, device, say) for name in options.systems}
    return Experiment(
        title="Training speed as sentences grow longer",
        claim="A recurrent network must read word after word, which leaves parallel hardware idle "
        "when sentences are long; the Transformer reads all words at once (section 1 of the "
        "paper; table 1, sequential operations).",
        findings=_findings(measured, device.type),
        tables=(_tabulate(measured, options, device.type),),
        plots=(_plot(measured, options, device.type),),
        seeds=read_seeds(options.seeds)[:1],
    )


def _wait(device: "torch.device") -> None:
    """Synchronise with an accelerator."""
    import torch

    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()


def _exponent(curve: Sequence[Measured]) -> float:
    return fit_exponent([each.length for each in curve], [each.tokens_per_second for each in curve])


def _findings(measured: dict[str, list[Measured]], device: str) -> tuple[str, ...]:
    """Summarise the results."""
    kept = {
        name: curve[-1].tokens_per_second / curve[0].tokens_per_second
        for name, curve in measured.items()
    }
    most, least = max(kept, key=lambda name: kept[name]), min(kept, key=lambda name: kept[name])
    first, last = measured[most][0].length, measured[most][-1].length
    fastest = max(measured, key=lambda name: measured[name][-1].tokens_per_second)
    found = [
        f"From {first} to {last} words, {SYSTEMS[most].title} keeps {kept[most]:.0%} of its speed, "
        f"{SYSTEMS[least].title} {kept[least]:.0%}.",
        f"At {last} words the fastest is {SYSTEMS[fastest].title} with "
        f"{measured[fastest][-1].tokens_per_second:,.0f} tokens/s.",
    ]
    if device == "cpu":
        found.append(
            "A CPU with few cores has little room to compute in parallel, so word after word costs "
            "less there than on a GPU (--device cuda)."
        )
    return tuple(found)


def _tabulate(measured: dict[str, list[Measured]], options: ParallelOptions, device: str) -> Table:
    """Put all speeds into one table."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            SYSTEMS[name].title,
            curve[0].num_parameters,
            *(each.tokens_per_second for each in curve),
            _exponent(curve),
        )
        for name, curve in measured.items()
    )
    speeds = (Column(f"{length} words", ",.0f") for length in options.lengths)
    return Table(
        name="parallel",
        title=f"Tokens per second of training ({device}) by sentence length",
        columns=(Column("family"), Column("parameters"), *speeds, Column("exponent", "+.2f")),
        rows=rows,
        notes=(
            f"Forward and backward pass of batches of {options.batch_tokens:,} words (source plus "
            "target), without padding; the longer the sentences, the fewer. Median of "
            f"{options.repeats}; {'bfloat16' if device == 'cuda' else 'float32'} arithmetic as in "
            "training, nothing compiled.",
            "The exponent is fitted: −1 would be a time that grows with the number of words in a "
            "sentence alone, 0 one that only the number of words in the batch decides.",
            "The models are the small recipes of “dragoman paper systems”, of different sizes: "
            "compare how the rows go, not their heights.",
        ),
    )


def _plot(measured: dict[str, list[Measured]], options: ParallelOptions, device: str) -> Plot:
    """Plot speed over length, recurrent families beside parallel ones."""
    from dragoman.models.recurrent import options as recurrent
    from dragoman.training.configuration import resolve_options

    def is_recurrent(name: str) -> bool:
        _, resolved = resolve_options(SYSTEMS[name].preset, {}, {}, num_pairs=0)
        return type(resolved.model).__module__ == recurrent.__name__

    def draw(name: str, style: Literal["line", "dashes"]) -> Series:
        curve = measured[name]
        return Series(
            name=SYSTEMS[name].title,
            x=[each.length for each in curve],
            y=[each.tokens_per_second for each in curve],
            style=style,
        )

    at_once = [name for name in measured if not is_recurrent(name)]
    one_by_one = [name for name in measured if name not in at_once]
    panels = []
    for title, names in (("All words at once", at_once), ("Word after word", one_by_one)):
        series = [draw(name, "line") for name in names]
        if "transformer" in measured and names is one_by_one:
            series.append(draw("transformer", "dashes"))
        if names:
            panels.append(
                Lines(title=title, x_label="words of a sentence", y_label="tokens per second",
                      series=tuple(series), x_scale="log", y_scale="log")
            )  # fmt: skip
    title = f"Training speed, {options.batch_tokens:,} words a batch ({device})"
    return Plot(name="parallel", title=title, panels=tuple(panels))
