"""The verb “score” as people meet it."""

import io
import sys

import pytest

from dragoman.cli.command import main
from dragoman.data.batches import flatten, make_batch
from dragoman.models.likelihood import token_log_probabilities

PAIRS = [("The dog sees.", "Le chien voit."), ("A house", "une maison"), ("", "")]


def run(capsys, *words):
    main(["score", *map(str, words), "--device", "cpu"])
    return capsys.readouterr().out.splitlines()


def fail(capsys, *words):
    with pytest.raises(SystemExit) as stop:
        main(["score", *map(str, words), "--device", "cpu"])
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    return out, err.splitlines()[-1]


@pytest.fixture(scope="module")
def expected(tiny_folder, vocabularies):
    end = vocabularies.eos_id
    totals = []
    for pair in PAIRS:
        sides = [
            flatten([[*each.encode([text])[0], end]])
            for each, text in zip(vocabularies, pair, strict=True)
        ]
        batch = make_batch(*sides, vocabularies.pad_id)
        numbers = token_log_probabilities(tiny_folder.model, batch)
        totals.append((numbers.sum().item(), numbers.size(1)))
    return totals


@pytest.fixture
def files(tmp_path):
    for side, name in enumerate(("a", "b")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    (tmp_path / "tsv").write_text("".join("\t".join(pair) + "\n" for pair in PAIRS))
    return tmp_path


def test_all_ways_to_give_pairs(capsys, tiny_folder, files, expected, monkeypatch):
    lines = run(capsys, tiny_folder.path, "--source", files / "a", "--target", files / "b")
    assert [float(line) for line in lines] == pytest.approx([one for one, _ in expected], abs=1e-3)
    assert run(capsys, tiny_folder.path, "--tsv", files / "tsv") == lines
    stream = io.TextIOWrapper(io.BytesIO((files / "tsv").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert run(capsys, tiny_folder.path) == lines


def test_means_and_words(capsys, tiny_folder, files, expected):
    lines = run(capsys, tiny_folder.path, "--tsv", files / "tsv", "--normalise", "--per-token")
    for line, (total, length) in zip(lines, expected, strict=True):
        mean, words = line.split("\t")
        assert float(mean) == pytest.approx(total / length, abs=1e-3)
        numbers = [float(word.rsplit(":", 1)[1]) for word in words.split(" ")]
        assert sum(numbers) == pytest.approx(total, abs=1e-3)
        assert words.split(" ")[-1].startswith("</s>:")


def test_a_bad_line_is_named(capsys, tiny_folder, tmp_path):
    (tmp_path / "tsv").write_text("a\tb\nc d\n")
    _, line = fail(capsys, tiny_folder.path, "--tsv", tmp_path / "tsv")
    assert line == (
        f"dragoman: {tmp_path / 'tsv'}, line 2: 1 column where there must be 2 (source, tab, "
        "target)"
    )


def test_bytes_that_are_not_utf_8(capsys, tiny_folder, tmp_path):
    (tmp_path / "tsv").write_bytes(b"a\tb\nc\t\xff\n")
    main(["score", str(tiny_folder.path), "--tsv", str(tmp_path / "tsv"), "--device", "cpu"])
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert f"{tmp_path / 'tsv'}, line 2: not UTF-8 (byte 0xff at column 3)" in err


def test_what_cannot_be_meant(capsys, tiny_folder, files):
    out, line = fail(capsys, tiny_folder.path, "--source", files / "a")
    assert line == "dragoman: dragoman score: give both --source and --target, or --tsv"
    both = ("--source", files / "a", "--target", files / "b", "--tsv", files / "tsv")
    _, line = fail(capsys, tiny_folder.path, *both)
    assert line == ("dragoman: dragoman score: give --source and --target, or --tsv, not both")
    assert out == ""
