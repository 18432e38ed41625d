"""The recall of a name: a task of one of the notes, and small readers that learn it.

“… Professor Martin-Martin assigned us to read the paper. … <additional unrelated text>. I am so
happy that ____ picked this paper.” Here the name comes first, then unrelated words drawn at random,
then “I am so happy that ____”; at the blank the name must be said. The distance is the number of
words between the name and the blank.
"""

from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from dragoman.models.attention.additive_attention import AdditiveAttention
from dragoman.models.attention.mask import Mask
from dragoman.models.options import TransformerOptions
from dragoman.models.positions import SinusoidalPositions
from dragoman.models.recurrent.cells import LSTMCell, make_cell
from dragoman.models.recurrent.layer import RecurrentLayer
from dragoman.models.transformer_layers import EncoderLayer

NAMES = (
    "Alex", "Ashish", "Dzmitry", "Henry", "Illia", "Jakob", "Jane", "Kyunghyun", "Llion", "Lukasz",
    "Martin-Martin", "Mehran", "Niki", "Noam", "Quinn", "Yegor",
)  # fmt: skip
QUESTION = ("I", "am", "so", "happy", "that", "____")
FILLERS = tuple(
    "the paper proposes a new simple neural network architecture called Transformer which relies "
    "upon attention it outperforms RNNs and doesn't rely on recurrence or convolution".split()
)
WORDS = NAMES + QUESTION + FILLERS
SHORTEST = len(QUESTION) - 1
"""The shortest distance: the words of the question before its blank."""

ReaderKind = Literal["RNN", "GRU", "LSTM", "RNN with attention", "Transformer"]
KINDS: tuple[ReaderKind, ...] = get_args(ReaderKind)
WIDTH = 64
BATCH = 64
_NUM_HEADS = 4


class RecurrentReader(nn.Module):
    """A recurrent layer whose last state must say the name.

    Parameters
    ----------
    kind : Literal["rnn", "gru", "lstm"]
        Its cell. An LSTM begins with a forget gate that is rather open (a bias of 1), as is usual.
    """

    def __init__(self, kind: Literal["rnn", "gru", "lstm"]) -> None:
        super().__init__()
        self.words = _make_words()
        self.layer = _make_layer(kind)
        self.answer = nn.Linear(WIDTH, len(NAMES))

    def forward(
        self, vectors: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch names"]:
        """Read sentences.

        Parameters
        ----------
        vectors : Float[Tensor, "batch length width"]
            The vectors of their words.

        Returns
        -------
        Float[Tensor, "batch names"]
            A score for each name at the blank, which is the last word.
        """
        return self.answer(self.layer(vectors)[0][:, -1])


class AttentiveReader(nn.Module):
    """The plain recurrent layer, whose last state may look back at all states before it."""

    def __init__(self) -> None:
        super().__init__()
        self.words = _make_words()
        self.layer = _make_layer("rnn")
        self.attention = AdditiveAttention(WIDTH, WIDTH, WIDTH)
        nn.init.normal_(self.attention.score, std=WIDTH**-0.5)
        self.answer = nn.Linear(2 * WIDTH, len(NAMES))

    def forward(
        self, vectors: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch names"]:
        """Read sentences.

        Parameters
        ----------
        vectors : Float[Tensor, "batch length width"]
            The vectors of their words.

        Returns
        -------
        Float[Tensor, "batch names"]
            A score for each name at the blank, which is the last word.
        """
        states = self.layer(vectors)[0]
        last = states[:, -1:]
        found = self.attention(last, self.attention.prepare(states), states, Mask())
        return self.answer(torch.cat([last, found.values], dim=-1).squeeze(1))


class TransformerReader(nn.Module):
    """One layer of the Transformer's encoder, whose blank must say the name."""

    def __init__(self) -> None:
        super().__init__()
        options = TransformerOptions(
            model_dim=WIDTH, feed_forward_dim=2 * WIDTH, num_heads=_NUM_HEADS, dropout=0.0
        )
        self.words = _make_words()
        self.positions = SinusoidalPositions(WIDTH)
        self.layer = EncoderLayer(options)
        self.answer = nn.Linear(WIDTH, len(NAMES))

    def forward(
        self, vectors: Float[Tensor, "batch length width"]
    ) -> Float[Tensor, "batch names"]:
        """Read sentences.

        Parameters
        ----------
        vectors : Float[Tensor, "batch length width"]
            The vectors of their words, without their places.

        Returns
        -------
        Float[Tensor, "batch names"]
            A score for each name at the blank, which is the last word.
        """
        batch, length, _ = vectors.shape
        lengths = torch.full((batch,), length)
        return self.answer(self.layer(vectors + self.positions(0, length), lengths)[:, -1])


Reader = RecurrentReader | AttentiveReader | TransformerReader


def make_reader(kind: ReaderKind, seed: int) -> Reader:
    """Make a reader with fresh weights.

    Parameters
    ----------
    kind : ReaderKind
        Its kind.
    seed : int
        Of the weights.

    Returns
    -------
    Reader
        On the CPU.
    """
    torch.manual_seed(seed)
    match kind:
        case "RNN":
            return RecurrentReader("rnn")
        case "GRU":
            return RecurrentReader("gru")
        case "LSTM":
            return RecurrentReader("lstm")
        case "RNN with attention":
            return AttentiveReader()
        case "Transformer":
            return TransformerReader()


def tell(
    count: int, distance: int, generator: torch.Generator
) -> Int[Tensor, "count length"]:
    """Make sentences at random.

    Parameters
    ----------
    count : int
        How many.
    distance : int
        Words between the name and the blank; at least those of the question.
    generator : torch.Generator
        Of chance.

    Returns
    -------
    Int[Tensor, "count length"]
        Places in `WORDS`: the name, which is also its place in `NAMES`; then the rest.
    """
    names = torch.randint(len(NAMES), (count, 1), generator=generator)
    first_filler = len(NAMES) + len(QUESTION)
    fillers = torch.randint(
        first_filler, len(WORDS), (count, distance - SHORTEST), generator=generator
    )
    question = torch.arange(len(NAMES), first_filler).expand(count, -1)
    return torch.cat([names, fillers, question], dim=1)


def train_reader(reader: Reader, *, limit: int, num_steps: int, seed: int) -> float:
    """Teach a reader the task at short distances.

    Parameters
    ----------
    reader : Reader
        What learns.
    limit : int
        The longest distance; all from the shortest up to it are drawn alike.
    num_steps : int
        Updates, of 64 sentences each.
    seed : int
        Of the sentences.

    Returns
    -------
    float
        The last update's loss.
    """
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(reader.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, num_steps)
    loss = torch.tensor(0.0)
    for _ in range(num_steps):
        distance = int(torch.randint(SHORTEST, limit + 1, (), generator=generator))
        sentences = tell(BATCH, distance, generator)
        loss = functional.cross_entropy(reader(reader.words(sentences)), sentences[:, 0])
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return loss.item()


@torch.no_grad()
def measure_recall(reader: Reader, distance: int, *, count: int, seed: int) -> float:
    """Measure how often a reader says the name.

    Parameters
    ----------
    reader : Reader
        Trained or not.
    distance : int
        Words between the name and the blank.
    count : int
        Sentences.
    seed : int
        Of the sentences.

    Returns
    -------
    float
        The share of right names.
    """
    sentences = tell(count, distance, torch.Generator().manual_seed(seed))
    return (reader(reader.words(sentences)).argmax(-1) == sentences[:, 0]).double().mean().item()


def _make_words() -> nn.Embedding:
    words = nn.Embedding(len(WORDS), WIDTH)
    nn.init.normal_(words.weight, std=0.4)
    return words


@torch.no_grad()
def _make_layer(kind: Literal["rnn", "gru", "lstm"]) -> RecurrentLayer:
    """Make a recurrent layer that forgets as little as one can make it at first."""
    cell = make_cell(kind, WIDTH, WIDTH)
    for matrix in cell.weight_hidden.split(WIDTH):
        nn.init.orthogonal_(matrix)
    cell.bias.zero_()
    if isinstance(cell, LSTMCell):
        cell.forget_bias.fill_(1)
    return RecurrentLayer(cell)
