"""The verb “translate” as people meet it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.cli.command_line import fail, run_process


def test_no_model(capsys, tmp_path):
    assert "no such model folder" in fail(capsys, "translate", tmp_path / "none")
    assert "not a model folder" in fail(capsys, "translate", tmp_path)


def test_truncated_weights(capsys, model, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in model.iterdir():
        if path.is_file():
            (copy / path.name).write_bytes(path.read_bytes())
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert f"{weights}: missing, cut short" in fail(capsys, "translate", copy)


def test_translate_is_line_by_line_and_nothing_else(model, tmp_path):
    text = "Zahl 1 7 3\n\nZahl 2 4 6\n   \n"
    run_process(["translate", model], input="Zahl 1\n")  # says so if it has to compile first
    answer = run_process(["translate", model], input=text)
    assert answer.returncode == 0
    assert answer.stderr == ""
    lines = answer.stdout.split("\n")
    assert len(lines) == 5
    assert lines[1] == lines[3] == lines[4] == ""
    (tmp_path / "text").write_text(text)
    assert run_process(["translate", model, tmp_path / "text"]).stdout == answer.stdout


def test_first_translation_does_not_wait_for_the_last_line(model):
    command = [sys.executable, "-m", "dragoman", "translate", str(model)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("Zahl 1\n")
        process.stdin.flush()
        assert process.stdout.readline() != ""
        process.stdin.write("Zahl 2\n")
        process.stdin.close()
        assert process.stdout.readline() != ""
        assert process.wait() == 0


def test_n_best_has_scores_in_falling_order(model):
    answer = run_process(["translate", model, "--n-best", "3"], input="Zahl 1\nZahl 2\n")
    rows = [line.split(" ||| ") for line in answer.stdout.splitlines()]
    assert {row[0] for row in rows} == {"0", "1"}
    for number in ("0", "1"):
        scores = [float(row[2]) for row in rows if row[0] == number]
        assert 1 <= len(scores) <= 3
        assert scores == sorted(scores, reverse=True)


def test_input_that_is_not_utf8(model):
    command = [sys.executable, "-m", "dragoman", "translate", str(model)]
    answer = subprocess.run(command, input=b"gut\n\xff\nso\n", capture_output=True, check=False)
    assert answer.returncode == 0
    assert answer.stdout.count(b"\n") == 3
    assert "standard input, line 2: not UTF-8" in answer.stderr.decode()


def test_full_disk_while_translating(model):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "dragoman", "translate", str(model)]
        answer = subprocess.run(
            command, input="Zahl 1\n", stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1].startswith("dragoman: No space left on device")
    assert "Traceback" not in answer.stderr


def test_closed_pipe_is_no_error(model):
    translate = f"{sys.executable} -m dragoman translate {model} --max-extra-tokens 1"
    command = f"yes Zahl | head -5000 | {translate} | head -1"
    answer = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert len(answer.stdout.splitlines()) == 1
    assert "Traceback" not in answer.stderr


def test_unreadable_input(model):
    answer = run_process(["translate", model], stdin=None, preexec_fn=lambda: os.close(0))
    assert answer.returncode == 2
    assert "standard input" in answer.stderr.splitlines()[-1]


def test_confidence_of_a_model_that_nobody_calibrated(model, capsys):
    said = fail(capsys, "translate", model, "--confidence")
    assert f"{model}: has no calibration of its confidence; calibrate with “dragoman ev" in said
    said = fail(capsys, "translate", model, "--confidence", "--with", model)
    assert "several models together have no calibration" in said
