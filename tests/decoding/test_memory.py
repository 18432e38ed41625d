"""Memory that is kept or given back; what it is for stays as it was."""

import gc
import subprocess
import sys
import weakref

import pytest

from dragoman.decoding import memory
from dragoman.decoding.memory import MANY, frozen_garbage_collector
from dragoman.kernels.processor import can_compile

FORGET = """
import ctypes, re
from pathlib import Path
import llvmlite.binding as llvm
from dragoman.decoding.memory import drop_code_pages, release_freed_memory

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


class Ring:
    """Refers to itself, so that only the collector can remove it."""

    def __init__(self):
        self.me = self


def test_old_garbage_waits_and_new_garbage_goes():
    gc.collect()
    old = weakref.ref(Ring())
    with frozen_garbage_collector(MANY):
        new = weakref.ref(Ring())
        gc.collect()
        assert new() is None
        assert old() is not None
    gc.collect()
    assert old() is None


def test_everything_is_looked_at_again_after_a_failure():
    with pytest.raises(ValueError, match="broken"), frozen_garbage_collector(MANY):
        raise ValueError("broken")
    assert gc.get_freeze_count() == 0


def test_few_results_leave_the_collector_alone():
    with frozen_garbage_collector(MANY - 1):
        assert gc.get_freeze_count() == 0
    with frozen_garbage_collector(MANY):
        assert gc.get_freeze_count() > 0
