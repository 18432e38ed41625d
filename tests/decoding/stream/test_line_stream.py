"""Streams of lines: windows, order, interruptions of a real process, and odd input."""

import argparse
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.work import grows_linearly

from dragoman.cli.command import build_parser, main
from dragoman.data.lines import LineReader
from dragoman.decoding.search import batched_search as general_search
from dragoman.decoding.stream import line_stream as stream
from dragoman.decoding.stream import resumable_output as journal
from dragoman.decoding.stream.line_stream import (
    FIRST_WINDOW_LINES,
    PrintedOutput,
    check_apart,
    identity_of,
    run_stream,
    window_lines,
)
from dragoman.decoding.stream.progress import ProgressDisplay
from dragoman.decoding.stream.resumable_output import ResumableOutput
from dragoman.decoding.translator import Translator
from dragoman.errors import OptionError

NUM_LINES = 700
QUICK = ("--beam-size", "1", "--max-extra-tokens", "2")
WORDS = ["the", "a", "small", "old", "dog", "house", "tree", "garden", "sees", "likes", "finds"]


def make_lines(count, seed=0):
    generator = random.Random(seed)
    return [" ".join(generator.choices(WORDS, k=generator.randint(0, 9))) for _ in range(count)]


def command(*words):
    return [sys.executable, "-m", "dragoman", "translate", *map(str, words), "--device", "cpu"]


def run_process(*words, **kwargs):
    return subprocess.run(command(*words), capture_output=True, check=False, **kwargs)


# Windows


@pytest.mark.parametrize("is_steady", [True, False])
@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 3000])
def test_every_line_once_and_in_order(count, is_steady):
    lines = [f"line {number}" for number in range(count)]
    reader = LineReader((f"{line}\n".encode() for line in lines), place="in", is_steady=is_steady)
    out, seen = io.StringIO(), []

    def work(block, first):
        seen.append((first, len(block)))
        return [f"{first + index}: {line}" for index, line in enumerate(block)]

    run_stream(reader, work, PrintedOutput(out), ProgressDisplay(io.StringIO()), 1000)
    assert out.getvalue() == "".join(f"{n + 1}: {line}\n" for n, line in enumerate(lines))
    assert all(length <= 1000 for _, length in seen)
    if is_steady and count == 3000:
        assert [length for _, length in seen] == [8, 128, 1000, 1000, 864]


def test_windows_grow_to_the_most():
    sizes, before = [], 0
    while not sizes or sizes[-1] < 4096:
        sizes.append(window_lines(before, 4096))
        before += sizes[-1]
    assert sizes[0] == FIRST_WINDOW_LINES
    assert sizes == sorted(sizes)
    assert len(sizes) < 12
    assert window_lines(10**9, 4096) == 4096


def test_results_come_before_the_next_lines_are_asked_for():
    order = []

    class Noting(io.StringIO):
        def flush(self):
            order.append("flushed")

    reader = LineReader((b"%d\n" % n for n in range(600)), place="in")

    def work(block, first):
        order.append(len(block))
        return block

    run_stream(reader, work, PrintedOutput(Noting()), ProgressDisplay(io.StringIO()), 256)
    assert order == [8, "flushed", 128, "flushed", 256, "flushed", 208, "flushed"]


def test_batch_size_and_order_change_nothing(tiny_folder, monkeypatch):
    """In 32-bit floats, up to ties: where texts differ, both score the same."""
    translator = Translator.load(tiny_folder.path, "cpu", precision="float32")
    lines = [*make_lines(14), "Zürich 1987", "", "x" * 30]
    whole = translator.translate_all(lines)
    num_same = num_all = 0
    for places in (1, 300, 10**6):
        monkeypatch.setattr(general_search, "BATCH_PLACES", {"cpu": places})
        order = random.Random(places).sample(range(len(lines)), len(lines))
        found = translator.translate_all([lines[index] for index in order])
        for index, each in zip(order, found, strict=True):
            assert each.score == pytest.approx(whole[index].score, abs=1e-5)
            num_same += each.text == whole[index].text
            num_all += 1
    assert num_same >= num_all - 1


def test_slow_work_is_written_down_in_small_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "BLOCK_SECONDS", 0.02)
    reader = LineReader((b"%d\n" % n for n in range(100)), place="in")
    sizes = []

    def work(block, first):
        sizes.append(len(block))
        time.sleep(0.001 * len(block))
        return block

    with ResumableOutput(tmp_path / "out", {}) as output:
        run_stream(reader, work, output, ProgressDisplay(io.StringIO()), 1000)
    assert sum(sizes) == 100
    assert max(sizes) <= 20
    assert (tmp_path / "out").read_text().splitlines() == [str(n) for n in range(100)]


# What an interrupted run must have in common with the next


def namespace(**kwargs):
    return argparse.Namespace(run=print, parser=None, **kwargs)


def test_identity_holds_options_and_contents(tmp_path):
    model, other = tmp_path / "model", tmp_path / "other"
    for folder in (model, other):
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(b"weights")
        (folder / "README.md").write_text("card")
    glossary = tmp_path / "terms.tsv"
    glossary.write_text("a\tb\n")
    said = {"model": model, "output": Path("x"), "beam_size": 3, "n_best": None, "terms": glossary}

    def identity(**changes):
        return identity_of(namespace(**said | changes), ("output",))

    before = identity()
    assert before["beam_size"] == "3"
    assert "n_best" not in before
    assert identity(output=Path("y")) == before
    assert identity(beam_size=4) != before
    assert identity(others=[other]) != before
    (model / "README.md").write_text("another card")
    (model / "run.json").write_text("{}")
    (model / "checkpoints").mkdir()
    assert identity() == before
    for path in (glossary, model / "model.safetensors", model / "config.toml"):
        path.write_bytes(b"other")
        changed = identity()
        assert changed != before
        before = changed


def test_the_input_is_never_written_over(tmp_path):
    text = tmp_path / "text"
    text.write_text("a\n")
    (tmp_path / "link").symlink_to(text)
    for path in (text, tmp_path / "link"):
        with pytest.raises(OptionError) as caught:
            check_apart(path, text)
        assert str(caught.value) == f"--output {path} is also the input; name another file"
    check_apart(tmp_path / "new", text)
    check_apart(tmp_path / "new", None)


def test_standard_input_is_apart_from_another_file(tiny_folder, tmp_path):
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("The dog.\n")
    out.write_text("older")
    with text.open() as file:
        answer = run_process(tiny_folder.path, "--output", out, *QUICK, stdin=file)
    assert (answer.returncode, answer.stderr) == (0, b"")
    assert out.read_text().count("\n") == 1
    with text.open() as file:
        answer = run_process(tiny_folder.path, "--output", text, *QUICK, stdin=file)
    assert answer.returncode == 2
    assert f"--output {text} is also the input" in answer.stderr.decode()


def test_a_refused_command_does_not_stand_in_the_way(tiny_folder, tmp_path):
    (tmp_path / "text").write_text("The dog.\n")
    words = (tiny_folder.path, tmp_path / "text", "--output", tmp_path / "out", *QUICK)
    assert run_process(*words, "--n-best", "0").returncode == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text"]
    assert run_process(*words, "--n-best", "1").returncode == 0


def test_progress_on_a_terminal_leaves_the_results_alone(tiny_folder, tmp_path):
    (tmp_path / "text").write_text("The dog.\n")
    ours, theirs = os.openpty()
    words = command(tiny_folder.path, tmp_path / "text", *QUICK)
    answer = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs, check=False)
    os.close(theirs)
    os.close(ours)
    assert answer.stdout.count(b"\n") == 1


def test_warnings_that_nobody_can_take(tiny_folder, tmp_path):
    (tmp_path / "text").write_bytes(b"\xff dog\nThe dog.\n")
    words = (tiny_folder.path, tmp_path / "text", *QUICK)
    whole = run_process(*words)
    assert b"warning" in whole.stderr
    with Path("/dev/full").open("w") as full:
        answer = subprocess.run(command(*words), stdout=-1, stderr=full, check=False)
    assert (answer.returncode, answer.stdout) == (0, whole.stdout)
    closed = subprocess.run(command(*words), stdout=-1, check=False, preexec_fn=lambda: os.close(2))
    assert (closed.returncode, closed.stdout) == (0, whole.stdout)


def test_closed_standard_output(tiny_folder, tmp_path):
    (tmp_path / "text").write_text("The dog.\n")

    def run_closed(*words):
        return subprocess.run(
            command(tiny_folder.path, tmp_path / "text", *QUICK, *words),
            stderr=subprocess.PIPE, check=False, preexec_fn=lambda: os.close(1),
        )  # fmt: skip

    answer = run_closed()
    assert answer.returncode == 2
    assert answer.stderr == b"dragoman: standard output: is closed; send it to a file or a pipe\n"
    answer = run_closed("--output", tmp_path / "out")
    assert (answer.returncode, answer.stderr) == (0, b"")
    assert (tmp_path / "out").exists()


def test_another_input_is_refused_before_it_is_gone_on_with(tiny_folder, tmp_path):
    text, out = tmp_path / "text", tmp_path / "out"
    text.write_text("The dog.\n")
    words = (tiny_folder.path, text, "--output", out, *QUICK)
    assert run_process(*words).returncode == 0
    said = json.dumps({"lines": 1, "bytes": 0, "digest": "other"})
    options = build_parser().parse(["translate", *map(str, words), "--device", "cpu"])
    header = json.dumps({"format": 1, "identity": identity_of(options, ("output", "file"))})
    (tmp_path / "out.partial").write_bytes(b"")
    (tmp_path / "out.journal").write_text(f"{header}\n{said}\n")
    (line,) = run_process(*words).stderr.decode().splitlines()
    assert "does not begin with them" in line


# A real process


@pytest.fixture(scope="module")
def expected(tiny_folder, tmp_path_factory):
    """A file of lines, and what an undisturbed process makes of it."""
    folder = tmp_path_factory.mktemp("stream")
    lines = make_lines(NUM_LINES)
    (folder / "text").write_text("".join(f"{line}\n" for line in lines))
    words = (tiny_folder.path, folder / "text", "--output", folder / "out", *QUICK)
    assert run_process(*words).returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == ["out", "text"]
    return folder / "text", (folder / "out").read_bytes()


def test_the_file_is_what_is_printed(tiny_folder, expected):
    source, whole = expected
    assert whole.count(b"\n") == NUM_LINES
    with source.open("rb") as file:
        assert run_process(tiny_folder.path, *QUICK, stdin=file).stdout == whole


def num_done(out):
    journal = out.with_name("out.journal")
    lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
    return json.loads(lines[-1]).get("lines", 0) if lines else 0


@pytest.mark.slow
def test_killed_again_and_again(tiny_folder, expected, tmp_path):
    """SIGKILL whenever the journal has grown, and at once after; nothing is lost or repeated."""
    source, whole = expected
    out = tmp_path / "out"
    words = command(tiny_folder.path, source, "--output", out, *QUICK)
    generator = random.Random(5)
    reached = []
    for _ in range(3):
        before = num_done(out)
        with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and num_done(out) == before:
                time.sleep(0.002)
            time.sleep(generator.choice([0.0, 0.003, 0.05]))
            process.send_signal(signal.SIGKILL)
            told = process.stderr.read()
        if out.exists():
            break
        if before:
            assert f"dragoman: {out}: going on after {before:,} lines" in told
        reached.append(num_done(out))
    assert reached == sorted(reached)
    assert reached[0] < NUM_LINES
    if not out.exists():
        assert subprocess.run(words, capture_output=True, check=False).returncode == 0
    assert out.read_bytes() == whole
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.slow
def test_other_options_are_refused_and_a_pipe_can_go_on(tiny_folder, expected, tmp_path):
    source, whole = expected
    out = tmp_path / "out"
    words = (tiny_folder.path, "--output", out, *QUICK)
    with subprocess.Popen(
        command(*words), stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdin.write(b"".join(source.read_bytes().splitlines(keepends=True)[:600]))
        process.stdin.flush()
        while num_done(out) < 136:
            time.sleep(0.01)
        process.kill()
    answer = run_process(*words[:-1], "3", input=b"x\n")
    assert answer.returncode == 2
    (line,) = answer.stderr.decode().splitlines()
    assert line.startswith(
        f"dragoman: {out}.journal: begun with max_extra_tokens 2, now 3; give the"
    )
    answer = run_process(*words, input=source.read_bytes())
    assert answer.returncode == 0
    assert out.read_bytes() == whole


@pytest.fixture
def run(capsys, monkeypatch, tiny_folder):
    """Translate some bytes in this process; give what is printed, and the warnings."""

    def translate(raw, *words):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        main(["translate", str(tiny_folder.path), "--device", "cpu", *words])
        return capsys.readouterr()

    return translate


def test_odd_lines_are_translated_one_by_one(tiny_folder, run):
    raw = b"The dog.\n\xff\xfebad\n\x00\n\nA\x0bred\rtree\x1c\xe2\x80\xa8\xc2\x85dog\r\nlast"
    out, err = run(raw)
    lines = out.split("\n")
    assert len(lines) == 7
    assert lines[2] == lines[3] == lines[6] == ""
    translator = Translator.load(tiny_folder.path, "cpu")
    assert lines[0] == translator.translate("The dog.").text
    warnings = err.splitlines()
    assert warnings[0] == (
        "dragoman: warning: standard input, line 2: not UTF-8 (byte 0xff at column 1); “�” was "
        "put in 2 places"
    )
    assert all(re.match(r"dragoman: warning: standard input, line \d: ", w) for w in warnings)


@pytest.mark.parametrize("words", [(), ("--alignments",), ("--n-best", "2")])
def test_empty_input(run, words):
    assert run(b"", *words) == ("", "")


def test_a_line_of_a_hundred_thousand_characters(tiny_folder):
    """Bounded pieces, linear time: splitting alone, since the search is linear in the pieces."""
    translator = Translator.load(tiny_folder.path, "cpu")

    def split(text):
        pieces = translator._splitter.segments([text], translator.options, lambda _: 1)
        assert max(len(piece.ids) for piece in pieces) <= 40
        assert "".join(piece.text for piece in pieces) == text

    split("a" * 100_000)
    assert grows_linearly(lambda n: split("a" * n), 5000)
    assert grows_linearly(lambda n: split("木 " * n), 1250)


def test_alignments_are_printed(run):
    rows = run(b"The dog sees.\n\n", "--alignments").out.split("\n")
    assert len(rows) == 3
    assert rows[1:] == [" ||| ", ""]
    text, links = rows[0].split(" ||| ")
    for source, target in (map(int, link.split("-")) for link in links.split()):
        assert source < 3
        assert target < len(text.split())


@pytest.mark.slow
def test_memory_does_not_grow_with_the_lines(tiny_folder, tmp_path):
    """Ten times the lines, and the highest resident memory is about the same."""
    highest = []
    for count in (1500, 15_000):
        path = tmp_path / "text"
        path.write_text("".join(f"{line}\n" for line in make_lines(count // 10) * 10))
        words = command(tiny_folder.path, path, *QUICK)
        with (tmp_path / "out").open("wb") as out, subprocess.Popen(words, stdout=out) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        highest.append(usage.ru_maxrss)
    assert highest[1] < 1.15 * highest[0]


def test_devices_have_windows():
    assert set(stream.WINDOW_LINES) == set(general_search.BATCH_PLACES)
