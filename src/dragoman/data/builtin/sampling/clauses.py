"""Sampling of clauses: a frame around a subject, then tense, negation and circumstances."""

from dataclasses import replace

from dragoman.data.builtin.languages.english_phrases import find_features
from dragoman.data.builtin.lexicon.entries import Noun
from dragoman.data.builtin.lexicon.verbs import CAN, MUST, VERBS, WANT
from dragoman.data.builtin.meaning import (
    Age,
    Circumstance,
    Clause,
    Determiner,
    Gap,
    Joined,
    Negation,
    Nominal,
    NounPhrase,
    Person,
    Pronoun,
    Relative,
    Tense,
)
from dragoman.data.builtin.sampling.choosing import (
    FREQUENCIES,
    MANNERS,
    Chooser,
    find_adjectives,
    find_nouns,
    find_verbs,
)
from dragoman.data.builtin.sampling.frames import FrameSampler
from dragoman.data.builtin.sampling.noun_phrases import PERSON, PhraseSampler

_SAYING = tuple(verb for verb in VERBS if "content" in verb.traits)
_VOWELS = "aeiouéêh"
_TENSES = {Tense.PRESENT: 4.0, Tense.PAST: 3.5, Tense.IMPERFECT: 1.2, Tense.FUTURE: 2.0}
_RELATIVE_TENSES = {Tense.PRESENT: 1.0, Tense.PAST: 1.0, Tense.IMPERFECT: 0.0}
_STATIVE_TENSES = {Tense.PRESENT: 6.0, Tense.PAST: 2.5, Tense.FUTURE: 1.5}


class ClauseSampler:
    """Draws clauses.

    Parameters
    ----------
    chooser : Chooser
        The source of chance.
    hidden_gender : bool
        See PhraseSampler.
    """

    def __init__(self, chooser: Chooser, *, hidden_gender: bool) -> None:
        self._chooser = chooser
        self.phrases = PhraseSampler(
            chooser, hidden_gender=hidden_gender, draw_relative=self._draw_relative
        )
        self.frames = FrameSampler(chooser, self.phrases)

    def draw_clause(
        self,
        *,
        subject: NounPhrase | None = None,
        depth: int = 0,
        tenses: dict[Tense, float] | None = None,
        lone: bool = False,
        active: bool = False,
    ) -> Clause:
        """Draw a clause."""
        chooser = self._chooser
        if subject is None:
            if not active and chooser.happens(0.14):
                return self._finish(self.frames.describe_thing(depth), tenses)
            subject = self.phrases.draw_subject(depth=depth)
        if isinstance(subject, Nominal) and not subject.noun.is_person:
            return self._finish(self.frames.attribute(subject), tenses)
        frame = chooser.pick_weighted(
            {"verb": 10.0, "attribute": 2.5, "state": 1.0, "where": 0.8}
            if not active
            else {"verb": 10.0, "state": 0.5}
        )
        if frame == "attribute":
            clause = self.frames.attribute(subject)
        elif frame == "state":
            clause = self.frames.describe_state(subject, passing=active)
        elif frame == "where":
            clause = self.frames.locate(subject)
        else:
            clause = self.frames.act(subject, depth=depth, active=active)
        clause = self._finish(clause, tenses)
        return self._use_pronouns(clause, lone=lone)

    # tense, negation, time

    def _finish(self, clause: Clause, tenses: dict[Tense, float] | None) -> Clause:
        """Add modal verb, tense, negation, adverbs and time to a clause."""
        chooser = self._chooser
        verb = clause.verb
        acts = clause.predicate is None and not verb.is_stative and "past" not in verb.traits
        person = not isinstance(clause.subject, Nominal) or clause.subject.noun.is_person
        if acts and person and chooser.happens(0.16):
            clause = replace(clause, modal=chooser.pick((CAN, WANT, MUST)))
        clause = replace(clause, tense=self._draw_tense(clause, tenses))
        clause = self._deny(clause)
        plain = not clause.is_negated and clause.modal is None
        if acts and plain and clause.tense in (Tense.PRESENT, Tense.PAST) and chooser.happens(0.1):
            return replace(clause, frequency=chooser.pick(FREQUENCIES))
        if acts and "manner" in verb.traits and clause.object is None and chooser.happens(0.25):
            clause = replace(clause, manner=chooser.pick(MANNERS))
        timeable = (acts and clause.negation is not Negation.NEVER) or "past" in verb.traits
        if timeable and chooser.happens(0.33):
            clause = replace(clause, time=chooser.pick_moment(clause.tense))
            movable = not isinstance(clause.subject, Gap) and not isinstance(clause.object, Gap)
            if isinstance(clause.object, Nominal) and clause.object.relative is not None:
                # at the end it would attach to the relative clause
                return replace(clause, time_first=True) if movable else replace(clause, time=None)
            clause = replace(clause, time_first=movable and chooser.happens(0.2))
        return clause

    def _draw_tense(self, clause: Clause, tenses: dict[Tense, float] | None) -> Tense:
        stative = clause.verb.is_stative or clause.modal is not None
        allowed = _STATIVE_TENSES if stative else _TENSES
        if "past" in clause.verb.traits:
            allowed = {Tense.PAST: 1.0}
        elif "price" in clause.verb.traits:
            allowed = {Tense.PRESENT: 4.0, Tense.FUTURE: 1.0}
        elif "instant" in clause.verb.traits and not stative:
            allowed = {Tense.PRESENT: 4.0, Tense.PAST: 4.5, Tense.FUTURE: 2.0}
        weights = {t: w for t, w in allowed.items() if tenses is None or tenses.get(t, 0) > 0}
        tense = self._chooser.pick_weighted(weights or allowed)
        forms = clause.verb.english
        hidden = forms.past == forms.base and find_features(clause.subject).form_index != 2
        if tense is Tense.PAST and hidden and clause.modal is None:
            # “they read” could be present or past
            return Tense.IMPERFECT if tenses is None or Tense.IMPERFECT in tenses else Tense.FUTURE
        return tense

    def _deny(self, clause: Clause) -> Clause:
        chooser = self._chooser
        if "past" in clause.verb.traits or not chooser.happens(0.17):
            return clause
        if any(found.relation == "without" for found in clause.circumstances):
            return clause
        if clause.modal is MUST and clause.tense is not Tense.PRESENT:
            return clause
        if isinstance(clause.object, Joined) or isinstance(clause.predicate, Age):
            return clause
        if clause.tense is Tense.IMPERFECT and chooser.happens(0.6):
            return clause
        thing = clause.object
        if isinstance(thing, Nominal) and thing.determiner is Determiner.INDEFINITE:
            clause = replace(clause, object=replace(thing, relative=None, cardinal=0))
        acts = clause.predicate is None and not clause.verb.is_stative and clause.modal is None
        if acts and clause.tense in (Tense.PRESENT, Tense.FUTURE) and chooser.happens(0.25):
            return replace(clause, negation=Negation.NEVER)
        return replace(clause, negation=Negation.NOT)

    # pronouns

    def _use_pronouns(self, clause: Clause, *, lone: bool) -> Clause:
        """Replace an object or recipient by a pronoun where the source determines its form."""
        chooser = self._chooser
        person = find_features(clause.subject).person
        if clause.recipient is not None and chooser.happens(0.45):
            choices = [
                Pronoun(p, plural, False) for p, plural in ((1, False), (2, False), (1, True))
            ]
            choices.append(Pronoun(3, True, False))
            choices = [pronoun for pronoun in choices if pronoun.person != person or person == 3]
            clause = replace(clause, recipient=chooser.pick(choices))
            clause = replace(clause, circumstances=_drop_pronouns(clause.circumstances))
        replaceable = clause.object is not None and not isinstance(clause.object, Gap)
        if not replaceable or clause.verb.is_oblique or not chooser.happens(0.2):
            return clause
        found = self._draw_object_pronoun(clause, person, lone=lone)
        if found is None:
            return clause
        if clause.recipient is not None and found.person != 3:
            return clause
        kept = _drop_pronouns(clause.circumstances)
        return replace(clause, object=found, circumstances=kept)

    def _draw_object_pronoun(self, clause: Clause, person: int, *, lone: bool) -> Pronoun | None:
        chooser = self._chooser
        verb = clause.verb
        if "person" in verb.objects and chooser.happens(0.6):
            choices = [(1, False), (2, False), (1, True)]
            chosen, plural = chooser.pick([c for c in choices if c[0] != person] or [(3, True)])
            return Pronoun(chosen, plural, self.phrases.draw_gender())
        if not lone or "generic" in verb.traits or "country" in verb.objects:
            return None
        if verb.objects == PERSON:
            if chooser.happens(0.3):
                return Pronoun(3, True, self.phrases.draw_gender())
            elided = verb.french.infinitive[0] in _VOWELS and (
                clause.tense is not Tense.PAST or clause.modal is not None
            )
            return None if elided else Pronoun(3, False, chooser.happens(0.5))
        if "person" in verb.objects:
            return Pronoun(3, True, self.phrases.draw_gender())
        nouns = find_nouns(verb.objects, False)
        if not self.phrases.hidden_gender:
            nouns = tuple(noun for noun in nouns if not noun.spanish.feminine)
        if not nouns or "unit" in verb.objects:
            return None
        return Pronoun(3, chooser.happens(0.3), False, chooser.pick(nouns))

    # relative clauses

    def _draw_relative(self, noun: Noun, plural: bool, depth: int) -> Relative | None:
        chooser = self._chooser
        gap = Gap(noun, plural)
        if "region" in noun.kinds and chooser.happens(0.5):
            live = next(verb for verb in VERBS if verb.english.base == "live")
            work = next(verb for verb in VERBS if verb.english.base == "work")
            clause = Clause(
                subject=self.phrases.draw_subject(depth=0), verb=chooser.pick((live, work))
            )
            return Relative("place", self._finish(clause, _RELATIVE_TENSES))
        suited = [
            verb
            for verb in find_verbs(PERSON)
            if verb.objects & noun.kinds and not verb.is_oblique and "generic" not in verb.traits
        ]
        if suited and chooser.happens(0.5):
            clause = Clause(
                subject=self.phrases.draw_subject(depth=0),
                verb=chooser.pick_ranked(suited),
                object=gap,
            )
            return Relative("object", self._finish(clause, _RELATIVE_TENSES))
        if noun.is_person and chooser.happens(0.75):
            return Relative(
                "subject", self._finish(self.frames.act(gap, depth=depth), _RELATIVE_TENSES)
            )
        if not find_adjectives(noun, attribute=False):
            return None
        return Relative("subject", self._finish(self.frames.attribute(gap), _RELATIVE_TENSES))

    # clauses about clauses

    def draw_saying(self, content_depth: int, *, subject: NounPhrase | None = None) -> Clause:
        """Draw a clause with a content clause: “Jane says that …”."""
        chooser = self._chooser
        verb = chooser.pick(_SAYING)
        subject = subject or self.phrases.draw_subject(depth=0)
        past = chooser.happens(0.35)
        tenses = {Tense.IMPERFECT: 1.0, Tense.PAST: 0.0} if past else None
        content = end_with_time(self.draw_clause(depth=content_depth, tenses=tenses))
        content = avoid_repetition(content, subject)
        if past and (content.verb.is_stative or content.modal is not None):
            content = tell_in_past(content)
        elif past and content.tense is not Tense.IMPERFECT:
            past = False
        negation = Negation.NONE
        if verb.english.base == "know" and chooser.happens(0.2):
            negation = Negation.NOT
        tense = Tense.PAST if past else Tense.PRESENT
        return Clause(subject=subject, verb=verb, tense=tense, content=content, negation=negation)


def _drop_pronouns(circumstances: tuple[Circumstance, ...]) -> tuple[Circumstance, ...]:
    """Drop circumstances such as “with me” that repeat another pronoun of the clause."""
    return tuple(found for found in circumstances if not isinstance(found.phrase, Pronoun))


def tell_in_past(clause: Clause) -> Clause:
    """Put a clause about a state or with a modal verb into the past.

    Returns
    -------
    Clause
        The clause; “must not” is affirmed, as “did not have to” would mean something else.
    """
    if clause.modal is MUST:
        clause = replace(clause, negation=Negation.NONE)
    return replace(clause, tense=Tense.PAST)


def end_with_time(clause: Clause) -> Clause:
    """Move the time from the front of a clause to its end, if that is unambiguous.

    Returns
    -------
    Clause
        The clause without a fronted time; without any where a relative clause would catch it.
    """
    if isinstance(clause.object, Nominal) and clause.object.relative is not None:
        clause = replace(clause, time=None)
    return replace(clause, time_first=False)


def avoid_repetition(clause: Clause, subject: NounPhrase) -> Clause:
    """Replace a name by a pronoun if it was the subject of the clause before."""
    if isinstance(subject, Person) and clause.subject == subject:
        return replace(clause, subject=Pronoun(3, False, subject.feminine))
    return clause
