"""Warn once when validation has stopped improving long before the end of a run."""

from dragoman.training.checkpoints.checkpoint import Progress
from dragoman.training.log import Log, SilentLog
from dragoman.training.options import ENDING_SCHEDULES, TrainingOptions
from dragoman.training.stopping import share_done

LEAST_VALIDATIONS = 3
"""Consecutive validations without improvement before a warning."""

STALE_SHARE = 1 / 3
"""Share of all updates so far that were made since the last improvement."""

SHARE_LEFT = 0.25
"""Smallest remaining share of the run for which a warning is given."""

RISEN = 1.02
"""Ratio to its lowest value from which the validation loss counts as risen."""


def note_validation(
    options: TrainingOptions, progress: Progress, valid_loss: float, log: Log | SilentLog
) -> None:
    """Record the validation loss, and warn once if the run has stagnated.

    Parameters
    ----------
    options : TrainingOptions
        The limits and the schedule.
    progress : Progress
        Where the run stands, this validation being counted; kept up to date.
    valid_loss : float
        The loss that the validation found.
    log : Log | SilentLog
        Is told the event ``stagnation`` and one line for a person, once in a run.

    Notes
    -----
    With a schedule that falls to zero most is learnt at the end, when the rate is low: there a
    plateau is no reason to warn, unless the model overfits too.
    """
    lowest = progress.lowest_valid_loss
    if lowest is None or valid_loss < lowest:
        progress.lowest_valid_loss, progress.lowest_valid_step = valid_loss, progress.step
        progress.training_loss_then = progress.lowest_loss
    share = share_done(options, progress)
    if progress.is_stagnation_told or share is None or 1 - share <= SHARE_LEFT:
        return
    is_overfitting = overfits(progress, valid_loss)
    may_still_fall = options.schedule in ENDING_SCHEDULES and not is_overfitting
    if may_still_fall or not is_stale(options, progress):
        return
    progress.is_stagnation_told = True
    since = _improved_step(progress)
    log.event(
        "stagnation",
        step=progress.step,
        since=since,
        share_done=share,
        is_overfitting=is_overfitting,
        loss=valid_loss,
        lowest_loss=progress.lowest_valid_loss,
    )
    log.say(_advise(options, progress.step, since, share, is_overfitting=is_overfitting))


def is_stale(options: TrainingOptions, progress: Progress) -> bool:
    """Tell whether validation has not improved for a large part of the run.

    Returns
    -------
    bool
        True if after warm-up, in the last third of the run so far and in three validations at
        least, none was the best and none had the lowest loss.
    """
    stale = progress.step - max(_improved_step(progress), options.warmup_steps)
    return stale >= max(LEAST_VALIDATIONS * options.validate_every, STALE_SHARE * progress.step)


def overfits(progress: Progress, valid_loss: float) -> bool:
    """Tell whether the model overfits: training loss falls while validation loss rises.

    Returns
    -------
    bool
        True if the validation loss has risen since its lowest value while the training loss fell.
    """
    lowest, then, now = (
        progress.lowest_valid_loss, progress.training_loss_then, progress.lowest_loss
    )  # fmt: skip
    if lowest is None or then is None or now is None:
        return False
    return valid_loss > RISEN * lowest and now < then


def _improved_step(progress: Progress) -> int:
    """Return the last step at which a validation was the best so far, by score or by loss."""
    return max(progress.best_step, progress.lowest_valid_step)


def _advise(
    options: TrainingOptions, step: int, since: int, share: float, *, is_overfitting: bool
) -> str:
    """Format the warning, with advice."""
    why = (
        "validation loss rises while training loss falls, so the model learns the training pairs "
        "by heart: more pairs or a higher --dropout would help more than more updates"
        if is_overfitting
        else "more pairs or a larger model would help more than more updates"
    )
    remedy = (
        "Ctrl-C keeps the best model; a new run with fewer --max-steps lowers its rate sooner"
        if options.schedule in ENDING_SCHEDULES
        else "Ctrl-C keeps the best model"
    )
    return (
        f"step {step:,}: validation has not improved since step {since:,}, and "
        f"{100 * (1 - share):.0f} % of the run is still to come; {why}. {remedy}"
    )
