"""Surface realisation of English noun phrases: determiners, possessives, pronouns, prepositions."""

from collections.abc import Callable

from dragoman.data.builtin.lexicon.entries import Place
from dragoman.data.builtin.lexicon.numerals import realise_english
from dragoman.data.builtin.lexicon.word_meanings import Word, make_words
from dragoman.data.builtin.meaning import (
    Circumstance,
    Determiner,
    Features,
    Gap,
    Joined,
    Nominal,
    NounPhrase,
    Person,
    Pronoun,
    Relative,
)

_SUBJECT_PRONOUNS = ("I", "you", "he", "we", "they")
_OBJECT_PRONOUNS = ("me", "you", "him", "us", "them")
_POSSESSIVES = ("my", "your", "his", "our", "their")
SayRelative = Callable[[Relative, str], list[Word]]


def find_features(phrase: NounPhrase) -> Features:
    """Return the agreement features of a noun phrase in English."""
    match phrase:
        case Pronoun(person, plural, feminine, antecedent):
            return Features(person, plural, antecedent.english.feminine if antecedent else feminine)
        case Person():
            return Features(3, False, phrase.feminine)
        case Nominal():
            return Features(3, phrase.plural, phrase.noun.english.feminine)
        case Gap():
            return Features(3, phrase.plural, False)
        case Joined():
            return Features(3, True, False)
        case Place():
            return Features(3, False, False)


def realise_object_pronoun(pronoun: Pronoun, node: str) -> list[Word]:
    """Realise a pronoun as an object: “him”, “her”, “it”.

    Parameters
    ----------
    pronoun : Pronoun
        The pronoun; one that stands for a thing has a noun that is no person.
    node : str
        Its node.
    """
    features = find_features(pronoun)
    text = _OBJECT_PRONOUNS[features.form_index]
    if features.form_index == 2:
        if pronoun.antecedent is not None and not pronoun.antecedent.is_person:
            text = "it"
        elif features.feminine:
            text = "her"
    return make_words(text, node)


def realise_number(number: int, path: str) -> list[Word]:
    """Realise a cardinal number."""
    return [
        Word(said.text, frozenset(f"{path}/{part}" for part in said.parts))
        for said in realise_english(number)
    ]


def _realise_determiner(phrase: Nominal, path: str, *, denied: bool) -> list[Word]:
    node = f"{path}/det"
    collective = phrase.plural or phrase.noun.is_mass
    text = "the"
    match phrase.determiner:
        case Determiner.INDEFINITE:
            text = "a"
            if phrase.cardinal:
                text = ""
            elif collective:
                text = "any" if denied else "some"
        case Determiner.DEMONSTRATIVE:
            text = "these" if phrase.plural else "this"
        case Determiner.GENERIC:
            text = ""
        case Determiner.POSSESSIVE:
            assert phrase.owner is not None
            owner = Features(phrase.owner.person, phrase.owner.plural, phrase.owner.feminine)
            text = _POSSESSIVES[owner.form_index]
            if owner.form_index == 2 and owner.feminine:
                text = "her"
    words = make_words(text, node)
    if phrase.cardinal:
        words += realise_number(phrase.cardinal, f"{path}/number")
    return words


def _realise_nominal(
    phrase: Nominal, path: str, realise_relative: SayRelative, *, denied: bool
) -> list[Word]:
    if phrase.possessor is not None:
        words = realise_phrase(phrase.possessor, f"{path}/possessor", realise_relative)
        plural = isinstance(phrase.possessor, Nominal) and phrase.possessor.plural
        ending = "’" if plural and words[-1].text.endswith("s") else "’s"
        words += make_words(ending, f"{path}/of", f"{path}/det")
    else:
        words = _realise_determiner(phrase, path, denied=denied)
    for index, quality in enumerate(phrase.qualities):
        words += make_words(quality.degree, f"{path}/degree{index}")
        words += make_words(quality.adjective.english, f"{path}/adj{index}")
    noun = phrase.noun.english
    nodes = [f"{path}/noun"]
    if phrase.determiner is Determiner.GENERIC:
        nodes.append(f"{path}/det")
    words += make_words(noun.plural if phrase.plural else noun.singular, *nodes)
    if phrase.relative is not None:
        words += realise_relative(phrase.relative, f"{path}/relative")
    return words


def realise_phrase(
    phrase: NounPhrase, path: str, realise_relative: SayRelative, *, denied: bool = False
) -> list[Word]:
    """Realise a noun phrase that is not a subject."""
    match phrase:
        case Pronoun():
            return realise_object_pronoun(phrase, path)
        case Person():
            return make_words(phrase.name, path)
        case Nominal():
            return _realise_nominal(phrase, path, realise_relative, denied=denied)
        case Joined(first, second):
            words = realise_phrase(first, f"{path}/first", realise_relative, denied=denied)
            words += make_words("and", f"{path}/and")
            return words + realise_phrase(second, f"{path}/second", realise_relative, denied=denied)
        case Place():
            return make_words(f"{phrase.english_article} {phrase.english}", path)
        case Gap():
            return []


def realise_subject(phrase: NounPhrase, path: str, realise_relative: SayRelative) -> list[Word]:
    """Realise a noun phrase as a subject."""
    if not isinstance(phrase, Pronoun):
        return realise_phrase(phrase, path, realise_relative)
    features = find_features(phrase)
    text = _SUBJECT_PRONOUNS[features.form_index]
    if features.form_index == 2 and features.feminine:
        text = "she"
    return make_words(text, path)


def realise_circumstance(
    circumstance: Circumstance, path: str, realise_relative: SayRelative
) -> list[Word]:
    """Realise a prepositional phrase."""
    phrase, text = circumstance.phrase, circumstance.relation
    if text in ("arrival", "around"):
        text = "in"
    if text == "in" and isinstance(phrase, Nominal) and "at" in phrase.noun.kinds:
        text = "at"
    words = make_words(text, f"{path}/preposition")
    return words + realise_phrase(phrase, f"{path}/phrase", realise_relative)
