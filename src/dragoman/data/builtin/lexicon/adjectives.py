"""The adjectives: forms, places and copulas in the three languages."""

from dragoman.data.builtin.lexicon.entries import Adjective, read_table

_FRENCH_PREVOCALIC = {"beau": "bel", "vieux": "vieil", "nouveau": "nouvel"}
_FRENCH_COMPARATIVE = {"good": ("meilleur", "meilleure", "meilleurs", "meilleures")}
_SPANISH_SHORT = {
    "bueno": "buen",
    "malo": "mal",
    "grande": "gran",
    "primero": "primer",
    "tercero": "tercer",
}
_SPANISH_COMPARATIVE = {"good": "mejor", "bad": "peor"}
_SPANISH_ALWAYS_FIRST = ("good", "bad")
_NATIONAL_FEMININE = {"francés": "francesa", "inglés": "inglesa", "español": "española"}


def _inflect_french(spec: str) -> tuple[str, str, str, str]:
    forms = spec.split("/")
    masculine = forms[0]
    feminine = forms[1] if len(forms) > 1 else masculine.removesuffix("e") + "e"
    plural = masculine if masculine[-1] in "sx" else masculine + "s"
    return masculine, feminine, forms[2] if len(forms) > 2 else plural, feminine + "s"


def _inflect_spanish(masculine: str) -> tuple[str, str, str, str]:
    if masculine in _NATIONAL_FEMININE:
        feminine = _NATIONAL_FEMININE[masculine]
        return masculine, feminine, feminine[:-1] + "es", feminine + "s"
    if masculine.endswith("o"):
        stem = masculine[:-1]
        return masculine, stem + "a", stem + "os", stem + "as"
    if masculine == "joven":
        return masculine, masculine, "jóvenes", "jóvenes"
    if masculine.endswith("z"):
        plural = masculine[:-1] + "ces"
    else:
        plural = masculine + ("s" if masculine.endswith("e") else "es")
    return masculine, masculine, plural, plural


def _parse_line(line: list[str]) -> Adjective:
    kinds, french, english, spanish, use = line
    french_form, *french_flags = french.split(" ")
    spanish_form, *spanish_flags = spanish.split(" ")
    base, _, comparative = english.partition("/")
    masculine, feminine, masculine_plural, feminine_plural = _inflect_spanish(spanish_form)
    short = _SPANISH_SHORT.get(masculine, masculine)
    return Adjective(
        kinds=frozenset(kinds.split()),
        french=_inflect_french(french_form),
        french_prevocalic=_FRENCH_PREVOCALIC.get(french_form.partition("/")[0], ""),
        french_comparative=_FRENCH_COMPARATIVE.get(base, ("", "", "", "")),
        french_first="pre" in french_flags,
        english=base,
        english_comparative=comparative,
        spanish=(masculine, feminine, masculine_plural, feminine_plural),
        spanish_short=(short, "gran" if short == "gran" else feminine),
        spanish_comparative=_SPANISH_COMPARATIVE.get(base, ""),
        spanish_first="pre" in spanish_flags or base in _SPANISH_ALWAYS_FIRST,
        spanish_estar="estar" in spanish_flags,
        gradable="absolute" not in use,
        use=use.split(" ")[0],
    )


ADJECTIVES: tuple[Adjective, ...] = tuple(_parse_line(line) for line in read_table("adjectives"))
ADJECTIVE_OF: dict[str, Adjective] = {adjective.english: adjective for adjective in ADJECTIVES}
