"""The verb “import”."""

import runpy
import sys
from pathlib import Path

import pytest
from tests.exchange.marian_writer import write_marian
from tests.exchange.test_foreign_model import EXPECTED, ZIP

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
    assert "folder: holds no model that can be imported; give a MarianMT folder" in (
        complaint_of(capsys, "import", tmp_path / "folder", out)
    )
    (tmp_path / "file.bin").write_text("")
    assert "file.bin: is no model that can be imported" in (
        complaint_of(capsys, "import", tmp_path / "file.bin", out)
    )
    (tmp_path / "folder" / "model.npz").write_text("")
    assert "model.npz" in complaint_of(capsys, "import", tmp_path / "folder", out)
    (tmp_path / "folder" / "config.json").write_text("{}")
    assert "--vocabulary is for models of Marian and CTranslate2" in (
        complaint_of(capsys, "import", tmp_path / "folder", out, "--vocabulary", "x.yml")
    )
    assert "dragoman.json is missing" in (
        complaint_of(capsys, "export", tmp_path / "folder", "--to", "ctranslate2", out)
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads its own size from /proc")
def test_hostile_files_get_one_line(tmp_path):
    """Sixty of the damages that `benchmarks/attacks/imports.py` does by the hundred."""
    script = Path(__file__).parents[3] / "benchmarks" / "attacks" / "imports.py"
    imports = runpy.run_path(str(script))
    models = imports["make_models"](tmp_path, write_marian)
    assert [imports["attempt"](model, tmp_path) for model in models] == [None, None]
    assert list(imports["attack"](models, tmp_path, 60, seed=3)) == []


def test_target_languages(tmp_path, capsys):
    """What is found in a zip of OPUS-MT is chosen with --into, in `translate` and `evaluate`."""
    main(["import", str(ZIP), str(tmp_path / "model")])
    capsys.readouterr()
    text = tmp_path / "text"
    text.write_text("\n".join(EXPECTED["texts"]) + "\n")
    found = {}
    for target in ("eng", "fr"):
        words = ["--into", target, "--beam-size", "1", "--no-search-again"]
        main(["translate", str(tmp_path / "model"), str(text), *words])
        found[target] = capsys.readouterr().out.splitlines()
    expected = [
        "".join(line.split(" ")).replace("▁", " ").strip() for line in EXPECTED["eng greedy"]
    ]
    assert found["eng"] == expected != found["fr"]
    (tmp_path / "reference").write_text("\n".join(found["fr"]) + "\n")
    files = ["--source", str(text), "--reference", str(tmp_path / "reference")]
    main(["evaluate", str(tmp_path / "model"), *files, *words, "--metrics", "bleu"])
    assert "BLEU 100" in capsys.readouterr().out
    assert "choose one with --into, or begin the text with its mark, as >>eng<<: eng, fra" in (
        complaint_of(capsys, "translate", tmp_path / "model", text)
    )
