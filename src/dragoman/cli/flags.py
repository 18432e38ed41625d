"""Command-line flags, made from the leaf fields of options dataclasses.

The names of the fields are unique within a run, so ``model.num_heads`` is ``--num-heads``.
"""

import argparse
import dataclasses
import importlib.util
from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, get_args, get_origin, get_type_hints

from dragoman.errors import OptionError
from dragoman.model_home import find_model
from dragoman.options import OFF, Plain, section_kinds, suggest, tag_of, without_none

SERVER_PACKAGES = (
    "starlette",
    "uvicorn",
    "python_multipart",
    "prometheus_client",
    "py3langid",
    "defusedxml",
    "pypdfium2",
    "markdown_it",
    "yaml",
    "websockets",
)
TEXT_FILES = "plain text, .gz or .xz, one sentence a line"


class Field(NamedTuple):
    """A field of options that has a flag."""

    section: str
    members: dict[object, dataclasses.Field]
    """The field in each kind of its section that has it."""

    def member_of(self, kind: object) -> dataclasses.Field:
        """Look the field up in a kind of section; in the first one if that lacks it."""
        return self.members.get(kind, next(iter(self.members.values())))


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are `OptionError` and suggest the nearest flag."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        kwargs["allow_abbrev"] = False
        self.words: list[str] = []
        self.fields: dict[str, Field] = {}
        self.in_file_only: dict[str, list[argparse.Action]] = {}
        self.shown_kind: object = None
        super().__init__(**kwargs)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse what is known; what help shows may depend on words that follow it."""
        self.words = list(args or ())
        return super().parse_known_args(args, namespace)

    def _get_formatter(self) -> argparse.HelpFormatter:
        return _HelpFormatter(self.prog, self.fields, self.shown_kind)

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        raise OptionError(f"{self.prog}: {message}; see “{self.prog} --help”")

    def parse(self, arguments: list[str]) -> argparse.Namespace:
        """Parse every argument, or say which one is unknown and which flag is nearest."""
        namespace, unknown = self.parse_known_args(arguments)
        parser: argparse.ArgumentParser = getattr(namespace, "parser", self)
        unknown = _take_late(parser, namespace, unknown)
        if unknown:
            flags = [flag for action in parser._actions for flag in action.option_strings]
            word = next((each for each in unknown if each.startswith("-")), unknown[0])
            name = word.split("=", 1)[0]
            _refuse_file_option(parser, name)
            what = "option" if word.startswith("-") else "argument"
            raise OptionError(f"{parser.prog}: unknown {what} “{name}”{suggest(name, flags)}")
        return namespace


def _refuse_file_option(parser: argparse.ArgumentParser, flag: str) -> None:
    """Say where an option is set that has no flag."""
    name = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
    for section, options in getattr(parser, "in_file_only", {}).items():
        if name in (each.dest for each in options):
            raise OptionError(
                f"{parser.prog}: {flag} is no flag: write “{name} = …” below “[{section}]” in a "
                "TOML file, and give that as --config"
            )


def _take_late(
    parser: argparse.ArgumentParser, namespace: argparse.Namespace, unknown: list[str]
) -> list[str]:
    """Take a word after the flags for an argument that may be left out, and give what remains.

    Python 3.11's argparse holds such an argument for left out as soon as a flag follows the others.
    """
    is_marked = unknown[:1] == ["--"]
    words = unknown[1:] if is_marked else unknown
    if len(words) != 1 or (words[0].startswith("-") and not is_marked):
        return unknown
    for action in parser._get_positional_actions():
        if action.nargs == "?" and getattr(namespace, action.dest) is action.default:
            setattr(namespace, action.dest, parser._get_value(action, words[0]))
            return []
    return unknown


class _HelpFormatter(argparse.HelpFormatter):
    """Columns a little wider than argparse's own, and the default of every option."""

    def __init__(self, prog: str, fields: dict[str, Field], kind: object) -> None:
        super().__init__(prog, max_help_position=34, width=100)
        self._fields = fields
        self._kind = kind

    def _get_help_string(self, action: argparse.Action) -> str:
        text, default, nothing = action.help or "", action.default, "none"
        if action.dest in self._fields:
            member = self._fields[action.dest].member_of(self._kind)
            text, default, nothing = _help_of(member), member.default, OFF
        says_itself = "default" in text or "else " in text
        is_argument = not (action.option_strings or action.dest in self._fields)
        if is_argument or says_itself or default is argparse.SUPPRESS:
            return text
        if action.required:
            return f"{text} (required)"
        shown = _show_default(default, nothing).replace("%", "%%")
        if isinstance(default, bool) and not action.option_strings:  # as a TOML file has it
            shown = str(default).lower()
        return f"{text} (default: {shown})"


def _help_of(field: dataclasses.Field) -> str:
    """Take a field's line of help, as argparse wants it."""
    return field.metadata.get("help", "").replace("%", "%%")


def _show_default(value: Any, nothing: str) -> str:  # noqa: ANN401
    """Write a default value as help shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value)) or "none"
    return str(value) if value not in (None, "") else nothing


def add_verb(
    verbs: argparse._SubParsersAction, name: str, text: str, run: object, *, add_help: bool = True
) -> Parser:
    """Add one verb to the command."""
    parser = verbs.add_parser(name, help=text, description=text, add_help=add_help)
    parser.set_defaults(run=run, parser=parser)
    return parser


def add_model(parser: Parser) -> None:
    """Let a user say which model, by its folder or by its name."""
    parser.add_argument(
        "model", type=find_model, metavar="MODEL",
        help="a model folder, or the name of an installed model",
    )  # fmt: skip


def add_device(parser: Parser) -> None:
    """Let a user say where to compute."""
    parser.add_argument(
        "--device", default="auto", choices=("auto", "cpu", "cuda", "mps"), help="where to compute"
    )


def add_languages(parser: Parser, text: str) -> None:
    """Let a user name the languages of a model."""
    for side, example in (("source", "de"), ("target", "en")):
        parser.add_argument(f"--{side}-language", metavar="CODE", help=f"such as {example}: {text}")


def add_allow_host(parser: Parser) -> None:
    """Let a user say by which names clients know the server."""
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a name by which browsers, clients or a proxy know the server, besides its address; "
        "may be given several times, * for any",
    )  # fmt: skip


def check_extra(verb: str) -> None:
    """Refuse to serve where the packages for it are not installed."""
    missing = [name for name in SERVER_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise OptionError(f'{verb} needs {missing[0]}: pip install "dragoman[serve]"')


def add_flags(parser: Parser, kind: type, in_file_only: Collection[str] = ()) -> None:
    """Give the parser one flag for every leaf field of an options dataclass.

    Parameters
    ----------
    parser : Parser
        Where to add them; nested dataclasses become groups. A section that may be one of several
        dataclasses has the fields of all; the parser remembers which has which.
    kind : type
        The dataclass. Its flags are absent from the result unless given, so that layers can be
        laid over one another.
    in_file_only : Collection[str]
        Fields of sections that get no flag: a TOML file sets them, and help shows how.
    """
    hints = get_type_hints(kind)
    for each in dataclasses.fields(kind):
        kinds = section_kinds(hints[each.name])
        if not kinds:
            parser.fields[each.name] = Field("", {None: each})
            _add_flag(parser, each, hints[each.name])
            continue
        group = parser.add_argument_group(each.name, summary_of(kinds[0]))
        for member in kinds:
            inner_hints = get_type_hints(member)
            for inner in dataclasses.fields(member):
                is_new = inner.name not in parser.fields
                field = parser.fields.setdefault(inner.name, Field(each.name, {}))
                field.members[tag_of(member) if len(kinds) > 1 else None] = inner
                is_tag = len(kinds) > 1 and inner.name == dataclasses.fields(member)[0].name
                hint = Literal[tuple(map(tag_of, kinds))] if is_tag else inner_hints[inner.name]
                if is_new and inner.name in in_file_only:
                    shown = argparse.Action([], inner.name, metavar=_assignment(inner.name, hint))
                    shown.help = _help_of(inner)
                    parser.in_file_only.setdefault(each.name, []).append(shown)
                elif is_new:
                    _add_flag(group, inner, hint)


def summary_of(kind: type) -> str:
    """Take the first line of a dataclass's docstring."""
    return (kind.__doc__ or "").strip().split("\n")[0]


def _add_flag(parser: Any, each: Any, hint: Any) -> None:  # noqa: ANN401
    """Add the flag of one field."""
    kwargs: Plain = {"dest": each.name, "default": argparse.SUPPRESS, "help": _help_of(each)}
    inner = without_none(hint)
    if inner is bool:
        kwargs["action"] = argparse.BooleanOptionalAction
    elif get_origin(inner) is tuple:
        kwargs |= {"nargs": "+", "metavar": "X", "type": get_args(inner)[0]}
        if inner is not hint:
            kwargs |= {"type": _off_or(get_args(inner)[0])}
    elif get_origin(inner) is Literal:
        kwargs |= {"choices": get_args(inner)}
    else:
        kwargs |= {"type": inner, "metavar": inner.__name__.upper()}
    if inner is not hint and inner is not bool and get_origin(inner) is not tuple:
        kwargs |= {"type": _off_or(inner), "metavar": f"{_metavar(inner)}|off"}
        kwargs.pop("choices", None)
    words = each.metadata.get("words", ())
    if words:
        kwargs |= {"type": _word_or(words, inner), "metavar": "|".join((_metavar(inner), *words))}
    parser.add_argument("--" + each.name.replace("_", "-"), **kwargs)


def given_flags(namespace: argparse.Namespace, kind: type) -> Plain:
    """Collect the flags of `add_flags` that were given on the command line."""
    given: Plain = {}
    hints = get_type_hints(kind)
    for each in dataclasses.fields(kind):
        kinds = section_kinds(hints[each.name])
        for member in kinds:
            section = given_flags(namespace, member)
            if section:
                given[each.name] = given.get(each.name, {}) | section
        if not kinds and hasattr(namespace, each.name):
            value = getattr(namespace, each.name)
            given[each.name] = None if value == [None] else value  # a list that is off
    return given


def _assignment(name: str, hint: Any) -> str:  # noqa: ANN401
    """Show how an option is set in a TOML file."""
    inner = without_none(hint)
    values = "true|false" if inner is bool else _metavar(inner)
    return f"{name} = {values}" + "|off" * (inner is not hint)


def _metavar(inner: Any) -> str:  # noqa: ANN401
    """Name the values a flag takes."""
    return "|".join(get_args(inner)) if get_origin(inner) is Literal else inner.__name__.upper()


def _word_or(words: tuple[str, ...], inner: Any) -> Any:  # noqa: ANN401
    """Make a converter that leaves some words as they are."""

    def convert(text: str) -> Any:  # noqa: ANN401
        try:
            return text if text in words else inner(text)
        except ValueError:
            known = " nor ".join(f"“{word}”" for word in words)
            message = f"{text!r} is neither {inner.__name__} nor {known}"
            raise argparse.ArgumentTypeError(message) from None

    return convert


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
