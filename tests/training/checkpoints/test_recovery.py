"""Damaged checkpoints: found, passed over, kept until they are made again."""

import re
import shutil

import pytest
from tests.training.same_runs import assert_same_run, last_checkpoint

from dragoman.errors import FolderError
from dragoman.training.checkpoints.checkpoint import list_checkpoints
from dragoman.training.checkpoints.recovery import check_checkpoints
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.run import resume_run


@pytest.mark.parametrize(
    ("name", "is_gone"),
    [("model.safetensors", False), ("optimiser.safetensors", True), ("average.safetensors", False),
     ("progress.json", False), ("progress.json", True)],
)  # fmt: skip
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    tmp_path, whole, said, name, is_gone
):
    out = shutil.copytree(whole, tmp_path / "out")
    damaged = last_checkpoint(out) / name
    raw = damaged.read_bytes()
    damaged.unlink()
    if not is_gone:
        damaged.write_bytes(raw[: len(raw) // 2])
    resume_run(out, {}, said.append)
    first, second = said
    assert first.startswith(str(last_checkpoint(out)))
    assert first.endswith(
        "; going on from step-00000004 instead, step-00000008 is now damaged-step-00000008"
    )
    assert second == "going on from step 4"
    assert_same_run(whole, out)
    names = [path.name for path in sorted((out / "checkpoints").iterdir())]
    assert names == ["step-00000004", "step-00000008"]


def test_a_damaged_checkpoint_is_kept_until_the_run_has_passed_it(tmp_path, whole, said):
    out = shutil.copytree(whole, tmp_path / "out")
    (last_checkpoint(out) / "progress.json").unlink()
    for expected in (
        ["damaged-step-00000008"],
        ["damaged-step-00000008", "damaged2-step-00000008"],
    ):
        resume_run(out, {"training": {"max_steps": 6}}, said.append)
        names = [path.name for path in (out / "checkpoints").glob("damaged*")]
        assert sorted(names) == expected
        shutil.copytree(out / "checkpoints" / expected[0], out / "checkpoints" / "step-00000008")
    resume_run(out, {"training": {"max_steps": 8}}, said.append)
    assert not list((out / "checkpoints").glob("damaged*"))


def test_no_whole_checkpoint_is_said_and_none_is_moved(tmp_path, whole, said):
    out = shutil.copytree(whole, tmp_path / "out")
    before = list_checkpoints(out / "checkpoints")
    for each in before:
        (each / "progress.json").unlink()
    with pytest.raises(FolderError, match=r"step-00000008.*; no checkpoint before it is whole: st"):
        resume_run(out, {}, said.append)
    assert list_checkpoints(out / "checkpoints") == before


def test_a_foreign_checkpoint_is_passed_over(tmp_path, run, small, whole, said):
    out = shutil.copytree(whole, tmp_path / "out")
    small["model"]["model_dim"] = 8
    other = run(tmp_path / "other", small)
    said.clear()
    shutil.copy(last_checkpoint(other) / "model.safetensors", last_checkpoint(out))
    resume_run(out, {}, said.append)
    assert "holds another model" in said[0]
    assert_same_run(whole, out)


def test_divergence_falls_back_to_a_whole_checkpoint(tmp_path, run, small, monkeypatch, events):
    calls = []
    plain = TrainingStep.forward

    def spoilt(self, batch):
        calls.append(1)
        if len(calls) == 11:
            (tmp_path / "out" / "checkpoints" / "step-00000008" / "progress.json").write_text("{")
        return plain(self, batch) * (float("nan") if len(calls) == 11 else 1.0)

    monkeypatch.setattr(TrainingStep, "forward", spoilt)
    small["training"]["max_steps"] = 12
    out = run(tmp_path / "out", small)
    (divergence,) = events(out, "divergence")
    assert divergence["back_to"] == 4
    assert last_checkpoint(out).name == "step-00000012"


def test_a_damaged_checkpoint_is_left_out_of_the_average(tmp_path, small, run, said, capsys):
    small["training"] |= {"max_steps": 12, "average_checkpoints": 3}
    out = run(tmp_path / "out", small)
    capsys.readouterr()
    damaged = list_checkpoints(out / "checkpoints")[0] / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:99])
    resume_run(out, {}, said.append)
    errors = capsys.readouterr().err
    assert re.search(rf"{re.escape(str(damaged))}: .*; averaging without it\n", errors)
    assert "average of 2 of the last 3 checkpoints: BLEU" in errors
    assert "done: 12 updates done" in errors


def test_every_file_of_a_checkpoint_is_read(tmp_path, whole):
    folder = shutil.copytree(whole / "checkpoints", tmp_path / "checkpoints")
    assert check_checkpoints(folder) == []
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert len(files) == 8
    for path in files:
        raw = path.read_bytes()
        path.write_bytes(raw[: len(raw) // 2])
        (line,) = check_checkpoints(folder)
        assert line.startswith(f"{path}: ")
        path.unlink()
        expected = [] if path.name == "average.safetensors" else [line]
        assert [each.split(": ")[0] for each in check_checkpoints(folder)] == [
            each.split(": ")[0] for each in expected
        ]
        path.write_bytes(raw)
