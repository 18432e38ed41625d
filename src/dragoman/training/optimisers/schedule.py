"""Learning-rate schedules (section 5.3 of the paper)."""

import math

from dragoman.training.options import Schedule


def paper_peak(model_dim: int, warmup_steps: int) -> float:
    r"""Compute the peak learning rate of the paper's schedule."""
    return (model_dim * warmup_steps) ** -0.5


def learning_rate(
    step: float,
    *,
    peak: float,
    warmup_steps: int,
    schedule: Schedule = "inverse-sqrt",
    end: int | None = None,
    decay_share: float = 0.2,
) -> float:
    r"""Compute the learning rate of one update: linear warm-up, then the decay of the schedule.

    Returns
    -------
    float
        The rate: a function of the update alone, so that a resumed run has the same.

    Notes
    -----
    Equation 3 of the paper,
    :math:`d_{model}^{-0.5}\min(step^{-0.5}, step\cdot warmup^{-1.5})`, is “inverse-sqrt” with
    `paper_peak`. “cosine” is half a wave, :math:`\tfrac12(1+\cos\pi p)` at the share p of the
    updates after warm-up (Loshchilov and Hutter, 2017); “warmup-stable-decay” stays at the peak and
    ends in a straight line (Hu et al., 2024); “constant” stays there for ever.
    """
    if schedule == "inverse-sqrt":
        return peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5)
    rise = min(step / warmup_steps, 1.0)
    if schedule == "constant":
        return peak * rise
    assert end is not None, "such a schedule has an end"
    left = max(end - step, 0)
    if schedule == "warmup-stable-decay":
        return peak * min(rise, left / (decay_share * end))
    if step <= warmup_steps:
        return peak * rise
    return peak * math.sin(0.5 * math.pi * left / (end - warmup_steps)) ** 2
