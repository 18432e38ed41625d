"""The nouns, one line of the table per concept, and the names of people and places."""

from dragoman.data.builtin.lexicon.entries import Noun, NounForms, Place, read_table

WOMEN = ("Jane", "Marie", "Anna", "Sophie", "Claire", "Alice", "Emma", "Laura", "Julie", "Sarah")
MEN = ("Paul", "Pierre", "Thomas", "Marc", "Louis", "David", "Victor", "Martin", "Daniel", "Oscar")
_ACCENTLESS = {"á": "a", "é": "e", "í": "i", "ó": "o", "ú": "u"}


def _pluralise_french(singular: str) -> str:
    if singular[-1] in "sxz":
        return singular
    if singular.endswith("al"):
        return singular[:-2] + "aux"
    return singular + ("x" if singular.endswith("eau") else "s")


def _pluralise_english(singular: str) -> str:
    if singular.endswith(("s", "x", "ch", "sh", "tomato")):
        return singular + "es"
    if singular.endswith("y") and singular[-2] not in "aeiou":
        return singular[:-1] + "ies"
    return singular + "s"


def _pluralise_spanish(singular: str) -> str:
    if singular == "examen":
        return "exámenes"
    if singular[-1] in "aeioué":
        return singular + "s"
    if singular[-1] in "ns" and singular[-2] in _ACCENTLESS:
        # the stress stays on the same syllable, which no longer needs the mark: león, leones
        return singular[:-2] + _ACCENTLESS[singular[-2]] + singular[-1] + "es"
    return singular[:-1] + "ces" if singular.endswith("z") else singular + "es"


def _parse_noun(line: list[str]) -> Noun:
    kinds, french, english, spanish = line
    french_form, french_gender = french.rsplit(" ", 1)
    spanish_form, spanish_gender = spanish.rsplit(" ", 1)
    singulars = [form.partition("/")[0] for form in (french_form, english, spanish_form)]
    plurals = [form.partition("/")[2] for form in (french_form, english, spanish_form)]
    feminine = french_gender == "f"
    return Noun(
        kinds=frozenset(kinds.split()),
        french=NounForms(singulars[0], plurals[0] or _pluralise_french(singulars[0]), feminine),
        english=NounForms(singulars[1], plurals[1] or _pluralise_english(singulars[1]), feminine),
        spanish=NounForms(
            singulars[2], plurals[2] or _pluralise_spanish(singulars[2]), spanish_gender == "f"
        ),
    )


NOUNS: tuple[Noun, ...] = tuple(_parse_noun(line) for line in read_table("nouns"))
NOUN_OF: dict[str, Noun] = {noun.english.singular: noun for noun in NOUNS}


def _parse_place(line: list[str]) -> Place:
    kind, french, english, spanish = line
    article = name = ""
    if kind == "city":
        name = french
    else:
        article, name = french.split(" ")
    spanish_name, _, gender = spanish.rpartition(" ") if kind != "city" else (spanish, "", "f")
    return Place(
        kind=kind,
        french=name,
        french_article=article,
        english=english.removeprefix("the "),
        english_article="the" if english.startswith("the ") else "",
        spanish=spanish_name,
        spanish_feminine=gender == "f",
        french_feminine=article == "la",
        plural=article == "les",
    )


PLACES: tuple[Place, ...] = tuple(_parse_place(line) for line in read_table("place_names"))
