"""A closed vocabulary: nothing that is known is lost, and nothing else is known."""

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError, FolderError, OptionError
from dragoman.text import word_vocabulary as module
from dragoman.text.normalise import normalise
from dragoman.text.word_vocabulary import UNKNOWN, Words, learn_words, split_words

TEXTS = [
    "Jane visite l’Afrique en septembre.",
    "« Qui ? » dit-elle (à Zürich) : 12,5 %.",
    "नमस्ते दुनिया, می\u200cخواهم",
    "a▁b ▁ ⟨unk⟩ </s> <pad>",
    "e\u0323\u0301tat",
]

# Spaces, marks that combine, joiners and the reserved signs meet more often than by chance.
any_text = st.text(
    st.sampled_from("ab Z9_.’(▁⟩\u0301\u0323\u200d\t\u00a0न\u094d") | st.characters()
)


@given(any_text)
def test_tokens_join_to_the_text(text):
    tokens = split_words(text)
    assert "".join(tokens).removeprefix(" ") == normalise(text)
    assert all(token.removeprefix(" ") and " " not in token[1:] for token in tokens)
    assert not tokens or tokens[0].startswith(" ")


@given(any_text)
def test_splitting_a_token_gives_the_token(text):
    for token in split_words(text):
        assert split_words(token) == [f" {token.removeprefix(' ')}"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("l’Afrique, oui", [" l", "’", "Afrique", ",", " oui"]),
        ("(Zürich) 1987", [" (", "Zürich", ")", " 1987"]),
        ("नमस्ते दुनिया!", [" नमस्ते", " दुनिया", "!"]),
        ("می\u200cخواهم", [" می\u200cخواهم"]),
        ("...", [" .", ".", "."]),
        (" \t", []),
    ],
)
def test_words_and_marks(text, tokens):
    assert split_words(text) == tokens


def test_pattern_rules_no_mark_out():
    """The shortcut for usual punctuation must not hide a combining mark."""
    for code in range(0x110000):
        character = chr(code)
        if module.unicodedata.category(character).startswith("M"):
            assert split_words(f"a{character}a") == [f" {normalise(f'a{character}a')}"]


@given(st.lists(any_text, min_size=1))
def test_nothing_known_is_lost(texts):
    if not any(normalise(text) for text in texts):
        texts = [*texts, "a"]
    words = learn_words(texts, vocabulary_size=10_000)
    ids = words.encode(texts)
    assert not any(words.unk_id in each for each in ids)
    assert words.decode(ids) == [normalise(text) for text in texts]
    again = Words.from_bytes(words.to_bytes())
    assert again.encode(texts) == ids
    assert again.to_bytes() == words.to_bytes()


def test_special_symbols_come_first_and_are_never_text():
    words = learn_words(TEXTS, vocabulary_size=1000)
    assert words.pieces(range(3)) == ["</s>", "<unk>", "<pad>"]
    assert (words.eos_id, words.unk_id, words.pad_id) == (0, 1, 2)
    encoded = words.encode(TEXTS)
    assert min(min(ids) for ids in encoded) == 3
    assert max(max(ids) for ids in encoded) == len(words) - 1
    assert words.decode([[2, *ids, 0, 2] for ids in encoded]) == words.decode(encoded)


def test_most_frequent_words_are_known():
    texts = ["b b b b a a a", "c c d d e"]
    counts = Counter(token for text in texts for token in split_words(text))
    for size in range(1, 7):
        words = learn_words(texts, vocabulary_size=size)
        known = {token for token in counts if words.encode([token])[0] != [words.unk_id]}
        assert len(known) == min(size, 5) == len(words) - 3
        unknown = counts.keys() - known
        assert min(counts[each] for each in known) >= max([0, *(counts[each] for each in unknown)])
    assert words.pieces(range(3, len(words))) == ["▁b", "▁a", "▁c", "▁d", "▁e"]


def test_by_default_what_occurs_twice_is_known(monkeypatch):
    words = learn_words(["a a b b c", "d"])
    assert words.pieces(range(3, len(words))) == ["▁a", "▁b"]
    monkeypatch.setattr(module, "MOST_WORDS", 1)
    assert learn_words(["a a b b c"]).pieces([3]) == ["▁a"]
    monkeypatch.undo()
    assert len(learn_words(["a b c"])) == 6


def test_unknown_words_are_visible():
    words = learn_words(["the cat sees the cat"], vocabulary_size=2)
    assert words.decode(words.encode(["the dog, the cat"])) == [f"the {UNKNOWN} {UNKNOWN} the cat"]
    assert words.tokens([3, 1, 0, 2]) == [" cat", f" {UNKNOWN}", "", ""]


def test_no_text():
    with pytest.raises(DataError, match="the corpus has no text to learn from; check the files"):
        learn_words(["", " \t"])


@pytest.mark.parametrize("size", [0, -3])
def test_no_words(size):
    with pytest.raises(OptionError, match=f"vocabulary_size: {size} is too small; give at least 1"):
        learn_words(["a"], vocabulary_size=size)


def contents(**changed):
    return json.dumps({"format": "dragoman words 1", "words": [" a", "b"]} | changed).encode()


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (b"", "is not a vocabulary of words, or damaged; get it again"),
        (b"\xff\xfe{", "is not a vocabulary of words, or damaged; get it again"),
        (b"[" * 100_000, "is not a vocabulary of words, or damaged; get it again"),
        (contents()[:-4], "is not a vocabulary of words, or damaged; get it again"),
        (b"[]", "is not a vocabulary of words, or damaged; get it again"),
        (contents(format="dragoman words 2"), "is not a vocabulary of words, or damaged"),
        (contents(words={" a": 1}), "is not a vocabulary of words, or damaged"),
        (contents(words=[" a", 7]), "7 is not a word; get the file again"),
        (contents(words=[" a", ""]), "'' is not a word; get the file again"),
        (contents(words=["a b"]), "'a b' is not a word; get the file again"),
        (contents(words=["a\n"]), r"'a\\n' is not a word; get the file again"),
        (contents(words=[" a", " b", " a"]), "has the same word twice; get it again"),
        (contents(words=[]), "has no words; get it again"),
    ],
)
def test_damaged_files(tmp_path, damaged, message):
    path = tmp_path / "words.json"
    path.write_bytes(damaged)
    with pytest.raises(FolderError, match=message) as caught:
        Words.from_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    path.write_bytes(contents())
    assert len(Words.from_file(path)) == 5


def test_missing_file(tmp_path):
    with pytest.raises(FolderError, match=r"cannot be read \(No such file.*get the model folder"):
        Words.from_file(tmp_path / "none.json")
