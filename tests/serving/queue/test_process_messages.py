"""What is sent arrives."""

import io

from hypothesis import given
from hypothesis import strategies as st

from dragoman.serving.queue.process_messages import (
    pack_tasks,
    pack_translations,
    read_message,
    unpack_tasks,
    unpack_translations,
    write_message,
)
from dragoman.serving.sentence_translation import (
    Candidate,
    SentenceTask,
    SentenceTranslation,
    TranslationSettings,
)

TEXTS = st.text(max_size=20)
MANNERS = st.builds(
    TranslationSettings,
    num_best=st.integers(1, 9),
    beam_size=st.none() | st.integers(1, 9),
    prefix=TEXTS,
    terms=st.lists(st.tuples(TEXTS, TEXTS), max_size=3).map(tuple),
    wants_alignment=st.booleans(),
    wants_confidence=st.booleans(),
)
SPANS = st.lists(st.tuples(*[st.integers(0, 99)] * 4), max_size=3).map(tuple)
SHARES = st.none() | st.floats(0, 1)
RENDERINGS = st.builds(
    SentenceTranslation,
    st.lists(st.builds(Candidate, TEXTS, SPANS, st.none() | st.floats(0, 1)), max_size=3).map(
        tuple
    ),
    st.lists(TEXTS, max_size=2).map(tuple),
    st.integers(0, 99),
)


def sent(message):
    stream = io.BytesIO()
    write_message(stream, message)
    write_message(stream, {"another": 1})
    stream.seek(0)
    found = read_message(stream)
    assert read_message(stream) == {"another": 1}
    assert read_message(stream) is None
    return found


IDS = st.none() | st.lists(st.integers(0, 99), max_size=3)


@given(MANNERS, st.lists(st.tuples(TEXTS, IDS), min_size=1, max_size=4))
def test_sentences_arrive_as_they_were(settings, sentences):
    tasks = [SentenceTask(text, settings, ids) for text, ids in sentences]
    assert unpack_tasks(sent(pack_tasks(tasks))) == tasks


@given(st.lists(RENDERINGS, max_size=4))
def test_translations_arrive_as_they_were(translations):
    assert unpack_translations(sent(pack_translations(translations))) == translations


@given(st.integers(0, 20))
def test_half_a_message_is_none(size):
    stream = io.BytesIO()
    write_message(stream, {"text": "a long enough one"})
    assert read_message(io.BytesIO(stream.getvalue()[:size])) is None
