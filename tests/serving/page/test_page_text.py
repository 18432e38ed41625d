"""The text of the page in sentences: nothing is lost, and lines stay apart."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.serving.page.page_text import Part, part_text
from dragoman.text.sentence_splitting import split_text


@given(st.text())
def test_parts_give_back_the_text(text):
    parts = part_text(split_text(text, "en"))
    assert "".join(part.text + part.space for part in parts) == text
    assert all(part.text for part in parts[1:])
    assert all(not part.space.strip() and part.text == part.text.strip() for part in parts)
    assert all(len(part.text.splitlines()) <= 1 for part in parts)


def test_sentences_and_lines():
    text = "  One. Two!\nthree\n\nFour"
    assert part_text(split_text(text, "en")) == [
        Part("", "  "),
        Part("One.", " "),
        Part("Two!", "\n"),
        Part("three", "\n\n"),
        Part("Four", ""),
    ]


def test_nothing():
    assert part_text([]) == []
    assert part_text(split_text(" \n ", None)) == [Part("", " \n ")]
