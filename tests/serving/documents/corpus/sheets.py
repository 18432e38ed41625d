"""A workbook by XlsxWriter, as Excel writes it: strings that several cells share, and all else."""

import io

import xlsxwriter


def make_sheets() -> bytes:
    """Make the file."""
    file = io.BytesIO()
    book = xlsxwriter.Workbook(file, {"in_memory": True})
    sheet = book.add_worksheet("Fruits")
    rows = [["Red apple", 12], ["Green pear", 7.5], ["Red apple", 3]]
    names = [{"header": "Name of it"}, {"header": "Amount"}]
    sheet.add_table("A1:B4", {"data": rows, "columns": names})
    bold = book.add_format({"bold": True})
    sheet.write_rich_string("D1", "Partly ", bold, "bo", bold, "ld", " text")
    sheet.write_formula("D2", '=IF(A2="Red apple","yes it is","no")', None, "yes it is")
    sheet.write_formula("D3", "=SUM(B2:B4)", None, 22.5)
    sheet.write("D4", "  two lines\nin one cell ")
    sheet.write("D5", "שלום 😀 & <b> non\u00a0breaking")
    sheet.write_boolean(6, 3, True)
    sheet.write_comment("D1", "What somebody remarks", {"author": "Ann Author"})
    sheet.write_url("E1", "http://example.org", string="A link", tip="Where it leads")
    sheet.merge_range("F1:G2", "Merged cells")
    sheet.set_header('&L&"Arial,Bold"Printed head&C&14&KFF0000Red words&RPage &P of &N')
    sheet.set_footer("&CBread && butter")
    sheet.data_validation(
        "A9",
        {"validate": "list", "source": ["Red apple", "Green pear"],
         "input_title": "Choose one", "input_message": "One of the fruits",
         "error_title": "Not this", "error_message": "No fruit"},
    )  # fmt: skip
    sheet.insert_textbox(
        "H20", "Text in a box\nof two paragraphs", {"description": "What it shows"}
    )
    _add_chart(book, sheet)
    other = book.add_worksheet("Second sheet")
    other.write("A1", "Red apple")
    other.write_formula("A2", "='Fruits'!A2", None, "Red apple")
    book.close()
    return file.getvalue()


def _add_chart(book, sheet) -> None:
    """Add a chart whose labels are copies of cells, one of them the name of a column."""
    chart = book.add_chart({"type": "column"})
    chart.add_series(
        {
            "name": "=Fruits!$B$1",
            "categories": "=Fruits!$A$2:$A$4",
            "values": "=Fruits!$B$2:$B$4",
            "data_labels": {"value": True, "custom": [{"value": "A label of its own"}]},
        }
    )
    chart.set_title({"name": "Title of the chart"})
    chart.set_y_axis({"name": "Tons a year"})
    sheet.insert_chart("H1", chart, {"description": "What the chart shows"})
