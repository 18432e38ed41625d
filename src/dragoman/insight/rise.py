"""Importance of source words for target words in any black box: RISE and occlusion."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, OptionError
from dragoman.insight.word_groups import WordGroups, group_words
from dragoman.models.interface import TranslationModel
from dragoman.models.likelihood import token_log_probabilities
from dragoman.shapes import Bool, Float

HIDDEN_SHARE = 0.25
"""Of the source words, in a random mask."""

MOST_WAYS = 256
"""Of hiding words that are tried all, in one go."""

# Scores that exist at a time: target tokens × words of the vocabulary.
_BATCH_SCORES = 1 << 23
_MOST_ROWS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Importance:
    """The importance of source words for target words, with standard errors.

    Parameters
    ----------
    values : Float[np.ndarray, "targets sources"]
        By how much the log-probability of a target word is higher, in nats, when a source word is
        there than when it is not.
    errors : Float[np.ndarray, "targets sources"]
        Their Monte-Carlo standard errors; zero where nothing was left to chance.
    num_masks : int
        Sentences with hidden words that the model has read.
    is_exact : bool
        Whether those were all the ways of hiding words.
    """

    values: Float[np.ndarray, "targets sources"]
    errors: Float[np.ndarray, "targets sources"]
    num_masks: int
    is_exact: bool


class MaskedScorer:
    """Scores the words of a translation while source words are masked.

    Parameters
    ----------
    model : TranslationModel
        Any model, not in training.
    source : WordGroups
        The sentence; its end symbol is never hidden.
    target : WordGroups
        The translation, which the model is made to say.
    pad_id : int
        The padding.
    vocabulary_size : int
        Words that the model scores at each place.
    device : torch.device
        Where the model is.

    Notes
    -----
    A hidden word is left out of the sentence, as a person would delete it. The model is a black
    box: it is only asked for the log-probability of each target word, given the target words
    before it; that of a word is the sum of its subwords'.
    """

    def __init__(
        self,
        model: TranslationModel,
        source: WordGroups,
        target: WordGroups,
        *,
        pad_id: int,
        vocabulary_size: int,
        device: torch.device,
    ) -> None:
        if len(source.words) < 2:
            raise DataError("the sentence to explain is empty; give at least one word")
        self._model = model
        self._source = source
        self._target = target
        self._pad_id = pad_id
        self._num_rows = max(1, _BATCH_SCORES // (len(target.ids) * vocabulary_size))
        self._device = device

    @staticmethod
    def of(translator: Translator, source: str, translation: str) -> "MaskedScorer":
        """Make the scorer of a translator's model, a sentence and its translation.

        Parameters
        ----------
        translator : Translator
            The translator; what is asked is the model as it was trained.
        source : str
            The sentence.
        translation : str
            Its translation, whoever made it.

        Returns
        -------
        MaskedScorer
            The scorer.
        """
        vocabularies = translator.folder.vocabularies
        return MaskedScorer(
            translator.model,
            group_words(vocabularies.source, source),
            group_words(vocabularies.target, translation),
            pad_id=vocabularies.pad_id,
            vocabulary_size=len(vocabularies.target),
            device=translator.device,
        )

    @property
    def num_words(self) -> int:
        """The number of source words that can be masked."""
        return len(self._source.words) - 1

    @torch.inference_mode()
    def score(
        self, visible: Bool[np.ndarray, "masks sources"]
    ) -> Float[np.ndarray, "masks targets"]:
        """Compute the log-probability of each target word under each mask.

        Parameters
        ----------
        visible : Bool[np.ndarray, "masks sources"]
            For each mask which source words are there.

        Returns
        -------
        Float[np.ndarray, "masks targets"]
            Log-probabilities.
        """
        shown = np.pad(visible, ((0, 0), (0, 1)), constant_values=True)[:, self._source.word_of]
        ids = np.array(self._source.ids)
        num_rows = min(_MOST_ROWS, self._num_rows)
        found = []
        for first in range(0, len(shown), num_rows):
            sources = [ids[row].tolist() for row in shown[first : first + num_rows]]
            targets = [self._target.ids] * len(sources)
            batch = make_batch(flatten(sources), flatten(targets), self._pad_id)
            logs = token_log_probabilities(self._model, batch.to(self._device))
            found.append(logs.double().cpu().numpy())
        words = np.zeros((len(shown), len(self._target.words)))
        np.add.at(words.T, np.array(self._target.word_of), np.concatenate(found).T)
        return words


class Rise:
    r"""Randomised input sampling for explanation, as a stream of estimates.

    Parameters
    ----------
    scorer : MaskedScorer
        What is asked.
    num_masks : int
        How many masks to try in all.
    hidden_share : float
        The probability with which each word is hidden.
    seed : int
        Of the masks.

    Notes
    -----
    Petsiuk et al. (2018) average what a black box says of an input under random masks,
    :math:`S_i = E[f(x \odot M) \, M_i] / E[M_i]`, and see only differences between places. Here
    the mean is taken off, and what is left is measured in units of the mask,

    .. math:: \beta_i = \operatorname{Cov}(f, M_i) / \operatorname{Var}(M_i)
              = E[f \mid M_i = 1] - E[f \mid M_i = 0],

    the log-probability that a target word loses on average when source word i is hidden. Since
    words are hidden independently, these are also the coefficients of the best linear
    approximation of f by all masks together; estimating them together takes off what the chance
    presence of the other words adds to each: on the demo’s model nine tenths of the variance.
    The standard errors are those of regression without assumptions about the noise (HC3).
    Within a block of masks each word is hidden equally often.

    Of up to eight words, if there are no more ways of hiding them than masks, all ways are tried,
    weighted by their probability, and nothing is left to chance.
    """

    def __init__(
        self,
        scorer: MaskedScorer,
        num_masks: int,
        *,
        hidden_share: float = HIDDEN_SHARE,
        seed: int = 1,
    ) -> None:
        if not 0 < hidden_share < 1:
            raise OptionError(f"hidden_share is {hidden_share}: must be between 0 and 1")
        self.is_exact = 2**scorer.num_words <= min(num_masks, MOST_WAYS)
        fewest = minimum_masks(scorer.num_words)
        if num_masks < fewest and not self.is_exact:
            raise OptionError(
                f"--masks is {num_masks}: {scorer.num_words} source words need at least {fewest}"
            )
        self._scorer = scorer
        self._num_masks = num_masks
        self._hidden_share = hidden_share
        self._random = np.random.default_rng(seed)

    def estimates(self, block_size: int = 64) -> Iterator[Importance]:
        """Score masks block by block, yielding an estimate after each.

        Parameters
        ----------
        block_size : int
            Masks to try between two estimates.

        Yields
        ------
        Importance
            What is known by then, from the first block on that has masks enough.
        """
        if self.is_exact:
            yield self._try_all()
            return
        fewest = minimum_masks(self._scorer.num_words)
        visible = np.zeros((0, self._scorer.num_words), bool)
        scores: np.ndarray | None = None
        while len(visible) < self._num_masks:
            size = min(max(block_size, fewest), self._num_masks - len(visible))
            block = self._draw(size)
            found = self._scorer.score(block)
            visible = np.concatenate([visible, block])
            scores = found if scores is None else np.concatenate([scores, found])
            yield regress(visible, scores)

    def estimate(self) -> Importance:
        """Score all masks and return the estimate.

        Returns
        -------
        Importance
            The last of `estimates`.
        """
        *_, last = self.estimates()
        return last

    def _draw(self, size: int) -> Bool[np.ndarray, "masks sources"]:
        """Sample masks that hide each word equally often, rounding at random."""
        wanted = self._hidden_share * size
        count = int(wanted) + (self._random.random(self._scorer.num_words) < wanted % 1)
        places = np.arange(size)[:, None]
        return self._random.permuted(places >= count, axis=0)

    def _try_all(self) -> Importance:
        """Score every possible mask, weighted by its probability."""
        num_words = self._scorer.num_words
        visible = np.array(list(itertools.product([False, True], repeat=num_words)))
        scores = self._scorer.score(visible)
        weights = np.where(visible, 1 - self._hidden_share, self._hidden_share).prod(1)
        values = [
            weights[one] @ scores[one] / weights[one].sum()
            - weights[~one] @ scores[~one] / weights[~one].sum()
            for one in visible.T
        ]
        found = np.stack(values, axis=1)
        return Importance(
            values=found, errors=np.zeros_like(found), num_masks=len(visible), is_exact=True
        )


def minimum_masks(num_words: int) -> int:
    """Compute how many masks are needed for an estimate and its standard error.

    Parameters
    ----------
    num_words : int
        Source words.

    Returns
    -------
    int
        Twice the unknowns, and never fewer than sixteen.
    """
    return max(16, 2 * (num_words + 1))


def regress(
    visible: Bool[np.ndarray, "masks sources"], scores: Float[np.ndarray, "masks targets"]
) -> Importance:
    r"""Regress scores on visible words, with heteroscedasticity-robust standard errors.

    Parameters
    ----------
    visible : Bool[np.ndarray, "masks sources"]
        For each mask which source words were there.
    scores : Float[np.ndarray, "masks targets"]
        What the model said of each target word.

    Returns
    -------
    Importance
        The coefficients of all source words, and their standard errors.

    Notes
    -----
    With :math:`X` the masks and a column of ones, :math:`H = X (X^\top X)^{-1}` and residuals
    :math:`e`, the variance of coefficient i is :math:`\sum_n H_{ni}^2 (e_n / (1 - h_n))^2`, where
    :math:`h_n` is the leverage of mask n: the estimator HC3 (MacKinnon & White, 1985).
    """
    design = np.column_stack([np.ones(len(visible)), visible])
    hat = design @ np.linalg.pinv(design.T @ design)
    coefficients = hat.T @ scores
    residuals = scores - design @ coefficients
    leverage = np.minimum((hat * design).sum(1), 1 - 1e-9)
    variances = (hat**2).T @ (residuals / (1 - leverage)[:, None]) ** 2
    return Importance(
        values=coefficients[1:].T,
        errors=np.sqrt(variances[1:]).T,
        num_masks=len(visible),
        is_exact=False,
    )


def occlude(scorer: MaskedScorer) -> Float[np.ndarray, "targets sources"]:
    """Mask each source word by itself, all others visible.

    Parameters
    ----------
    scorer : MaskedScorer
        What is asked.

    Returns
    -------
    Float[np.ndarray, "targets sources"]
        By how much the log-probability of a target word falls, in nats.

    Notes
    -----
    Exact, and what RISE tends to as fewer words are hidden. Of two source words that say the same
    it finds neither, since the other is always there.
    """
    num_words = scorer.num_words
    visible = np.concatenate([np.ones((1, num_words), bool), ~np.eye(num_words, dtype=bool)])
    scores = scorer.score(visible)
    return (scores[0] - scores[1:]).T
