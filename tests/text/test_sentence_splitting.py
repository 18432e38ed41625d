import itertools
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.text.sentence_splitting import (
    find_reference,
    list_abbreviations,
    split_long,
    split_sentences,
)

# Paragraphs as lists of the sentences that a person would see in them.
PARAGRAPHS = {
    "en": [
        "Mr. and Mrs. Smith met Dr. J. R. R. Tolkien at 5 p.m. in the U.S. Senate.",
        "He paid $3.14 for Fig. 2, i.e. far too much!",
        '"Why?" he asked.',
        "(See www.example.com or https://example.com/a.b?c=D.)",
        "She is taller than I.",
        "He left...",
        "“Stop!”",
        "Then came No. 5, on Jan. 3, from Acme Inc. in St. Louis, e.g. The Beatles etc.",
        "The U.S. was far away, and so was Washington D.C.",
        "It happened in 2004.",
        "42 people came?!",
        "'No.'",
        "¡Olé!",
        "Is version 2.0.1 out… or not?",
        "Nobody knows.",
    ],
    "de": [
        "Am 3. Oktober feiert man z. B. in Berlin.",
        "Prof. Dr. Müller und Dipl.-Ing. Schmidt kamen um 9.30 Uhr, d. h. Frau Weiß ging.",
        "»Hallo!«",
        "Er rief: „Komm!“",
        "Das war 1990.",
        "Die Mauer fiel am 9. November.",
        "Es kostet ca. 3,5 Mio. Euro usw.",
        "Wir zahlen gem. Art. 5 Abs. 2 sofort.",
        "Ludwig XIV. war König, vgl. Bd. 3, S. 12.",
        "Und dann?",
    ],
    "fr": [
        "M. Dupont et Mme. Curie sont arrivés.",
        "« Bonjour ! »",
        "Il sourit.",
        "Il y en a.",
        "Nous partons à 9 h. 30…",
        "Où\u202f?",
        "Ici, p. 5, cf. Victor Hugo.",
        "« Oui. »",
        "L’homme rit, chante, etc.",
        "Elle aussi.",
    ],
    "es": [
        "El Sr. López y la Sra. Gómez llegaron.",
        "¿Cómo está Ud. Hernández hoy?",
        "¡Muy bien!",
        "Vive en EE.UU. desde 1990.",
        "Véase el art. 3 y la pág. 7.",
        "«¿Qué?»",
        "Así fue.",
    ],
}
EAST_ASIAN = {
    "zh": ["今天天气很好。", "我们去公园吧！", "你来吗？", "“好的。”", "他说：“三点……”。", "走"],
    "ja": ["「はい。」と言った。", "彼は笑った！", "本当？！", "「行く。」", "円周率は3.14です。"],
}
languages = st.sampled_from(["en", "de", "fr", "es", "zh", "ja", "pt", None])
texts = st.one_of(
    st.text(),
    st.lists(
        st.sampled_from(
            [
                *"  .!?…。！？」“”\"'«»()[];:,–—、\n\tAaIé1",
                "\u0301",
                "\u200d",
                "👩",
                "U.S.",
                "Mr.",
                "的",
            ]
        )
    ).map("".join),
)


@pytest.mark.parametrize("language", PARAGRAPHS)
def test_paragraphs(language):
    pieces = split_sentences(" ".join(PARAGRAPHS[language]), language)
    assert [piece.strip() for piece in pieces] == PARAGRAPHS[language]


@pytest.mark.parametrize("language", EAST_ASIAN)
def test_east_asian_paragraphs(language):
    assert split_sentences("".join(EAST_ASIAN[language]), language) == EAST_ASIAN[language]


@pytest.mark.parametrize(("code", "same"), [("de-AT", "de"), ("de_CH", "de"), ("DE", "de")])
def test_language_codes(code, same):
    text = " ".join(PARAGRAPHS["de"])
    assert split_sentences(text, code) == split_sentences(text, same)


@pytest.mark.parametrize("language", [None, "nl"])
def test_unknown_language(language):
    text = "Tell Mr. Smith. El Sr. López vive. Das ist z.B. Gut so."
    pieces = split_sentences(text, language)
    assert pieces == ["Tell Mr. Smith. ", "El Sr. López vive. ", "Das ist z.B. Gut so."]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Am 3. Oktober", "de"),
        ("1. Introduction", "en"),
        ("1. One\n2. Two", "en"),
        ("the U.S. Army", "en"),
        ("at www.example.com. or so", "en"),
        ("he asked ... and left", "en"),
        ("Wait! he cried", "en"),
        ("The J. Paul Getty Museum", "en"),
    ],
)
def test_one_sentence(text, language):
    assert split_sentences(text, language) == [text]


def test_white_space_stays_at_the_end_and_blank_lines_split():
    assert split_sentences(" One.  Two.\n", "en") == [" One.  ", "Two.\n"]
    assert split_sentences("a title\n \nand text", "en") == ["a title\n \n", "and text"]
    assert split_sentences("", "en") == []


@given(texts, languages)
def test_splitting_keeps_every_character(text, language):
    pieces = split_sentences(text, language)
    assert "".join(pieces) == text
    assert all(pieces)
    assert all(not piece[0].isspace() for piece in pieces[1:])


@given(st.lists(st.sampled_from(PARAGRAPHS["en"]), min_size=1))
def test_each_sentence_is_one_whatever_follows(sentences):
    # Where an abbreviation ends a sentence, the next word decides; these end without doubt.
    sure = [each for each in sentences if not each.endswith(("etc.", "I.", "D.C.", "'No.'"))]
    assert [piece.strip() for piece in split_sentences(" ".join(sure), "en")] == sure


def is_one_character(piece):
    """Whether a piece is one letter with what hangs on it, so that nothing can be cut off."""
    attached = [
        unicodedata.category(character)[0] == "M"
        or character in "\u200c\u200d"
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or "\u1160" <= character <= "\u11ff"
        or before == "\u200d"
        for before, character in itertools.pairwise(piece)
    ]
    return all(attached)


@given(texts, languages, st.integers(0, 12))
def test_long_text_is_cut_to_fit(text, language, longest):
    pieces = split_long(text, language, lambda piece: len(piece) <= longest)
    assert "".join(pieces) == text
    assert all(pieces)
    assert all(len(piece) <= longest or is_one_character(piece) for piece in pieces)
    assert all(unicodedata.category(piece[0])[0] != "M" for piece in pieces[1:])


@given(texts, languages)
def test_text_that_fits_stays_whole(text, language):
    assert split_long(text, language, lambda _: True) == ([text] if text else [])


@given(texts, languages)
def test_sentences_that_fit_stay_whole(text, language):
    longest = max(map(len, split_sentences(text, language)), default=0)
    if longest < len(text):
        pieces = split_long(text, language, lambda piece: len(piece) <= longest)
        assert pieces == split_sentences(text, language)


@given(st.lists(st.integers(1, 9), min_size=1), st.integers(9, 30))
def test_words_are_packed_as_tightly_as_they_go(lengths, longest):
    words = ["w" * length + " " for length in lengths]
    pieces = split_long("".join(words), "en", lambda piece: len(piece.rstrip()) <= longest)
    assert all(len(piece.rstrip()) <= longest for piece in pieces)
    for piece, following in itertools.pairwise(pieces):
        assert len(piece + following.split(" ")[0]) > longest


@pytest.mark.parametrize(
    ("text", "longest", "pieces"),
    [
        ("He came, he saw, he won.", 18, ["He came, he saw, ", "he won."]),
        ("First; then: last of all", 14, ["First; then: ", "last of all"]),
        ("one two – three four", 12, ["one two – ", "three four"]),
        ("我来，我见，我胜。", 6, ["我来，我见，", "我胜。"]),
        ("one two three", 8, ["one two ", "three"]),
        ("Oh. abcdefgh", 5, ["Oh. ", "abcde", "fgh"]),
        ("ae\u0301o", 2, ["a", "e\u0301", "o"]),
        ("a👩\u200d🔬", 1, ["a", "👩\u200d🔬"]),
    ],
)
def test_where_long_sentences_are_cut(text, longest, pieces):
    assert split_long(text, None, lambda piece: len(piece) <= longest) == pieces


def test_cost_is_linear():
    calls = 0

    def fits(piece):
        nonlocal calls
        calls += 1
        return len(piece) <= 100

    pieces = split_long("x" * 200_000, "en", fits)
    assert len(pieces) == 2000
    assert calls < 20 * len(pieces)
    for before, piece, after, language in (
        ("", "Word. ", "", "en"), ("", "。", "」と", "ja"), ("", ".", "", "en")
    ):  # fmt: skip
        texts = {n: before + piece * n + after for n in (5000, 40_000)}
        assert grows_linearly(lambda n: split_sentences(texts[n], language), 5000)  # noqa: B023


@pytest.mark.parametrize("language", ["en", "de-AT", "fr", "es", None])
def test_listed_abbreviations_end_no_sentence(language):
    abbreviations = list_abbreviations(language)
    assert len(abbreviations) > 15
    for word in abbreviations:
        ends = len(split_sentences(f"Here stands {word}. Smith.", language))
        assert ends == 1 or "-" in word  # a hyphen hides what stands before it
    assert len(split_sentences("Here stands somebody. Smith.", language)) == 2


def test_a_character_with_too_many_marks_is_cut_too():
    text = "e" + "\u0301" * 100
    pieces = split_long(text, "en", lambda piece: len(piece) <= 8)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) == 8


@pytest.mark.parametrize(
    ("text", "language", "second"),
    [
        ("Il est chanteur.[1] Elle danse.", "fr", "Elle danse."),
        ("Il est chanteur.[1][note] Elle danse.", "fr", "Elle danse."),
        ("Il est bon.1 Sophie danse.", "fr", "Sophie danse."),
        ("C’est « bon ».² Sophie danse.", "fr", "Sophie danse."),
        ("“Go!”[12] He went.", "en", "He went."),
        ("彼は歌手だ。[1]彼女も。", "ja", "彼女も。"),
    ],
)
def test_sentences_end_behind_marks_that_point_to_notes(text, language, second):
    assert split_sentences(text, language) == [text.removesuffix(second), second]
    first = text.removesuffix(second).rstrip()
    assert first[: find_reference(first)][-1] in ".!。”»"


@pytest.mark.parametrize("text", ["In No.5 Chanel is", "at p.12 Smith says", "a[1] B", "3.5 Dogs"])
def test_other_numbers_end_no_sentence(text):
    assert split_sentences(text, "en") == [text]


def test_marks_that_point_to_notes_take_linear_time():
    assert grows_linearly(lambda size: find_reference(".[1]" * size + "]"), 3000)
    assert grows_linearly(lambda size: split_sentences("a.[1] B" + "[1]" * size, "en"), 3000)
