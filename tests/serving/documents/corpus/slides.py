"""Slides by python-pptx: groups, tables, charts, notes, links, fields, diagrams."""

import io

from lxml import etree
from pptx import Presentation
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.opc.package import Part
from pptx.opc.packuri import PackURI
from pptx.util import Cm

_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_DIAGRAM = "http://schemas.openxmlformats.org/drawingml/2006/diagram"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def make_slides() -> bytes:
    """Make the file."""
    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "The title of a slide"
    frame = first.placeholders[1].text_frame
    frame.text = "First point"
    for level, text in enumerate(("Second point", "A point below it", "And one more"), start=0):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = text, level
    _add_runs(frame.add_paragraph())
    first.notes_slide.notes_text_frame.text = "What the speaker says\nOn two lines"
    _add_shapes(deck.slides.add_slide(deck.slide_layouts[6]))
    _add_chart(deck.slides.add_slide(deck.slide_layouts[5]))
    file = io.BytesIO()
    deck.save(file)
    return file.getvalue()


def _add_runs(paragraph) -> None:
    """Add runs that split words, a line break, a link, and a field."""
    for text, is_bold in (("Some wo", None), ("rds are c", None), ("ut ", True), ("here", None)):
        run = paragraph.add_run()
        run.text, run.font.bold = text, is_bold
    paragraph.add_line_break()
    run = paragraph.add_run()
    run.text = "a link"
    run.hyperlink.address = "http://example.org/page"
    field = '<a:fld xmlns:a="{}" id="{{B1}}" type="slidenum"><a:rPr/><a:t>1</a:t></a:fld>'
    paragraph._p.append(etree.fromstring(field.format(_A)))
    paragraph.add_run().text = " is the number"


def _add_shapes(slide) -> None:
    """Add a group, a table with merged cells, a picture with its alternative text, a diagram."""
    group = slide.shapes.add_group_shape()
    box = group.shapes.add_textbox(Cm(1), Cm(1), Cm(5), Cm(2))
    box.text_frame.text = "Text in a group"
    inner = group.shapes.add_group_shape()
    inner.shapes.add_textbox(0, 0, Cm(5), Cm(2)).text_frame.text = "Deeper in it"
    inner._element.nvGrpSpPr.cNvPr.set("descr", "What the group shows")
    table = slide.shapes.add_table(2, 3, Cm(1), Cm(5), Cm(10), Cm(3)).table
    for row in range(2):
        for column in range(3):
            table.cell(row, column).text = f"Cell {'ab'[row]}{'xyz'[column]}"
    table.cell(0, 0).merge(table.cell(0, 1))
    shape = slide.shapes.add_textbox(0, 0, Cm(5), Cm(2))
    shape.text_frame.text = "שלום 😀 non\u00a0breaking soft\u00adhyphen"
    shape._element.nvSpPr.cNvPr.set("descr", "A described shape")
    shape._element.nvSpPr.cNvPr.set("title", "Titled shape")
    points = "".join(
        f'<dgm:pt modelId="{number}"><dgm:t><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p>'
        "</dgm:t></dgm:pt>"
        for number, text in enumerate(("Box of a diagram", "Another box"))
    )
    data = f'<dgm:dataModel xmlns:dgm="{_DIAGRAM}" xmlns:a="{_A}"><dgm:ptLst>{points}</dgm:ptLst>'
    package = slide.part.package
    part = Part(
        PackURI("/ppt/diagrams/data1.xml"),
        "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml",
        package,
        f"{data}</dgm:dataModel>".encode(),
    )
    slide.part.relate_to(part, f"{_RELATION}/diagramData")


def _add_chart(slide) -> None:
    """Add a chart with titles, series, categories, and a number format."""
    slide.shapes.title.text = "A chart"
    data = CategoryChartData()
    data.categories = ["East side", "West side", "North"]
    data.add_series("Sales of apples", (1.5, 2, 3))
    data.add_series("Sales of pears", (4, 5, 6))
    place = (XL_CHART_TYPE.COLUMN_CLUSTERED, Cm(1), Cm(1), Cm(10), Cm(10), data)
    chart = slide.shapes.add_chart(*place).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Title of the chart"
    chart.value_axis.has_title = True
    chart.value_axis.axis_title.text_frame.text = "Tons a year"
