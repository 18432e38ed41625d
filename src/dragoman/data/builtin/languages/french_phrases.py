"""Surface realisation of French noun phrases: determiners, agreement, prepositions of places."""

from collections.abc import Callable

from dragoman.data.builtin.lexicon.entries import Place
from dragoman.data.builtin.lexicon.numerals import realise_french
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

SUBJECT_PRONOUNS = ("je", "tu", "il", "nous", "ils")
_STRESSED_PRONOUNS = ("moi", "toi", "lui", "nous", "eux")
_POSSESSIVES = {
    0: ("mon", "ma", "mes"),
    1: ("ton", "ta", "tes"),
    2: ("son", "sa", "ses"),
    3: ("notre", "notre", "nos"),
    4: ("leur", "leur", "leurs"),
}
_DEGREES = {"very": "très", "too": "trop"}
_PREPOSITIONS = {
    "with": "avec",
    "without": "sans",
    "for": "pour",
    "on": "sur",
    "under": "sous",
    "in front of": "devant",
    "behind": "derrière",
    "near": "près de",
}
SayRelative = Callable[[Relative, str], list[Word]]


def find_features(phrase: NounPhrase) -> Features:
    """Return the agreement features of a noun phrase in French."""
    match phrase:
        case Pronoun(person, plural, feminine, antecedent):
            return Features(person, plural, antecedent.french.feminine if antecedent else feminine)
        case Person():
            return Features(3, False, phrase.feminine)
        case Nominal():
            return Features(3, phrase.plural, phrase.noun.french.feminine)
        case Gap():
            return Features(3, phrase.plural, bool(phrase.noun and phrase.noun.french.feminine))
        case Joined(first, second):
            feminine = find_features(first).feminine and find_features(second).feminine
            return Features(3, True, feminine)
        case Place():
            return Features(3, phrase.plural, phrase.french_feminine)


def agree_adjective(forms: tuple[str, str, str, str], features: Features) -> str:
    """Choose the form of an adjective."""
    return forms[2 * features.plural + features.feminine]


def realise_number(number: int, path: str, *, feminine: bool) -> list[Word]:
    """Realise a cardinal number."""
    return [
        Word(said.text, frozenset(f"{path}/{part}" for part in said.parts))
        for said in realise_french(number, feminine=feminine)
    ]


def realise_article(features: Features, node: str) -> Word:
    """Realise the definite article, before elision and contraction."""
    if features.plural:
        return Word("les", frozenset({node}), article=True)
    text = "la" if features.feminine else "le"
    return Word(text, frozenset({node}), prevocalic="l’", article=True)


def _realise_possessive(owner: Pronoun, features: Features, node: str) -> Word:
    index = Features(owner.person, owner.plural, False).form_index
    masculine, feminine, plural = _POSSESSIVES[index]
    if features.plural:
        return Word(plural, frozenset({node}))
    if features.feminine:
        return Word(feminine, frozenset({node}), prevocalic=masculine)
    return Word(masculine, frozenset({node}))


def _realise_indefinite(
    phrase: Nominal, features: Features, node: str, *, bare_de: bool, after_de: bool
) -> list[Word]:
    """Realise un, une, du, des or “de”; nothing before a number or where “de” absorbs it."""
    nodes = frozenset({node})
    if phrase.cardinal:
        return []
    collective = phrase.plural or phrase.noun.is_mass
    if after_de and collective:
        return []
    if bare_de:
        return [Word("de", nodes, prevocalic="d’")]
    if phrase.noun.is_mass:
        return [Word("de", nodes, prevocalic="d’"), realise_article(features, node)]
    if phrase.plural:
        if phrase.qualities and phrase.qualities[0].adjective.french_first:
            return [Word("de", nodes, prevocalic="d’")]
        return [Word("des", nodes)]
    return [Word("une" if features.feminine else "un", nodes)]


def _realise_determiner(
    phrase: Nominal, features: Features, path: str, *, bare_de: bool, after_de: bool
) -> list[Word]:
    node = f"{path}/det"
    match phrase.determiner:
        case Determiner.INDEFINITE:
            words = _realise_indefinite(phrase, features, node, bare_de=bare_de, after_de=after_de)
        case Determiner.DEMONSTRATIVE:
            if features.plural:
                words = [Word("ces", frozenset({node}))]
            elif features.feminine:
                words = [Word("cette", frozenset({node}))]
            else:
                words = [Word("ce", frozenset({node}), prevocalic="cet")]
        case Determiner.POSSESSIVE:
            assert phrase.owner is not None
            words = [_realise_possessive(phrase.owner, features, node)]
        case _:
            words = [realise_article(features, node)]
    if phrase.cardinal:
        words += realise_number(phrase.cardinal, f"{path}/number", feminine=features.feminine)
    return words


def _realise_nominal(
    phrase: Nominal, path: str, realise_relative: SayRelative, *, bare_de: bool, after_de: bool
) -> list[Word]:
    features = find_features(phrase)
    words = _realise_determiner(phrase, features, path, bare_de=bare_de, after_de=after_de)
    # a determiner absorbed by “de” is expressed by the bare noun
    nodes = [f"{path}/noun"] if words else [f"{path}/noun", f"{path}/det"]
    after: list[Word] = []
    for index, quality in enumerate(phrase.qualities):
        adjective = quality.adjective
        said = make_words(_DEGREES.get(quality.degree, ""), f"{path}/degree{index}")
        form = Word(agree_adjective(adjective.french, features), frozenset({f"{path}/adj{index}"}))
        if not features.feminine and not features.plural and adjective.french_first:
            form.prevocalic = adjective.french_prevocalic
        said.append(form)
        if adjective.french_first:
            words += said
        else:
            after += said
    noun = phrase.noun.french
    words += make_words(noun.plural if phrase.plural else noun.singular, *nodes)
    words += after
    if phrase.possessor is not None:
        words.append(Word("de", frozenset({f"{path}/of"}), prevocalic="d’"))
        words += realise_phrase(phrase.possessor, f"{path}/possessor", realise_relative)
    if phrase.relative is not None:
        words += realise_relative(phrase.relative, f"{path}/relative")
    return words


def realise_phrase(
    phrase: NounPhrase,
    path: str,
    realise_relative: SayRelative,
    *,
    without_partitive: bool = False,
    after_de: bool = False,
) -> list[Word]:
    """Realise a noun phrase in a position where it is not a clitic."""
    match phrase:
        case Pronoun():
            features = find_features(phrase)
            text = _STRESSED_PRONOUNS[features.form_index]
            if features.person == 3 and features.feminine:
                text = "elles" if features.plural else "elle"
            return make_words(text, path)
        case Person():
            return make_words(phrase.name, path)
        case Nominal():
            return _realise_nominal(
                phrase, path, realise_relative, bare_de=without_partitive, after_de=after_de
            )
        case Joined(first, second):
            words = realise_phrase(first, f"{path}/first", realise_relative)
            words += make_words("et", f"{path}/and")
            return words + realise_phrase(second, f"{path}/second", realise_relative)
        case Place():
            article = (
                [] if phrase.kind == "city" else [realise_article(find_features(phrase), path)]
            )
            return article + make_words(phrase.french, path)
        case Gap():
            return []


def _realise_place(relation: str, place: Place, path: str) -> list[Word]:
    """Realise a place: en France, au Canada, à Paris; de France, du Canada, de Paris."""
    node = frozenset({f"{path}/preposition"})
    name = make_words(place.french, f"{path}/phrase")
    article = (
        [] if place.kind == "city" else [realise_article(find_features(place), f"{path}/phrase")]
    )
    if relation == "from":
        opening = Word("de", node, prevocalic="d’")
        return [opening, *name] if place.french_feminine else [opening, *article, *name]
    if place.french_feminine:
        return [Word("en", node), *name]
    return [Word("à", node), *article, *name]


def realise_circumstance(
    circumstance: Circumstance, path: str, realise_relative: SayRelative
) -> list[Word]:
    """Realise a prepositional phrase."""
    phrase, relation = circumstance.phrase, circumstance.relation
    if isinstance(phrase, Place):
        return _realise_place(relation, phrase, path)
    text = _PREPOSITIONS.get(relation, "à")
    if relation == "from":
        text = "de"
    elif relation in ("in", "arrival", "around"):
        text = "à" if isinstance(phrase, Nominal) and "at" in phrase.noun.kinds else "dans"
    words = make_words(text, f"{path}/preposition")
    if words[-1].text == "de":
        words[-1].prevocalic = "d’"
    return words + realise_phrase(phrase, f"{path}/phrase", realise_relative)
