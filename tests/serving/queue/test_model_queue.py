"""A model queue caches, batches, and drops what nobody waits for."""

import asyncio
import os
import threading

import pytest
from tests.serving.small_service import CLIENT
from tests.serving.test_metrics import read

from dragoman.serving.language_pairs import load_models
from dragoman.serving.metrics import Metrics
from dragoman.serving.options import ServeOptions
from dragoman.serving.queue.model_queue import ModelQueue, count_cores, weigh_terms
from dragoman.serving.queue.translation_cache import TranslationCache
from dragoman.serving.sentence_translation import TranslationSettings
from dragoman.serving.service_types import ServiceError
from dragoman.text.subwords import Subwords


@pytest.fixture(scope="module")
def model(tiny_folder):
    return load_models([tiny_folder.path], "cpu").all[0]


class Scene:
    """A model queue and its metrics."""

    def __init__(self, model, **options):
        options = {"wait_milliseconds": 0.0} | options
        self.metrics = Metrics()
        self.cache = TranslationCache(options.pop("cache_characters", 10_000))
        self.queue = ModelQueue(model, ServeOptions(**options), self.cache, self.metrics)

    def run(self, work):
        """Run something while the model queue runs."""

        async def run():
            self.queue.start()
            try:
                return await asyncio.wait_for(work(self.queue), 30)
            finally:
                await asyncio.to_thread(self.queue.stop, 10)

        return asyncio.run(run())

    @property
    def num_translated(self):
        return read(self.metrics)["dragoman_batch_sentences_sum", "tiny"]


def test_sentences_are_encoded_once(model, monkeypatch):
    scene = Scene(model)
    encoded = []
    original = Subwords.encode

    def spy(self, texts, num_threads=1):
        encoded.extend(texts)
        return original(self, texts, num_threads)

    monkeypatch.setattr(Subwords, "encode", spy)

    async def work(queue):
        return await queue.translate(["A dog.", "A tree."], TranslationSettings(), CLIENT)

    scene.run(work)
    assert encoded == ["A dog.", "A tree."]


def test_repeated_sentences_are_translated_once(model):
    scene = Scene(model)

    async def work(queue):
        first = await queue.translate(
            ["A dog.", "A tree.", "A dog."], TranslationSettings(), CLIENT
        )
        second = await queue.translate(["A tree.", "A house."], TranslationSettings(), CLIENT)
        return first, second

    first, second = scene.run(work)
    assert first[0] is first[2]
    assert first[1] is second[0]
    assert scene.num_translated == 3
    found = read(scene.metrics)
    assert (found["dragoman_cache_total", "yes"], found["dragoman_cache_total", "no"]) == (1, 3)


@pytest.mark.parametrize(
    "settings",
    [
        TranslationSettings(num_best=2),
        TranslationSettings(beam_size=2),
        TranslationSettings(prefix="le"),
        TranslationSettings(terms=(("dog", "chien"),)),
        TranslationSettings(wants_alignment=True),
    ],
    ids=str,
)
def test_what_was_asked_otherwise_is_not_remembered(model, settings):
    scene = Scene(model)

    async def work(queue):
        await queue.translate(["A dog."], TranslationSettings(), CLIENT)
        await queue.translate(["A dog."], settings, CLIENT)
        await queue.translate(["A dog."], settings, CLIENT)

    scene.run(work)
    assert scene.num_translated == 2


def test_wide_beams_cost_more(model):
    scene = Scene(model)
    costs = []
    submit = scene.queue._queue.submit

    def spy(pending, **options):
        costs.append(pending.costs[0])
        submit(pending, **options)

    scene.queue._queue.submit = spy

    async def work(queue):
        for settings in (
            TranslationSettings(),
            TranslationSettings(beam_size=6),
            TranslationSettings(num_best=9),
            TranslationSettings(beam_size=1),
        ):
            await queue.translate(["A dog."], settings, CLIENT)

    scene.run(work)  # the model's own beam is 3
    assert costs == [costs[0], 2 * costs[0], 3 * costs[0], costs[0]]


def test_sentences_with_terms_cost_more():
    terms = (("dog", "chien"), ("old dog", "vieux chien"))
    assert weigh_terms(["A dog.", "A cat.", "An old dog."], terms) == [8, 1, 8]
    assert weigh_terms(["A dog."], ()) == [1]


def test_too_many_terms_in_a_sentence_are_refused_before_they_wait(model):
    terms = (*((f"t{number}", "x") for number in range(21)), ("dog", "chien"))
    many = " ".join(f"t{number}" for number in range(21))
    assert weigh_terms(["dog, " * 20, "dog. " * 20], terms) == [8, 8]
    for sentence in (many, "dog, " * 21):
        scene = Scene(model)
        translate = scene.queue.translate(
            ["A dog.", sentence], TranslationSettings(terms=terms), CLIENT
        )
        message = "occur 21 times in a sentence, but 20 are the most; send shorter sentences"
        with pytest.raises(ServiceError, match=message) as caught:
            asyncio.run(translate)
        assert caught.value.kind == "bad_request"
        assert scene.queue.num_waiting == 0


def test_without_a_cache_everything_is_translated(model):
    scene = Scene(model, cache_characters=0)

    async def work(queue):
        for _ in range(2):
            await queue.translate(["A dog."], TranslationSettings(), CLIENT)

    scene.run(work)
    assert scene.num_translated == 2


def test_the_cache_knows_models_apart(model, tiny_folder):
    scene = Scene(model)

    async def work(queue):
        return await queue.translate(["A dog."], TranslationSettings(), CLIENT)

    scene.run(work)
    assert [key[0] for key in scene.cache._entries] == ["tiny"]


class Obstacle:
    """Other work that holds a model up until somebody lets it go."""

    def __init__(self):
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, translator):
        self.has_begun.set()
        self.may_end.wait(20)
        return translator


def test_who_goes_away_costs_nothing_further(model):
    scene = Scene(model)
    obstacle = Obstacle()

    async def work(queue):
        holding = asyncio.create_task(queue.run_side_task(obstacle))
        await asyncio.to_thread(obstacle.has_begun.wait, 20)
        gone = asyncio.create_task(
            queue.translate(["A dog."] + ["A tree."] * 3, TranslationSettings(), CLIENT)
        )
        stays = asyncio.create_task(queue.translate(["A house."], TranslationSettings(), CLIENT))
        while queue.num_waiting < 3:
            await asyncio.sleep(0.001)
        gone.cancel()
        await asyncio.wait([gone])
        assert queue.num_waiting == 1
        obstacle.may_end.set()
        await holding
        return await stays

    assert len(scene.run(work)) == 1
    assert scene.num_translated == 1


def test_other_work_gets_the_translator_and_gives_its_result(model):
    async def work(queue):
        return await queue.run_side_task(
            lambda translator: (translator, threading.current_thread())
        )

    translator, thread = Scene(model).run(work)
    assert translator is model.translator
    assert thread.name == "model tiny"


def test_other_work_is_done_one_at_a_time(model):
    inside = []

    def look(translator):
        inside.append(1)
        assert len(inside) == 1
        threading.Event().wait(0.01)
        inside.pop()

    async def work(queue):
        await asyncio.gather(*(queue.run_side_task(look) for _ in range(6)))

    Scene(model).run(work)


def test_other_work_that_nobody_waits_for_is_not_done(model):
    scene = Scene(model)
    obstacle = Obstacle()
    done = []

    async def work(queue):
        holding = asyncio.create_task(queue.run_side_task(obstacle))
        await asyncio.to_thread(obstacle.has_begun.wait, 20)
        gone = asyncio.create_task(queue.run_side_task(done.append))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
        obstacle.may_end.set()
        await holding

    scene.run(work)
    assert not done


def test_failures_of_other_work_reach_whoever_asked(model):
    async def work(queue):
        await queue.run_side_task(lambda _: 1 // 0)

    with pytest.raises(ZeroDivisionError):
        Scene(model).run(work)


def test_processes_translate_as_the_server_does(model):
    sentences = [f"A {word} dog sees {other}." for word in "abc" for other in "gh"]

    async def work(queue):
        requests = [queue.translate([each], TranslationSettings(), CLIENT) for each in sentences]
        found = [each[0].candidates[0].text for each in await asyncio.gather(*requests)]
        while not queue.is_loaded:
            await asyncio.sleep(0.01)
        thread = await queue.run_side_task(lambda _: threading.current_thread().name)
        return found, thread

    scene = Scene(model, processes=2)
    assert not scene.queue.is_loaded
    processes = scene.queue._processes
    assert scene.run(work) == Scene(model).run(work)
    assert [process.process_id for process in processes] == [None, None]


def test_a_full_queue_refuses(model):
    scene = Scene(model, queue_tokens=10)
    obstacle = Obstacle()

    async def work(queue):
        holding = asyncio.create_task(queue.run_side_task(obstacle))
        await asyncio.to_thread(obstacle.has_begun.wait, 20)
        first = asyncio.create_task(
            queue.translate(["A dog sees a tree."], TranslationSettings(), CLIENT)
        )
        while not queue.num_waiting:
            await asyncio.sleep(0)
        with pytest.raises(ServiceError, match="too many texts are waiting"):
            await queue.translate(["A house sees a garden."], TranslationSettings(), CLIENT)
        obstacle.may_end.set()
        await asyncio.gather(holding, first)

    scene.run(work)


def test_cores_are_those_that_this_process_may_use():
    assert 1 <= count_cores() <= os.cpu_count()
