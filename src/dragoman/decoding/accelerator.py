"""Tell without PyTorch whether there may be an accelerator."""

import sys
from pathlib import Path

# What the drivers of NVIDIA and AMD make, and what stands for both in a Linux within Windows.
_DEVICES = ("nvidiactl", "nvhost-gpu", "kfd", "dxg")


def may_have_accelerator() -> bool:
    """Say whether it is worth importing PyTorch to look for an accelerator."""
    return sys.platform != "linux" or any(Path("/dev", name).exists() for name in _DEVICES)
