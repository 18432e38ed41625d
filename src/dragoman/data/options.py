"""Options of the corpus."""

import math
from dataclasses import dataclass, field

from dragoman.options import option, require


@dataclass(frozen=True, kw_only=True)
class CorpusOptions:
    """How pairs are cleaned and how many are set aside for validation."""

    max_length: int = option(256, "drop pairs in which a side has more subwords than this")
    max_length_ratio: float | None = option(
        4.0, "drop pairs in which a side has this many times the characters of the other"
    )
    deduplicate: bool = option(True, "drop exact repetitions of a pair")
    valid_pairs: int = option(
        1000, "pairs to set aside for validation if no validation files are given"
    )
    mix: tuple[float, ...] | None = option(
        None, "how often a pass sees the pairs of each corpus, one number a file: 1 3 0.5"
    )

    # No repr: the key of a store is the repr of its options.
    mix_temperature: float | None = field(
        default=None,
        repr=False,
        metadata={
            "help": "instead of mix: see corpora of n pairs in proportion to n^(1/T), T being this"
        },
    )

    def __post_init__(self) -> None:
        require(self.max_length >= 1, "max_length", self.max_length, "must be at least 1")
        ratio = self.max_length_ratio
        require(ratio is None or ratio > 1, "max_length_ratio", ratio, "must be over 1, or off")
        require(self.valid_pairs >= 1, "valid_pairs", self.valid_pairs, "must be at least 1")
        mix = self.mix
        if mix is not None:
            said = " ".join(f"{weight:g}" for weight in mix) or "empty"
            good = all(math.isfinite(weight) and weight >= 0 for weight in mix)
            require(good, "mix", said, "no weight may be negative or infinite")
            require(any(mix), "mix", said, "one weight at least must be over 0")
        temperature = self.mix_temperature
        if temperature is not None:
            good = math.isfinite(temperature) and temperature >= 1
            require(good, "mix_temperature", temperature, "must be at least 1, or off")
            require(mix is None, "mix_temperature", temperature, "leave it or mix out")
