"""A process that translates answers every message, whatever becomes of it."""

import io
import signal
import subprocess
import sys

from dragoman.decoding.translator import Translator
from dragoman.serving.queue.process_messages import (
    pack_tasks,
    read_message,
    unpack_translations,
    write_message,
)
from dragoman.serving.queue.translation_process import serve
from dragoman.serving.sentence_translation import (
    Candidate,
    SentenceTask,
    SentenceTranslation,
    TranslationSettings,
)
from dragoman.serving.service_types import ServiceError


def shout(tasks):
    """Translate in capitals, and break at some words."""
    if tasks[0].text == "refused":
        raise ServiceError("bad_request", "not that word")
    if tasks[0].text == "poison":
        raise ValueError("somebody's secret")
    return [SentenceTranslation((Candidate(task.text.upper()),)) for task in tasks]


def test_every_message_is_answered_until_the_end():
    questions, answers = io.BytesIO(), io.BytesIO()
    for text in ("a", "refused", "poison", "b"):
        write_message(questions, pack_tasks([SentenceTask(text, TranslationSettings())]))
    questions.seek(0)
    serve(shout, questions, answers)
    answers.seek(0)
    found = [read_message(answers) for _ in range(5)]
    assert unpack_translations(found[0])[0].candidates[0].text == "A"
    assert found[1] == {"refusal": "not that word"}
    assert found[2] == {"failure": "ValueError"}  # and nothing of its words
    assert unpack_translations(found[3])[0].candidates[0].text == "B"
    assert found[4] is None


def test_as_a_process_it_outlives_signals_and_ends_with_its_input(tiny_folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman.serving.queue.translation_process", str(tiny_folder.path),
         "auto", "1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert read_message(process.stdout) == {"ready": True}
        for number in (signal.SIGTERM, signal.SIGINT):
            process.send_signal(number)  # as a terminal or a service manager may do
        write_message(
            process.stdin, pack_tasks([SentenceTask("A garden.", TranslationSettings(beam_size=2))])
        )
        (found,) = unpack_translations(read_message(process.stdout))
        process.stdin.close()
        assert process.wait(30) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
    translator = Translator.load(tiny_folder.path, "cpu")
    options = translator.options_with({"beam_size": 2})
    plain = translator.translate("A garden.", options=options)
    assert found.candidates[0].text == plain.text or found.notes
