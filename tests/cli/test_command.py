"""The command as people meet it: what it prints, where, and how it fails."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.command_line import fail, run_process

from dragoman.cli.command import build_parser, main


def test_help_imports_nothing_heavy():
    code = (
        "import sys, dragoman.cli.command as cli\n"
        "parser = cli.build_parser()\n"
        "parser.format_help()\n"
        "heavy = {'torch', 'numpy', 'sentencepiece', 'sacrebleu', 'rich', 'matplotlib'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "verb", ["", "train", "translate", "score", "evaluate", "compare", "average", "look", "data"]
)
def test_every_verb_has_help(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([*([verb] if verb else []), "--help"])
    assert stop.value.code == 0
    assert "usage: dragoman" in capsys.readouterr().out


def test_version_and_module(capsys):
    answer = run_process(["--version"])
    assert answer.returncode == 0
    assert answer.stdout.startswith("dragoman ")


def test_unknown_verb(capsys):
    assert "invalid choice: 'trian'" in fail(capsys, "trian")


def test_no_verb(capsys):
    assert "which verb?" in fail(capsys)


def test_full_disk_while_printing(tmp_path):
    words = ["data", "builtin", "--sentences", "9", "--held-out", "1", "--out", tmp_path / "b"]
    command = [sys.executable, "-m", "dragoman", *map(str, words)]
    buffered = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(
            command, stdout=full, stderr=-1, text=True, check=False, env=buffered
        )
    assert answer.returncode == 2
    assert answer.stderr.startswith(
        "dragoman: standard output: cannot be written (No space left on device); the work is done"
    )
    assert (tmp_path / "b" / "train.fr").exists()


def test_closed_output_where_nothing_must_be_printed(tmp_path):
    words = ["data", "builtin", "--sentences", "9", "--held-out", "1", "--out", tmp_path / "b"]
    answer = subprocess.run(
        [sys.executable, "-m", "dragoman", *map(str, words)],
        stderr=-1, check=False, preexec_fn=lambda: os.close(1),
    )  # fmt: skip
    assert (answer.returncode, answer.stderr) == (0, b"")


def test_complaints_that_cannot_be_told(tmp_path):
    buffered = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(
            [sys.executable, "-m", "dragoman", "no-verb"], stderr=full, check=False, env=buffered
        )
    assert answer.returncode == 2


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_out_of_memory(error, model, capsys, monkeypatch):
    def run_out(*_, **__):
        raise error

    monkeypatch.setattr("dragoman.decoding.translator.Translator.load", run_out)
    line = fail(capsys, "translate", model, os.devnull)
    assert line.startswith("dragoman: out of memory; ")


def test_debug_shows_the_traceback(tmp_path):
    answer = run_process(["translate", tmp_path / "none", "--debug"])
    assert "Traceback" in answer.stderr


def test_parser_is_built_once_for_all_verbs():
    assert build_parser().prog == "dragoman"


INTERRUPTED_IMPORT = """
import os, signal, sys
from dragoman.cli.command import main
count = 0
def interrupt(event, arguments):
    global count
    count += event == "import"
    if event == "import" and count == {number}:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(interrupt)
sys.argv = ["dragoman", *{words}]
main()
"""


@pytest.mark.parametrize("number", [1, 2, 10, 50, 100, 200, 400])
def test_interrupted_while_importing(tmp_path, model, number):
    (tmp_path / "in.de").write_text("Zahl 1\n")
    words = ["translate", str(model), str(tmp_path / "in.de")]
    code = INTERRUPTED_IMPORT.format(number=number, words=words)
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (130, "dragoman: interrupted\n")


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.1 * step for step in range(1, 21)])
def test_interrupted_at_any_moment(tmp_path, model, delay):
    command = [sys.executable, "-m", "dragoman", "translate", str(model), "--device", "cpu"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, **pipes) as process:  # which waits for input
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        finally:
            process.kill()
        assert (process.returncode, process.stderr.read()) == (130, "dragoman: interrupted\n")


def test_what_a_message_quotes_does_no_harm(capsys, tmp_path):
    line = fail(capsys, "translate", tmp_path / "\x1b[31mred\x07")
    assert "�[31mred�: no such model folder" in line
    line = fail(capsys, "translate", tmp_path / "/".join(["x" * 200] * 15))
    assert len(line) < 2100
    assert line.endswith("train one with “dragoman train”")
