"""Reward training (Wu et al., 2016): maximise the expected GLEU of sampled translations."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences
from dragoman.decoding.search.sampling import Samples, sample_translations
from dragoman.evaluation.gleu import sentence_gleu
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.shapes import Float, Int
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.options import TrainingOptions

# A translation twice as long as its reference has at most half of its n-grams right.
LONGEST_SAMPLE = 2


class RewardStep(nn.Module):
    r"""The model and the mixed objective of expected reward and likelihood as one module.

    Parameters
    ----------
    likelihood : TrainingStep
        The model and its likelihood loss.
    options : TrainingOptions
        How many samples to draw, and how much the likelihood counts.
    vocabulary : Vocabulary
        The special symbols.
    max_length : int | None
        Longest translation that the model can write; None: any.

    Notes
    -----
    Minimised is, summed over sentence pairs (x, y),

    .. math:: \alpha L(x, y) - \sum_{z} p(z \mid x)\,\mathrm{GLEU}(z, y),

    where L is the loss of `TrainingStep`. The sum over all translations z is estimated by n
    samples of the model, and its gradient by

    .. math:: \frac{1}{n-1} \sum_k (r_k - \bar r) \nabla \log p(z_k \mid x)

    with :math:`r_k` the reward of a sample and :math:`\bar r` the mean of all n. Dividing by n − 1
    and not by n makes up for the sample that is part of its own baseline, so the estimate has no
    bias. The value returned is α L minus the mean reward, so that what the log shows has a meaning.

    Dropout (and all else that training switches on) works in the likelihood, and is off both while
    samples are drawn and where their probability is computed: were it on in one of them alone, the
    samples would come from another distribution than the one whose gradient is taken.

    Rewards compare subwords without the end symbol. Samples longer than twice their reference are
    cut off there. A batch takes as much memory as n + 1 batches of ordinary training.
    """

    def __init__(
        self,
        likelihood: TrainingStep,
        options: TrainingOptions,
        vocabulary: Vocabulary,
        max_length: int | None,
    ) -> None:
        super().__init__()
        self.likelihood = likelihood
        self.likelihood_weight = options.likelihood_weight
        self.num_samples = options.reward_samples
        self.vocabulary = vocabulary
        self.max_length = max_length

    def forward(self, batch: Batch) -> Float[Tensor, ""]:
        """Compute the loss of a batch."""
        likelihood = self.likelihood_weight * self.likelihood(batch)
        model = self.likelihood.model
        limits = LONGEST_SAMPLE * batch.target.lengths
        if self.max_length is not None:
            limits = limits.clamp(max=self.max_length)
        with _evaluation_mode(model):  # type: ignore[arg-type]
            samples = sample_translations(
                model, batch.source, self.vocabulary, num_samples=self.num_samples, limits=limits
            )
            logs = token_log_probabilities(model, pair_samples(batch.source, samples)).sum(1)
        rewards = reward_samples(samples, batch.target)
        mean = rewards.mean(1, keepdim=True)
        advantages = (rewards - mean) / (self.num_samples - 1)
        estimate = (advantages * logs.view_as(rewards)).sum()
        return likelihood - mean.sum() - (estimate - estimate.detach())


def reward_samples(samples: Samples, target: Sequences) -> Float[Tensor, "sentences samples"]:
    """Compute the reward (GLEU) of samples."""
    num_samples = samples.lengths.size(1)
    num_words = samples.lengths - samples.has_end.long()
    scores = sentence_gleu(
        samples.ids.flatten(0, 1),
        num_words.flatten(),
        _repeat(target.ids, num_samples),
        _repeat(target.lengths - 1, num_samples),
    )
    return scores.view_as(num_words)


def pair_samples(source: Sequences, samples: Samples) -> Batch:
    """Make a batch of samples as targets, each with its source."""
    num_samples = samples.lengths.size(1)
    sources = Sequences(_repeat(source.ids, num_samples), _repeat(source.lengths, num_samples))
    targets = Sequences(samples.ids.flatten(0, 1), samples.lengths.flatten())
    num_target_tokens = int(targets.lengths.sum())
    num_tokens = int(sources.lengths.sum()) + num_target_tokens
    return Batch(sources, targets, num_tokens, num_target_tokens)


def _repeat(rows: Int[Tensor, "sentences *any"], count: int) -> Int[Tensor, "rows *any"]:
    return rows.repeat_interleave(count, dim=0)


@contextmanager
def _evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode while the context lasts."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
