"""The nouns: one line per concept, with kinds, French, English and Spanish forms."""

from dragoman.data.builtin.lexicon.entries import Noun, NounForms

# A noun whose English form hides the gender (“nurse”, “judge”) has one fixed gender here, so that
# its Spanish rendering can be told from English; the genders are shared out evenly.
_TABLE = """
person kin adult | homme m | man/men | hombre m
person kin adult | femme f | woman/women | mujer f
person kin youth | garçon m | boy | chico m
person kin youth | fille f | girl | chica f
person kin youth | enfant m | child/children | niño m
person own | frère m | brother | hermano m
person own | sœur f | sister | hermana f
person own unique | père m | father | padre m
person own unique | mère f | mother | madre f
person own | ami m | friend | amigo m
person work adult | professeur m | teacher | profesor m
person work adult | médecin m | doctor | médico m
person work adult | étudiante f | student | estudiante f
person adult | roi m | king | rey m
person adult | reine f | queen | reina f
person own | oncle m | uncle | tío m
person own | tante f | aunt | tía f
person own | grand-père/grands-pères m | grandfather | abuelo m
person own | grand-mère/grands-mères f | grandmother | abuela f
person work adult | infirmier m | nurse | enfermero m
person work adult | boulangère f | baker | panadera f
person work adult | chanteur m | singer | cantante m
person work adult | juge f | judge | jueza f
person work adult | avocate f | lawyer | abogada f
person work adult | ingénieur m | engineer | ingeniero m
person work adult | scientifique f | scientist | científica f
person work adult | écrivain m | writer | escritor m
person own | voisine f | neighbour | vecina f
person work adult | actrice f | actress | actriz f
person work adult | acteur m | actor | actor m
person work adult | directrice f | director | directora f
person adult | soldat m | soldier | soldado m
person adult | princesse f | princess | princesa f
animal pet | chat m | cat | gato m
animal pet | chien m | dog | perro m
animal | oiseau m | bird | pájaro m
animal pet | cheval m | horse | caballo m
animal | lapin m | rabbit | conejo m
animal | vache f | cow | vaca f
animal | souris f | mouse/mice | ratón m
animal | lion m | lion | león m
animal | éléphant m | elephant | elefante m
animal | ours m | bear | oso m
food piece | pomme f | apple | manzana f
food piece | gâteau m | cake | pastel m
food piece dish | œuf m | egg | huevo m
food piece | poire f | pear | pera f
food piece | tomate f | tomato | tomate m
food piece | citron m | lemon | limón m
food piece dish | carotte f | carrot | zanahoria f
food mass | pain m | bread | pan m
food mass | fromage m | cheese | queso m
food mass dish | riz m | rice | arroz m
food mass dish | viande f | meat | carne f
food mass dish | poisson m | fish | pescado m
food mass | chocolat m | chocolate | chocolate m
food mass dish | soupe f | soup | sopa f
drink mass | eau f | water | agua f
drink mass | lait m | milk | leche f
drink mass | café m | coffee | café m
drink mass | thé m | tea | té m
drink mass | vin m | wine | vino m
thing readable writable work-of-art | livre m | book | libro m
thing readable writable | lettre f | letter | carta f
thing readable | journal m | newspaper | periódico m
text readable writable work-of-art | poème m | poem | poema m
text readable writable work-of-art | histoire f | story | historia f
text readable writable work-of-art | roman m | novel | novela f
text readable writable | message m | message | mensaje m
thing surface | table f | table | mesa f
thing surface | chaise f | chair | silla f
thing surface | lit m | bed | cama f
part openable | porte f | door | puerta f
part openable | fenêtre f | window | ventana f
thing openable container | boîte f | box | caja f
thing openable container | bouteille f | bottle | botella f
thing portable | clé f | key | llave f
thing container | verre m | glass | vaso m
thing container | tasse f | cup | taza f
thing portable | assiette f | plate | plato m
thing portable | couteau m | knife/knives | cuchillo m
thing portable | téléphone m | phone | teléfono m
thing portable | ordinateur m | computer | ordenador m
thing portable | horloge f | clock | reloj m
thing art work-of-art | tableau m | painting | cuadro m
thing portable gift | cadeau m | gift | regalo m
thing portable | guitare f | guitar | guitarra f
thing gift | fleur f | flower | flor f
thing outdoor landmark | arbre m | tree | árbol m
thing portable | parapluie m | umbrella | paraguas/paraguas m
thing openable container portable | sac m | bag | bolsa f
thing clothes | chapeau m | hat | sombrero m
thing clothes | chemise f | shirt | camisa f
thing clothes | robe f | dress | vestido m
thing clothes | manteau m | coat | abrigo m
thing clothes | chaussure f | shoe | zapato m
vehicle drivable | voiture f | car | coche m
vehicle public drivable | bus m | bus | autobús m
vehicle public | train m | train | tren m
vehicle public | avion m | plane | avión m
vehicle | bateau m | boat | barco m
vehicle | vélo m | bicycle | bicicleta f
vehicle drivable | camion m | truck | camión m
place home in landmark | maison f | house | casa f
place in outdoor | jardin m | garden | jardín m
place at public-place | école f | school | escuela f
place at public-place | marché m | market | mercado m
place at public-place | gare f | station | estación f
place in public-place shop | magasin m | shop | tienda f
place at public-place shop | musée m | museum | museo m
place at public-place | hôpital m | hospital | hospital m
place at public-place shop | restaurant m | restaurant | restaurante m
place in outdoor landmark | parc m | park | parque m
place home in | cuisine f | kitchen | cocina f
place home in | chambre f | room | habitación f
place at | bureau m | office | oficina f
place in public-place | église f | church | iglesia f
place at public-place shop | bibliothèque f | library | biblioteca f
place at public-place | hôtel m | hotel | hotel m
place at outdoor | plage f | beach | playa f
place in region | ville f | city | ciudad f
place in region | village m | village | pueblo m
place in region | pays m | country | país/países m
place in crossable outdoor | rue f | street | calle f
place bare crossable outdoor landmark | pont m | bridge | puente m
place bare crossable outdoor landmark | rivière f | river | río m
place in outdoor landmark | forêt f | forest | bosque m
place bare outdoor region | île f | island | isla f
place in building landmark | château m | castle | castillo m
place at public-place | université f | university | universidad f
place at public-place | théâtre m | theatre | teatro m
place at public-place | aéroport m | airport | aeropuerto m
study event | leçon f | lesson | lección f
study idea | question f | question | pregunta f
idea | idée f | idea | idea f
idea | problème m | problem | problema m
song | chanson f | song | canción f
event film work-of-art | film m | film | película f
event party | fête f | party | fiesta f
event | concert m | concert | concierto m
event study | examen m | exam | examen m
sound mass | musique f | music | música f
language mass | français m | French | francés m
language mass | espagnol m | Spanish | español m
language mass | anglais m | English | inglés m
language mass | italien m | Italian | italiano m
unit | euro m | euro | euro m
unit | an m | year | año m
unit | habitant m | inhabitant | habitante m
"""
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


def _parse_line(line: str) -> Noun:
    kinds, french, english, spanish = (field.strip() for field in line.split("|"))
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


NOUNS: tuple[Noun, ...] = tuple(_parse_line(line) for line in _TABLE.strip().splitlines())
NOUN_OF: dict[str, Noun] = {noun.english.singular: noun for noun in NOUNS}
