"""What is written is what is read; what is damaged says what to do."""

import csv
import json

import pytest

from dragoman.errors import DataError
from dragoman.paper.report.result import Column, Experiment, Lines, Plot, Series, Table
from dragoman.paper.report.result_files import (
    Circumstances,
    describe_machine,
    list_versions,
    read_record,
    write_experiment,
)

EXPERIMENT = Experiment(
    title="Title <b>", claim="Claim & more", findings=("It “works”.",), seeds=(1, 2),
    tables=(
        Table(name="one", title="One", columns=(Column("a"), Column("b", ".1e")),
              rows=(("x", 2.5e-251), ("y", None), ("z", float("inf"))), notes=("a note",)),
    ),
    plots=(
        Plot(name="line", title="A line", panels=(
            Lines(title="", x_label="x", y_label="y",
                  series=(Series(name="s", x=[1, 2], y=[1, 2]),)),
        )),
    ),
)  # fmt: skip
RUN = Circumstances(
    command="dragoman paper try --size 3", options={"size": 3, "name": "off"}, seeds=(1, 2),
    machine="one core", date="2026-01-01T00:00:00+00:00", versions={"torch": "2"}, seconds=1.5,
)  # fmt: skip


def test_round_trip(tmp_path):
    paths = write_experiment(tmp_path / "new" / "folder", "try", EXPERIMENT, RUN)
    assert [path.name for path in paths] == ["try-line.png", "try-one.csv", "try.json"]
    assert all(path.exists() for path in paths)
    record = read_record(paths[-1])
    assert (record.name, record.title, record.claim) == ("try", "Title <b>", "Claim & more")
    assert record.findings == EXPERIMENT.findings
    assert record.circumstances == RUN
    (table,) = record.tables
    assert table.columns == EXPERIMENT.tables[0].columns
    assert table.rows == (("x", 2.5e-251), ("y", None), ("z", "inf"))
    assert table.notes == ("a note",)
    (picture,) = record.pictures
    assert picture.title == "A line"
    assert picture.content == paths[0].read_bytes()
    with paths[1].open(newline="") as file:
        assert list(csv.reader(file))[1] == ["x", "2.5e-251"]


def test_json_is_json(tmp_path):
    path = write_experiment(tmp_path, "try", EXPERIMENT, RUN)[-1]
    told = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert told["run"]["command"] == RUN.command
    assert told["tables"][0]["rows"][0] == ["x", 2.5e-251]


def test_missing_picture_is_named(tmp_path):
    picture, _, path = write_experiment(tmp_path, "try", EXPERIMENT, RUN)
    picture.unlink()
    with pytest.raises(DataError) as caught:
        read_record(path)
    assert str(caught.value) == (
        f"{picture}: not there, though try.json names it; run “dragoman paper try” again"
    )


@pytest.mark.parametrize("contents", ["{", "[]", "{}", '{"name": 3}', "null", "\ufeff"])
def test_damaged_file_says_what_to_do(tmp_path, contents):
    path = tmp_path / "try.json"
    path.write_text(contents, encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_record(path)
    assert str(caught.value) == (
        f"{path}: not what “dragoman paper” writes; remove it, or run “dragoman paper try” again"
    )


def test_machine_and_versions_are_told():
    assert "cores" in describe_machine()
    assert {"dragoman", "python", "torch", "numpy"} <= set(list_versions())
