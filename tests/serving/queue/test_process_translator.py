"""A process that crashes fails alone, and there is another after it."""

import sys

import pytest

from dragoman.serving.queue.process_translator import ProcessEndedError, ProcessTranslator
from dragoman.serving.sentence_translation import SentenceTask, TranslationSettings
from dragoman.serving.service_types import ServiceError

# Stands in for a model: quick to start, and it can be told to crash.
PROGRAM = """
import json, os, sys

def send(message):
    content = json.dumps(message).encode()
    sys.stdout.buffer.write(len(content).to_bytes(4, "big") + content)
    sys.stdout.buffer.flush()

send({"ready": True})
while head := sys.stdin.buffer.read(4):
    texts = json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))["texts"]
    if "crash" in texts:
        os._exit(3)
    if "refused" in texts:
        send({"refusal": "not that word"})
    elif "poison" in texts:
        send({"failure": "ValueError"})
    else:
        send({"translations": [[[[text.upper(), [], None]], [], 1] for text in texts]})
"""


@pytest.fixture
def translator(tmp_path, monkeypatch):
    program = tmp_path / "stand_in.py"
    program.write_text(PROGRAM)
    start = ProcessTranslator._start

    def start_stand_in(self):
        self._command = [sys.executable, str(program)]
        start(self)

    monkeypatch.setattr(ProcessTranslator, "_start", start_stand_in)
    translator = ProcessTranslator(tmp_path, "auto", 1)
    yield translator
    translator.close()


def translate(translator, *texts):
    return [
        each.candidates[0].text
        for each in translator([SentenceTask(text, TranslationSettings()) for text in texts])
    ]


def test_waits_for_its_model(translator):
    assert not translator.is_ready
    translator.load()
    assert translator.is_ready
    translator.load()
    assert translate(translator, "a", "b") == ["A", "B"]


def test_refusals_and_failures_are_passed_on(translator):
    with pytest.raises(ServiceError, match="not that word") as caught:
        translate(translator, "refused")
    assert caught.value.kind == "bad_request"
    with pytest.raises(RuntimeError, match="ValueError"):
        translate(translator, "poison")
    assert translate(translator, "a") == ["A"]


@pytest.mark.parametrize("texts", [["crash"], ["a", "crash"]])
def test_after_a_crash_there_is_another_process(translator, texts):
    first = translator.process_id
    with pytest.raises(ProcessEndedError):
        translate(translator, *texts)
    assert not translator.is_ready
    assert translate(translator, "a") == ["A"]
    assert translator.process_id != first


def test_a_sentence_alone_is_tried_again_where_the_process_was_ended(translator):
    translator.load()
    first = translator.process_id
    translator._process.kill()
    translator._process.wait()
    assert translate(translator, "a") == ["A"]
    assert translator.process_id != first


def test_a_closed_one_has_no_process(translator):
    translator.load()
    process = translator._process
    translator.close()
    translator.close()
    assert process.poll() is not None
    assert translator.process_id is None
