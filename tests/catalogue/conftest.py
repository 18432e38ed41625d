"""A model home and a web server of their own for each test."""

import pytest
from tests.catalogue.local_sources import serving


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Give an empty model home."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def site():
    """Give a web server on this machine."""
    with serving() as site:
        yield site
