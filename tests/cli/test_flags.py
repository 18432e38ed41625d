"""Flags: made from options dataclasses, and saying what a dictionary says."""

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sample_options import Thing, message_of, things

from dragoman.cli.flags import Parser, add_flags, given_flags
from dragoman.errors import OptionError
from dragoman.options import from_plain, merge, option, section_kinds, to_plain, write_toml
from dragoman.training.configuration import RESUMABLE, RunOptions


def leaves(kind, section=""):
    """Every leaf field below a dataclass: (section, field, type)."""
    for each in dataclasses.fields(kind):
        hint = get_type_hints(kind)[each.name]
        for member in section_kinds(hint):
            yield from leaves(member, each.name)
        if not section_kinds(hint):
            yield section, each, hint


def parse(words, kind=Thing):
    parser = Parser(prog="tool")
    add_flags(parser, kind)
    return given_flags(parser.parse(words), kind)


def test_only_what_is_said_is_given():
    assert parse([]) == {}
    assert parse(["--width", "7", "--count", "2"]) == {"shape": {"width": 7}, "count": 2}


@given(thing=things, data=st.data())
def test_flags_say_what_a_dictionary_says(thing, data):
    words = []
    for _, each, hint in leaves(Thing):
        owner = thing if hasattr(thing, each.name) else thing.shape
        value = getattr(owner, each.name)
        flag = "--" + each.name.replace("_", "-")
        if hint is bool:
            words.append(flag if value else flag.replace("--", "--no-", 1))
        elif each.name == "shares":  # some numbers look like flags
            continue
        elif get_origin(hint) is tuple:
            tags = [tag for tag in value if tag and not tag.startswith("-")]
            words += [flag, *tags] if tags else []
        else:
            words.append(f"{flag}={'off' if value is None else value}")
    found = from_plain(Thing, parse(words), place="flags")
    tags = tuple(tag for tag in thing.shape.tags if tag and not tag.startswith("-"))
    shape = dataclasses.replace(thing.shape, tags=tags, shares=None)
    assert found == dataclasses.replace(thing, shape=shape)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--corners", "off"], {"corners": None}),
        (["--weight", "off"], {"weight": None}),
        (["--finish", "off"], {"finish": None}),
        (["--finish", "gloss"], {"finish": "gloss"}),
        (["--is-round"], {"is_round": True}),
        (["--no-is-round"], {"is_round": False}),
        (["--tags", "a", "b"], {"tags": ["a", "b"]}),
        (["--shares", "1", "0.5", "-2"], {"shares": [1.0, 0.5, -2.0]}),
        (["--shares", "off"], {"shares": None}),
    ],
)
def test_flags_of_every_kind(words, expected):
    assert parse(words) == {"shape": expected}


def test_a_flag_may_turn_off_what_a_file_says():
    layers = merge({"shape": {"weight": 3.0}}, parse(["--weight", "off"]))
    assert from_plain(Thing, layers, place="here").shape.weight is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--widht", "3"], "tool: unknown option “--widht”; did you mean “--width”?"),
        (["--widht=3"], "tool: unknown option “--widht”; did you mean “--width”?"),
        (["--qqqqqqqqq"], "tool: unknown option “--qqqqqqqqq”"),
        (["--wid", "3"], "tool: unknown option “--wid”; did you mean “--width”?"),
        (["stray"], "tool: unknown argument “stray”"),
        (
            ["--width", "x"],
            "tool: argument --width: invalid int value: 'x'; see “tool --help”",
        ),
        (["--width"], "tool: argument --width: expected one argument; see “tool --help”"),
        (
            ["--corners", "x"],
            "tool: argument --corners: 'x' is neither int nor “off”; see “tool --help”",
        ),
        (
            ["--finish", "x"],
            "tool: argument --finish: 'x' is not one of matt|gloss, off; see “tool --help”",
        ),
        (
            ["--shares", "1", "x"],
            "tool: argument --shares: 'x' is neither float nor “off”; see “tool --help”",
        ),
    ],
)
def test_complains_of_flags(words, message):
    assert message_of(lambda: parse(words)) == message


def test_complains_of_a_wrong_choice():
    message = message_of(lambda: parse(["--colour", "pink"]))
    assert message.startswith("tool: argument --colour: invalid choice: 'pink'")


def test_help_names_every_flag_and_default():
    parser = Parser(prog="tool")
    add_flags(parser, Thing)
    text = parser.format_help()
    for part in (
        "--width INT", "how wide, 100 % sure (default: 4)", "--corners INT|off",
        "--weight FLOAT|off",
        "--is-round, --no-is-round", "--colour {red,blue}", "--finish matt|gloss|off",
        "--tags X [X ...]",
        "How it looks.", "how many corners (default: off)", "whether it rolls (default: no)",
        "what it belongs to (default: none)", "how heavy (default: 2.5)",
    ):  # fmt: skip
        assert part in text
    assert "More of it." not in text


def test_an_option_without_a_flag_is_set_in_a_file_and_says_so():
    parser = Parser(prog="tool")
    add_flags(parser, Thing, {"corners", "is_round"})
    assert "--corners" not in parser.format_help()
    assert [each.dest for each in parser.in_file_only["shape"]] == ["is_round", "corners"]
    said = [each.metavar for each in parser.in_file_only["shape"]]
    assert said == ["is_round = true|false", "corners = INT|off"]
    for flag, name in (("--corners=3", "corners"), ("--no-is-round", "is_round")):
        assert message_of(lambda: parser.parse([flag])) == (  # noqa: B023
            f"tool: {flag.split('=')[0]} is no flag: write “{name} = …” below “[shape]” in a TOML "
            "file, and give that as --config"
        )


def test_help_shows_the_defaults_of_plain_flags():
    parser = Parser(prog="tool")
    parser.add_argument("place", help="where")
    parser.add_argument("--out", required=True, help="there")
    parser.add_argument("--loud", action="store_true", help="or not")
    parser.add_argument("--share", type=int, default=3, metavar="N", help="of 100 %%")
    parser.add_argument("--names", nargs="+", default=[], help="of them")
    parser.add_argument("--code", help="such as de; else from file names")
    text = parser.format_help()
    for part in (
        "there (required)", "or not (default: no)", "of 100 % (default: 3)",
        "of them (default: none)", "else from file names\n", "where\n",
    ):  # fmt: skip
        assert part in text


@dataclass(frozen=True, kw_only=True)
class Circle:
    """Something round."""

    form: Literal["circle"] = option("circle", "the kind of thing")
    width: int = option(4, "across")
    radius: int = option(2, "from the middle")


@dataclass(frozen=True, kw_only=True)
class Square:
    """Something with corners."""

    form: Literal["square"] = option("square", "the kind of thing")
    width: int = option(7, "along a side")


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A drawing."""

    thing: Circle | Square = field(default_factory=Circle)


@pytest.mark.parametrize(
    ("kind", "text"), [(None, "across (default: 4)"), ("square", "along a side (default: 7)")]
)
def test_help_speaks_of_the_kind_that_is_shown(kind, text):
    parser = Parser(prog="tool")
    add_flags(parser, Drawing)
    parser.shown_kind = kind
    assert text in parser.format_help()
    assert "--form {circle,square}" in parser.format_help()


# The options of a run


def test_names_are_unique_among_sections_and_mean_the_same_in_every_family():
    found = {}
    for section, each, hint in leaves(RunOptions):
        known = found.setdefault(each.name, (section, hint))
        assert known[0] == section
        assert known[1] == hint or each.name == "family"


def test_every_flag_of_a_run_has_help():
    for _, each, _ in leaves(RunOptions):
        assert len(each.metadata["help"]) > 10


def test_every_flag_of_a_run_is_parsed():
    parser = Parser(prog="tool")
    add_flags(parser, RunOptions)
    text = parser.format_help()
    for section, each, hint in leaves(RunOptions):
        flag = "--" + each.name.replace("_", "-")
        assert flag in text
        if type(None) in get_args(hint):
            words, value = [flag, "off"], None
        elif hint is bool:
            words, value = [flag], True
        elif get_origin(hint) is Literal:
            words, value = [flag, get_args(hint)[-1]], get_args(hint)[-1]
        elif hint is str:
            words, value = [flag, "2x8k3"], "2x8k3"
        else:
            words, value = [flag, "3"], hint(3)
        assert given_flags(parser.parse(words), RunOptions) == {section: {each.name: value}}


def test_resumable_options_exist():
    assert {each.name for _, each, _ in leaves(RunOptions)} >= RESUMABLE


@pytest.mark.parametrize("words", [["--max-minutes", "inf"], ["--length-penalty", "inf"]])
def test_endless_numbers_can_be_saved_or_are_refused(words):
    parser = Parser(prog="tool")
    add_flags(parser, RunOptions)
    try:
        flags = given_flags(parser.parse(words), RunOptions)
        options = from_plain(RunOptions, flags, place="flags")
    except OptionError:
        return
    saved = tomllib.loads(write_toml(to_plain(options)))
    assert from_plain(RunOptions, saved, place="config.toml") == options


@dataclass(frozen=True, kw_only=True)
class Sized:
    """Something whose size may be left open."""

    size: int = option(4, "how large", words=("auto", "any"))


def test_a_flag_may_take_words_beside_its_values():
    parser = Parser(prog="x")
    add_flags(parser, Sized)
    assert given_flags(parser.parse(["--size", "7"]), Sized) == {"size": 7}
    assert given_flags(parser.parse(["--size", "auto"]), Sized) == {"size": "auto"}
    assert "--size INT|auto|any" in parser.format_help()
    message = message_of(lambda: parser.parse(["--size", "big"]))
    assert "'big' is neither int nor “auto” nor “any”" in message


@pytest.mark.parametrize("words", ["m f --loud", "--loud m f", "m --loud f", "m --loud -- f"])
def test_an_argument_that_may_be_left_out_stands_anywhere(words):
    parser = Parser(prog="tool")
    parser.add_argument("model")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--loud", action="store_true")
    found = parser.parse(words.split())
    assert (found.model, found.file, found.loud) == ("m", Path("f"), True)
    assert parser.parse(["m", "--loud", "--", "-f"]).file == Path("-f")
    assert parser.parse(["m", "--loud"]).file is None
    assert "unknown argument “f”" in message_of(lambda: parser.parse(["m", "--loud", "f", "g"]))
    assert "unknown option “--luod”" in message_of(lambda: parser.parse(["m", "--luod", "f"]))
