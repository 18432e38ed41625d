"""Longest path between two words by breadth-first search: the last column of table 1."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wiring:
    """The connectivity of a layer: which positions are connected in one step.

    Parameters
    ----------
    name : str
        The kind of layer.
    distances : Callable[[int, int], Iterable[int]]
        Given the step's number, from 0, and the number of words, how far ahead (or, negative,
        behind) a word is heard.
    formula : str
        The longest path, exactly.
    is_causal : bool
        Whether a word is heard only by those after it.
    """

    name: str
    distances: Callable[[int, int], Iterable[int]]
    formula: str
    is_causal: bool


def list_wirings(kernel_size: int, window: int) -> tuple[Wiring, ...]:
    """List the kinds of layers in table 1, with convolution in both of its forms."""
    half = window // 2
    return (
        Wiring(
            name="self-attention",
            distances=lambda _, length: range(1 - length, length),
            formula="1",
            is_causal=False,
        ),
        Wiring(
            name="recurrent", distances=lambda _step, _length: (1,), formula="n − 1", is_causal=True
        ),
        Wiring(
            name="convolutional, contiguous",
            distances=lambda _step, _length: range(kernel_size),
            formula="⌈(n − 1)/(k − 1)⌉",
            is_causal=True,
        ),
        Wiring(
            name="self-attention (restricted)",
            distances=lambda _step, _length: range(-half, half + 1),
            formula="⌈2(n − 1)/r⌉",
            is_causal=False,
        ),
        Wiring(
            name="convolutional, dilated",
            distances=lambda step, _: range(0, kernel_size ** (step + 1), kernel_size**step),
            formula="⌈log_k n⌉",
            is_causal=True,
        ),
    )


def find_longest_path(wiring: Wiring, num_words: int) -> int:
    """Find the pair of words with the longest path between them.

    Notes
    -----
    Breadth-first from every word, through as many steps as it takes. A set of words is one
    integer with a bit a word, so that all of them take a step in a few shifts.
    """
    return max(_reach_all(wiring, num_words, first) for first in range(num_words))


def _reach_all(wiring: Wiring, num_words: int, first: int) -> int:
    """Count the steps until the first word has reached every reachable word."""
    everyone = (1 << num_words) - 1
    wanted = everyone >> first << first if wiring.is_causal else everyone
    reached, heard, step = 1 << first, 1 << first, 0
    while heard != wanted:
        after = 0
        for distance in wiring.distances(step, num_words):
            after |= reached << distance if distance >= 0 else reached >> -distance
        reached = after & everyone
        heard |= reached
        step += 1
    return step
