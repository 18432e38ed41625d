"""The lines of code that compute each step, found in the code as it stands."""

import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.data.batches import Sequences
from dragoman.decoding.search.candidates import BeamChooser
from dragoman.decoding.search.hypotheses import Finished
from dragoman.decoding.search.sampling import draw_words
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.multihead_attention import MultiheadAttention
from dragoman.models.attention.scaled_dot_product_attention import attention_weights
from dragoman.models.layers.embedding import Embedding, OutputLayer
from dragoman.models.layers.feed_forward import FeedForward
from dragoman.models.layers.normalisation import RMSNorm, layer_norm
from dragoman.models.layers.residual import AddAndNorm
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.positions.sinusoids import sinusoids
from dragoman.text.subwords import Subwords

ROOT = Path(inspect.getfile(inspect.unwrap(attention_weights))).parents[2]
AROUND = 6
"""Lines of code that are shown before and after."""

# What computes a step, and a piece of its line; a test sees that there is exactly one such line.
PLACES: dict[str, tuple[Callable[..., Any], str]] = {
    "subwords": (Subwords.encode, "ids = _share(self._processor.encode_as_ids"),
    "shifted": (Sequences.shifted, "return torch.cat([start, words[:, :-1]]"),
    "embedding": (Embedding.forward, "functional.embedding("),
    "add-position": (Embedding.forward, "words + self.positions("),
    "sinusoids": (sinusoids, "np.sin(angles)"),
    "query": (MultiheadAttention.forward, "self._heads(self.query(queries))"),
    "key": (MultiheadAttention.keys_and_values, "self._heads(self.key(memory))"),
    "value": (MultiheadAttention.keys_and_values, "self._heads(self.value(memory))"),
    "scores": (attention_weights, "query @ key.transpose(-2, -1)"),
    "bias": (attention_weights, "scores = scores + bias"),
    "causal": (Mask.may_attend, "keys <= queries"),
    "mask": (attention_weights, "masked_fill(~may_attend"),
    "softmax": (attention_weights, ".softmax(dim=-1)"),
    "average": (MultiheadAttention.forward, "self.observer(weights) @ memory.values"),
    "join": (MultiheadAttention.forward, "self.output(found.transpose"),
    "add-post": (AddAndNorm.forward, "self.norm(states + found if"),
    "add-pre": (AddAndNorm.forward, "return states + found if"),
    "norm-layer": (layer_norm, "(states - mean) / (variance + epsilon)"),
    "norm-rms": (RMSNorm.forward, "functional.rms_norm("),
    "inner": (FeedForward.forward, "inner = linear(states, self.inner"),
    "outer": (FeedForward.forward, "self.outer)"),
    "logits": (OutputLayer.forward, "functional.linear(hidden, self.words"),
    "next-softmax": (token_log_probabilities, "chosen - logits.logsumexp(-1)"),
    "choose": (BeamChooser.choose, "totals.topk("),
    "finish": (Finished.add, "length_penalty(length + 1, alpha)"),
    "sample": (draw_words, "(logits / options.temperature).softmax(-1)"),
}


class CodeLine(NamedTuple):
    """A line of code and those around it.

    Attributes
    ----------
    file : str
        Its path below ``src/dragoman``.
    line : int
        Its number, counted from 1.
    function : str
        The function it stands in.
    first : int
        The number of the first line of `text`.
    text : str
        The lines around it.
    """

    file: str
    line: int
    function: str
    first: int
    text: str


@cache
def find_code() -> dict[str, CodeLine]:
    """Find the lines of all steps; none where the sources are not installed."""
    try:
        return {step: _find(what, piece) for step, (what, piece) in PLACES.items()}
    except OSError:
        return {}


def _find(what: Callable[..., Any], piece: str) -> CodeLine:
    """Find the one line of a function that has a piece of text in it."""
    function = inspect.unwrap(what)
    lines, first = inspect.getsourcelines(function)
    (place,) = [index for index, line in enumerate(lines) if piece in line]
    begin, end = max(0, place - AROUND), place + AROUND + 1
    file = Path(inspect.getfile(function)).relative_to(ROOT).as_posix()
    text = textwrap.dedent("".join(lines[begin:end])).rstrip("\n")
    return CodeLine(file, first + place, function.__qualname__, first + begin, text)
