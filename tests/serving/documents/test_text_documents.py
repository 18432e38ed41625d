import codecs
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serving.documents.word_by_word import translate
from tests.work import grows_linearly

from dragoman.serving.documents import text_documents
from dragoman.serving.documents.text_documents import TEXT_FORMATS, read_text
from dragoman.serving.service_types import ServiceError


def rewrite(content, extension, change=lambda text: text):
    document = read_text(content, extension)
    return document.write([(change(text), ()) for text in document.texts])


@given(text=st.text(max_size=80).filter(lambda text: "\0" not in text and text[:1] != "\ufeff"))
def test_untranslated_text_is_the_same_bytes(text):
    assert rewrite(text.encode(), ".txt") == text.encode()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("extension", TEXT_FORMATS)
def test_encodings_are_kept(encoding, extension):
    text = "1\r\n00:00:01,000 --> 00:00:02,000\r\nÉtés\r\n"
    content = rewrite(text.encode(encoding), extension, str.upper)
    assert content.decode(encoding).endswith("ÉTÉS\r\n")
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16):
        assert content.startswith(mark) == text.encode(encoding).startswith(mark)


@pytest.mark.parametrize("extension", TEXT_FORMATS)
def test_legacy_encodings_are_found_said_and_kept(extension):
    text = "1\r\n00:00:01,000 --> 00:00:02,000\r\nPříliš žluťoučký kůň úpěl\r\n"
    document = read_text(text.encode("windows-1250"), extension)
    assert document.headers == {"X-Document-Encoding": "windows-1250"}
    written = document.write([(each.upper(), ()) for each in document.texts])
    assert written.decode("windows-1250").endswith("PŘÍLIŠ ŽLUŤOUČKÝ KŮŇ ÚPĚL\r\n")
    assert read_text(text.encode(), extension).headers == {}


def test_the_language_of_a_page_becomes_the_target():
    page = '<html lang="en-GB"><body title="A dog"><p lang="de">B</p></body></html>'
    document = read_text(page.encode(), ".html").into("en", "fr")
    assert document.texts == ["A dog", "B"]
    assert document.write([("Un chien", ()), ("b", ())]).decode() == (
        '<html lang="fr"><body title="Un chien"><p lang="de">b</p></body></html>'
    )


def test_lines_keep_their_white_space():
    content = b"  One line.\n\n\tTwo  \r\n* * *\n3"
    assert read_text(content, ".txt").texts == ["One line.", "Two", "3"]
    assert rewrite(content, ".txt", lambda text: f" <{text}> ") == (
        b"  <One line.>\n\n\t<Two>  \r\n* * *\n<3>"
    )


def test_markdown_keeps_all_but_its_prose():
    content = (
        "---\ntitle: Dog\n---\n# The *dog*\r\n\r\n```\r\nthe dog\r\n```\r\n> A\r\n> [dog](dog.md)"
    )
    assert read_text(content.encode(), ".md").texts == ["The dog", "A dog"]
    expected = content.replace("The *dog*", "THE *DOG*").replace("[dog]", "[DOG]")
    assert rewrite(content.encode(), ".md", str.upper).decode() == expected


def test_web_pages_keep_their_tags():
    page = (
        "<!DOCTYPE html><html><head><title>A &amp; b</title></head><body><p>C <b>d</b></p></body>"
    )
    assert read_text(page.encode(), ".html").texts == ["A & b", "C d"]
    expected = page.replace("A &amp; b", "A &amp; B").replace("d</b>", "D</b>")
    assert rewrite(page.encode(), ".htm", str.upper).decode() == expected


SUBTITLES = """1
00:00:01,000 --> 00:00:02,500 X1:40 X2:600
The old dog
sees <i>the small house</i>.

2
00:00:03,000 --> 00:00:04,000
- Who & why?
- Me < you.
3
00:00:05,000 --> 00:00:06,000
12

4
00:00:07,000 --> 00:00:08,000

"""


def test_subtitles_are_taken_together_but_for_speakers():
    texts = read_text(SUBTITLES.encode(), ".srt").texts
    assert texts == ["The old dog sees the small house.", "Who & why?", "Me < you.", "12"]


def test_codes_in_subtitles_are_not_translated():
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
    for text in (
        "{\\an8}The old dog\nsees {\\i1}the house{\\i0}.",
        "{\\an8}- Who?\n{y:i}- Me {not you}.",
        "One {\\fad(100,200)}two.",
    ):
        translated = rewrite(cue.format(text).encode(), ".srt", str.upper).decode()
        expected = re.sub(
            r"\{[\\y][^}]*\}|.",
            lambda each: each.group().upper() if each.group()[1:2] == "" else each.group(),
            text,
        )
        assert translated == cue.format(expected)


def test_subtitles_keep_times_numbers_and_lines():
    assert rewrite(SUBTITLES.encode(), ".srt").decode() == SUBTITLES
    translated = rewrite(SUBTITLES.encode(), ".srt", str.upper).decode()
    expected = SUBTITLES.replace("The old dog\nsees", "THE OLD DOG\nSEES")
    expected = expected.replace("the small house", "THE SMALL HOUSE")
    expected = expected.replace("Who & why", "WHO & WHY").replace("Me < you", "ME < YOU")
    assert translated == expected


@given(words=st.lists(st.sampled_from(["a", "bcd", "<i>efg hij</i>", "klmnop"]), max_size=12))
def test_lines_of_subtitles_are_broken_without_loss(words):
    lines = "1\n00:00:01,000 --> 00:00:02,500\none two\nthree four\nfive"
    written = rewrite(lines.encode(), ".srt", lambda _: " ".join(words)).decode().split("\n")
    assert len(written) == 5
    # The tags were words of the translation here, so they come as text.
    assert " ".join(" ".join(written[2:]).split()) == " ".join(words)


@given(text=st.text("1:0,->\n\r a<i>-", max_size=60))
def test_anything_is_read_as_subtitles(text):
    head = "1\n00:00:01,000 --> 00:00:02,500\n"
    rewrite((head + text).encode(), ".srt")


def test_too_many_tags_are_refused(monkeypatch):
    monkeypatch.setattr(text_documents, "MOST_MARKUP", 10)
    with pytest.raises(ServiceError, match="the document has 11 characters, but 10 are the most"):
        read_text(b"<p>four</p>", ".html")


@pytest.mark.parametrize("piece", ["<", "- ", " ", "1\n", "&", "a\r"])
@pytest.mark.parametrize("extension", [".srt", ".txt", ".html", ".md"])
def test_time_is_linear(piece, extension):
    def write(size):
        head = "1\n00:00:01,000 --> 00:00:02,500\n"
        content = (head + piece * (size // len(piece)) + "end").encode()
        assert rewrite(content, extension)

    assert grows_linearly(write, 3000)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("# The dog", "The dog"),
        ("  - A dog ", "A dog"),
        ("> * 12. dogs", "dogs"),
        ("1) A dog", "A dog"),
        ("-5 dogs", "-5 dogs"),
        ("12.", "12."),
        ("1. 2.", "2."),
        ("1984 was good.", "1984 was good."),
    ],
)
def test_marks_of_lists_and_headings_are_not_translated(line, text):
    document = read_text(line.encode(), ".txt")
    assert document.texts == [text]
    assert document.write([(text, ())]).decode() == line
    assert document.write([("Un", ())]).decode() == line.replace(text, "Un")


def test_dashes_of_speakers_stay_whatever_a_model_says():
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n–{}\n"
    document = read_text(cue.format("- Yes.", "No").encode(), ".srt")
    assert document.texts == ["Yes.", "No"]
    written = document.write([("Oui.", ()), ("Non", ())])
    assert written.decode() == cue.format("- Oui.", "Non")


WEB_SUBTITLES = """WEBVTT - The dog
Kind: captions

STYLE
::cue { color: red }

NOTE a dog
 in a note

1
00:01.000 --> 00:02.500 align:start
The <c.loud>old dog</c>
sees <i.x>the</i> <00:00:01.500>house &amp; &lt;tree>.

01:00:03.000 --> 01:00:04.000
<v Ann>- Who?
- <v.loud Bob>Me.</v>
"""


def test_web_subtitles_keep_times_notes_styles_and_tags():
    texts = read_text(WEB_SUBTITLES.encode(), ".vtt").texts
    assert texts == ["The old dog sees the house & <tree>.", "- Who?", "Me."]
    expected = WEB_SUBTITLES
    for text in ("The <c", "old dog", "sees", ">the<", "house", "tree>", "Who", "Me."):
        expected = expected.replace(text, text.upper().replace("<C", "<c"))
    written = translate(read_text(WEB_SUBTITLES.encode(), ".vtt")).decode()
    assert written == expected.replace("TREE>", "TREE&gt;")
