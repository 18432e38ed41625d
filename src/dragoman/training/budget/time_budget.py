"""Keep a planned run within its time budget by correcting its number of updates."""

from dragoman.training.checkpoints.checkpoint import Progress
from dragoman.training.options import ENDING_SCHEDULES, TrainingOptions

TOLERANCE = 0.05
"""Tolerated deviation of the predicted end, as a share of the budget."""
LEAST_SHARE = 0.15
"""Share of the planned updates after which the measured speed is trusted."""
FINISHING_SHARE, FINISHING_SECONDS = 0.01, 6.0


def finishing_seconds(budget: float) -> float:
    """Return the seconds of a budget reserved for the work after the last validation."""
    return FINISHING_SECONDS + FINISHING_SHARE * budget


def has_budget(options: TrainingOptions) -> bool:
    """Tell whether a run has both a planned number of updates and a time limit."""
    is_planned = options.max_steps is not None and options.schedule in ENDING_SCHEDULES
    return is_planned and options.max_minutes is not None


def schedule_position(options: TrainingOptions, progress: Progress) -> float:
    """Return the position of the current update in the schedule, after corrections.

    Returns
    -------
    float
        The update itself until a correction; from there on it approaches the planned last update
        faster or slower, so that the schedule ends where the run does.
    """
    if not progress.end_step or options.max_steps is None:
        return progress.step
    left = progress.end_step - progress.corrected_step
    share = (progress.step - progress.corrected_step) / left if left > 0 else 1.0
    return progress.corrected_position + share * (options.max_steps - progress.corrected_position)


def last_update(options: TrainingOptions, progress: Progress) -> int | None:
    """Return the number of the last update."""
    return progress.end_step or options.max_steps


class BudgetCorrector:
    """Corrects the planned number of updates when the measured speed differs from the plan.

    Parameters
    ----------
    options : TrainingOptions
        The budget and the plan.
    progress : Progress
        Where the run stands as it starts or goes on.
    """

    def __init__(self, options: TrainingOptions, progress: Progress) -> None:
        self._options = options
        self._first = (progress.step, progress.seconds)

    def correct(self, progress: Progress, validation_seconds: float) -> str:
        """Compare the measured speed with the budget after a validation; correct the plan.

        Notes
        -----
        A run at the planned speed is never corrected, and so ends with the same weights whether it
        was interrupted or not. A correction is a part of `Progress`: what goes on from a checkpoint
        after it has it too.
        """
        options = self._options
        end = last_update(options, progress)
        first_step, first_seconds = self._first
        done = progress.step - first_step
        if not has_budget(options) or end is None or progress.step >= end:
            return ""
        assert options.max_minutes is not None
        assert options.max_steps is not None
        if done < LEAST_SHARE * options.max_steps:
            return ""
        budget = 60 * options.max_minutes
        pace = (progress.seconds - first_seconds) / done
        pace += validation_seconds / options.validate_every
        left = budget - progress.wall_seconds - finishing_seconds(budget)
        missing = (end - progress.step) * pace - left
        allowed = TOLERANCE * budget
        is_full = progress.end_step or progress.planned_seconds > budget - allowed
        if missing < allowed and (missing > -2 * allowed or not is_full):
            return ""
        progress.corrected_position = schedule_position(options, progress)
        progress.corrected_step = progress.step
        progress.end_step = progress.step + max(1, round(left / pace))
        how = "slower" if missing > 0 else "faster"
        return (
            f"step {progress.step:,}: this machine is {how} than planned; the run now ends after "
            f"{progress.end_step:,} updates instead of {end:,}, and its learning rate with it"
        )
