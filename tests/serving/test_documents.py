"""Nasty documents of every kind, translated word by word: each text once, all else as it was."""

import html
import io
import re
import shutil
import subprocess
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import docx
import openpyxl
import pptx
import pytest
from tests.serving.documents.corpus.make_files import convert, make_files
from tests.serving.documents.corpus.packages import list_texts, unpack, write_canonical
from tests.serving.documents.corpus.sheets import make_sheets
from tests.serving.documents.corpus.slides import make_slides
from tests.serving.documents.corpus.texts import TEXTS, make_text
from tests.serving.documents.corpus.word import make_word
from tests.serving.documents.word_by_word import keep, translate

from dragoman.serving.documents.documents import read_document
from dragoman.serving.documents.rtf_tokens import split_rtf

FILES = Path(__file__).parent / "documents" / "corpus" / "files"
MADE = {"word.docx": make_word, "slides.pptx": make_slides, "sheets.xlsx": make_sheets}
LIBRARIES = {".docx": docx.Document, ".pptx": pptx.Presentation, ".xlsx": openpyxl.load_workbook}
FAMILIES = {
    **dict.fromkeys((".docx", ".pptx", ".xlsx"), "office"),
    **dict.fromkeys((".odt", ".odp", ".ods"), "open"),
    ".epub": "book",
}
# Names of columns of tables, which formulas use, stay.
KEPT = {"sheets.xlsx": {"Nameofit", "Amount"}}
PACKAGES = [
    *MADE,
    *(f"libreoffice/{name}" for name in (
        "word.docx", "word.odt", "slides.pptx", "slides.odp", "sheets.xlsx", "sheets.ods",
    )),
    *(f"pandoc/book.{kind}" for kind in ("docx", "odt", "pptx", "epub")),
]  # fmt: skip


def load(name):
    return MADE[name]() if name in MADE else (FILES / name).read_bytes()


def read(name, content):
    return read_document(Path(name).name, content, 100_000_000, "de")


def is_read(name, suffix):
    """Whether people read what is in a part."""
    if suffix == ".epub":
        return name.endswith((".xhtml", ".opf", ".ncx"))
    if suffix in (".odt", ".odp", ".ods"):
        return name.endswith("content.xml") or (name == "styles.xml" and suffix != ".odp")
    is_made = "/_rels/" in name or "Master" in name or "Layout" in name or "/theme/" in name
    is_plain = name.split("/")[-1].startswith(
        ("style", "setting", "font", "numbering", "webS", "workbook", "presentation", "viewProps",
         "presProps", "tableStyles", "table1")
    )  # fmt: skip
    folder = name.split("/")[0]
    return folder in ("word", "ppt", "xl") and name.endswith(".xml") and not (is_made or is_plain)


def check_package(name, content):
    """Check that each text is translated once, and everything else is as it was."""
    suffix = Path(name).suffix
    family = FAMILIES[suffix]
    kept = KEPT.get(Path(name).name, set())
    document = read(name, content)
    translated = translate(document)
    before, same, after = map(unpack, (content, keep(document), translated))
    assert list(before) == list(same) == list(after)
    num_read = 0
    for part, original in before.items():
        if not is_read(part, suffix):
            assert after[part] == same[part] == original, part
            continue
        texts = list_texts(original, family)
        expected = [each if each in kept else each.upper() for each in texts]
        assert list_texts(after[part], family) == expected, part
        canonical = write_canonical(original)
        assert write_canonical(same[part]) == canonical, part
        written = write_canonical(after[part])
        assert [each[1:] for each in written] == [each[1:] for each in canonical], part
        changed = [old[0] for old, new in zip(canonical, written, strict=True) if old != new]
        assert all(len(each) == 1 for each in changed), part
        small = [
            each for text in texts if text not in kept for each in text if each.upper() != each
        ]
        assert sorted(changed) == sorted(small), part
        num_read += len(texts)
    assert num_read > 10
    open_again(suffix, translated)


def open_again(suffix, content):
    """Open a file in the library that made it, or one that knows its kind."""
    if suffix in LIBRARIES:
        LIBRARIES[suffix](io.BytesIO(content))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        if suffix not in LIBRARIES:
            assert archive.infolist()[0].filename == "mimetype"
            assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED


@pytest.mark.parametrize("name", PACKAGES)
def test_packages(name):
    check_package(name, load(name))


class Events(HTMLParser):
    """Lists the tags of a page, and every character but white space."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.text = []  # With whether somebody else than people reads it.
        self._hidden = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, attrs))
        self._hidden += tag in ("style", "script", "code", "math")

    def handle_endtag(self, tag):
        self.found.append(("end", tag))
        self._hidden -= tag in ("style", "script", "code", "math")

    def handle_data(self, data):
        shown = "".join(data.split())
        self.found += shown
        self.text += ((each, self._hidden > 0) for each in shown)

    def handle_comment(self, data):
        self.found.append(("comment", data))

    def handle_decl(self, decl):
        self.found.append(("declaration", decl))


def write_normal(name, text):
    """Write a text so that what means the same is the same."""
    if "html" in name:
        return Events(text).found
    return html.unescape(text) if name.endswith(".md") else text


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    source, expected = make_text(name)
    document = read(name, source.encode())
    assert write_normal(name, keep(document).decode()) == write_normal(name, source)
    assert write_normal(name, translate(document).decode()) == write_normal(name, expected)


def test_pandoc_page():
    content = (FILES / "pandoc" / "book.html").read_bytes()
    document = read("book.html", content)
    before, same, after = (
        Events(each.decode()) for each in (content, keep(document), translate(document))
    )
    assert same.found == before.found
    shown = [each if is_hidden else each.upper() for each, is_hidden in before.text]
    assert [each for each, _ in after.text] == shown
    pairs = zip(before.found, after.found, strict=True)
    changed = [(old, new) for old, new in pairs if old != new and len(old) > 1]
    attributes = [dict(old[1]) | dict(new[1]) for old, new in changed]
    assert [each.get("title", each.get("alt")) for each in attributes] == ["TITLE OF A PICTURE"]


# Every paragraph of word.py that these kinds have, once.
WORD_TEXTS = (
    "A heading with “quotes” & <angles>",
    "Some words are cut by runs, bold ones too, and halfbold words.",
    "See the link here, a marked place with erors.",
    "Choose one of these now.",
    "Smart tags are old.",
    "Behind the inner table",
)


@pytest.mark.parametrize("name", ["libreoffice/word.rtf", "pandoc/book.rtf"])
def test_rtf(name):
    content = load(name)
    document = read(name, content)
    written = translate(document)
    assert read(name, written).texts == [each.upper() for each in document.texts]
    before, after = (
        [each.raw.strip() for each in split_rtf(some.decode("latin-1")) if each.kind != "text"]
        for some in (content, written)
    )
    assert [each for each in before if each] == [each for each in after if each]
    if "word" in name:
        assert [document.texts.count(each) for each in WORD_TEXTS] == [1] * 6


OFFICE = pytest.mark.skipif(
    shutil.which("soffice") is None or shutil.which("pandoc") is None,
    reason="LibreOffice (soffice) and pandoc are not both installed",
)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """Make the files of other programs with what is installed here."""
    folder = tmp_path_factory.mktemp("fresh")
    make_files(folder)
    return folder


@OFFICE
@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in PACKAGES if each not in MADE])
def test_packages_made_afresh(fresh, name):
    check_package(name, (fresh / name).read_bytes())


# Commas, quotation marks, UTF-8.
_UTF8_CSV = "csv:Text - txt - csv (StarCalc):44,34,76"


def shown_by_program(name, content, folder):
    """Have a program read a file, and give its text; of slides, whether it reads them at all."""
    folder.mkdir(parents=True)
    path = folder / name
    path.write_bytes(content)
    kinds = {"word": "txt:Text", "book": "txt:Text", "sheets": _UTF8_CSV, "slides": "pdf"}
    kind = kinds[path.stem]
    if path.suffix in (".epub", ".html"):
        command = ["pandoc", "--to", "plain", "--wrap", "none", name, "--output", "book.txt"]
        subprocess.run(command, cwd=folder, check=True)
    elif path.suffix == ".pptx":
        kind = "pdf"
        convert(path, kind, folder)
    else:
        convert(path, kind, folder)
    written = path.with_suffix(f".{kind.partition(':')[0]}").read_bytes()
    return "" if kind == "pdf" else written.decode()


@OFFICE
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*PACKAGES, "libreoffice/word.rtf", "pandoc/book.rtf", "pandoc/book.html"]
)
def test_other_programs_show_what_is_written(tmp_path, name):
    content = load(name)
    before, after = (
        shown_by_program(Path(name).name, each, tmp_path / folder)
        for folder, each in (("before", content), ("after", translate(read(name, content))))
    )
    words = [sorted(re.findall(r"[^\W\d_]+", each.upper())) for each in (before, after)]
    assert words[0] == words[1]


def test_pdf():
    document = read("word.pdf", load("libreoffice/word.pdf"))
    written = docx.Document(io.BytesIO(translate(document)))
    shown = [each.text for each in written.paragraphs]
    shown += [cell.text for table in written.tables for row in table.rows for cell in row.cells]
    for text in WORD_TEXTS:
        assert sum(text.upper() in each for each in shown) == 1, text
