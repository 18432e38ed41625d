"""Make the files that LibreOffice and pandoc write: FOLDER.

    python -m tests.serving.documents.corpus.make_files FOLDER

LibreOffice converts what word.py, slides.py and sheets.py make; pandoc converts book.md. Those in
files/ come from LibreOffice 7.4 and pandoc 2.17.
"""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.serving.documents.corpus.sheets import make_sheets
from tests.serving.documents.corpus.slides import make_slides
from tests.serving.documents.corpus.word import make_word

HERE = Path(__file__).parent
CONVERTED = {
    "word.docx": (make_word, ("odt", "rtf", "docx", "pdf")),
    "slides.pptx": (make_slides, ("odp", "pptx")),
    "sheets.xlsx": (make_sheets, ("ods", "xlsx")),
}
PANDOC = ("epub", "docx", "odt", "rtf", "pptx", "html")
PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def make_files(folder: Path) -> None:
    """Make all files in a folder."""
    with tempfile.TemporaryDirectory() as name:
        sources = Path(name)
        for source, (make, kinds) in CONVERTED.items():
            (sources / source).write_bytes(make())
            for kind in kinds:
                convert(sources / source, kind, folder / "libreoffice")
        (sources / "picture.png").write_bytes(PICTURE)
        (sources / "book.md").write_bytes((HERE / "book.md").read_bytes())
        (folder / "pandoc").mkdir(parents=True, exist_ok=True)
        for kind in PANDOC:
            written = folder.resolve() / "pandoc" / f"book.{kind}"
            words = ["--standalone", "--mathml", "book.md", "--output", str(written)]
            subprocess.run(["pandoc", *words], cwd=sources, check=True)


def convert(source: Path, kind: str, folder: Path) -> None:
    """Have LibreOffice convert a file."""
    with tempfile.TemporaryDirectory() as profile:
        command = ["soffice", f"-env:UserInstallation=file://{profile}", "--headless"]
        words = ["--convert-to", kind, "--outdir", str(folder), str(source)]
        subprocess.run([*command, *words], check=True, capture_output=True)


if __name__ == "__main__":
    make_files(Path(sys.argv[1]))
