"""Options: there and back through TOML, layer over layer, one line for every mistake."""

import math
import tomllib
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.sample_options import Shape, Thing, message_of, numbers, texts, things

from dragoman.options import (
    check_names,
    from_plain,
    merge,
    option,
    read_toml,
    require,
    suggest,
    to_plain,
    write_toml,
)
from dragoman.training.configuration import (
    RunOptions,
    resolve_options,
    resumed_options,
)

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
        ({"shape": {"shares": 2.0}}, "here: shares is 2.0, but must be a list of numbers"),
        (
            {"shape": {"shares": [1, "x"]}},
            "here: shares is [1, 'x'], but must be a list of numbers",
        ),
        ({"shape": {"shares": [True]}}, "here: shares is [True], but must be a list of numbers"),
        ({"shape": {"width": None}}, "here: width is None, but must be a whole number"),
    ],
)
def test_complains_of_a_file(plain, message):
    assert message_of(lambda: from_plain(Thing, plain, place="here")) == message


@pytest.mark.parametrize("name", ["corners", "weight", "finish", "label", "shares"])
def test_off_can_be_said_in_a_file(name):
    plain = tomllib.loads(f'[shape]\n{name} = "off"\n')
    assert getattr(from_plain(Thing, plain, place="here").shape, name) is None


def test_a_list_of_numbers_may_have_whole_ones():
    shares = from_plain(Thing, {"shape": {"shares": [1, 2.5]}}, place="here").shape.shares
    assert shares == (1.0, 2.5)
    assert all(isinstance(share, float) for share in shares)


def test_suggestions():
    assert suggest("num_head", ["num_heads", "dropout"]) == "; did you mean “num_heads”?"
    assert suggest("zzz", ["one", "two"]) == "; known: one, two"
    assert suggest("zzz", [f"name{number}" for number in range(13)]) == ""


def test_require():
    require(True, "x", 1, "must be good")
    assert message_of(lambda: require(False, "x", 1, "must be good")) == "x is 1: must be good"


# Sections of several kinds


@dataclass(frozen=True, kw_only=True)
class Round:
    """A round thing."""

    form: Literal["round"] = option("round", "its form")
    size: int = option(4, "how large")
    radius: float = option(1.5, "how far out")


@dataclass(frozen=True, kw_only=True)
class Square:
    """A square thing."""

    form: Literal["square"] = option("square", "its form")
    size: int = option(9, "how large")
    side: float = option(2.5, "how long a side")


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Holds one of them."""

    thing: Round | Square = field(default_factory=Round)


@pytest.mark.parametrize("thing", [Round(), Square(), Round(radius=3.0), Square(size=1, side=7.0)])
def test_the_first_field_says_which_kind_is_meant(thing):
    holder = Holder(thing=thing)
    assert from_plain(Holder, to_plain(holder), place="here") == holder
    assert from_plain(Round | Square, to_plain(thing), place="here") == thing


def test_without_a_word_the_first_kind_is_meant():
    assert from_plain(Holder, {"thing": {"size": 5}}, place="here") == Holder(thing=Round(size=5))


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"form": "square", "radius": 1.0}, "here: “radius” belongs to round; leave it out"),
        ({"form": "round", "side": 1.0}, "here: “side” belongs to square; leave it out"),
        ({"form": "rond"}, "here: unknown form “rond”; did you mean “round”?"),
        ({"form": ["round"]}, "here: unknown form “['round']”; did you mean “round”?"),
        ({"form": "round", "raduis": 1.0}, "here: unknown option “raduis”; did you mean “radius”?"),
    ],
)
def test_complains_of_the_wrong_kind(plain, message):
    assert message_of(lambda: from_plain(Holder, {"thing": plain}, place="here")) == message


def test_names_of_every_kind_are_known_before_one_is_chosen():
    check_names(Holder, {"thing": {"side": 1, "radius": 2}}, place="here")
    message = message_of(lambda: check_names(Holder, {"thing": {"sied": 1}}, place="here"))
    assert message.startswith("here: unknown option “sied”")


def test_a_section_is_no_single_value():
    message = message_of(lambda: check_names(Holder, {"thing": 3}, place="here"))
    assert message == "here: “thing” is a section, found 3"
