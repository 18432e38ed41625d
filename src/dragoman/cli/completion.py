"""The verb “completion”: a script by which a shell completes verbs, options and their choices."""

import argparse
import shlex
import sys
from collections.abc import Iterator
from importlib.resources import files
from typing import NamedTuple

from dragoman.cli.flags import add_verb

SHELLS = ("bash", "zsh", "fish")
LONGEST_TEXT = 72


class Option(NamedTuple):
    """An option of a verb: how it is written, what it takes, and what it means."""

    names: tuple[str, ...]
    takes_value: bool
    choices: tuple[str, ...]
    text: str


class Command(NamedTuple):
    """A verb, by the words that call it, with its options and the words that may follow it."""

    words: tuple[str, ...]
    options: tuple[Option, ...]
    followers: dict[str, str]


def add_completion(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “completion”."""
    text = "print a script that makes a shell complete verbs, options and choices"
    parser = add_verb(verbs, "completion", text, _complete)
    parser.add_argument(
        "shell", choices=SHELLS, metavar="SHELL",
        help='bash or zsh: eval "$(dragoman completion bash)"; fish: dragoman completion fish | '
        "source",
    )  # fmt: skip


def _complete(options: argparse.Namespace) -> None:
    from dragoman.cli.command import build_parser

    commands = list(list_commands(build_parser()))
    script = _fish(commands) if options.shell == "fish" else _bash(commands)
    sys.stdout.write(f"{_read('zsh') if options.shell == 'zsh' else ''}{script}")


def _read(shell: str) -> str:
    """Read what a shell's script has beside the verbs and options."""
    return (files(__package__) / f"completion.{shell}").read_text(encoding="utf-8")


def list_commands(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = ()
) -> Iterator[Command]:
    """List a parser and all verbs below it."""
    options: list[Option] = []
    followers: dict[str, str] = {}
    below: dict[str, argparse.ArgumentParser] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {each.dest: each.help or "" for each in action._choices_actions}
            followers |= texts
            below |= action.choices
        elif action.option_strings:
            options.append(_option_of(action))
        else:
            followers |= dict.fromkeys(map(str, action.choices or ()), "")
    yield Command(words, tuple(options), followers)
    for name, each in below.items():
        yield from list_commands(each, (*words, name))


def _option_of(action: argparse.Action) -> Option:
    """Describe one option."""
    choices = tuple(map(str, action.choices or ()))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if "|" in metavar and "STR" not in metavar:  # words beside numbers; text may be a path
        choices = tuple(word for word in metavar.split("|") if not word.isupper())
    text = (action.help or "").replace("%%", "%").partition(";")[0]
    return Option(tuple(action.option_strings), action.nargs != 0, choices, text[:LONGEST_TEXT])


def _bash(commands: list[Command]) -> str:
    """Write the script for bash, which zsh understands too."""
    values, flags = [], []
    for each in commands:
        name = " ".join(("dragoman", *each.words))
        plain = []
        for option in each.options:
            if option.choices:
                at = _alternatives(f"{name} {flag}" for flag in option.names)
                values.append(f'        {at}) choices="{" ".join(option.choices)}" ;;')
            elif option.takes_value:
                plain += [f"{name} {flag}" for flag in option.names]
        if plain:
            values.append(f"        {_alternatives(plain)}) ;;")
        names = " ".join(flag for option in each.options for flag in option.names)
        flags.append(f'                "{name}:-"*) choices="{names}" ;;')
        if each.followers:
            flags.append(f'                "{name}:"*) choices="{" ".join(each.followers)}" ;;')
    verbs = _alternatives(" ".join(("dragoman", *each.words)) for each in commands if each.words)
    parts = {"VERBS": verbs, "VALUES": "\n".join(values), "FLAGS": "\n".join(flags)}
    script = _read("bash")
    for name, part in parts.items():
        script = script.replace(name, part, 1)
    return script


def _alternatives(words: Iterator[str] | list[str]) -> str:
    """Write the pattern of a case that takes any of several words."""
    return "|".join(f'"{word}"' for word in words)


def _fish(commands: list[Command]) -> str:
    """Write the script for fish."""
    lines = [_read("fish")]
    for each in commands:
        words = " ".join(each.words)
        for word, text in each.followers.items():
            condition = f"-n '__dragoman_needs_verb {words}'"
            lines.append(f"complete -c dragoman {condition} -f -a {word}{_described(text)}\n")
        for option in each.options:
            flags = "".join(
                f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
                for flag in option.names
            )
            value = " -r" * option.takes_value
            if option.choices:
                value = f" -x -a '{' '.join(option.choices)}'"
            described = _described(option.text)
            condition = f"-n '__dragoman_at {words}'"
            lines.append(f"complete -c dragoman {condition}{flags}{value}{described}\n")
    return "".join(lines)


def _described(text: str) -> str:
    """Write a description for fish."""
    return f" -d {shlex.quote(text)}" if text else ""
