"""The verb “evaluate” as people meet it."""

import json

from tests.cli.command_line import fail

from dragoman.cli.command import main


def test_unknown_metric_is_noticed_before_translating(model, texts, capsys):
    line = fail(capsys, "evaluate", model, "--source", texts / "train.de", "--reference",
                texts / "train.en", "--metrics", "blue")  # fmt: skip
    assert "did you mean “bleu”?" in line


def test_evaluate_prints_signed_scores(model, texts, capsys, tmp_path):
    words = ["evaluate", str(model), "--source", str(texts / "train.de"), "--reference",
             str(texts / "train.en"), "--output", str(tmp_path / "out.en")]  # fmt: skip
    main([*words, "--metrics", "bleu", "chrf"])
    text = capsys.readouterr().out
    assert "nrefs:1|bs:1000|seed:12345" in text
    assert "95 % interval" in text
    assert "perplexity" in text
    assert len((tmp_path / "out.en").read_text().splitlines()) == 200
    main([*words, "--json", "--metrics", "bleu"])
    assert json.loads(capsys.readouterr().out)["scores"][0]["name"] == "BLEU"


def test_evaluate_never_overwrites_its_inputs(model, texts, capsys):
    before = (texts / "train.de").read_bytes()
    line = fail(capsys, "evaluate", model, "--source", texts / "train.de", "--reference",
                texts / "train.en", "--output", texts / "train.de")  # fmt: skip
    assert "is also an input" in line
    assert (texts / "train.de").read_bytes() == before


def test_evaluate_refuses_unequal_files(model, texts, capsys, tmp_path):
    (tmp_path / "short").write_text("one\n")
    line = fail(capsys, "evaluate", model, "--source", texts / "train.de", "--reference",
                tmp_path / "short")  # fmt: skip
    assert "200 lines" in line
    assert "1 lines" in line
