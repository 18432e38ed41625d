"""Whether there may be an accelerator, found out without PyTorch."""

import sys
from pathlib import Path

# What the drivers of NVIDIA and AMD make, and what stands for both in a Linux within Windows.
_DEVICES = ("nvidiactl", "nvhost-gpu", "kfd", "dxg")


def may_have_accelerator() -> bool:
    """Say whether it is worth asking PyTorch for an accelerator, which takes seconds."""
    return sys.platform != "linux" or any(Path("/dev", name).exists() for name in _DEVICES)
