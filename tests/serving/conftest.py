"""Fixtures of all tests of the server."""

import pytest
from tests.serving.browser import open_browser


@pytest.fixture(scope="module")
def browser():
    with open_browser() as started:
        yield started
