"""Numbers that a translation lacks, invents, repeats or writes in a wrong way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.output.number_doubts import compare_numbers


def told(source, translation, *languages):
    return [each.words for each in compare_numbers(source, translation, *languages)]


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Am 12.10.2023 kam er.", "He came on October 12, 2023."),
        ("Am 12.10.2023 kam er.", "He came on 10/12/2023."),
        ("Am 1. August 2023 kam er.", "He came on 01/08/2023."),
        ("Um 19:30 Uhr beginnt es.", "It begins at 7:30 p.m."),
        ("Um 14 Uhr beginnt es.", "It begins at 2 pm."),
        ("Um 2 Uhr beginnt es.", "It begins at 2 p.m."),
        ("Es kostet 1.214,70 Euro.", "It costs 1,214.70 euros."),
        ("Im Jahr 2020 300 Leute.", "In 2020, 300 people."),
        ("Er kam um zehn.", "He came at 10."),
        ("Vor 50 Jahren", "Fifty years ago"),
        ("Seiten 3-5", "pages 3 to 5"),
        ("Version 1.2.3", "version 1.2.3"),
    ],
)
def test_same_numbers_are_no_doubt(source, translation):
    assert told(source, translation, "de", "en") == []


@pytest.mark.parametrize(
    ("source", "translation", "words"),
    [
        ("Am 1. August", "On August 1, 1", "the number 1 stands once more than in the source"),
        ("2, 2", "2", "the number 2 stands once more than in the translation"),
        ("Es gibt 7.", "There are 8.", "the number 7 is not in the translation"),
        ("Es gibt 7.", "There are 8.", "the number 8 is not in the source"),
        (
            "2.850 Leute",
            "2.850 people",
            "the number 2.850 is written as in the source’s language",
        ),
        ("1.214,70 Euro", "1.214.70 euros", "the number 1.214.70 is not well formed"),
        ("um 19:30 Uhr", "at 19 a.30 p.m.", "the time 19 a.30 p.m. is not well formed"),
        ("Am 12.10.2023", "On a day", "the date 12.10.2023 is not in the translation"),
    ],
)
def test_other_numbers_are_doubts(source, translation, words):
    assert words in told(source, translation, "de", "en")


def test_a_date_is_one_doubt():
    assert told("Am 12.10.2023 kam er.", "He came in 2023.", "de", "en") == [
        "the date 12.10.2023 is not in the translation"
    ]


def test_notation_depends_on_languages():
    assert told("2,850 people", "2,850 Leute", "en", "de") == [
        "the number 2,850 is written as in the source’s language"
    ]
    assert told("2,850 people", "2,850 personas", "en", "es") == []
    assert told("2.850 Leute", "2.850 mensen", "de", "nl") == []
    assert told("2.850 Leute", "2.850 people") == []


@given(st.text("0123456789.,:/- apm", max_size=30), st.text("0123456789.,:/- apm", max_size=30))
def test_places_are_in_the_texts(source, translation):
    for each in compare_numbers(source, translation, "de", "en"):
        text = {"source": source, "target": translation}[each.side]
        assert 0 <= each.begin < each.end <= len(text)
