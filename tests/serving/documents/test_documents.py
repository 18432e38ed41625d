import asyncio
import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serving.documents.word_by_word import translate
from tests.serving.fake_service import FakeService, fail
from tests.work import grows_linearly

from dragoman.serving.documents import documents
from dragoman.serving.documents.documents import (
    FORMATS,
    MOST_TEXTS_AT_ONCE,
    Progress,
    check_name,
    choose_output,
    find_format,
    find_source,
    read_document,
    translate_document,
)
from dragoman.serving.documents.text_documents import Document
from dragoman.serving.service_types import Client, Request, ServiceError

REQUEST = Request(texts=(), source="en", target="fr", client=Client(name="ann"))


def write_json(translations):
    return "|".join(f"{text}{list(spans)}" for text, spans in translations).encode()


def run(service, texts, request=REQUEST, progress=None):
    document = Document(texts=texts, write=write_json)
    written = asyncio.run(translate_document(service, document, request, progress=progress))
    return written.decode()


def test_texts_go_to_the_service_a_few_at_a_time():
    service = FakeService(max_texts=1000, max_characters=100)
    progress = Progress()
    texts = [f"t{number}" for number in range(70)]
    assert run(service, texts, progress=progress) == "|".join(f"{each.upper()}[]" for each in texts)
    sizes = [len(request.texts) for request in service.requests]
    assert max(sizes) <= MOST_TEXTS_AT_ONCE
    assert sum(sizes) == 70
    assert all(sum(map(len, request.texts)) <= 100 for request in service.requests)
    assert all(request.wants_alignment for request in service.requests)
    assert progress.num_done == progress.num_characters == sum(map(len, texts))


def test_a_text_that_is_too_long_is_cut_and_joined():
    service = FakeService(max_characters=20)
    assert run(service, ["one two three. Four five six seven."]) == (
        "ONE TWO THREE. FOUR FIVE SIX SEVEN.[]"
    )
    assert max(len(text) for request in service.requests for text in request.texts) <= 20


def test_spans_of_a_cut_text_are_shifted():
    parts = [("one ", ("UN", [(0, 3, 0, 2)])), ("two", ("DEUX", [(0, 3, 0, 4)]))]
    text, spans = documents._join_pieces(parts)
    assert text == "UN DEUX"
    assert [("one two"[a:b], text[c:d]) for a, b, c, d in spans] == [("one", "UN"), ("two", "DEUX")]


def test_a_language_is_found_for_the_whole(monkeypatch):
    service = FakeService()
    monkeypatch.setattr(service, "detect", lambda _: [("pt", 0.6), ("fr", 0.3), ("en", 0.1)])
    assert find_source(service, ["a"], "en") == "fr"
    assert find_source(service, ["a"], "pt") == "pt"
    run(service, ["a"], Request(texts=(), source=None, target="en", client=REQUEST.client))
    assert service.requests[0].source == "fr"


def test_marks_of_the_language_become_those_of_the_target():
    document = read_document("a.html", b'<p lang="en">One</p>', 100)
    for source in ("en", None):
        request = Request(texts=(), source=source, target="fr", client=REQUEST.client)
        written = asyncio.run(translate_document(FakeService(), document, request))
        assert written == b'<p lang="fr">ONE</p>'


def test_a_language_that_cannot_become_the_target_is_not_taken_for_another(monkeypatch):
    service = FakeService()
    monkeypatch.setattr(service, "detect", lambda _: [("pt", 0.99), ("fr", 0.01), ("en", 0.0)])
    request = Request(texts=(), source=None, target="en", client=REQUEST.client)
    with pytest.raises(ServiceError, match=r"seems to be Portuguese \(pt\), .* give its source"):
        run(service, ["a"], request)
    assert service.requests == []


def test_an_empty_document():
    assert (
        run(FakeService(), [], Request(texts=(), source=None, target="fr", client=REQUEST.client))
        == ""
    )


class Busy(FakeService):
    """Has room only for each third request."""

    async def translate(self, request):
        self.count = getattr(self, "count", 0) + 1
        if self.count % 3:
            raise ServiceError("overloaded", "full", retry_after=0.01)
        return await super().translate(request)


def test_a_document_waits_while_there_is_no_room(monkeypatch):
    assert run(Busy(), ["one", "two"]) == "ONE[]|TWO[]"
    monkeypatch.setattr(documents, "_PATIENCE", 2)
    with pytest.raises(ServiceError, match="full"):
        run(Busy(), ["one"])


def test_other_failures_end_it():
    service = FakeService()
    service.error = fail("failed")
    with pytest.raises(ServiceError, match="it is failed"):
        run(service, ["one"])
    assert len(service.requests) == 1


@given(name=st.text(max_size=20))
def test_a_name_that_is_let_through_is_no_path(name):
    try:
        assert check_name(name) == name
    except ServiceError:
        return
    assert name.strip()
    assert not set(name) & set("/\\\r\n\0")
    assert not name.startswith("..")


@pytest.mark.parametrize(
    "name", ["a.txt", "naïve café.docx", "a..b.txt", ".txt.html", "報告: 1?.odt"]
)
def test_ordinary_names_are_let_through(name):
    assert check_name(name) == name
    assert find_format(name) in FORMATS


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "the file has no name; give it one"),
        (" . ", "the file has no name"),
        ("é" * 150, "the file name is too long; shorten it"),
        ("a/b.txt", "has characters that are not for file names; rename it"),
        ("a\\b.txt", "has characters that are not"),
        ("..a.txt", "has characters that are not"),
        ("a\nb.txt", "has characters that are not"),
        ("a\ud800.txt", "has characters that are not"),
        ("a\u202eb.txt", "has characters that are not"),
        ("a.exe", "file format not supported; send one of txt, md, html"),
        ("a", "file format not supported"),
    ],
)
def test_other_names_are_refused(name, message):
    with pytest.raises(ServiceError, match=message) as caught:
        read_document(name, b"", 100)
    assert caught.value.kind == "bad_request"


def test_documents_that_are_too_long_are_refused(monkeypatch):
    monkeypatch.setattr(documents, "MOST_CHARACTERS", 5)
    assert read_document("a.txt", b"one\nto\n", 100).texts == ["one", "to"]
    with pytest.raises(
        ServiceError, match="the document has 6 characters, but 5 are the"
    ) as caught:
        read_document("a.txt", b"one\ntwo\n", 100)
    assert caught.value.kind == "too_long"
    assert caught.value.details == {"limit": 5, "length": 6}


def test_a_pdf_becomes_another_kind_and_everything_else_stays():
    assert choose_output("a.pdf") == choose_output("a.PDF", "docx") == ".docx"
    assert choose_output("a.pdf", ".TXT") == ".txt"
    assert choose_output("a.docx") == choose_output("a.docx", "docx") == ".docx"
    for name, wanted, message in (
        ("a.pdf", "pdf", r"'output_format' not supported: a .pdf file becomes .docx or .txt."),
        ("a.docx", "pdf", r"'output_format' not supported: a .docx file stays one."),
    ):
        with pytest.raises(ServiceError, match=message) as caught:
            read_document(name, b"", 100, output=wanted)
        assert caught.value.kind == "bad_request"


@pytest.mark.parametrize("extension", FORMATS)
def test_every_format_is_read_or_refused(extension):
    content = b"Hello."
    try:
        document = read_document(f"a{extension.upper()}", content, 100)
    except ServiceError as error:
        reasons = "no archive|no PDF|no RTF|not JSON|PO file|wrong or hostile XML"
        assert re.search(reasons, error.message)  # noqa: PT017
    else:
        assert document.texts in (["Hello."], [])


UNIT, UNIT_END = "<xliff><trans-unit>", "</trans-unit></xliff>"


@pytest.mark.parametrize(
    ("extension", "begin", "piece", "end"),
    [
        (".json", "[", '"dog {x}",', "1]"),
        (".json", "[", '"dog', "]"),
        (".yaml", "", "- dog {x}\n", ""),
        (".yaml", "a: |\n", "  dog\n", ""),
        (".po", "", 'msgid "dog"\nmsgstr ""\n\n', ""),
        (".po", 'msgid ""\n', '"dog"\n', 'msgstr ""'),
        (".csv", "", '"a dog,', ""),
        (".csv", "", 'a dog,"",""""\n', ""),
        (".xlf", "<xliff>", "<trans-unit><source>dog</source></trans-unit>", "</xliff>"),
        (".xlf", f"{UNIT}<source>", "<bpt id='1'/>dog<ept id='1'/>", f"</source>{UNIT_END}"),
        (".xlf", f"{UNIT}<source>", "<bpt id='1'/>dog", f"</source>{UNIT_END}"),
        (".tmx", "<tmx>", "<tu><tuv xml:lang='en'><seg>dog</seg></tuv></tu>", "</tmx>"),
        (".vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n", "<00:01.500>dog", ""),
    ],
)  # fmt: skip
def test_time_is_linear(extension, begin, piece, end):
    def write(size):
        content = f"{begin}{piece * (size // len(piece))}{end}".encode()
        with contextlib.suppress(ServiceError):
            translate(read_document(f"a{extension}", content, 10_000_000, "fr"))

    assert grows_linearly(write, 1000)
