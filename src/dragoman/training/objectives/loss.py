"""The step that is trained: a model and its loss."""

from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.data.packing import PackedBatch
from dragoman.kernels.training.cross_entropy import projected_cross_entropy
from dragoman.models.interface import TranslationModel
from dragoman.shapes import Float
from dragoman.training.objectives.token_cutoff import cut_off_tokens


class TrainingStep(nn.Module):
    """The model and its loss as one module: what is compiled or distributed.

    Parameters
    ----------
    model : TranslationModel
        The model.
    label_smoothing : float
        The loss's ε.
    token_cutoff : float
        Share of the words on both sides that are not heard while training.
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
