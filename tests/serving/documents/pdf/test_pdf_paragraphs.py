import pytest

from dragoman.serving.documents.pdf.pdf_paragraphs import read_parts
from dragoman.serving.documents.pdf.pdf_parts import Part, Piece

FULL = "A line of a paragraph that is as long as a line of this column may be,"


def piece(text, base, left=50.0, size=10.0, is_bold=False):
    return Piece(
        text=text, left=left, right=left + size / 2 * len(text), base=base, size=size,
        is_bold=is_bold,
    )  # fmt: skip


def page(*lines, top=700.0):
    """Lines of text below each other; numbers are larger distances."""
    pieces, base = [], top
    for line in lines:
        if isinstance(line, str | Piece):
            made = piece(line, base) if isinstance(line, str) else line
            pieces.append(made)
            base = made.base - 12
        else:
            base -= line
    return [pieces]


def read(*pages):
    return [each.text for each in read_parts(pages)]


def test_lines_are_joined_and_paragraphs_split_at_space_and_at_short_lines():
    text = page(FULL, "and its end.", FULL, "and another end.", 8, FULL)
    assert read(text) == [f"{FULL} and its end.", f"{FULL} and another end.", FULL]


def test_indented_lines_begin_paragraphs():
    text = page(FULL, FULL, piece(FULL, 676, left=65), FULL)
    assert read(text) == [f"{FULL} {FULL}", f"{FULL} {FULL}"]


@pytest.mark.parametrize(
    ("lines", "whole"),
    [
        (("the wan\u00ad", "dering fox"), "the wandering fox"),
        (("the wan-", "dering fox"), "the wandering fox"),
        (("Vor-", "und Nachteile"), "Vor- und Nachteile"),
        (("Haupt-", "Bahnhof"), "Haupt-Bahnhof"),
        (("a well-\u00ad", "known fox"), "a well-known fox"),
        (("in 1990-", "1995 it was"), "in 1990- 1995 it was"),
        (("犬は", "赤い"), "犬は赤い"),
    ],
)
def test_words_that_are_hyphenated_are_made_whole(lines, whole):
    assert read(page(*lines)) == [whole]


def test_words_that_elsewhere_have_a_hyphen_keep_it():
    text = page("The well-known fox and the self-made man are well-", "known here.")
    assert read(text) == ["The well-known fox and the self-made man are well-known here."]


def test_items_have_markers_and_are_paragraphs():
    text = page(FULL, "• one", "• two, which goes", piece("on", 664, left=60), "3) three")
    parts = read_parts([text])
    assert [(each.marker, each.text) for each in parts] == [
        ("", FULL), ("•", "one"), ("•", "two, which goes on"), ("3)", "three"),
    ]  # fmt: skip


def item(text, base):
    """Write an item as reportlab does: its marker is a piece of its own, and the text hangs."""
    return [piece("•", base, left=50), piece(text, base, left=68)]


def test_what_follows_a_list_at_its_edge_is_no_part_of_the_last_item():
    items = [*item("one", 700), *item("two", 682), *item("three", 664)]
    flush = [piece("Thanks to all who helped, and until we meet again", 646), piece(FULL, 634)]
    assert read([[*items, *flush]]) == ["one", "two", "three", f"{flush[0].text} {FULL}"]
    assert read([items], [flush]) == ["one", "two", "three", f"{flush[0].text} {FULL}"]
    assert read([items], [[piece("thanks to all", 700)]]) == [
        "one",
        "two",
        "three",
        "thanks to all",
    ]


def test_items_go_on_where_their_text_hangs_also_in_the_next_column():
    whole = [*item(FULL[:-5], 700), piece("and more.", 688, left=68), piece(FULL, 664)]
    assert read([whole])[0] == f"{FULL[:-5]} and more."
    rest = [piece("and more.", 700, left=268), piece(FULL, 676, left=250)]
    assert read([item(FULL, 700)], [rest])[0] == f"{FULL} and more."
    left = [piece("and more.", 700, left=38), piece(FULL, 676, left=20)]
    assert read([item(FULL, 700)], [left])[0] == f"{FULL} and more."


def test_a_full_line_of_an_item_goes_on_at_the_edge_too():
    assert read([[*item(FULL, 700), piece("and more.", 688)]]) == [f"{FULL} and more."]


def test_what_is_large_or_bold_and_short_is_a_heading():
    text = page(
        piece("Title", 700, size=20), 10, piece("1. Part", 665, size=14), 6, FULL, FULL, 8,
        piece("Bold line", 610, is_bold=True), 6, FULL,
    )  # fmt: skip
    assert [(each.kind, each.level, each.marker, each.text) for each in read_parts([text])] == [
        ("heading", 1, "", "Title"),
        ("heading", 2, "1.", "Part"),
        ("paragraph", 0, "", f"{FULL} {FULL}"),
        ("heading", 3, "", "Bold line"),
        ("paragraph", 0, "", FULL),
    ]


def test_paragraphs_go_on_over_pages():
    assert read(page(FULL), page("goes on here.")) == [f"{FULL} goes on here."]
    assert read(page(f"{FULL} wan\u00ad"), page("dering.")) == [f"{FULL} wandering."]
    assert read(page(f"{FULL}."), page("Another begins.")) == [f"{FULL}.", "Another begins."]


def test_running_heads_stand_apart_once():
    pages = [
        [[piece("Journal", 800), *page(f"{FULL} {chr(96 + n)}")[0], piece(f"– {n} –", 20)]]
        for n in range(1, 6)
    ]
    parts = read_parts(pages)
    assert parts[0] == Part(kind="header", text="Journal")
    assert parts[-1] == Part(kind="footer", is_numbered=True)
    assert len(parts) == 7


def test_of_one_page_nothing_is_running():
    assert read(page("Journal", 30, FULL)) == ["Journal", FULL]


def test_nothing_has_no_parts():
    assert read([], [[]]) == []
