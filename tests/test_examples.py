"""Every program in examples/ runs, on a model that the first of them trains."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SENTENCE = "Jane visite l’Afrique en septembre."
pytestmark = pytest.mark.slow


def run(name: str, *words: object, given: str = "") -> str:
    """Run an example as a person would, on one core, and return what it prints."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, words)],
        input=given,
        env=os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a corpus and a model that the example of training left there."""
    folder = tmp_path_factory.mktemp("examples")
    said = run("train.py", folder, 300, 4)
    assert (folder / "model" / "model.safetensors").exists()
    assert said.count("\n") >= 1
    return folder


def test_every_example_is_run():
    text = Path(__file__).read_text(encoding="utf-8")
    for path in EXAMPLES.glob("*.py"):
        assert f'run("{path.name}"' in text, path.name


def test_translate_shows_two_translations_of_each_line(place):
    said = run("translate.py", place / "model", given=f"{SENTENCE}\nBonjour.\n")
    assert said.startswith(SENTENCE)
    assert len([line for line in said.splitlines() if line.startswith("  ")]) >= 4


def test_serve_answers_one_request(place):
    said = run("serve.py", place / "model")
    assert said.endswith("\n")
    assert "Traceback" not in said


def test_look_inside_draws_two_pictures(place):
    said = run("look_inside.py", place / "model", SENTENCE, place, "Jane visits Africa.")
    assert "←" in said
    for name in ("attention", "explanation"):
        assert (place / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_compare_says_which_is_better_or_that_neither_is_shown_to_be(place):
    corpus = place / "corpus"
    said = run("compare.py", place / "model", corpus / "test.fr", corpus / "test.en")
    assert said.count("perplexity") == 2
    assert "greedy" in said.splitlines()[-1]
