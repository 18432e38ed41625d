"""A corpus that a very small model can learn, and runs of a very small model."""

import json
import random
from pathlib import Path

import pytest

from dragoman.data.corpus import CorpusFiles
from dragoman.training.preparation import RunRequest
from dragoman.training.run import start_run

WORDS = {"un": "one", "deux": "two", "trois": "three", "quatre": "four", "cinq": "five"}

SMALL = {
    "model": {
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "model_dim": 16,
        "feed_forward_dim": 32,
        "num_heads": 2,
        "dropout": 0.1,
    },
    "text": {"vocabulary_size": 320},
    "corpus": {"valid_pairs": 20},
    "training": {
        "batch_tokens": 200,
        "warmup_steps": 20,
        "validate_every": 4,
        "log_every": 2,
        "max_steps": 8,
        "average_checkpoints": 2,
        "device": "cpu",
        "precision": "float32",
    },
}


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Numbers in French and English."""
    folder = tmp_path_factory.mktemp("corpus")
    chance = random.Random(7)
    pairs = [[chance.choice(list(WORDS)) for _ in range(chance.randint(1, 7))] for _ in range(300)]
    source = [" ".join(words) for words in pairs]
    target = [" ".join(WORDS[word] for word in words) for words in pairs]
    for name, lines in (("train.fr", source), ("train.en", target)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return CorpusFiles(source=(folder / "train.fr",), target=(folder / "train.en",))


@pytest.fixture
def small():
    """The options of a very small run, to be changed at will."""
    return json.loads(json.dumps(SMALL))


@pytest.fixture
def said():
    """What a run said."""
    return []


@pytest.fixture
def run(corpus, said):
    """Start a run of a very small model."""

    def start(out: Path, options: dict, **request) -> Path:
        request = {"preset": "tiny"} | request
        asked = RunRequest(out=out, files=corpus, config=options, **request)
        start_run(asked, said.append)
        return out

    return start


@pytest.fixture
def events():
    """Read events of one kind from a run's log."""

    def read(out: Path, kind: str) -> list[dict]:
        lines = (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    return read


@pytest.fixture(scope="session")
def whole(tmp_path_factory, corpus):
    """A run with a moving average that nothing happened to; tests that change it must copy it."""
    options = json.loads(json.dumps(SMALL))
    options["training"]["ema_decay"] = 0.9
    out = tmp_path_factory.mktemp("whole") / "out"
    start_run(RunRequest(out=out, files=corpus, preset="tiny", config=options), print)
    return out
