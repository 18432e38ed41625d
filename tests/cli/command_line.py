"""Run the command as a person does, for its tests."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.command import main

SMALL = shlex.split(
    "--num-encoder-layers 1 --num-decoder-layers 1 --model-dim 16 --feed-forward-dim 32 "
    "--num-heads 2 --vocabulary-size 320 --batch-tokens 200 --warmup-steps 20 --valid-pairs 20 "
    "--average-checkpoints 2 --log-every 1 --device cpu --precision float32 --preset tiny"
)


def train_words(texts: Path, out: Path, *more: str) -> list[str]:
    files = ["--source", str(texts / "train.de"), "--target", str(texts / "train.en")]
    return ["train", *files, "--out", str(out), *SMALL, *more]


def run_process(words, **kwargs):
    command = [sys.executable, "-m", "dragoman", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)


def fail(capsys, *words) -> str:
    """Run a command that must fail in one line with status 2, and return the line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    assert stop.value.code == 2
    assert out == ""
    lines = err.splitlines()
    assert lines[-1].startswith("dragoman: ")
    assert "Traceback" not in err
    return lines[-1]
