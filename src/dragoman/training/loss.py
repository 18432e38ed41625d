"""The step that is trained: a model and its loss."""

from jaxtyping import Float
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.data.packing import PackedBatch
from dragoman.kernels.cross_entropy import projected_cross_entropy
from dragoman.models.interface import TranslationModel


class TrainingStep(nn.Module):
    """The model and its loss as one module: what is compiled or distributed.

    Parameters
    ----------
    model : TranslationModel
        The model.
    label_smoothing : float
        The loss's ε.
    """

    def __init__(self, model: TranslationModel, label_smoothing: float) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = label_smoothing

    def forward(self, batch: Batch | PackedBatch) -> Float[Tensor, ""]:
        """Compute the loss of a batch.

        Parameters
        ----------
        batch : Batch | PackedBatch
            Sentence pairs.

        Returns
        -------
        Float[Tensor, ""]
            The sum over its target tokens.
        """
        hidden, auxiliary_loss = self.model.forward(batch)
        output = self.model.output
        loss = projected_cross_entropy(
            hidden.flatten(0, -2),
            output.words,
            batch.target.ids.flatten(),
            output.pad_id,
            self.label_smoothing,
        )
        return loss if auxiliary_loss is None else loss + auxiliary_loss * batch.num_target_tokens
