"""Conjugation, compared with forms written down by hand."""

import pytest

from dragoman.data.builtin.lexicon.verbs import VERBS

FRENCH = {
    "manger": ("mange", "mangeons", "mangeait", "mangions", "mangera", "mangé"),
    "commencer": ("commence", "commençons", "commençait", "commencions", "commencera", "commencé"),
    "acheter": ("achète", "achetons", "achetait", "achetions", "achètera", "acheté"),
    "préférer": ("préfère", "préférons", "préférait", "préférions", "préférera", "préféré"),
    "appeler": ("appelle", "appelons", "appelait", "appelions", "appellera", "appelé"),
    "nettoyer": ("nettoie", "nettoyons", "nettoyait", "nettoyions", "nettoiera", "nettoyé"),
    "envoyer": ("envoie", "envoyons", "envoyait", "envoyions", "enverra", "envoyé"),
    "finir": ("finit", "finissons", "finissait", "finissions", "finira", "fini"),
    "être": ("est", "sommes", "était", "étions", "sera", "été"),
    "aller": ("va", "allons", "allait", "allions", "ira", "allé"),
    "voir": ("voit", "voyons", "voyait", "voyions", "verra", "vu"),
    "peindre": ("peint", "peignons", "peignait", "peignions", "peindra", "peint"),
    "rire": ("rit", "rions", "riait", "riions", "rira", "ri"),
}
ENGLISH = {
    "watch": ("watches", "watched", "watching"),
    "study": ("studies", "studied", "studying"),
    "play": ("plays", "played", "playing"),
    "live": ("lives", "lived", "living"),
    "have": ("has", "had", "having"),
    "go": ("goes", "went", "going"),
    "cry": ("cries", "cried", "crying"),
    "cross": ("crosses", "crossed", "crossing"),
    "swim": ("swims", "swam", "swimming"),
    "prefer": ("prefers", "preferred", "preferring"),
}
SPANISH = {
    "comer": ("como", "come", "comí", "comió", "comía", "comerá"),
    "buscar": ("busco", "busca", "busqué", "buscó", "buscaba", "buscará"),
    "llegar": ("llego", "llega", "llegué", "llegó", "llegaba", "llegará"),
    "cruzar": ("cruzo", "cruza", "crucé", "cruzó", "cruzaba", "cruzará"),
    "empezar": ("empiezo", "empieza", "empecé", "empezó", "empezaba", "empezará"),
    "leer": ("leo", "lee", "leí", "leyó", "leía", "leerá"),
    "jugar": ("juego", "juega", "jugué", "jugó", "jugaba", "jugará"),
    "dormir": ("duermo", "duerme", "dormí", "durmió", "dormía", "dormirá"),
    "ver": ("veo", "ve", "vi", "vio", "veía", "verá"),
    "ir": ("voy", "va", "fui", "fue", "iba", "irá"),
    "reír": ("río", "ríe", "reí", "rió", "reía", "reirá"),
    "conducir": ("conduzco", "conduce", "conduje", "condujo", "conducía", "conducirá"),
    "tener": ("tengo", "tiene", "tuve", "tuvo", "tenía", "tendrá"),
    "encontrar": ("encuentro", "encuentra", "encontré", "encontró", "encontraba", "encontrará"),
}


@pytest.mark.parametrize("infinitive", FRENCH)
def test_french(infinitive):
    verb = next(verb.french for verb in VERBS if verb.french.infinitive == infinitive)
    forms = (verb.present[2], verb.present[3], verb.imperfect[2], verb.imperfect[3])
    assert (*forms, verb.future[2], verb.participle) == FRENCH[infinitive]


@pytest.mark.parametrize("base", ENGLISH)
def test_english(base):
    verb = next(verb.english for verb in VERBS if verb.english.base == base)
    assert (verb.third, verb.past, verb.progressive) == ENGLISH[base]


@pytest.mark.parametrize("infinitive", SPANISH)
def test_spanish(infinitive):
    verb = next(verb.spanish for verb in VERBS if verb.spanish.infinitive == infinitive)
    forms = (verb.present[0], verb.present[2], verb.past[0], verb.past[2])
    assert (*forms, verb.imperfect[2], verb.future[2]) == SPANISH[infinitive]


def test_every_verb_has_five_forms_of_each_tense():
    for verb in VERBS:
        for forms in (verb.french.present, verb.french.imperfect, verb.french.future):
            assert len(forms) == 5
        spanish = verb.spanish
        for forms in (spanish.present, spanish.past, spanish.imperfect, spanish.future):
            assert len(forms) == 5
