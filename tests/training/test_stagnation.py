"""A warning when validation has stopped improving long before the end, and none otherwise."""

import json
from dataclasses import asdict

import pytest

from dragoman.training.checkpoints.checkpoint import Progress
from dragoman.training.log import SilentLog
from dragoman.training.options import TrainingOptions
from dragoman.training.stagnation import note_validation

FALLING = [2.0, 1.5, 1.2, 1.1]


class Heard(SilentLog):
    """A log that keeps what it is told."""

    def __init__(self):
        self.events, self.lines = [], []

    def event(self, kind, **facts):
        self.events.append((kind, facts))

    def say(self, text):
        self.lines.append(text)


def options_of(**more):
    given = {"warmup_steps": 100, "max_steps": 2000, "validate_every": 100}
    return TrainingOptions(**given | more)


def validate(options, progress, log, losses, training_losses, bleus=None):
    """What the loop does at each validation."""
    for place, (loss, training_loss) in enumerate(zip(losses, training_losses, strict=True)):
        progress.step += options.validate_every
        progress.seconds += options.validate_every
        lowest = progress.lowest_loss
        progress.lowest_loss = training_loss if lowest is None else min(lowest, training_loss)
        value = -loss if bleus is None else bleus[place]
        if progress.is_better(value, loss):
            progress.best_value, progress.best_loss = value, loss
            progress.best_step, progress.num_worse = progress.step, 0
        else:
            progress.num_worse += 1
        note_validation(options, progress, loss, log)


def warned(losses, training_losses=None, bleus=None, **more):
    """The steps at which there was a warning, and what it said."""
    log, progress = Heard(), Progress()
    trained = training_losses or [3 - 0.1 * place for place in range(len(losses))]
    validate(options_of(**more), progress, log, losses, trained, bleus)
    assert len(log.events) == len(log.lines) <= 1
    return [facts["step"] for _, facts in log.events], "".join(log.lines)


def test_overfitting_is_told_once_with_what_helps():
    log, progress = Heard(), Progress()
    losses = [*FALLING, 1.13, 1.16, 1.2, 1.25, 1.3]
    validate(options_of(), progress, log, losses, [3 - 0.1 * place for place in range(9)])
    ((kind, facts),) = log.events
    assert (kind, facts["step"], facts["since"]) == ("stagnation", 700, 400)
    assert facts["is_overfitting"]
    assert facts["share_done"] == pytest.approx(0.35)
    assert (facts["loss"], facts["lowest_loss"]) == (1.2, 1.1)
    assert log.lines == [
        "step 700: validation has not improved since step 400, and 65 % of the run is still to "
        "come; validation loss rises while training loss falls, so the model learns the training "
        "pairs by heart: more pairs or a higher --dropout would help more than more updates. "
        "Ctrl-C keeps the best model"
    ]


def test_plateau_is_told_without_speaking_of_overfitting():
    steps, line = warned([*FALLING, 1.11, 1.1, 1.11, 1.1])
    assert steps == [700]
    assert "by heart" not in line
    assert "a larger model would help more than more updates" in line


def test_loss_that_rises_on_both_sides_is_no_overfitting():
    trained = [3.0, 2.5, 2.0, 1.9, 2.0, 2.1, 2.2]
    _, line = warned([*FALLING, 1.2, 1.3, 1.4], trained)
    assert "by heart" not in line


@pytest.mark.parametrize("schedule", ["cosine", "warmup-stable-decay"])
def test_plateau_before_the_rate_falls_is_no_reason_but_overfitting_is(schedule):
    assert warned([*FALLING, *[1.11] * 8], schedule=schedule) == ([], "")
    steps, line = warned([*FALLING, 1.13, 1.16, 1.2], schedule=schedule)
    assert steps == [700]
    assert "a new run with fewer --max-steps lowers its rate sooner" in line


def test_better_bleu_or_lower_loss_is_improvement():
    rising = [1.1 + 0.05 * place for place in range(8)]
    assert warned([*FALLING, *rising], bleus=list(range(12))) == ([], "")
    falling = [2 - 0.05 * place for place in range(12)]
    assert warned(falling, bleus=[5.0] * 12) == ([], "")
    assert warned([*FALLING, *rising], bleus=[5, 6, 7, 8, *[7] * 8])[0] == [700]


def test_two_validations_or_less_than_a_third_are_no_reason():
    assert warned([*FALLING, 1.2, 1.3])[0] == []
    long = [3 - 0.1 * place for place in range(9)]  # the best at step 900
    assert warned([*long, *[2.4] * 4])[0] == []
    assert warned([*long, *[2.4] * 5])[0] == [1400]


def test_what_is_lost_during_warmup_is_no_reason():
    assert warned([1.0, *[1.3] * 6], warmup_steps=500)[0] == []
    assert warned([1.0, *[1.3] * 7], warmup_steps=500)[0] == [800]


def test_nothing_is_said_near_the_end_or_without_a_plan():
    worse = [*FALLING, 1.2, 1.3, 1.4, 1.5]
    assert warned(worse, max_steps=934)[0] == [700]
    assert warned(worse, max_steps=930)[0] == []
    assert warned(worse, max_minutes=13)[0] == []  # seconds go with steps here: the nearer limit
    assert warned(worse, max_steps=None, patience=9)[0] == []


def test_resumed_run_warns_as_an_uninterrupted_one_and_not_twice():
    options, log = options_of(), Heard()
    progress = Progress()
    losses, trained = [*FALLING, 1.13, 1.16, 1.2, 1.25], [3 - 0.1 * place for place in range(8)]
    for loss, training_loss in zip(losses, trained, strict=True):
        progress = Progress(**json.loads(json.dumps(asdict(progress))))
        validate(options, progress, log, [loss], [training_loss])
    assert [facts["step"] for _, facts in log.events] == [700]


def test_checkpoint_from_before_is_gone_on_from_with_patience():
    names = ("lowest_valid_loss", "lowest_valid_step", "training_loss_then", "is_stagnation_told")
    facts = asdict(Progress(step=1000, best_value=30.0, best_step=300, lowest_loss=2.0))
    progress, log = Progress(**{name: facts[name] for name in facts if name not in names}), Heard()
    options = options_of(max_steps=9000)
    validate(options, progress, log, [1.3], [1.9], [20])
    assert (progress.lowest_valid_loss, progress.lowest_valid_step) == (1.3, 1100)
    validate(options, progress, log, [1.4] * 6, [1.8] * 6, [20] * 6)
    assert [each["step"] for _, each in log.events] == [1700]
