import pytest
from tests.serving.documents.pdf.pdf_files import draw, draw_turned, make_page, show

from dragoman.serving.documents.pdf import pdf_pages
from dragoman.serving.documents.pdf.pdf_pages import UnreadablePdfError, read_pages


def test_pieces_have_places_and_sizes():
    content = make_page(
        show(b"Hello there.", 50, 700) + b"BT /F 2 Tf 9 0 0 9 60 500 Tm (big) Tj ET"
    )
    ((pieces,),) = read_pages(content)
    first, second = pieces
    assert (first.text, second.text) == ("Hello there.", "big")
    assert (first.left, first.base, first.size) == pytest.approx((50, 700, 12), abs=1)
    assert first.right == pytest.approx(110, abs=5)
    assert (second.base, second.size) == pytest.approx((500, 18))


def test_what_is_far_apart_is_not_one_piece():
    ((pieces,),) = read_pages(draw((50, 700, "one two"), (300, 700, "three")))
    assert [each.text.strip() for each in pieces] == ["one two", "three"]


def test_a_turned_page_is_read_as_one_that_is_not():
    ((pieces,),) = read_pages(draw_turned((50, -60, "first"), (50, -80, "second")))
    assert [each.text for each in pieces] == ["first", "second"]
    assert pieces[0].base - pieces[1].base == pytest.approx(20)
    assert pieces[0].right > pieces[0].left


def test_text_in_another_direction_stands_apart():
    turned = b"BT /F 12 Tf 0 1 -1 0 30 100 Tm (margin) Tj ET"
    ((main, other),) = read_pages(make_page(show(b"A whole sentence.") + turned))
    assert [each.text for each in (*main, *other)] == ["A whole sentence.", "margin"]


def test_ligatures_are_letters_and_dingbats_bullets():
    assert pdf_pages._write_text("e\ufb03cient \ufb01ne") == "efficient fine"
    assert pdf_pages._write_text("\uf0b7 item") == "• item"
    assert pdf_pages._write_text("\ud83d\ude00") == "😀"
    assert pdf_pages._write_text("wan\ufffe") == "wan\u00ad"


def test_too_many_pages_are_refused(monkeypatch):
    monkeypatch.setattr(pdf_pages, "MOST_PAGES", 0)
    with pytest.raises(UnreadablePdfError, match="the PDF has 1 pages, but 0 are the most; split"):
        read_pages(make_page(show(b"Hello")))


def test_too_many_characters_are_refused_before_they_are_read(monkeypatch):
    monkeypatch.setattr(pdf_pages, "MOST_GLYPHS", 4)
    monkeypatch.setattr(pdf_pages, "_read_glyph", None)
    with pytest.raises(UnreadablePdfError, match="the PDF has more than 4 characters; split it"):
        read_pages(make_page(show(b"Hello")))
