"""Glossaries and forbidden words: what is found, and what is said of files that are wrong."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.decoding.constraints.glossary import (
    ForbiddenPhrase,
    ForbiddenPhrases,
    Glossary,
    Term,
    read_forbidden,
    read_glossary,
)
from dragoman.errors import DataError


def make(*pairs):
    return Glossary([Term(*pair, f"g:{number}") for number, pair in enumerate(pairs, start=1)])


def targets(glossary, text):
    return [term.target for term in glossary.find(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The dog sees a Dog.", ["chien", "chien"]),
        ("dogs and a dogma", []),
        ("“dog”, (DOG)", ["chien", "chien"]),
        ("a bull-dog", []),
        ("a machine for machine translation", ["appareil", "traduction automatique"]),
        ("the eau of l’eau", ["water", "water"]),
        ("C++ or C", ["langage"]),
        ("", []),
    ],
)
def test_terms_are_found_as_whole_words_the_longest_first(text, found):
    glossary = make(
        ("dog", "chien"),
        ("machine", "appareil"),
        ("machine translation", "traduction automatique"),
        ("eau", "water"),
        ("c++", "langage"),
    )
    assert targets(glossary, text) == found


@given(st.lists(st.sampled_from(["dog", "cat", "dogs", "the", "Dog", "CAT"]), max_size=8))
def test_every_whole_word_is_found_once(words):
    expected = [word.lower() for word in words if word.lower() in ("dog", "cat")]
    assert targets(make(("Dog", "dog"), ("cat", "cat")), " ".join(words)) == expected


def test_a_file_is_read_as_it_is_written(tmp_path):
    path = tmp_path / "g.tsv"
    path.write_bytes("\ufeffdog\tchien\r\n\n  black  cat \t chat  noir\nDOG\tchien\n".encode())
    assert read_glossary(path).terms == (
        Term("dog", "chien", f"{path}:1"),
        Term("black cat", "chat noir", f"{path}:3"),
    )
    path.write_text("merde\n\nad  hoc\n", encoding="utf-8")
    assert read_forbidden(path) == [
        ForbiddenPhrase("merde", f"{path}:1"),
        ForbiddenPhrase("ad hoc", f"{path}:3"),
    ]


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (
            b"a\tb\ndog\n",
            "{}:2: has 1 columns, not 2; write a source term, a tab and a target term",
        ),
        (b"a\tb\tc\n", "{}:1: has 3 columns, not 2; write a source term, a tab and a target term"),
        (b"\tb\n", "{}:1: the source term is empty; write one, or leave the line out"),
        (b"a\t \n", "{}:1: the target term is empty; write one, or leave the line out"),
        (b"a\tb\nA\tc\n", "{0}:2: “A” is “c” here but “b” in {0}:1; keep one of them"),
        (b"a\tb\n\xff\tb\n", "{}:2: is not UTF-8; save the file as UTF-8"),
    ],
)
def test_malformed_glossaries_are_refused_by_line(tmp_path, contents, message):
    path = tmp_path / "g.tsv"
    path.write_bytes(contents)
    with pytest.raises(DataError, match=f"^{re.escape(message.format(path))}$"):
        read_glossary(path)


def test_malformed_lists_are_refused_by_line(tmp_path):
    path = tmp_path / "f.txt"
    path.write_text("a\nb\tc\n")
    with pytest.raises(DataError) as caught:
        read_forbidden(path)
    assert str(caught.value) == (
        f"{path}:2: has a tab, but must be one word or phrase; put each on a line of its own"
    )
    path.write_text("ab " * 200)
    with pytest.raises(DataError) as caught:
        read_forbidden(path)
    assert str(caught.value) == (
        f"{path}:1: has 599 characters, but 500 are the most; forbid a part of it"
    )
    with pytest.raises(DataError) as caught:
        read_forbidden(tmp_path / "missing")
    assert str(caught.value) == (
        f"{tmp_path / 'missing'}: cannot be read (No such file or directory); check the path"
    )


def test_contradictions_are_found_between_whole_words():
    forbidden = [ForbiddenPhrase("Noir", "f:1"), ForbiddenPhrase("chat", "f:2")]
    assert ForbiddenPhrases(forbidden).find("un chat noir") == forbidden[1]
    assert ForbiddenPhrases(forbidden).find("chaton noiraud") is None
    assert ForbiddenPhrases([]).find("chat") is None


@pytest.mark.parametrize("text", ["Je vais à İzmir.", "izmir", "IZMIR"])
def test_a_dotted_capital_is_its_small_letter(text):
    assert targets(make(("izmir", "Izmir"), ("ızgara", "grill")), text) == ["Izmir"]


def test_dotless_letters_are_others():
    glossary = make(("kir", "dirt"), ("kır", "countryside"))
    assert targets(glossary, "kır kir KİR") == ["countryside", "dirt", "dirt"]


def test_the_cost_of_large_demands_is_linear():
    def find_terms(count):
        glossary = make(*((f"terme {number}", f"term {number}") for number in range(count)))
        last = count - 1
        assert targets(glossary, f"Le terme {last} est là. " * 20) == [f"term {last}"] * 20

    def forbid(count):
        prohibition = ForbiddenPhrases(
            [ForbiddenPhrase(f"word {number}", "f") for number in range(count)]
        )
        assert all(prohibition.find(f"term {number}") is None for number in range(count))

    assert grows_linearly(find_terms, 5000)
    assert grows_linearly(forbid, 1000)


def test_terms_can_be_left_out():
    glossary = make(("dog", "chien"), ("cat", "chat"))
    assert targets(glossary.without([glossary.terms[0]]), "dog cat") == ["chat"]
    assert targets(glossary.without(glossary.terms), "dog cat") == []
