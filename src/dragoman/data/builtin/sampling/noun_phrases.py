"""Sampling of noun phrases."""

from collections.abc import Callable
from dataclasses import replace

from dragoman.data.builtin.languages.english_phrases import find_features
from dragoman.data.builtin.lexicon.entries import Noun, Verb
from dragoman.data.builtin.meaning import (
    Determiner,
    Gap,
    Joined,
    Nominal,
    NounPhrase,
    Person,
    Pronoun,
    Quality,
    Relative,
)
from dragoman.data.builtin.sampling.choosing import Chooser, find_adjectives, find_nouns

PERSON = frozenset({"person"})
_OWNABLE = frozenset({"own", "thing", "part", "pet", "vehicle", "home", "text"})
_ORDINALS = ("first", "third")
# Adjectives that exclude a second one, which could be odd (“el alto padre fuerte”) or contradict.
_SINGLE = (*_ORDINALS, "tall", "good", "bad")
_SPECIFIC = {
    Determiner.DEFINITE: 5.0,
    Determiner.INDEFINITE: 3.0,
    Determiner.DEMONSTRATIVE: 1.5,
    Determiner.POSSESSIVE: 2.5,
}
_PERSONAL = {
    Determiner.DEFINITE: 5.0,
    Determiner.INDEFINITE: 2.0,
    Determiner.DEMONSTRATIVE: 1.5,
    Determiner.POSSESSIVE: 0.3,
}
_SHARED = {
    Determiner.DEFINITE: 5.0,
    Determiner.INDEFINITE: 2.5,
    Determiner.DEMONSTRATIVE: 2.0,
}
DrawRelative = Callable[[Noun, bool, int], Relative | None]


class PhraseSampler:
    """Draws noun phrases.

    Parameters
    ----------
    chooser : Chooser
        The source of chance.
    hidden_gender : bool
        Whether the source language shows the gender of “I”, “they” or a lone “it” where the target
        does not: true from French to English, false from English to Spanish, where such a pronoun
        must keep one gender for the translation to be determined.
    draw_relative : DrawRelative
        Draws a relative clause for a noun, its number and the depth left, or gives none.
    """

    def __init__(
        self, chooser: Chooser, *, hidden_gender: bool, draw_relative: DrawRelative
    ) -> None:
        self._chooser = chooser
        self.hidden_gender = hidden_gender
        self._draw_relative = draw_relative

    def draw_gender(self) -> bool:
        """Draw the gender of a pronoun whose target form does not show it."""
        return self.hidden_gender and self._chooser.happens(0.35)

    def draw_owner(self, subject: NounPhrase | None) -> Pronoun | None:
        """Draw an owner: speaker, listener or the subject of the clause."""
        if subject is not None and self._chooser.happens(0.7):
            return own_by(subject)
        return self._chooser.pick(
            (Pronoun(1, False, False), Pronoun(2, False, False), Pronoun(1, True, False))
        )

    def draw_qualities(self, noun: Noun, determiner: Determiner) -> tuple[Quality, ...]:
        """Draw the adjectives of a noun."""
        choices = find_adjectives(noun, attribute=True)
        if not choices or not self._chooser.happens(0.4):
            return ()
        adjective = self._chooser.pick_ranked(choices)
        definite = determiner in (Determiner.DEFINITE, Determiner.POSSESSIVE)
        if adjective.english in _ORDINALS and not definite:
            return ()
        if (
            determiner is Determiner.INDEFINITE
            and adjective.use == "both"
            and adjective.gradable
            and self._chooser.happens(0.2)
        ):
            return (Quality(adjective, "very"),)
        if adjective.french_first and adjective.english not in _SINGLE:
            seconds = [other for other in choices if not other.french_first]
            if seconds and self._chooser.happens(0.25):
                second = self._chooser.pick_ranked(seconds)
                if second.english != "great":
                    return Quality(adjective), Quality(second)
        return (Quality(adjective),)

    def draw_nominal(
        self, noun: Noun, *, subject: NounPhrase | None, depth: int, generic: bool = False
    ) -> Nominal:
        """Draw a phrase around a given noun."""
        chooser = self._chooser
        if generic and chooser.happens(0.75):
            qualities = self.draw_qualities(noun, Determiner.GENERIC)
            return Nominal(noun, not noun.is_mass, Determiner.GENERIC, qualities=qualities)
        weights = _SPECIFIC
        if generic:
            weights = {Determiner.DEMONSTRATIVE: 1.0, Determiner.POSSESSIVE: 1.0}
        elif "own" in noun.kinds:
            weights = {Determiner.POSSESSIVE: 5.0, Determiner.DEFINITE: 1.0}
        elif noun.is_person and "kin" not in noun.kinds:
            weights = _PERSONAL
        elif noun.kinds & {"kin", "public-place", "crossable", "region", "outdoor"}:
            weights = _SHARED
        elif noun.is_mass:
            weights = {Determiner.DEFINITE: 2.0, Determiner.INDEFINITE: 5.0}
        determiner = chooser.pick_weighted(weights)
        owner = self.draw_owner(subject) if determiner is Determiner.POSSESSIVE else None
        if determiner is Determiner.POSSESSIVE and owner is None:
            determiner = Determiner.DEFINITE
        plural = not noun.kinds & {"mass", "unique"} and chooser.happens(0.27)
        phrase = Nominal(noun, plural, determiner, owner)
        must_specify = "own" in noun.kinds and determiner is Determiner.DEFINITE
        return self._extend(phrase, depth, must_specify=must_specify)

    def _extend(self, phrase: Nominal, depth: int, *, must_specify: bool) -> Nominal:
        """Add a number, adjectives, a possessor or a relative clause."""
        chooser = self._chooser
        qualities = self.draw_qualities(phrase.noun, phrase.determiner)
        phrase = replace(phrase, qualities=qualities)
        ordinal = any(quality.adjective.english in _ORDINALS for quality in qualities)
        if phrase.plural and not ordinal and chooser.happens(0.3):
            most = 9999 if phrase.determiner is Determiner.INDEFINITE else 12
            phrase = replace(phrase, cardinal=chooser.pick_number(most=most))
        owned = phrase.determiner is Determiner.DEFINITE and not phrase.cardinal
        ownable = bool(phrase.noun.kinds & _OWNABLE)
        if owned and ownable and (must_specify or chooser.happens(0.2)):
            return replace(phrase, possessor=self.draw_possessor())
        if depth > 0 and phrase.determiner is not Determiner.POSSESSIVE and chooser.happens(0.3):
            relative = self._draw_relative(phrase.noun, phrase.plural, depth - 1)
            if relative is None or (qualities and relative.clause.predicate is not None):
                return phrase
            return replace(phrase, relative=relative)
        return phrase

    def draw_possessor(self) -> NounPhrase:
        """Draw a possessor as a short phrase."""
        if self._chooser.happens(0.6):
            return self._chooser.pick_person()
        noun = self._chooser.pick_ranked(find_nouns(PERSON, None))
        if "own" in noun.kinds:
            owner = self.draw_owner(None)
            plural = "unique" not in noun.kinds and self._chooser.happens(0.2)
            return Nominal(noun, plural, Determiner.POSSESSIVE, owner)
        return Nominal(noun, self._chooser.happens(0.2), Determiner.DEFINITE)

    def draw_person_phrase(self, *, subject: NounPhrase | None, depth: int) -> NounPhrase:
        """Draw a phrase for a person that is not a pronoun."""
        if self._chooser.happens(0.45):
            return self._chooser.pick_person()
        noun = self._chooser.pick_ranked(find_nouns(PERSON, None))
        return self.draw_nominal(noun, subject=subject, depth=depth)

    def draw_subject_pronoun(self) -> Pronoun:
        """Draw a pronoun for a subject."""
        form = self._chooser.pick_weighted(
            {"I": 3.0, "you": 1.7, "he": 3.0, "she": 3.0, "we": 1.5, "they": 1.7}
        )
        gender = self.draw_gender()
        return {
            "I": Pronoun(1, False, gender),
            "you": Pronoun(2, False, gender),
            "he": Pronoun(3, False, False),
            "she": Pronoun(3, False, True),
            "we": Pronoun(1, True, gender),
            "they": Pronoun(3, True, gender),
        }[form]

    def draw_subject(self, *, depth: int) -> NounPhrase:
        """Draw a person as the subject of a clause."""
        if self._chooser.happens(0.33):
            return self.draw_subject_pronoun()
        phrase = self.draw_person_phrase(subject=None, depth=depth)
        if isinstance(phrase, Person) and self._chooser.happens(0.12):
            other = self.draw_person_phrase(subject=None, depth=0)
            if other != phrase:
                return Joined(phrase, other)
        return phrase

    def draw_object(self, verb: Verb, subject: NounPhrase, *, depth: int) -> NounPhrase:
        """Draw a direct object that is no pronoun."""
        chooser = self._chooser
        if "country" in verb.objects and chooser.happens(0.6):
            return chooser.pick_place("country", "city", "continent")
        noun = chooser.pick_ranked(find_nouns(verb.objects, None))
        if "language" in noun.kinds:
            return Nominal(noun, False, Determiner.GENERIC)
        if noun.is_person:
            return self.draw_person_phrase(subject=subject, depth=depth)
        generic = "generic" in verb.traits
        phrase = self.draw_nominal(noun, subject=subject, depth=depth, generic=generic)
        if generic or phrase.relative or phrase.possessor or not chooser.happens(0.07):
            return phrase
        other = chooser.pick_ranked(find_nouns(verb.objects, None))
        if other is noun or other.is_person or "language" in other.kinds:
            return phrase
        return Joined(phrase, self.draw_nominal(other, subject=subject, depth=0))


def own_by(subject: NounPhrase) -> Pronoun | None:
    """Return the possessive pronoun of a subject."""
    match subject:
        case Pronoun(person, plural, feminine, _):
            return Pronoun(person, plural, feminine)
        case Person():
            return Pronoun(3, False, subject.feminine)
        case Joined():
            return Pronoun(3, True, False)
        case Nominal() | Gap():
            if subject.noun is None or not subject.noun.is_person:
                return None
            feminine = subject.noun.english.feminine
            return Pronoun(3, find_features(subject).plural, feminine)
        case _:
            return None
