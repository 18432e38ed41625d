"""Abstract syntax of sentences, independent of the language."""

from dataclasses import dataclass, field
from enum import Enum

from dragoman.data.builtin.lexicon.entries import Adjective, Expression, Noun, Place, Verb
from dragoman.data.builtin.lexicon.moments import Moment
from dragoman.data.builtin.lexicon.weather import WeatherKind


class Tense(Enum):
    """The tense of a clause; stative verbs use the imperfect for the past."""

    PRESENT = "present"
    PAST = "past"
    IMPERFECT = "imperfect"
    FUTURE = "future"


class Negation(Enum):
    """The negation of a clause."""

    NONE = "none"
    NOT = "not"
    NEVER = "never"


class Determiner(Enum):
    """The determiner of a noun; an indefinite mass noun takes the partitive."""

    DEFINITE = "definite"
    INDEFINITE = "indefinite"
    DEMONSTRATIVE = "demonstrative"
    POSSESSIVE = "possessive"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Features:
    """Agreement features of a subject: person, number and gender."""

    person: int
    plural: bool
    feminine: bool

    @property
    def form_index(self) -> int:
        """The index of the verb form among those of I, you, he, we, they."""
        if self.plural:
            return 3 if self.person == 1 else 4
        return self.person - 1


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A personal pronoun; with an antecedent, its gender is that of the noun in each language."""

    person: int
    plural: bool
    feminine: bool
    antecedent: Noun | None = None


@dataclass(frozen=True, slots=True)
class Person:
    """A person by name."""

    name: str
    feminine: bool


@dataclass(frozen=True, slots=True)
class Quality:
    """An adjective with its degree: “”, “very” or “too”."""

    adjective: Adjective
    degree: str = ""


@dataclass(frozen=True, slots=True)
class Nominal:
    """A noun phrase around a common noun."""

    noun: Noun
    plural: bool
    determiner: Determiner
    owner: Pronoun | None = None
    cardinal: int = 0
    qualities: tuple[Quality, ...] = ()
    possessor: "NounPhrase | None" = None
    relative: "Relative | None" = None


@dataclass(frozen=True, slots=True)
class Joined:
    """Two noun phrases joined by “and”."""

    first: "NounPhrase"
    second: "NounPhrase"


@dataclass(frozen=True, slots=True)
class Gap:
    """The gap in a relative clause or question that its first word fills."""

    noun: Noun | None
    plural: bool


NounPhrase = Pronoun | Person | Nominal | Joined | Gap | Place


@dataclass(frozen=True, slots=True)
class Relative:
    """A relative clause; its role is “subject”, “object” or “place”."""

    role: str
    clause: "Clause"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A predicative adjective, possibly compared: “more”, “less” or “as”."""

    quality: Quality
    comparison: str = ""
    standard: NounPhrase | None = None


@dataclass(frozen=True, slots=True)
class Occupation:
    """A profession as a predicate, without article in French and Spanish."""

    noun: Noun


@dataclass(frozen=True, slots=True)
class Condition:
    """Hunger, thirst and the like: “avoir faim”, “to be hungry”, “tener hambre”."""

    french: str
    english: str
    spanish: str
    spanish_feminine: bool
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Age:
    """The subject's age in years."""

    years: int


Predicate = Attribute | Occupation | Condition | Age


@dataclass(frozen=True, slots=True)
class Circumstance:
    """A prepositional phrase: a relation such as “in”, “to”, “from”, “with”, and what it holds."""

    relation: str
    phrase: NounPhrase


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """A clause around a personal verb."""

    subject: NounPhrase
    verb: Verb
    tense: Tense = Tense.PRESENT
    modal: Verb | None = None
    negation: Negation = Negation.NONE
    frequency: Expression | None = None
    object: NounPhrase | None = None
    recipient: NounPhrase | None = None
    predicate: Predicate | None = None
    manner: Expression | None = None
    circumstances: tuple[Circumstance, ...] = ()
    content: "Proposition | None" = None
    time: Moment | None = None
    time_first: bool = False
    subject_omitted: bool = False

    @property
    def is_negated(self) -> bool:
        """Whether the clause is negated, by “not” or by “never”."""
        return self.negation is not Negation.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """A statement about the weather."""

    kind: WeatherKind
    tense: Tense
    negated: bool = False
    time: Moment | None = None
    time_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Existence:
    """An existential clause: “il y a”, “there is”, “hay”."""

    phrase: Nominal
    tense: Tense
    negated: bool
    circumstances: tuple[Circumstance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """An identifying clause: “c’est”, “it is”, “es”."""

    phrase: Nominal
    negated: bool


@dataclass(frozen=True, slots=True)
class HourOfDay:
    """A statement of the time of day."""

    moment: Moment


@dataclass(frozen=True, slots=True)
class DayOfWeek:
    """A statement of the day of the week."""

    weekday: int


Proposition = Clause | Weather | Existence | Identification | HourOfDay | DayOfWeek


@dataclass(frozen=True, slots=True)
class Linked:
    """A proposition after a link: “and”, “but”, “because”, “when”, “if”, or nothing."""

    link: str
    proposition: Proposition


@dataclass(frozen=True, slots=True)
class Statement:
    """A sequence of propositions, possibly after a subordinate clause."""

    parts: tuple[Linked, ...]
    opening: Linked | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its word is “” (yes or no), “where”, “when”, “why”, “who” or “what”."""

    word: str
    clause: Clause


@dataclass(frozen=True, slots=True)
class Exclamation:
    """An exclamation: “quel beau jardin !”."""

    noun: Noun
    quality: Quality


@dataclass(frozen=True, slots=True)
class Fragment:
    """A noun phrase alone."""

    phrase: NounPhrase


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with its final mark; without one it also begins in lower case."""

    body: Statement | Question | Exclamation | Fragment
    mark: str = field(default=".")
