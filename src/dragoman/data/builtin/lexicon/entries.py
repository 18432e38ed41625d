"""Entries of the lexicon: one per concept, with its forms in the three languages."""

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files


def read_table(name: str) -> Iterator[list[str]]:
    """Read the fields of each entry in a file of this folder."""
    text = (files(__package__) / f"{name}.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if not line.startswith("#"):
            yield [field.strip() for field in line.split("|")]


@dataclass(frozen=True, slots=True, eq=False)
class NounForms:
    """A noun in one language: its singular, its plural and its gender."""

    singular: str
    plural: str
    feminine: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Noun:
    """A noun concept.

    Parameters
    ----------
    kinds : frozenset[str]
        What sort of thing it is: verbs and adjectives choose their nouns by it.
    french, english, spanish : NounForms
        The forms; the English gender is that of a person (“he”, “she”) and else unused.
    """

    kinds: frozenset[str]
    french: NounForms
    english: NounForms
    spanish: NounForms

    @property
    def is_person(self) -> bool:
        """Whether the noun denotes a person."""
        return "person" in self.kinds

    @property
    def is_mass(self) -> bool:
        """Whether the noun is a mass noun: no plural, partitive article."""
        return "mass" in self.kinds


@dataclass(frozen=True, slots=True, eq=False)
class Adjective:
    """An adjective concept.

    Parameters
    ----------
    kinds : frozenset[str]
        The kinds of noun it may describe.
    french : tuple[str, str, str, str]
        Masculine, feminine, masculine plural, feminine plural.
    french_prevocalic : str
        The masculine singular before a vowel (“bel”), or empty.
    french_comparative : tuple[str, str, str, str]
        The four forms of an irregular comparative (“meilleur”); empty strings when regular.
    french_first : bool
        Whether it stands before its noun in French.
    english, english_comparative : str
        The forms; an empty comparative is made with “more”.
    spanish : tuple[str, str, str, str]
        Masculine, feminine, masculine plural, feminine plural.
    spanish_short : tuple[str, str]
        Masculine and feminine singular before the noun (“buen”, “buena”).
    spanish_comparative : str
        An irregular comparative (“mejor”), or empty.
    spanish_first : bool
        Whether it always stands before its noun in Spanish.
    spanish_estar : bool
        Whether its copula is “estar”.
    gradable : bool
        Whether it can be very, too or more so.
    use : str
        “both”, “attribute” (never after “to be”) or “predicate” (only there).
    """

    kinds: frozenset[str]
    french: tuple[str, str, str, str]
    french_prevocalic: str
    french_comparative: tuple[str, str, str, str]
    french_first: bool
    english: str
    english_comparative: str
    spanish: tuple[str, str, str, str]
    spanish_short: tuple[str, str]
    spanish_comparative: str
    spanish_first: bool
    spanish_estar: bool
    gradable: bool
    use: str


@dataclass(frozen=True, slots=True, eq=False)
class FrenchVerb:
    """A French verb; each tuple has the forms of je, tu, il, nous, ils."""

    infinitive: str
    present: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    participle: str
    with_be: bool
    particle: str
    preposition: str


@dataclass(frozen=True, slots=True, eq=False)
class EnglishVerb:
    """An English verb with the particle that follows it (“for” of “wait for”)."""

    base: str
    third: str
    past: str
    progressive: str
    particle: str

    @property
    def is_be(self) -> bool:
        """Whether it is “to be”, which negates and asks without “do”."""
        return self.base == "be"


@dataclass(frozen=True, slots=True, eq=False)
class SpanishVerb:
    """A Spanish verb; each tuple has the forms of yo, tú, él, nosotros, ellos."""

    infinitive: str
    present: tuple[str, ...]
    past: tuple[str, ...]
    imperfect: tuple[str, ...]
    future: tuple[str, ...]
    particle: str
    preposition: str


@dataclass(frozen=True, slots=True, eq=False)
class Verb:
    """A verb concept.

    Parameters
    ----------
    subjects, objects : frozenset[str]
        The kinds of noun that may be its subject and its direct object; no object kinds mean an
        intransitive verb.
    traits : frozenset[str]
        Of “stative” (its past is an imperfect), “optional” (the object may be left out), “generic”
        (takes objects in general: “loves apples”), “recipient”, “motion”, “residence”, “content”
        (takes a clause), “past” (used in the past only), “manner” (slowly, quickly),
        “nopersonal” (its Spanish object takes no “a”).
    french, english, spanish
        The forms.
    """

    subjects: frozenset[str]
    objects: frozenset[str]
    traits: frozenset[str]
    french: FrenchVerb
    english: EnglishVerb
    spanish: SpanishVerb

    @property
    def is_stative(self) -> bool:
        """Whether the verb is stative: its past is the imperfect."""
        return "stative" in self.traits

    @property
    def is_oblique(self) -> bool:
        """Whether French or Spanish puts a preposition before its object."""
        return bool(self.french.preposition or self.spanish.preposition)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A city, country or continent with its name in three languages."""

    kind: str
    french: str
    french_article: str
    english: str
    english_article: str
    spanish: str
    spanish_feminine: bool
    french_feminine: bool
    plural: bool


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A fixed expression, its words marked with nodes (“semaine:w”)."""

    french: str
    english: str
    spanish: str
