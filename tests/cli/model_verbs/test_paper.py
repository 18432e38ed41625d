"""The verb “paper” as people meet it."""

import json
import subprocess
import sys
from dataclasses import fields, is_dataclass

import pytest

from dragoman.cli.flags import Parser
from dragoman.cli.model_verbs.paper import EXPERIMENTS, add_paper
from dragoman.errors import DataError, OptionError


def call(*words: str) -> None:
    parser = Parser(prog="dragoman")
    add_paper(parser.add_subparsers(parser_class=Parser))
    options = parser.parse(["paper", *words])
    options.run(options)


def test_experiments_are_well_made():
    names = [entry.name for entry in EXPERIMENTS]
    assert len(set(names)) == len(names)
    assert "report" not in names
    for entry in EXPERIMENTS:
        assert is_dataclass(entry.options)
        assert entry.options()  # every option has a default
        assert callable(entry.run)
        assert "out" not in {each.name for each in fields(entry.options)}


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from dragoman.cli.flags import Parser\n"
        "from dragoman.cli.model_verbs.paper import add_paper\n"
        "parser = Parser(prog='dragoman')\n"
        "add_paper(parser.add_subparsers(parser_class=Parser))\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'rich', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("name", [*(entry.name for entry in EXPERIMENTS), "report"])
def test_every_experiment_has_help(name, capsys):
    with pytest.raises(SystemExit) as stop:
        call(name, "--help")
    assert stop.value.code == 0
    assert "--out DIR" in capsys.readouterr().out


def test_an_experiment_is_printed_and_written(tmp_path, capsys):
    out = tmp_path / "results"
    call("dictionary", "--out", str(out), "--queries", "name", "a b", "--coldest", "0.2")
    printed, said = capsys.readouterr()
    assert "What is found" in printed
    assert "Quinn" in printed
    assert str(out / "dictionary.json") in said
    told = json.loads((out / "dictionary.json").read_text(encoding="utf-8"))
    run = told["run"]
    assert run["command"] == "dragoman paper dictionary --queries name 'a b' --coldest 0.2"
    assert run["options"] == {"queries": ["name", "a b"], "coldest": 0.2}
    assert run["seconds"] >= 0
    assert run["seeds"] == []
    assert (out / "dictionary-look-ups.csv").exists()
    assert (out / "dictionary-temperature.png").exists()


def test_report_collects_and_names_what_is_missing(tmp_path, capsys):
    call("dictionary", "--out", str(tmp_path), "--queries", "name")
    capsys.readouterr()
    call("report", "--out", str(tmp_path))
    printed, said = capsys.readouterr()
    assert printed == f"{tmp_path / 'report.html'}\n"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Attention as a dictionary" in page
    for entry in EXPERIMENTS:
        command = f"dragoman paper {entry.name} --out {tmp_path}"
        is_missing = entry.name != "dictionary"
        assert (f"<code>{command}</code>" in page) == is_missing
        assert (f"{entry.name} is missing: {command}" in said) == is_missing


def test_report_of_nothing(tmp_path):
    with pytest.raises(DataError, match="no results there"):
        call("report", "--out", str(tmp_path / "none"))


def test_no_experiment():
    with pytest.raises(OptionError, match="which experiment\\? there are parameters, "):
        call()


def test_unknown_flags_and_values():
    with pytest.raises(OptionError, match="did you mean “--coldest”"):
        call("dictionary", "--coldes", "0.2")
    with pytest.raises(OptionError, match="--coldest is 2"):
        call("dictionary", "--coldest", "2")
