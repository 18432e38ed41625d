"""Sampling of sentences: templates, their weights, and the links between clauses."""

import random
from dataclasses import replace

from dragoman.data.builtin.languages.english_phrases import find_features
from dragoman.data.builtin.lexicon.verbs import VERBS
from dragoman.data.builtin.lexicon.weather import WEATHER_KINDS
from dragoman.data.builtin.meaning import (
    Circumstance,
    Clause,
    DayOfWeek,
    Determiner,
    Exclamation,
    Existence,
    Fragment,
    Gap,
    HourOfDay,
    Identification,
    Linked,
    Nominal,
    Pronoun,
    Proposition,
    Quality,
    Question,
    Sentence,
    Statement,
    Tense,
    Weather,
)
from dragoman.data.builtin.sampling.choosing import Chooser, find_adjectives, find_nouns
from dragoman.data.builtin.sampling.clauses import (
    ClauseSampler,
    avoid_repetition,
    end_with_time,
    tell_in_past,
)

_PRESENT = {Tense.PRESENT: 1.0}
_TEMPLATES = {
    "simple": 42.0,
    "linked": 20.0,
    "anaphora": 4.0,
    "saying": 6.0,
    "long": 9.0,
    "question": 9.0,
    "existence": 4.0,
    "identification": 2.5,
    "weather": 1.5,
    "exclamation": 1.0,
    "fragment": 4.0,
    "clock": 1.0,
}
_FOLLOWING = {
    Tense.PRESENT: {Tense.PRESENT: 1.0},
    Tense.PAST: {Tense.PAST: 1.0, Tense.IMPERFECT: 1.0},
    Tense.IMPERFECT: {Tense.PAST: 1.0, Tense.IMPERFECT: 1.0},
    Tense.FUTURE: {Tense.PRESENT: 1.0, Tense.FUTURE: 1.0},
}
_EXISTING = frozenset({"animal", "thing", "person", "food", "vehicle"})
_IDENTIFIED = frozenset({"thing", "place", "text", "idea", "food", "animal"})


class SentenceSampler:
    """Draws sentences.

    Parameters
    ----------
    generator : random.Random
        The source of chance.
    hidden_gender : bool
        Whether the source shows genders that the target hides; see PhraseSampler.
    """

    def __init__(self, generator: random.Random, *, hidden_gender: bool) -> None:
        self._chooser = Chooser(generator)
        self.clauses = ClauseSampler(self._chooser, hidden_gender=hidden_gender)

    def draw(self) -> Sentence:
        """Draw a sentence of any template."""
        match self._chooser.pick_weighted(_TEMPLATES):
            case "simple":
                return self.draw_simple()
            case "linked":
                return self._end(Statement(self._link(depth=1), None))
            case "anaphora":
                return self._end(self._refer_back())
            case "saying":
                clause = self.clauses.draw_saying(1)
                return self._end(Statement((Linked("", clause),)))
            case "long":
                return self._end(self._draw_long())
            case "question":
                return Sentence(self._ask(), "?")
            case "exclamation":
                return Sentence(self._admire(), "!")
            case "fragment":
                noun = self._chooser.pick_ranked(find_nouns(_IDENTIFIED | _EXISTING, None))
                phrases = self.clauses.phrases
                return Sentence(Fragment(phrases.draw_nominal(noun, subject=None, depth=0)), "")
            case template:
                proposition = self._draw_impersonal(template)
                return self._end(Statement((Linked("", proposition),)), short=True)

    def draw_simple(self) -> Sentence:
        """Draw a sentence of one clause."""
        depth = 1 if self._chooser.happens(0.45) else 0
        clause = self.clauses.draw_clause(depth=depth, lone=True)
        return self._end(Statement((Linked("", clause),)), short=depth == 0)

    def _end(self, statement: Statement, *, short: bool = False) -> Sentence:
        if short and self._chooser.happens(0.22):
            return Sentence(statement, "")
        return Sentence(statement, "!" if self._chooser.happens(0.03) else ".")

    # impersonal propositions

    def _draw_impersonal(self, template: str) -> Proposition:
        if template == "existence":
            return self._draw_existence()
        if template == "identification":
            return self._identify()
        if template == "weather":
            return self._draw_weather(None)
        if self._chooser.happens(0.75):
            return HourOfDay(self._chooser.pick_hour())
        return DayOfWeek(self._chooser.pick(range(7)))

    def _draw_weather(self, tense: Tense | None) -> Weather:
        chooser = self._chooser
        if tense is None:
            tense = chooser.pick((Tense.PRESENT, Tense.PAST, Tense.FUTURE))
        weather = Weather(
            kind=chooser.pick(WEATHER_KINDS), tense=tense, negated=chooser.happens(0.15)
        )
        if chooser.happens(0.3) and tense is not Tense.PAST:
            return replace(weather, time=chooser.pick_moment(tense))
        return weather

    def _draw_existence(self) -> Existence:
        chooser = self._chooser
        noun = chooser.pick_ranked(find_nouns(_EXISTING, None))
        if "own" in noun.kinds:
            noun = chooser.pick_ranked(find_nouns(frozenset({"animal", "thing"}), None))
        negated = chooser.happens(0.2)
        plural = not noun.is_mass and (negated or chooser.happens(0.45))
        phrases = self.clauses.phrases
        qualities = phrases.draw_qualities(noun, Determiner.INDEFINITE)
        phrase = Nominal(noun, plural, Determiner.INDEFINITE, qualities=qualities)
        if plural and not negated and chooser.happens(0.45):
            phrase = replace(phrase, cardinal=chooser.pick_number(most=9999))
        tense = chooser.pick((Tense.PRESENT, Tense.PRESENT, Tense.PAST, Tense.FUTURE))
        where: tuple[Circumstance, ...] = ()
        if chooser.happens(0.8):
            where = (self.clauses.frames.draw_location(event=noun.is_person),)
        return Existence(phrase=phrase, tense=tense, negated=negated, circumstances=where)

    def _identify(self) -> Identification:
        chooser = self._chooser
        noun = chooser.pick_ranked(find_nouns(_IDENTIFIED, False))
        depth = 1 if chooser.happens(0.4) else 0
        phrase = self.clauses.phrases.draw_nominal(noun, subject=None, depth=depth)
        phrase = replace(phrase, plural=False, cardinal=0)
        if phrase.relative is not None:
            phrase = replace(phrase, relative=None, plural=False)
        if phrase.determiner is Determiner.DEMONSTRATIVE:
            phrase = replace(phrase, determiner=Determiner.INDEFINITE)
        return Identification(phrase=phrase, negated=chooser.happens(0.2))

    # several clauses

    def _link(self, *, depth: int) -> tuple[Linked, ...]:
        """Draw two clauses joined by a link, sometimes with one subject for both."""
        chooser = self._chooser
        link = chooser.pick_weighted({"and": 3.0, "but": 2.0, "because": 3.0, "when": 2.0})
        if link == "when":
            occasion, main = self._draw_when()
            return Linked("", main), Linked("when", occasion)
        first_clause = self.clauses.draw_clause(
            depth=depth if chooser.happens(0.4) else 0, active=link == "because"
        )
        if link == "and" and chooser.happens(0.5) and not first_clause.time_first:
            shared = self.clauses.draw_clause(
                subject=first_clause.subject, tenses={first_clause.tense: 1.0}
            )
            if shared.predicate is None or first_clause.predicate is None:
                shared = replace(end_with_time(shared), subject_omitted=True)
                return Linked("", first_clause), Linked("and", shared)
        return Linked("", first_clause), self._follow(link, first_clause, depth=0)

    def _follow(self, link: str, before: Proposition, *, depth: int) -> Linked:
        """Draw a clause that follows another."""
        tense = before.tense if isinstance(before, Clause) else Tense.PRESENT
        if link == "because" and self._chooser.happens(0.2):
            weather = Tense.PAST if tense in (Tense.PAST, Tense.IMPERFECT) else Tense.PRESENT
            return Linked(link, replace(self._draw_weather(weather), time=None))
        clause = end_with_time(
            self.clauses.draw_clause(
                depth=depth, active=link == "because", tenses=_FOLLOWING[tense]
            )
        )
        if isinstance(before, Clause):
            clause = avoid_repetition(clause, before.subject)
        return Linked(link, clause)

    def _draw_when(self) -> tuple[Proposition, Clause]:
        """Draw a subordinate clause of time and a main clause whose tenses agree."""
        chooser = self._chooser
        if chooser.happens(0.55):
            main = self.clauses.draw_clause(tenses=_PRESENT, active=True)
            if chooser.happens(0.4):
                return replace(self._draw_weather(Tense.PRESENT), time=None), self._strip(main)
            other = self.clauses.draw_clause(tenses=_PRESENT, active=True)
            return avoid_repetition(self._strip(other), main.subject), self._strip(main)
        arrive = [v for v in VERBS if v.english.base in ("arrive", "leave", "enter", "call")]
        subject = self.clauses.phrases.draw_subject(depth=0)
        verb = chooser.pick(arrive)
        event = Clause(subject=subject, verb=verb, tense=Tense.PAST)
        if verb.objects:
            event = replace(event, object=self.clauses.phrases.draw_object(verb, subject, depth=0))
        main = self.clauses.draw_clause(tenses={Tense.IMPERFECT: 1.0}, active=True)
        if main.verb.is_stative or main.modal is not None:
            main = tell_in_past(main)
        elif main.tense is not Tense.IMPERFECT:
            return self._draw_when()
        return event, self._strip(main)

    def _strip(self, clause: Clause) -> Clause:
        return replace(clause, time=None, time_first=False, frequency=None)

    def _draw_condition(self) -> Statement:
        """Draw “if …, … will …”."""
        if self._chooser.happens(0.4):
            condition: Proposition = replace(self._draw_weather(Tense.PRESENT), time=None)
        else:
            condition = self._strip(self.clauses.draw_clause(tenses=_PRESENT, active=True))
        main = self.clauses.draw_clause(tenses={Tense.FUTURE: 1.0}, depth=1, active=True)
        return Statement((Linked("", end_with_time(main)),), Linked("if", condition))

    def _refer_back(self) -> Statement:
        """Draw a clause with an object, and another that refers to it by a pronoun."""
        chooser = self._chooser
        for _ in range(50):
            first = self.clauses.draw_clause(depth=0)
            thing = first.object
            if not isinstance(thing, Nominal) or thing.noun.is_mass or thing.relative:
                continue
            if thing.determiner is Determiner.GENERIC or first.is_negated:
                continue
            if "unit" in thing.noun.kinds or "language" in thing.noun.kinds or first.modal:
                continue
            for _ in range(50):
                second = self.clauses.draw_clause(depth=0, tenses=_FOLLOWING[first.tense])
                accepts = second.verb.objects & thing.noun.kinds
                fitting = second.object is not None and accepts and second.verb is not first.verb
                if not fitting or second.verb.is_oblique or "generic" in second.verb.traits:
                    continue
                if thing.noun.is_person and second.recipient is not None:
                    continue
                pronoun = Pronoun(3, thing.plural, thing.noun.english.feminine, thing.noun)
                recipient = second.recipient
                if isinstance(recipient, Pronoun) and recipient.person == 3:
                    recipient = None
                second = replace(second, object=pronoun, recipient=recipient, time_first=False)
                second = avoid_repetition(second, first.subject)
                link = chooser.pick(("and", "but", "but"))
                return Statement((Linked("", first), Linked(link, second)))
        return Statement(self._link(depth=0))

    def _draw_long(self) -> Statement:
        """Draw a sentence of several clauses, some with nested relative clauses."""
        chooser = self._chooser
        if chooser.happens(0.2):
            return self._draw_condition()
        opening = None
        if chooser.happens(0.3):
            occasion, main = self._draw_when()
            opening = Linked("when", occasion)
            parts = [Linked("", main)]
        else:
            parts = list(self._link(depth=2))
        while len(parts) < 5 and chooser.happens(0.6):
            used = {part.link for part in parts}
            link = chooser.pick(
                [name for name in ("and", "but", "because") if name not in used] or ["and"]
            )
            if chooser.happens(0.35):
                parts.append(Linked(link, self.clauses.draw_saying(2)))
            else:
                parts.append(self._follow(link, parts[-1].proposition, depth=2))
        return Statement(tuple(parts), opening)

    # questions and exclamations

    def _ask(self) -> Question:
        chooser = self._chooser
        word = chooser.pick_weighted(
            {"": 5.0, "why": 1.5, "where": 1.2, "when": 1.0, "what": 1.5, "who": 1.2}
        )
        for _ in range(200):
            if word == "who":
                clause = self.clauses.draw_clause(subject=Gap(None, False))
                if clause.verb.english.is_be and clause.predicate is None:
                    continue
                if self._has_owner(clause):
                    continue
            else:
                clause = self.clauses.draw_clause(depth=0, lone=True)
                if find_features(clause.subject).form_index == 0:
                    continue
            clause = self._strip(clause)
            if clause.is_negated and word != "why":
                continue
            if word in ("where", "when") and not self._is_event(clause):
                continue
            if word == "where":
                clause = replace(clause, circumstances=())
            if word == "what":
                if clause.object is None or clause.verb.is_oblique or not self._asks_what(clause):
                    continue
                clause = replace(clause, object=Gap(None, False), manner=None)
            return Question(word, clause)
        raise AssertionError("no clause suits the question")

    def _has_owner(self, clause: Clause) -> bool:
        """Tell whether the clause has a possessive whose owner is not named."""
        phrases = [clause.object, clause.recipient]
        return any(
            isinstance(phrase, Nominal) and phrase.owner is not None and phrase.owner.person == 3
            for phrase in phrases
        )

    def _is_event(self, clause: Clause) -> bool:
        traits = {"motion", "origin", "past", "abroad"}
        if clause.verb.objects & {"place", "home", "crossable"}:
            return False
        return (
            clause.predicate is None
            and not clause.verb.traits & traits
            and (not clause.verb.is_stative or "residence" in clause.verb.traits)
        )

    def _asks_what(self, clause: Clause) -> bool:
        kinds = clause.verb.objects
        return "person" not in kinds and "country" not in kinds and "unit" not in kinds

    def _admire(self) -> Exclamation:
        chooser = self._chooser
        kinds = frozenset({"thing", "place", "animal", "vehicle", "text", "person", "event"})
        while True:
            noun = chooser.pick_ranked(find_nouns(kinds, False))
            choices = [
                adjective
                for adjective in find_adjectives(noun, attribute=False)
                if adjective.gradable and not adjective.spanish_estar
            ]
            if choices:
                return Exclamation(noun, Quality(chooser.pick_ranked(choices)))
