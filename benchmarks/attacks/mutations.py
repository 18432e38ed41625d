"""Damage of every kind that a file of a model folder can take, drawn by a seed."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

NUMBERS = (
    "0", "-1", "1", "2", "3", "7", "64", "1000000", "10000000", "2147483647", "2147483648",
    "9223372036854775807", "18446744073709551616", "1" * 400, "1e308", "-1e308", "1e999", "nan",
    "inf", "-inf", "0.5", "true", "false", "null", '""', '"x"', "[]", "{}", "[1, 2]",
)  # fmt: skip
TYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL", "F8_E4M3", "U64", "")
ENDLESS_BYTES = 1 << 42


def mutate_bytes(raw: bytes, chosen: random.Random) -> bytes:
    """Flip, overwrite, cut, repeat or insert bytes."""
    place = chosen.randrange(len(raw) + 1)
    end = min(len(raw), place + chosen.choice((1, 4, 64, 4096)))
    some = chosen.randbytes(end - place)
    kind = chosen.randrange(7)
    if kind == 0:
        flipped = bytearray(raw)
        for _ in range(chosen.choice((1, 1, 1, 4))):
            flipped[chosen.randrange(len(raw))] ^= 1 << chosen.randrange(8)
        return bytes(flipped)
    return (
        raw[:place] + some + raw[end:],
        raw[:place],
        raw[:place] + raw[end:],
        raw[:place] + raw[place:end] + raw[place:],
        raw[:place] + some + raw[place:],
        raw[:place] + bytes(end - place) + raw[end:],
    )[kind - 1]


def mutate_number(raw: bytes, chosen: random.Random) -> bytes:
    """Put something extreme where a text has a number, a truth or a string."""
    values = list(re.finditer(rb'(?<=[:=\[,] )(-?[\d.]+|true|false|"[^"\n]*")', raw))
    if not values:
        return mutate_bytes(raw, chosen)
    found = chosen.choice(values)
    return raw[: found.start()] + chosen.choice(NUMBERS).encode() + raw[found.end() :]


def mutate_text(raw: bytes, chosen: random.Random) -> bytes:
    """Drop or repeat lines, or nest lists deeply."""
    lines = raw.split(b"\n")
    place = chosen.randrange(len(lines))
    depth = chosen.choice((100, 2000, 50_000))
    return chosen.choice(
        (
            b"\n".join(lines[:place] + lines[place + 1 :]),
            b"\n".join([*lines[:place], lines[place], *lines[place:]]),
            b"a = " + b"[" * depth,
            b"[" * depth,
            b'{"a":' * depth,
            b"\n".join([*lines[:place], b"a.a" * depth + b" = 1", *lines[place:]]),
        )
    )


def mutate_header(raw: bytes, chosen: random.Random) -> bytes:
    """Say something else of a tensor in the header of a safetensors file."""
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    name = chosen.choice([name for name in header if name != "__metadata__"])
    entry = header[name]
    extreme = chosen.choice((0, 1, -1, 3, 10**7, 2**31, 2**63, 10**30))
    kind = chosen.randrange(7)
    if kind == 0:
        entry["dtype"] = chosen.choice(TYPES)
    elif kind == 1 and entry["shape"]:
        entry["shape"][chosen.randrange(len(entry["shape"]))] = extreme
    elif kind == 2:
        entry["shape"] = list(reversed(entry["shape"]))
    elif kind == 3:
        entry["data_offsets"][chosen.randrange(2)] = extreme
    elif kind == 4:
        header[f"{name}.more"] = header.pop(name)
    elif kind == 5:
        del header[name]
    else:
        other = chosen.choice([each for each in header if each != "__metadata__"])
        header[name], header[other] = header[other], entry
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


def mutate_numbers_of_tensors(raw: bytes, chosen: random.Random) -> bytes:
    """Put NaN, infinities, huge and subnormal numbers into the data."""
    length = 8 + int.from_bytes(raw[:8], "little")
    place = chosen.randrange(length, len(raw) - 4) & ~3
    number = chosen.choice((b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\x7f\x7f", b"\x01\0\0\0"))
    return raw[:place] + number * chosen.choice((1, 1, 16)) + raw[place + 4 :]


def replace_file(path: Path, chosen: random.Random) -> None:
    """Put something that is no ordinary file, or has no end, in a file's place."""
    path.unlink()
    kind = chosen.randrange(6)
    if kind == 0:
        os.mkfifo(path)
    elif kind == 1:
        path.mkdir()
    elif kind == 2:
        path.symlink_to("/dev/zero")
    elif kind == 3:
        path.symlink_to("/nowhere/at/all")
    elif kind == 4:
        with path.open("wb") as file:
            file.truncate(ENDLESS_BYTES)


def strip_digests(folder: Path) -> None:
    """Remove all digests from a model folder, as somebody would who made its contents up."""
    facts, config = folder / "dragoman.json", folder / "config.toml"
    plain = json.loads(facts.read_text(encoding="utf-8"))
    plain = {name: each for name, each in plain.items() if name not in ("digest", "digests")}
    facts.write_text(json.dumps(plain, indent=1), encoding="utf-8")
    lines = config.read_text(encoding="utf-8").splitlines(keepends=True)
    config.write_text("".join(each for each in lines if each[0] != "#"), encoding="utf-8")
    for path in folder.glob("*.safetensors"):
        raw = path.read_bytes()
        length = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + length])
        header.pop("__metadata__", None)
        text = json.dumps(header).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])


def mutate_folder(folder: Path, others: list[Path], chosen: random.Random) -> str:
    """Damage one file of a model folder.

    Parameters
    ----------
    folder : Path
        The folder, a copy.
    others : list[Path]
        Other models, whose files may be put into it.
    chosen : random.Random
        What decides.

    Returns
    -------
    str
        What was done, for people.
    """
    has_digests = chosen.random() < 0.3
    if not has_digests:
        strip_digests(folder)
    path = chosen.choice(sorted(each for each in folder.iterdir() if each.name != "README.md"))
    is_text = path.suffix in (".json", ".toml")
    changes: list[Callable[[bytes, random.Random], bytes]] = [mutate_bytes]
    if is_text:
        changes += [mutate_number, mutate_number, mutate_number, mutate_text]
    elif path.suffix == ".safetensors":
        changes += [mutate_header, mutate_header, mutate_numbers_of_tensors]
    if chosen.random() < 0.1:
        replace_file(path, chosen)
        done = "replaced"
    elif chosen.random() < 0.15:
        other = chosen.choice(others) / path.name
        if other.exists():
            shutil.copy(other, path)
        done = "taken from another model"
    else:
        change = chosen.choice(changes)
        path.write_bytes(change(path.read_bytes(), chosen))
        done = change.__name__
    return f"{path.name}: {done}{', digests kept' if has_digests else ''}"
