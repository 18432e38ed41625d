"""Ways through a third language are told to whoever answers the request."""

import asyncio

from dragoman.serving.pivot_path import begin_passage, describe_passage, note_ways


def test_tells_ways_through_a_third_language_once():
    async def answer():
        begin_passage()
        note_ways([("fr", "en"), ("fr", "en", "es"), ("en",)])
        await asyncio.sleep(0)
        note_ways([("fr", "en", "es"), ("de", "en", "es")])
        return describe_passage()

    assert asyncio.run(answer()) == "fr-en-es, de-en-es"


def test_requests_do_not_hear_of_each_other():
    async def answer(way):
        begin_passage()
        await asyncio.sleep(0.01)
        note_ways([way])
        await asyncio.sleep(0.01)
        return describe_passage()

    async def all_answers():
        return await asyncio.gather(answer(("a", "b", "c")), answer(("a", "b")))

    assert asyncio.run(all_answers()) == ["a-b-c", ""]


def test_without_a_request_nothing_is_noted():
    note_ways([("a", "b", "c")])
    assert describe_passage() == ""


def test_can_always_be_a_header():
    begin_passage()
    note_ways([("fr", "ü\n", "es")])
    assert describe_passage() == "fr-??-es"
