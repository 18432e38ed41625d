"""The pages of measurements are made of the results, and nothing in them is typed in by hand."""

import json

import pytest

from benchmarks import make_readme


def test_pages_are_made_of_the_results():
    for name, text in make_readme.make_pages().items():
        there = (make_readme.FOLDER / name).read_text(encoding="utf-8")
        assert text == there, f"{name}: run make_readme.py"


def test_about_twenty_figures_lead():
    assert 18 <= sum(map(len, make_readme.SECTIONS.values())) <= 24


@pytest.mark.parametrize(
    ("kind", "value", "beside", "said"),
    [
        ("as fast", 30, 10, "3 × as fast"),
        ("as much", 10, 40, "0.25 × as much"),
        ("points", 40.5, 42, "-1.5 points"),
    ],
)
def test_a_figure_is_related_to_its_rival(tmp_path, monkeypatch, kind, value, beside, said):
    headline = make_readme.Headline("Speed", "run", "own", "lines/s", "other", "theirs", kind)
    results = tmp_path / "results"
    results.mkdir()
    for date, factor in (("2026-01-01", 7), ("2026-01-02", 1)):  # the newest counts
        figures = {"own": value * factor, "theirs": beside}
        result = {"name": "run", "date": date, "machine": "2 cores, torch 2", "figures": figures}
        (results / f"{date}-run.json").write_text(json.dumps(result))
    monkeypatch.setattr(make_readme, "FOLDER", tmp_path)
    monkeypatch.setattr(make_readme, "SECTIONS", {"All": (headline,)})
    page = make_readme.make_pages()["README.md"]
    assert f"| Speed | {value} lines/s | {beside} lines/s, other | {said} | 2026-01-02 |" in page
    assert "Machine: 2 cores.\n" in page


def test_a_rival_of_another_run_is_refused(tmp_path, monkeypatch):
    headline = make_readme.Headline("Speed", "run", "own", "lines/s", "other", "theirs")
    (tmp_path / "results").mkdir()
    for date, figure in (("2026-01-01", "own"), ("2026-01-02", "theirs")):
        result = {"name": "run", "date": date, "machine": "any", "figures": {figure: 1}}
        (tmp_path / "results" / f"{date}-run.json").write_text(json.dumps(result))
    monkeypatch.setattr(make_readme, "FOLDER", tmp_path)
    monkeypatch.setattr(make_readme, "SECTIONS", {"All": (headline,)})
    with pytest.raises(ValueError, match="theirs is of another run"):
        make_readme.make_pages()
