"""Damage the files of other tools' models, and see whether “dragoman import” says so in one line.

$ python benchmarks/attacks/imports.py --damages 500
"""

import argparse
import io
import json
import os
import random
import runpy
import shutil
import signal
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman.cli.command import main as run_command
from dragoman.exchange.huggingface import export_huggingface
from dragoman.folder import Facts, ModelFolder, read_folder
from dragoman.models.build import build_model
from dragoman.models.options import TransformerOptions
from dragoman.options import to_plain
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.text.vocabulary import Vocabularies
from dragoman.weights import vocabulary_of, write_model

ROOT = Path(__file__).parents[2]
MOST_SECONDS = 20
MOST_BYTES = 1 << 30
NUMBERS: tuple[Any, ...] = (
    -1, 0, 1, 3, 10**7, 2**31, 2**63, 10**30, 0.5, -1e308, float("nan"), float("inf"),
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    *NUMBERS, None, True, False, "", "x" * 100_000, "\x1b[31m\n\0", [], {}, [[[]]], "off", "\ud800",
)  # fmt: skip
KINDS = ("<f2", "<f8", ">f4", "<i4", "<u8", "<c8", "|b1", "<U3", "|V4", "<M8[s]")
Damage = Callable[[Path, random.Random], None]


def flip(path: Path, draw: random.Random) -> None:
    """Flip a few bits."""
    contents = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 8)):
        contents[draw.randrange(len(contents))] ^= 1 << draw.randrange(8)
    path.write_bytes(contents)


def flip_early(path: Path, draw: random.Random) -> None:
    """Flip a bit where headers are."""
    contents = bytearray(path.read_bytes())
    contents[draw.randrange(min(400, len(contents)))] ^= 1 << draw.randrange(8)
    path.write_bytes(contents)


def cut(path: Path, draw: random.Random) -> None:
    """Cut the end off."""
    os.truncate(path, draw.randrange(path.stat().st_size))


def fill(path: Path, draw: random.Random) -> None:
    """Put noise into the middle, over what is there or before it."""
    contents = path.read_bytes()
    start, noise = draw.randrange(len(contents)), draw.randbytes(draw.randint(1, 300))
    rest = contents[start + draw.choice((0, len(noise))) :]
    path.write_bytes(contents[:start] + noise + rest)


def repeat(path: Path, draw: random.Random) -> None:
    """Write a part twice."""
    contents = path.read_bytes()
    start, end = sorted(draw.randrange(len(contents)) for _ in range(2))
    path.write_bytes(contents[:end] + contents[start:])


def nest(path: Path, draw: random.Random) -> None:
    """Put lists into lists."""
    path.write_bytes(draw.choice((b"[", b'{"a":', b"- ", b"[[]", b"? ")) * draw.choice((9, 50_000)))


def stretch(path: Path, draw: random.Random) -> None:
    """Make a file of a terabyte that takes no space."""
    os.truncate(path, draw.choice((1 << 30, 1 << 40)))


def replace(path: Path, draw: random.Random) -> None:
    """Put something else in its place: a folder, a pipe, a device, a link to itself, nothing."""
    path.unlink()
    kind = draw.randrange(5)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        os.mkfifo(path)
    elif kind < 4:
        path.symlink_to("/dev/zero" if kind == 2 else path)


def say(path: Path, draw: random.Random) -> None:
    """Change what a JSON file says."""
    said = json.loads(path.read_text())
    for _ in range(draw.randint(1, 2)):
        name = draw.choice(list(said))
        if draw.random() < 0.2:
            said.pop(name)
        else:
            said[name] = draw.choice(VALUES)
    path.write_text(json.dumps(said))


def say_in_header(path: Path, draw: random.Random) -> None:
    """Change what the header of a safetensors file says."""
    contents = path.read_bytes()
    (size,) = struct.unpack("<Q", contents[:8])
    header = json.loads(contents[8 : 8 + size])
    name = draw.choice([each for each in header if each != "__metadata__"])
    entry = header[name]
    kind = draw.randrange(4)
    if kind == 0:
        entry["dtype"] = draw.choice(("F8_E4M3", "U64", "I64", "C64", "BOOL", "F64", "X", None))
    elif kind == 1:
        entry["shape"] = draw.choice(([], [-1], [2**40, 2**40], [1] * 100, entry["shape"][::-1]))
    elif kind == 2:
        entry["data_offsets"] = draw.choice(([0, 2**60], [8, 4], [-4, 0], []))
    else:
        header[f"{name}{draw.choice(('x', chr(27), ''))}"] = entry
    written = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(written)) + written + contents[8 + size :])


def change_array(path: Path, draw: random.Random) -> None:
    """Give an array of an .npz file another type, shape or header, or change the options."""
    with np.load(path) as file:
        arrays = dict(file)
    name = draw.choice(sorted(arrays))
    kind = draw.randrange(6)
    stream = io.BytesIO()
    if kind == 0:
        arrays[name] = np.zeros(arrays[name].shape, draw.choice(KINDS))
    elif kind == 1:
        arrays[name] = np.array([{"code": 1}])
    elif kind == 2:
        del arrays[name]
    elif kind == 3:
        arrays[name] = arrays[name].reshape(draw.choice(((-1,), (1, 1, -1), (-1, 1))))
    elif kind == 4:
        said = bytes(arrays["special:model.yml"]).decode().rstrip("\0").splitlines()
        index = draw.randrange(len(said))
        text = draw.choice((str(draw.choice(VALUES)), "&a [*a, *a]", '"\\UFFFFFFFF"'))
        said[index] = f"{said[index].split(':')[0]}: {text}"
        said += ["  x"] * draw.choice((0, 300_000))
        written = "\n".join(said).encode(errors="surrogatepass")
        arrays["special:model.yml"] = np.frombuffer(written, np.int8)
    header = {"descr": "<f4", "fortran_order": False, "shape": (10**6, 10**6)}
    np.lib.format.write_array_header_1_0(stream, header)
    save = draw.choice((np.savez, np.savez_compressed))
    save(path, **arrays)
    if kind == 5:
        with zipfile.ZipFile(path, "a") as zipped:
            zipped.writestr("huge.npy", stream.getvalue())


def inflate(path: Path, draw: random.Random) -> None:
    """Add an array that inflates to two gigabytes, in one of several packings."""
    packing = draw.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))
    with (
        zipfile.ZipFile(path, "a", packing) as zipped,
        zipped.open("bomb.npy", "w", force_zip64=True) as file,
    ):
        header = {"descr": "<f4", "fortran_order": False, "shape": (1 << 29,)}
        np.lib.format.write_array_header_1_0(file, header)
        for _ in range(1 << 5):
            file.write(bytes(1 << 26))


BYTES: tuple[Damage, ...] = (flip, flip_early, cut, fill, repeat, nest)


def list_damages(path: Path) -> tuple[Damage, ...]:
    """List what may happen to a file."""
    if path.suffix == ".json":
        return (say, say, say, say, *BYTES, replace, stretch)
    if path.suffix == ".safetensors":
        return (say_in_header, say_in_header, *BYTES, replace, stretch)
    if path.suffix == ".npz":
        return (change_array, change_array, change_array, *BYTES, replace, stretch)
    return (*BYTES, replace, stretch)


def make_models(place: Path, write_marian: Callable[[Path, ModelFolder], Path]) -> list[Path]:
    """Make a folder of MarianMT's and one of Marian's."""
    draw = random.Random(1)
    words = ["the", "small", "old", "dog", "house", "sees", "likes", "le", "petit", "vieux"]
    lines = [f"{' '.join(draw.choices(words, k=6))}." for _ in range(80)]
    subwords = Subwords.from_bytes(train_subwords(lines, vocabulary_size=330))
    vocabularies = Vocabularies(subwords, subwords)
    torch.manual_seed(1)
    found = []
    for positions in ("sinusoidal", "marian"):
        options = TransformerOptions(
            num_encoder_layers=1, num_decoder_layers=1, model_dim=16, feed_forward_dim=24,
            num_heads=2, positions=positions, attention_bias=True, output_bias=True,
        )  # fmt: skip
        path = place / positions
        folder = ModelFolder(
            path=path,
            config={"model": to_plain(options)},
            options=options,
            vocabularies=vocabularies,
            facts=Facts(source_language="en", target_language="fr", longest_source=40),
        )
        write_model(path, folder, build_model(options, vocabulary_of(vocabularies)))
        found.append(path)
    export_huggingface(found[0], place / "huggingface")
    write_marian(place / "opus", read_folder(found[1]))
    return [place / "huggingface", place / "opus"]


def attempt(model: Path, place: Path) -> str | None:
    """Import a model in a process of its own; say what is wrong with how that ends."""
    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    told, start = place / "told", time.monotonic()
    process = os.fork()
    if not process:
        signal.alarm(MOST_SECONDS)
        status = 99
        try:
            handle = os.open(told, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
            os.dup2(handle, 1)
            os.dup2(handle, 2)
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            run_command(["import", str(model), str(place / "out")])
            status = 0
        except SystemExit as error:
            status = int(error.code or 0)
        except BaseException as error:  # noqa: BLE001
            print(repr(error)[:500])
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    _, ended, usage = os.wait4(process, 0)
    status = os.waitstatus_to_exitcode(ended)
    text = told.read_text(errors="replace")
    more = usage.ru_maxrss * 1024 - before
    shutil.rmtree(place / "out", ignore_errors=True)
    if status not in (0, 2) or text.count("\n") != 1 or (status and "dragoman: " not in text):
        return f"status {status}, said {text[:500]!r}"
    if more > MOST_BYTES:
        return f"took {more >> 20} MB"
    seconds = time.monotonic() - start
    return f"took {seconds:.0f} s" if seconds > MOST_SECONDS else None


def attack(models: list[Path], place: Path, num_damages: int, seed: int) -> Iterator[str]:
    """Damage one file after another; give what goes wrong."""
    draw = random.Random(seed)
    files = [
        (model, path.name)
        for model in models
        for path in sorted(model.iterdir())
        if path.name != "target.spm"
    ]
    for index in range(num_damages):
        model, name = files[index % len(files)]
        copy = place / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(model, copy)
        damage = draw.choice(list_damages(copy / name))
        damage(copy / name, draw)
        found = attempt(copy, place)
        if found:
            yield f"{index} {model.name}/{name} {damage.__name__}: {found}"


def main() -> None:
    """Attack, and count."""
    writer = runpy.run_path(str(ROOT / "tests" / "exchange" / "marian_writer.py"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damages", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        models = make_models(place, writer["write_marian"])
        wrong = list(attack(models, place, options.damages, options.seed))
        inflate(models[1] / "model.npz", random.Random(1))
        bomb = attempt(models[1], place)
        wrong += [f"inflated: {bomb}"] if bomb else []
    print("\n".join(wrong))
    print(f"tried {options.damages + 1}, survived {options.damages + 1 - len(wrong)}")


if __name__ == "__main__":
    main()
