"""Choose learning rate, batch, updates and mixture of a fine-tuning by the size of its files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.data.store.store import PairStore
from dragoman.options import OFF, Plain
from dragoman.training.configuration import RunOptions

PASSES = 6.0
"""Passes over the user's own pairs: more gain little."""
MOST_TOKENS = 30e6
BATCHES, MOST_UPDATES, FEWEST_UPDATES = (1000, 2000, 4000, 8000, 16_000), 600, 4
RATE_BY_WIDTH = 0.06
"""Peak learning rate times width: about a tenth of what such a model is trained with at first."""
WARMUP_SHARE = 0.1
NUM_VALIDATIONS = 8
MOST_REPEATS = 2.0
"""Times a pass sees each general pair at most."""
CPU_MINUTES = 5.0
"""After so many minutes of a CPU the run is brought to its end."""
FEW_LINES = 50
"""Held-out lines of the user's own below which their scores say little."""


@dataclass(frozen=True, kw_only=True)
class TuningCorpus:
    """The sizes by which a fine-tuning is planned.

    Parameters
    ----------
    pairs : Sequence[int]
        Pairs of each corpus.
    tokens : Sequence[int]
        Their tokens on both sides.
    num_own : int
        How many of the corpora are the user's own, the first ones; at most one is general.
    """

    pairs: Sequence[int]
    tokens: Sequence[int]
    num_own: int

    @property
    def own_pairs(self) -> int:
        """The user's own pairs."""
        return sum(self.pairs[: self.num_own])

    @property
    def general_pairs(self) -> int:
        """General pairs."""
        return sum(self.pairs[self.num_own :])

    def mix(self) -> tuple[float, ...]:
        """Weigh the corpora: as many general pairs as own ones in a pass, if there are as many."""
        weight = min(MOST_REPEATS, self.own_pairs / max(1, self.general_pairs))
        num_general = len(self.pairs) - self.num_own
        return (1.0,) * self.num_own + (round(weight, 6),) * num_general


def measure_corpus(pairs: PairStore, num_own: int) -> TuningCorpus:
    """Measure the corpora of a store, of which the first ones are the user's own."""
    lengths = pairs.source_lengths.astype(np.int64) + pairs.target_lengths
    bounds = zip((0, *pairs.group_ends[:-1]), pairs.group_ends, strict=True)
    groups = [lengths[start:end] for start, end in bounds]
    return TuningCorpus(
        pairs=[len(each) for each in groups],
        tokens=[int(each.sum()) for each in groups],
        num_own=num_own,
    )


def plan_tuning(
    corpus: TuningCorpus, width: int, said: Mapping[str, Any], *, is_on_cpu: bool
) -> Plain:
    """Plan a fine-tuning.

    Parameters
    ----------
    corpus : TuningCorpus
        What it learns from.
    width : int
        Of the model.
    said : Mapping[str, Any]
        What the user says: the number of updates follows a batch that is given.
    is_on_cpu : bool
        Whether time is scarce.

    Returns
    -------
    dict[str, Any]
        Options by section, to lie over those of the preset “tuning”.
    """
    own_mix = said.get("corpus", {}).get("mix") or ()
    mix = tuple(own_mix) if len(own_mix) == len(corpus.pairs) else corpus.mix()
    weighed = zip(corpus.tokens, mix, strict=True)
    total = min(PASSES * sum(tokens * weight for tokens, weight in weighed), MOST_TOKENS)
    fitting = (batch for batch in BATCHES if total <= MOST_UPDATES * batch)
    batch = next(fitting, BATCHES[-1])
    given = said.get("training", {}).get("batch_tokens")
    updates = max(FEWEST_UPDATES, round(total / (given if isinstance(given, int) else batch)))
    every = max(1, -(-updates // NUM_VALIDATIONS))
    training: Plain = {
        "batch_tokens": batch,
        "max_steps": updates,
        "warmup_steps": max(1, round(WARMUP_SHARE * updates)),
        "peak_learning_rate": round(RATE_BY_WIDTH / width, 8),
        "validate_every": every,
        "log_every": max(1, every // 2),
        "max_minutes": CPU_MINUTES if is_on_cpu else OFF,
    }
    is_mixed = len(mix) > 1 and said.get("corpus", {}).get("mix_temperature", OFF) in (None, OFF)
    return {"training": training, "corpus": {"mix": list(mix)} if is_mixed else {}}


def describe_tuning(corpus: TuningCorpus, options: RunOptions, num_valid: int) -> list[str]:
    """Describe a planned fine-tuning in lines for the terminal."""
    training = options.training
    own = f"tuning: {corpus.own_pairs:,} pairs of yours, {num_valid:,} more held out"
    if corpus.general_pairs:
        weight = (options.corpus.mix or corpus.mix())[-1]
        seen = round(weight * corpus.general_pairs)
        own += f"; with {seen:,} of {corpus.general_pairs:,} general pairs mixed into each pass"
    else:
        own += (
            "; no general text, so the result stays near the model it starts from (--general "
            "FILE.tsv is better)"
        )
    rate = training.peak_learning_rate
    lines = [
        own,
        f"tuning: at most {training.max_steps or 0:,} updates of {training.batch_tokens:,} tokens, "
        f"learning rate {'the paper’s' if rate is None else f'{rate:.2g}'} after "
        f"{training.warmup_steps:,} of them, dropout {getattr(options.model, 'dropout', 0.0):g}",
    ]
    if num_valid < FEW_LINES:
        lines.append(
            f"tuning: {num_valid} held-out lines say little of what is gained; give more lines, or "
            "some to validate on by --valid-tsv"
        )
    return lines
