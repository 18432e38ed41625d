"""Word order in a Transformer: effects of permutation, and linear probes of positions."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences
from dragoman.models.interface import Vocabulary
from dragoman.models.layers.residual import AddAndNorm
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.layer import reverse_sequences
from dragoman.models.transformer import Transformer
from dragoman.shapes import Float, Int
from dragoman.training.objectives.loss import TrainingStep

NUM_WORDS = 200
PAD_ID, EOS_ID = 0, 1
VOCABULARY = Vocabulary(
    source_size=NUM_WORDS + 2, target_size=NUM_WORDS + 2, pad_id=PAD_ID, eos_id=EOS_ID
)


class NoResidual(nn.Module):
    """A residual connection without the sum: only the output of the sub-layer remains.

    Parameters
    ----------
    connection : AddAndNorm
        The connection, whose norm and dropout are used.

    Notes
    -----
    LayerNorm(Sublayer(x)) in place of LayerNorm(x + Sublayer(x)); with the norm first,
    Sublayer(LayerNorm(x)).
    """

    def __init__(self, connection: AddAndNorm) -> None:
        super().__init__()
        self.connection = connection

    def forward(
        self,
        states: Float[Tensor, "batch length model_dim"],
        sublayer: Callable[[Tensor], Tensor],
        first_position: int = 0,
    ) -> Float[Tensor, "batch length model_dim"]:
        """Apply the sub-layer alone."""
        norm, dropout = self.connection.norm, self.connection.dropout
        if self.connection.position == "pre":
            return dropout(sublayer(norm(states, first_position)))
        return norm(dropout(sublayer(states)), first_position)


def build_transformer(
    positions: str, *, num_layers: int, model_dim: int, seed: int, has_residuals: bool = True
) -> Transformer:
    """Build a Transformer with random weights."""
    torch.manual_seed(seed)
    options = TransformerOptions(
        num_encoder_layers=num_layers,
        num_decoder_layers=num_layers,
        model_dim=model_dim,
        feed_forward_dim=4 * model_dim,
        num_heads=4,
        positions=positions,  # type: ignore[arg-type]
        dropout=0.0,
    )
    model = Transformer(options, VOCABULARY).eval()
    if not has_residuals:
        for layer in model.encoder:
            layer.self_attention_norm = NoResidual(layer.self_attention_norm)  # type: ignore[assignment]
            layer.feed_forward_norm = NoResidual(layer.feed_forward_norm)  # type: ignore[assignment]
    return model


def draw_sentences(
    count: int, generator: torch.Generator, *, shortest: int = 8, longest: int = 24
) -> Sequences:
    """Draw sentences of random words.

    Notes
    -----
    Words have the same distribution at every position, so that only positions tell their place.
    """
    lengths = torch.randint(shortest + 1, longest + 2, (count,), generator=generator)
    words = torch.randint(2, NUM_WORDS + 2, (count, longest + 1), generator=generator)
    places = torch.arange(longest + 1)
    ids = words.where(places < lengths[:, None] - 1, PAD_ID)
    ids[torch.arange(count), lengths - 1] = EOS_ID
    return Sequences(ids, lengths)


def train_to_reverse(model: Transformer, *, num_steps: int, seed: int) -> float:
    """Train a model to reverse sentences, which requires word order."""
    generator = torch.Generator().manual_seed(seed)
    step = TrainingStep(model, label_smoothing=0.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    loss = torch.tensor(0.0)
    for _ in range(num_steps):
        source = draw_sentences(32, generator, shortest=4, longest=12)
        reverse = reverse_sequences(source.ids, source.lengths - 1)
        batch = _pair(source, Sequences(reverse, source.lengths))
        loss = step(batch) / batch.num_target_tokens
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return loss.item()


def draw_order(sentences: Sequences, generator: torch.Generator) -> Int[Tensor, "batch length"]:
    """Draw a random permutation of the words of each sentence.

    Returns
    -------
    Int[Tensor, "batch length"]
        The place from which each word comes; the end symbol and padding stay where they are.
    """
    places = torch.arange(sentences.ids.size(1)).expand_as(sentences.ids)
    drawn = torch.rand(sentences.ids.shape, generator=generator)
    is_word = places < sentences.lengths[:, None] - 1
    return torch.where(is_word, drawn, places + 1.0).argsort(dim=1)


class PermutationEffect(NamedTuple):
    """Effects of permuting the words of the source.

    Attributes
    ----------
    encoder : float
        Largest difference between the encoder's states of the words at their new positions and
        those of the same words before.
    probability : float
        Largest change of the logarithm of a translation's probability.
    """

    encoder: float
    probability: float


@torch.no_grad()
def measure_permutation(model: Transformer, *, count: int, seed: int) -> PermutationEffect:
    """Measure the effects of permuting the words of random sentences."""
    generator = torch.Generator().manual_seed(seed)
    source, target = (draw_sentences(count, generator) for _ in range(2))
    order = draw_order(source, generator)
    other = Sequences(source.ids.gather(1, order), source.lengths)
    before, after = (model.encode(each).hidden for each in (source, other))
    moved = before.gather(1, order.unsqueeze(-1).expand_as(before))
    encoder = (after - moved)[source.is_token].abs().max().item()
    scores = [
        token_log_probabilities(model, _pair(each, target)).sum(1) for each in (source, other)
    ]
    return PermutationEffect(encoder, (scores[0] - scores[1]).abs().max().item())


@torch.no_grad()
def measure_prefix_permutation(model: Transformer, *, count: int, seed: int) -> float:
    """Measure the effect of permuting the decoder's prefix on its next prediction."""
    generator = torch.Generator().manual_seed(seed)
    source = draw_sentences(count, generator)
    # All of one length. The end symbol is not an input: the word before it stays in place.
    target = draw_sentences(count, generator, shortest=12, longest=12)
    shorter = Sequences(target.ids[:, :-1], target.lengths - 1)
    order = draw_order(shorter, generator)
    other = Sequences(
        torch.cat([shorter.ids.gather(1, order), target.ids[:, -1:]], dim=1), target.lengths
    )
    before, after = (model.forward(_pair(source, each)).hidden[:, -1] for each in (target, other))
    return (after - before).abs().max().item()


@torch.no_grad()
def probe_positions(model: Transformer, *, num_train: int, num_test: int, seed: int) -> list[float]:
    r"""Predict the position of each word from its state, by linear regression.

    Returns
    -------
    list[float]
        For the embedding and for each layer :math:`R^2=1-\sum(p-\hat p)^2/\sum(p-\bar p)^2` of
        the places p of the test sentences' words: 1 where all are read off exactly, 0 or less where
        the regression knows nothing.
    """
    generator = torch.Generator().manual_seed(seed)
    train, test = (
        _record_states(model, draw_sentences(count, generator)) for count in (num_train, num_test)
    )
    scores = []
    for (known, known_places), (new, new_places) in zip(train, test, strict=True):
        solution = torch.linalg.lstsq(_with_one(known), known_places, driver="gelsd").solution
        errors = new_places - _with_one(new) @ solution
        spread = new_places - new_places.mean()
        scores.append(1 - (errors.square().sum() / spread.square().sum()).item())
    return scores


def _record_states(
    model: Transformer, sentences: Sequences
) -> list[tuple[Float[Tensor, "words model_dim"], Float[Tensor, "words 1"]]]:
    """Collect the states and positions of all words, after the embedding and each layer."""
    seen: list[Tensor] = []
    hooks = [
        module.register_forward_hook(lambda _module, _given, said: seen.append(said))
        for module in (model.source_embedding, *model.encoder)
    ]
    try:
        model.encode(sentences)
    finally:
        for hook in hooks:
            hook.remove()
    places = torch.arange(sentences.ids.size(1)).expand_as(sentences.ids)
    is_word = places < sentences.lengths[:, None] - 1
    return [(each[is_word].double(), places[is_word].double().unsqueeze(1)) for each in seen]


def _with_one(states: Float[Tensor, "words model_dim"]) -> Float[Tensor, "words more"]:
    """Append a constant column for the intercept."""
    return torch.cat([states, torch.ones_like(states[:, :1])], dim=1)


def _pair(source: Sequences, target: Sequences) -> Batch:
    num_target_tokens = int(target.lengths.sum())
    return Batch(source, target, int(source.lengths.sum()) + num_target_tokens, num_target_tokens)
