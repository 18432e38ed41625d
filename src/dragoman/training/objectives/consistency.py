"""Training for consistency: two readings of the same pairs shall say the same.

R-Drop (Liang et al., 2021) reads twice with different dropout; SimCut (Gao et al., 2022) reads the
second time with some words cut off.
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
    r"""The model and the loss of two readings of each batch as one module.

    Parameters
    ----------
    model : TranslationModel
        The model.
    options : TrainingOptions
        Which loss, its weight α, how many words are cut off, and label smoothing.

    Notes
    -----
    With p and q the predictions of the two readings of a target token, CE the label-smoothed
    cross-entropy and KL the divergence over the words that can be predicted, not smoothed:

    R-Drop
        :math:`\frac12\left(\mathrm{CE}(p)+\mathrm{CE}(q)
        +\frac\alpha2(\mathrm{KL}(p\|q)+\mathrm{KL}(q\|p))\right)`, half of what was published, so
        that its cross-entropy is the mean of the two readings.
    SimCut
        :math:`\mathrm{CE}(p)+\alpha\,\mathrm{KL}(p\|q)`, with q the reading with words cut off on
        both sides; gradients go through p and q.

    So the value in the log is the cross-entropy of ordinary training and α times what the readings
    differ by. Where the family adds a loss of its own, it is the mean of the two readings'.
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
    """Say how much each part of the loss counts."""
    weight = options.consistency_weight
    if options.consistency == "simcut":
        return Parts(1.0, 0.0, weight, 0.0)
    return Parts(0.5, 0.5, weight / 4, weight / 4)
