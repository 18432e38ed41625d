"""Options: there and back through TOML and flags, layer over layer, one line for every mistake."""

import dataclasses
import math
import tomllib
from dataclasses import dataclass, field
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import OptionError
from dragoman.options import (
    Parser,
    add_flags,
    from_plain,
    given_flags,
    merge,
    option,
    read_toml,
    require,
    suggest,
    to_plain,
    write_toml,
)
from dragoman.training.configuration import (
    RESUMABLE,
    RunOptions,
    resolve_options,
    resumed_options,
)


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How it looks.

    More of it.
    """

    width: int = option(4, "how wide, 100 % sure")
    scale: float = option(1.5, "how large")
    name: str = option("box", "what it is called")
    is_round: bool = option(False, "whether it rolls")
    colour: Literal["red", "blue"] = option("red", "how it shines")
    corners: int | None = option(None, "how many corners")
    weight: float | None = option(2.5, "how heavy")
    finish: Literal["matt", "gloss"] | None = option("matt", "how it feels")
    label: str | None = option(None, "what is on it")
    tags: tuple[str, ...] = option((), "what it belongs to")


@dataclass(frozen=True, kw_only=True)
class Thing:
    """A thing."""

    shape: Shape = field(default_factory=Shape)
    count: int = option(1, "how many")


numbers = st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))
shapes = st.builds(
    Shape,
    width=st.integers(-(2**63), 2**63 - 1),
    scale=numbers,
    name=texts,
    is_round=st.booleans(),
    colour=st.sampled_from(["red", "blue"]),
    corners=st.none() | st.integers(0, 99),
    weight=st.none() | numbers,
    finish=st.sampled_from(["matt", "gloss", None]),
    label=st.none() | texts.filter(lambda text: text != "off"),
    tags=st.lists(texts).map(tuple),
)
things = st.builds(Thing, shape=shapes, count=st.integers(0, 99))


def message_of(action):
    with pytest.raises(OptionError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message


def leaves(kind, section=""):
    """Every leaf field below a dataclass: (section, field, type)."""
    for each in dataclasses.fields(kind):
        hint = get_type_hints(kind)[each.name]
        if dataclasses.is_dataclass(hint):
            yield from leaves(hint, each.name)
        else:
            yield section, each, hint


# There and back


@given(things)
def test_a_dataclass_comes_back_from_toml(thing):
    text = write_toml(to_plain(thing))
    assert from_plain(Thing, tomllib.loads(text), place="here") == thing


@given(things)
def test_a_dataclass_comes_back_from_its_dictionary(thing):
    assert from_plain(Thing, to_plain(thing), place="here") == thing


def test_what_is_off_stays_off_in_a_run():
    """A run without a limit of steps must not get one when it is read back."""
    flags = {"training": {"max_steps": None, "max_epochs": 3}, "corpus": {"max_length_ratio": None}}
    _, options = resolve_options("tiny", {}, flags, 10)
    assert options.training.max_steps is None
    assert options.corpus.max_length_ratio is None
    saved = tomllib.loads(write_toml(to_plain(options)))
    assert from_plain(RunOptions, saved, place="config.toml") == options
    assert resumed_options(saved, {}) == options


values = numbers | texts | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.lists(texts)


@given(st.dictionaries(st.sampled_from(["a", "b_c", "d-e"]), values))
@example({"a": "\x7f", "b_c": ["\x00", "\u2028", '"\\'], "d-e": -0.0})
@example({"a": math.inf, "b_c": -math.inf, "d-e": 1e22})
def test_toml_is_read_back(plain):
    assert tomllib.loads(write_toml({"section": plain, "top": 1})) == {"section": plain, "top": 1}


def test_toml_keeps_numbers_in_their_kind():
    text = write_toml({"whole": 3, "part": 3.0, "small": 1e-9, "large": 1e300, "endless": math.inf})
    read = tomllib.loads(text)
    assert [type(value) for value in read.values()] == [int, float, float, float, float]
    assert read == {"whole": 3, "part": 3.0, "small": 1e-9, "large": 1e300, "endless": math.inf}


def test_single_values_come_before_sections():
    text = write_toml({"section": {"a": 1}, "top": "x"})
    assert text == 'top = "x"\n\n[section]\na = 1\n'


def test_whole_numbers_serve_as_numbers():
    assert from_plain(Shape, {"scale": 3}, place="here").scale == 3.0
    assert isinstance(from_plain(Shape, {"scale": 3}, place="here").scale, float)


# Files


def test_reads_a_file(tmp_path):
    (tmp_path / "options.toml").write_text('[shape]\nname = "Bäume"\n', encoding="utf-8")
    assert read_toml(tmp_path / "options.toml") == {"shape": {"name": "Bäume"}}


def test_missing_file(tmp_path):
    path = tmp_path / "nowhere.toml"
    assert message_of(lambda: read_toml(path)) == (
        f"{path}: cannot be read (No such file or directory); check the path"
    )


@pytest.mark.parametrize("raw", [b"[section", b"a = \n", b"\xff", b"a = 1\na = 2\n"])
def test_damaged_file(tmp_path, raw):
    path = tmp_path / "options.toml"
    path.write_bytes(raw)
    message = message_of(lambda: read_toml(path))
    assert message.startswith(f"{path}: not a TOML file (")
    assert message.endswith("); mend it")


# Layers


plains = st.recursive(
    st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner), max_leaves=6
).filter(lambda value: isinstance(value, dict))


def test_later_layers_win_leaf_by_leaf():
    layers = ({"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": 4}}, {"a": {"z": 5}, "b": 6})
    assert merge(*layers) == {"a": {"x": 1, "y": 4, "z": 5}, "b": 6}
    assert layers[0] == {"a": {"x": 1, "y": 2}, "b": 3}


@given(plains, plains, plains)
def test_merging_may_be_bracketed_either_way(one, two, three):
    assert merge(one, {}) == merge({}, one) == merge(one, one) == one
    assert merge(merge(one, two), three) == merge(one, two, three)


def test_defaults_preset_file_flags():
    file = {"model": {"dropout": 0.25, "num_heads": 2}, "training": {"seed": 5}}
    flags = {"model": {"num_heads": 8}}
    name, options = resolve_options("tiny", file, flags, 100)
    assert name == "tiny"
    assert options.model.num_heads == 8
    assert options.model.dropout == 0.25
    assert options.training.seed == 5
    assert options.model.model_dim == 128
    assert options.search == RunOptions().search


# Mistakes in files


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"shap": {}}, "here: unknown option “shap”; did you mean “shape”?"),
        ({"shape": {"widht": 3}}, "here: unknown option “widht”; did you mean “width”?"),
        ({"zzz": 1}, "here: unknown option “zzz”; known: shape, count"),
        ({"shape": 3}, "here: “shape” is a section, found 3"),
        ({"count": "x"}, "here: count is 'x', but must be a whole number"),
        ({"count": 1.5}, "here: count is 1.5, but must be a whole number"),
        ({"count": True}, "here: count is True, but must be a whole number"),
        ({"shape": {"scale": "x"}}, "here: scale is 'x', but must be a number"),
        ({"shape": {"scale": True}}, "here: scale is True, but must be a number"),
        ({"shape": {"name": 3}}, "here: name is 3, but must be a string"),
        ({"shape": {"is_round": 1}}, "here: is_round is 1, but must be true or false"),
        ({"shape": {"colour": "pink"}}, "here: colour is 'pink', but must be “red” or “blue”"),
        ({"shape": {"corners": "many"}}, "here: corners is 'many', but must be a whole number"),
        ({"shape": {"tags": "x"}}, "here: tags is 'x', but must be a list of strings"),
        ({"shape": {"tags": [1]}}, "here: tags is [1], but must be a list of strings"),
        ({"shape": {"width": None}}, "here: width is None, but must be a whole number"),
    ],
)
def test_complains_of_a_file(plain, message):
    assert message_of(lambda: from_plain(Thing, plain, place="here")) == message


@pytest.mark.parametrize("name", ["corners", "weight", "finish", "label"])
def test_off_can_be_said_in_a_file(name):
    plain = tomllib.loads(f'[shape]\n{name} = "off"\n')
    assert getattr(from_plain(Thing, plain, place="here").shape, name) is None


def test_suggestions():
    assert suggest("num_head", ["num_heads", "dropout"]) == "; did you mean “num_heads”?"
    assert suggest("zzz", ["one", "two"]) == "; known: one, two"
    assert suggest("zzz", [f"name{number}" for number in range(13)]) == ""


def test_require():
    require(True, "x", 1, "must be good")
    assert message_of(lambda: require(False, "x", 1, "must be good")) == "x is 1: must be good"


# Flags


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
        elif get_origin(hint) is tuple:
            tags = [tag for tag in value if tag and not tag.startswith("-")]
            words += [flag, *tags] if tags else []
        else:
            words.append(f"{flag}={'off' if value is None else value}")
    found = from_plain(Thing, parse(words), place="flags")
    tags = tuple(tag for tag in thing.shape.tags if tag and not tag.startswith("-"))
    assert found == dataclasses.replace(thing, shape=dataclasses.replace(thing.shape, tags=tags))


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
        "How it looks.",
    ):  # fmt: skip
        assert part in text
    assert "More of it." not in text


# The options of a run


def test_leaf_names_are_unique_in_a_run():
    names = [each.name for _, each, _ in leaves(RunOptions)]
    assert len(names) == len(set(names)) > 40


@pytest.mark.parametrize("name", [each.name for _, each, _ in leaves(RunOptions)])
def test_every_flag_of_a_run_has_help(name):
    (each,) = [each for _, each, _ in leaves(RunOptions) if each.name == name]
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
