"""The log: a file of events, plain lines without a terminal, a live display with one."""

import io
import json
import re
import sys
from datetime import datetime

import pytest

from dragoman.errors import OptionError
from dragoman.training.log import (
    METRICS_FILE,
    Log,
    SilentLog,
    format_moment,
    format_share,
    format_time,
)

UPDATE = {"step": 50, "epoch": 0, "loss": 2.5, "tokens_per_second": 1234.0, "learning_rate": 1e-3}
OUTLOOK = UPDATE | {"share_done": 0.42, "seconds_left": 200.0}
VALIDATION = {
    "step": 50,
    "loss": 1.0,
    "perplexity": 2.718,
    "bleu": 31.4,
    "probes": [["[bold]eins", "one", "won"], ["drei und vier", "three and four", "four, three"]],
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
    assert events[1]["probes"] == VALIDATION["probes"]


def test_plain_lines_without_a_terminal(tmp_path):
    stream = io.StringIO()
    with Log(tmp_path, stream=stream) as log:
        log.event("update", **UPDATE)
        log.event("validation", **VALIDATION)
        log.event("update", **OUTLOOK)
        log.say("[red] is no markup")
    text = stream.getvalue()
    line = "step 50  epoch 1  loss 2.500  1,234 tokens/s  rate 1.00e-03"
    assert text.startswith(f"{line}\n")  # nothing is foreseen, nothing was validated
    best = "best BLEU 31.40 at step 50"
    end = r"3 min 20 s left, ends about [\w ]*\d\d:\d\d"
    assert re.search(rf"^42 %  {line}  {best}  {end}$", text, re.MULTILINE)
    assert "BLEU 31.40  (best so far)" in text
    for row in ("source       [bold]eins", "reference    three and four", "translation  won"):
        assert f"  {row}\n" in text
    assert "[red] is no markup" in text
    assert "\x1b" not in text


def test_live_display_in_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    stream = Terminal()
    with Log(tmp_path, stream=stream) as log:
        log.event("update", **OUTLOOK)
        log.event("validation", **VALIDATION)
        log.event("validation", **VALIDATION | {"step": 60, "bleu": 30.0, "is_best": False})
    text = stream.getvalue()
    assert "\x1b[" in text
    for part in ("loss 2.500", "BLEU 30.00", "best BLEU 31.40 at step 50", "[bold]eins", "won",
                 "four, three", "━", "42 %", "3 min 20 s left, ends about "):  # fmt: skip
        assert part in text


def test_run_that_may_end_sooner_says_so_and_one_without_end_draws_no_bar(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    texts = []
    for facts in (OUTLOOK, UPDATE):
        stream = Terminal()
        with Log(tmp_path, stream=stream, may_end_sooner=True) as log:
            log.event("update", **facts)
        texts.append(stream.getvalue())
    assert "3 min 20 s left, ends by " in texts[0]
    assert "loss 2.500" in texts[1]
    assert "━" not in texts[1]
    assert "ends" not in texts[1]


def test_display_of_a_stopped_run_tells_no_end(tmp_path, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    stream = Terminal()
    with Log(tmp_path, stream=stream) as log:
        log.event("update", **OUTLOOK)
        log.event("stop", step=50, why="interrupted")
        before = len(stream.getvalue())
    last = stream.getvalue()[before:]
    assert "42 %" in last
    assert "ends" not in last


def test_resumed_log_knows_the_best_validation_before(tmp_path):
    earlier = {"event": "validation", **VALIDATION}
    others = [
        earlier | {"step": 60, "bleu": 12.0, "is_best": False},
        earlier | {"step": 70, "bleu": 99.0},  # later than the checkpoint
        {"event": "validation", "step": 5, "is_best": True},
        earlier | {"step": 6, "probes": "none"},
        {name: earlier[name] for name in earlier if name != "probes"} | {"step": 7, "bleu": None},
    ]
    lines = "".join(f"{json.dumps(each)}\n" for each in [earlier, *others])
    (tmp_path / METRICS_FILE).write_text(lines)
    stream = io.StringIO()
    with Log(tmp_path, resumed_step=60, stream=stream) as log:
        log.event("update", **UPDATE)
    assert "best BLEU 31.40 at step 50" in stream.getvalue()


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        (datetime(2026, 3, 2, 17, 42), "17:42"),
        (datetime(2026, 3, 3, 0, 1), "Tuesday 00:01"),
        (datetime(2026, 3, 7, 9, 5), "Saturday 09:05"),
        (datetime(2026, 3, 9, 17, 42), "Monday 9 March 17:42"),
    ],
)
def test_times_of_day_name_the_day_unless_it_is_today(moment, words):
    now = datetime(2026, 3, 2, 12, 0)
    assert format_moment(moment.timestamp(), now.timestamp()) == words


def test_shares_are_not_rounded_up():
    said = [format_share(share) for share in (0, 0.29, 0.9999, 1)]
    assert said == ["0 %", "29 %", "99 %", "100 %"]


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
