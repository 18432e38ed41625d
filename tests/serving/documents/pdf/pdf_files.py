"""PDF files for tests: made by reportlab, or object by object where no library makes such."""

import io

from reportlab.lib import pdfencrypt
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfgen import canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    FrameBreak,
    ListFlowable,
    NextPageTemplate,
    PageTemplate,
    Paragraph,
    SimpleDocTemplate,
    Table,
)

STYLES = getSampleStyleSheet()
BODY = ParagraphStyle("body", STYLES["BodyText"], alignment=4)
WORDS = (
    "The quick brown fox jumps over the lazy dog near the old river bank every single morning. "
    "Nobody knows why it does so, but the whole village has always liked to watch it."
)


def build(flow, **options):
    """Make a PDF of paragraphs."""
    file = io.BytesIO()
    SimpleDocTemplate(file, invariant=1, **options).build(flow)
    return file.getvalue()


def draw(*lines, rotation=0):
    """Make a page of lines at places: x, y, text."""
    file = io.BytesIO()
    page = canvas.Canvas(file, pagesize=A4, invariant=1)
    page.setPageRotation(rotation)
    for x, y, text in lines:
        page.drawString(x, y, text)
    page.save()
    return file.getvalue()


def draw_turned(*lines):
    """Make a page that is turned by a quarter, and its text with it."""
    file = io.BytesIO()
    page = canvas.Canvas(file, invariant=1)
    page.setPageRotation(90)
    page.rotate(90)
    for x, y, text in lines:
        page.drawString(x, y, text)
    page.save()
    return file.getvalue()


def make_locked(password):
    """Make a PDF that only a password opens."""
    return build([Paragraph(WORDS)], encrypt=pdfencrypt.StandardEncryption(password))


def make_columns():
    """Make a paper: a title over two columns, headings, paragraphs, a list, a table, pages."""
    width, height = A4
    column = (width - 120) / 2
    left = Frame(50, 50, column, height - 210)
    right = Frame(70 + column, 50, column, height - 210)

    def draw_head(page, document):
        page.drawString(60, 800, "Journal of foxes")
        page.drawRightString(530, 20, f"Page {document.page}")

    flow = [Paragraph("A title over both columns", STYLES["Title"]), NextPageTemplate("two")]
    flow.append(FrameBreak())
    for part in range(4):
        flow.append(Paragraph(f"Heading {part}", STYLES["Heading2"]))
        flow += [Paragraph(f"Begin {part}{n}. {WORDS} {WORDS} End.", BODY) for n in range(4)]
        items = [Paragraph(f"point {part}{n}", STYLES["Normal"]) for n in range(2)]
        flow.append(ListFlowable(items, bulletType="bullet"))
    flow.append(Table([["Name", "Number", "Remark"], ["Apple", "12", "red"], ["Pear", "7", "raw"]]))
    file = io.BytesIO()
    document = BaseDocTemplate(file, pagesize=A4, invariant=1)
    title = Frame(50, height - 150, width - 100, 100)
    document.addPageTemplates(
        [
            PageTemplate("one", [title, left, right], onPage=draw_head),
            PageTemplate("two", [left, right], onPage=draw_head),
        ]
    )
    document.build(flow)
    return file.getvalue()


def make_page(content, *, options=b"", page=b"", resources=b"", kids=b"[3 0 R]", count=1):
    """Make a PDF object by object, with whatever is wrong or hostile in them."""
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    form = b"<</Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</XObject<</X 6 0 R>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids%s/Count %d>>" % (kids, count),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R"
        b"/Resources<</Font<</F 5 0 R>>%s>>%s>>" % (resources, page),
        b"<</Length %d%s>>stream\n%s\nendstream" % (len(content), options, content),
        font,
        form + b"/Length 5>>stream\n/X Do\nendstream",
    ]
    written, places = b"%PDF-1.7\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return written + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (size, table, size, len(written))
    )


def show(text, x=50, y=700):
    """Write the operators that show a text."""
    return b"BT /F 12 Tf %d %d Td (%s) Tj ET " % (x, y, text)
