"""What subwords stand for, against what they are decoded to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.constraints.spelling import (
    Unit,
    WordFinder,
    describe_token,
    fold_case,
    is_word_character,
    spell_pieces,
    word_pattern,
)
from dragoman.text.normalise import normalise
from dragoman.text.word_vocabulary import learn_words, split_words


@given(st.data())
def test_spelling_is_what_decoding_writes(subwords, data):
    spelt = spell_pieces(subwords)
    ids = data.draw(st.lists(st.integers(3, len(subwords) - 1), max_size=6))
    written = b"".join(unit.spelt for each in ids for unit in spelt[each])
    text = written.decode(errors="replace")
    if "\ufffd" not in text and text.isprintable():
        assert normalise(text) == subwords.decode([ids])[0]


def test_bytes_outside_ascii_are_neither_words_nor_marks(subwords):
    spelt = spell_pieces(subwords)
    by_name = dict(zip(subwords.pieces(range(len(subwords))), spelt, strict=True))
    assert by_name["<0xC3>"] == (Unit(b"\xc3", None),)
    assert by_name["<0x61>"] == (Unit(b"a", True),)
    assert by_name["<0x2E>"] == (Unit(b".", False),)
    assert spelt[subwords.eos_id] == spelt[subwords.pad_id] == ()


def test_closed_vocabularies_are_spelt_too():
    words = learn_words(["the dog sees (the dog)"], vocabulary_size=8)
    texts = ["".join(unit.spelt.decode() for unit in units) for units in spell_pieces(words)]
    assert texts[3:] == words.tokens(range(3, len(words)))


@given(st.text(max_size=8))
def test_word_characters_are_those_of_words(text):
    """A token of several characters has word characters only."""
    for token in split_words(text):
        bare = token.removeprefix(" ")
        if len(bare) > 1:
            assert all(map(is_word_character, bare))


@pytest.mark.parametrize(
    ("text", "continues", "has_word", "ends_word", "ends_sentence"),
    [
        ("a", 1, 1, 1, 0),
        (" a", 0, 1, 1, 0),
        (".", 0, 0, 0, 1),
        (" l’", 0, 1, 0, 0),
        ("a.", 1, 1, 0, 1),
    ],
)
def test_what_tokens_do_at_borders(text, continues, has_word, ends_word, ends_sentence):
    units = tuple(Unit(each.encode(), is_word_character(each)) for each in text)
    facts = (continues, has_word, ends_word, ends_sentence)
    assert describe_token(units) == tuple(map(bool, facts))


def test_a_byte_outside_ascii_counts_as_a_word_for_terms():
    assert describe_token((Unit(b"\xc3", None),)) == (True, True, True, False)


def test_words_are_found_whole_and_in_any_case():
    assert WordFinder(["chat noir"]).find("Le Chat  noir.") == ["chat noir"]
    assert WordFinder(["chat"]).find("Les chats noirs") == []
    assert WordFinder(["eau"]).find("l’eau") == ["eau"]


@given(
    st.lists(st.text("aB-. ", min_size=1).filter(str.strip), min_size=1, max_size=3),
    st.text("Ab-. "),
)
def test_what_is_found_is_what_a_pattern_finds(phrases, text):
    expected = [each.lower() for each in word_pattern(phrases).findall(normalise(text))]
    assert WordFinder(phrases).find(text) == expected


@given(st.text(max_size=8))
def test_case_is_folded_letter_by_letter(text):
    assert len(fold_case(text)) == len(text)
    assert fold_case(fold_case(text)) == fold_case(text)
    assert fold_case("İzmir STRAẞE ΟΔΟΣ") == fold_case("izmir straße οδος")
