"""Key–value retrieval, a small task to compare attention scores.

A sentence holds key–value pairs; a query equals one of the keys; the answer is its
value. The model has one layer of attention and nothing else that could find the pair.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.models.attention.additive_attention import AdditiveAttention
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.scaled_dot_product_attention import attention_weights
from dragoman.shapes import Float, Int

Score = Literal["dot", "scaled dot", "additive"]
SCORES: tuple[Score, ...] = ("dot", "scaled dot", "additive")
NUM_PAIRS = 16
NUM_SYMBOLS = 64
SYMBOL_DIM = 64
BATCH = 64


class Questions(NamedTuple):
    """Sentences of key–value pairs, with a query and an answer each."""

    keys: Int[Tensor, "batch pairs"]
    values: Int[Tensor, "batch pairs"]
    queries: Int[Tensor, "batch"]
    answers: Int[Tensor, "batch"]


class Matcher(nn.Module):
    """A single attention that retrieves a value by its key.

    Parameters
    ----------
    score : Literal["dot", "scaled dot", "additive"]
        How query and key are compared.
    key_dim : int
        Width of the space in which they are compared (d_k).

    Notes
    -----
    Symbols begin normal with variance 1 and projections keep it, so the entries of queries and
    keys have variance 1: the assumption under which the paper derives 1/√d_k.
    """

    def __init__(self, score: Score, key_dim: int) -> None:
        super().__init__()
        self.score = score
        self.symbols = nn.Embedding(NUM_SYMBOLS, SYMBOL_DIM)
        self.values = nn.Embedding(NUM_SYMBOLS, SYMBOL_DIM)
        self.answer = nn.Linear(SYMBOL_DIM, NUM_SYMBOLS)
        if score == "additive":
            self.additive = AdditiveAttention(SYMBOL_DIM, SYMBOL_DIM, key_dim)
            nn.init.normal_(self.additive.score, std=key_dim**-0.5)
            projections = (self.additive.query, self.additive.key)
        else:
            self.query = nn.Linear(SYMBOL_DIM, key_dim, bias=False)
            self.key = nn.Linear(SYMBOL_DIM, key_dim, bias=False)
            projections = (self.query, self.key)
        for projection in projections:
            nn.init.normal_(projection.weight, std=SYMBOL_DIM**-0.5)

    def attend(
        self, questions: Questions
    ) -> tuple[Float[Tensor, "batch values"], Float[Tensor, "batch pairs"]]:
        """Compute the attention weights of the queries."""
        query = self.symbols(questions.queries).unsqueeze(1)
        keys, values = self.symbols(questions.keys), self.values(questions.values)
        if self.score == "additive":
            found, weights = self.additive(query, self.additive.prepare(keys), values, Mask())
            return found.squeeze(1), weights.squeeze(1)
        weights = attention_weights(
            self.query(query).unsqueeze(1), self.key(keys).unsqueeze(1), Mask(),
            scaled=self.score == "scaled dot",
        ).squeeze(1)  # fmt: skip
        return (weights @ values).squeeze(1), weights.squeeze(1)

    def forward(self, questions: Questions) -> Float[Tensor, "batch symbols"]:
        """Predict the answers."""
        found, _ = self.attend(questions)
        return self.answer(found)


def sample_questions(num_questions: int, generator: torch.Generator) -> Questions:
    """Sample questions."""
    noise = torch.rand(num_questions, NUM_SYMBOLS, generator=generator)
    keys = noise.argsort(1)[:, :NUM_PAIRS]
    values = torch.randint(NUM_SYMBOLS, keys.shape, generator=generator)
    places = torch.randint(NUM_PAIRS, (num_questions, 1), generator=generator)
    return Questions(
        keys, values, keys.gather(1, places).squeeze(1), values.gather(1, places).squeeze(1)
    )


def learn_to_match(score: Score, key_dim: int, *, seed: int, num_steps: int) -> float:
    """Train one model and test it."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = Matcher(score, key_dim)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(num_steps):
        questions = sample_questions(BATCH, generator)
        loss = functional.cross_entropy(model(questions), questions.answers)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        questions = sample_questions(32 * BATCH, generator)
        return (model(questions).argmax(-1) == questions.answers).float().mean().item()
