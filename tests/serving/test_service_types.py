"""What passes between protocols and service."""

import asyncio

from dragoman.serving.service_types import (
    ServiceError,
    format_pivot_paths,
    record_pivot_paths,
    reset_pivot_paths,
)


def test_an_error_says_what_protocols_need():
    error = ServiceError("too_long", "much too long", retry_after=2.0, details={"limit": 3})
    assert (error.kind, error.message, str(error)) == ("too_long", "much too long", "much too long")
    assert (error.retry_after, error.details) == (2.0, {"limit": 3})
    assert ServiceError("failed", "x").details == {}


def test_formats_each_pivot_path_once():
    async def answer():
        reset_pivot_paths()
        record_pivot_paths([("fr", "en"), ("fr", "en", "es"), ("en",)])
        await asyncio.sleep(0)
        record_pivot_paths([("fr", "en", "es"), ("de", "en", "es")])
        return format_pivot_paths()

    assert asyncio.run(answer()) == "fr-en-es, de-en-es"


def test_concurrent_requests_record_their_own_pivot_paths():
    async def answer(path, barrier):
        reset_pivot_paths()
        await barrier.wait()
        record_pivot_paths([path])
        await barrier.wait()
        return format_pivot_paths()

    async def all_answers():
        barrier = asyncio.Barrier(2)
        return await asyncio.gather(answer(("a", "b", "c"), barrier), answer(("a", "b"), barrier))

    assert asyncio.run(all_answers()) == ["a-b-c", ""]


def test_without_a_request_nothing_is_recorded():
    record_pivot_paths([("a", "b", "c")])
    assert format_pivot_paths() == ""


def test_can_always_be_a_header():
    reset_pivot_paths()
    record_pivot_paths([("fr", "ü\n", "es")])
    assert format_pivot_paths() == "fr-??-es"
