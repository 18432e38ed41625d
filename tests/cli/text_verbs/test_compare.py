"""The verb “compare” as people meet it."""

from tests.cli.command_line import fail

from dragoman.cli.command import main


def test_compare_speaks_plainly(capsys, texts, tmp_path):
    reference = (texts / "train.en").read_text().splitlines()
    (tmp_path / "bad").write_text("".join(f"{line[:-2]} x\n" for line in reference))
    (tmp_path / "good").write_text("".join(f"{line}\n" for line in reference))
    main(
        [
            "compare",
            *(str(each) for each in (texts / "train.en", tmp_path / "bad", tmp_path / "good")),
        ]
    )
    text = capsys.readouterr().out
    assert "good is better than" in text
    assert "p " in text
    assert "at least two" in fail(capsys, "compare", texts / "train.en", tmp_path / "bad")
