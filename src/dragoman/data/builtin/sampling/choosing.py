"""Random choices from the lexicon, frequent words more often than rare ones."""

import random
from bisect import bisect
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import TypeVar

from dragoman.data.builtin.lexicon.adjectives import ADJECTIVES
from dragoman.data.builtin.lexicon.entries import Adjective, Expression, Noun, Place, Verb
from dragoman.data.builtin.lexicon.moments import Date, Hour, Moment, Month, Weekday, Year
from dragoman.data.builtin.lexicon.nouns import MEN, NOUNS, PLACES, WOMEN
from dragoman.data.builtin.lexicon.verbs import VERBS
from dragoman.data.builtin.meaning import Person, Tense

Item = TypeVar("Item")

_TIMES = {
    Tense.PRESENT: (
        Expression("chaque:e jour:d", "every:e day:d", "cada:e día:d"),
        Expression("le:p matin:m", "in:p the:p morning:m", "por:p la:p mañana:m"),
        Expression("le:p soir:m", "in:p the:p evening:m", "por:p la:p noche:m"),
        Expression("en:p été:s", "in:p summer:s", "en:p verano:s"),
        Expression("en:p hiver:s", "in:p winter:s", "en:p invierno:s"),
        Expression("aujourd’hui:t", "today:t", "hoy:t"),
    ),
    Tense.PAST: (
        Expression("hier:y", "yesterday:y", "ayer:y"),
        Expression("ce:t matin:m", "this:t morning:m", "esta:t mañana:m"),
        Expression("la:w semaine:w dernière:l", "last:l week:w", "la:w semana:w pasada:l"),
        Expression("l’:w année:w dernière:l", "last:l year:w", "el:w año:w pasado:l"),
        Expression("le:w mois:w dernier:l", "last:l month:w", "el:w mes:w pasado:l"),
    ),
    Tense.IMPERFECT: (
        Expression("hier:y", "yesterday:y", "ayer:y"),
        Expression("ce:t matin:m", "this:t morning:m", "esta:t mañana:m"),
    ),
    Tense.FUTURE: (
        Expression("demain:t", "tomorrow:t", "mañana:t"),
        Expression("bientôt:s", "soon:s", "pronto:s"),
        Expression("ce:t soir:m", "this:t evening:m", "esta:t noche:m"),
        Expression("la:w semaine:w prochaine:n", "next:n week:w", "la:w próxima:n semana:w"),
        Expression("l’:w année:w prochaine:n", "next:n year:w", "el:w próximo:n año:w"),
    ),
}
FREQUENCIES = (
    Expression("souvent:o", "often:o", "a:o menudo:o"),
    Expression("toujours:a", "always:a", "siempre:a"),
    Expression("parfois:s", "sometimes:s", "a:s veces:s"),
    Expression("rarement:r", "rarely:r", "rara:r vez:r"),
)
MANNERS = (
    Expression("lentement:s", "slowly:s", "lentamente:s"),
    Expression("rapidement:q", "quickly:q", "rápidamente:q"),
    Expression("bien:w", "well:w", "bien:w"),
)
_PAST_YEARS = range(2008, 2025)
_FUTURE_YEARS = range(2027, 2036)


@cache
def _weigh(num_items: int) -> list[float]:
    """Compute cumulative weights that fall slowly with the rank."""
    return list(accumulate(1 / (rank + 3) for rank in range(num_items)))


@cache
def find_nouns(kinds: frozenset[str], mass: bool | None) -> tuple[Noun, ...]:
    """Find the nouns of some kinds."""
    return tuple(
        noun for noun in NOUNS if noun.kinds & kinds and (mass is None or noun.is_mass is mass)
    )


@cache
def find_adjectives(noun: Noun, *, attribute: bool) -> tuple[Adjective, ...]:
    """Find the adjectives that may describe a noun."""
    barred = "predicate" if attribute else "attribute"
    return tuple(
        adjective
        for adjective in ADJECTIVES
        if adjective.kinds & noun.kinds
        and adjective.use != barred
        # exclude “son grand grand-père”
        and not noun.french.singular.startswith(adjective.french[0] + "-")
    )


@cache
def find_verbs(subject_kinds: frozenset[str]) -> tuple[Verb, ...]:
    """Find the plain verbs that a noun of some kinds may be the subject of."""
    special = {"copula", "modal", "content", "price"}
    return tuple(
        verb for verb in VERBS if verb.subjects & subject_kinds and not verb.traits & special
    )


class Chooser:
    """Draws words at random.

    Parameters
    ----------
    generator : random.Random
        The source of chance.
    """

    def __init__(self, generator: random.Random) -> None:
        self._generator = generator

    def happens(self, probability: float) -> bool:
        """Draw a Bernoulli variable."""
        return self._generator.random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """Pick one of some items, all equally likely."""
        return items[int(self._generator.random() * len(items))]

    def pick_ranked(self, items: Sequence[Item]) -> Item:
        """Pick one of some items, the earlier ones more likely."""
        weights = _weigh(len(items))
        return items[bisect(weights, self._generator.random() * weights[-1])]

    def pick_weighted(self, weights: dict[Item, float]) -> Item:
        """Pick one of some items by weights given."""
        point = self._generator.random() * sum(weights.values())
        for item, weight in weights.items():
            point -= weight
            if point < 0:
                return item
        return item

    def pick_number(self, *, most: int) -> int:
        """Pick a number from 2 upwards, small ones more often."""
        span = self.pick_weighted({12: 6.0, 40: 2.0, 99: 1.5, 999: 0.7, 9999: 0.5})
        number = 2 + int(self._generator.random() * (min(span, most) - 1))
        return number - number % 50 if number > 1000 else number

    def pick_person(self) -> Person:
        """Pick a person by name."""
        feminine = self.happens(0.5)
        return Person(self.pick_ranked(WOMEN if feminine else MEN), feminine)

    def pick_place(self, *kinds: str) -> Place:
        """Pick a city, country or continent."""
        return self.pick_ranked([place for place in PLACES if place.kind in kinds])

    def pick_hour(self) -> Hour:
        """Pick an hour of the day."""
        minute = 0 if self.happens(0.6) else self.pick((5, 10, 15, 20, 25, 30))
        return Hour(self.pick(range(1, 12)), minute)

    def pick_moment(self, tense: Tense) -> Moment:
        """Pick a moment that suits a tense."""
        fixed = _TIMES[tense]
        if self.happens(0.45):
            return self.pick(fixed)
        if tense is Tense.PRESENT:
            form = self.pick_weighted({"month": 4.0, "weekday": 2.0, "hour": 2.0})
        elif tense is Tense.IMPERFECT:
            form = "hour"
        else:
            form = self.pick_weighted(
                {"month": 3.0, "weekday": 1.5, "hour": 1.5, "date": 3.0, "year": 1.5}
            )
        years = _FUTURE_YEARS if tense is Tense.FUTURE else _PAST_YEARS
        year = self.pick(years)
        month = self.pick(range(12))
        if form == "month":
            return Month(month, year if tense is not Tense.PRESENT and self.happens(0.3) else 0)
        if form == "weekday":
            return Weekday(self.pick(range(7)), tense is Tense.PRESENT)
        if form == "hour":
            return self.pick_hour()
        if form == "year":
            return Year(year)
        day = self.pick(range(1, 29 if month == 1 else 31))
        if self.happens(0.2):
            return Date(day, month, 0, self.pick(range(7)))
        return Date(day, month, year if self.happens(0.5) else 0)
