"""The flags of “dragoman translate” for what is demanded, through the command."""

import math
import re

import pytest

from dragoman.cli.command import main

LINES = ["The dog sees a house.", "", "A small tree."]


@pytest.fixture
def translate(tiny_folder, tmp_path, capsys):
    """Translate lines with flags; give what is printed, line by line, and what is warned of."""
    path = tmp_path / "text"
    path.write_text("\n".join(LINES) + "\n")

    def run(*flags):
        main(["translate", str(tiny_folder.path), str(path), "--device", "cpu", *map(str, flags)])
        printed = capsys.readouterr()
        return printed.out.splitlines(), printed.err

    return run


def fail(translate, capsys, *flags):
    with pytest.raises(SystemExit) as caught:
        translate(*flags)
    assert caught.value.code == 2
    return capsys.readouterr().err


def test_scores_are_printed_with_every_subword(translate, tiny_folder):
    plain, _ = translate()
    lines, _ = translate("--scores")
    target = tiny_folder.folder.vocabularies.target
    for text, line in zip(plain, lines, strict=True):
        written, score, tokens = line.split(" ||| ")
        assert written == text
        pairs = [each.rsplit(":", 1) for each in tokens.split(" ")] if tokens else []
        logs = [float(log) for _, log in pairs]
        if pairs:
            assert pairs[-1][0] == "</s>"
            names = [name for name, _ in pairs]
            ids = dict(zip(target.pieces(range(len(target))), range(len(target)), strict=True))
            assert target.decode([[ids[name] for name in names]])[0] == text
            expected = sum(logs) / ((5 + len(logs)) / 6) ** 0.6
            assert float(score) == pytest.approx(expected, abs=1e-2)


def test_scores_of_alternatives_come_after_the_number(translate):
    plain, _ = translate("--n-best", 2)
    lines, _ = translate("--n-best", 2, "--scores")
    assert [line.rsplit(" ||| ", 1)[0] for line in lines] == plain


def test_terms_and_forbidden_words(translate, tmp_path):
    glossary, words = tmp_path / "g.tsv", tmp_path / "f.txt"
    glossary.write_text("dog\tteckel\ntree\tsapin vert\nhouse\tvert\n")
    words.write_text("Vert\n")
    lines, warned = translate("--terms", glossary, "--forbid", words)
    assert re.search(r"\b[Tt]eckel\b", lines[0])
    assert lines[1] == ""
    assert not any(re.search(r"\bvert\b", line, re.IGNORECASE) for line in lines)
    for number, target in ((2, "sapin vert"), (3, "vert")):
        assert (
            f"{glossary}:{number}: “{target}”: “Vert” is forbidden ({words}:1); translated without "
            "the term"
        ) in warned


def test_a_term_without_room_is_told_by_line(translate, tmp_path):
    glossary = tmp_path / "g.tsv"
    glossary.write_text("tree\tun très grand arbre qui ne tient pas là\n")
    lines, warned = translate("--terms", glossary, "--max-extra-tokens", 0)
    assert len(lines) == 3
    assert re.search(r"text, line 3: its terms take \d+ subwords, but the translation", warned)


def test_samples(translate):
    first, _ = translate("--sample", "--seed", 3)
    again, _ = translate("--sample", "--seed", 3)
    other, _ = translate("--sample", "--seed", 4)
    assert first == again != other
    many, _ = translate("--sample", "--n-best", 4, "--temperature", 0.5, "--top-p", 0.9)
    assert [line.split(" ||| ")[0] for line in many] == [*"0000", "1", *"2222"]
    assert all(math.isfinite(float(line.rsplit(" ||| ", 1)[1])) for line in many)


def test_several_models(translate, tiny_folder):
    plain, _ = translate()
    assert translate("--with", tiny_folder.path, "--with", tiny_folder.path)[0] == plain


def test_flags_that_mean_nothing_alone(translate, capsys):
    assert "--top-k means something with --sample only; give that, or leave it out" in fail(
        translate, capsys, "--top-k", 3
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--temperature", 0), "temperature is 0.0: must be from 0.001 to 1,000"),
        (("--top-k", 0), "top_k is 0: must be at least 1"),
        (("--top-p", 0), "top_p is 0.0: must be above 0 and at most 1"),
        (("--top-p", 1.5), "top_p is 1.5: must be above 0 and at most 1"),
    ],
)
def test_values_that_mean_nothing(translate, capsys, flags, message):
    assert message in fail(translate, capsys, "--sample", *flags)


def test_malformed_glossary_ends_before_anything_is_written(translate, capsys, tmp_path):
    path = tmp_path / "g.tsv"
    path.write_text("a\tb\nc\n")
    assert f"{path}:2: has 1 columns, not 2" in fail(translate, capsys, "--terms", path)


def test_greedy_search_prints_the_same_with_scores_and_without(translate):
    plain, _ = translate("--beam-size", 1)
    scored, _ = translate("--beam-size", 1, "--scores")
    assert [line.split(" ||| ")[0] for line in scored] == plain
