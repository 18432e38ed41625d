"""The verbs “export” and “import”, from the command line."""

import runpy
import sys
from pathlib import Path

import pytest
from tests.exchange.marian_writer import write_marian

from dragoman.cli.command import main
from dragoman.cli.exchange import FORMATS, QUANTISATIONS


def complaint_of(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_every_quantisation_is_ctranslate2s():
    from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES

    assert set(QUANTISATIONS) == set(ACCEPTED_MODEL_TYPES)


@pytest.mark.parametrize("to", FORMATS)
def test_export(trained, make_model, vocabularies, tmp_path, capsys, to):
    out = tmp_path / "out.argosmodel"
    if to == "marian":
        trained = make_model(vocabularies, positions="marian")
    extra = [] if to in ("huggingface", "marian") else ["--quantisation", "int8"]
    main(["export", str(trained), "--to", to, str(out), *extra])
    assert capsys.readouterr().out == f"{out}\n"
    assert out.is_file() == (to == "argos")


def test_there_and_back(trained, tmp_path, capsys, own):
    main(["export", str(trained), "--to", "huggingface", str(tmp_path / "theirs")])
    main(["import", str(tmp_path / "theirs"), str(tmp_path / "ours"), "--target-language", "it"])
    assert own(tmp_path / "ours").greedy() == own(trained).greedy()
    facts = own(tmp_path / "ours").folder.facts
    assert (facts.source_language, facts.target_language) == ("en", "it")


@pytest.mark.parametrize(
    ("to", "flags"),
    [
        ("huggingface", ["--quantisation", "int8"]),
        ("huggingface", ["--source-language", "de"]),
        ("ctranslate2", ["--package-version", "2.0"]),
    ],
)
def test_flags_that_mean_nothing(trained, tmp_path, capsys, to, flags):
    message = complaint_of(capsys, "export", trained, "--to", to, tmp_path / "out", *flags)
    assert f"{flags[0]} means nothing with --to {to}; leave it out" in message


def test_places_without_a_model(trained, tmp_path, capsys):
    out = tmp_path / "out"
    assert "is not there" in complaint_of(capsys, "import", tmp_path / "none", out)
    (tmp_path / "folder").mkdir()
    assert "has neither config.json nor a .npz file" in (
        complaint_of(capsys, "import", tmp_path / "folder", out)
    )
    (tmp_path / "file.bin").write_text("")
    assert "is neither a folder nor a .npz file" in (
        complaint_of(capsys, "import", tmp_path / "file.bin", out)
    )
    (tmp_path / "folder" / "model.npz").write_text("")
    assert "model.npz" in complaint_of(capsys, "import", tmp_path / "folder", out)
    (tmp_path / "folder" / "config.json").write_text("{}")
    assert "--vocabulary means nothing for a MarianMT folder" in (
        complaint_of(capsys, "import", tmp_path / "folder", out, "--vocabulary", "x.yml")
    )
    assert "dragoman.json is missing" in (
        complaint_of(capsys, "export", tmp_path / "folder", "--to", "ctranslate2", out)
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads its own size from /proc")
def test_hostile_files_get_one_line(tmp_path):
    """Sixty of the damages that `benchmarks/attacks/imports.py` does by the hundred."""
    script = Path(__file__).parents[2] / "benchmarks" / "attacks" / "imports.py"
    imports = runpy.run_path(str(script))
    models = imports["make_models"](tmp_path, write_marian)
    assert [imports["attempt"](model, tmp_path) for model in models] == [None, None]
    assert list(imports["attack"](models, tmp_path, 60, seed=3)) == []
