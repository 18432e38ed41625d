"""Outcomes of runs that were never trained, for tests of what is made of them."""

from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.paper.report.result import Say
from dragoman.paper.training_runs.experiment_runs import WorkOptions
from dragoman.paper.training_runs.outcomes import Failure, Outcome, Plan


def make_outcome(plan: Plan, **facts: object) -> Outcome:
    """Make up what a run came to."""
    told = {
        "num_parameters": 1000, "num_updates": 10, "seconds": 2.0, "tokens_per_second": 500.0,
        "loss": 1.0, "bleu": 30.0, "chrf": 50.0, "signature": "made|up", "translations": (),
    } | facts  # fmt: skip
    return Outcome(plan=plan, folder=Path("nowhere"), **told)


def make_run_all(tell: Callable[[Plan], dict | None], plans_seen: list[Plan]) -> object:
    """Make a stand-in for `run_all` that takes outcomes from a function; None: a failure."""

    def run_all(
        plans: Sequence[Plan], _options: WorkOptions, _say: Say
    ) -> tuple[list[Outcome], list[Failure]]:
        plans_seen.extend(plans)
        told = [(plan, tell(plan)) for plan in plans]
        outcomes = [make_outcome(plan, **facts) for plan, facts in told if facts is not None]
        failures = [Failure(plan=plan, why="it broke") for plan, facts in told if facts is None]
        return outcomes, failures

    return run_all
