"""Output that goes on after an interruption, cut off at every place where that may happen."""

import errno
import json
import os
import time
from pathlib import Path

import pytest

from dragoman.data.lines import LineReader
from dragoman.decoding.stream import resumable_output as journal
from dragoman.decoding.stream.resumable_output import ResumableOutput
from dragoman.errors import DataError, FolderError, OptionError

LINES = [b"line %d\n" % number for number in range(10)]
IDENTITY = {"model": "m (1)", "beam_size": "4"}
WHOLE = "".join(f"out {number}\n" for number in range(10))


class StoppedError(Exception):
    """Stands for a process that is killed."""


def run(path, *, lines=LINES, identity=IDENTITY, stop_after=None, block=3):
    """Do the work, or stop outright after so many blocks; give back the lines worked on."""
    worked = []
    with ResumableOutput(path, identity) as output:
        reader = LineReader(iter(lines), place="input")
        output.skip(reader)
        number = reader.num_taken
        while raw := reader.take(block):
            if stop_after is not None and len(worked) // block >= stop_after:
                raise StoppedError
            output.add(raw, [f"out {number + index}" for index in range(len(raw))])
            number += len(raw)
            worked += raw
        output.finish()
    return worked


def beside(path):
    return path.with_name(path.name + ".partial"), path.with_name(path.name + ".journal")


def message_of(kind, path, **kwargs):
    with pytest.raises(kind) as caught:
        run(path, **kwargs)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_undisturbed(tmp_path):
    path = tmp_path / "new" / "out"
    assert run(path) == LINES
    assert path.read_text() == WHOLE
    assert list(path.parent.iterdir()) == [path]


def test_no_lines_make_an_empty_file(tmp_path):
    run(tmp_path / "out", lines=[])
    assert (tmp_path / "out").read_bytes() == b""
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]


@pytest.mark.parametrize("stop_after", [0, 1, 2, 3])
def test_goes_on_and_repeats_nothing(tmp_path, stop_after):
    path = tmp_path / "out"
    path.write_text("older\n")
    with pytest.raises(StoppedError):
        run(path, stop_after=stop_after)
    assert path.read_text() == "older\n"
    assert run(path) == LINES[3 * stop_after :]
    assert path.read_text() == WHOLE
    assert list(tmp_path.iterdir()) == [path]


def test_goes_on_from_whatever_a_kill_left(tmp_path, monkeypatch):
    """At every length that the two files can have had: text first, then the journal's line."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # many states, and no crash to survive
    path = tmp_path / "out"
    partial, records = beside(path)
    with pytest.raises(StoppedError):
        run(path, stop_after=2)
    text, notes = partial.read_bytes(), records.read_bytes()
    ends = [index + 1 for index, byte in enumerate(notes) if byte == 10]
    sizes = [0, *(json.loads(line)["bytes"] for line in notes.splitlines()[1:])]
    for num_notes in range(len(notes) + 1):
        done = max(0, sum(end <= num_notes for end in ends) - 1)
        if not sum(end <= num_notes for end in ends):
            states = [None, 0]  # the partial file is made after the journal's first line
        else:
            states = range(sizes[done], len(text[: sizes[min(done + 1, 2)]]) + 1, 5)
        for size in states:
            for each in (partial, path):
                each.unlink(missing_ok=True)
            records.write_bytes(notes[:num_notes])
            if size is not None:
                partial.write_bytes(text[:size])
            assert run(path) == LINES[3 * done :]
            assert path.read_text() == WHOLE
            assert list(tmp_path.iterdir()) == [path]


def test_killed_between_moving_the_file_and_removing_the_journal(tmp_path, monkeypatch):
    path = tmp_path / "out"

    def stop(self, **kwargs):
        raise StoppedError

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stop)
        with pytest.raises(StoppedError):
            run(path)
    assert path.read_text() == WHOLE
    assert beside(path)[1].exists()
    run(path, identity={"beam_size": "5"})
    assert path.read_text() == WHOLE
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("identity", "words"),
    [
        ({"model": "m (2)", "beam_size": "4"}, "model m (1), now m (2)"),
        ({"model": "m (1)"}, "beam_size 4, now not given"),
        (IDENTITY | {"prefix": "Le"}, "prefix not given, now Le"),
    ],
)
def test_another_model_or_other_options(tmp_path, identity, words):
    path = tmp_path / "out"
    with pytest.raises(StoppedError):
        run(path, stop_after=1)
    before = [each.read_bytes() for each in beside(path)]
    assert message_of(OptionError, path, identity=identity) == (
        f"{path}.journal: begun with {words}; give the same command, or delete out.partial and "
        "out.journal to begin afresh"
    )
    assert [each.read_bytes() for each in beside(path)] == before
    assert run(path) == LINES[3:]


def test_a_journal_without_a_line_done_is_nothing(tmp_path):
    path = tmp_path / "out"
    partial, records = beside(path)
    with pytest.raises(StoppedError):
        run(path, stop_after=0)
    assert list(tmp_path.iterdir()) == []
    records.write_text(json.dumps({"format": 1, "identity": {"beam_size": "0"}}) + "\n")
    partial.write_text("half a li")  # killed within the first block
    assert run(path) == LINES
    assert path.read_text() == WHOLE


@pytest.mark.parametrize(
    "record",
    ["null", "5", "[]", "{}", "[" * 50_000]
    + [
        json.dumps({"lines": 1, "bytes": 1, "digest": ""} | wrong)
        for wrong in (
            {"bytes": 1.5}, {"bytes": -1}, {"bytes": None}, {"lines": "x"}, {"lines": True},
            {"digest": 3}, {"pace": 1}, {"pace": -1.0}, {"pace": float("nan")},
        )
    ],
    ids=lambda each: each[:50],
)  # fmt: skip
def test_records_of_another_shape(tmp_path, record):
    path = tmp_path / "out"
    header = json.dumps({"format": 1, "identity": {}})
    for text in (f"{header}\n{record}\n", '{"format": 1}\n', '{"format": 1, "identity": []}\n'):
        beside(path)[1].write_text(text)
        assert "not a journal of this version of Dragoman; move it" in message_of(FolderError, path)


def test_no_space(tmp_path, monkeypatch):
    path = tmp_path / "out"
    with pytest.raises(StoppedError):
        run(path, stop_after=1)

    def fail(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert message_of(FolderError, path) == (
            f"{path}: cannot be written (No space left on device); free some space, then give the "
            "same command again, which goes on after 3 lines"
        )
    assert run(path) == LINES[3:]
    assert path.read_text() == WHOLE


@pytest.mark.parametrize("lines", [[b"other\n", *LINES[1:]], LINES[:2], []])
def test_another_input(tmp_path, lines):
    path = tmp_path / "out"
    with pytest.raises(StoppedError):
        run(path, stop_after=1)
    assert message_of(DataError, path, lines=lines) == (
        f"{path}.journal: 3 lines are done, but input does not begin with them; give the same "
        "input, or delete out.partial and out.journal to begin afresh"
    )
    assert run(path) == LINES[3:]


def test_input_that_has_grown_is_gone_on_with(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(StoppedError):
        run(path, lines=LINES[:6], stop_after=1)
    assert run(path) == LINES[3:]
    assert path.read_text() == WHOLE


def test_a_partial_file_that_lost_something(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(StoppedError):
        run(path, stop_after=2)
    beside(path)[0].write_bytes(b"out 0\n")
    assert message_of(FolderError, path) == (
        f"{path}.partial: shorter than out.journal says; delete out.partial and out.journal to "
        "begin afresh"
    )


def test_files_of_a_person_stay(tmp_path):
    path = tmp_path / "out"
    partial, records = beside(path)
    partial.write_text("mine")
    assert message_of(FolderError, path) == (
        f"{partial}: is in the way; move it or choose another --output"
    )
    assert (partial.read_text(), records.exists()) == ("mine", False)
    partial.unlink()
    for mine in ("mine", "mine\n", '{"format": 2}\n', '{"format": oh\n', '[]\n{"format": 1}\n'):
        records.write_text(mine)
        assert message_of(FolderError, path) == (
            f"{records}: not a journal of this version of Dragoman; move it away, or choose "
            "another --output"
        )
        assert records.read_text() == mine


def test_two_runs_at_once(tmp_path):
    path = tmp_path / "out"
    with ResumableOutput(path, IDENTITY):
        assert message_of(FolderError, path) == (
            f"{path}.journal: another run is writing there; wait for its end"
        )
    run(path)
    assert path.read_text() == WHOLE


def test_a_journal_removed_between_opening_and_locking(tmp_path, monkeypatch):
    path = tmp_path / "out"
    records = beside(path)[1]
    removed = []

    def lock_late(file, how):
        if not removed:
            removed.append(records.unlink())
        return real(file, how)

    real = journal.flock
    monkeypatch.setattr(journal, "flock", lock_late)
    run(path)
    assert path.read_text() == WHOLE


def test_places_that_cannot_be_written(tmp_path):
    assert message_of(OptionError, tmp_path) == (
        f"--output {tmp_path}: is not a plain file; name one, or use “>”"
    )
    assert "/dev/null: is not a plain file" in message_of(OptionError, Path("/dev/null"))
    (tmp_path / "file").write_text("")
    text = message_of(FolderError, tmp_path / "file" / "out")
    assert text.endswith("choose another place for --output")
    assert "cannot be written" in text


def test_a_link_leads_to_the_file(tmp_path):
    (tmp_path / "real").write_text("older")
    (tmp_path / "out").symlink_to(tmp_path / "real")
    run(tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "real").read_text() == WHOLE


def test_everything_is_on_the_disk_before_the_journal_says_so(tmp_path, monkeypatch):
    """The text is flushed before the journal's line is written, and that before more text."""
    order = []
    flush = os.fsync

    def note(handle):
        order.append(Path(f"/proc/self/fd/{handle}").readlink().suffix)
        return flush(handle)

    monkeypatch.setattr(os, "fsync", note)
    run(tmp_path / "out", block=5)
    assert order == [".journal", ".partial", ".journal", ".partial", ".journal", ""]


def test_a_block_has_as_many_lines_as_take_some_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "BLOCK_SECONDS", 0.05)
    reader = LineReader(iter(LINES), place="input")
    with ResumableOutput(tmp_path / "out", IDENTITY) as output:
        output.skip(reader)
        assert output.limit(1000) == 1000  # nothing is known yet
        raw = reader.take(5)
        time.sleep(0.05)  # 10 ms a line, or more
        output.add(raw, [""] * 5)
        assert 1 <= output.limit(1000) <= 5
        assert output.limit(1) == 1
        before = output.limit(1000)
    limits = []
    while not limits or limits[-1] > 1:  # each run is killed before its first block is done
        with ResumableOutput(tmp_path / "out", IDENTITY) as output:
            limits.append(output.limit(1000))
    assert limits[0] <= max(1, before // 2)
    assert len(limits) <= 4


def test_windows_of_quick_work_stay_as_they_are(tmp_path):
    with ResumableOutput(tmp_path / "out", IDENTITY) as output:
        output.add(LINES, [""] * 10)
        assert output.limit(32) == 32
        output.finish()
