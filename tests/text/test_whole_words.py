"""Models of whole words cut text as one splits it at spaces, unknown words one by one."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.normalise import normalise
from dragoman.text.piece_order import order_pieces
from dragoman.text.subwords import Subwords
from dragoman.text.whole_words import has_whole_words, make_whole_words

WORDS = ["a", "house", ".", "Bü", "</b>", "'s", "<pad>x"]
PIECES = ["</s>", "<unk>", *(f"▁{word}" for word in WORDS)]


def spell(text: str) -> list[int]:
    return [PIECES.index(f"▁{word}") if word in WORDS else 1 for word in text.split()]


@given(st.lists(st.sampled_from([*WORDS, "other", "</s>", "<unk>", "Ho", "é", "a.", "\u00a0"])))
def test_text_is_split_at_spaces(words):
    text = normalise(" ".join(words))
    vocabulary = Subwords.from_bytes(make_whole_words(PIECES))
    assert vocabulary.encode([text]) == [spell(text)]


def test_in_another_order():
    names = ["</s>", "<unk>", "<pad>", *reversed(PIECES[2:])]
    model = order_pieces(make_whole_words(PIECES), names, place="words")
    vocabulary = Subwords.from_bytes(model)
    ids = vocabulary.encode(["a new old house . Bü"])[0]
    assert [names[each] for each in ids] == ["▁a", "<unk>", "<unk>", "▁house", "▁.", "▁Bü"]
    assert vocabulary.decode([ids[:1] + ids[3:]]) == ["a house . Bü"]
    assert has_whole_words(model)
    assert len(vocabulary) == len(names)


def test_other_models_have_no_whole_words(vocabularies):
    assert not has_whole_words(vocabularies.source.to_bytes())
