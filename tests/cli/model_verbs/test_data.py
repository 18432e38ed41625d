"""The verb “data” as people meet it."""

import pytest
from tests.cli.command_line import fail

from dragoman.cli.command import main


def test_builtin_corpus(tmp_path, capsys):
    main(["data", "builtin", "--sentences", "50", "--held-out", "5", "--out", str(tmp_path / "b")])
    assert len((tmp_path / "b" / "train.fr").read_text().splitlines()) == 50
    assert "which kind?" in fail(capsys, "data")


def test_builtin_tasks(tmp_path, capsys):
    flags = ["--sentences", "30", "--held-out", "4", "--max-words", "5"]
    main(["data", "builtin", "--pair", "reversal", *flags, "--out", str(tmp_path / "r")])
    assert f"{tmp_path / 'r' / 'train.source'}: 30 lines" in capsys.readouterr().out
    source, target = (
        (tmp_path / "r" / f"train.{side}").read_text().splitlines() for side in ("source", "target")
    )
    assert [line.split()[::-1] for line in source] == [line.split() for line in target]
    assert max(len(line.split()) for line in source) == 5


def test_builtin_refuses_a_length_for_sentences(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["data", "builtin", "--max-words", "5", "--out", str(tmp_path / "r")])
    assert stopped.value.code == 2
    assert "max_words: 5 means nothing for “fr-en”" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
