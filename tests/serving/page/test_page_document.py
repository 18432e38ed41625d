"""The page as one document: small, whole, and safe whatever is put into it."""

import gzip
import json
import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.serving.page import page_document
from dragoman.serving.page.page_document import (
    ASSETS,
    MODULES,
    join_module,
    read_asset,
    write_document,
    write_shell,
)

LARGEST = 250_000
IMPORT = re.compile(r"^import (.*?) from \"(.*?)\";$", re.MULTILINE | re.DOTALL)


class Page(HTMLParser):
    """Reads a page as a browser would: where elements begin and end, and their text."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.texts: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.texts.append((tag, ""))
        self.attributes.extend((tag, *each) for each in attrs)

    def handle_data(self, data):
        if self.texts:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    def find(self, tag: str) -> list[str]:
        return [text for name, text in self.texts if name == tag]


def code_of(name: str) -> str:
    return read_asset(name).content.decode()


def test_page_is_small():
    """Half of what it may be would be better still."""
    assert sum(len(gzip.compress(read_asset(name).content)) for name in ASSETS) < LARGEST
    assert all(gzip.decompress(read_asset(each).compressed) == read_asset(each).content
               for each in ASSETS)  # fmt: skip


def test_every_file_of_the_page_is_served_and_loaded_early():
    folder = page_document.files("dragoman.serving.page") / "static"
    there = {each.name for each in folder.iterdir()}
    assert there == set(ASSETS)
    index = code_of("index.html")
    for name in MODULES:
        assert f"page/{name}" in index


@pytest.mark.parametrize("name", MODULES)
def test_modules_can_be_put_after_one_another(name):
    code = code_of(name)
    before = MODULES[: MODULES.index(name)]
    imports = IMPORT.findall(code)
    assert len(imports) == len(re.findall(r"^import\b", code, re.MULTILINE))
    for names, path in imports:
        assert re.fullmatch(r"\{ (\w+(, )?)+ \}", names), f"{name} renames what it imports"
        assert path.removeprefix("./") in before, f"{name} uses {path}, which comes after it"
        exported = re.findall(
            r"^export (?:async )?(?:function|class|const) (\w+)", code_of(path[2:]), re.MULTILINE
        )
        assert set(names.strip("{} ").split(", ")) <= set(exported)
    joined = join_module(name)
    assert not re.search(r"^(import|export)\b", joined, re.MULTILINE)


def test_nothing_asks_for_another_host():
    for name in ASSETS:
        code = code_of(name).replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?:|//[a-z]|@import|url\(", code), name


def test_nothing_needs_what_the_policy_forbids():
    index = code_of("index.html")
    assert not re.search(r"\son\w+=|\sstyle=|<script>|<style", index)
    for name in MODULES:
        assert not re.search(r"\beval\(|new Function|innerHTML|insertAdjacentHTML", code_of(name))


def test_shell_has_everything_in_it():
    page = Page(write_shell())
    names = {name for _, name, _ in page.attributes}
    assert "src" not in names
    links = [value for tag, name, value in page.attributes if name == "href" and tag == "link"]
    assert all(value.startswith("data:") for value in links)
    assert any("default-src 'none'" in (value or "") for _, _, value in page.attributes)
    data, code = page.find("script")
    assert data.strip() == "@SNAPSHOT@"
    assert all(f"const module_{name[:-3]} = " in code for name in MODULES)
    assert "</script" not in code.lower()


@example(text="@SNAPSHOT@")
@given(text=st.text(st.characters(exclude_categories=())))
def test_no_text_breaks_out_of_the_document(text):
    snapshot = {"source": text + "</script><script>alert(1)</script><!-- @SNAPSHOT@ $& $1"}
    title = text.encode("utf-8", "replace").decode() + "</title>"
    document = write_document(snapshot, title)
    document.encode()
    page = Page(document)
    data, code = page.find("script")
    assert json.loads(data) == snapshot
    assert code == Page(write_shell()).find("script")[1]
    assert len(page.find("title")) == 1
