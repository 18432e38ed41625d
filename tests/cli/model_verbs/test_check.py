"""The verb “check” as people meet it."""

import shutil

import pytest
from tests.decoding.made_calibration import copy_calibrated

from dragoman.cli.command import main


def test_a_whole_folder_is_well(model, capsys):
    main(["check", str(model)])
    assert capsys.readouterr().out == f"{model}: all is well\n"


def test_damage_is_named(model, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(SystemExit) as stop:
        main(["check", str(copy)])
    told = capsys.readouterr()
    assert stop.value.code == 2
    assert told.out.startswith(str(weights))
    assert "broken, see above; get them again" in told.err


def test_a_damaged_calibration_is_named(model, tmp_path, capsys):
    copy = copy_calibrated(model, tmp_path / "copy")
    main(["check", str(copy)])
    assert capsys.readouterr().out == f"{copy}: all is well\n"
    (copy / "confidence.json").write_text("{}")
    with pytest.raises(SystemExit):
        main(["check", str(copy)])
    assert capsys.readouterr().out.startswith(f"{copy}/confidence.json: damaged")
