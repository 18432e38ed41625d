"""Functions that are compiled behind: few texts are translated meanwhile, many wait."""

import os
import subprocess
import sys
import time

import pytest

from dragoman.decoding import translator
from dragoman.decoding.engines.cpu import background_compile as compiling
from dragoman.decoding.engines.cpu.background_compile import (
    VARIABLE,
    BackgroundCompilation,
    compile_in_background,
)
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine
from dragoman.decoding.translator import FEW_SEGMENTS, Translator
from dragoman.kernels import processor

pytestmark = pytest.mark.skipif(not processor.can_compile(), reason="nothing is compiled here")

TEXTS = ["The dog sees a house.", "A small tree."]


class Process(subprocess.Popen):
    """Ends when it is waited for."""

    def __init__(self):
        self.code, self.num_waits, self._child_created = None, 0, False

    def poll(self):
        return self.code

    def wait(self):
        self.num_waits += 1
        self.code = 0


@pytest.fixture
def process(monkeypatch):
    process = Process()
    monkeypatch.setattr(
        translator, "compile_in_background", lambda _: BackgroundCompilation(process)
    )
    return process


def load(folder):
    return Translator.load(folder.path, "cpu", precision="float32")


def test_few_texts_are_translated_by_the_model_itself(tiny_folder, process, monkeypatch):
    monkeypatch.setattr(CpuEngine, "load", lambda *_: pytest.fail("it is not compiled yet"))
    found = load(tiny_folder)
    assert found.is_compiling
    assert found.takes_short_list
    expected = Translator(found.folder, found.model, "cpu").translate_all(TEXTS)
    assert found.translate_all(TEXTS) == expected
    assert not process.num_waits


def test_many_texts_wait(tiny_folder, process):
    found, texts = load(tiny_folder), TEXTS * FEW_SEGMENTS
    assert len(found.translate_all(texts)) == len(texts)
    assert process.num_waits == 1
    assert isinstance(found.cpu_engine, CpuEngine)
    assert not found.is_compiling
    assert found._model is None


def test_what_is_compiled_is_used_from_then_on(tiny_folder, process):
    found = load(tiny_folder)
    found.translate("dog")
    process.code = 1  # whoever failed, it is compiled here
    plain = found.translate("dog")
    assert isinstance(found.cpu_engine, CpuEngine)
    assert found.translate("dog") == plain


@pytest.fixture
def started(monkeypatch):
    started = []
    monkeypatch.setattr(
        compiling.subprocess, "Popen", lambda command, **_: started.append(command) or Process()
    )
    monkeypatch.delenv(VARIABLE, raising=False)
    return started


def test_another_process_compiles_what_is_not_kept(started, monkeypatch, caplog):
    monkeypatch.setattr(compiling, "is_compiled", lambda _: False)
    found = compile_in_background("int8")
    assert not found.is_over
    assert started[0][1:] == [
        "-P",
        "-m",
        "dragoman.decoding.engines.cpu.background_compile",
        "int8",
    ]
    assert caplog.messages[0].startswith("compiling for this processor")


@pytest.mark.parametrize("why", ["kept", "said", "no folder", "no process"])
def test_nothing_is_compiled_behind(started, monkeypatch, why):
    monkeypatch.setattr(compiling, "is_compiled", lambda _: why == "kept")
    if why == "said":
        monkeypatch.setenv(VARIABLE, "now")
    if why == "no folder":
        place = "dragoman.kernels.cpu_search.compiler.compile_cache.find_folder"
        monkeypatch.setattr(place, lambda: None)
    if why == "no process":
        monkeypatch.setattr(compiling.subprocess, "Popen", fail_to_start)
    assert compile_in_background("float32") is None
    assert not started


def fail_to_start(*_, **__):
    raise OSError("no memory")


def test_a_wrong_precision_is_refused():
    command = [sys.executable, "-m", "dragoman.decoding.engines.cpu.background_compile", "int4"]
    assert subprocess.run(command, check=False).returncode == 2


@pytest.mark.slow
def test_the_first_line_does_not_wait(tiny_folder, tmp_path):
    tmp_path.chmod(0o700)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    del environment[VARIABLE]
    command = [sys.executable, "-m", "dragoman", "translate", str(tiny_folder.path), "--device=cpu"]
    asked = {"input": "dog\n", "capture_output": True, "text": True, "check": True}
    first = subprocess.run(command, env=environment, **asked)
    assert "behind this" in first.stderr
    until = time.monotonic() + 300
    while not list((tmp_path / "dragoman").glob("team.run_helper*")):  # the last one
        assert time.monotonic() < until
        time.sleep(1)
    second = subprocess.run(command, env=environment, **asked)
    assert second.stderr == ""
    assert second.stdout == first.stdout
