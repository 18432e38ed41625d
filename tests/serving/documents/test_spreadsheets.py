import io
import re

import openpyxl
import pytest
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.comments import Comment
from openpyxl.worksheet.table import Table
from tests.serving.documents.test_office_documents import pack, unpack
from tests.serving.documents.word_by_word import keep, translate

from dragoman.serving.documents.documents import read_document


def read(content):
    return read_document("a.xlsx", content, 10_000_000)


@pytest.fixture
def workbook():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "My prices"
    sheet["A1"], sheet["B1"] = "The old dog", 12.5
    sheet["A2"], sheet["B2"] = "The old dog", '=IF(A2="The old dog",\'My prices\'!B1,"none")'
    sheet["A3"] = CellRichText("a ", TextBlock(InlineFont(b=True), "small & red"), " house")
    sheet["A4"] = "=CONCATENATE(A1)"
    sheet["A1"].comment = Comment("Look here", "Ann")
    sheet["D1"], sheet["E1"], sheet["D2"], sheet["E2"] = "Name", "Price", "tree", 3
    sheet.add_table(Table(displayName="Prices", ref="D1:E2"))
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def test_cells_and_comments_are_translated_and_nothing_else(workbook):
    written = translate(read(workbook))
    book = openpyxl.load_workbook(io.BytesIO(written), rich_text=True)
    assert book.sheetnames == ["My prices"]
    sheet = book.active
    assert [sheet[each].value for each in ("A1", "B1", "A2")] == [
        "THE OLD DOG",
        12.5,
        "THE OLD DOG",
    ]
    assert sheet["B2"].value == '=IF(A2="The old dog",\'My prices\'!B1,"none")'
    words = [str(each).strip() for each in sheet["A3"].value]
    assert words == ["A", "SMALL & RED", "HOUSE"]
    assert str(sheet["A3"].value) == "A SMALL & RED HOUSE"
    assert sheet["A3"].value[1].font.b
    assert sheet["A4"].value == "=CONCATENATE(A1)"
    assert "LOOK HERE" in sheet["A1"].comment.text
    assert [sheet[each].value for each in ("D1", "E1", "D2")] == ["Name", "Price", "TREE"]
    before, after = unpack(workbook), unpack(written)
    assert {name for name in before if before[name] != after[name]} == {
        name for name in before if re.search("sheet1.xml$|comment\\d", name)
    }


def test_names_of_columns_of_tables_and_formulas_are_no_texts(workbook):
    texts = read(workbook).texts
    assert sorted(set(texts)) == ["Look here", "The old dog", "a small & red house", "tree"]


SHEET = (
    '<?xml version="1.0"?><x:worksheet xmlns:x="s"><x:sheetData><x:row><x:c t="inlineStr"><x:is>'
    '<x:t>a dog</x:t></x:is></x:c><x:c t="str"><x:f>"a"&amp;"cat"</x:f><x:v>a cat</x:v></x:c>'
    "<x:c><x:v>12</x:v></x:c></x:row></x:sheetData>"
    "<x:headerFooter><x:oddHeader>&amp;LPage</x:oddHeader></x:headerFooter></x:worksheet>"
)
STRINGS = (
    '<sst xmlns="s"><si><t>課長</t><rPh sb="0" eb="2"><t>カチョウ</t></rPh><phoneticPr fontId="1"/>'
    "</si>"
    '<si><r><t xml:space="preserve">a </t></r><r><rPr><b/></rPr><t>cat</t></r></si>'
    "<si><t>12</t></si></sst>"
)


def test_inline_strings_and_readings():
    content = pack({"xl/worksheets/sheet1.xml": SHEET, "xl/sharedStrings.xml": STRINGS})
    assert read(content).texts == ["a dog", "Page", "課長", "a cat", "12"]
    written = unpack(translate(read(content)))
    assert written["xl/worksheets/sheet1.xml"].decode() == SHEET.replace("a dog", "A DOG").replace(
        "Page", "PAGE"
    )
    expected = STRINGS.replace(">a <", ">A <").replace("<t>cat", '<t xml:space="preserve">CAT')
    assert written["xl/sharedStrings.xml"].decode() == expected


def test_a_workbook_of_numbers_stays_as_it_is():
    book = openpyxl.Workbook()
    book.active["A1"] = 12
    file = io.BytesIO()
    book.save(file)
    assert read(file.getvalue()).texts == []
    assert unpack(keep(read(file.getvalue()))) == unpack(file.getvalue())


HEADS = (
    '<worksheet><headerFooter><oddHeader>&amp;L&amp;"Arial,Bold"Fruits&amp;R&amp;14Page &amp;P '
    "of &amp;N</oddHeader></headerFooter></worksheet>"
)


def test_headers_keep_their_codes():
    content = pack({"xl/worksheets/sheet1.xml": HEADS})
    document = read(content)
    assert document.texts == ["Fruits", "Page of"]
    written = unpack(translate(document))["xl/worksheets/sheet1.xml"].decode()
    assert written == HEADS.replace("Fruits", "FRUITS").replace("Page", "PAGE").replace("of", "OF")


def test_labels_of_charts_that_are_names_of_columns_stay():
    label = "<c:v>{}</c:v>"
    files = {
        "xl/tables/table1.xml": '<table><tableColumn name="Amount"/></table>',
        "xl/charts/chart1.xml": f'<x xmlns:c="c">{label * 2}</x>'.format("Amount", "East"),
        "xl/drawings/drawing1.xml": '<x xmlns:a="a"><a:p><a:r><a:t>Box</a:t></a:r></a:p></x>',
    }
    written = unpack(translate(read(pack(files))))
    assert written["xl/charts/chart1.xml"].decode().count(label.format("Amount")) == 1
    assert written["xl/charts/chart1.xml"].decode().count(label.format("EAST")) == 1
    assert b"BOX" in written["xl/drawings/drawing1.xml"]


CELL = "<table:table-cell{}><text:p>{}</text:p></table:table-cell>"
NUMBER, FORMULA = ' office:value-type="float"', ' table:formula="x" office:value-type="string"'
NOTE = "<office:annotation><text:p>{}</text:p></office:annotation>"


def test_numbers_and_results_of_open_sheets_stay():
    body = (
        CELL.format(' office:value-type="string"', "one")
        + CELL.format(NUMBER, "12 pounds")
        + CELL.format(FORMULA, "two")
        + CELL.format(NUMBER, "13</text:p>" + NOTE.format("why?") + "<text:p>pounds")
    )
    names = 'xmlns:o="o" xmlns:table="t" xmlns:text="x" xmlns:office="f"'
    content = pack({"content.xml": f"<o:x {names}>{body}</o:x>"})
    document = read_document("a.ods", content, 100_000)
    assert document.texts == ["one", "why?"]
    written = unpack(translate(document))["content.xml"].decode()
    assert written == f"<o:x {names}>{body}</o:x>".replace("one", "ONE").replace("why", "WHY")
