"""The training step: a model and its loss, and the objective that the options ask for."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.data.packing import PackedBatch
from dragoman.kernels.training.cross_entropy import projected_cross_entropy
from dragoman.models.interface import TranslationModel, Vocabulary
from dragoman.shapes import Float
from dragoman.training.objectives.consistency import ConsistencyStep
from dragoman.training.objectives.token_cutoff import cut_off_tokens
from dragoman.training.options import TrainingOptions

if TYPE_CHECKING:
    from dragoman.training.objectives.reward import RewardStep


class TrainingStep(nn.Module):
    """The model and its loss as one module, the unit that is captured and sharded.

    Parameters
    ----------
    model : TranslationModel
        The model.
    label_smoothing : float
        The loss's ε.
    token_cutoff : float
        Share of the tokens on both sides that are masked while training.
    """

    def __init__(
        self, model: TranslationModel, label_smoothing: float, token_cutoff: float = 0.0
    ) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing
        self.token_cutoff = token_cutoff

    def forward(self, batch: Batch | PackedBatch) -> Float[Tensor, ""]:
        """Compute the loss of a batch."""
        output = self.model.output
        if self.training:
            batch = cut_off_tokens(batch, self.token_cutoff, output.pad_id)
        hidden, auxiliary_loss = self.model.forward(batch)
        states, words = output.factors(hidden.flatten(0, -2))
        loss = projected_cross_entropy(
            states,
            words,
            batch.target.ids.flatten(),
            output.pad_id,
            self.label_smoothing,
        )
        return loss if auxiliary_loss is None else loss + auxiliary_loss * batch.num_target_tokens


def make_training_step(
    model: TranslationModel,
    options: TrainingOptions,
    vocabulary: Vocabulary,
    max_length: int | None,
) -> "TrainingStep | RewardStep | ConsistencyStep":
    """Join a model with the objective it is trained for: likelihood, consistency or reward."""
    if options.consistency != "none":
        return ConsistencyStep(model, options)
    likelihood = TrainingStep(model, options.label_smoothing, options.token_cutoff)
    if options.objective == "likelihood":
        return likelihood
    # Samples translations: only training for reward loads the search.
    from dragoman.training.objectives.reward import RewardStep

    return RewardStep(likelihood, options, vocabulary, max_length)
