"""The verb “average” as people meet it."""

from tests.cli.command_line import fail

from dragoman.cli.command import main


def test_average_of_one_model_is_that_model(model, tmp_path, capsys):
    main(["average", str(model), str(model), "--out", str(tmp_path / "mean")])
    first, second = (each / "model.safetensors" for each in (model, tmp_path / "mean"))
    assert first.read_bytes() == second.read_bytes()
    assert "already holds something" in fail(capsys, "average", model, "--out", tmp_path / "mean")
    assert "--greedy needs" in fail(capsys, "average", model, "--greedy", "--out", tmp_path / "x")
