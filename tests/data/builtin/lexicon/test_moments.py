"""Moments in three languages, compared with what a calendar would print."""

import pytest

from dragoman.data.builtin.lexicon.moments import (
    Date,
    Hour,
    Month,
    Weekday,
    Year,
    realise_english_moment,
    realise_french_moment,
    realise_spanish_moment,
)


@pytest.mark.parametrize(
    ("moment", "french", "english", "spanish"),
    [
        (Month(8), "en septembre", "in September", "en septiembre"),
        (Month(7, 2030), "en août 2030", "in August 2030", "en agosto de 2030"),
        (
            Date(21, 8, 2024),
            "le 21 septembre 2024",
            "on 21 September 2024",
            "el 21 de septiembre de 2024",
        ),
        (Date(3, 4), "le 3 mai", "on 3 May", "el 3 de mayo"),
        (Date(1, 0), "le 1er janvier", "on 1 January", "el 1 de enero"),
        (Date(5, 5, 0, 2), "le mercredi 5 juin", "on Wednesday 5 June", "el miércoles 5 de junio"),
        (Weekday(0, False), "lundi", "on Monday", "el lunes"),
        (Weekday(5, True), "le samedi", "on Saturdays", "los sábados"),
        (Year(2019), "en 2019", "in 2019", "en 2019"),
        (Hour(1), "à une heure", "at one o’clock", "a la una"),
        (Hour(8, 30), "à huit heures et demie", "at half past eight", "a las ocho y media"),
        (Hour(3, 15), "à trois heures et quart", "at a quarter past three", "a las tres y cuarto"),
        (
            Hour(9, 25),
            "à neuf heures vingt-cinq",
            "at twenty-five past nine",
            "a las nueve y veinticinco",
        ),
    ],
)
def test_moments(moment, french, english, spanish):
    said = [
        say(moment, "time")
        for say in (realise_french_moment, realise_english_moment, realise_spanish_moment)
    ]
    assert [" ".join(word.text for word in words) for words in said] == [french, english, spanish]
    nodes = [frozenset().union(*(word.nodes for word in words)) for words in said]
    assert nodes[0] == nodes[1] == nodes[2]
