"""The learning rate as a function of the update (section 5.3 of the paper)."""


def paper_peak(model_dim: int, warmup_steps: int) -> float:
    r"""Compute the learning rate at which the paper's warm-up ends.

    Parameters
    ----------
    model_dim : int
        Width of the model.
    warmup_steps : int
        Updates of warm-up.

    Returns
    -------
    float
        :math:`(d_{model}\cdot warmup)^{-1/2}`: 6.99e-4 for the base model.
    """
    return (model_dim * warmup_steps) ** -0.5


def learning_rate(step: int, *, peak: float, warmup_steps: int) -> float:
    r"""Compute the learning rate of one update: a linear rise, then the inverse square root.

    Parameters
    ----------
    step : int
        The update, counted from 1.
    peak : float
        The rate at the end of warm-up.
    warmup_steps : int
        Updates of warm-up.

    Returns
    -------
    float
        The rate.

    Notes
    -----
    Equation 3 of the paper,
    :math:`d_{model}^{-0.5}\min(step^{-0.5}, step\cdot warmup^{-1.5})`, is this with `paper_peak`.
    """
    return peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5)
