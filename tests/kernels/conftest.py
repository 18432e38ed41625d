"""Where kernels run in tests: in Triton's interpreter on any machine, or on a real GPU."""

import os

import pytest
import torch

from dragoman.kernels import language

IS_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request, monkeypatch):
    """A device on which our kernels run."""
    if request.param == "cpu":
        if not (language.has_triton and IS_INTERPRETED):
            pytest.skip("Triton's interpreter is off")
        monkeypatch.setattr(language, "uses_kernels", lambda _: True)
        # The interpreter has no half precision and no fused product of its own.
    elif IS_INTERPRETED or not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    torch.manual_seed(3)
    return torch.device(request.param)


@pytest.fixture(params=["float32", "bfloat16"])
def precision(request, device):
    """The precisions that a device's kernels are tested in, with the error that is rounding."""
    if request.param == "bfloat16" and device.type == "cpu":
        pytest.skip("the interpreter computes bfloat16 as NumPy does: not at all")
    return {"float32": (torch.float32, 2e-6), "bfloat16": (torch.bfloat16, 8e-3)}[request.param]


@pytest.fixture
def close():
    """Compare by the norm of the difference, relative to the norm."""

    def check(found, expected, error):
        found, expected = found.double().cpu(), expected.double().cpu()
        distance = (found - expected).norm() / expected.norm().clamp(min=1e-12)
        assert distance <= error, distance.item()

    return check
