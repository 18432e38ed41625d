"""The verb “quantise” as people meet it."""

from tests.cli.command_line import fail

from dragoman.cli.command import main


def test_the_new_folder_is_smaller_and_translates(model, tmp_path, capsys):
    out = tmp_path / "int8"
    main(["quantise", str(model), str(out)])
    sizes = [(each / "model.safetensors").stat().st_size for each in (model, out)]
    assert sizes[1] < sizes[0]
    text = tmp_path / "text"
    text.write_text("Zahl 1\nZahl 2\n")
    main(["translate", str(out), str(text), "--max-extra-tokens", "2"])
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert "is there already" in fail(capsys, "quantise", model, out)
