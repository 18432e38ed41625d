"""Where to compute, with the machines made up."""

import pytest
import torch

from dragoman.decoding import device
from dragoman.decoding.device import choose_device
from dragoman.errors import OptionError


@pytest.fixture
def pretend(monkeypatch):
    def there_is(*, cuda, mps):
        monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)

    return there_is


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, True, "cuda"), (True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_takes_the_fastest(pretend, cuda, mps, expected):
    pretend(cuda=cuda, mps=mps)
    assert choose_device("auto") == torch.device(expected)


def test_what_is_there_can_be_named(pretend):
    pretend(cuda=True, mps=True)
    assert [choose_device(name).type for name in ("cpu", "cuda", "mps")] == ["cpu", "cuda", "mps"]


def test_a_card_computes_attention_without_plans_for_every_shape(pretend):
    pretend(cuda=True, mps=False)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    try:
        torch.backends.cuda.enable_cudnn_sdp(enabled=True)
        choose_device("cpu")
        assert torch.backends.cuda.cudnn_sdp_enabled()
        choose_device("cuda")
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    finally:
        torch.backends.cuda.enable_cudnn_sdp(enabled=before)


@pytest.mark.parametrize("name", ["cuda", "mps"])
def test_what_is_not_there(pretend, name):
    pretend(cuda=False, mps=False)
    with pytest.raises(OptionError) as caught:
        choose_device(name)
    assert str(caught.value) == (
        f"device is “{name}”, but there is none here; give --device auto or cpu"
    )


def test_what_nobody_knows():
    with pytest.raises(OptionError) as caught:
        choose_device("gpu")
    assert str(caught.value) == "device is “gpu”; give auto, cpu, cuda or mps"


@pytest.mark.parametrize("name", ["nvidiactl", "kfd", "dxg"])
def test_drivers_leave_traces(monkeypatch, tmp_path, name):
    monkeypatch.setattr(device, "Path", lambda _, *names: tmp_path.joinpath(*names))
    monkeypatch.setattr("sys.platform", "linux")
    assert not device.may_have_accelerator()
    (tmp_path / name).touch()
    assert device.may_have_accelerator()


def test_other_systems_must_be_asked(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    assert device.may_have_accelerator()
