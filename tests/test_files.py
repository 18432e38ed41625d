"""Nothing is ever half there."""

import errno
import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.errors import FolderError
from dragoman.files import list_own, locked, read_bounded, sweep, write_file, written_beside


def contents_of(folder):
    """Everything below a folder, hidden things too."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def write_and_fail(path, error):
    with written_beside(path) as beside:
        beside.write_text("half")
        raise error


def write_folder(path, contents, error=None):
    with written_beside(path) as beside:
        beside.mkdir()
        (beside / "file").write_text(contents)
        if error:
            raise error


@pytest.mark.parametrize(
    ("contents", "expected"), [("Bäume\n", "Bäume\n".encode()), (b"\x00", b"\x00")]
)
def test_writes_text_and_bytes(tmp_path, contents, expected):
    write_file(tmp_path / "file", contents)
    assert contents_of(tmp_path) == {"file": expected}
    write_file(tmp_path / "file", "again")
    assert contents_of(tmp_path) == {"file": b"again"}


def test_makes_the_folders_above(tmp_path):
    write_file(tmp_path / "a" / "b" / "file", "x")
    assert contents_of(tmp_path) == {"a": None, "a/b": None, "a/b/file": b"x"}


def test_a_missing_file_is_named_with_the_remedy(tmp_path):
    with pytest.raises(
        FolderError, match=r"none: cannot be read \(No such file or directory\); ask for it"
    ):
        read_bounded(tmp_path / "none", 10, "ask for it")


def test_old_contents_are_there_until_the_end(tmp_path):
    write_file(tmp_path / "file", "old")
    with written_beside(tmp_path / "file") as beside:
        beside.write_text("ne")
        assert (tmp_path / "file").read_text() == "old"
        beside.write_text("new")
    assert contents_of(tmp_path) == {"file": b"new"}


@pytest.mark.parametrize("error", [ArithmeticError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_contents_and_nothing_else(tmp_path, error):
    write_file(tmp_path / "file", "old")
    with pytest.raises(error):
        write_and_fail(tmp_path / "file", error())
    assert contents_of(tmp_path) == {"file": b"old"}


def test_a_failure_before_the_first_byte_leaves_nothing(tmp_path):
    with pytest.raises(ArithmeticError), written_beside(tmp_path / "file"):
        raise ArithmeticError
    assert contents_of(tmp_path) == {}


def test_folders_are_replaced_whole(tmp_path):
    for names in (("one", "two"), ("three",)):
        with written_beside(tmp_path / "folder") as beside:
            beside.mkdir()
            (beside / "deep").mkdir()
            for name in names:
                (beside / "deep" / name).write_text(name)
    assert contents_of(tmp_path) == {
        "folder": None, "folder/deep": None, "folder/deep/three": b"three",
    }  # fmt: skip


def test_a_failed_folder_leaves_the_old_one(tmp_path):
    write_folder(tmp_path / "folder", "old")
    before = contents_of(tmp_path)
    with pytest.raises(ArithmeticError):
        write_folder(tmp_path / "folder", "half", ArithmeticError())
    assert contents_of(tmp_path) == before


def test_full_disk(tmp_path):
    write_file(tmp_path / "file", "old")
    with pytest.raises(FolderError) as caught:
        write_and_fail(tmp_path / "file", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert str(caught.value) == (
        f"{tmp_path / 'file'}: cannot be written (No space left on device); free some space or "
        "choose another place, then try again"
    )
    assert contents_of(tmp_path) == {"file": b"old"}


def test_full_disk_while_flushing(tmp_path, monkeypatch):
    write_file(tmp_path / "file", "old")

    def fail(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FolderError, match="Input/output error"):
        write_file(tmp_path / "file", "new")
    assert contents_of(tmp_path) == {"file": b"old"}


def test_a_file_where_a_folder_should_be(tmp_path):
    write_file(tmp_path / "file", "old")
    with pytest.raises(FolderError) as caught:
        write_file(tmp_path / "file" / "inside", "new")
    assert str(caught.value).startswith(f"{tmp_path / 'file' / 'inside'}: cannot be written (")
    assert contents_of(tmp_path) == {"file": b"old"}


def test_a_folder_that_cannot_be_moved_is_kept(tmp_path, monkeypatch):
    """If the new folder cannot take the place of the old, the old one is still there."""
    write_folder(tmp_path / "folder", "old")
    before = contents_of(tmp_path)
    replace = type(tmp_path).replace

    def fail_for_the_new(path, target):
        if path.name.endswith(".new"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return replace(path, target)

    monkeypatch.setattr(type(tmp_path), "replace", fail_for_the_new)
    with pytest.raises(FolderError):
        write_folder(tmp_path / "folder", "new")
    assert contents_of(tmp_path) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_contents_are_flushed_before_the_move(tmp_path, monkeypatch):
    flushed = []
    fsync = os.fsync

    def note(handle):
        flushed.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        assert not (tmp_path / "folder").exists() or flushed[-1] == str(tmp_path)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note)
    with written_beside(tmp_path / "folder") as beside:
        beside.mkdir()
        (beside / "file").write_text("x")
    assert flushed == [str(beside / "file"), str(beside), str(tmp_path)]


def test_what_fails_within_a_folder_is_named_as_it_shall_be(tmp_path):
    def fail():
        with written_beside(tmp_path / "folder") as beside, written_beside(beside / "file"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(FolderError) as caught:
        fail()
    assert str(caught.value).startswith(f"{tmp_path / 'folder' / 'file'}: cannot be written (No ")
    assert list(tmp_path.iterdir()) == []


# What kills leave


def test_a_folder_between_its_two_moves_is_put_back(tmp_path):
    """A kill after the old folder has gone and before the new one has come."""
    for writes in (True, False):
        old = tmp_path / ".folder.4194999.old"
        old.mkdir()
        (old / "file").write_text("old")
        (tmp_path / ".folder.4194999.new").mkdir()
        sweep(tmp_path)
        assert contents_of(tmp_path) == {"folder": None, "folder/file": b"old"}
        if writes:
            write_folder(tmp_path / "folder", "new")
            assert contents_of(tmp_path) == {"folder": None, "folder/file": b"new"}
            (tmp_path / "folder" / "file").unlink()
            (tmp_path / "folder").rmdir()


def test_what_a_killed_process_with_our_number_left_is_no_obstacle(tmp_path):
    """In a container every run may have the same number."""
    for kind, text in (("new", "half"), ("old", "old")):
        left = tmp_path / f".folder.{os.getpid()}.{kind}"
        left.mkdir()
        (left / "file").write_text(text)
    with pytest.raises(ArithmeticError):
        write_folder(tmp_path / "folder", "half", ArithmeticError())
    assert contents_of(tmp_path) == {"folder": None, "folder/file": b"old"}
    write_folder(tmp_path / "folder", "new")
    assert contents_of(tmp_path) == {"folder": None, "folder/file": b"new"}


def test_sweeping_leaves_what_living_processes_write_and_what_is_not_ours(tmp_path):
    names = [f".file.{os.getppid()}.new", ".file.new", "file.7.new", ".profile"]
    for name in (*names, ".file.4194999.new", f".file.{os.getpid()}.new"):
        (tmp_path / name).touch()
    assert [path.name for path in list_own(tmp_path)] == [".file.new", ".profile", "file.7.new"]
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    sweep(tmp_path / "missing")
    assert list_own(tmp_path / "missing") == []


# Locks


HOLD = """
import sys
from pathlib import Path
from dragoman.files import locked
sys.argv = ["dragoman", "train", "--out", "a b"]
with locked(Path(sys.stdin.readline().strip())):
    print("locked", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that has locked a folder."""
    words = [sys.executable, "-c", HOLD]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        held.stdin.write(f"{tmp_path / 'folder'}\n")
        held.stdin.flush()
        assert held.stdout.readline() == "locked\n"
        yield held
        held.kill()


def test_the_second_is_told_who_is_there(tmp_path, holder):
    with pytest.raises(FolderError) as caught, locked(tmp_path / "folder"):
        pass
    assert re.fullmatch(
        rf"{re.escape(str(tmp_path / 'folder'))}: in use by process {holder.pid} on \S+ since "
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \(dragoman train --out 'a b'\); wait until it has ended, "
        "or name another folder",
        str(caught.value),
    )


def test_whoever_dies_keeps_nobody_out(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert list_own(tmp_path / "folder") == []
    with locked(tmp_path / "folder"):
        (tmp_path / "folder" / "file").touch()
    assert contents_of(tmp_path) == {"folder": None, "folder/file": b""}


def test_whoever_waits_gets_in_when_the_other_leaves(tmp_path, holder):
    told = []

    def tell(line):
        told.append(line)
        holder.stdin.write("leave\n")
        holder.stdin.flush()

    with locked(tmp_path / "folder", tell):
        holder.wait()
        with pytest.raises(FolderError, match="in use by process"), locked(tmp_path / "folder"):
            pass
    (line,) = told
    assert f"folder: waiting for process {holder.pid} on " in line


def test_a_lock_leaves_nothing(tmp_path):
    with locked(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert contents_of(tmp_path) == {}


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOLCK])
def test_where_nothing_can_be_locked_nobody_is_kept_out(tmp_path, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    with locked(tmp_path), locked(tmp_path):
        pass


def test_a_file_in_the_place_of_a_folder_is_for_the_caller_to_refuse(tmp_path):
    (tmp_path / "file").touch()
    with locked(tmp_path / "file"), locked(tmp_path / "file" / "deeper"):
        pass
    assert contents_of(tmp_path) == {"file": b""}


def test_an_interrupt_between_the_two_moves_leaves_the_old_folder(tmp_path, monkeypatch):
    write_folder(tmp_path / "folder", "old")
    before = contents_of(tmp_path)
    replace = type(tmp_path).replace

    def interrupted(path, target):
        if path.name.endswith(".new"):
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(type(tmp_path), "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "folder", "new")
    assert contents_of(tmp_path) == before
