"""Workers: the same results in the same order, and one clear line when something goes wrong."""

import os
import signal
import subprocess
import sys
import threading
import time
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import workers
from dragoman.data.workers import count_cores, map_blocks, receive, send
from dragoman.errors import DataError

# What the workers import from here must not need what conftest.py prepares.
HERE = str(Path(__file__).parent)


def make_doubler(setting):
    def double(block):
        if block[0] == b"refuse":
            raise DataError("a line that cannot be used")
        if block[0] == b"die":
            os.kill(os.getpid(), signal.SIGKILL)
        if block[0] == b"wait":
            Path(os.fsdecode(setting[1])).touch()
            time.sleep(60)
        if block[0] == b"modules":
            return [b"torch" if "torch" in sys.modules else b"no torch", b"%d" % os.getpid()]
        return [setting[0], *(2 * part for part in block)]

    return double


@pytest.fixture(autouse=True)
def reachable(monkeypatch):
    monkeypatch.syspath_prepend(HERE)
    monkeypatch.setattr(make_doubler, "__module__", "test_workers")
    monkeypatch.setattr(workers, "INLINE_BLOCKS", 4)


def doubled(blocks, **options):
    return list(map_blocks(make_doubler, [b"set"], blocks, **options))


messages = st.lists(st.binary(max_size=40), max_size=5)


@given(st.lists(messages, max_size=4))
def test_messages_come_back(sent):
    stream = BytesIO()
    for message in sent:
        send(stream, message)
    stream.seek(0)
    assert [receive(stream) for _ in sent] == sent
    assert receive(stream) is None


@given(messages)
def test_a_cut_message_is_none(message):
    stream = BytesIO()
    send(stream, message)
    for size in range(len(stream.getvalue())):
        assert receive(BytesIO(stream.getvalue()[:size])) is None


@pytest.mark.parametrize("num_workers", [1, 2, 3])
@pytest.mark.parametrize("num_blocks", [0, 1, 4, 5, 40])
def test_results_keep_their_order(num_workers, num_blocks):
    blocks = [[b"%d" % number, b"x" * (number * 5000)] for number in range(num_blocks)]
    expected = [
        [b"set", b"%d" % number * 2, b"x" * (number * 10_000)] for number in range(num_blocks)
    ]
    assert doubled(iter(blocks), num_workers=num_workers) == expected


def test_workers_are_other_processes_without_torch(monkeypatch):
    monkeypatch.setattr(workers, "INLINE_BLOCKS", 0)
    found = doubled([[b"modules"]] * 9, num_workers=2)
    assert {kind for kind, _ in found} == {b"no torch"}
    assert b"%d" % os.getpid() not in {process for _, process in found}


def test_few_blocks_are_done_here():
    found = doubled([[b"modules"]] * workers.INLINE_BLOCKS, num_workers=2)
    assert {process for _, process in found} == {b"%d" % os.getpid()}


def test_without_a_python_to_start_all_is_done_here(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    found = doubled([[b"modules"]] * 9)
    assert {process for _, process in found} == {b"%d" % os.getpid()}


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize("place", [0, 11])
def test_what_is_refused_is_raised_at_its_turn(num_workers, place):
    blocks = [[b"a"]] * 20
    blocks[place] = [b"refuse"]
    results = map_blocks(make_doubler, [b""], blocks, num_workers=num_workers)
    assert len([next(results) for _ in range(place)]) == place
    with pytest.raises(DataError) as caught:
        next(results)
    assert str(caught.value) == "a line that cannot be used"


def test_what_was_read_before_a_fault_has_its_turn_first():
    def blocks():
        yield from [[b"a"]] * 10
        yield [b"refuse"]
        raise DataError("the file is damaged")

    for cut, expected in ((10, "the file is damaged"), (11, "a line that cannot be used")):
        faulty = (block for block in blocks() if cut == 11 or block != [b"refuse"])
        results = map_blocks(make_doubler, [b""], faulty, num_workers=2)
        assert len([next(results) for _ in range(10)]) == 10
        with pytest.raises(DataError) as caught:
            next(results)
        assert str(caught.value) == expected


def test_a_killed_worker_is_one_clear_error():
    with pytest.raises(DataError) as caught:
        doubled([[b"a"]] * 6 + [[b"die"]] + [[b"a"]] * 20, num_workers=2)
    assert str(caught.value) == (
        "a worker process ended before its work (status -9); free some memory and try again"
    )


def test_a_worker_that_cannot_start_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(DataError) as caught:
        doubled([[b"a"]] * 9, num_workers=2)
    assert str(caught.value) == (
        "a worker process could not be started (No such file or directory); free some memory and "
        "try again"
    )


def test_nobody_goes_on_working_when_nobody_listens(monkeypatch):
    started = []
    start = workers._start
    monkeypatch.setattr(
        workers, "_start", lambda *words: started.append(start(*words)) or started[-1]
    )
    results = map_blocks(make_doubler, [b""], ([b"a"] for _ in range(10**9)), num_workers=2)
    for _ in range(8):
        next(results)
    results.close()
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


PROGRAM = """
import sys
sys.path.insert(0, {here!r})
from test_workers import make_doubler
from dragoman.data.workers import map_blocks
make_doubler.__module__ = "test_workers"
blocks = [[b"a"]] * 16 + [[b"wait"]] * 4
try:
    list(map_blocks(make_doubler, [b"", {flag!r}], blocks, num_workers=2))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_interrupted_from_the_keyboard(tmp_path):
    """Ctrl-C reaches a whole group of processes; the workers must not answer it with tracebacks.

    The program has no guard against being imported by its workers, and needs none.
    """
    flag = tmp_path / "working"
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(here=HERE, flag=os.fsencode(flag)))
    # Where the tests run in the background Ctrl-C is switched off, and that is inherited.
    heeded = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [sys.executable, program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, heeded)
    limit = threading.Timer(60, process.kill)
    limit.start()
    while not flag.exists() and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate()
    limit.cancel()
    assert (output, errors) == ("interrupted\n", "")


def test_there_is_a_core():
    assert count_cores() >= 1
