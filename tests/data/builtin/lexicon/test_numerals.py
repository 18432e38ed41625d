"""Numbers in words, read back by an independent reader."""

import pytest

from dragoman.data.builtin.lexicon.numerals import realise_english, realise_french, realise_spanish

_FRENCH_WORDS = """un une deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze
quinze seize vingt vingts trente quarante cinquante soixante"""
_ENGLISH_WORDS = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen
fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"""
_SPANISH_WORDS = """un una dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce
quince dieciséis diecisiete dieciocho diecinueve veinte veintiún veintiuna veintidós veintitrés
veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve treinta cuarenta cincuenta
sesenta setenta ochenta noventa cien ciento doscient trescient cuatrocient quinient seiscient
setecient ochocient novecient"""
FRENCH = dict(zip(_FRENCH_WORDS.split(), [1, *range(1, 17), 20, *range(20, 70, 10)], strict=True))
ENGLISH = dict(zip(_ENGLISH_WORDS.split(), [*range(1, 20), *range(20, 100, 10)], strict=True))
SPANISH = dict(
    zip(
        _SPANISH_WORDS.split(),
        [1, *range(1, 22), *range(21, 30), *range(30, 100, 10), 100, *range(100, 1000, 100)],
        strict=True,
    )
)


def _read_french(text):
    total = group = 0
    for word in text.replace("-", " ").split():
        if word == "et":
            continue
        if word == "mille":
            total += 1000 * (group or 1)
            group = 0
        elif word in {"cent", "cents"}:
            group = 100 * (group or 1)
        elif word in {"vingt", "vingts"} and group % 100 == 4:
            group += 76
        else:
            group += FRENCH[word]
    return total + group


def _read_english(text):
    total = group = 0
    for word in text.replace("-", " ").split():
        if word == "and":
            continue
        if word == "thousand":
            total, group = 1000 * group, 0
        elif word == "hundred":
            group *= 100
        else:
            group += ENGLISH[word]
    return total + group


def _read_spanish(text):
    total = group = 0
    for word in text.split():
        if word == "y":
            continue
        if word == "mil":
            total, group = 1000 * (group or 1), 0
        else:
            stem = word[:-2] if word.endswith(("cientos", "cientas", "quinientos")) else word
            stem = word[:-2] if word.endswith("ientas") else stem
            group += SPANISH[stem]
    return total + group


def _text(words):
    return " ".join(word.text for word in words)


@pytest.mark.parametrize("feminine", [False, True])
def test_numbers_read_back(feminine):
    for number in range(1, 10_000):
        assert _read_french(_text(realise_french(number, feminine=feminine))) == number
        assert _read_english(_text(realise_english(number))) == number
        assert _read_spanish(_text(realise_spanish(number, feminine=feminine))) == number


def test_parts_are_the_same_in_all_languages():
    for number in range(1, 10_000):
        said = [
            {part for word in words for part in word.parts}
            for words in (realise_french(number), realise_english(number), realise_spanish(number))
        ]
        assert said[0] == said[1] == said[2]


@pytest.mark.parametrize(
    ("number", "french", "english", "spanish"),
    [
        (21, "vingt et une", "twenty-one", "veintiuna"),
        (71, "soixante et onze", "seventy-one", "setenta y una"),
        (80, "quatre-vingts", "eighty", "ochenta"),
        (91, "quatre-vingt-onze", "ninety-one", "noventa y una"),
        (200, "deux cents", "two hundred", "doscientas"),
        (203, "deux cent trois", "two hundred and three", "doscientas tres"),
        (3000, "trois mille", "three thousand", "tres mil"),
        (1501, "mille cinq cent une", "one thousand five hundred and one", "mil quinientas una"),
    ],
)
def test_spelling(number, french, english, spanish):
    assert _text(realise_french(number, feminine=True)) == french
    assert _text(realise_english(number)) == english
    assert _text(realise_spanish(number, feminine=True)) == spanish
