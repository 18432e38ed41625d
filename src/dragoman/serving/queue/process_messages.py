"""Messages between the server and its translation processes.

A message is JSON in UTF-8, after its length in four bytes.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import IO, Any, cast

from dragoman.serving.sentence_translation import (
    Candidate,
    SentenceTask,
    SentenceTranslation,
    TranslationSettings,
)
from dragoman.serving.service_types import Span

Message = dict[str, Any]


def write_message(stream: IO[bytes], message: Message) -> None:
    """Send a message."""
    content = json.dumps(message).encode()
    stream.write(len(content).to_bytes(4, "big") + content)
    stream.flush()


def read_message(stream: IO[bytes]) -> Message | None:
    """Read the next message; None: the stream has ended."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    size = int.from_bytes(head, "big")
    content = stream.read(size)
    return json.loads(content) if len(content) == size else None


def pack_tasks(tasks: Sequence[SentenceTask]) -> Message:
    """Pack sentences of equal settings into a message."""
    return {
        "settings": asdict(tasks[0].settings),
        "texts": [task.text for task in tasks],
        "ids": [task.ids for task in tasks],
    }


def unpack_tasks(message: Message) -> list[SentenceTask]:
    """Unpack sentences from a message."""
    plain = message["settings"]
    terms = tuple((source, target) for source, target in plain["terms"])
    settings = TranslationSettings(**(plain | {"terms": terms}))
    return [
        SentenceTask(text, settings, ids)
        for text, ids in zip(message["texts"], message["ids"], strict=True)
    ]


def pack_translations(translations: Sequence[SentenceTranslation]) -> Message:
    """Pack translations into a message."""
    return {"translations": translations}


def unpack_translations(message: Message) -> list[SentenceTranslation]:
    """Unpack translations from a message."""
    return [
        SentenceTranslation(
            tuple(
                Candidate(text, tuple(cast(Span, tuple(span)) for span in spans), confidence)
                for text, spans, confidence in candidates
            ),
            tuple(notes),
            num_tokens,
        )
        for candidates, notes, num_tokens in message["translations"]
    ]
