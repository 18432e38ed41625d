"""The verb “look” as people meet it."""

from dataclasses import replace

import pytest
from tests.cli.command_line import fail

from dragoman.cli.command import main
from dragoman.models.build import build_model
from dragoman.models.recurrent.options import Seq2seqOptions
from dragoman.options import to_plain
from dragoman.weights import vocabulary_of, write_model


@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
def test_look_draws(model, tmp_path, suffix, capsys):
    path = tmp_path / f"picture.{suffix}"
    main(["look", str(model), "Zahl 1", "--out", str(path)])
    assert path.stat().st_size > 1000


def test_look_shows_gradients_of_any_model(model, tmp_path, capsys):
    path = tmp_path / "picture.svg"
    main(["look", str(model), "Zahl 1", "--kind", "gradient", "--out", str(path)])
    assert path.exists()
    assert capsys.readouterr().err == ""


def test_look_says_that_there_is_no_attention(tiny_folder, vocabularies, tmp_path, capsys):
    shape = Seq2seqOptions(num_layers=1, model_dim=8)
    folder = replace(tiny_folder.folder, options=shape, config={"model": to_plain(shape)})
    write_model(tmp_path / "plain", folder, build_model(shape, vocabulary_of(vocabularies)))
    words = ["look", str(tmp_path / "plain"), "The dog.", "--translation", "Le chien."]
    main([*words, "--out", str(tmp_path / "picture.html")])
    told = capsys.readouterr()
    assert told.err == "this model has no attention; shown is gradient × input instead\n"
    assert told.out == f"The dog.\nLe chien.\n{tmp_path / 'picture.html'}\n"


def test_look_refuses_what_is_not_there(model, tmp_path, capsys):
    out = ("--out", tmp_path / "x.png")
    assert "--layer must be from 1 to 1" in fail(capsys, "look", model, "Zahl", *out, "--layer", 2)
    assert "--head is 3: must be from 1 to 2" in fail(
        capsys, "look", model, "Zahl", *out, "--head", 3
    )
    assert "--kind is “croos”" in fail(capsys, "look", model, "Zahl", *out, "--kind", "croos")
    assert "empty" in fail(capsys, "look", model, " ", *out)
