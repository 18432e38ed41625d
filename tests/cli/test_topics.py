"""Help in topics: what is shown when, and of which kind of section."""

import re
from dataclasses import fields
from typing import get_type_hints

import pytest

from dragoman.cli.command import build_parser
from dragoman.cli.flags import Parser
from dragoman.cli.model_verbs.train import COMMON, IN_FILE_ONLY, TOPICS
from dragoman.cli.topics import ALL, format_topic, owners_of
from dragoman.errors import OptionError
from dragoman.options import from_plain, read_toml, to_plain, write_toml
from dragoman.training.configuration import RunOptions

FAMILIES = [kind().family for kind in TOPICS.kinds]


def parser_of(*words: str) -> Parser:
    parser = build_parser("train").parse(["train", "--out", "x"]).parser
    parser.words = list(words)
    return parser


def flags_in(text: str) -> set[str]:
    """The options that a page of help describes."""
    lines = (line.strip() for line in text.splitlines())
    found = {line.split()[0].rstrip(",") for line in lines if line.startswith("-")}
    return found - {"-h", "--help"}


def test_help_alone_fits_a_screen():
    text = format_topic(parser_of(), TOPICS, None)
    assert len(text.splitlines()) <= 45
    assert len(flags_in(text)) == len(COMMON) == 22


@pytest.mark.parametrize("family", FAMILIES)
def test_topics_are_all_there_is(family):
    parser = parser_of("--family", family)
    topics = [flags_in(format_topic(parser, TOPICS, topic)) for topic in TOPICS.groups]
    every = flags_in(format_topic(parser, TOPICS, ALL))
    assert sum(map(len, topics)) == len(every)
    assert set.union(*topics) == every
    assert flags_in(format_topic(parser, TOPICS, None)) < every


@pytest.mark.parametrize("kind", TOPICS.kinds)
@pytest.mark.parametrize("before", [False, True])
def test_a_family_sees_its_own_options_alone(kind, before):
    words = ["--family", kind().family]
    parser = parser_of(*([*words, "--help", "model"] if before else ["--help", "model", *words]))
    shown = flags_in(format_topic(parser, TOPICS, "model"))
    with_flag = [each.name for each in fields(kind) if each.name not in IN_FILE_ONLY]
    assert shown == {"--" + name.replace("_", "-") for name in with_flag}


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_file_alone_sets_is_shown_with_its_section_and_default(family):
    parser = parser_of("--family", family)
    text = format_topic(parser, TOPICS, ALL)
    sections = {part.split("]")[0]: part for part in text.split("\n[")[1:]}
    kinds = {each.name: get_type_hints(RunOptions)[each.name] for each in fields(RunOptions)}
    kinds["model"] = next(kind for kind in TOPICS.kinds if kind().family == family)
    found = []
    for section, kind in kinds.items():
        names = [each.name for each in fields(kind) if each.name in IN_FILE_ONLY]
        found += names
        for name in names:
            entry = sections[section].split(f"\n  {name} = ")[1]
            assert "(default: " in " ".join(re.split(r"\n  ?\S", entry)[0].split())
    assert set(re.findall(r"^  (\w+) = ", text, re.MULTILINE)) == set(found)


def test_every_option_without_a_flag_is_one_of_a_run_and_can_be_set_in_a_file(tmp_path):
    default = to_plain(RunOptions())
    for name in IN_FILE_ONLY:
        section = next(each for each, options in default.items() if name in options)
        file = {section: {name: default[section][name]}}
        (tmp_path / "options.toml").write_text(write_toml(file), encoding="utf-8")
        said = read_toml(tmp_path / "options.toml")
        assert from_plain(RunOptions, said, place="file") == RunOptions()
        with pytest.raises(OptionError, match=rf"below “\[{section}\]” in a TOML file"):
            build_parser("train").parse(["train", "--out", "x", f"--{name.replace('_', '-')}=1"])


def test_defaults_and_texts_are_those_of_the_family():
    text = format_topic(parser_of("--family=luong"), TOPICS, "model")
    assert "model: luong:\n  Global and local attention" in text
    assert "cells of a layer (default: 1000)" in text
    assert owners_of(parser_of(), "half_width") == ("luong",)


def test_every_option_shows_its_default():
    parser = parser_of()
    for entry in format_topic(parser, TOPICS, ALL).replace("\n" + " " * 34, " ").splitlines():
        if entry.strip().startswith("--"):
            said = " ".join(entry.split())
            assert any(each in said for each in ("(default: ", "(required)", "else ")), said


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--source", "a", "--help"]])
def test_help_is_printed(words, capsys):
    with pytest.raises(SystemExit) as stop:
        build_parser("train").parse(["train", *words])
    assert stop.value.code == 0
    assert "usage: dragoman train --source FILE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--help", "modle"], "invalid choice: 'modle'"),
        (["--help", "--family", "luon"], "argument --family: invalid choice: 'luon'"),
    ],
)
def test_complains_of_what_it_does_not_know(words, message):
    with pytest.raises(OptionError, match=message):
        build_parser("train").parse(["train", *words])
