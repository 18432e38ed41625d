"""Choose the device; PyTorch is imported only where one must be asked for."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import OptionError

if TYPE_CHECKING:
    import torch

# Device files of NVIDIA's and AMD's drivers, and the one of both in Windows' Linux.
_DEVICES = ("nvidiactl", "nvhost-gpu", "kfd", "dxg")


def may_have_accelerator() -> bool:
    """Say whether it is worth importing PyTorch to look for an accelerator."""
    return sys.platform != "linux" or any(Path("/dev", name).exists() for name in _DEVICES)


def choose_device(name: str) -> "torch.device":
    """Turn a name into a device, and set PyTorch up for it.

    Notes
    -----
    On an NVIDIA card cuDNN's attention is switched off for the whole process: it makes and keeps a
    plan for every new shape, which takes many milliseconds and some memory of the host, and padded
    batches and growing sentences have a new shape all the time.
    """
    import torch

    device = find_device(name)
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(enabled=False)
    return device


def find_device(name: str) -> "torch.device":
    """Turn a name into a device.

    Returns
    -------
    torch.device
        ``auto`` takes an NVIDIA card if there is one, else Apple's, else the CPU.
    """
    import torch

    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if name == "auto":
        name = next(each for each, is_there in there.items() if is_there)
    if name not in there:
        raise OptionError(f"device is “{name}”; give auto, cpu, cuda or mps")
    if not there[name]:
        raise OptionError(f"device is “{name}”, but there is none here; give --device auto or cpu")
    return torch.device(name)
