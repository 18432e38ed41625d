"""Memory that is kept or given back; what it is for stays as it was."""

import subprocess
import sys

import pytest

from dragoman.decoding import allocator as memory
from dragoman.kernels.processor import can_compile

FORGET = """
import ctypes, re
from pathlib import Path
import llvmlite.binding as llvm
from dragoman.decoding.allocator import drop_code_pages, release_freed_memory

def resident():
    text = Path("/proc/self/smaps").read_text()
    parts = re.split(r"(?m)^(?=[0-9a-f]+-[0-9a-f]+ )", text)
    code = [part for part in parts if " r-xp " in part and "libllvmlite" in part]
    return sum(int(re.search(r"Rss: +(\\d+)", part).group(1)) for part in code)

before = resident()
drop_code_pages("libllvmlite")
assert resident() < before / 4, (before, resident())
assert llvm.parse_assembly("define i32 @f() { ret i32 7 }").functions
release_freed_memory()
"""


@pytest.mark.skipif(sys.platform != "linux" or not can_compile(), reason="for Linux and Numba")
def test_code_that_is_forgotten_is_read_again():
    subprocess.run([sys.executable, "-c", FORGET], check=True)


def test_elsewhere_nothing_happens(monkeypatch):
    monkeypatch.setattr(memory, "_find_glibc", lambda: None)
    for forget in (memory.keep_freed_memory, memory.return_large_blocks):
        forget()
    memory.release_freed_memory()
    memory.drop_code_pages("libllvmlite")
