"""The verb “shortlist” as people meet it."""

import shutil

from tests.cli.command_line import fail

from dragoman.cli.command import main


def test_a_list_is_learnt_and_used(model, texts, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    files = ["--source", str(texts / "train.de"), "--target", str(texts / "train.en")]
    main(["shortlist", str(copy), *files])
    assert "of the subwords of 10 other translations" in capsys.readouterr().err
    text = tmp_path / "text"
    text.write_text("Zahl 1\n")
    main(["translate", str(copy), str(text), "--short-list", "--max-extra-tokens", "2"])
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_nothing_to_learn_from(model, tmp_path, capsys):
    (tmp_path / "empty").write_text("\n")
    files = ["--source", tmp_path / "empty", "--target", tmp_path / "empty"]
    assert "have no words to learn" in fail(capsys, "shortlist", model, *files)
