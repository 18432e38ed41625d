"""A corpus and a model that the tests of several verbs share."""

import pytest
from tests.catalogue.conftest import home, site  # noqa: F401
from tests.cli.command_line import train_words
from tests.exchange.conftest import make_model, own, trained  # noqa: F401

from dragoman.cli.command import main


@pytest.fixture(scope="session")
def texts(tmp_path_factory):
    """A small parallel corpus on disk."""
    folder = tmp_path_factory.mktemp("texts")
    numbers = [f"{n} {n * 7 % 10} {n * 3 % 10}" for n in range(200)]
    for language, word in (("de", "Zahl"), ("en", "number")):
        lines = "".join(f"{word} {each}\n" for each in numbers)
        (folder / f"train.{language}").write_text(lines, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def model(texts, tmp_path_factory):
    """A model trained for a moment."""
    out = tmp_path_factory.mktemp("models") / "model"
    main(train_words(texts, out, "--max-steps", "2", "--validate-every", "2"))
    return out
