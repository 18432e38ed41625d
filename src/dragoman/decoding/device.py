"""Where to compute."""

import torch

from dragoman.errors import OptionError


def choose_device(name: str) -> torch.device:
    """Turn a user's word into a device.

    Parameters
    ----------
    name : str
        ``auto``, ``cpu``, ``cuda`` or ``mps``.

    Returns
    -------
    torch.device
        ``auto`` takes an NVIDIA card if there is one, else Apple's, else the CPU.
    """
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
