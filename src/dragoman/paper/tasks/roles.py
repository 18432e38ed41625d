"""A small task for multi-head attention: retrieve who, what and when in one step.

One of the notes gives heads such questions: what is happening, when, who. Here a sentence has one
word for each, at random positions among others, and one attention must retrieve all three words,
each with its role. A word's vector is the sum of its embedding and of its role's. The average of
the three words tells which words they are and which roles there were, but hardly which word had
which role. A single head can only average; several can attend to one word each.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.models.attention.mask import Mask
from dragoman.models.attention.multihead_attention import MultiheadAttention
from dragoman.models.attention.observer import observed_attention
from dragoman.shapes import Float, Int

ROLES = ("who", "what", "when")
LENGTH = 12
NUM_SYMBOLS = 32
MODEL_DIM = 64
BATCH = 64


class Sentences(NamedTuple):
    """Words with their roles; role 0 is none."""

    symbols: Int[Tensor, "batch length"]
    roles: Int[Tensor, "batch length"]
    answers: Int[Tensor, "batch roles"]


class RoleReader(nn.Module):
    """One layer of multi-head attention with one query.

    Parameters
    ----------
    num_heads : int
        Heads, which share the model's width.
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.symbols = nn.Embedding(NUM_SYMBOLS, MODEL_DIM)
        self.roles = nn.Embedding(len(ROLES) + 1, MODEL_DIM)
        self.query = nn.Parameter(torch.randn(1, 1, MODEL_DIM))
        head_dim = MODEL_DIM // num_heads
        self.attention = MultiheadAttention(
            MODEL_DIM, num_heads, key_dim=head_dim, value_dim=head_dim, bias=False
        )
        self.answer = nn.Linear(MODEL_DIM, len(ROLES) * NUM_SYMBOLS)

    def forward(self, sentences: Sentences) -> Float[Tensor, "batch roles symbols"]:
        """Predict the three words."""
        words = self.symbols(sentences.symbols) + self.roles(sentences.roles)
        memory = self.attention.keys_and_values(words)
        found = self.attention(self.query.expand(len(words), -1, -1), memory, Mask())
        return self.answer(found.squeeze(1)).unflatten(-1, (len(ROLES), -1))


class RoleResult(NamedTuple):
    """The accuracy and attention of a trained reader.

    Attributes
    ----------
    accuracy : float
        Share of right answers.
    attention : list[list[float]]
        For each head the mean weight on who, what, when, and all other words together.
    """

    accuracy: float
    attention: list[list[float]]


def sample_sentences(num_sentences: int, generator: torch.Generator) -> Sentences:
    """Sample sentences."""
    symbols = torch.randint(NUM_SYMBOLS, (num_sentences, LENGTH), generator=generator)
    places = torch.rand(num_sentences, LENGTH, generator=generator).argsort(1)[:, : len(ROLES)]
    named = torch.arange(1, len(ROLES) + 1).expand(num_sentences, -1)
    roles = torch.zeros_like(symbols).scatter(1, places, named)
    return Sentences(symbols, roles, symbols.gather(1, places))


def learn_roles(num_heads: int, *, seed: int, num_steps: int) -> RoleResult:
    """Train a reader; measure its accuracy and the attention of its heads."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = RoleReader(num_heads)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(num_steps):
        sentences = sample_sentences(BATCH, generator)
        logits = model(sentences).flatten(0, 1)
        loss = functional.cross_entropy(logits, sentences.answers.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    sentences = sample_sentences(16 * BATCH, generator)
    with torch.no_grad(), observed_attention(model) as maps:
        right = model(sentences).argmax(-1) == sentences.answers
    (weights,) = maps["attention"]
    shares = [
        (weights.squeeze(2) * (sentences.roles == role).unsqueeze(1)).sum(-1).mean(0).tolist()
        for role in (1, 2, 3, 0)
    ]
    return RoleResult(
        right.float().mean().item(), [list(each) for each in zip(*shares, strict=True)]
    )
