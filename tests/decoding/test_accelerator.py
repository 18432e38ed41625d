"""Whether there may be an accelerator."""

import pytest

from dragoman.decoding import accelerator


@pytest.mark.parametrize("name", ["nvidiactl", "kfd", "dxg"])
def test_drivers_leave_traces(monkeypatch, tmp_path, name):
    monkeypatch.setattr(accelerator, "Path", lambda _, *names: tmp_path.joinpath(*names))
    monkeypatch.setattr("sys.platform", "linux")
    assert not accelerator.may_have_accelerator()
    (tmp_path / name).touch()
    assert accelerator.may_have_accelerator()


def test_other_systems_must_be_asked(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    assert accelerator.may_have_accelerator()
