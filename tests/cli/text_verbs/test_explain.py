"""The verb “explain”."""

from xml.etree import ElementTree

import pytest

from dragoman.cli.command import main


def fail(capsys, *words) -> str:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    return told.err


@pytest.mark.parametrize("suffix", ["html", "svg", "png"])
def test_explain_writes_every_kind_of_file(tiny_folder, tmp_path, capsys, suffix):
    path = tmp_path / f"why.{suffix}"
    words = ["explain", str(tiny_folder.path), "The old dog.", "--translation", "Le chien."]
    main([*words, "--masks", "20", "--out", str(path)])
    assert capsys.readouterr().out == f"The old dog.\nLe chien.\n{path}\n"
    content = path.read_bytes()
    if suffix == "svg":
        assert ElementTree.fromstring(content).tag.endswith("svg")
    elif suffix == "png":
        assert content.startswith(b"\x89PNG")
    else:
        assert b'"isExact":true' in content


def test_explain_refuses_what_it_cannot_do(tiny_folder, tmp_path, capsys):
    model, out = tiny_folder.path, tmp_path / "x.png"
    assert "x.pdf: a picture of “.pdf” is unknown; use .html, .svg or .png" in fail(
        capsys, "explain", model, "The dog.", "--out", tmp_path / "x.pdf"
    )
    assert "the sentence to explain is empty" in fail(
        capsys, "explain", model, " ", "--translation", "Le chien.", "--out", out
    )
    assert "--masks is 20: 12 source words need at least 26" in fail(
        capsys, "explain", model, "dog " * 12, "--translation", "Le.", "--masks", 20, "--out", out
    )
    assert not out.exists()
