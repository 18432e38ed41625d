"""What is compiled follows what the processor can execute, and what the user says."""

import subprocess
import sys

import pytest

from dragoman.errors import OptionError
from dragoman.kernels import processor
from dragoman.kernels.processor import (
    INSTRUCTION_SETS,
    VARIABLE,
    can_compile,
    choose_instructions,
    list_executable,
)


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """Have the processor asked again, before the test and after it."""
    monkeypatch.delenv(VARIABLE, raising=False)
    asked = (can_compile, processor.list_features, choose_instructions)
    for function in asked:
        function.cache_clear()
    yield
    for function in asked:
        function.cache_clear()


@pytest.mark.parametrize("name", ["numba", "numba.core.codegen"])
def test_without_numba_nothing_is_compiled(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    assert not can_compile()


def test_nothing_is_compiled_where_the_user_says_so(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert not can_compile()


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ("+avx512vnni,+avx512bw,+avx512vl,+avxvnni,+avx2,+fma", "avx512vnni"),
        ("+avx512bw,+avx512vl,+avxvnni,+avx2,+fma", "avxvnni"),
        ("+avx512vnni,+avx512bw,-avx512vl,+avx2,+fma", "avx2"),
        ("+avx2,-fma", "portable"),
        ("+neon,+dotprod,+i8mm", "i8mm"),
        ("+neon,+dotprod", "dotprod"),
        ("+neon", "portable"),
        ("", "portable"),
    ],
)
def test_the_fastest_instructions_that_are_there_are_chosen(monkeypatch, features, expected):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    assert choose_instructions() == expected


@pytest.mark.parametrize("name", list(INSTRUCTION_SETS))
def test_instructions_are_chosen_by_name_if_the_processor_has_them(monkeypatch, name):
    pytest.importorskip("numba")
    monkeypatch.setenv(VARIABLE, name)
    if name in list_executable():
        assert choose_instructions() == name
    else:
        with pytest.raises(OptionError, match=f"{VARIABLE} is “{name}”.*give one of: .*portable"):
            choose_instructions()


def test_a_set_that_nobody_knows_is_refused(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setenv(VARIABLE, "mmx")
    with pytest.raises(OptionError, match="“mmx”, which this processor cannot execute"):
        choose_instructions()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fp asimd asimddp sve i8mm bf16", {"neon", "dotprod", "i8mm"}),
        ("fp asimd asimddp", {"neon", "dotprod"}),
        ("fp asimd", {"neon"}),
    ],
)
def test_linux_says_what_an_arm_processor_has(monkeypatch, tmp_path, words, expected):
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor\t: 0\nFeatures\t: {words}\n")
    monkeypatch.setattr(processor, "Path", lambda _: info)
    monkeypatch.setattr(processor.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(processor.sys, "platform", "linux")
    assert processor._list_arm_features() == expected


@pytest.mark.parametrize(("said", "expected"), [(1, {"i8mm"}), (0, set())])
def test_macos_says_what_an_arm_processor_has(monkeypatch, said, expected):
    class Library:
        """macOS's own, which is nowhere else."""

        def sysctlbyname(self, name, found, _size, _new, _length):
            assert name == b"hw.optional.arm.FEAT_I8MM"
            found._obj.value = said
            return 0

    monkeypatch.setattr(processor.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor.ctypes, "CDLL", lambda _: Library())
    assert processor._list_arm_features() == {"neon", "dotprod"} | expected


AIMED = """
from numba import config
from dragoman.kernels.processor import aim_compiler
aim_compiler()
print(config.CPU_FEATURES)
"""


def aim(environment):
    done = subprocess.run(
        [sys.executable, "-c", AIMED], env=environment, check=True, capture_output=True, text=True
    )
    return [each for each in done.stdout.strip().split(",") if each.startswith("+")]


def test_a_chosen_set_runs_as_on_a_processor_that_has_no_more(monkeypatch):
    pytest.importorskip("numba")
    import os

    for name in list_executable():
        left = aim({**os.environ, VARIABLE: name})
        assert not [each for each in left if each[1:].startswith(INSTRUCTION_SETS[name].hides)]
        assert {each[1:] for each in left} >= INSTRUCTION_SETS[name].needs
