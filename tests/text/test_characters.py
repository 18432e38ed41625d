"""A vocabulary of characters: what is frequent is one id, everything can be written."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError, OptionError
from dragoman.text.characters import learn_characters
from dragoman.text.normalise import normalise
from dragoman.text.subwords import Subwords

TEXTS = ["Jane visite l’Afrique en 1987 !", "e\u0323\u0301te\u0301 ▁ \u2585", "नमस्ते"]


@pytest.fixture(scope="module")
def characters():
    return Subwords.from_bytes(learn_characters(TEXTS))


def test_entries_are_the_characters(characters):
    seen = set("".join(normalise(text) for text in TEXTS)) - set(" ▁\u2585")
    entries = characters.pieces(range(259, len(characters)))
    assert sorted(entries) == sorted(seen | {"▁"})
    assert (characters.eos_id, characters.unk_id, characters.pad_id) == (0, 1, 2)


def test_one_id_for_each_character(characters):
    (ids,) = characters.encode(TEXTS[:1])
    assert characters.pieces(ids) == list("▁" + TEXTS[0].replace(" ", "▁"))


@given(st.text())
def test_everything_can_be_written(characters, text):
    assert characters.decode(characters.encode([text])) == [normalise(text)]


def test_equal_text_gives_equal_bytes():
    assert learn_characters(iter(TEXTS)) == learn_characters(TEXTS)


def test_size_is_kept_and_the_most_frequent_stay():
    generator = random.Random(1)
    many = [chr(code) for code in range(0x4E00, 0x4E00 + 400)]
    texts = ["".join(generator.sample(many, 300)) + "".join(many[:20]) for _ in range(40)]
    chosen = Subwords.from_bytes(learn_characters(texts, vocabulary_size=320))
    assert len(chosen) == 320
    assert set(many[:20]) <= set(chosen.pieces(range(320)))
    assert len(Subwords.from_bytes(learn_characters(texts, vocabulary_size=5000))) == 260 + 400


def test_rare_characters_are_bytes():
    texts = ["abcd" * 60_000, "x" * 9, "y" * 10]
    pieces = Subwords.from_bytes(learn_characters(texts)).pieces(range(260, 265))
    assert set("abcdy") == set(pieces)


def test_refusals():
    with pytest.raises(OptionError, match=r"vocabulary_size: 12 is too small.*at least 320"):
        learn_characters(TEXTS, vocabulary_size=12)
    with pytest.raises(DataError, match="characters: the corpus has no text to learn from; check"):
        learn_characters([" ", "▁"])
