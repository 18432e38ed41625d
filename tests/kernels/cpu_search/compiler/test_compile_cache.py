"""Compiled functions are kept, and what is damaged, foreign or open to others is never used."""

import os
import pickle
import random
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.kernels.cpu_search.compiler import compile_cache
from dragoman.kernels.cpu_search.compiler.compile_cache import (
    SUFFIX,
    UnusableError,
    choose_folder,
    find_folder,
    hash_sources,
    prepare_folder,
    remove_oldest,
)
from dragoman.kernels.cpu_search.compiler.instructions import compiled


def add(one, other):
    return one + other


def subtract(one, other):
    return one - other


def runs(function, expected):
    """Compile a function as a new process would; say whether it came from the cache."""
    fresh = compiled(function)
    assert fresh(1, 2) == expected
    return bool(fresh.stats.cache_hits)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Give an empty folder of compiled functions, before it is made."""

    def forget():
        find_folder.cache_clear()
        compile_cache._told.clear()

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    forget()
    yield tmp_path / "cache" / "dragoman"
    forget()


@pytest.fixture
def entry(cache):
    """Give the file of the function `add`."""
    assert not runs(add, 3)
    (path,) = cache.iterdir()
    return path


def test_is_loaded_the_second_time(cache, entry, caplog):
    assert runs(add, 3)
    assert entry.name.startswith("test_compile_cache.add-")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (cache, cache.parent, entry)] == [
        0o700, 0o700, 0o600
    ]  # fmt: skip
    assert not caplog.text


def test_functions_within_others_are_not_kept(cache):
    number = 5
    assert compiled(lambda other: other + number)(1) == 6
    number = 6
    assert compiled(lambda other: other + number)(1) == 7


class RunsCode:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_pickle_that_runs_code_does_not(entry, tmp_path, caplog):
    whole = entry.read_bytes()
    foreign = pickle.dumps(RunsCode(tmp_path / "ran"))
    for contents in (foreign, whole[: len(compile_cache.OPENING) + 32] + foreign):
        entry.write_bytes(contents)
        assert not runs(add, 3)
        assert not (tmp_path / "ran").exists()
        assert runs(add, 3)
    assert len(caplog.records) == 1  # one line a process


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


def replace_by_full_folder(path):
    replace_by_folder(path)
    (path / "file").touch()


def replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path)


def replace_by_device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


DAMAGES = {
    "empty": (lambda path: path.write_bytes(b""), "damaged, or something else"),
    "cut": (lambda path: os.truncate(path, path.stat().st_size // 2), "damaged"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"\0"), "damaged"),
    "huge": (lambda path: os.truncate(path, 1 << 40), "larger than any compiled function"),
    "noise": (lambda path: path.write_bytes(random.Random(1).randbytes(5000)), "damaged"),
    "folder": (replace_by_folder, "no plain file"),
    "full folder": (replace_by_full_folder, "no plain file"),
    "pipe": (replace_by_pipe, "no plain file"),
    "device": (replace_by_device, "no plain file"),
    "writable": (lambda path: path.chmod(0o620), "others may write to it"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_entry_is_compiled_anew_and_replaced(entry, caplog, name):
    damage, complaint = DAMAGES[name]
    damage(entry)
    assert not runs(add, 3)
    assert caplog.messages == [f"{entry}: {compile_cache._told[0].split(': ', 1)[1]}"]
    assert complaint in caplog.text
    assert runs(add, 3) != (name == "full folder")  # somebody's files are not removed


def test_another_entry_under_this_name(cache, entry, caplog):
    assert not runs(subtract, -1)
    (other,) = set(cache.iterdir()) - {entry}
    shutil.copy(other, entry)
    assert not runs(add, 3)
    assert "damaged, or something else" in caplog.text


def test_nothing_is_used_where_others_may_write(cache, entry, caplog):
    cache.chmod(0o770)
    find_folder.cache_clear()
    assert not runs(add, 3)
    assert not runs(subtract, -1)
    assert caplog.messages == [
        f"{cache}: others may write there; run “chmod go-w {cache}”; compiled functions, which are "
        "code, are kept where no one else writes"
    ]
    assert list(cache.iterdir()) == [entry]


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o1777])
def test_parents_that_others_may_write_to(tmp_path, mode):
    (tmp_path / "one" / "two").mkdir(parents=True)
    (tmp_path / "one").chmod(mode)
    for folder in (tmp_path / "one" / "two", tmp_path / "one" / "new" / "newer"):
        if mode & stat.S_ISVTX:
            assert prepare_folder(folder) == folder
            continue
        with pytest.raises(UnusableError, match=f"chmod go-w {tmp_path / 'one'}”"):
            prepare_folder(folder)
        assert not (tmp_path / "one" / "new").exists()


def test_links_are_resolved_first(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "open")
    with pytest.raises(UnusableError, match=f"{tmp_path / 'open'}: others may write there"):
        prepare_folder(tmp_path / "link")


def test_folders_of_another_user(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(UnusableError, match="belongs to another user"):
        prepare_folder(tmp_path / "folder")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="root gives files away")
def test_below_a_folder_of_another_user(tmp_path):
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", 12345, -1)
    with pytest.raises(UnusableError, match=f"{tmp_path / 'theirs'}: belongs to another user"):
        prepare_folder(tmp_path / "theirs" / "mine")
    assert not (tmp_path / "theirs" / "mine").exists()


@pytest.mark.parametrize("place", ["file", "link"])
def test_no_folder_can_be_made(cache, caplog, place):
    cache.parent.mkdir()
    cache.touch() if place == "file" else cache.symlink_to(cache)
    assert not runs(add, 3)
    assert len(caplog.messages) == 1
    assert "NUMBA_CACHE_DIR" in caplog.text


def test_the_users_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert choose_folder() == tmp_path / ".cache" / "dragoman" / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert choose_folder() == tmp_path / ".cache" / "dragoman" / "compiled"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert choose_folder() == tmp_path / "xdg" / "dragoman" / "compiled"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert choose_folder() == tmp_path / "Library" / "Caches" / "dragoman" / "compiled"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert choose_folder() == tmp_path / "local" / "dragoman" / "compiled"


def test_a_change_of_any_source_is_noticed(tmp_path, monkeypatch):
    folder = tmp_path / "int8"
    shutil.copytree(Path(compile_cache.__file__).parents[1], folder)
    place = folder / "compiler" / "compile_cache.py"
    monkeypatch.setattr(compile_cache, "__file__", str(place))
    found = set()
    for name in ("", "compiler/instructions.py", "vectors.py", "task.py"):
        with (folder / (name or "tiles.py")).open("a") as file:
            file.write("# changed\n")
        found.add(hash_sources.__wrapped__(folder / "slot_search.py"))
    found.add(hash_sources.__wrapped__(Path(__file__)))
    assert len(found) == 5


def test_a_change_of_the_sources_makes_another_entry(cache, entry, monkeypatch):
    monkeypatch.setattr(compile_cache, "hash_sources", lambda _: "other")
    assert not runs(add, 3)
    assert len(list(cache.iterdir())) == 2


def test_entries_of_a_folder_are_bounded(tmp_path):
    for index in range(6):
        (tmp_path / f"{index}{SUFFIX}").touch()
        os.utime(tmp_path / f"{index}{SUFFIX}", (1000 - index,) * 2)
    for name in (f".killed{SUFFIX}", "somebody's"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / f".writing{SUFFIX}").touch()
    remove_oldest(tmp_path, 2)
    assert {each.name for each in tmp_path.iterdir()} == {
        f"0{SUFFIX}", f"1{SUFFIX}", f".writing{SUFFIX}", "somebody's"
    }  # fmt: skip


def test_an_entry_that_is_used_stays(cache, entry):
    os.utime(entry, (0, 0))
    assert runs(add, 3)
    assert entry.stat().st_mtime > 0


FLIPS = """
    import random, sys
    from pathlib import Path
    from dragoman.kernels.cpu_search.compiler.instructions import compiled

    def add(one, other):
        return one + other

    def run():
        fresh = compiled(add)
        assert fresh(1, 2) == 3
        return len(fresh.stats.cache_hits)

    hits = [run(), run()]
    (path,) = Path(sys.argv[1], "dragoman").iterdir()
    draw = random.Random(1)
    for _ in range(20):
        contents = bytearray(path.read_bytes())
        contents[draw.randrange(len(contents))] ^= 1 << draw.randrange(8)
        path.write_bytes(contents)
        hits += [run(), run()]
    print(hits == 21 * [0, 1])
"""

FULL = """
    import resource, sys
    from pathlib import Path
    from dragoman.kernels.cpu_search.compiler.instructions import compiled

    def add(one, other):
        return one + other

    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    print(compiled(add)(1, 2) == 3 and not list(Path(sys.argv[1], "dragoman").iterdir()))
"""

ONCE = """
    import sys
    from dragoman.kernels.cpu_search.compiler.instructions import compiled

    def add(one, other):
        return one + other

    print(compiled(add)(1, 2) == 3)
"""


def start(code, folder, script):
    if not script.exists():  # other processes may be reading it
        script.write_text(textwrap.dedent(code))
    return subprocess.Popen(
        [sys.executable, script, folder],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("code", "complaint"), [(FLIPS, "damaged, or something else"), (FULL, "File too large")]
)
def test_a_process_of_its_own(tmp_path, code, complaint):
    process = start(code, tmp_path / "cache", tmp_path / "script.py")
    out, err = process.communicate()
    assert (process.returncode, out) == (0, "True\n"), err
    assert err.count("\n") == 1
    assert complaint in err


def test_several_processes_compile_at_once(tmp_path):
    processes = [start(ONCE, tmp_path / "cache", tmp_path / "script.py") for _ in range(3)]
    for each in processes:
        assert each.communicate() == ("True\n", "")
    assert len(list((tmp_path / "cache" / "dragoman").iterdir())) == 1


@pytest.mark.slow
def test_the_functions_that_translate_survive_damage(tmp_path):
    module = "dragoman.decoding.engines.cpu.background_compile"
    code = f"from {module} import compile_search\ncompile_search('int8')\n"
    process = start(code, tmp_path / "cache", tmp_path / "script.py")
    assert process.communicate()[0] == ""
    assert process.returncode == 0
    draw = random.Random(2)
    entries = sorted((tmp_path / "cache" / "dragoman").glob("slot_search.*"))
    assert entries
    for entry in entries:
        contents = bytearray(entry.read_bytes())
        contents[draw.randrange(len(contents))] ^= 1
        entry.write_bytes(contents)
    process = start(code, tmp_path / "cache", tmp_path / "script.py")
    _, err = process.communicate()
    assert process.returncode == 0
    assert "damaged, or something else; compiling anew without it" in err
    assert "Traceback" not in err
