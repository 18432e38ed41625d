"""The adjectives: forms, places and copulas in the three languages."""

from dragoman.data.builtin.lexicon.entries import Adjective

# kinds | French: masculine[/feminine[/masculine plural]] [pre] | English[/comparative]
#       | Spanish masculine[/feminine] [estar] [pre] | use
# The small differences (bel, buen, meilleur) are in the tables below.
_TABLE = """
animal thing part vehicle place piece | grand pre | large/larger | grande | both
person | grand pre | tall/taller | alto | both
animal thing part vehicle place piece | petit pre | small/smaller | pequeño | both
animal thing part place song | beau/belle/beaux pre | beautiful | hermoso | both
adult animal thing part vehicle film home shop | vieux/vieille/vieux pre | old/older | viejo | both
thing part vehicle text film song home | nouveau/nouvelle/nouveaux pre | new/newer | nuevo | both
adult youth animal | jeune pre | young/younger | joven | both
food drink readable film idea song work | bon/bonne pre | good/better | bueno | both
food drink readable film idea | mauvais pre | bad/worse | malo | both
text readable film event crossable | long/longue pre | long/longer | largo | both
work readable film art idea party | formidable | great | grande pre | attribute absolute
thing part vehicle home | rouge | red | rojo | both absolute
thing part vehicle | bleu | blue | azul | both absolute
thing part vehicle | vert | green | verde | both absolute
thing part vehicle animal | noir | black | negro | both absolute
thing part vehicle animal home | blanc/blanche | white | blanco | both absolute
thing part vehicle | jaune | yellow | amarillo | both absolute
thing vehicle food drink shop | cher/chère | expensive | caro | both
readable event region shop idea study | intéressant | interesting | interesante | both
study | facile | easy/easier | fácil | both
study | difficile | difficult | difícil | both
idea study | important | important | importante | both
idea event building | étrange | strange/stranger | extraño | both
person | heureux/heureuse | happy/happier | feliz estar | both
person | triste | sad/sadder | triste estar | both
person | fatigué | tired | cansado estar | both
person animal | malade | sick | enfermo estar | both absolute
person | prêt | ready | listo estar | predicate absolute
person | occupé | busy/busier | ocupado estar | both
person | riche | rich/richer | rico | both
person art film region writable | célèbre | famous | famoso | both
person pet | intelligent | intelligent | inteligente | both
person animal | fort | strong/stronger | fuerte | both
person | gentil/gentille | kind/kinder | amable | both
person film readable | drôle | funny/funnier | divertido | both
outdoor home region | calme | quiet/quieter | tranquilo | both
clothes container home shop | propre | clean/cleaner | limpio estar | both
clothes container home vehicle | sale | dirty/dirtier | sucio estar | both
drink | chaud | hot/hotter | caliente estar | both
drink | froid | cold/colder | frío estar | both
container public | vide | empty/emptier | vacío estar | both absolute
container public | plein | full/fuller | lleno estar | both absolute
shop openable | ouvert | open | abierto estar | both absolute
shop openable | fermé | closed | cerrado estar | both absolute
food | délicieux/délicieuse | delicious | delicioso | both absolute
vehicle pet | rapide | fast/faster | rápido | both
vehicle public | lent | slow/slower | lento | both
public-place home region vehicle art | moderne | modern | moderno | both
person food film shop writable | français | French | francés | both absolute
person film writable | anglais | English | inglés | both absolute
person food film shop writable | italien/italienne | Italian | italiano | both absolute
person film writable | espagnol | Spanish | español | both absolute
thing study | premier/première pre | first | primero pre | attribute absolute
thing study | troisième pre | third | tercero pre | attribute absolute
"""
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


def _parse_line(line: str) -> Adjective:
    kinds, french, english, spanish, use = (field.strip() for field in line.split("|"))
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


ADJECTIVES: tuple[Adjective, ...] = tuple(_parse_line(line) for line in _TABLE.strip().splitlines())
ADJECTIVE_OF: dict[str, Adjective] = {adjective.english: adjective for adjective in ADJECTIVES}
