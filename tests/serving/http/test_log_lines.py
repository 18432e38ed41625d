"""A server's log says what is wrong in few and short lines."""

import logging

import pytest

from dragoman.serving.http import log_lines
from dragoman.serving.http.log_lines import LINES_PER_MINUTE, LONGEST_LINE, LogRateLimiter


@pytest.fixture
def moment():
    return [0.0]


@pytest.fixture
def log(moment):
    """Give a logger, and the lines that it has written."""
    lines = []

    class Kept(logging.Handler):
        def emit(self, record):
            lines.append(self.format(record))

    logger, handler = logging.getLogger("dragoman.test_log_lines"), Kept()
    handler.addFilter(LogRateLimiter(lambda: moment[0]))
    logger.addHandler(handler)
    logger.propagate = False
    yield logger, lines
    logger.removeHandler(handler)


def test_a_flood_becomes_a_few_lines_and_their_number_is_said(log, moment):
    logger, lines = log

    def flood(count):
        for number in range(count):
            logger.warning("bad request %d", number)

    flood(1000)
    assert len(lines) == LINES_PER_MINUTE
    assert lines[0] == "bad request 0"
    assert lines[-1] == "bad request 9 (more such lines are left out for a minute)"
    logger.error("something else")  # is not lost among them
    assert lines[-1] == "something else"
    moment[0] += 60
    flood(1)
    assert lines[-1] == "bad request 0 (990 such lines were left out in an earlier minute)"
    moment[0] += 60
    flood(1)
    assert lines[-1] == "bad request 0"


def test_lines_are_short_and_single(log):
    logger, lines = log
    logger.warning("%s", "x" * 100_000)
    assert lines[-1] == "x" * LONGEST_LINE + "…"
    logger.warning("a\nb \x1b[31m %s", "\ud800")
    assert lines[-1] == r"a\nb \x1b[31m \ud800"
    try:
        raise ValueError("a client's words\n" * 100)
    except ValueError:
        logger.exception("it failed")
    assert lines[-1] == "it failed: ValueError"


def test_warnings_of_the_process_are_bounded(monkeypatch, capsys):
    root = logging.Logger("root")
    monkeypatch.setattr(log_lines.logging, "getLogger", lambda: root)
    log_lines.limit_log_lines()
    for _ in range(100):
        root.warning("again")
    root.info("unsaid")
    assert capsys.readouterr().err.count("\n") == LINES_PER_MINUTE
