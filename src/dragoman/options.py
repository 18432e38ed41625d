"""Options: frozen dataclasses to and from plain dictionaries, TOML text and command-line flags.

A run is configured in layers, each a nested dictionary that holds only what was said there:
defaults (the dataclasses) < preset < TOML file < flags. Flags are made from the dataclasses'
leaf fields, whose names are unique within a run, so ``model.num_heads`` is ``--num-heads``.
"""

import argparse
import dataclasses
import difflib
import json
import tomllib
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

from dragoman.errors import OptionError

Options = TypeVar("Options")
Plain = dict[str, Any]
OFF = "off"


def option(default: Any, help: str) -> Any:  # noqa: ANN401
    """Declare one field of an options dataclass.

    Parameters
    ----------
    default : Any
        Its value when nobody says otherwise.
    help : str
        What it means, in one line for ``--help``.

    Returns
    -------
    Any
        A dataclass field.
    """
    return dataclasses.field(default=default, metadata={"help": help})


def to_plain(options: Any) -> Plain:  # noqa: ANN401
    """Turn an options dataclass into a nested dictionary in which what is off says “off”.

    Parameters
    ----------
    options : Any
        A dataclass, possibly nested.

    Returns
    -------
    dict[str, Any]
        Only strings, numbers, booleans, lists and dictionaries.
    """
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


def from_plain(kind: type[Options], plain: Mapping[str, Any], *, place: str) -> Options:
    """Build an options dataclass from a nested dictionary, checking names and types.

    Parameters
    ----------
    kind : type[Options]
        The dataclass.
    plain : Mapping[str, Any]
        The values that differ from its defaults.
    place : str
        Where they were said, for error messages.

    Returns
    -------
    Options
        The dataclass with those values.
    """
    if not isinstance(plain, Mapping):
        raise OptionError(f"{place} is {plain!r}, but must be a section of options")
    hints = get_type_hints(kind)
    known = [each.name for each in dataclasses.fields(kind)]  # type: ignore[arg-type]
    values: Plain = {}
    for name, value in plain.items():
        _check_name(name, known, place)
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            if not isinstance(value, Mapping):
                raise OptionError(f"{place}: “{name}” is a section, found {value!r}")
            values[name] = from_plain(hint, value, place=place)  # type: ignore[arg-type]
        else:
            values[name] = _checked(value, hint, f"{place}: {name}")
    return kind(**values)


def check_names(kind: type, plain: Mapping[str, Any], *, place: str) -> None:
    """Complain about names that an options dataclass does not have.

    Parameters
    ----------
    kind : type
        The dataclass.
    plain : Mapping[str, Any]
        A nested dictionary.
    place : str
        Where it comes from.
    """
    hints = get_type_hints(kind)
    for name, value in plain.items():
        _check_name(name, hints, place)
        if dataclasses.is_dataclass(hints[name]) and isinstance(value, Mapping):
            check_names(hints[name], value, place=place)


def merge(*layers: Mapping[str, Any]) -> Plain:
    """Lay nested dictionaries over one another.

    Parameters
    ----------
    *layers : Mapping[str, Any]
        The later wins, leaf by leaf.

    Returns
    -------
    dict[str, Any]
        A new dictionary.
    """
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
    """Say which known name was probably meant.

    Parameters
    ----------
    name : str
        The unknown name.
    known : Iterable[str]
        The names there are.

    Returns
    -------
    str
        “; did you mean …?”, or a list of the known names if none is near.
    """
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"; did you mean “{near[0]}”?"
    return f"; known: {', '.join(names)}" if len(names) <= 12 else ""


def read_toml(path: Path) -> Plain:
    """Read a TOML file.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    dict[str, Any]
        Its contents.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: not a TOML file ({error}); mend it") from None


def write_toml(plain: Mapping[str, Any]) -> str:
    """Write a dictionary of at most one level of sections as TOML.

    Parameters
    ----------
    plain : Mapping[str, Any]
        As `to_plain` makes it.

    Returns
    -------
    str
        TOML text that `read_toml` reads back to the same dictionary.
    """
    lines = [f"{name} = {_toml(value)}" for name, value in plain.items() if not _is_section(value)]
    for name, section in plain.items():
        if _is_section(section):
            lines += ["", f"[{name}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in section.items()]
    return "\n".join(lines).lstrip("\n") + "\n"


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are `OptionError` and suggest the nearest flag."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        kwargs |= {"formatter_class": _HelpFormatter, "allow_abbrev": False}
        super().__init__(**kwargs)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage.

        Parameters
        ----------
        message : str
            What argparse says.
        """
        raise OptionError(f"{self.prog}: {message}; see “{self.prog} --help”")

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        """Parse every argument, or say which one is unknown and which flag is nearest.

        Parameters
        ----------
        arguments : list[str]
            The words after the command.

        Returns
        -------
        argparse.Namespace
            The values; flags made by `add_flags` only if they were given.
        """
        namespace, unknown = self.parse_known_args(arguments)
        if unknown:
            parser = getattr(namespace, "parser", self)
            flags = [flag for action in parser._actions for flag in action.option_strings]
            word = next((each for each in unknown if each.startswith("-")), unknown[0])
            name = word.split("=", 1)[0]
            what = "option" if word.startswith("-") else "argument"
            raise OptionError(f"{parser.prog}: unknown {what} “{name}”{suggest(name, flags)}")
        return namespace


class _HelpFormatter(argparse.HelpFormatter):
    """Columns a little wider than argparse's own."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=100)


def add_flags(parser: argparse.ArgumentParser, kind: type) -> None:
    """Give the parser one flag for every leaf field of an options dataclass.

    Parameters
    ----------
    parser : argparse.ArgumentParser
        Where to add them; nested dataclasses become groups.
    kind : type
        The dataclass. Its flags are absent from the result unless given, so that layers can be
        laid over one another.
    """
    hints = get_type_hints(kind)
    for each in dataclasses.fields(kind):
        hint = hints[each.name]
        if dataclasses.is_dataclass(hint):
            doc = (hint.__doc__ or "").strip().split("\n")[0]
            add_flags(parser.add_argument_group(each.name, doc), hint)  # type: ignore[arg-type]
            continue
        flag = "--" + each.name.replace("_", "-")
        text = each.metadata.get("help", "").replace("%", "%%")
        if each.default is not None and each.default != () and not isinstance(each.default, bool):
            text += f" (default: {each.default})"
        kwargs: Plain = {"dest": each.name, "default": argparse.SUPPRESS, "help": text}
        inner = _without_none(hint)
        if inner is bool:
            kwargs["action"] = argparse.BooleanOptionalAction
        elif get_origin(inner) is tuple:
            kwargs |= {"nargs": "+", "metavar": "X"}
        elif get_origin(inner) is Literal:
            kwargs |= {"choices": get_args(inner)}
        else:
            kwargs |= {"type": inner, "metavar": inner.__name__.upper()}
        if inner is not hint and inner is not bool and get_origin(inner) is not tuple:
            kwargs |= {"type": _off_or(inner), "metavar": f"{_metavar(inner)}|off"}
            kwargs.pop("choices", None)
        parser.add_argument(flag, **kwargs)


def given_flags(namespace: argparse.Namespace, kind: type) -> Plain:
    """Collect the flags of `add_flags` that were given on the command line.

    Parameters
    ----------
    namespace : argparse.Namespace
        What the parser returned.
    kind : type
        The dataclass whose flags they are.

    Returns
    -------
    dict[str, Any]
        A nested dictionary, for `merge`.
    """
    given: Plain = {}
    hints = get_type_hints(kind)
    for each in dataclasses.fields(kind):
        if dataclasses.is_dataclass(hints[each.name]):
            section = given_flags(namespace, hints[each.name])
            if section:
                given[each.name] = section
        elif hasattr(namespace, each.name):
            given[each.name] = getattr(namespace, each.name)
    return given


def require(condition: bool, name: str, value: object, remedy: str) -> None:
    """Check one option's value.

    Parameters
    ----------
    condition : bool
        Whether the value is good.
    name : str
        The option's name.
    value : object
        What was found.
    remedy : str
        What would be right.
    """
    if not condition:
        raise OptionError(f"{name} is {value}: {remedy}")


def _check_name(name: str, known: Iterable[str], place: str) -> None:
    """Complain about a name that is not known."""
    if name not in known:
        raise OptionError(f"{place}: unknown option “{name}”{suggest(name, known)}")


def _is_section(value: object) -> bool:
    return isinstance(value, Mapping)


def _toml(value: object) -> str:
    """One TOML value; JSON's strings, numbers, booleans and lists are TOML's too."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _without_none(hint: Any) -> Any:  # noqa: ANN401
    """Reduce ``X | None`` to X."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint


def _metavar(inner: Any) -> str:  # noqa: ANN401
    """Name the values a flag takes."""
    return "|".join(get_args(inner)) if get_origin(inner) is Literal else inner.__name__.upper()


def _off_or(inner: Any) -> Any:  # noqa: ANN401
    """Make a converter in which the word “off” says None."""

    def convert(text: str) -> Any:  # noqa: ANN401
        if text == OFF:
            return None
        if get_origin(inner) is Literal:
            if text not in get_args(inner):
                raise argparse.ArgumentTypeError(f"{text!r} is not one of {_metavar(inner)}, off")
            return text
        try:
            return inner(text)
        except ValueError:
            message = f"{text!r} is neither {inner.__name__} nor “off”"
            raise argparse.ArgumentTypeError(message) from None

    return convert


def _checked(value: Any, hint: Any, place: str) -> Any:  # noqa: ANN401
    """Return the value in the type its field wants, or complain."""
    inner = _without_none(hint)
    if inner is not hint and (value is None or value == OFF):
        return None
    if get_origin(inner) is Literal:
        if value in get_args(inner):
            return value
        wanted = " or ".join(f"“{each}”" for each in get_args(inner))
    elif get_origin(inner) is tuple:
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            return tuple(value)
        wanted = "a list of strings"
    elif inner is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif isinstance(value, inner) and (inner is bool or not isinstance(value, bool)):
        return value
    else:
        wanted = {int: "a whole number", float: "a number", str: "a string", bool: "true or false"}[
            inner
        ]
    raise OptionError(f"{place} is {value!r}, but must be {wanted}")
