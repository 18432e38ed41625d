"""A state in a folder: what is wrong with it is said in one line, before anything is served."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman.errors import FolderError
from dragoman.serving.state import sqlite_engine
from dragoman.serving.state.server_state import open_state
from dragoman.serving.state.sqlite_engine import FILE, open_folder


def refusal(folder):
    with pytest.raises(FolderError) as caught:
        open_folder(folder)
    return str(caught.value)


def test_the_folder_is_made_for_its_user_alone(tmp_path):
    folder = tmp_path / "a" / "state"
    open_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_or_file_that_others_can_write_to_is_refused(tmp_path, mode):
    tmp_path.chmod(mode)
    assert refusal(tmp_path) == f"{tmp_path}: others can write to it; run “chmod go-w {tmp_path}”"
    tmp_path.chmod(0o755)
    open_folder(tmp_path)
    (tmp_path / FILE).chmod(mode & 0o666)
    path = tmp_path / FILE
    assert refusal(tmp_path) == f"{path}: others can write to it; run “chmod go-w {path}”"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_is_refused(tmp_path):
    os.chown(tmp_path, 65534, 65534)
    assert refusal(tmp_path) == f"{tmp_path}: belongs to another user; choose a folder of your own"


def test_what_is_no_folder_is_refused(tmp_path):
    path = tmp_path / "file"
    path.write_text("x")
    assert refusal(path) == f"{path}: is not a folder; choose another --state"
    assert refusal(path / "below") == (
        f"{path / 'below'}: cannot be made (Not a directory); choose another --state"
    )


def test_what_is_no_file_is_refused(tmp_path):
    path = tmp_path / FILE
    path.mkdir()
    assert refusal(tmp_path) == (
        f"{path}: cannot be written (Is a directory); free some space, make it writable, or choose "
        "another --state"
    )
    path.rmdir()
    path.symlink_to(tmp_path / "elsewhere")
    assert "cannot be written (Too many levels of symbolic links)" in refusal(tmp_path)
    assert not (tmp_path / "elsewhere").exists()
    path.unlink()
    os.mkfifo(path)
    assert refusal(tmp_path) == f"{path}: is not a file; choose another --state"


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    """As a user who may not, since root may write anywhere."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o555)
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from dragoman.errors import FolderError\n"
        "from dragoman.serving.state import sqlite_engine\n"
        "if os.geteuid() == 0:\n"
        "    os.chown(sys.argv[1], 65534, 65534)\n"
        "    for path in Path(sys.argv[1]).parents:\n"
        "        path.stat().st_mode & 1 or path.chmod(path.stat().st_mode | 0o011)\n"
        "    os.seteuid(65534)\n"
        "try:\n"
        "    sqlite_engine.open_folder(Path(sys.argv[1]))\n"
        "except FolderError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, folder], capture_output=True, text=True, check=True
    )
    assert found.stdout == (
        f"{folder / FILE}: cannot be written (Permission denied); free some space, make it "
        "writable, or choose another --state\n"
    )


@pytest.mark.parametrize("size", [0, 100, 3000])
def test_a_damaged_state_is_refused_and_left_as_it_was(tmp_path, size):
    state = open_state(str(tmp_path))
    for number in range(300):
        state.counts.charge(f"key {number:099}", "2026-11", 1, None)
    state.close()
    path = tmp_path / FILE
    contents = path.read_bytes()
    damaged = contents[:size] + os.urandom(6000) + contents[size + 6000 :]
    path.write_bytes(damaged)
    assert refusal(tmp_path) == (
        f"{path}: is damaged, or not a state; put back a copy, or move it away to begin anew"
    )
    assert path.read_bytes() == damaged


def test_a_full_disk_is_told_of_at_the_start(tmp_path):
    """Of a process that may write files of 8 KiB alone."""
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from dragoman.errors import FolderError\n"
        "from dragoman.serving.state.sqlite_engine import open_folder\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "try:\n"
        "    open_folder(Path(sys.argv[1]))\n"
        "except FolderError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=True
    )
    assert found.stdout == (
        f"{tmp_path / FILE}: cannot be used (disk I/O error); free some space, make it writable, "
        "or choose another --state\n"
    )


def test_a_state_that_another_program_keeps_to_itself_is_refused(tmp_path, monkeypatch):
    open_folder(tmp_path)
    monkeypatch.setattr(sqlite_engine, "BUSY_SECONDS", 0.1)
    other = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert "cannot be used (database is locked)" in refusal(tmp_path)
    other.execute("ROLLBACK")
    open_folder(tmp_path)
    other.close()


def test_a_disk_without_locks_for_processes_is_refused(tmp_path, monkeypatch):
    """Such a disk keeps the log in another way, whatever it is asked; in memory it is the same."""
    memory = sqlite3.connect(":memory:", isolation_level=None)
    monkeypatch.setattr(sqlite_engine.SqliteEngine, "connect", lambda _: memory)
    assert refusal(tmp_path) == (
        f"{tmp_path}: this kind of disk cannot be shared by processes; choose a folder of a local "
        "disk"
    )


def test_names_of_folders_may_have_any_characters(tmp_path):
    folder = tmp_path / "a?b#c %41 ü"
    open_folder(folder)
    assert (folder / FILE).stat().st_size > 0


def test_a_long_statement_can_be_interrupted(tmp_path):
    database = open_folder(tmp_path)
    caught = []

    def count_for_ever():
        try:
            database.execute(
                "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) "
                "SELECT COUNT(*) FROM c"
            )
        except sqlite3.OperationalError as error:
            caught.append(str(error))

    thread = threading.Thread(target=count_for_ever)
    thread.start()
    while thread.is_alive():
        database.abort()
        thread.join(0.05)
    assert caught == ["interrupted"]
    database.close()


def test_a_backup_of_a_running_state_is_one(tmp_path):
    """The guide's command."""
    state = open_state(str(tmp_path / "state"))
    state.counts.charge("key ann", "2026-11", 5, None)
    copy = tmp_path / "copy"
    copy.mkdir(mode=0o700)
    source = sqlite3.connect(Path(tmp_path) / "state" / FILE)
    source.execute("VACUUM INTO ?", (str(copy / FILE),))
    source.close()
    (copy / FILE).chmod(0o600)
    state.close()
    restored = open_state(str(copy))
    assert restored.counts.used("key ann", "2026-11") == 5
    restored.close()
