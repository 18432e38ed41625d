"""Model sizes, batch sizes and dropout by time budget, tuned in the study of budgets.

docs/recipes.md shows the study.
"""

import math
from typing import NamedTuple

from dragoman.options import Plain


class Shape(NamedTuple):
    """A candidate size of the model, and the peak learning rate tuned for it."""

    num_encoder_layers: int
    num_decoder_layers: int
    model_dim: int
    num_heads: int
    peak_learning_rate: float

    @property
    def model(self) -> Plain:
        """Return the model options of this size."""
        shape = self._asdict() | {"feed_forward_dim": 4 * self.model_dim, "norm_position": "pre"}
        del shape["peak_learning_rate"]
        return shape


SHAPES = (
    Shape(2, 2, 128, 4, 0.003),
    Shape(4, 4, 128, 4, 0.003),
    Shape(4, 4, 192, 4, 0.003),
    Shape(3, 3, 256, 4, 0.003),
    Shape(6, 6, 256, 4, 0.002),
    Shape(6, 6, 384, 6, 0.0015),
    Shape(6, 6, 512, 8, 0.001),
)
LARGEST_FOR_FEW_PAIRS, FEW_PAIRS = 4, 400_000
TOKENS_PER_PARAMETER = 3.0
"""Tokens per parameter from which a larger model is better."""
BATCHES, MOST_UPDATES = (1000, 2000, 4000, 8000, 16_000, 25_000, 50_000), 10_000
LEAST_UPDATES = 1500
WARMUP_SHARE, LONGEST_WARMUP = 0.06, 800
CONSISTENCY_PASSES = 60.0
"""Passes from which R-Drop is better than twice as many passes without it."""
MOST_PASSES, ENOUGH_TOKENS = 40.0, 128e6
"""Passes and tokens after which longer training did not help."""
DROPOUT_BY_PASSES = ((8.0, 0.0), (30.0, 0.1), (math.inf, 0.2))
CONSISTENT_DROPOUT_BY_PASSES = ((40.0, 0.1), (100.0, 0.2), (math.inf, 0.3))


def make_recipe(shape: Shape) -> Plain:
    """Return the options of a model size, except those that depend on its speed."""
    training = {
        "peak_learning_rate": shape.peak_learning_rate,
        "clip_norm": 1.0,
        "schedule": "cosine",
        "warmup_steps": 100,
    }
    return {"model": shape.model, "training": training}


def choose_regularisation(passes: float) -> tuple[float, Plain]:
    """Choose dropout, and whether to use consistency training, by the number of passes."""
    if passes < CONSISTENCY_PASSES:
        return _by_passes(DROPOUT_BY_PASSES, passes), {}
    consistency = {"consistency": "r-drop", "consistency_weight": 5.0}
    return _by_passes(CONSISTENT_DROPOUT_BY_PASSES, passes / 2), consistency


def _by_passes(table: tuple[tuple[float, float], ...], passes: float) -> float:
    return next(dropout for limit, dropout in table if passes < limit)


def choose_batch(tokens: float) -> int:
    """Choose the smallest batch size that stays within the useful number of updates."""
    fitting = [each for each in BATCHES if LEAST_UPDATES * each <= tokens] or [BATCHES[0]]
    least = max((each for each in fitting if each <= 4000), default=fitting[0])
    enough = (each for each in fitting if each >= least and tokens <= MOST_UPDATES * each)
    return next(enough, fitting[-1])
