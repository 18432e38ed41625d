"""Help in topics, for a verb with more options than fit a screen."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dragoman.cli.flags import Parser, summary_of
from dragoman.options import tag_of

ALL = "all"


class Topics(NamedTuple):
    """What the help of a verb shows, and when."""

    common: frozenset[str]
    """The options most people need, by destination: what “--help” alone shows."""
    groups: dict[str, tuple[str, ...]]
    """The titles of the argument groups of each topic."""
    section: str
    """The section of options that may be one of several dataclasses."""
    kinds: tuple[type, ...]
    """Those dataclasses; help shows the fields of one."""
    flag: str
    """The flag that chooses among them."""
    epilog: str
    """What “--help” alone says at its end."""


class TopicHelp(argparse.Action):
    """Print the options that most people need, or those of a topic, and stop."""

    def __init__(self, topics: Topics, **kwargs: Any) -> None:  # noqa: ANN401
        names = (ALL, *topics.groups)
        text = f"show these options and stop; of a TOPIC: {', '.join(names)}"
        kwargs |= {"dest": argparse.SUPPRESS, "default": argparse.SUPPRESS, "help": text}
        super().__init__(nargs="?", choices=names, metavar="TOPIC", **kwargs)
        self._topics = topics

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Print and stop."""
        del namespace, option_string
        assert isinstance(parser, Parser)
        topic = values if isinstance(values, str) else None
        sys.stdout.write(format_topic(parser, self._topics, topic))
        parser.exit()


def format_topic(parser: Parser, topics: Topics, topic: str | None) -> str:
    """Write the help of a topic; of the options that most people need if there is none."""
    kind = _chosen_kind(parser, topics)
    parser.shown_kind = tag_of(kind)
    formatter = parser._get_formatter()
    formatter.add_usage(parser.usage, [], [])
    if topic is None:
        formatter.add_text(parser.description)
    shown = list(_groups_of(parser, topics, topic))
    if topic is None:  # one list
        shown = [("options", None, [action for _, _, group in shown for action in group])]
    for title, text, actions in shown:
        is_of_kind = title == topics.section
        formatter.start_section(f"{title}: {tag_of(kind)}" if is_of_kind else title)
        formatter.add_text(summary_of(kind) if is_of_kind else text)
        formatter.add_arguments(actions)
        formatter.end_section()
    formatter.add_text(topics.epilog if topic is None else None)
    return formatter.format_help()


def owners_of(parser: Parser, name: str) -> tuple[object, ...]:
    """Say which kinds of its section have a field."""
    return tuple(parser.fields[name].members)


def _groups_of(
    parser: Parser, topics: Topics, topic: str | None
) -> Iterator[tuple[str | None, str | None, list[argparse.Action]]]:
    """Find the groups of a topic, each with its title, its text and the options to show."""
    titles = None if topic in (None, ALL) else topics.groups[str(topic)]
    for group in parser._action_groups:
        actions = [
            each
            for each in group._group_actions
            if (topic is not None or each.dest in topics.common or isinstance(each, TopicHelp))
            and _is_of_kind(parser, each.dest)
        ]
        if actions and (titles is None or group.title in titles):
            yield group.title, group.description, actions
        in_file = parser.in_file_only.get(group.title or "", []) if topic is not None else []
        own = [each for each in in_file if _is_of_kind(parser, each.dest)]
        if own and (titles is None or group.title in titles):
            yield f"[{group.title}], in a file that --config names", None, own


def _is_of_kind(parser: Parser, name: str) -> bool:
    """Whether an option means something for the kind that is shown."""
    owners = owners_of(parser, name) if name in parser.fields else (None,)
    return owners == (None,) or parser.shown_kind in owners


def _chosen_kind(parser: Parser, topics: Topics) -> type:
    """Find the kind that the command line asks for, before or after “--help”; else the first."""
    by_name = {str(tag_of(each)): each for each in topics.kinds}
    chooser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    chooser.add_argument(topics.flag, dest="kind", choices=tuple(by_name))
    try:
        said = chooser.parse_known_args(parser.words)[0].kind
    except argparse.ArgumentError as error:
        parser.error(str(error))
    return by_name.get(said, topics.kinds[0])
