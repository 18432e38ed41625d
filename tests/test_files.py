"""Nothing is ever half there."""

import errno
import os
import sys
from pathlib import Path

import pytest

from dragoman.errors import FolderError
from dragoman.files import write_file, written_beside


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
