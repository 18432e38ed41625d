"""The log: a file of events, plain lines without a terminal, a live display with one."""

import io
import json
import sys

import pytest

from dragoman.errors import OptionError
from dragoman.training.log import METRICS_FILE, Log, SilentLog, format_time

UPDATE = {"step": 50, "epoch": 0, "loss": 2.5, "tokens_per_second": 1234.0, "learning_rate": 1e-3}
VALIDATION = {
    "step": 50,
    "loss": 1.0,
    "perplexity": 2.718,
    "bleu": 31.4,
    "sample": ["[bold]eins", "one", "won"],
    "is_best": True,
}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_events_are_json_lines(tmp_path):
    with Log(tmp_path, stream=io.StringIO()) as log:
        log.event("update", **UPDATE)
        log.event("validation", **VALIDATION)
    events = [json.loads(line) for line in (tmp_path / METRICS_FILE).read_text().splitlines()]
    assert [each["event"] for each in events] == ["update", "validation"]
    assert events[1]["sample"] == VALIDATION["sample"]


def test_plain_lines_without_a_terminal(tmp_path):
    stream = io.StringIO()
    with Log(tmp_path, stream=stream) as log:
        log.event("update", **UPDATE, seconds_left=200.0)
        log.event("validation", **VALIDATION)
        log.say("[red] is no markup")
    text = stream.getvalue()
    assert "step 50  epoch 1  loss 2.500  1,234 tokens/s  rate 1.00e-03  3 min 20 s left\n" in text
    assert "BLEU 31.40  (best so far)" in text
    assert "[bold]eins" in text
    assert "[red] is no markup" in text
    assert "\x1b" not in text


def test_live_display_in_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    stream = Terminal()
    with Log(tmp_path, stream=stream) as log:
        log.event("update", **UPDATE, seconds_left=200.0)
        log.event("validation", **VALIDATION)
    text = stream.getvalue()
    assert "\x1b[" in text
    for part in ("loss 2.500", "BLEU 31.40", "[bold]eins", "won", "3 min 20 s left"):
        assert part in text


def test_resumed_log_forgets_what_will_be_told_again(tmp_path):
    path = tmp_path / METRICS_FILE
    lines = [json.dumps({"event": "update", "step": step}) for step in (1, 2, 3)]
    path.write_text("\n".join(lines) + '\n{"event": "upda')
    with Log(tmp_path, resumed_step=2, stream=io.StringIO()) as log:
        log.event("stop", step=4, why="test")
    steps = [json.loads(line)["step"] for line in path.read_text().splitlines()]
    assert steps == [1, 2, 4]


def test_tensorboard_that_is_not_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(OptionError, match=r"--tensorboard needs the package tensorboardX"):
        Log(tmp_path, tensorboard=True)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(3.6, "4 s"), (60, "1 min 00 s"), (200, "3 min 20 s"), (3900, "1 h 05 min")],
)
def test_times_are_said_plainly(seconds, words):
    assert format_time(seconds) == words


def test_other_workers_say_nothing(capfd):
    with SilentLog() as log:
        log.event("update", **UPDATE)
        log.say("a line")
    assert capfd.readouterr() == ("", "")
