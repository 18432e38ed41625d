import re
import unicodedata

import pytest
import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

from dragoman.text.normalise import normalise, sentencepiece_rules
from dragoman.text.subwords import train_subwords

WHITE_SPACE = "\t\n\v\f\r\x1c\x85\u00a0\u1680\u2003\u2009\u202f\u2028\u2029\u205f\u3000 "
REMOVED = "\x00\x07\x7f\x9f\u00ad\u200b\u200e\u202e\u2060\ufeff\u180e\U000e0041\ud800\udfff"
AWKWARD = WHITE_SPACE + REMOVED + "\u200c\u200d\u0301\u0323\u0344e\u00e9\u1100\u1161\u11a8\u0958"

texts = st.text(st.one_of(st.characters(categories=None), st.sampled_from(AWKWARD)))


@given(texts)
def test_normalising_twice_changes_nothing(text):
    assert normalise(normalise(text)) == normalise(text)


@given(texts)
def test_result_is_clean(text):
    result = normalise(text)
    assert unicodedata.is_normalized("NFC", result)
    assert result == " ".join(result.split())
    assert all(character == " " or not character.isspace() for character in result)
    assert not {"Cc", "Cs", "Zl", "Zp"} & set(map(unicodedata.category, result))
    assert len(result) <= len(unicodedata.normalize("NFC", text))


@given(texts, texts)
def test_canonically_equal_texts_become_equal(before, after):
    text = before + after
    assert normalise(unicodedata.normalize("NFD", text)) == normalise(text)


@given(st.text(st.characters(categories=["L", "N", "P", "S", "M"])))
def test_visible_text_is_only_composed(text):
    assert normalise(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("space", WHITE_SPACE)
def test_any_white_space_is_one_space(space):
    assert normalise(f"{space}{space}one{space} {space}two{space}") == "one two"


@pytest.mark.parametrize("character", REMOVED)
def test_invisible_characters_are_removed(character):
    assert normalise(f"{character}o{character}n e{character}\u0301 {character} two") == "on é two"


@pytest.mark.parametrize("text", ["می\u200cخواهم", "क\u094d\u200dष", "👩\u200d🔬", "\u06dd١٢"])
def test_joiners_and_visible_formats_are_kept(text):
    assert normalise(text) == text


@pytest.fixture(scope="module")
def processor():
    model = train_subwords(["just a few words to train on"] * 5, vocabulary_size=400)
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def equivalent_spellings():
    """One composed character, spelled in any canonically equivalent way, of those in the rules."""
    sources = (line.split("\t")[0].split() for line in sentencepiece_rules().splitlines())
    spellings = ("".join(chr(int(code, 16)) for code in codes) for codes in sources)
    return [text for text in spellings if normalise(text) != ""]


# What the rules promise: letters that are composed, or spellings of a composed character, with
# nothing that interacts across the borders: nothing composes with a bar.
cells = st.one_of(
    st.sampled_from(equivalent_spellings()).map(lambda text: f"|{text}|"),
    st.characters(categories=["Lu", "Ll", "Lo", "Nd", "P", "S"], exclude_characters="\u2581")
    .filter(lambda character: unicodedata.is_normalized("NFC", character))
    .map(lambda character: f"|{character}|"),
    st.sampled_from(WHITE_SPACE),
    st.sampled_from([character for character in REMOVED[1:] if character < "\ud800"]),
)


@given(st.lists(cells).map("".join))
def test_sentencepiece_normalises_in_the_same_way(processor, text):
    expected = normalise(text)
    assert processor.normalize(text).removeprefix("▁").replace("▁", " ") == expected


def test_rules_know_every_order_of_vietnamese_marks(processor):
    for spelling in ("ệ", "e\u0323\u0302", "e\u0302\u0323", "\u00ea\u0323", "\u1eb9\u0302"):
        assert processor.normalize(spelling) == "▁ệ"


def test_rules_are_well_formed_and_never_idle():
    for line in sentencepiece_rules().splitlines():
        assert re.fullmatch(r"[0-9A-F]+( [0-9A-F]+)*\t([0-9A-F]+( [0-9A-F]+)*)?", line)
        source, target = line.split("\t")
        assert source != target
