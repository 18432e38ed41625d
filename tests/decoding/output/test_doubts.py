"""Doubts: planted faults are found at their place, and right translations have none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decoding.output.doubts import find_doubts

RIGHT = [
    ("Der Zug fährt um 8:30 Uhr.", "The train leaves at 8.30.", "de", "en"),
    ("Es kostet 10.000 Euro.", "It costs 10,000 euros.", "de", "en"),
    ("Il y a 10 000 personnes.", "There are 10,000 people.", "fr", "en"),
    ("I saw Jane in Africa in September.", "J’ai vu Jane en Afrique en septembre.", "en", "fr"),
    ("He lives in Germany.", "Il habite en Allemagne.", "en", "fr"),
    ("I learn French on Monday.", "J’apprends le français le lundi.", "en", "fr"),
    ("She said that that was right.", "Sie sagte, dass das das Richtige war.", "en", "de"),
    ("WE ALL LIKE PARIS", "wir alle mögen paris", "en", "de"),
    ("I’ll stay if I'm there.", "Ich bleibe, wenn ich da bin.", "en", "de"),
    ("Yes.", "Oui, bien sûr que oui.", "en", "fr"),
    ("She met Natasha in Moscow.", "Она встретила Наташу в Москве.", "en", "ru"),
    ("我爱你。", "I love you very much, and I always will.", "zh", "en"),
    ("", "", "en", "fr"),
]


@pytest.mark.parametrize("pair", RIGHT)
def test_right_translations_have_none(pair):
    assert find_doubts(*pair) == []


@pytest.mark.parametrize(
    ("source", "translation", "kind", "side", "place"),
    [
        ("It costs 15 euros.", "Es kostet 50 Euro.", "number", "source", "15"),
        ("It costs 15 euros.", "Es kostet 50 Euro.", "number", "target", "50"),
        ("In 1999 and 1999.", "1999 war das.", "number", "source", "1999"),
        ("I saw Jane there.", "Ich sah sie dort.", "name", "source", "Jane"),
        ("I like it here.", "Ich mag mag es hier.", "repetition", "target", "mag"),
        ("We go home now.", "Wir gehen nach nach Hause.", "repetition", "target", "nach"),
        ("I see the old dog in the garden there.", "Hund.", "length", "target", "Hund."),
        ("one two three four", "one two three four", "language", "target", "one two three four"),
        ("The dog.", " ", "length", "source", "The dog."),
        ("Ask a.b@c.org today.", "Frag heute a.b@c.com.", "address", "source", "a.b@c.org"),
        ("Mr Jones is here.", "Herr Jonasch ist da.", "name", "source", "Jones"),
    ],
)
def test_planted_faults_are_found(source, translation, kind, side, place):
    texts = {"source": source, "target": translation}
    found = find_doubts(source, translation, "en", "de")
    told = [(each.kind, each.side, texts[each.side][each.begin : each.end]) for each in found]
    assert (kind, side, place) in told
    assert all(each.words for each in found)


def test_missing_number_is_marked_once_for_each_time():
    found = find_doubts("Rooms 7, 7 and 8.", "Zimmer 7 und 8.", "en", "de")
    assert [(each.side, each.begin) for each in found] == [("source", 9)]


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["en", "de", ""]))
def test_places_are_in_the_texts(source, translation, language):
    for each in find_doubts(source, translation, language, "fr"):
        text = {"source": source, "target": translation}[each.side]
        assert 0 <= each.begin < each.end <= len(text)


def test_a_dropped_clause_is_a_doubt():
    source = "Wir haben gestern lange gewartet, und als er endlich kam, war es schon zu spät dafür."
    (found,) = find_doubts(source, "We waited a long time yesterday.", "de", "en")
    assert found.kind == "length"
    assert found.words == "very short: 27 characters from 70"
    whole = "We waited long yesterday, and when he finally came, it was already too late for it."
    assert find_doubts(source, whole, "de", "en") == []


def test_digits_and_capitals_of_addresses_are_no_numbers_or_names():
    source = "Siehe https://a.org/Merkel/2023 dazu."
    (found,) = find_doubts(source, "See there for more.", "de", "en")
    assert found.words == "the address https://a.org/Merkel/2023 is not in the translation"
    assert find_doubts(source, "See https://a.org/Merkel/2023 for it.", "de", "en") == []


def test_what_a_glossary_forced_is_right():
    pair = ("Herr Bahn hat 5 Äpfel.", "Mister Rail has 5 apples.", "de", "en")
    (found,) = find_doubts(*pair)
    assert found.kind == "name"
    assert find_doubts(*pair, terms=[("Bahn", "Rail")]) == []
    assert find_doubts(*pair, terms=[("Bahn", "train")]) == [found]
