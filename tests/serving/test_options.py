"""Options of a server that cannot be meant are refused."""

import pytest

from dragoman.errors import OptionError
from dragoman.serving.options import ServeOptions


def test_binds_to_loopback_unless_told_otherwise():
    assert ServeOptions().host == "127.0.0.1"


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("port", -1, "must be from 0 to 65535"),
        ("port", 65536, "must be from 0 to 65535"),
        *(
            (name, 0, "must be at least 1")
            for name in [
                "batch_tokens",
                "queue_tokens",
                "max_characters",
                "max_texts",
                "max_beam_size",
                "max_body_bytes",
                "max_file_bytes",
                "max_connections",
                "requests_per_minute",
            ]
        ),
        ("wait_milliseconds", -1.0, "must not be negative"),
        ("cache_characters", -1, "must not be negative"),
        ("stop_seconds", -1.0, "must not be negative"),
        ("processes", -1, "must not be negative"),
        ("client_seconds", 0.0, "must be above 0"),
        ("queue_seconds", 0.0, "must be above 0"),
    ],
)
def test_impossible_values_are_named(name, value, remedy):
    with pytest.raises(OptionError, match=f"{name} is {value}.*{remedy}"):
        ServeOptions(**{name: value})
