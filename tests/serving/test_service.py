"""The service translates what clients send, all the way."""

import asyncio

import pytest
from tests.serving.queue.test_model_queue import Obstacle
from tests.serving.small_service import ask, copy_folder, make_service, translate
from tests.serving.test_metrics import read

from dragoman.decoding.translator import Translator
from dragoman.serving.language_pairs import ServedModels
from dragoman.serving.options import ServeOptions
from dragoman.serving.service import LONG_CHARACTERS, Service
from dragoman.serving.service_types import Answer, Client, ServiceError


@pytest.fixture(scope="module")
def paths(tiny_folder, tmp_path_factory):
    """Give models en–fr and fr–de."""
    folder = tmp_path_factory.mktemp("served")
    return [copy_folder(tiny_folder.path, folder, *pair) for pair in (("en", "fr"), ("fr", "de"))]


@pytest.fixture(autouse=True)
def no_doubts(monkeypatch):
    """Take the words of an untrained model as they are."""
    monkeypatch.setattr(
        "dragoman.decoding.translator.search_again",
        lambda parts, *_: list(parts),
    )


@pytest.fixture(scope="module")
def plain(paths):
    """Give the translators themselves, to compare with."""
    return [Translator.load(path, "cpu") for path in paths]


def words_of(translator, *sentences):
    return [translator.translate(sentence).text for sentence in sentences]


def test_texts_become_what_their_sentences_do(paths, plain):
    text = "House a old old sees.  A dog.\n\n— \nFinds house likes dog.\t"
    (answers,) = translate(make_service(paths), ask(text, "A tree."))
    one, two, three, four = words_of(
        plain[0], "House a old old sees.", "A dog.", "Finds house likes dog.", "A tree."
    )
    assert [each.text for each in answers] == [f"{one}  {two}\n\n— \n{three}\t", four]
    assert answers[1] == Answer(text=four, source="en", path=("en", "fr"), num_characters=7)


def test_many_clients_are_served_together(paths, plain):
    service = make_service(paths, wait_milliseconds=50.0)
    texts = [f"A {word} dog." for word in ("small", "old", "tree", "house")] * 5
    clients = [Client(name=str(number)) for number in range(20)]
    requests = [ask(text, client=who) for text, who in zip(texts, clients, strict=True)]
    found = translate(service, *requests)
    assert [answers[0].text for answers in found] == words_of(plain[0], *texts)
    figures = read(service.metrics)
    assert figures["dragoman_batch_sentences_count", "en-fr"] < 20


def test_a_third_language_joins_two_and_is_said(paths, plain):
    (answers,) = translate(
        make_service(paths), ask("House a old old sees.", target="de", wants_alignment=True)
    )
    (between,) = words_of(plain[0], "House a old old sees.")
    assert answers[0].text == words_of(plain[1], between)[0]
    assert answers[0].path == ("en", "fr", "de")
    assert answers[0].notes[0] == "translated through French (fr)"


def test_texts_whose_language_is_found_may_take_different_ways(paths, plain, monkeypatch):
    service = make_service(paths)
    found = {"A dog.": [("en", 0.9)], "Un chien.": [("fr", 0.8)], "Ein Hund.": [("de", 0.7)]}
    monkeypatch.setattr(
        service._detector, "detect_all", lambda texts: [found[each] for each in texts]
    )
    (answers,) = translate(service, ask(*found, source=None, target="de"))
    assert [each.path for each in answers] == [("en", "fr", "de"), ("fr", "de"), ("de",)]
    assert [each.confidence for each in answers] == [0.9, 0.8, 0.7]
    assert answers[1].text == words_of(plain[1], "Un chien.")[0]
    assert answers[2].text == "Ein Hund."


def test_if_one_way_is_refused_the_others_are_given_up(paths, monkeypatch):
    service = make_service(paths)
    found = {"A dog.": [("en", 0.9)], "Un chien.": [("fr", 0.8)]}
    monkeypatch.setattr(
        service._detector, "detect_all", lambda texts: [found[each] for each in texts]
    )

    def refuse(*arguments, **options):
        raise ServiceError("overloaded", "full")

    monkeypatch.setattr(service._model_queues["fr-de"]._queue, "submit", refuse)
    (error,) = translate(service, ask(*found, source=None, target="de"))
    assert (error.kind, error.message) == ("overloaded", "full")
    assert service._model_queues["en-fr"].num_waiting == 0


def test_alternatives_are_the_model_s(paths, plain):
    (answers,) = translate(make_service(paths), ask("A dog.", num_alternatives=2))
    best = plain[0].translate("A dog.", num_best=3)
    assert [answers[0].text, *answers[0].alternatives] == [
        best.text,
        *(each.text for each in best.alternatives),
    ]


def test_a_beginning_is_kept_by_a_single_sentence(paths):
    service = make_service(paths)
    (answers,) = translate(service, ask("A dog.", prefix="le jardin"))
    assert answers[0].text.startswith("le jardin")
    assert read(service.metrics)["dragoman_batch_sentences_sum", "en-fr"] == 1


def test_a_beginning_reaches_into_later_sentences(paths, plain):
    first, second, third = "House a old old sees.", "A dog.", "Finds house likes dog."
    text = f"{first}\n{second} {third}"
    done = words_of(plain[0], first, second, third)
    begin = f"{done[0]}\nle jardin"
    (answers,) = translate(make_service(paths), ask(text, prefix=begin))
    assert answers[0].text.startswith(begin)
    assert answers[0].text.endswith(f" {done[2]}")


def test_a_beginning_that_is_what_comes_anyway_changes_nothing(paths, plain):
    first, second = "House a old old sees.", "Finds house likes dog."
    done = words_of(plain[0], first, second)
    (answers,) = translate(make_service(paths), ask(f"{first} {second}", prefix=done[0] + " "))
    assert answers[0].text == " ".join(done)


def test_tags_survive(paths, plain):
    (answers,) = translate(make_service(paths), ask("<p><b>A dog.</b></p>", markup="html"))
    (text,) = words_of(plain[0], "A dog.")
    assert answers[0].text.replace("<b>", "").replace("</b>", "") == f"<p>{text}</p>"
    assert answers[0].text.count("<b>") == answers[0].text.count("</b>") == 1


@pytest.mark.slow
def test_what_no_model_can_read_at_once_is_cut_into_pieces(paths, monkeypatch):
    service = make_service(paths, batch_tokens=80)
    longest = []
    original = Translator.translate_all

    def spy(self, texts, **options):
        longest.append(max(len(self.encode(text)) for text in texts))
        return original(self, texts, **options)

    monkeypatch.setattr(Translator, "translate_all", spy)
    text = " ".join(f"the small dog sees {number} trees and" for number in range(70)) + " "
    assert len(text) > LONG_CHARACTERS
    (answers,) = translate(service, ask(text, "a" + "\u0301" * 200))
    assert answers[0].text.endswith(" ")
    assert max(longest) <= 40  # as in training
    assert read(service.metrics)["dragoman_batch_sentences_count", "en-fr"] > 10


def test_a_failing_request_leaves_others_alone(paths, plain, monkeypatch):
    service = make_service(paths, wait_milliseconds=50.0)
    original = Translator.translate_all

    def break_at_poison(self, texts, **options):
        if "Poison." in texts:
            raise RuntimeError("broken")
        return original(self, texts, **options)

    requests = [ask(text) for text in ("A dog.", "Poison.", "A tree.", "A house.")]
    requests.append(ask("Fine.", "Poison."))
    with monkeypatch.context() as poisoned:
        poisoned.setattr(Translator, "translate_all", break_at_poison)
        found = translate(service, *requests)
    for index in (1, 4):
        assert found[index].kind == "failed"
    good = [found[index][0].text for index in (0, 2, 3)]
    assert good == words_of(plain[0], "A dog.", "A tree.", "A house.")
    assert read(service.metrics)["dragoman_failures_total", "failed"] == 2


def test_nothing_is_accepted_before_the_start_and_after_the_end(paths):
    service = make_service(paths)

    async def send():
        await service.translate(ask("A dog."))

    def check_refused():
        assert not service.is_ready
        with pytest.raises(ServiceError) as caught:
            asyncio.run(send())
        assert caught.value.kind == "not_ready"
        assert caught.value.message == "the server is stopping or not ready"

    check_refused()
    service.start()
    assert service.is_ready
    service.stop()
    check_refused()


def test_what_was_accepted_is_translated_before_the_end(paths):
    service = make_service(paths)
    obstacle = Obstacle()

    async def send():
        service.start()
        holding = asyncio.create_task(service.run_side_task("en-fr", obstacle))
        await asyncio.to_thread(obstacle.has_begun.wait, 20)
        accepted = [asyncio.create_task(service.translate(ask(f"A {n}."))) for n in range(5)]
        while service._model_queues["en-fr"].num_waiting < len(accepted):
            await asyncio.sleep(0)
        service.stop_accepting()
        obstacle.may_end.set()
        await holding
        found = await asyncio.gather(*accepted)
        await asyncio.to_thread(service.stop)
        return found

    assert len(asyncio.run(send())) == 5


def test_a_client_s_long_text_does_not_hold_up_another(paths):
    service = make_service(paths, batch_tokens=60, cache_characters=0)
    order = []

    async def send():
        service.start()
        obstacle = Obstacle()
        holding = asyncio.create_task(service.run_side_task("en-fr", obstacle))
        await asyncio.to_thread(obstacle.has_begun.wait, 20)

        async def one(name, *texts):
            await service.translate(ask(*texts, client=Client(name=name)))
            order.append(name)

        hog = asyncio.create_task(one("hog", *(f"A dog sees {n}." for n in range(60))))
        await asyncio.sleep(0)
        late = asyncio.create_task(one("late", "A tree."))
        await asyncio.sleep(0)
        obstacle.may_end.set()
        await asyncio.gather(holding, hog, late)
        await asyncio.to_thread(service.stop)

    asyncio.run(send())
    assert order == ["late", "hog"]


def test_room_is_there_as_long_as_one_model_has_some(paths, monkeypatch):
    service = make_service(paths)
    assert service.seconds_until_room("x", 1) is None
    for name, seconds in (("en-fr", 3.0), ("fr-de", 2.0)):
        model_queue = service._model_queues[name]
        monkeypatch.setattr(model_queue, "has_room", lambda *_: False)
        monkeypatch.setattr(model_queue, "estimate_seconds", lambda seconds=seconds: seconds)
        assert service.seconds_until_room("x", 1) == (None if name == "en-fr" else 2.0)


def test_a_service_without_models_has_room_for_nothing_to_do():
    service = Service(ServedModels([]))
    assert service.seconds_until_room("x", 1) is None
    assert service.is_ready


def test_looking_inside_needs_a_model_that_is_there(paths):
    service = make_service(paths)

    async def look(name):
        return await service.run_side_task(name, lambda translator: translator.folder.path)

    with pytest.raises(ServiceError) as caught:
        asyncio.run(look("nix"))
    assert caught.value.kind == "not_found"
    assert caught.value.message == "no model is called “nix”; there are en-fr, fr-de"
    with pytest.raises(ServiceError, match="stopping or not ready"):
        asyncio.run(look("en-fr"))


def test_languages_models_and_detection_are_passed_on(paths):
    service = make_service(paths)
    assert [each.code for each in service.languages()] == ["de", "en", "fr"]
    assert [each.name for each in service.models()] == ["en-fr", "fr-de"]
    codes = {code for code, _ in service.detect("Where is the small dog today?")}
    assert codes <= {"de", "en", "fr"}
    assert service.detect("Where is the small dog today?")[0][0] == "en"


def test_has_options_and_figures_of_its_own(paths):
    service = Service(make_service(paths)._models)
    assert service.options == ServeOptions()
    assert b"dragoman_queue_tokens" in service.metrics.write()


def test_nothing_to_translate_is_no_work(paths):
    found = translate(make_service(paths), ask(), ask("", " \n", "🙂"))
    assert found[0] == []
    assert [each.text for each in found[1]] == ["", " \n", "🙂"]
