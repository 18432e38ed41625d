"""“dragoman models”: what is installed, what could be, and removal."""

import json

import pytest
from tests.catalogue.local_sources import marian_files, offer_opus, offer_registry, pack_zip
from tests.cli.command_line import fail

from dragoman.cli.command import main


@pytest.fixture
def installed(home, tmp_path):
    (tmp_path / "fr.zip").write_bytes(pack_zip(marian_files()))
    main(["install", str(tmp_path / "fr.zip"), "--name", "mine"])
    return home / "models" / "mine"


def said(capsys, *words) -> list[str]:
    capsys.readouterr()
    main(["models", *words])
    return capsys.readouterr().out.splitlines()


def test_installed_models_with_size_source_licence_and_scores(home, site, capsys):
    main(["pull", "fr-en", "--source", "registry", "--manifest", offer_registry(site)])
    head, row = said(capsys)
    assert head.split() == ["name", "languages", "MB", "source", "licence", "scores"]
    size = sum(each.stat().st_size for each in (home / "models" / "fr-en").iterdir()) / 1e6
    for part in ("fr-en", f"{size:.1f}", "registry tiny (Release)", "MPL-2.0",
                 "flores200-plus bleu 12.34, comet22 0.5"):  # fmt: skip
        assert part in row


def test_no_models(home, capsys):
    (line,) = said(capsys)
    assert line == f"no models in {home / 'models'}; “dragoman pull de-en” would bring one"


def test_a_damaged_model_is_listed_as_such(installed, capsys):
    (installed / "dragoman.json").write_text("{")
    assert "damaged: see “dragoman check mine”" in said(capsys)[1]


def test_what_a_stranger_wrote_of_an_origin_does_no_harm(installed, capsys):
    for plain in ([], {"source": "\x1b[31m", "scores": {"a": [1]}, "licence": {}}, "x"):
        (installed / "origin.json").write_text(json.dumps(plain))
        row = said(capsys)[1]
        assert row.startswith("mine")
        assert row.isprintable()


def test_what_a_card_says_does_no_harm(installed, capsys):
    (installed / "README.md").write_text("---\nlicense: \x1b[31mfree\n---\n")
    row = said(capsys)[1]
    assert "[31mfree" in row
    assert row.isprintable()


def test_removal(installed, capsys):
    assert said(capsys, "--remove", "mine") == []
    assert list(installed.parent.iterdir()) == []
    line = fail(capsys, "models", "--remove", "mine")
    assert "mine: is not installed; “dragoman models” lists what is" in line
    assert "is not installed" in fail(capsys, "models", "--remove", "../models")
    line = fail(capsys, "models", "--remove", "mine", "--available")
    assert "not allowed with argument --remove" in line


def test_removal_of_what_a_broken_download_left(home, capsys):
    left = home / "downloads" / "fr-en"
    left.mkdir(parents=True)
    (left / "model.bin.part").touch()
    assert said(capsys, "--remove", "fr-en") == []
    assert not left.exists()


def test_what_could_be_pulled_is_known_without_a_network(home, site, capsys):
    lines = said(capsys, "--available", "de")
    rows = [line.split()[:3] for line in lines if "MPL" in line]
    assert ["en-de", "mozilla", "tiny"] in rows
    assert ["de-en", "mozilla", "tiny"] in rows
    assert any(line.split()[:2] == ["de-en", "box"] and "cc-by-2.0" in line for line in lines)
    assert not any("fr" in line.split()[0] for line in lines)
    assert any(line.startswith("opus: never asked") for line in lines)
    main(["pull", "--source", "opus", "--manifest", offer_opus(site)])
    lines = said(capsys, "--available", "fr-en")
    (row,) = (line for line in lines if "opus-2021-02-18" in line)
    assert "CC-BY-4.0" in row
    assert "Tatoeba BLEU 52.1, chrF 0.677" in row
    assert any(line.startswith("opus: asked on 20") for line in lines)


def test_a_damaged_list_counts_as_none(home, capsys):
    (home / "lists").mkdir(parents=True)
    for contents in ("{", "[]", '{"offers": 3}', '{"offers": [1, {"scores": 3, "size": "x"}]}'):
        (home / "lists" / "opus.json").write_text(contents)
        assert said(capsys, "--available")
