"""“dragoman translate --document” as people meet it."""

import asyncio
import json
import shutil

import docx as python_docx
import pytest
from tests.cli.command_line import fail
from tests.serving.documents.pdf.pdf_files import draw
from tests.serving.documents.test_office_documents import docx, run
from tests.serving.small_service import make_service

from dragoman.cli.command import main
from dragoman.serving.documents.documents import read_document, translate_document
from dragoman.serving.service_types import Client, Request

XLIFF = (
    '<xliff version="1.2"><file original="a" source-language="de"><body><trans-unit id="1">'
    "<source>Zahl <g>1</g> %s</source></trans-unit></body></file></xliff>"
)
FILES = {
    "a.json": b'{"key": "Zahl 1 {name}", "n": 3}',
    "a.yaml": b"key: Zahl 1  # Zahl\n",
    "a.po": b'msgid "Zahl %d"\nmsgstr ""\n',
    "a.xliff": XLIFF.encode(),
    "a.csv": b"id,text\n1,Zahl 1\n2,Zahl 2\n",
    "a.srt": b"1\n00:00:01,000 --> 00:00:02,000\nZahl 1\n",
    "a.docx": docx(f"<w:p>{run('Zahl 1')}</w:p>"),
}


def translate_as_the_server_does(model, name, content):
    request = Request(texts=(), source="de", target="en", client=Client(name="ann"))

    async def work():
        service = make_service([model], processes=0)
        service.start()
        try:
            document = read_document(name, content, 10_000_000, "en")
            return await translate_document(service, document, request)
        finally:
            await asyncio.to_thread(service.stop)

    return asyncio.run(work())


@pytest.mark.parametrize("name", FILES)
def test_documents_become_what_the_server_makes_of_them(model, tmp_path, capsys, name):
    document, output = tmp_path / name, tmp_path / f"out-{name}"
    document.write_bytes(FILES[name])
    main(["translate", str(model), "--document", str(document), "--output", str(output),
          "--device", "cpu"])  # fmt: skip
    assert output.read_bytes() == translate_as_the_server_does(model, name, FILES[name])
    assert document.read_bytes() == FILES[name]
    assert capsys.readouterr().out == ""
    assert {each.name for each in tmp_path.iterdir()} == {name, f"out-{name}"}


def test_layout_is_kept(model, tmp_path):
    (tmp_path / "a.json").write_bytes(FILES["a.json"])
    words = ["--document", str(tmp_path / "a.json"), "--output", str(tmp_path / "b.json")]
    main(["translate", str(model), *words, "--beam-size", "1", "--into", "en"])
    written = json.loads((tmp_path / "b.json").read_text())
    assert list(written) == ["key", "n"]
    assert written["key"].count("{name}") == 1
    assert written["n"] == 3


def test_terms_of_a_glossary_are_in_the_document(model, tmp_path, capsys):
    (tmp_path / "a.json").write_bytes(FILES["a.json"])
    (tmp_path / "terms.tsv").write_text("Zahl\tcipher\n")
    words = ["--document", str(tmp_path / "a.json"), "--output", str(tmp_path / "b.json")]
    main(["translate", str(model), *words, "--terms", str(tmp_path / "terms.tsv")])
    assert "cipher" in json.loads((tmp_path / "b.json").read_text())["key"]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("suffix", [".docx", ".txt"])
def test_a_pdf_becomes_a_word_file_or_text(model, tmp_path, suffix):
    (tmp_path / "a.pdf").write_bytes(draw((50, 700, "Zahl 1")))
    written = tmp_path / f"b{suffix}"
    main(["translate", str(model), "--document", str(tmp_path / "a.pdf"), "--output", str(written)])
    text = (
        written.read_text()
        if suffix == ".txt"
        else python_docx.Document(written).paragraphs[0].text
    )
    assert text.strip()
    assert "Zahl" not in text


def test_columns_are_chosen(model, tmp_path):
    (tmp_path / "a.csv").write_text("one,two\nZahl 1,Zahl 2\n")
    words = ["--document", str(tmp_path / "a.csv"), "--output", str(tmp_path / "b.csv")]
    main(["translate", str(model), *words, "--columns", "two"])
    assert (tmp_path / "b.csv").read_text().startswith("one,two\nZahl 1,")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--document", "a.json"], "--document needs --output: give the file to write"),
        (["--document", "no.json", "--output", "b.json"], "no.json: no such file; give a document"),
        (["--document", "a.json", "--output", "b.txt"], "but a .json file stays one; give a name"),
        (
            ["--document", "a.pdf", "--output", "b.pdf"],
            "b.pdf, but of a .pdf file only the text can be written; give a name that ends in",
        ),
        (["--document", "a.pdf", "--output", "b.txt"], "a.pdf: the file is damaged, or no PDF"),
        (["--document", "a.json", "--output", "a.json"], "a.json: is there already; give another"),
        (["--document", "a.exe", "--output", "b.exe"], "a.exe: file format not supported; send"),
        (["--document", "bad.json", "--output", "b.json"], "bad.json: the file is not JSON (Expec"),
        (["--document", "a.json", "--output", "b.json", "--columns", "1"], "have no columns to ch"),
        (["--document", "a.json", "--output", "b.json", "--n-best", "3"], "--n-best is for lines"),
        (["--document", "a.json", "--output", "b.json", "--forbid", "a.exe"], "--forbid is for li"),
        (["--document", "a.json", "--output", "b.json", "--terms", "a.exe"], "a.exe:1: has 1 colu"),
        (["--document", "a.json", "--output", "b.json", "--terms", "no"], "no: cannot be read"),
        (["--document", "a.json", "--output", "b.json", "--sample"], "--sample is for lines of te"),
        (["a.json", "--document", "a.json", "--output", "b.json"], "FILE is for lines of text, n"),
        (
            ["--document", "a.json", "--output", "b.json", "--max-extra-tokens", "5"],
            "--max-extra-tokens is for lines of text, not for --document; leave it out",
        ),
        (
            ["--document", "a.json", "--output", "b.json", "--into", "fr"],
            "--into is “fr”; the model translates into en: give one of these",
        ),
        (["--columns", "1"], "--columns means something with --document only"),
    ],
)
def test_refusals(model, tmp_path, capsys, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "a.json": FILES["a.json"],
        "a.exe": b"x",
        "a.pdf": b"x",
        "bad.json": b"{",
    }.items():
        (tmp_path / name).write_bytes(content)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert message in fail(capsys, "translate", model, *words)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_model_of_unknown_languages_is_refused(model, tmp_path, capsys):
    copied = tmp_path / "model"
    shutil.copytree(model, copied)
    facts = json.loads((copied / "dragoman.json").read_text())
    facts |= {"source_language": None, "digest": None}
    (copied / "dragoman.json").write_text(json.dumps(facts))
    (tmp_path / "a.json").write_bytes(FILES["a.json"])
    words = ["--document", tmp_path / "a.json", "--output", tmp_path / "b.json"]
    assert "does not say its languages" in fail(capsys, "translate", copied, *words)
