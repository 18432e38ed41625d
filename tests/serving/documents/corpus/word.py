"""A Word file by python-docx, with all that its users and Word itself put into one."""

import io
import re

import docx
from docx.enum.text import WD_BREAK
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.shared import Pt

NAMES = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "wp": "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "a": "http://schemas.openxmlformats.org/drawingml/2006/main",
    "v": "urn:schemas-microsoft-com:vml",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
}
_DECLARED = " ".join(f'xmlns:{prefix}="{name}"' for prefix, name in NAMES.items())
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def make_word() -> bytes:
    """Make the file."""
    document = docx.Document()
    document.add_heading("A heading with “quotes” & <angles>", 1)
    _add_runs(document.add_paragraph())
    for body in PARAGRAPHS:
        document._body._body._insert_p(_parse(f"<w:p>{body}</w:p>"))
    _add_tables(document)
    for style in ("List Bullet", "List Number"):
        document.add_paragraph("An item of a list", style=style)
    document.add_paragraph()
    document.add_paragraph("Before a page break").add_run().add_break(WD_BREAK.PAGE)
    commented = document.add_paragraph("A paragraph with a ")
    comment = document.add_comment(
        commented.add_run("commented phrase"), text="A remark of somebody.", author="Ann Author"
    )
    comment.add_paragraph("Its second paragraph.")
    _add_heads(document)
    _add_notes(document)
    document.core_properties.title = "Title in the properties"
    document.core_properties.author = "Ann Author"
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _add_runs(paragraph) -> None:
    """Add runs that split words and look differently."""
    for text, look in (
        ("Some wo", ""), ("rds are cut by ru", ""), ("ns, ", ""), ("bol", "bold"),
        ("d ones", "bold"), (" too, and ", ""), ("half", "italic"), ("bold", "bold"),
        (" words.", ""),
    ):  # fmt: skip
        run = paragraph.add_run(text)
        if look:
            setattr(run, look, True)
    paragraph.add_run("\tBehind a tab\nand behind a line break").font.size = Pt(9)


def _add_tables(document) -> None:
    """Add a table with merged cells and a table in a cell."""
    table = document.add_table(3, 3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"Cell {'abc'[row]}{'xyz'[column]}"
    table.cell(0, 0).merge(table.cell(0, 1))
    inner = table.cell(1, 1).add_table(1, 2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "Inner cell", "Another inner cell"
    table.cell(1, 1).add_paragraph("Behind the inner table")


def _add_heads(document) -> None:
    """Add headers and footers, of first pages too."""
    section = document.sections[0]
    section.different_first_page_header_footer = True
    section.header.paragraphs[0].text = "A header"
    section.first_page_header.paragraphs[0].text = "Header of the first page"
    paragraph = section.footer.paragraphs[0]
    paragraph.add_run("Page ")
    mark = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    for piece in (
        mark.format("begin"), '<w:r><w:instrText xml:space="preserve"> PAGE </w:instrText></w:r>',
        mark.format("separate"), _run("7"), mark.format("end"), _run(" of the report"),
    ):  # fmt: skip
        paragraph._p.append(_parse(piece))


def _add_notes(document) -> None:
    """Add foot- and endnotes, for which the library has no functions."""
    for kind in ("footnote", "endnote"):
        notes = "".join(
            f'<w:{kind} w:id="{number}"{extra}>{body}</w:{kind}>'
            for number, extra, body in (
                (-1, ' w:type="separator"', "<w:p><w:r><w:separator/></w:r></w:p>"),
                (
                    2,
                    "",
                    f"<w:p><w:r><w:{kind}Ref/></w:r><w:r><w:t> Text of a {kind}.</w:t></w:r></w:p>",
                ),
                (3, "", f"<w:p><w:r><w:t>Another {kind}</w:t></w:r></w:p><w:p/>"),
            )
        )
        root = f'<?xml version="1.0"?><w:{kind}s {_DECLARED}>{notes}</w:{kind}s>'
        name = PackURI(f"/word/{kind}s.xml")
        part = Part(name, f"{_TYPE}.{kind}s+xml", root.encode(), document.part.package)
        document.part.relate_to(part, getattr(RELATIONSHIP_TYPE, f"{kind.upper()}S"))


def _parse(xml):
    """Parse an element whose prefixes are those of `NAMES`."""
    (element,) = parse_xml(f"<w:p {_DECLARED}>{xml}</w:p>")
    return element


def _run(text, look=""):
    return f'<w:r><w:rPr>{look}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


_SIGNS = "Non\u00a0breaking, soft\u00adhyphen, 😀 emoji, e\u0301 combined"
_BOX = "<w:txbxContent><w:p><w:r><w:t>Text in a box</w:t></w:r></w:p></w:txbxContent>"
# In these, what stands between “[” and “]” is a run, with its look before “|”.
_WRITTEN = (
    # Tracked changes.
    '[Kept, ]<w:ins w:id="1" w:author="Ann">[put in]</w:ins><w:del w:id="2" w:author="Ann"><w:r>'
    "<w:delText>taken out</w:delText></w:r></w:del>[ and kept.]",
    '<w:moveFrom w:id="3" w:author="Ann">[Moved away.]</w:moveFrom>'
    '<w:moveTo w:id="4" w:author="Ann">[Moved here.]</w:moveTo>',
    # A link over several runs, bookmarks, spelling marks.
    '[See ]<w:hyperlink w:anchor="place" w:tooltip="A tip">[the li][<w:u/>|nk ][<w:u/>|here]'
    '</w:hyperlink>[, ]<w:bookmarkStart w:id="5" w:name="place"/>[a marked place]'
    '<w:bookmarkEnd w:id="5"/><w:proofErr w:type="spellStart"/>[ with erors]'
    '<w:proofErr w:type="spellEnd"/>[.]',
    # Fields: of one element, of many runs, and one in another.
    '[Dated ]<w:fldSimple w:instr=" DATE ">[some day]</w:fldSimple>[, by ]BEGIN<w:r><w:instrText>'
    "AUTHOR Nobody</w:instrText></w:r>SEPARATE[result of a field]END[.]",
    "[As ]BEGIN<w:r><w:instrText>IF </w:instrText></w:r>BEGIN<w:r><w:instrText>PAGE</w:instrText>"
    "</w:r>SEPARATE[1]END<w:r><w:instrText> = 1</w:instrText></w:r>SEPARATE[one computes ]BEGIN"
    "<w:r><w:instrText>REF place</w:instrText></w:r>SEPARATE[the other]END[ inside]END[ it.]",
    # Notes, whose marks stand behind a word.
    '[A word]<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="2"/>'
    '</w:r>[ with notes.]<w:r><w:endnoteReference w:id="2"/></w:r>',
    # A box, as new programs and as old ones have it, and a picture with its alternative text.
    '[A box ]<w:r><mc:AlternateContent><mc:Choice Requires="wps"><w:drawing><wp:inline>'
    '<wp:extent cx="2000000" cy="600000"/><wp:docPr id="1" name="Box" descr="What the box shows"/>'
    f'<a:graphic><a:graphicData uri="{NAMES["wps"]}"><wps:wsp><wps:cNvSpPr txBox="1"/><wps:spPr>'
    '<a:xfrm><a:off x="0" y="0"/><a:ext cx="2000000" cy="600000"/></a:xfrm><a:prstGeom prst="rect">'
    f"<a:avLst/></a:prstGeom></wps:spPr><wps:txbx>{_BOX}</wps:txbx><wps:bodyPr/></wps:wsp>"
    "</a:graphicData></a:graphic></wp:inline></w:drawing></mc:Choice><mc:Fallback><w:pict>"
    f"<v:shape alt='Old words'><v:textbox>{_BOX}</v:textbox></v:shape></w:pict></mc:Fallback>"
    "</mc:AlternateContent></w:r>[stands here.]",
    # Signs that are no letters, from the right, and beyond the first plane.
    f'[{_SIGNS}]<w:r><w:noBreakHyphen/><w:softHyphen/><w:sym w:font="Wingdings" w:char="F04A"/>'
    "</w:r>[end.]",
    "<w:pPr><w:bidi/></w:pPr>[<w:rtl/>|שלום עולם ][Latin ][<w:rtl/>|مرحبا]",
    # Content controls, formulas, ruby, tabs, digits.
    '[Choose ]<w:sdt><w:sdtPr><w:alias w:val="Alias"/><w:dropDownList><w:listItem w:displayText='
    '"Left alone" w:value="1"/></w:dropDownList></w:sdtPr><w:sdtContent>[one of these]'
    "</w:sdtContent></w:sdt>[ now.]",
    "[The sum ]<m:oMath><m:r><m:t>a+b</m:t></m:r></m:oMath>[ is known.]",
    "[Ruby: ]<w:r><w:ruby><w:rubyPr/><w:rt>[reading]</w:rt><w:rubyBase>[base]</w:rubyBase>"
    "</w:ruby></w:r>[ behind it.]",
    "[<w:caps/>|Capitals ]<w:r><w:t>with</w:t><w:tab/><w:t>tabs</w:t><w:br/><w:t>and lines</w:t>"
    "</w:r>",
    '<w:smartTag w:uri="u" w:element="e">[Smart tags]</w:smartTag>[ are old.]',
    "<w:r><w:t>123</w:t></w:r>",
)


def _write(text):
    """Write the runs and fields of a paragraph."""
    for kind in ("begin", "separate", "end"):
        mark = f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'
        text = re.sub(rf"\b{kind.upper()}\b", mark, text)
    return re.sub(r"\[(?:(<[^|\]]*)\|)?([^\]]*)\]", lambda run: _run(run[2], run[1] or ""), text)


PARAGRAPHS = tuple(map(_write, _WRITTEN))
