"""Which preparations of text can be meant."""

import pytest

from dragoman.errors import OptionError
from dragoman.text.options import TextOptions


def test_subwords_are_the_default():
    assert TextOptions().units == "subwords"


@pytest.mark.parametrize("units", ["subwords", "characters"])
def test_bytes_want_their_room(units):
    assert TextOptions(units=units, vocabulary_size=320).vocabulary_size == 320
    with pytest.raises(OptionError, match=r"vocabulary_size: 319 is too small, as 256.*least 320"):
        TextOptions(units=units, vocabulary_size=319)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, float("nan")])
def test_a_dropout_is_a_probability(dropout):
    with pytest.raises(OptionError, match=rf"^bpe_dropout: {dropout:g} is no such probability"):
        TextOptions(bpe_dropout=dropout)


@pytest.mark.parametrize("units", ["words", "characters"])
def test_only_subwords_have_merges_to_drop(units):
    assert TextOptions(bpe_dropout=0.1).bpe_dropout == 0.1
    with pytest.raises(OptionError, match=f"^bpe_dropout: 0.1, but {units} are not merged; leave"):
        TextOptions(units=units, bpe_dropout=0.1)


def test_words_may_be_few():
    assert TextOptions(units="words", vocabulary_size=1).vocabulary_size == 1
    with pytest.raises(OptionError, match="vocabulary_size: 0 is too small; give at least 1 word"):
        TextOptions(units="words", vocabulary_size=0)


@pytest.mark.parametrize("units", ["words", "characters"])
def test_ready_made_subwords_are_subwords(units):
    with pytest.raises(OptionError, match=f"units: {units}, but the ready-made subwords 'a' are"):
        TextOptions(units=units, subwords="a")


@pytest.mark.parametrize("name", ["formal_mark", "informal_mark"])
def test_marks_are_words(name):
    assert getattr(TextOptions(**{name: "<formal>"}), name) == "<formal>"
    for mark in ("", "two words", "a" * 41):
        with pytest.raises(OptionError, match=f"{name}: “{mark}” is not one word of up to 40"):
            TextOptions(**{name: mark})


def test_marks_differ():
    with pytest.raises(OptionError, match="informal_mark: “x” is the formal one too; give another"):
        TextOptions(formal_mark="x", informal_mark="x")
