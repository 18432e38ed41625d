"""Hard and soft look-up: laws of the temperature, and the notes' own table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import OptionError
from dragoman.paper.experiments.notes.attention_dictionary import (
    ENTRIES,
    DictionaryOptions,
    look_up_hard,
    look_up_soft,
    run,
    spell,
)

WORDS = st.text(st.characters(codec="utf-8", categories=("L", "N")), min_size=1, max_size=20)


@pytest.mark.parametrize(("key", "value"), ENTRIES.items())
def test_cold_soft_look_up_is_hard_look_up(key, value):
    assert look_up_hard(key) == value
    shares = look_up_soft(key, 0.005)
    assert shares[value] == pytest.approx(1, abs=1e-9)


def test_the_notes_table():
    assert ENTRIES == {"name": "Quinn", "position": "quarterback", "Handedness": "right"}


@given(WORDS)
def test_only_the_very_key_is_found_hard(word):
    assert (look_up_hard(word) is not None) == (word in ENTRIES)


@given(WORDS, st.floats(0.01, 10))
def test_shares_sum_to_one_and_warmth_evens_them_out(word, temperature):
    shares = look_up_soft(word, temperature)
    warmer = look_up_soft(word, 10 * temperature)
    assert sum(shares.values()) == pytest.approx(1)
    assert max(warmer.values()) <= max(shares.values()) + 1e-12
    hot = look_up_soft(word, 1e9)
    assert list(hot.values()) == pytest.approx([1 / 3] * 3)


@given(WORDS)
def test_spellings_have_length_one_and_are_nearest_themselves(word):
    vector = spell(word)
    assert float(vector @ vector) == pytest.approx(1)
    assert all(float(vector @ spell(key)) <= 1 + 1e-12 for key in ENTRIES)


def test_near_words_are_found_softly_only():
    found = run(DictionaryOptions(), lambda _: None)
    assert "“handedness” → right" in found.findings[1]
    assert "“names” → Quinn" in found.findings[1]
    assert "3 of 3 queries" in found.findings[0]
    rows = found.table("look-ups").rows
    assert len(rows) == 6 * 7
    assert {row[1] for row in rows if row[0] == "hand"} == {"nothing"}


def test_repeated_words_are_looked_up_once():
    found = run(DictionaryOptions(queries=("name", "name"), coldest=0.5), lambda _: None)
    assert len(found.table("look-ups").rows) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coldest": 0.0}, r"--coldest is 0.0: give one in \[1e-6, 1\)"),
        ({"queries": ()}, "--queries is empty: give at least one word"),
        ({"queries": ("name", " ")}, "--queries is “ ”: a word has letters"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        DictionaryOptions(**options)
