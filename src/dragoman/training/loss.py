"""Label-smoothed cross-entropy (section 5.4 of the paper), and the step that is trained."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.models.embedding import OutputLayer
from dragoman.models.interface import TranslationModel


def smoothed_cross_entropy(
    output: OutputLayer,
    hidden: Float[Tensor, "batch length model_dim"],
    targets: Int[Tensor, "batch length"],
    smoothing: float,
) -> Float[Tensor, "batch length"]:
    r"""Compute the loss of each target position.

    Parameters
    ----------
    output : OutputLayer
        From hidden states to scores.
    hidden : Float[Tensor, "batch length model_dim"]
        What the decoder says.
    targets : Int[Tensor, "batch length"]
        The true words.
    smoothing : float
        The share ε of probability that the ideal answer spreads evenly over all subwords that can
        be predicted.

    Returns
    -------
    Float[Tensor, "batch length"]
        Cross-entropy in nats; meaningless at padding.

    Notes
    -----
    With :math:`z` the scores of the K possible subwords and y the true one,
    :math:`\log\sum_k e^{z_k} - (1-\epsilon) z_y - \frac{\epsilon}{K}\sum_k z_k`. The last sum is
    linear in the hidden state, so it is had from the mean of the word vectors without a second
    pass over the vocabulary.
    """
    logits = output(hidden).float()
    true = logits.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    mean = (hidden @ output.mean_word.to(hidden.dtype)).float()
    return logits.logsumexp(-1) - (1 - smoothing) * true - smoothing * mean


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

    def forward(self, batch: Batch) -> Float[Tensor, ""]:
        """Compute the loss of a batch.

        Parameters
        ----------
        batch : Batch
            Sentence pairs.

        Returns
        -------
        Float[Tensor, ""]
            The sum over its target tokens.
        """
        hidden, auxiliary_loss = self.model.forward(batch)
        losses = smoothed_cross_entropy(
            self.model.output, hidden, batch.target.ids, self.label_smoothing
        )
        loss = losses.where(batch.target.is_token, 0.0).sum()
        return loss if auxiliary_loss is None else loss + auxiliary_loss * batch.num_target_tokens
