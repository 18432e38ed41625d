"""Surface realisation of Spanish noun phrases: determiners, agreement, adjectives, prepositions."""

from collections.abc import Callable

from dragoman.data.builtin.lexicon.entries import Place
from dragoman.data.builtin.lexicon.numerals import realise_spanish
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
    Quality,
    Relative,
)

SUBJECT_PRONOUNS = ("yo", "tú", "él", "nosotros", "ellos")
_PREPOSITIONAL_PRONOUNS = ("mí", "ti", "él", "nosotros", "ellos")
_ARTICLES = ("el", "la", "los", "las")
_INDEFINITES = ("un", "una", "unos", "unas")
_DEMONSTRATIVES = ("este", "esta", "estos", "estas")
_OUR = ("nuestro", "nuestra", "nuestros", "nuestras")
_DEGREES = {"very": "muy", "too": "demasiado"}
_PREPOSITIONS = {
    "in": "en",
    "to": "a",
    "arrival": "a",
    "around": "por",
    "from": "de",
    "with": "con",
    "without": "sin",
    "for": "para",
    "on": "sobre",
    "under": "debajo de",
    "in front of": "delante de",
    "behind": "detrás de",
    "near": "cerca de",
}
SayRelative = Callable[[Relative, str], list[Word]]


def find_features(phrase: NounPhrase) -> Features:
    """Return the agreement features of a noun phrase in Spanish."""
    match phrase:
        case Pronoun(person, plural, feminine, antecedent):
            return Features(person, plural, antecedent.spanish.feminine if antecedent else feminine)
        case Person():
            return Features(3, False, phrase.feminine)
        case Nominal():
            return Features(3, phrase.plural, phrase.noun.spanish.feminine)
        case Gap():
            return Features(3, phrase.plural, bool(phrase.noun and phrase.noun.spanish.feminine))
        case Joined(first, second):
            feminine = find_features(first).feminine and find_features(second).feminine
            return Features(3, True, feminine)
        case Place():
            return Features(3, False, phrase.spanish_feminine)


def agree(forms: tuple[str, str, str, str], features: Features) -> str:
    """Choose the form of an adjective or determiner."""
    return forms[2 * features.plural + features.feminine]


def realise_number(number: int, path: str, *, feminine: bool) -> list[Word]:
    """Realise a cardinal number."""
    return [
        Word(said.text, frozenset(f"{path}/{part}" for part in said.parts))
        for said in realise_spanish(number, feminine=feminine)
    ]


def _realise_determiner(
    phrase: Nominal, features: Features, path: str, *, denied: bool
) -> list[Word]:
    nodes = frozenset({f"{path}/det"})
    match phrase.determiner:
        case Determiner.INDEFINITE:
            silent = phrase.cardinal or phrase.noun.is_mass or (denied and phrase.plural)
            words = [] if silent else [Word(agree(_INDEFINITES, features), nodes)]
        case Determiner.DEMONSTRATIVE:
            words = [Word(agree(_DEMONSTRATIVES, features), nodes)]
        case Determiner.POSSESSIVE:
            assert phrase.owner is not None
            owner = Features(phrase.owner.person, phrase.owner.plural, False)
            if owner.form_index == 3:
                text = agree(_OUR, features)
            else:
                text = ("mi", "tu", "su", "", "su")[owner.form_index]
                text += "s" if features.plural else ""
            words = [Word(text, nodes)]
        case Determiner.GENERIC if "language" in phrase.noun.kinds:
            words = []
        case _:
            words = [Word(agree(_ARTICLES, features), nodes, article=True)]
    if phrase.cardinal:
        words += realise_number(phrase.cardinal, f"{path}/number", feminine=features.feminine)
    return words


def _stands_first(qualities: tuple[Quality, ...], index: int, *, bare: bool) -> bool:
    """Tell whether an adjective comes before its noun.

    Those that always do come first when nothing strengthens them and the noun is not bare (“pan
    malo”); of two adjectives the one of size, age or beauty comes first, to frame the noun: “el
    viejo coche rojo”.
    """
    quality = qualities[index]
    if quality.degree or bare:
        return False
    if quality.adjective.spanish_first:
        return True
    return len(qualities) > 1 and quality.adjective.french_first


def _realise_nominal(
    phrase: Nominal, path: str, realise_relative: SayRelative, *, denied: bool
) -> list[Word]:
    features = find_features(phrase)
    words = _realise_determiner(phrase, features, path, denied=denied)
    determined = bool(words) and f"{path}/det" in words[0].nodes
    after: list[Word] = []
    for index, quality in enumerate(phrase.qualities):
        node = f"{path}/adj{index}"
        form = agree(quality.adjective.spanish, features)
        if _stands_first(phrase.qualities, index, bare=phrase.noun.is_mass and not determined):
            if not features.plural:
                form = quality.adjective.spanish_short[features.feminine]
            words += make_words(form, node)
        else:
            after += make_words(_DEGREES.get(quality.degree, ""), f"{path}/degree{index}")
            after += make_words(form, node)
    noun = phrase.noun.spanish
    # a dropped determiner is expressed by the bare noun
    nodes = [f"{path}/noun"] + ([] if determined else [f"{path}/det"])
    words += make_words(noun.plural if phrase.plural else noun.singular, *nodes)
    words += after
    if phrase.possessor is not None:
        words.append(Word("de", frozenset({f"{path}/of"})))
        words += realise_phrase(phrase.possessor, f"{path}/possessor", realise_relative)
    if phrase.relative is not None:
        words += realise_relative(phrase.relative, f"{path}/relative")
    return words


def realise_phrase(
    phrase: NounPhrase,
    path: str,
    realise_relative: SayRelative,
    *,
    denied: bool = False,
    marker: str = "",
) -> list[Word]:
    """Realise a noun phrase that is not a clitic.

    Parameters
    ----------
    phrase : NounPhrase
        The phrase.
    path : str
        Its node.
    realise_relative : SayRelative
        Says a relative clause.
    denied : bool
        Whether it is the object of a denied verb.
    marker : str
        A preposition to say before each member that names persons, such as the personal “a”.
    """
    match phrase:
        case Pronoun():
            features = find_features(phrase)
            text = SUBJECT_PRONOUNS[features.form_index]
            if features.person == 3 and features.feminine:
                text = "ellas" if features.plural else "ella"
            return make_words(text, path)
        case Person():
            return make_words(marker, path) + make_words(phrase.name, path)
        case Nominal():
            opening = make_words(marker, f"{path}/noun") if _is_marked(phrase) else []
            return opening + _realise_nominal(phrase, path, realise_relative, denied=denied)
        case Joined(first, second):
            words = realise_phrase(
                first, f"{path}/first", realise_relative, denied=denied, marker=marker
            )
            words += make_words("y", f"{path}/and")
            return words + realise_phrase(
                second, f"{path}/second", realise_relative, denied=denied, marker=marker
            )
        case Place():
            return make_words(phrase.spanish, path)
        case Gap():
            return []


def _is_marked(phrase: Nominal) -> bool:
    """Tell whether a phrase takes the personal “a”: persons and known pets."""
    if phrase.noun.is_person:
        return True
    specific = phrase.determiner in (Determiner.POSSESSIVE, Determiner.DEMONSTRATIVE)
    specific = specific or phrase.determiner is Determiner.DEFINITE
    return "pet" in phrase.noun.kinds and specific and not phrase.plural


def realise_circumstance(
    circumstance: Circumstance, path: str, realise_relative: SayRelative
) -> list[Word]:
    """Realise a prepositional phrase."""
    phrase = circumstance.phrase
    nodes = f"{path}/preposition"
    if isinstance(phrase, Pronoun):
        features = find_features(phrase)
        index = features.form_index
        if circumstance.relation == "with" and index < 2:
            return make_words(("conmigo", "contigo")[index], nodes, f"{path}/phrase")
        text = _PREPOSITIONAL_PRONOUNS[index]
        if features.person == 3 and features.feminine:
            text = "ellas" if features.plural else "ella"
        said = make_words(text, f"{path}/phrase")
    else:
        said = realise_phrase(phrase, f"{path}/phrase", realise_relative)
    return make_words(_PREPOSITIONS[circumstance.relation], nodes) + said
