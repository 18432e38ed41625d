import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.serving.documents.word_by_word import keep, translate

from dragoman.serving.documents.documents import read_document
from dragoman.serving.service_types import ServiceError


def read(text, extension=".csv", columns=()):
    return read_document(f"a{extension}", text.encode(), 10_000_000, "fr", columns)


TABLE = 'id;key;text;note;on\r\n1;a_b;"Hello; ""you"" {x}";see 2024;yes\r\n2;c3;Good day;;no\r\n'


def test_columns_of_text_are_translated_below_their_names():
    expected = TABLE.replace('Hello; ""you""', 'HELLO; ""YOU""').replace("Good day", "GOOD DAY")
    assert translate(read(TABLE)).decode() == expected.replace("see", "SEE")
    assert keep(read(TABLE)).decode() == TABLE


@pytest.mark.parametrize("columns", [("text",), ("3",), ("text", "3")])
def test_columns_may_be_chosen(columns):
    assert read(TABLE, columns=columns).texts == ['Hello; "you"', "Good day"]


@pytest.mark.parametrize("column", ["nothing", "0", "6", "9" * 5000])
def test_columns_that_there_are_not_are_refused(column):
    with pytest.raises(
        ServiceError,
        match=r"the table has no column .*; there are id, key, text, note, on; give its name, or",
    ):
        read(TABLE, columns=(column,))


def test_other_files_have_no_columns():
    with pytest.raises(ServiceError, match=r"\.json files have no columns to choose"):
        read("{}", ".json", ("1",))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_delimiters_are_found(delimiter):
    text = "".join(f"{delimiter.join(row)}\n" for row in (("1", "a, dog; a cat"), ("2", "a house")))
    if delimiter in ",;":
        text = f'1{delimiter}"a, dog; a cat"\n2{delimiter}a house\n'
    assert read(text).texts == ["a, dog; a cat", "a house"]
    assert translate(read(text)).decode() == text.upper()


def test_tables_with_tabs():
    assert translate(read("a dog\tb, c\ncat\td\n", ".tsv")).decode() == "A DOG\tB, C\nCAT\tD\n"


def test_cells_get_quotation_marks_if_they_need_them():
    written = read("1,a dog\n2,a cat\n").write([("un, chien", ()), ('un "chat"', ())]).decode()
    assert written == '1,"un, chien"\n2,"un ""chat"""\n'


@given(
    rows=st.lists(
        st.lists(st.text("ab1 ,;\"'\n\r\té", max_size=8), min_size=2, max_size=2), max_size=5
    )
)
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_tables_of_the_library_of_python_are_read(delimiter, rows):
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter).writerows(rows)
    extension = ".tsv" if delimiter == "\t" else ".csv"
    assert keep(read(file.getvalue(), extension)).decode() == file.getvalue()
    written = translate(read(file.getvalue(), ".tsv")).decode()
    if delimiter == "\t":
        found = list(csv.reader(io.StringIO(written, newline=""), delimiter=delimiter))
        assert [[each.upper() for each in row] for row in found] == [
            [each.upper() for each in row] for row in rows
        ]
