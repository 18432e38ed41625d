"""The verbs: their table, and rules of conjugation for what it does not spell out."""

from dragoman.data.builtin.lexicon.entries import (
    EnglishVerb,
    FrenchVerb,
    SpanishVerb,
    Verb,
    read_table,
)

_FRENCH_IMPERFECT = ("ais", "ais", "ait", "ions", "aient")
_FRENCH_FUTURE = ("ai", "as", "a", "ons", "ont")
_SPANISH_FUTURE = ("é", "ás", "á", "emos", "án")
_SPANISH_IMPERFECT = {
    "ser": ("era", "eras", "era", "éramos", "eran"),
    "ir": ("iba", "ibas", "iba", "íbamos", "iban"),
    "ver": ("veía", "veías", "veía", "veíamos", "veían"),
}
_SPANISH_PRESENT_ENDINGS = {
    "a": ("o", "as", "a", "amos", "an"),
    "e": ("o", "es", "e", "emos", "en"),
    "i": ("o", "es", "e", "imos", "en"),
}


def _take_markers(spec: str) -> tuple[str, str, str, bool]:
    """Split off “+be”, “+p particle” and “+prep preposition”."""
    core, *markers = (part.strip() for part in spec.split("+"))
    particle = preposition = ""
    with_be = False
    for marker in markers:
        name, _, value = marker.partition(" ")
        if name == "p":
            particle = value
        elif name == "prep":
            preposition = value
        else:
            with_be = True
    return core, particle, preposition, with_be


def _french_present(infinitive: str, strong: str) -> tuple[str, ...]:
    """Give the present of a verb in -er, “strong” being its stem before a mute ending."""
    stem = infinitive[:-2]
    strong = strong or stem
    soft = stem
    if stem.endswith("g"):
        soft = stem + "e"
    elif stem.endswith("c"):
        soft = stem[:-1] + "ç"
    return strong + "e", strong + "es", strong + "e", soft + "ons", strong + "ent"


def conjugate_french(spec: str) -> FrenchVerb:
    """Conjugate a French verb from its line in the lexicon.

    Parameters
    ----------
    spec : str
        “parler” (regular), “acheter =achèt” (a stem before mute endings), or an infinitive with
        its five present forms; then, after semicolons, a future stem and a participle.
    """
    core, particle, preposition, with_be = _take_markers(spec)
    head, *extras = (part.strip() for part in core.split(";"))
    infinitive, _, given = head.partition(" ")
    strong = given[1:] if given.startswith("=") else ""
    present = (
        tuple(given.split(",")) if given and not strong else _french_present(infinitive, strong)
    )
    imperfect_stem = "ét" if infinitive == "être" else present[3].removesuffix("ons")
    plain_stem = imperfect_stem
    if plain_stem.endswith("ge"):
        plain_stem = plain_stem[:-1]
    elif plain_stem.endswith("ç"):
        plain_stem = plain_stem[:-1] + "c"
    future_stem = extras[0] if extras else (strong + "er" if strong else infinitive)
    return FrenchVerb(
        infinitive=infinitive,
        present=present,
        imperfect=tuple(
            (plain_stem if ending == "ions" else imperfect_stem) + ending
            for ending in _FRENCH_IMPERFECT
        ),
        future=tuple(future_stem + ending for ending in _FRENCH_FUTURE),
        participle=extras[1] if len(extras) > 1 else infinitive[:-2] + "é",
        with_be=with_be,
        particle=particle,
        preposition=preposition,
    )


def _ends_in_consonant_y(base: str) -> bool:
    return base.endswith("y") and base[-2] not in "aeiou"


def conjugate_english(spec: str) -> EnglishVerb:
    """Give the forms of an English verb from its line in the lexicon."""
    core, particle, _, _ = _take_markers(spec)
    head, *given = core.split(":")
    base, _, third = head.partition("/")
    if not third:
        third = base + ("es" if base.endswith(("s", "sh", "ch", "x", "o")) else "s")
        if _ends_in_consonant_y(base):
            third = base[:-1] + "ies"
    if given:
        past, progressive = given
    else:
        stem = base[:-1] if base.endswith("e") else base
        past = (base[:-1] + "i" if _ends_in_consonant_y(base) else stem) + "ed"
        progressive = stem + "ing"
    return EnglishVerb(base, third, past, progressive, particle)


def _spanish_present(infinitive: str, change: str) -> tuple[str, ...]:
    """Give the present, with a change such as “e>ie” in the stressed stem."""
    stem, vowel = infinitive[:-2], infinitive[-2]
    strong = stem
    if change:
        old, new = change.split(">")
        before, _, after = stem.rpartition(old)
        strong = before + new + after
    endings = _SPANISH_PRESENT_ENDINGS[vowel]
    return tuple((stem if index == 3 else strong) + ending for index, ending in enumerate(endings))


def _spanish_past(infinitive: str) -> tuple[str, ...]:
    """Give the preterite of a regular verb, with the spelling that keeps the sound."""
    stem, vowel = infinitive[:-2], infinitive[-2]
    if vowel == "a":
        first = stem
        for old, new in (("c", "qu"), ("g", "gu"), ("z", "c")):
            if stem.endswith(old):
                first = stem[:-1] + new
        return first + "é", stem + "aste", stem + "ó", stem + "amos", stem + "aron"
    if stem[-1] in "ae":
        return stem + "í", stem + "íste", stem + "yó", stem + "ímos", stem + "yeron"
    return stem + "í", stem + "iste", stem + "ió", stem + "imos", stem + "ieron"


def conjugate_spanish(spec: str) -> SpanishVerb:
    """Conjugate a Spanish verb from its line in the lexicon.

    Parameters
    ----------
    spec : str
        “comer” (regular), “cerrar e>ie” (a stem change), “conocer conozco” (an irregular first
        person), or an infinitive with its five present forms; then five forms of the preterite
        and a future stem, where irregular.
    """
    core, particle, preposition, _ = _take_markers(spec)
    infinitive, *given = core.split(" ")
    present = given[0] if given else ""
    past = given[1] if len(given) > 1 else ""
    future_stem = given[2] if len(given) > 2 else infinitive.replace("í", "i")
    if "," in present:
        present_forms = tuple(present.split(","))
    elif ">" in present or not present:
        present_forms = _spanish_present(infinitive, present)
    else:
        present_forms = (present, *_spanish_present(infinitive, "")[1:])
    stem = infinitive[:-2]
    if infinitive[-2] == "a":
        regular = tuple(stem + ending for ending in ("aba", "abas", "aba", "ábamos", "aban"))
    else:
        regular = tuple(stem + ending for ending in ("ía", "ías", "ía", "íamos", "ían"))
    return SpanishVerb(
        infinitive=infinitive,
        present=present_forms,
        past=tuple(past.split(",")) if past else _spanish_past(infinitive),
        imperfect=_SPANISH_IMPERFECT.get(infinitive, regular),
        future=tuple(future_stem + ending for ending in _SPANISH_FUTURE),
        particle=particle,
        preposition=preposition,
    )


def _parse_line(line: list[str]) -> Verb:
    subjects, objects, traits, french, english, spanish = line
    return Verb(
        subjects=frozenset(subjects.split()),
        objects=frozenset(objects.split()),
        traits=frozenset(traits.split()),
        french=conjugate_french(french),
        english=conjugate_english(english),
        spanish=conjugate_spanish(spanish),
    )


VERBS: tuple[Verb, ...] = tuple(_parse_line(line) for line in read_table("verbs"))
SER, ESTAR = (verb for verb in VERBS if "copula" in verb.traits)
CAN, WANT, MUST = (verb for verb in VERBS if "modal" in verb.traits)
HAVE = next(verb for verb in VERBS if verb.english.base == "have")
