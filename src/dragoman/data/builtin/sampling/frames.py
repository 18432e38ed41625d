"""Sampling of verb frames: verb and complements of a clause, before tense and negation."""

from dataclasses import replace

from dragoman.data.builtin.languages.english_phrases import find_features
from dragoman.data.builtin.lexicon.adjectives import ADJECTIVE_OF
from dragoman.data.builtin.lexicon.entries import Noun, Verb
from dragoman.data.builtin.lexicon.nouns import NOUN_OF
from dragoman.data.builtin.lexicon.verbs import ESTAR, HAVE, SER, VERBS
from dragoman.data.builtin.meaning import (
    Age,
    Attribute,
    Circumstance,
    Clause,
    Condition,
    Determiner,
    Gap,
    Joined,
    Nominal,
    NounPhrase,
    Occupation,
    Pronoun,
    Quality,
)
from dragoman.data.builtin.sampling.choosing import (
    Chooser,
    find_adjectives,
    find_nouns,
    find_verbs,
)
from dragoman.data.builtin.sampling.noun_phrases import PERSON, PhraseSampler

# “avoir faim”, “to be hungry”, “tener hambre”: the verb differs, so it is put together here.
BE_OR_HAVE = Verb(
    PERSON, frozenset(), frozenset({"stative"}), HAVE.french, SER.english, HAVE.spanish
)
_CONDITIONS = (
    Condition("faim", "hungry", "hambre", True),
    Condition("soif", "thirsty", "sed", True),
    Condition("froid", "cold", "frío", False),
    Condition("peur", "afraid", "miedo", False),
    Condition("sommeil", "sleepy", "sueño", False),
)
_GRANDPARENTS = (NOUN_OF["grandfather"], NOUN_OF["grandmother"])
_COST = next(verb for verb in VERBS if "price" in verb.traits)
_COUNTRY_QUALITIES = ("large", "small", "beautiful", "rich", "interesting")
_VISITED = frozenset({"place"})
_INSIDE = frozenset({"in", "at"})
_BESIDE = frozenset({"public-place", "landmark"})
_BENEFITING = frozenset({"buy", "write", "sing", "look", "work", "paint", "build", "cook"})


class FrameSampler:
    """Draws clauses in the present tense without adverbs.

    Parameters
    ----------
    chooser : Chooser
        The source of chance.
    phrases : PhraseSampler
        Draws the noun phrases.
    """

    def __init__(self, chooser: Chooser, phrases: PhraseSampler) -> None:
        self._chooser = chooser
        self._phrases = phrases

    def describe_thing(self, depth: int) -> Clause:
        """Draw a clause about a thing, an animal or a country: quality, price or location."""
        chooser = self._chooser
        if chooser.happens(0.08):
            country = chooser.pick_place("country")
            standard = chooser.pick_place("country")
            adjective = ADJECTIVE_OF[chooser.pick(_COUNTRY_QUALITIES)]
            compared = standard is not country and bool(adjective.english_comparative)
            return Clause(
                subject=country,
                verb=SER,
                predicate=Attribute(
                    Quality(adjective, "" if compared else "very"),
                    "more" if compared else "",
                    standard if compared else None,
                ),
            )
        kinds = {
            "animal": 3.0,
            "thing": 3.0,
            "place": 2.0,
            "vehicle": 1.5,
            "food": 1.0,
            "part": 0.6,
        }
        kinds |= {"text": 0.7, "event": 0.7, "study": 0.5, "idea": 0.5, "song": 0.3}
        kind = chooser.pick_weighted(kinds)
        noun = chooser.pick_ranked(find_nouns(frozenset({kind}), False))
        phrase = self._phrases.draw_nominal(noun, subject=None, depth=depth)
        frame = chooser.pick_weighted({"attribute": 7.0, "where": 1.5, "price": 1.0, "event": 1.0})
        if "region" in noun.kinds and noun is not NOUN_OF["country"] and chooser.happens(0.3):
            people = Nominal(
                NOUN_OF["inhabitant"],
                True,
                Determiner.INDEFINITE,
                cardinal=chooser.pick_number(most=9999),
            )
            return Clause(subject=phrase, verb=HAVE, object=people)
        if frame == "where" and kind in ("animal", "thing"):
            return self.locate(phrase)
        if frame == "price" and kind in ("thing", "vehicle") and not phrase.plural:
            price = Nominal(
                NOUN_OF["euro"],
                True,
                Determiner.INDEFINITE,
                cardinal=chooser.pick_number(most=9999),
            )
            return Clause(subject=phrase, verb=_COST, object=price)
        if frame == "event" and find_verbs(noun.kinds):
            return self.act(phrase, depth=depth)
        return self.attribute(phrase)

    def attribute(self, subject: NounPhrase) -> Clause:
        """Draw a predicative adjective, plain or compared."""
        chooser = self._chooser
        noun = NOUN_OF["man"]
        if isinstance(subject, Nominal | Gap) and subject.noun is not None:
            noun = subject.noun
        if isinstance(subject, Nominal):
            # two qualities of one thing may contradict each other
            subject = replace(subject, qualities=())
            if subject.determiner is Determiner.INDEFINITE:
                subject = replace(subject, determiner=Determiner.DEFINITE)
        adjective = chooser.pick_ranked(find_adjectives(noun, attribute=False))
        verb = ESTAR if adjective.spanish_estar else SER
        form = ""
        if adjective.gradable:
            form = chooser.pick_weighted({"": 4.0, "very": 3.0, "too": 1.0, "compared": 1.8})
        if form != "compared":
            return Clause(subject=subject, verb=verb, predicate=Attribute(Quality(adjective, form)))
        comparison = chooser.pick_weighted({"more": 5.0, "less": 1.0, "as": 2.0})
        standard: NounPhrase
        if noun.is_person and chooser.happens(0.7):
            standard = chooser.pick_person()
            if _names_same(standard, subject) or chooser.happens(0.3):
                standard = self._draw_other_pronoun(find_features(subject).person)
        else:
            others = [
                other
                for other in find_nouns(noun.kinds & adjective.kinds, noun.is_mass)
                if other is not noun
            ]
            if not others:
                return Clause(
                    subject=subject, verb=verb, predicate=Attribute(Quality(adjective, "very"))
                )
            other = chooser.pick_ranked(others)
            standard = replace(
                self._phrases.draw_nominal(other, subject=None, depth=0), cardinal=0, qualities=()
            )
            if standard.determiner in (Determiner.INDEFINITE, Determiner.GENERIC):
                standard = replace(standard, determiner=Determiner.DEMONSTRATIVE)
        return Clause(
            subject=subject,
            verb=verb,
            predicate=Attribute(Quality(adjective), comparison, standard),
        )

    def describe_state(self, subject: NounPhrase, *, passing: bool = False) -> Clause:
        """Draw a clause about a person's condition, age or profession."""
        chooser = self._chooser
        form = chooser.pick_weighted({"condition": 4.0, "age": 2.0, "work": 3.0})
        if passing:
            form = "condition"
        features = find_features(subject)
        person = not isinstance(subject, Gap | Nominal) or bool(
            subject.noun and subject.noun.is_person
        )
        if form == "work" and person and not features.plural:
            feminine = features.feminine
            if isinstance(subject, Gap) and subject.noun is not None:
                feminine = subject.noun.english.feminine
            busy = isinstance(subject, Nominal | Gap) and "work" in (
                subject.noun.kinds if subject.noun else ()
            )
            jobs = [
                noun
                for noun in find_nouns(frozenset({"work"}), None)
                if noun.french.feminine is feminine
            ]
            if not busy:
                return Clause(
                    subject=subject, verb=SER, predicate=Occupation(chooser.pick_ranked(jobs))
                )
        if form == "age":
            years = chooser.pick_number(most=99)
            if isinstance(subject, Nominal) and subject.noun in _GRANDPARENTS:
                years = 60 + years // 3
            return Clause(subject=subject, verb=BE_OR_HAVE, predicate=Age(years))
        condition = replace(chooser.pick(_CONDITIONS), strong=chooser.happens(0.25))
        return Clause(subject=subject, verb=BE_OR_HAVE, predicate=condition)

    def locate(self, subject: NounPhrase) -> Clause:
        """Draw a clause about where a subject is."""
        thing = isinstance(subject, Nominal) and not subject.noun.is_person
        where = self.draw_location(event=not thing)
        return Clause(subject=subject, verb=ESTAR, circumstances=(where,))

    def draw_location(self, *, event: bool = False) -> Circumstance:
        """Draw a location."""
        chooser = self._chooser
        if chooser.happens(0.25):
            return Circumstance("in", chooser.pick_place("city", "country"))
        if chooser.happens(0.6):
            noun = chooser.pick_ranked(find_nouns(_INSIDE, None))
            if noun is NOUN_OF["country"]:
                noun = NOUN_OF["city"]
            return Circumstance("in", self._definite(noun))
        relations = ("near", "in front of", "behind", "on", "under")
        relation = chooser.pick(relations[: 3 if event else 5])
        kinds = frozenset({"surface"}) if relation in ("on", "under") else _BESIDE
        noun = chooser.pick_ranked(find_nouns(kinds, None))
        return Circumstance(relation, self._definite(noun))

    def _definite(self, noun: Noun) -> Nominal:
        weights = {Determiner.DEFINITE: 6.0, Determiner.DEMONSTRATIVE: 1.0}
        if "at" not in noun.kinds:
            weights[Determiner.INDEFINITE] = 1.0
        determiner = self._chooser.pick_weighted(weights)
        qualities: tuple[Quality, ...] = ()
        if self._chooser.happens(0.3):
            qualities = self._phrases.draw_qualities(noun, determiner)
        return Nominal(noun, False, determiner, qualities=qualities)

    def act(self, subject: NounPhrase, *, depth: int, active: bool = False) -> Clause:
        """Draw a verb with its object, recipient and place."""
        chooser = self._chooser
        kinds = PERSON
        if isinstance(subject, Nominal | Gap) and subject.noun is not None:
            kinds = subject.noun.kinds
        verbs = find_verbs(kinds)
        if active:
            verbs = tuple(verb for verb in verbs if not verb.traits & {"stative", "past"})
        verb = chooser.pick_ranked(verbs)
        clause = Clause(subject=subject, verb=verb)
        if verb.objects and not ("optional" in verb.traits and chooser.happens(0.25)):
            thing = self._phrases.draw_object(verb, subject, depth=depth)
            while _names_same(thing, subject):
                thing = self._phrases.draw_object(verb, subject, depth=depth)
            clause = replace(clause, object=thing)
        if "recipient" in verb.traits and clause.object and chooser.happens(0.95):
            recipient = self._phrases.draw_person_phrase(subject=subject, depth=0)
            if not _names_same(recipient, subject):
                clause = replace(clause, recipient=recipient)
        return replace(clause, circumstances=self._draw_circumstances(verb, subject))

    def _draw_circumstances(self, verb: Verb, subject: NounPhrase) -> tuple[Circumstance, ...]:
        chooser = self._chooser
        relation = {"motion": "to", "origin": "from", "abroad": "around", "residence": "in"}
        for trait, name in relation.items():
            if trait in verb.traits:
                if verb.english.base == "arrive":
                    name = "arrival"
                return (Circumstance(name, self._draw_goal(name)),)
        if "birth" in verb.traits:
            return (Circumstance("in", chooser.pick_place("city", "country")),)
        if "start" in verb.traits or verb.is_stative:
            return ()
        found: list[Circumstance] = []
        if chooser.happens(0.13):
            found.append(self._draw_company(verb, subject))
        if chooser.happens(0.16) and not verb.objects & _VISITED and verb.objects != PERSON:
            found.append(self.draw_location(event=True))
        return tuple(found)

    def _draw_goal(self, relation: str) -> NounPhrase:
        chooser = self._chooser
        if relation in ("in", "around") or chooser.happens(0.55):
            return chooser.pick_place("city", "country", "city", "continent")
        return self._definite(chooser.pick_ranked(find_nouns(frozenset({"at"}), None)))

    def _draw_company(self, verb: Verb, subject: NounPhrase) -> Circumstance:
        chooser = self._chooser
        relation = "for" if verb.english.base in _BENEFITING and chooser.happens(0.4) else "with"
        if relation == "with" and chooser.happens(0.15):
            return Circumstance("without", chooser.pick_person())
        if chooser.happens(0.35):
            person = find_features(subject).person
            return Circumstance(relation, self._draw_other_pronoun(person))
        companion = self._phrases.draw_person_phrase(subject=None, depth=0)
        if _names_same(companion, subject):
            return Circumstance(relation, self._draw_other_pronoun(3))
        return Circumstance(relation, companion)

    def _draw_other_pronoun(self, person: int) -> Pronoun:
        """Draw a pronoun of another person than the one given."""
        choices = ((1, False), (2, False), (3, False), (1, True), (3, True))
        chosen, plural = self._chooser.pick([c for c in choices if c[0] != person])
        feminine = chosen == 3 and not plural and self._chooser.happens(0.5)
        return Pronoun(chosen, plural, feminine)


def _names_same(phrase: NounPhrase, subject: NounPhrase) -> bool:
    """Tell whether a phrase repeats the subject's name or noun."""
    if isinstance(phrase, Nominal) and isinstance(subject, Nominal | Gap):
        return phrase.noun is subject.noun
    if isinstance(subject, Joined):
        return _names_same(phrase, subject.first) or _names_same(phrase, subject.second)
    return phrase == subject
