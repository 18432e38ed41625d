"""Consistency training: the predictions of two forward passes of the same batch should agree.

R-Drop (Liang et al., 2021) runs both with dropout of their own; SimCut (Gao et al., 2022) runs the
second with some tokens masked.
"""

from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.data.packing import PackedBatch
from dragoman.kernels.training.consistent_cross_entropy import Parts, consistent_cross_entropy
from dragoman.models.interface import TranslationModel
from dragoman.shapes import Float
from dragoman.training.objectives.token_cutoff import cut_off_tokens
from dragoman.training.options import TrainingOptions


class ConsistencyStep(nn.Module):
    r"""The model and its loss over two forward passes of each batch as one module.

    Parameters
    ----------
    model : TranslationModel
        The model.
    options : TrainingOptions
        The kind of loss, its weight α, the share of masked tokens, and label smoothing.

    Notes
    -----
    With p and q the predictions of the two passes for a target token, CE the label-smoothed
    cross-entropy and KL the divergence over the vocabulary, not smoothed:

    R-Drop
        :math:`\frac12\left(\mathrm{CE}(p)+\mathrm{CE}(q)
        +\frac\alpha2(\mathrm{KL}(p\|q)+\mathrm{KL}(q\|p))\right)`, half of what was published, so
        that its cross-entropy is the mean of the two passes.
    SimCut
        :math:`\mathrm{CE}(p)+\alpha\,\mathrm{KL}(p\|q)`, with q the pass with tokens masked on
        both sides; gradients go through p and q.

    So the value in the log is the cross-entropy of ordinary training plus α times the divergence.
    Where the family adds an auxiliary loss, it is the mean of the two passes.
    A batch takes two to three times the time and memory of ordinary training.
    """

    def __init__(self, model: TranslationModel, options: TrainingOptions) -> None:
        super().__init__()
        self.model = model
        self.label_smoothing = options.label_smoothing
        self.parts = _parts(options)
        is_cut = options.consistency == "simcut"
        second = options.cutoff if is_cut else options.token_cutoff
        self.cutoffs = (options.token_cutoff, second)

    def forward(self, batch: Batch | PackedBatch) -> Float[Tensor, ""]:
        """Compute the loss of a batch."""
        output = self.model.output
        shares = self.cutoffs if self.training else (0.0, 0.0)
        readings = [
            self.model.forward(cut_off_tokens(batch, share, output.pad_id)) for share in shares
        ]
        (first, words), (second, _) = (
            output.factors(reading.hidden.flatten(0, -2)) for reading in readings
        )
        loss = consistent_cross_entropy(
            first,
            second,
            words,
            batch.target.ids.flatten(),
            output.pad_id,
            self.label_smoothing,
            self.parts,
        )
        for reading in readings:
            if reading.auxiliary_loss is not None:
                loss = loss + reading.auxiliary_loss * (batch.num_target_tokens / 2)
        return loss


def _parts(options: TrainingOptions) -> Parts:
    """Return the weights of the terms of the loss."""
    weight = options.consistency_weight
    if options.consistency == "simcut":
        return Parts(1.0, 0.0, weight, 0.0)
    return Parts(0.5, 0.5, weight / 4, weight / 4)
