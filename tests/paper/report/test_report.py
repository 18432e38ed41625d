"""The page: complete, self-contained, escaped."""

import base64
import re
from html.parser import HTMLParser

import pytest

from dragoman.errors import DataError
from dragoman.paper.report.plots import draw
from dragoman.paper.report.report import read_records, write_report
from dragoman.paper.report.result import Column, Experiment, Lines, Plot, Series, Table
from dragoman.paper.report.result_files import Circumstances, Picture, Record, write_experiment

TABLE = Table(
    name="t", title="A table", columns=(Column("<name>"), Column("cost", ".1e")),
    rows=(("a & b", 2.3e19), ("c", None)), notes=("a <note>",),
)  # fmt: skip
PLOT = Plot(
    name="p", title="A “plot”",
    panels=(Lines(title="", x_label="x", y_label="y", series=(Series(name="s", x=[1], y=[1]),)),),
)  # fmt: skip
RUN = Circumstances(
    command="dragoman paper try --name 'a b'", options={"name": "a b", "on": True}, seeds=(1, 2),
    machine="two cores", date="2026-01-01", versions={"torch": "2"}, seconds=12.34,
)  # fmt: skip


class Outline(HTMLParser):
    """Collects what a page holds, and checks that its elements are closed."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.pictures, self.linked, self.places = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag not in ("meta", "img", "link"):
            self.open.append(tag)
        if tag == "img":
            self.pictures.append(found)
        if "href" in found:
            self.linked.append(found["href"])
        if "id" in found:
            self.places.append(found["id"])
        assert tag != "script"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def record():
    picture = Picture(title="A “plot”", content=draw(PLOT))
    return Record(
        name="try", title="Title <i>", claim="Claim", findings=("Found 1 < 2.",), tables=(TABLE,),
        pictures=(picture,), circumstances=RUN,
    )  # fmt: skip


@pytest.fixture(scope="module")
def outline(record):
    found = Outline()
    found.feed(write_report([record], {"other": "dragoman paper other --out 'my dir'"}))
    assert found.open == []
    return found


def test_everything_is_told(outline):
    text = " ".join(outline.text)
    for words in (
        "Title <i>", "Claim", "Found 1 < 2.", "A table", "<name>", "a & b", "2.3·10¹⁹", "a <note>",
        RUN.command, "name a b, on true", "1, 2", "two cores", "torch 2", "2026-01-01", "12.3 s",
        "Not run yet", "dragoman paper other --out 'my dir'",
    ):  # fmt: skip
        assert words in text, words


def test_pictures_are_within_the_page(record, outline):
    (picture,) = outline.pictures
    prefix = "data:image/png;base64,"
    assert picture["src"].startswith(prefix)
    assert base64.b64decode(picture["src"][len(prefix) :]) == record.pictures[0].content
    assert picture["alt"] == "A “plot”"
    assert 300 < int(picture["width"]) < 1200


def test_nothing_comes_from_outside(record, outline):
    page = write_report([record], {})
    assert not re.search(r"https?://|url\(|@import|<script|<link", page)
    assert "default-src 'none'" in page
    assert outline.linked == ["#try", "#missing"]
    assert set(outline.places) == {"try", "missing"}
    assert "prefers-color-scheme: dark" in page


def test_a_complete_page_says_so(record):
    page = write_report([record], {})
    assert "Every experiment is on this page." in page
    assert "Not run yet" not in page


def test_long_tables_are_folded(record):
    long = Table(name="l", title="L", columns=(Column("n"),), rows=tuple((n,) for n in range(31)))
    page = write_report([Record(**{**vars(record), "tables": (long,)})], {})
    assert "<summary>31 rows</summary>" in page


def test_records_come_in_the_order_of_experiments(tmp_path):
    experiment = Experiment(title="", claim="", findings=(), tables=())
    for name in ("b", "a"):
        write_experiment(tmp_path, name, experiment, RUN)
    (tmp_path / "stranger.json").write_text("{}")
    assert [each.name for each in read_records(tmp_path, ["a", "c", "b"])] == ["a", "b"]


def test_an_empty_folder_says_what_to_run(tmp_path):
    with pytest.raises(DataError) as caught:
        read_records(tmp_path, ["a", "b"])
    assert str(caught.value) == (
        f"{tmp_path}: no results there; run an experiment first, such as “dragoman paper a --out "
        f"{tmp_path}”"
    )
