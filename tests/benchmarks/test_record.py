"""Results name the commit that they measure, and what has no commit is not written but not lost."""

import json
import subprocess

import pytest

from benchmarks import record


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A small checkout with one commit, instead of the one that these tests belong to."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("one = 1\n")
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "First")):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    monkeypatch.delenv("DRAGOMAN_COMMIT", raising=False)
    monkeypatch.setattr(record, "ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def no_commit(tmp_path, monkeypatch):
    """A copy of the tree that git does not know."""
    monkeypatch.delenv("DRAGOMAN_COMMIT", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setattr(record, "ROOT", tmp_path)


def write(folder):
    return record.write_result(
        "speed", {"lines_per_second": 7.5}, seeds=[1], folder=folder, machine="any"
    )


def test_commit_of_the_tree_is_named_wherever_the_script_is_started(tree, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    asked = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    name = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    assert record.find_commit() == record.require_commit() == name
    (tree / "notes.txt").write_text("not measured\n")
    assert record.find_commit() == name
    (tree / "src" / "code.py").write_text("one = 2\n")
    assert json.loads(write(tmp_path / "results").read_text())["commit"] == f"{name}+changes"


def test_commit_can_be_given(no_commit, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_COMMIT", "abc1234")
    assert record.require_commit() == "abc1234"


def test_measurement_does_not_begin_without_a_commit(no_commit):
    assert record.find_commit() == "unknown"
    with pytest.raises(SystemExit, match=r"git knows no commit here.*; set DRAGOMAN_COMMIT to its"):
        record.require_commit()


def test_machine_without_git_has_no_commit(no_commit, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert record.find_commit() == "unknown"


def test_result_without_a_commit_is_printed_and_not_written(no_commit, tmp_path, capsys):
    with pytest.raises(SystemExit, match=r"git knows no commit here"):
        write(tmp_path / "results")
    assert not (tmp_path / "results").exists()
    assert json.loads(capsys.readouterr().out)["figures"] == {"lines_per_second": 7.5}
