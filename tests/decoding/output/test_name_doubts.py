"""Names and addresses that a translation lacks or has changed."""

import pytest

from dragoman.decoding.output.name_doubts import compare_addresses, compare_names


def told(source, translation, languages=("de", "en")):
    return [each.words for each in compare_names(source, translation, *languages)]


@pytest.mark.parametrize(
    ("source", "translation", "names"),
    [
        ("Angela Merkel besuchte die Stadt.", "Remain visited the city.", ["Angela", "Merkel"]),
        ("Das sagte Frau Schütt.", "She shuts that.", ["Schütt"]),
        ("Das sagte Dr. Schütt.", "Dr. shuts said that.", ["Schütt"]),
        ("Wir trafen Jan Kowalewski.", "We met Jan Kovski.", ["Kowalewski"]),
        ("Wir sahen Nuñez dort.", "We saw Numbers there.", ["Nuñez"]),
    ],
)
def test_lost_names_are_doubts(source, translation, names):
    assert told(source, translation) == [
        f"the name {each} does not seem to be in the translation" for each in names
    ]


def test_a_name_whose_middle_is_gone_is_a_doubt():
    assert told("Das sagte Özdemir gestern.", "Özir said that yesterday.") == [
        "the name Özdemir has become Özir"
    ]
    assert told("Er lebt in Lissabon.", "He lives in Lisbon.") == []


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("Angela Merkel besuchte die Stadt.", "Angela Merkel’s visit to the city."),
        ("Das sagte Frau Schütt.", "Mrs Schuett said that."),
        ("Frau Schütts Hund", "Mrs Schütt’s dog"),
        ("Das Haus der Familie ist groß.", "The family’s house is big."),
        ("Was hat Tom Ihnen gesagt?", "What did Tom tell you?"),
        ("Hunde, z. B. Dackel, bellen.", "Dogs, such as dachshunds, bark."),
        ("DAS SAGTE FRAU SCHÜTT", "she said that"),
    ],
)
def test_right_names_are_no_doubt(source, translation):
    assert told(source, translation) == []


def test_addresses_must_be_the_same():
    assert [each.words for each in compare_addresses("Ask me@a.org.", "Frag me@a.de.")] == [
        "the address me@a.org is not in the translation"
    ]
    assert not list(compare_addresses("See www.a.org/x.", "Siehe WWW.a.org/x."))
