"""Words of subwords: every token in one word, words as they are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.insight.word_groups import END, begins_word, group_words
from dragoman.text.word_vocabulary import Words


@pytest.mark.parametrize("text", ["The old dog.", "Un chien, achète !", "a", "garden garden"])
def test_words_are_those_that_spaces_part(subwords, text):
    groups = group_words(subwords, text)
    assert list(groups.words) == [*text.split(), END]


def test_tokens_are_those_of_the_text_and_its_end(subwords):
    groups = group_words(subwords, "The old garden.")
    ids = subwords.encode(["The old garden."])[0]
    assert groups.ids == (*ids, subwords.eos_id)
    assert groups.pieces == (*subwords.pieces(ids), END)


@given(text=st.text(max_size=40))
def test_every_token_is_in_the_next_word_or_the_same(subwords, text):
    groups = group_words(subwords, text)
    assert len(groups.ids) == len(groups.pieces) == len(groups.word_of)
    steps = [after - before for before, after in zip((-1, *groups.word_of), groups.word_of)]  # noqa: B905
    assert set(steps) <= {0, 1}
    assert groups.word_of[-1] == len(groups.words) - 1
    assert all(groups.words)


def test_nothing_is_an_end(subwords):
    assert group_words(subwords, " ").words == (END,)


def test_scripts_without_spaces_have_a_word_for_each_piece(subwords):
    # None of these is in the vocabulary: their bytes are tokens, and stay one word.
    assert group_words(subwords, "猫").words == ("猫", END)
    assert begins_word("猫", "黒")
    assert begins_word("ねこ", "が")
    assert begins_word("แมว", "ดำ")
    assert not begins_word("cat", "▁black")
    assert begins_word("▁cat", "▁black")
    assert not begins_word("猫", "▁")
    assert not begins_word("<0xE7>", "▁")


def test_marks_stay_with_their_word_in_a_closed_vocabulary():
    words = Words([" l", "’", "Afrique", " en", "."])
    assert group_words(words, "l’Afrique en.").words == ("l’Afrique", "en.", END)
