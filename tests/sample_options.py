"""Options of every kind, for the tests of options and of flags."""

from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import strategies as st

from dragoman.errors import OptionError
from dragoman.options import option


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How it looks.

    More of it.
    """

    width: int = option(4, "how wide, 100 % sure")
    scale: float = option(1.5, "how large")
    name: str = option("box", "what it is called")
    is_round: bool = option(False, "whether it rolls")
    colour: Literal["red", "blue"] = option("red", "how it shines")
    corners: int | None = option(None, "how many corners")
    weight: float | None = option(2.5, "how heavy")
    finish: Literal["matt", "gloss"] | None = option("matt", "how it feels")
    label: str | None = option(None, "what is on it")
    tags: tuple[str, ...] = option((), "what it belongs to")
    shares: tuple[float, ...] | None = option(None, "who owns how much")


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A thing."""

    shape: Shape = field(default_factory=Shape)
    count: int = option(1, "how many")


numbers = st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))
shapes = st.builds(
    Shape,
    width=st.integers(-(2**63), 2**63 - 1),
    scale=numbers,
    name=texts,
    is_round=st.booleans(),
    colour=st.sampled_from(["red", "blue"]),
    corners=st.none() | st.integers(0, 99),
    weight=st.none() | numbers,
    finish=st.sampled_from(["matt", "gloss", None]),
    label=st.none() | texts.filter(lambda text: text != "off"),
    tags=st.lists(texts).map(tuple),
    shares=st.none() | st.lists(numbers).map(tuple),
)
things = st.builds(Thing, shape=shapes, count=st.integers(0, 99))


def message_of(action):
    with pytest.raises(OptionError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message
