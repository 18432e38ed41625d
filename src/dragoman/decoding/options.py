"""Options of search and sampling."""

from dataclasses import dataclass
from typing import Literal

from dragoman.options import option, require

Precision = Literal["auto", "float32", "float16", "int8"]
CpuPrecision = Literal["float32", "int8"]

LARGEST_BEAM = 1000
LARGEST_ALPHA = 10
# What is beyond does not fit a computer's memory, or its scores not 32 bits.
LIMITS = {
    "beam_size": (1, LARGEST_BEAM),
    "length_penalty": (0, LARGEST_ALPHA),
    "coverage_penalty": (0, 100),
    "max_extra_tokens": (0, 10_000),
}
COLDEST, HOTTEST = 0.001, 1000


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Choose how translations are searched for."""

    beam_size: int = option(4, "hypotheses kept at each step; 1 is greedy search")
    length_penalty: float = option(0.6, "exponent α by which longer translations are favoured")
    coverage_penalty: float = option(
        0.0, "weight β by which source words that attention left out count against a translation"
    )
    max_extra_tokens: int = option(
        50, "a translation has at most this many subwords over its source"
    )
    into: str | None = option(
        None, "the target language, such as fr, of a model that has several; off: it has one"
    )
    formality: Literal["more", "less"] | None = option(
        None,
        "a formal translation, or an informal one, of a model that was trained with marks "
        "for that; off: as the model likes",
    )
    replace_unknown: bool = option(
        True, "put a word for each unknown one of a closed vocabulary: translated or copied"
    )
    split_sentences: Literal["auto", "on", "off"] = option(
        "auto",
        "translate the sentences of a text one by one; auto: unless the training text had several "
        "in a line",
    )
    search_again: bool = option(
        True, "search once more where a translation repeats itself or has an impossible length"
    )

    def __post_init__(self) -> None:
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            require(least <= value <= most, name, value, f"must be from {least} to {most:,}")


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """Choose how translations are sampled."""

    temperature: float = option(
        1.0, "with --sample: below 1 probable words are drawn yet more often"
    )
    top_k: int | None = option(None, "with --sample: draw among so many of the most probable words")
    top_p: float | None = option(
        None, "with --sample: draw among the fewest words that have this probability together"
    )
    seed: int = option(1, "with --sample: the same seed draws the same translation of a sentence")

    def __post_init__(self) -> None:
        is_sane = COLDEST <= self.temperature <= HOTTEST
        remedy = f"must be from {COLDEST} to {HOTTEST:,}"
        require(is_sane, "temperature", self.temperature, remedy)
        require(self.top_k is None or self.top_k >= 1, "top_k", self.top_k, "must be at least 1")
        is_share = self.top_p is None or 0 < self.top_p <= 1
        require(is_share, "top_p", self.top_p, "must be above 0 and at most 1")
