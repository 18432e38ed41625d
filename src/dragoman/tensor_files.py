"""Writing safetensors files one tensor at a time, so that memory holds one and not all of them."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

# The names that the format has for types, in the order in which it stores tensors: wide ones first,
# so that each lies at a multiple of its width.
TYPES = {
    torch.int64: "I64", torch.float64: "F64", torch.float32: "F32", torch.int32: "I32",
    torch.bfloat16: "BF16", torch.float16: "F16", torch.int16: "I16", torch.int8: "I8",
    torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
ORDER = {dtype: place for place, dtype in enumerate(TYPES)}
ALIGNED = 8


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors, from whatever device they are on.

    Parameters
    ----------
    path : Path
        The file.
    tensors : Mapping[str, Tensor]
        By name.

    Notes
    -----
    The file is, byte for byte, what the safetensors library writes. It wants all tensors in the
    host's memory and writes from a copy; a checkpoint of the paper's big model is 2.5 GB.
    """
    names = sorted(tensors, key=lambda name: (ORDER[tensors[name].dtype], name))
    header, end = {}, 0
    for name in names:
        each = tensors[name]
        start, end = end, end + each.numel() * each.element_size()
        header[name] = {
            "dtype": TYPES[each.dtype],
            "shape": list(each.shape),
            "data_offsets": [start, end],
        }
    said = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    said += b" " * (-len(said) % ALIGNED)
    with path.open("wb") as file:
        file.write(len(said).to_bytes(8, "little"))
        file.write(said)
        for name in names:
            flat = tensors[name].detach().cpu().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().data)
