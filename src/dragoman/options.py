"""Options: frozen dataclasses to and from plain dictionaries and TOML text.

A run is configured in layers, each a nested dictionary that holds only what was said there:
defaults (the dataclasses) < preset < TOML file < flags.
"""

import dataclasses
import difflib
import json
import re
import sys
import tomllib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from dragoman.errors import OptionError
from dragoman.files import read_small

LARGEST_FILE = 1 << 20
# The standard library's parser takes gigabytes for a key of 50,000 parts.
DEEP_KEY = re.compile(rb"(?:[^.\s=]{1,64}[ \t]*\.[ \t]*){64}")
Plain = dict[str, Any]
OFF = "off"


def option(default: Any, help: str, words: tuple[str, ...] = ()) -> Any:  # noqa: ANN401
    """Declare one field of an options dataclass.

    Parameters
    ----------
    default : Any
        Its value when nobody says otherwise.
    help : str
        What it means, in one line for ``--help``.
    words : tuple[str, ...]
        What a file or the command line may say instead of a value. Whoever puts the layers
        together must understand them: the dataclass has values only.
    """
    return dataclasses.field(default=default, metadata={"help": help, "words": words})


def to_plain(options: Any) -> Plain:  # noqa: ANN401
    """Convert an options dataclass to a nested dictionary; None becomes “off”."""
    plain: Plain = {}
    for each in dataclasses.fields(options):
        value = getattr(options, each.name)
        if dataclasses.is_dataclass(value):
            plain[each.name] = to_plain(value)
        elif value is not None:
            plain[each.name] = list(value) if isinstance(value, tuple) else value
        else:
            plain[each.name] = OFF
    return plain


def from_plain(kind: Any, plain: Mapping[str, Any], *, place: str) -> Any:  # noqa: ANN401
    """Build an options dataclass from a nested dictionary, checking names and types.

    Parameters
    ----------
    kind : Any
        The dataclass, or a union of dataclasses, of which the first field of each says which one
        is meant, as ``family`` does for models.
    plain : Mapping[str, Any]
        The values that differ from its defaults.
    place : str
        Where they were said, for error messages.
    """
    if not isinstance(plain, Mapping):
        raise OptionError(f"{place} is {plain!r}, but must be a section of options")
    kinds = section_kinds(kind)
    chosen = _choose_kind(kinds, plain, place)
    hints = get_type_hints(chosen)
    values: Plain = {}
    for name, value in plain.items():
        _check_name(name, hints, place, others=kinds)
        hint = hints[name]
        if section_kinds(hint):
            _check_section(name, value, place)
            values[name] = from_plain(hint, value, place=place)
        else:
            values[name] = _checked(value, hint, f"{place}: {name}")
    return chosen(**values)


def from_section(kind: Any, config: Mapping[str, Any], name: str, path: Path) -> Any:  # noqa: ANN401
    """Build an options dataclass from a section of a file, named in errors."""
    place = f"{path}: {name}"
    try:
        return from_plain(kind, config.get(name, {}), place=place)
    except OptionError as error:
        said = str(error)
        raise OptionError(said if said.startswith(place) else f"{place}: {said}") from None


def check_names(kind: Any, plain: Mapping[str, Any], *, place: str) -> None:  # noqa: ANN401
    """Refuse names that an options dataclass does not have."""
    hints: Plain = {}
    for each in section_kinds(kind):
        hints = get_type_hints(each) | hints
    for name, value in plain.items():
        _check_name(name, hints, place)
        if section_kinds(hints[name]):
            _check_section(name, value, place)
            check_names(hints[name], value, place=place)


def section_kinds(hint: Any) -> tuple[type, ...]:  # noqa: ANN401
    """List the dataclasses that a section of options may be.

    Returns
    -------
    tuple[type, ...]
        One for a plain section, several for a union of them, none for a single value.
    """
    members = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return members if all(dataclasses.is_dataclass(each) for each in members) else ()


def tag_of(kind: type) -> object:
    """Return the tag of a dataclass within its union."""
    return dataclasses.fields(kind)[0].default


def merge(*layers: Mapping[str, Any]) -> Plain:
    """Merge nested dictionaries, later ones over earlier ones."""
    merged: Plain = {}
    for layer in layers:
        for name, value in layer.items():
            below = merged.get(name)
            if isinstance(value, Mapping) and isinstance(below, Mapping):
                merged[name] = merge(below, value)
            else:
                merged[name] = value
    return merged


def suggest(name: str, known: Iterable[str]) -> str:
    """Return the known name nearest to a mistyped one."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean “{near[0]}”?"
    return f"; known: {', '.join(names)}" if len(names) <= 12 else ""


def read_toml(path: Path) -> Plain:
    """Read a TOML file."""
    try:
        contents = read_small(path, LARGEST_FILE)
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    return parse_toml(contents, path)


def parse_toml(contents: bytes, path: Path) -> Plain:
    """Parse the contents of a TOML file."""
    if DEEP_KEY.search(contents):
        raise OptionError(f"{path}: not a TOML file of options (a key of over 64 parts); mend it")
    try:
        return tomllib.loads(contents.decode())
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is a ValueError too
        raise OptionError(f"{path}: not a TOML file ({error}); mend it") from None


def write_toml(plain: Mapping[str, Any]) -> str:
    """Write a dictionary of at most one level of sections as TOML."""
    lines = [f"{name} = {_toml(value)}" for name, value in plain.items() if not _is_section(value)]
    for name, section in plain.items():
        if _is_section(section):
            lines += ["", f"[{name}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in section.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


def require(condition: bool, name: str, value: object, remedy: str) -> None:
    """Refuse an option's value unless a condition holds."""
    if not condition:
        raise OptionError(f"{name} is {value}: {remedy}")


def require_least(options: Any, **least: int) -> None:  # noqa: ANN401
    """Refuse options below their least values, each named as its flag."""
    for name, value in least.items():
        given = getattr(options, name)
        require(given >= value, "--" + name.replace("_", "-"), given, f"give ≥ {value}")


def _check_name(name: str, known: Iterable[str], place: str, others: tuple[type, ...] = ()) -> None:
    """Refuse a name that is unknown, or known only to other kinds."""
    if name in known:
        return
    owners = [
        str(tag_of(each))
        for each in others
        if name in {field.name for field in dataclasses.fields(each)}
    ]
    if owners:
        raise OptionError(f"{place}: “{name}” belongs to {' and '.join(owners)}; leave it out")
    raise OptionError(f"{place}: unknown option “{name}”{suggest(name, known)}")


def _check_section(name: str, value: object, place: str) -> None:
    """Refuse a single value where a section belongs."""
    if not isinstance(value, Mapping):
        raise OptionError(f"{place}: “{name}” is a section, found {value!r}")


def _choose_kind(kinds: tuple[type, ...], plain: Mapping[str, Any], place: str) -> type:
    """Choose the dataclass of a section by its tag; the first without one."""
    if len(kinds) == 1:
        return kinds[0]
    name = dataclasses.fields(kinds[0])[0].name
    by_tag = {tag_of(each): each for each in kinds}
    said = plain.get(name, tag_of(kinds[0]))
    if said not in list(by_tag):  # a list, since what is said may have no hash
        raise OptionError(f"{place}: unknown {name} “{said}”{suggest(str(said), map(str, by_tag))}")
    return by_tag[said]


def _is_section(value: object) -> bool:
    return isinstance(value, Mapping)


def _toml(value: object) -> str:
    """Serialise one TOML value; JSON's strings, numbers, booleans and lists are TOML's too."""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def without_none(hint: Any) -> Any:  # noqa: ANN401
    """Reduce ``X | None`` to X."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint


def _checked(value: Any, hint: Any, place: str) -> Any:  # noqa: ANN401
    """Return a value in its field's type, or refuse it."""
    inner = without_none(hint)
    if inner is not hint and (value is None or value == OFF):
        return None
    if get_origin(inner) is Literal:
        if value in get_args(inner):
            return value
        wanted = " or ".join(f"“{each}”" for each in get_args(inner))
    elif get_origin(inner) is tuple:
        member = get_args(inner)[0]
        if isinstance(value, list | tuple) and all(_is_a(each, member) for each in value):
            return tuple(member(each) for each in value)
        wanted = "a list of numbers" if member is float else "a list of strings"
    elif _is_a(value, inner):
        return float(value) if inner is float else value
    else:
        wanted = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}[
            inner
        ]
    raise OptionError(f"{place} is {_short(value)}, but must be {wanted}")


def _short(value: object) -> str:
    """Abbreviate a value for a message."""
    shown = repr(value)
    return shown if len(shown) <= 200 else f"{shown[:200]}…"


def _is_a(value: object, kind: type) -> bool:
    """Say whether a value has a type; an int is a float, a bool is no number."""
    if isinstance(value, bool):
        return kind is bool
    if kind is float and isinstance(value, int):
        return abs(value) <= sys.float_info.max
    return isinstance(value, kind)
