"""Taking texts apart and putting translations into their places loses no white space."""

import re

from hypothesis import given
from hypothesis import strategies as st

from dragoman.serving import text_layout as layouts
from dragoman.text.sentence_splitting import cut_long, split_text

TEXTS = st.text(
    st.sampled_from(list("aB1 .!?\n\r\t\u00a0\u2028é—🙂。中\x85")) | st.characters(codec="utf-8"),
    max_size=60,
)


# At most a number that points to a note, which only stands straight behind a sentence.
NO_WORD = re.compile(r"(\d{1,3}|\[\w{1,4}\])?[\W_]*")


def split_layout(text, language, splits_sentences=True, fits=lambda _: True):
    """Split as a translator does."""

    def split(text):
        units = split_text(text, language, by_line=splits_sentences, by_sentence=splits_sentences)
        return [part for unit in units for part in cut_long(unit, language, fits)]

    return layouts.split_layout(text, split)


@given(TEXTS, st.booleans())
def test_sentences_and_gaps_make_up_the_text(text, splits):
    layout = split_layout(text, "en", splits_sentences=splits)
    assert len(layout.gaps) == len(layout.sentences) + 1
    pairs = zip(layout.gaps, layout.sentences, strict=False)
    assert "".join(gap + each for gap, each in pairs) + layout.gaps[-1] == text
    for sentence in layout.sentences:
        assert sentence == sentence.strip()
        assert any(map(str.isalnum, sentence))
    if splits:
        assert all(len(sentence.splitlines()) == 1 for sentence in layout.sentences)
        between = layout.gaps if layout.sentences else ()
        assert all(NO_WORD.fullmatch(gap) for gap in between)


@given(TEXTS)
def test_spans_point_at_the_same_words_in_the_whole_texts(text):
    layout = split_layout(text, "en")
    translations = [f"<{index}>" for index in range(len(layout.sentences))]
    spans = [[(0, len(sentence), 1, 2)] for sentence in layout.sentences]
    joined = layout.join(translations)
    placed = layout.place(translations, spans)
    sentences = [each for each in placed if joined[each[2] - 1 : each[2]] == "<"]
    assert [text[begin:end] for begin, end, _, _ in sentences] == list(layout.sentences)
    numbers = "".join(joined[first:last] for _, _, first, last in sentences)
    assert numbers == "".join(each[1] for each in translations)


@given(TEXTS, st.booleans(), st.integers(1, 12))
def test_what_does_not_fit_is_cut_and_nothing_lost(text, splits, longest):
    layout = split_layout(
        text, "en", splits_sentences=splits, fits=lambda each: len(each) <= longest
    )
    pairs = zip(layout.gaps, layout.sentences, strict=False)
    assert "".join(gap + each for gap, each in pairs) + layout.gaps[-1] == text
    assert all(len(sentence) <= longest for sentence in layout.sentences)


def test_a_letter_with_a_thousand_accents_is_cut_all_the_same():
    text = "a" + "\u0301" * 1000 + "b"
    layout = split_layout(text, "en", fits=lambda each: len(each) <= 50)
    assert max(map(len, layout.sentences)) <= 50


def test_sentences_that_fit_stay_whole():
    text = "One here. Two there, and more. " + "Word " * 30
    layout = split_layout(text, "en", fits=lambda each: len(each) <= 40)
    assert layout.sentences[:2] == ("One here.", "Two there, and more.")
    assert layout.join(layout.sentences) == text


def test_white_space_and_line_breaks_stay():
    text = "  One here.  Two there.\r\n\r\n\t— 🙂\nThree"
    layout = split_layout(text, "en")
    assert layout.sentences == ("One here.", "Two there.", "Three")
    assert layout.join(["Un.", "Deux.", "Trois"]) == "  Un.  Deux.\r\n\r\n\t— 🙂\nTrois"


def test_sentences_without_space_between_get_one_where_the_target_needs_it():
    layout = split_layout("你好。再见。", "zh")
    assert layout.sentences == ("你好。", "再见。")
    assert layout.join(["Hello.", "Bye."]) == "Hello. Bye."
    assert layout.join(["你们好。", "再见。"]) == "你们好。再见。"
    assert layout.place(["Hello.", "Bye."], [[], [(0, 2, 0, 3)]]) == ((3, 5, 7, 10),)


def test_after_nothing_there_is_no_blank_but_a_line_break():
    layout = split_layout("One. Two.\nThree.", "en")
    assert layout.join(["", "Deux.", "Trois."]) == "Deux.\nTrois."
    assert layout.join(["Un.", "", "Trois."]) == "Un. \nTrois."


def test_unsplit_text_is_one_sentence():
    assert split_layout(" A b.\nC d. ", "en", splits_sentences=False).sentences == ("A b.\nC d.",)


def test_marks_that_point_to_notes_stay_and_are_linked_to_themselves():
    layout = split_layout("A singer.[1] She sings.1 Well.²", "en")
    assert layout.sentences == ("A singer.", "She sings.", "Well.")
    translations = ["Une chanteuse.", "Elle chante.", "Bien."]
    joined = layout.join(translations)
    assert joined == "Une chanteuse.[1] Elle chante.1 Bien.²"
    placed = layout.place(translations, [(), (), ()])
    text = "A singer.[1] She sings.1 Well.²"
    assert [(text[a:b], joined[c:d]) for a, b, c, d in placed] == [
        ("[1]", "[1]"),
        ("1", "1"),
        ("²", "²"),
    ]
