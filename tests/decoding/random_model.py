"""A model whose every word is a matter of chance, so that a search can be compared with laws."""

import functools
import math
import random
from dataclasses import dataclass, replace

import torch
from torch import nn

from dragoman.models.layers.embedding import OutputLayer

EOS, UNK, PAD = 0, 1, 2
SIZE = 5


@dataclass(frozen=True)
class RandomState:
    """The sentences, and the words of their hypotheses."""

    model: "RandomModel"
    sources: list
    prefixes: list

    @property
    def coverage(self):
        if not self.model.has_attention:
            return None
        width = max(map(len, self.sources)) + 1  # with padding everywhere
        return torch.tensor(
            [
                [
                    (self.model.coverage(source, prefix) + [1.0] * width)[:width]
                    for prefix in prefixes
                ]
                for source, prefixes in zip(self.sources, self.prefixes, strict=True)
            ]
        )

    def reorder(self, beams):
        rows = zip(self.prefixes, beams.tolist(), strict=True)
        return replace(self, prefixes=[[row[beam] for beam in chosen] for row, chosen in rows])

    def keep(self, sentences):
        places = sentences.tolist()
        chosen = ([side[place] for place in places] for side in (self.sources, self.prefixes))
        return RandomState(self.model, *chosen)


class RandomModel:
    """A model whose scores are random numbers made from the source and the words so far.

    So is the attention that it pays to each source word before it chooses a word.
    """

    def __init__(self, seed, scale=1.5, *, has_attention=False, size=SIZE):
        self.seed = seed
        self.size = size
        self.scale = scale
        self.has_attention = has_attention
        self.output = OutputLayer(nn.Parameter(torch.eye(size)), pad_id=PAD)

    @functools.cache  # noqa: B019
    def logits(self, source, prefix):
        generator = random.Random(f"{self.seed} {source} {prefix}")
        return [generator.gauss(0, self.scale) for _ in range(self.size)]

    def log_probability(self, source, prefix, word):
        logits = self.logits(source, prefix)
        possible = [logits[each] for each in range(self.size) if each != PAD]
        return logits[word] - math.log(sum(map(math.exp, possible)))

    def attention(self, source, prefix):
        generator = random.Random(f"attention {self.seed} {source} {prefix}")
        weights = [math.exp(generator.gauss(0, 2)) for _ in source]
        return [weight / sum(weights) for weight in weights]

    def coverage(self, source, prefix):
        """Give the attention paid to each source word until the word after the prefix is chosen."""
        if prefix is None:
            return [0.0] * len(source)
        steps = [self.attention(source, prefix[:length]) for length in range(len(prefix) + 1)]
        return [sum(weights) for weights in zip(*steps, strict=True)]

    def forward(self, batch):
        raise NotImplementedError

    def encode(self, source):
        rows = zip(source.ids.tolist(), source.lengths.tolist(), strict=True)
        return [tuple(ids[:length]) for ids, length in rows]

    def start(self, memory, capacity):  # noqa: ARG002
        return RandomState(self, memory, [[None] for _ in memory])

    def step(self, tokens, state):
        prefixes = [
            [
                () if prefix is None else (*prefix, token)
                for prefix, token in zip(row, newest, strict=True)
            ]
            for row, newest in zip(state.prefixes, tokens.tolist(), strict=True)
        ]
        logits = [
            [self.logits(source, prefix) for prefix in row]
            for source, row in zip(state.sources, prefixes, strict=True)
        ]
        return torch.tensor(logits), replace(state, prefixes=prefixes)
