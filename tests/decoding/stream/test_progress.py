"""Warnings and progress as people see them."""

import io

from dragoman.decoding.stream.progress import MOST_WARNINGS, ProgressDisplay


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_warnings_are_lines_as_they_are():
    stream = io.StringIO()
    with ProgressDisplay(stream) as display:
        display.warn("a [bold]file[/bold], line 3: " + "long " * 50)
        display.say("going on")
        display.advance(10, 100)
    assert stream.getvalue() == (
        "dragoman: warning: a [bold]file[/bold], line 3: " + "long " * 50 + "\ndragoman: going on\n"
    )


def test_many_warnings_are_counted():
    stream = io.StringIO()
    with ProgressDisplay(stream) as display:
        for number in range(MOST_WARNINGS + 1234):
            display.warn(f"line {number}")
    lines = stream.getvalue().splitlines()
    assert len(lines) == MOST_WARNINGS + 1
    assert lines[MOST_WARNINGS - 1] == f"dragoman: warning: line {MOST_WARNINGS - 1}"
    assert lines[-1] == "dragoman: 1,234 more warnings"


def test_a_terminal_sees_how_far_it_is():
    stream = Terminal()
    with ProgressDisplay(stream, num_bytes=200) as display:
        display.advance(1500, 50)
        display.warn("something")
    shown = stream.getvalue()
    assert "1,500 lines" in shown
    assert "25 %" in shown
    assert "dragoman: warning: something" in shown


def test_nobody_knows_how_much_there_is():
    stream = Terminal()
    with ProgressDisplay(stream) as display:
        display.advance(1500, 50)
    assert "1,500 lines" in stream.getvalue()
    assert "%" not in stream.getvalue()


def test_progress_may_be_left_out():
    stream = Terminal()
    with ProgressDisplay(stream, num_bytes=200, shows_progress=False) as display:
        display.advance(1500, 50)
    assert stream.getvalue() == ""


def test_what_cannot_be_written_is_lost():
    tried = []

    class Full(io.StringIO):
        def write(self, text):
            tried.append(text)
            raise OSError("no space")

    with ProgressDisplay(Full()) as display:
        display.warn("something")
    assert "something" in tried[0]


def test_a_terminal_is_told_the_speed_of_a_file():
    told = Terminal()
    with ProgressDisplay(told, num_bytes=200, shows_progress=False) as display:
        display.advance(2, 50, 1200)
        display.advance(1, 20, 34)
    assert told.getvalue().startswith("dragoman: 1,234 words in ")
    assert told.getvalue().endswith(" words a second\n")
    for stream, num_bytes in ((Terminal(), None), (io.StringIO(), 200)):
        with ProgressDisplay(stream, num_bytes=num_bytes, shows_progress=False) as display:
            display.advance(2, 50, 1234)
        assert stream.getvalue() == ""
