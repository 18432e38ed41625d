"""Models beside those that are served: loaded one at a time, bounded, and like the model itself."""

import asyncio
import base64
import shutil
import threading

import numpy as np
import pytest
from tests.serving.word_model import write_word_model

from dragoman.decoding.translator import Translator
from dragoman.errors import FolderError
from dragoman.insight.attention import look_at
from dragoman.serving.page import side_models
from dragoman.serving.page.page_request import LONGEST_LOOK
from dragoman.serving.page.side_models import (
    MOST_WAITING,
    SideModels,
    list_stages,
    load_weights,
    translate_and_look,
)
from dragoman.serving.service_types import ServiceError

SOURCE, TARGET = "the old dog sees a tree", "le vieux chien voit un arbre"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, vocabularies):
    return write_word_model(tmp_path_factory.mktemp("side") / "words", vocabularies)


def test_stages_are_in_order_and_the_model_is_last(folder, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(folder, run)
    weights = run / "model.safetensors"
    (run / "snapshots").mkdir()
    for step in (1, 20, 5):
        shutil.copy(weights, run / "snapshots" / f"step-{step:08d}.safetensors")
    (run / "snapshots" / "step-x.safetensors").touch()
    (run / "checkpoints" / "step-00000010").mkdir(parents=True)
    shutil.copy(weights, run / "checkpoints" / "step-00000010" / "model.safetensors")
    found = list_stages(run)
    names = ["update 1", "update 5", "update 10", "update 20", "model"]
    assert list(found) == names
    assert [step for step, _ in found.values()] == [1, 5, 10, 20, 20]
    for _, path in found.values():
        assert load_weights(run, path).translate(SOURCE).text == TARGET


def test_weights_that_are_gone_or_of_another_model_are_refused(folder, tmp_path):
    with pytest.raises(FolderError, match=r"no\.safetensors"):
        load_weights(folder, tmp_path / "no.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"nothing")
    with pytest.raises(FolderError, match=r"bad\.safetensors"):
        load_weights(folder, tmp_path / "bad.safetensors")


def test_attention_is_the_model_s_while_it_says_what_is_given(folder):
    translator = load_weights(folder, folder / "model.safetensors")
    own = translate_and_look(translator, SOURCE)
    assert (own["translation"], own["said"]) == (TARGET, TARGET)
    made = translate_and_look(translator, SOURCE, "un arbre")
    assert (made["translation"], made["said"]) == (TARGET, "un arbre")
    seen = look_at(Translator.load(folder, "cpu"), SOURCE, translation="un arbre")
    assert len(made["maps"]) == len(seen.maps)
    for map_, expected in zip(made["maps"], seen.maps, strict=True):
        assert (map_["kind"], map_["layer"]) == (expected.kind, expected.layer)
        weights = np.frombuffer(base64.b64decode(map_["weights"]), np.uint8) / 255
        assert np.abs(weights - expected.weights.flatten()).max() <= 1 / 255
    assert made["sides"]["target"]["words"][:2] == ("un", "arbre")


def test_what_is_too_long_is_refused_or_not_looked_into(folder, monkeypatch):
    translator = load_weights(folder, folder / "model.safetensors")
    with pytest.raises(ServiceError, match="too long to look into"):
        translate_and_look(translator, "dog " * (2 * LONGEST_LOOK))
    real = side_models.check_length

    def refuse_translations(translator, pair):
        if pair.translation:
            raise ServiceError("too_long", "no")
        return real(translator, pair)

    monkeypatch.setattr(side_models, "check_length", refuse_translations)
    found = translate_and_look(translator, SOURCE)
    assert (found["maps"], found["translation"]) == ([], TARGET)
    assert found["remark"] == side_models.TOO_LONG


def test_one_model_is_held_at_a_time():
    models, held, most = SideModels(), set(), []

    class Held:
        def __init__(self, name):
            held.add(name)
            self.name = name
            most.append(len(held))

        def __del__(self):
            held.discard(self.name)

    async def ask():
        for name in ("a", "a", "b", "a"):
            assert (
                await models.run(name, lambda name=name: Held(name), lambda one: one.name) == name
            )

    asyncio.run(ask())
    assert most == [1, 1, 1]  # “a” was loaded once for two questions


def test_questions_are_bounded_and_counted_down():
    models, gate = SideModels(), threading.Event()

    async def ask():
        waiting = [
            asyncio.ensure_future(models.run("a", object, lambda _: gate.wait(20)))
            for _ in range(MOST_WAITING)
        ]
        await asyncio.sleep(0)
        with pytest.raises(ServiceError, match="too many questions at once") as caught:
            await models.run("a", object, lambda _: None)
        assert caught.value.kind == "overloaded"
        waiting.pop().cancel()  # whoever asked has gone
        gate.set()
        await asyncio.gather(*waiting)
        await asyncio.sleep(0.1)
        assert await models.run("a", object, lambda _: 3) == 3

    asyncio.run(ask())


def test_what_fails_to_load_is_told_and_the_next_question_answered():
    models = SideModels()

    def fail():
        raise FolderError("damaged")

    async def ask():
        with pytest.raises(FolderError, match="damaged"):
            await models.run("a", fail, lambda _: None)
        assert await models.run("a", lambda: "there", lambda one: one) == "there"

    asyncio.run(ask())
