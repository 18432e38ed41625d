"""The verbs of the command: one file each, and no more is made than is called."""

import pytest

from dragoman.cli.flags import Parser
from dragoman.cli.verb_table import VERBS, add_verbs


def names_of(word):
    verbs = Parser(prog="tool").add_subparsers(parser_class=Parser)
    add_verbs(verbs, word)
    return tuple(verbs.choices)


@pytest.mark.parametrize("word", VERBS)
def test_only_the_verb_that_is_called_is_made(word):
    assert names_of(word) == (word,)


@pytest.mark.parametrize("word", [None, "trian"])
def test_all_verbs_are_made_if_none_is_called(word):
    assert names_of(word) == VERBS
