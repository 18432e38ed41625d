"""Nouns and adjectives of the lexicon, compared with forms written down by hand."""

import pytest

from dragoman.data.builtin.lexicon.adjectives import ADJECTIVE_OF, ADJECTIVES
from dragoman.data.builtin.lexicon.nouns import NOUN_OF, NOUNS
from dragoman.data.builtin.lexicon.verbs import VERBS


@pytest.mark.parametrize(
    ("english", "french_plural", "english_plural", "spanish_plural"),
    [
        ("horse", "chevaux", "horses", "caballos"),
        ("bird", "oiseaux", "birds", "pájaros"),
        ("mouse", "souris", "mice", "ratones"),
        ("knife", "couteaux", "knives", "cuchillos"),
        ("tomato", "tomates", "tomatoes", "tomates"),
        ("party", "fêtes", "parties", "fiestas"),
        ("church", "églises", "churches", "iglesias"),
        ("lesson", "leçons", "lessons", "lecciones"),
        ("judge", "juges", "judges", "juezas"),
        ("actress", "actrices", "actresses", "actrices"),
        ("country", "pays", "countries", "países"),
        ("exam", "examens", "exams", "exámenes"),
        ("bus", "bus", "buses", "autobuses"),
        ("umbrella", "parapluies", "umbrellas", "paraguas"),
        ("grandmother", "grands-mères", "grandmothers", "abuelas"),
    ],
)
def test_plurals(english, french_plural, english_plural, spanish_plural):
    noun = NOUN_OF[english]
    plurals = (noun.french.plural, noun.english.plural, noun.spanish.plural)
    assert plurals == (french_plural, english_plural, spanish_plural)


@pytest.mark.parametrize(
    ("english", "french", "spanish"),
    [
        ("beautiful", "beau belle beaux belles", "hermoso hermosa hermosos hermosas"),
        ("white", "blanc blanche blancs blanches", "blanco blanca blancos blancas"),
        ("happy", "heureux heureuse heureux heureuses", "feliz feliz felices felices"),
        (
            "French",
            "français française français françaises",
            "francés francesa franceses francesas",
        ),
        ("young", "jeune jeune jeunes jeunes", "joven joven jóvenes jóvenes"),
        ("easy", "facile facile faciles faciles", "fácil fácil fáciles fáciles"),
        (
            "Italian",
            "italien italienne italiens italiennes",
            "italiano italiana italianos italianas",
        ),
    ],
)
def test_adjectives(english, french, spanish):
    adjective = ADJECTIVE_OF[english]
    assert adjective.french == tuple(french.split())
    assert adjective.spanish == tuple(spanish.split())


def test_english_tells_the_gender_of_a_person():
    # one English noun, one gender: else Spanish could not be told from English
    assert len(NOUN_OF) == len(NOUNS)
    for noun in NOUNS:
        if noun.is_person:
            assert noun.french.feminine == noun.spanish.feminine == noun.english.feminine


def test_french_nouns_are_told_apart():
    assert len({noun.french.singular for noun in NOUNS}) == len(NOUNS)


def test_lexicon_is_large_enough():
    assert len(NOUNS) >= 120
    assert len(VERBS) >= 60
    assert len(ADJECTIVES) >= 40
