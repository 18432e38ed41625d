import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serving.documents.test_rtf_tokens import rtf
from tests.serving.documents.word_by_word import keep, translate

from dragoman.serving.documents import rtf_documents
from dragoman.serving.documents.rtf_documents import read_rtf
from dragoman.serving.documents.rtf_tokens import split_rtf
from dragoman.serving.service_types import ServiceError

NASTY = rtf(
    r"""{\info{\title A title}}{\*\generator Some 1.0;}
\pard\f0\fs24 This is \b bold\b0  and {\i italic} text\'85 with \{braces\} and \\ .\
A mac line.\par
Note{\super\chftn}{\footnote\pard{\super\chftn} A foot note.} goes on{\*\bkmkstart x} after it.\par
{\field{\*\fldinst{HYPERLINK "http://a.b/c"}}{\fldrslt{\ul a link here}}} then seen.\par
\trowd\cellx3000\cellx6000\intbl One cell\cell Two {\b cells}\cell\row
\pard nested{\shp{\*\shpinst\shpleft0{\sp{\sn a}{\sv 2}}{\shptxt\pard In a box\par}}} text\par
{\header Head {\field{\*\fldinst PAGE}{\fldrslt 4}}}{\pict\wmetafile8\bin6 {}\}{}}Pic here\tab
tabbed\line lined\par wo{\b rd} spl
it\par
"""
)
TEXTS = [
    "This is bold and italic text… with {braces} and \\ .", "A mac line.", "Note goes on after it.",
    "A foot note.", "a link here then seen.", "One cell", "Two cells", "nested text", "In a box",
    "Pic here", "Head 4", "tabbed", "lined", "word split",
]  # fmt: skip


def read(text):
    return read_rtf(text.encode("latin-1"))


def test_every_sentence_is_one_text():
    assert read(NASTY).texts == TEXTS


def controls(content):
    tokens = split_rtf(content.decode("latin-1"))
    return [each.raw.strip() for each in tokens if each.kind != "text" and each.raw.strip()]


def test_only_text_changes():
    written = translate(read(NASTY))
    assert read_rtf(written).texts == [each.upper() for each in TEXTS]
    assert controls(written) == controls(NASTY.encode("latin-1"))
    assert read_rtf(keep(read(NASTY))).texts == TEXTS


def test_what_has_no_words_stays_byte_by_byte():
    text = rtf(r"\'85 \u8230? {\b -}\par\'9a{\*\x a}")
    assert translate(read(rtf(r"\'85 \u8230? {\b -}\par"))) == text.replace(
        r"\'9a{\*\x a}", ""
    ).encode("latin-1")


def body_of(written):
    return re.search(r"Mincho;\}\}(.*)\}\Z", written.decode("latin-1"), re.DOTALL).group(1)


@pytest.mark.parametrize(
    ("body", "translation", "links", "written"),
    [
        (r"a {\b red} house", "une maison rouge",
         [(0, 1, 0, 3), (2, 5, 11, 16), (6, 11, 4, 10)], r"une maison {\b rouge}"),
        (r"a \b red\b0  house", "une maison rouge",
         [(0, 1, 0, 3), (2, 5, 11, 16), (6, 11, 4, 10)], r"une maison \b rouge\b0 "),
    ],
)  # fmt: skip
def test_looks_follow_their_words(body, translation, links, written):
    document = read(rtf(body))
    assert body_of(document.write([(translation, links)])) == written


def test_a_translation_does_not_become_part_of_a_control_word():
    document = read(rtf("\\b\nOne\\b0\\'20two"))
    (text,) = document.texts
    for translation in ("1 two", "-1 two", "one two"):
        (again,) = read_rtf(document.write([(translation, ())])).texts
        assert again == translation, text


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20), st.booleans())
def test_any_translation_is_read_again_as_it_is(translation, is_odd):
    document = read(rtf(r"\uc2 {\b One} word\par" if is_odd else r"{\b One} word\par"))
    written = document.write([(translation, ())])
    assert written.isascii()
    tokens = split_rtf(written.decode())
    assert (
        "".join(each.shown or "" for each in tokens if each.kind == "text") == translation.strip()
    )


def test_languages_are_marked():
    text = rtf(r"\deflang1033\lang2057 One\par\lang1036 word\langnp1033")
    marked = text.replace("1033", "1031").replace("2057", "1031")
    assert keep(read(text).into("en", "de")).decode() == marked
    assert keep(read(text).into("en", "tlh")).decode() == text


def test_too_much_text_is_refused(monkeypatch):
    monkeypatch.setattr(rtf_documents, "MOST_MARKUP", 100)
    with pytest.raises(ServiceError, match="the document has 1"):
        read(rtf("a" * 100))
    assert read(rtf(rf"{{\pict {'0' * 1000}}}a")).texts == ["a"]
