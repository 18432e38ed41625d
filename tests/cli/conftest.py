"""Models and vocabularies as the tests of exchange make them."""

from tests.exchange.conftest import make_model, own, trained  # noqa: F401
