import io
import zlib

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serving.documents.pdf.pdf_files import (
    WORDS,
    draw,
    make_columns,
    make_locked,
    make_page,
    show,
)
from tests.serving.documents.word_by_word import translate

from dragoman.serving.documents.pdf import pdf_documents
from dragoman.serving.documents.pdf.pdf_documents import PDF_OUTPUTS, read_pdf
from dragoman.serving.service_types import ServiceError


@pytest.fixture(scope="module")
def columns():
    return make_columns()


def test_a_paper_becomes_a_word_file(columns):
    document = read_pdf(columns, ".docx", "de")
    assert document.media_type == PDF_OUTPUTS[".docx"]
    written = docx.Document(io.BytesIO(translate(document)))
    shown = [(each.style.name, each.text) for each in written.paragraphs if each.text]
    expected = [("Heading 1", "A TITLE OVER BOTH COLUMNS")]
    for part in range(4):
        expected.append(("Heading 2", f"HEADING {part}"))
        body = f"{WORDS} {WORDS} END.".upper()
        expected += [("Normal", f"BEGIN {part}{n}. {body}") for n in range(4)]
        expected += [("Normal", f"•\tPOINT {part}{n}") for n in range(2)]
    assert shown == expected
    (table,) = written.tables
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["NAME", "NUMBER", "REMARK"],
        ["APPLE", "12", "RED"],
        ["PEAR", "7", "RAW"],
    ]
    section = written.sections[0]
    assert [each.text for each in section.header.paragraphs] == ["JOURNAL OF FOXES"]
    assert [each.text for each in section.footer.paragraphs] == ["PAGE "]
    assert ' PAGE "' in section.footer.paragraphs[0]._p.xml


def test_or_lines_of_text(columns):
    document = read_pdf(columns, ".txt", "de")
    assert document.media_type == "text/plain; charset=utf-8"
    shown = translate(document).decode().split("\n\n")
    assert shown[:3] == ["JOURNAL OF FOXES", "A TITLE OVER BOTH COLUMNS", "HEADING 0"]
    assert shown[7] == "• POINT 00"
    assert shown[-2:] == ["NAME\tNUMBER\tREMARK\nAPPLE\t12\tRED\nPEAR\t7\tRAW", "PAGE\n"]


def test_what_has_no_letters_is_not_translated():
    document = read_pdf(draw((50, 800, "* * *"), (50, 700, "The dog.")), ".txt", "de")
    assert document.texts == ["The dog."]
    assert translate(document) == b"* * *\n\nTHE DOG.\n"


HELLO = show(b"Hello there.")
# Twice compressed, four thousand bytes are two thousand million.
BOMB = zlib.compress(zlib.compress(b" " * 1_600_000_000, 1), 9)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Invalid request: the file is damaged, or no PDF"),
        (b"%PDF-1.7\nnothing of a PDF", "Invalid request: the file is damaged, or no PDF"),
        (make_page(HELLO)[:-250], "Invalid request: the file is damaged, or no PDF"),
        (make_locked("secret"), "Invalid request: the file is encrypted; remove the password"),
        (make_page(b"0 0 9 9 re f"), r"the PDF has no text, only pictures of it; recognise the t"),
        (make_page(show(b"\\001\\002\\003")), "the PDF does not say which letters its fonts show"),
        (
            make_page(BOMB, options=b"/Filter[/FlateDecode/FlateDecode]"),
            "Invalid request: the PDF is damaged, or needs too much memory",
        ),
    ],
)
def test_wrong_and_hostile_files_are_refused(content, message):
    with pytest.raises(ServiceError, match=message) as caught:
        read_pdf(content, ".docx", "de")
    assert caught.value.kind == "bad_request"


@pytest.mark.parametrize(
    "content",
    [
        make_page(HELLO, page=b"/A " + b"[" * 200_000 + b"]" * 200_000),
        make_page(b"/X Do " + HELLO, resources=b"/XObject<</X 6 0 R>>"),
        make_page(HELLO, count=10**9),
        make_page(HELLO, kids=b"[2 0 R 3 0 R]"),
        make_page(b"q " * 100_000 + HELLO),
    ],
    ids=["deep arrays", "a form in itself", "pages that are not", "a cycle of pages", "states"],
)
def test_hostile_structures_are_read_as_well_as_may_be(content):
    assert read_pdf(content, ".txt", "de").texts == ["Hello there."]


def test_a_file_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr(pdf_documents, "MOST_SECONDS", 0.001)
    with pytest.raises(ServiceError, match="the PDF takes longer than 0 seconds to be read; split"):
        read_pdf(make_page(HELLO), ".txt", "de")


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=30))
def test_damaged_files_are_refused_or_read(columns, changes):
    content = bytearray(columns)
    for place, byte in changes:
        content[place % len(content)] = byte
    try:
        document = read_pdf(bytes(content), ".docx", "de")
    except ServiceError as error:
        assert error.kind in ("bad_request", "too_long")  # noqa: PT017
        return
    docx.Document(io.BytesIO(translate(document)))
