import random

from tests.work import grows_linearly

from dragoman.serving.documents.pdf.pdf_layout import (
    TableBlock,
    TextBlock,
    find_blocks,
    find_marker,
    join_pieces,
    make_bands,
)
from dragoman.serving.documents.pdf.pdf_parts import Piece

LONG = "a line of a column with many words"


def piece(text, left, base, *, right=None, size=10.0):
    return Piece(
        text=text, left=left, right=left + 5 * len(text) if right is None else right,
        base=base, size=size,
    )  # fmt: skip


def texts(blocks):
    return [
        [line.text for line in block.lines]
        if isinstance(block, TextBlock)
        else [[" ".join(line.text for line in cell) for cell in row] for row in block.rows]
        for block in blocks
    ]


def column(name, left, top, count, pitch=12):
    return [piece(f"{name}{n} {LONG}", left, top - pitch * n) for n in range(count)]


def test_lines_of_one_column_stand_below_each_other_in_any_order_of_drawing():
    pieces = column("a", 50, 700, 20)
    expected = [[f"a{n} {LONG}" for n in range(20)]]
    random.Random(1).shuffle(pieces)
    assert texts(find_blocks(pieces)) == expected


def test_columns_are_read_one_after_the_other_between_what_spans_them():
    title = piece("a title " * 10, 50, 750, size=16)
    foot = piece("a line below both columns " * 4, 50, 300)
    both = [*column("l", 50, 700, 8), *column("r", 300, 706, 8)]
    assert texts(find_blocks([foot, *both, title])) == [
        [title.text.strip()],
        [f"l{n} {LONG}" for n in range(8)],
        [f"r{n} {LONG}" for n in range(8)],
        [foot.text.strip()],
    ]


def test_a_column_may_be_longer_than_the_other_and_have_gaps():
    left = [*column("l", 50, 700, 4), *column("m", 50, 600, 4)]
    found = texts(find_blocks([*left, *column("r", 300, 700, 3)]))
    assert [each[0][0] for each in found] == ["l", "r"]
    assert len(found[0]) == 8


def test_three_columns():
    pieces = [
        each for n, left in enumerate((50, 280, 510)) for each in column(str(n), left, 700, 5)
    ]
    assert [each[0][0] for each in texts(find_blocks(pieces))] == ["0", "1", "2"]


def test_what_is_short_is_a_table():
    rows = [("Name", "Number"), ("Apple", "12"), ("Pear", "7")]
    pieces = [
        piece(cell, 50 + 200 * place, 700 - 15 * index)
        for index, row in enumerate(rows)
        for place, cell in enumerate(row)
    ]
    (block,) = find_blocks(pieces)
    assert isinstance(block, TableBlock)
    assert texts([block]) == [[list(row) for row in rows]]


def test_cells_may_have_several_lines():
    pieces = [
        piece("one", 50, 700), piece("first line", 150, 700), piece("x", 300, 700),
        piece("second line", 150, 688),
        piece("two", 50, 670), piece("short", 150, 670), piece("y", 300, 670),
    ]  # fmt: skip
    assert texts(find_blocks(pieces)) == [
        [["one", "first line second line", "x"], ["two", "short", "y"]]
    ]


def test_lines_below_the_first_column_are_none_of_a_table():
    cells = [
        piece(f"c{n}{place}", 50 + 99 * place, 700 - 14 * n) for n in (0, 1) for place in (0, 1)
    ]
    below = [piece("• one", 50, 672), piece("• two", 50, 660)]
    assert texts(find_blocks([*cells, *below])) == [
        [["c00", "c01"], ["c10", "c11"]],
        ["• one", "• two"],
    ]


def test_a_wide_space_in_a_line_makes_no_table():
    pieces = [piece("before a tab", 50, 700), piece("behind it", 200, 700), piece(LONG, 50, 688)]
    assert texts(find_blocks(pieces)) == [["before a tab behind it", LONG]]


def test_a_table_with_one_column_of_text_is_a_table():
    pieces = [
        each
        for n in range(4)
        for each in (piece(f"name {n}", 50, 700 - 15 * n), piece(LONG, 150, 700 - 15 * n))
    ]
    assert texts(find_blocks(pieces)) == [[[f"name {n}", LONG] for n in range(4)]]


def test_a_table_beside_a_column_is_read_behind_it():
    table = [
        piece(cell, left, 705 - 18 * n)
        for n in range(3)
        for cell, left in ((f"a{n}", 300), (f"b{n}", 400))
    ]
    assert texts(find_blocks([*column("l", 50, 700, 8), *table])) == [
        [f"l{n} {LONG}" for n in range(8)],
        [[f"a{n}", f"b{n}"] for n in range(3)],
    ]


def test_a_table_below_columns_is_none_of_them():
    both = [*column("l", 50, 700, 4), *column("r", 300, 700, 4)]
    heading = piece("A heading", 50, 630)
    table = [
        piece(f"cell {n}{place}", 50 + 90 * place, 610 - 14 * n)
        for n in range(3)
        for place in range(5)
    ]
    found = texts(find_blocks([*both, heading, *table]))
    assert found[2] == ["A heading"]
    assert found[3] == [[f"cell {n}{place}" for place in range(5)] for n in range(3)]


def test_markers_are_joined_with_their_items():
    (band,) = make_bands([piece("•", 50, 700), piece("an item", 75, 700)])
    assert [each.text for each in band] == ["• an item"]
    assert [find_marker(text) for text in ("• an item", "12. twelve", "(a) b", "- c")] == [
        2,
        4,
        4,
        2,
    ]
    assert [find_marker(text) for text in ("1.5 metres", "-3", "•", "Hello. You")] == [0, 0, 0, 0]


def test_what_runs_from_the_right_is_read_from_there():
    pieces = [piece("latin", 90, 700), piece("עולם", 50, 700), piece("שלום", 150, 700)]
    assert join_pieces(make_bands(pieces)[0]).text == "שלום latin עולם"


def test_time_is_linear():
    def read(size):
        find_blocks([each for n in range(2) for each in column("a", 50 + 260 * n, 0, size)])

    assert grows_linearly(read, 300)
