"""The verb “import”."""

import runpy
import sys
from pathlib import Path

import pytest
from tests.exchange.marian_writer import write_marian

from dragoman.cli.command import main


def complaint_of(capsys, *words):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    assert caught.value.code == 2
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    return message


def test_there_and_back(trained, tmp_path, capsys, own):
    main(["export", str(trained), "--to", "huggingface", str(tmp_path / "theirs")])
    main(["import", str(tmp_path / "theirs"), str(tmp_path / "ours"), "--target-language", "it"])
    assert own(tmp_path / "ours").greedy() == own(trained).greedy()
    facts = own(tmp_path / "ours").folder.facts
    assert (facts.source_language, facts.target_language) == ("en", "it")


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
