"""End a fine-tuning: average with the model it began from, and tell what was gained and lost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.decoding.engines.select import choose_engine
from dragoman.decoding.translator import Translator
from dragoman.evaluation.bleu import tokenizer_for
from dragoman.evaluation.compare import Comparison, compare_systems
from dragoman.evaluation.evaluate import make_batches
from dragoman.folder import WEIGHTS_FILE, ModelFolder
from dragoman.models.likelihood import mean_loss
from dragoman.tensor_files import TensorFile
from dragoman.training.log import Log, SilentLog, format_share
from dragoman.weights import put_weights, read_weights, write_weights

START_FILE, TUNED_FILE = "start.safetensors", "tuned.safetensors"
SHARES = tuple(tenths / 10 for tenths in range(11))
"""Shares of the model of before that are tried in the average."""
TOLERATED_NATS = 0.02
"""By how much the loss on general lines may rise: less than a point of BLEU."""
KEPT_GAIN = 0.6
"""Share of the gain on the user's own lines that is kept at least if there are no general lines:
half of what is forgotten or more is had back, as benchmarks/finetuning.py shows."""
BEFORE, AFTER = "before", "after"
YOUR_LINES, GENERAL_LINES = "your lines, held out", "general lines"
METRICS = ("bleu", "chrf")

Weights = Mapping[str, Tensor]


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Lines that were not trained on.

    Parameters
    ----------
    title : str
        What a person calls them.
    sources : Sequence[str]
        Sentences.
    references : Sequence[str]
        Their translations.
    """

    title: str
    sources: Sequence[str]
    references: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Change:
    """What fine-tuning did to the translations of some lines, by each metric."""

    lines: HeldOut
    comparisons: tuple[Comparison, ...]

    @property
    def is_worse(self) -> bool:
        """Whether the scores fell, on the mean of the metrics."""
        return sum(each.differences[0].value for each in self.comparisons) < 0

    def in_words(self) -> Iterator[str]:
        """Describe it in lines."""
        yield f"{self.lines.title} ({len(self.lines.sources):,}): {self.scores()}"
        for each in self.comparisons:
            yield f"  {each.in_words()}"

    def scores(self) -> str:
        """Format the scores before and after."""
        return ", ".join(
            f"{each.metric} {each.scores[BEFORE].value:.1f} → {each.scores[AFTER].value:.1f}"
            for each in self.comparisons
        )

    def signatures(self) -> str:
        """List the signatures of the scores."""
        return ", ".join(each.scores[AFTER].signature for each in self.comparisons)

    def facts(self) -> dict[str, object]:
        """List the figures for the log."""
        return {
            "lines": self.lines.title,
            "num_lines": len(self.lines.sources),
            "metrics": {
                each.metric: {
                    "before": each.scores[BEFORE].value,
                    "after": each.scores[AFTER].value,
                    "low": each.differences[0].low,
                    "high": each.differences[0].high,
                    "p_bootstrap": each.differences[0].p_bootstrap,
                    "p_randomisation": each.differences[0].p_randomisation,
                    "signature": each.scores[AFTER].signature,
                }
                for each in self.comparisons
            },
        }


def mix_weights(start: Weights, tuned: Weights, share: float) -> dict[str, Tensor]:
    """Average two models' weights, the first one's with a share; exact at both ends."""
    if share in (0.0, 1.0):
        return dict(start if share else tuned)
    return {
        name: (share * start[name].double() + (1 - share) * each.double()).to(each.dtype)
        for name, each in tuned.items()
    }


def choose_share(own: Mapping[float, float], general: Mapping[float, float]) -> float:
    """Choose the share of the model of before by the losses of the averages on held-out lines.

    Parameters
    ----------
    own : Mapping[float, float]
        Losses on the user's own lines by share.
    general : Mapping[float, float]
        Losses on general lines by share; empty: there are no such lines.

    Returns
    -------
    float
        With general lines: the best share for the user's lines among those that lose next to
        nothing on the general ones. Without: the largest one that keeps most of the gain.
    """
    if general:
        allowed = [each for each in own if general[each] <= general[1.0] + TOLERATED_NATS]
        return min(allowed, key=lambda share: (own[share], share))
    least = own[1.0] - KEPT_GAIN * (own[1.0] - min(own.values()))
    return max(share for share, loss in own.items() if loss <= least)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is there when the updates of a fine-tuning are done.

    Parameters
    ----------
    folder : ModelFolder
        The run's folder.
    checkpoints : Path
        Has the weights of before and the best tuned ones.
    translator : Translator
        Has the model, into which weights are put to measure them.
    own : HeldOut
        The user's lines.
    general : HeldOut | None
        General lines, if there are any.
    precision : AbstractContextManager
        The arithmetic.
    """

    folder: ModelFolder
    checkpoints: Path
    translator: Translator
    own: HeldOut
    general: HeldOut | None
    precision: AbstractContextManager

    @property
    def sets(self) -> list[HeldOut]:
        """All held-out lines."""
        return [self.own, *([self.general] if self.general else [])]


def held_out(title: str, pairs: Sequence[tuple[str, str]]) -> HeldOut:
    """Take pairs apart."""
    return HeldOut(
        title=title, sources=[each[0] for each in pairs], references=[each[1] for each in pairs]
    )


def finish_tuning(
    outcome: Outcome,
    share: float | None,
    log: Log | SilentLog,
    describe: Callable[..., None],
) -> None:
    """Average with the start model, report gain and loss, and keep the better model.

    Parameters
    ----------
    outcome : Outcome
        What is there.
    share : float | None
        Of the weights of before; None: to be chosen.
    log : Log | SilentLog
        Is told.
    describe : Callable[..., None]
        Changes facts of the model folder.
    """
    paths = {
        BEFORE: outcome.checkpoints / START_FILE,
        AFTER: outcome.folder.path / WEIGHTS_FILE,
    }
    start, tuned = read_weights(paths[BEFORE]), read_weights(outcome.checkpoints / TUNED_FILE)
    if share is None:
        losses = [_measure_losses(outcome, start, tuned, lines) for lines in outcome.sets]
        share = choose_share(losses[0], losses[1] if outcome.general else {})
        log.event("average", share=share, own=list(losses[0].values()),
                  general=list(losses[1].values()) if outcome.general else None)  # fmt: skip
    log.say(f"tuning: the result has {format_share(share)} of the weights of before")
    write_weights(paths[AFTER], mix_weights(start, tuned, share), outcome.folder.identity)
    changes = compare_weights(outcome.folder, paths, outcome.translator.device, outcome.sets)
    for change in changes:
        log.event("tuning", **change.facts())
        for line in change.in_words():
            log.say(line)
    is_worse = changes[0].is_worse
    if is_worse:
        write_weights(paths[AFTER], start, outcome.folder.identity)
        log.say(
            "tuning: the tuned model is worse on your own lines, so the folder has the weights of "
            "before; more lines, or cleaner ones, would help"
        )
    tuned_name = f"tuned, with {format_share(share)} of the weights of before"
    describe(
        weights="those of before: tuning made them worse" if is_worse else tuned_name,
        scores={each.lines.title: f"{each.scores()}; {each.signatures()}" for each in changes},
    )


def _measure_losses(
    outcome: Outcome, start: Weights, tuned: Weights, lines: HeldOut
) -> dict[float, float]:
    """Compute the loss on held-out lines of the average with each share."""
    translator = outcome.translator
    model: Any = translator.model
    model.eval()
    found = {}
    for share in SHARES:
        put_weights(model, mix_weights(start, tuned, share), outcome.checkpoints / TUNED_FILE)
        with torch.inference_mode(), outcome.precision:
            found[share] = mean_loss(
                model, make_batches(translator, lines.sources, lines.references)
            )
    return found


def compare_weights(
    folder: ModelFolder,
    weights: Mapping[str, Path],
    device: torch.device,
    sets: Sequence[HeldOut],
) -> list[Change]:
    """Translate held-out lines with two files of weights, and test the difference.

    Parameters
    ----------
    folder : ModelFolder
        The model.
    weights : Mapping[str, Path]
        Weights `BEFORE` and `AFTER`.
    device : torch.device
        Where to translate.
    sets : Sequence[HeldOut]
        What to translate.
    """
    outputs: dict[str, list[list[str]]] = {}
    for name, path in weights.items():
        changed = replace(folder, weights=TensorFile(path))
        where = "cpu" if device.type == "cpu" else device
        choice = choose_engine(changed, device.type, "float32")
        translator = Translator.of_folder(changed, where, choice)
        outputs[name] = [
            [each.text for each in translator.translate_all(lines.sources)] for lines in sets
        ]
    tokenizer = tokenizer_for(folder.facts.target_language)
    return [
        Change(
            lines=lines,
            comparisons=tuple(
                compare_systems(
                    [lines.references],
                    {name: found[index] for name, found in outputs.items()},
                    metric=metric,
                    tokenize=tokenizer if metric == "bleu" else None,
                )
                for metric in METRICS
            ),
        )
        for index, lines in enumerate(sets)
    ]
