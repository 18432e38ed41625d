import codecs
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.serving.documents import text_documents
from dragoman.serving.documents.text_documents import TEXT_FORMATS, read_text
from dragoman.serving.service_types import ServiceError


def rewrite(content, extension, change=lambda text: text):
    document = read_text(content, extension)
    return document.write([(change(text), ()) for text in document.texts])


@given(text=st.text(max_size=80).filter(lambda text: "\0" not in text and text[:1] != "\ufeff"))
@pytest.mark.parametrize("extension", [".txt", ".md"])
def test_untranslated_text_is_the_same_bytes(text, extension):
    assert rewrite(text.encode(), extension) == text.encode()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("extension", TEXT_FORMATS)
def test_encodings_are_kept(encoding, extension):
    text = "1\r\n00:00:01,000 --> 00:00:02,000\r\nÉtés\r\n"
    content = rewrite(text.encode(encoding), extension, str.upper)
    assert content.decode(encoding).endswith("ÉTÉS\r\n")
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF16):
        assert content.startswith(mark) == text.encode(encoding).startswith(mark)


def test_lines_keep_their_white_space():
    content = b"  One line.\n\n\tTwo  \r\n* * *\n3"
    assert read_text(content, ".txt").texts == ["One line.", "Two", "3"]
    assert rewrite(content, ".txt", lambda text: f" <{text}> ") == (
        b"  <One line.>\n\n\t<Two>  \r\n* * *\n<3>"
    )


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


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"caf\xe9", b"\xed\xa0\x80"])
def test_other_encodings_are_refused(content):
    with pytest.raises(ServiceError, match="the file is not UTF-8; save it as UTF-8") as caught:
        read_text(content, ".txt")
    assert caught.value.kind == "bad_request"


def test_a_nul_is_refused():
    with pytest.raises(ServiceError, match="has a NUL character, so it is no text"):
        read_text(b"a\0b", ".txt")


def test_too_many_tags_are_refused(monkeypatch):
    monkeypatch.setattr(text_documents, "MOST_MARKUP", 10)
    with pytest.raises(ServiceError, match="the document has 11 characters, but 10 are the most"):
        read_text(b"<p>four</p>", ".html")


@pytest.mark.parametrize("piece", ["<", "- ", " ", "1\n", "&", "a\r"])
@pytest.mark.parametrize("extension", [".srt", ".txt", ".html"])
def test_time_is_linear(piece, extension):
    def measure(size):
        head = "1\n00:00:01,000 --> 00:00:02,500\n"
        content = (head + piece * (size // len(piece)) + "end").encode()
        start = time.perf_counter()
        assert rewrite(content, extension)
        return time.perf_counter() - start

    few, many = (min(measure(size) for _ in range(2)) for size in (3_000, 24_000))
    assert many < 24 * few + 0.1  # Eight times as much; its square would be 64.


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
    document = read_text(line.encode(), ".md")
    assert document.texts == [text]
    assert document.write([(text, ())]).decode() == line
    assert document.write([("Un", ())]).decode() == line.replace(text, "Un")


def test_dashes_of_speakers_stay_whatever_a_model_says():
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n–{}\n"
    document = read_text(cue.format("- Yes.", "No").encode(), ".srt")
    assert document.texts == ["Yes.", "No"]
    written = document.write([("Oui.", ()), ("Non", ())])
    assert written.decode() == cue.format("- Oui.", "Non")
