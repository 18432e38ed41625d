import io
import zipfile

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.serving.documents.pdf.pdf_parts import Part
from dragoman.serving.documents.pdf.word_files import write_word

PARTS = [
    Part(kind="header", text="Journal", is_numbered=True),
    Part(kind="heading", text="One & <two>", level=2, marker="1."),
    Part(kind="paragraph", text="item", marker="•"),
    Part(kind="table", rows=(("a", "b"), ("c", ""))),
    Part(kind="footer", is_numbered=True),
]


def test_python_docx_reads_what_is_written():
    written = docx.Document(io.BytesIO(write_word(PARTS, "de")))
    found = [(each.style.name, each.text) for each in written.paragraphs]
    assert found == [("Heading 2", "1.\tOne & <two>"), ("Normal", "•\titem"), ("Normal", "")]
    assert [[cell.text for cell in row.cells] for row in written.tables[0].rows] == [
        ["a", "b"],
        ["c", ""],
    ]
    assert written.sections[0].header.paragraphs[0].text == "Journal "
    assert 'w:instr=" PAGE "' in written.sections[0].footer.paragraphs[0]._p.xml
    assert 'w:lang w:val="de"' in written.styles.element.xml


def test_what_runs_from_the_right_says_so():
    content = write_word(PARTS, "he")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        body = archive.read("word/document.xml").decode()
        assert 'w:lang w:bidi="he"' in archive.read("word/styles.xml").decode()
    assert body.count("<w:bidi/>") == 6
    assert "<w:bidiVisual/>" in body
    assert "<w:rtl/>" in body


@pytest.mark.parametrize("language", ["de", "ar"])
def test_equal_parts_give_equal_bytes(language):
    assert write_word(PARTS, language) == write_word(PARTS, language)


@given(text=st.text(st.characters(), max_size=30))
def test_any_text_is_written(text):
    written = docx.Document(io.BytesIO(write_word([Part(kind="paragraph", text=text)], "de")))
    kept = [each for each in text if each.isprintable() or each.isspace()]
    shown = written.paragraphs[0].text
    assert [each for each in kept if each.isalnum()] == [each for each in shown if each.isalnum()]
