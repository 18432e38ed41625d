"""Name recall over a distance: a task of the lecture notes, and small models that learn it.

“… Professor Martin-Martin assigned us to read the … Paper. … <Additional unrelated text>. I am so
happy that ____ picked this paper.” Here the name comes first, then unrelated words drawn at random,
then “I am so happy that ____”; the name is to be predicted. The distance is the number of
words between the name and the blank.
"""

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.models.attention.additive_attention import AdditiveAttention
from dragoman.models.attention.mask import Mask
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import SinusoidalPositions
from dragoman.models.recurrent.cells import LSTMCell, make_cell
from dragoman.models.recurrent.layer import RecurrentLayer
from dragoman.models.transformer_layers import EncoderLayer
from dragoman.shapes import Float, Int

NAMES = (
    "Martin-Martin", "Alex", "Alice", "Anna", "Ashish", "Aidan", "Boris", "Carla", "Claire",
    "Daniel", "David", "Dzmitry", "Elena", "Emma", "Farid", "Greta", "Hanna", "Henry", "Igor",
    "Illia", "Ines", "Jakob", "Jane", "Julie", "Karim", "Kyunghyun", "Laura", "Llion", "Louis",
    "Lukasz", "Marc", "Marie", "Mehran", "Nadia", "Niki", "Noam", "Oscar", "Paul", "Pierre",
    "Quinn", "Rosa", "Sarah", "Sophie", "Thomas", "Victor", "Yegor", "Yoshua", "Zoe",
)  # fmt: skip
QUESTION = ("I", "am", "so", "happy", "that", "____")
FILLERS = (
    "the", "paper", "proposes", "a", "new", "simple", "neural", "network", "architecture",
    "called", "Transformer", "which", "relies", "upon", "attention", "it", "outperforms", "RNNs",
    "and", "doesn't", "rely", "on", "recurrence", "or", "convolution",
)  # fmt: skip
WORDS = NAMES + QUESTION + FILLERS
SHORTEST = len(QUESTION) - 1
"""The shortest distance: the words of the question before its blank."""

ReaderKind = Literal[
    "RNN", "GRU", "LSTM", "RNN with attention", "Transformer", "Transformer without positions"
]
KINDS: tuple[ReaderKind, ...] = get_args(ReaderKind)
WIDTH = 64
BATCH = 64


class Recipe(NamedTuple):
    """Initialisation and learning rate of a reader.

    Attributes
    ----------
    deviation : float
        Of the entries of words' vectors at first: 1 where they are added to the paper's sinusoids,
        less where tanh follows.
    learning_rate : float
        Of Adam at first; it falls to a twentieth.
    """

    deviation: float
    learning_rate: float


# The better one of the learning rates 0.001 and 0.003 for each kind.
RECIPES: dict[ReaderKind, Recipe] = {
    "RNN": Recipe(0.4, 1e-3),
    "GRU": Recipe(0.4, 3e-3),
    "LSTM": Recipe(0.4, 3e-3),
    "RNN with attention": Recipe(0.4, 3e-3),
    "Transformer": Recipe(1.0, 3e-3),
    "Transformer without positions": Recipe(1.0, 3e-3),
}


class Reader(nn.Module):
    """A model of the task: word embeddings, an encoder, and a classifier at the blank.

    Parameters
    ----------
    kind : ReaderKind
        What reads.
    """

    def __init__(self, kind: ReaderKind) -> None:
        super().__init__()
        self.kind = kind
        self.words = nn.Embedding(len(WORDS), WIDTH)
        nn.init.normal_(self.words.weight, std=RECIPES[kind].deviation)
        self.body = _make_body(kind)
        self.answer = nn.Linear(WIDTH, len(NAMES))

    def forward(self, vectors: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch names"]:
        """Encode sentences."""
        return self.answer(self.body(vectors))


class LastState(nn.Module):
    """A recurrent layer of which only the last state is used.

    Parameters
    ----------
    kind : Literal["rnn", "gru", "lstm"]
        Its cell.
    """

    def __init__(self, kind: Literal["rnn", "gru", "lstm"]) -> None:
        super().__init__()
        self.layer = _make_layer(kind)

    def forward(self, vectors: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch width"]:
        """Encode sentences."""
        return self.layer(vectors)[0][:, -1]


class AttentiveReader(nn.Module):
    """A plain recurrent layer whose last state attends to all states."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = _make_layer("rnn")
        self.attention = AdditiveAttention(WIDTH, WIDTH, WIDTH)
        nn.init.normal_(self.attention.score, std=WIDTH**-0.5)
        self.join = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, vectors: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch width"]:
        """Encode sentences."""
        states = self.layer(vectors)[0]
        last = states[:, -1:]
        found = self.attention(last, self.attention.prepare(states), states, Mask())
        return self.join(torch.cat([last, found.values], dim=-1)).squeeze(1)


class TransformerReader(nn.Module):
    """One layer of a Transformer encoder.

    Parameters
    ----------
    has_positions : bool
        Whether sinusoids are added to the words; this task can do without them.
    """

    def __init__(self, *, has_positions: bool) -> None:
        super().__init__()
        self.positions = SinusoidalPositions(WIDTH) if has_positions else None
        options = TransformerOptions(
            model_dim=WIDTH, feed_forward_dim=2 * WIDTH, num_heads=4, dropout=0.0
        )
        self.layer = EncoderLayer(options)

    def forward(self, vectors: Float[Tensor, "batch length width"]) -> Float[Tensor, "batch width"]:
        """Encode sentences."""
        batch, length, _ = vectors.shape
        if self.positions is not None:
            vectors = vectors + self.positions(0, length)
        return self.layer(vectors, torch.full((batch,), length))[:, -1]


def make_reader(kind: ReaderKind, seed: int) -> Reader:
    """Make a reader with random weights."""
    torch.manual_seed(seed)
    return Reader(kind)


def sample_sentences(
    count: int, distance: int, generator: torch.Generator
) -> Int[Tensor, "count length"]:
    """Sample sentences.

    Returns
    -------
    Int[Tensor, "count length"]
        Places in `WORDS`. The first is the name, and its place is the same in `NAMES`.
    """
    names = torch.randint(len(NAMES), (count, 1), generator=generator)
    first_filler = len(NAMES) + len(QUESTION)
    shape = (count, distance - SHORTEST)
    fillers = torch.randint(first_filler, len(WORDS), shape, generator=generator)
    question = torch.arange(len(NAMES), first_filler).expand(count, -1)
    return torch.cat([names, fillers, question], dim=1)


def train_reader(reader: Reader, *, limit: int, num_steps: int, seed: int) -> float:
    """Train a reader at short distances."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(reader.parameters(), lr=RECIPES[reader.kind].learning_rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, num_steps)
    loss = torch.tensor(0.0)
    for _ in range(num_steps):
        distance = int(torch.randint(SHORTEST, limit + 1, (), generator=generator))
        sentences = sample_sentences(BATCH, distance, generator)
        loss = functional.cross_entropy(reader(reader.words(sentences)), sentences[:, 0])
        optimiser.zero_grad()
        loss.backward()
        # Gradients are clipped, or the plain RNN would not learn at all.
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return loss.item()


@torch.no_grad()
def measure_recall(reader: Reader, distance: int, *, count: int, seed: int) -> float:
    """Measure the accuracy of a reader."""
    sentences = sample_sentences(count, distance, torch.Generator().manual_seed(seed))
    return (reader(reader.words(sentences)).argmax(-1) == sentences[:, 0]).double().mean().item()


def _make_body(kind: ReaderKind) -> LastState | AttentiveReader | TransformerReader:
    match kind:
        case "RNN":
            return LastState("rnn")
        case "GRU":
            return LastState("gru")
        case "LSTM":
            return LastState("lstm")
        case "RNN with attention":
            return AttentiveReader()
        case "Transformer":
            return TransformerReader(has_positions=True)
        case "Transformer without positions":
            return TransformerReader(has_positions=False)


@torch.no_grad()
def _make_layer(kind: Literal["rnn", "gru", "lstm"]) -> RecurrentLayer:
    """Make a recurrent layer initialised to forget as little as possible."""
    cell = make_cell(kind, WIDTH, WIDTH)
    for matrix in cell.weight_hidden.split(WIDTH):
        nn.init.orthogonal_(matrix)
    cell.bias.zero_()
    if isinstance(cell, LSTMCell):
        cell.forget_bias.fill_(1)
    return RecurrentLayer(cell)
