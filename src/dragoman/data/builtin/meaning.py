"""Abstract meanings: what a sentence says before any language says it."""

from dataclasses import dataclass, field
from enum import Enum

from dragoman.data.builtin.lexicon.entries import Adjective, Expression, Noun, Place, Verb
from dragoman.data.builtin.lexicon.moments import Moment
from dragoman.data.builtin.lexicon.weather import WeatherKind


class Tense(Enum):
    """When a clause is true; the past of stative verbs is told in the imperfect."""

    PRESENT = "present"
    PAST = "past"
    IMPERFECT = "imperfect"
    FUTURE = "future"


class Negation(Enum):
    """How a clause is denied."""

    NONE = "none"
    NOT = "not"
    NEVER = "never"


class Determiner(Enum):
    """How a noun is picked out; an indefinite mass noun takes the partitive."""

    DEFINITE = "definite"
    INDEFINITE = "indefinite"
    DEMONSTRATIVE = "demonstrative"
    POSSESSIVE = "possessive"
    GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Features:
    """What a subject passes on to the words that agree with it."""

    person: int
    plural: bool
    feminine: bool

    @property
    def form_index(self) -> int:
        """The place of the verb form among those of I, you, he, we, they."""
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
    """Somebody by name."""

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
    """The place in a relative clause or question that its first word fills."""

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
    """An adjective said of the subject, possibly compared: “more”, “less” or “as”."""

    quality: Quality
    comparison: str = ""
    standard: NounPhrase | None = None


@dataclass(frozen=True, slots=True)
class Occupation:
    """A profession said of the subject, without article in French and Spanish."""

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
        """Whether the clause is denied, by “not” or by “never”."""
        return self.negation is not Negation.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """What the sky does."""

    kind: WeatherKind
    tense: Tense
    negated: bool = False
    time: Moment | None = None
    time_first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Existence:
    """That something is somewhere: “il y a”, “there is”, “hay”."""

    phrase: Nominal
    tense: Tense
    negated: bool
    circumstances: tuple[Circumstance, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """What something is: “c’est”, “it is”, “es”."""

    phrase: Nominal
    negated: bool


@dataclass(frozen=True, slots=True)
class HourOfDay:
    """That it is some o'clock."""

    moment: Moment


@dataclass(frozen=True, slots=True)
class DayOfWeek:
    """That today is a certain day of the week."""

    weekday: int


Proposition = Clause | Weather | Existence | Identification | HourOfDay | DayOfWeek


@dataclass(frozen=True, slots=True)
class Linked:
    """A proposition after a link: “and”, “but”, “because”, “when”, “if”, or nothing."""

    link: str
    proposition: Proposition


@dataclass(frozen=True, slots=True)
class Statement:
    """Propositions one after the other, possibly after a subordinate clause."""

    parts: tuple[Linked, ...]
    opening: Linked | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its word is “” (yes or no), “where”, “when”, “why”, “who” or “what”."""

    word: str
    clause: Clause


@dataclass(frozen=True, slots=True)
class Exclamation:
    """Admiration: “quel beau jardin !”."""

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
