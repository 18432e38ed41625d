"""What passes between protocols and service."""

from dragoman.serving.service_types import ServiceError


def test_an_error_says_what_protocols_need():
    error = ServiceError("too_long", "much too long", retry_after=2.0, details={"limit": 3})
    assert (error.kind, error.message, str(error)) == ("too_long", "much too long", "much too long")
    assert (error.retry_after, error.details) == (2.0, {"limit": 3})
    assert ServiceError("failed", "x").details == {}
