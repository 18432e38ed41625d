"""Damage the cache of the functions that translate, and see whether translating goes on.

$ python benchmarks/attacks/compile_cache.py --damages 40
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

MODULE = "dragoman.decoding.engines.cpu.background_compile"
CODE = f"from {MODULE} import compile_search; compile_search('int8')"


def flip(path: Path, draw: random.Random) -> None:
    """Flip one bit."""
    contents = bytearray(path.read_bytes())
    contents[draw.randrange(len(contents))] ^= 1 << draw.randrange(8)
    path.write_bytes(contents)


def cut(path: Path, draw: random.Random) -> None:
    """Cut the end off."""
    os.truncate(path, draw.randrange(path.stat().st_size))


def fill(path: Path, draw: random.Random) -> None:
    """Write noise over a part."""
    contents = bytearray(path.read_bytes())
    start = draw.randrange(len(contents))
    size = min(4096, len(contents) - start)
    contents[start : start + size] = draw.randbytes(size)
    path.write_bytes(contents)


def swap(path: Path, draw: random.Random) -> None:
    """Put another entry in its place."""
    others = [each for each in path.parent.iterdir() if each != path and each.is_file()]
    other = draw.choice(sorted(others))
    path.write_bytes(other.read_bytes())


def make_folder(path: Path, draw: random.Random) -> None:
    """Put a folder in its place."""
    del draw
    path.unlink()
    path.mkdir()


def make_pipe(path: Path, draw: random.Random) -> None:
    """Put a pipe in its place."""
    del draw
    path.unlink()
    os.mkfifo(path)


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    flip, flip, cut, fill, swap, make_folder, make_pipe,
)  # fmt: skip


def load(folder: Path) -> tuple[int, str]:
    """Load the functions in a new process; give its status and what it complained of."""
    found = subprocess.run(
        [sys.executable, "-c", CODE],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return found.returncode, found.stderr


def main() -> None:
    """Damage the entry that is loaded first, and one other, again and again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--damages", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw = random.Random(options.seed)
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        status, complaint = load(Path(name))
        if status:
            sys.exit(f"cannot be compiled here: {complaint}")
        for index in range(options.damages):
            entries = sorted((Path(name) / "dragoman").iterdir())
            (first,) = [each for each in entries if each.name.startswith("search.search-")]
            damage = DAMAGES[index % len(DAMAGES)]
            damage(first, draw)
            others = [each for each in entries if each != first and each.is_file()]
            damage(draw.choice(others), draw)
            status, complaint = load(Path(name))
            is_told = "compiling anew without it" in complaint and "Traceback" not in complaint
            is_replaced = load(Path(name)) == (0, "")
            survived += status == 0 and is_told and is_replaced
            if not (status == 0 and is_told and is_replaced):
                print(f"{index} {damage.__name__}: status {status}, {complaint!r}")
    print(f"tried {options.damages}, survived {survived}")


if __name__ == "__main__":
    main()
