import csv
import io
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import deepl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.work import grows_linearly

from dragoman.decoding.constraints.glossary import Glossary, Term
from dragoman.serving import glossaries
from dragoman.serving.glossaries import Dictionary, GlossaryStore, read_entries, write_entries
from dragoman.serving.service_types import ServiceError

TERMS = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs")), min_size=1, max_size=8
)
ENTRIES = st.dictionaries(TERMS, TERMS, min_size=1, max_size=6).filter(
    lambda some: len({each.casefold() for each in some}) == len(some)
)


@given(entries=ENTRIES)
def test_what_the_client_of_deepl_writes_is_read(entries):
    tsv = deepl.convert_dict_to_tsv(entries)
    assert dict(read_entries(tsv, "tsv")) == entries
    assert deepl.convert_tsv_to_dict(write_entries(read_entries(tsv, "tsv"))) == entries


@given(entries=ENTRIES, has_codes=st.booleans())
def test_what_the_standard_library_writes_as_csv_is_read(entries, has_codes):
    file = io.StringIO(newline="")
    codes = ["en", "fr"] if has_codes else []
    csv.writer(file).writerows([*each, *codes] for each in entries.items())
    assert dict(read_entries(file.getvalue(), "csv")) == entries


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("a\tb", "xml", "Value for 'entries_format' not supported: xml; send tsv or csv"),
        ("a b", "tsv", "Entry 1 has 1 columns; write a term and its translation"),
        ("a\tb\n\nc\td\te", "tsv", "Entry 3 has 3 columns"),
        ("a,b,c", "csv", "Entry 1 has 3 columns"),
        ('"a,b', "csv", "the entries are no CSV: unexpected end of data"),
        ("\tb", "tsv", "Entry 1 has an empty term; write one, or leave the line out"),
        ("a\t ", "tsv", "Entry 1 has an empty term"),
        ("a\tb\nA\tc", "tsv", "Entry 2 duplicates source term “A”"),
        ("a\x07\tb", "tsv", "Entry 1 has a control character; leave it out"),
        ("a\tb\u2028c", "tsv", "Entry 1 has a control character"),
        (f"{'a' * 2000}\tb", "tsv", "Entry 1 has a term of 2,000 characters; write shorter ones"),
        ("\n", "tsv", "the glossary has no entries; send at least one"),
    ],
)
def test_wrong_entries_are_refused(text, form, message):
    with pytest.raises(ServiceError, match=message) as caught:
        read_entries(text, form)
    assert caught.value.kind == "bad_request"


@pytest.fixture
def store():
    return GlossaryStore()


def make(store, owner="ann", entries=(("dog", "chien"), ("old dog", "vieux chien"))):
    dictionary = Dictionary(source="en", target="fr", entries=entries)
    return store.create(owner, name="mine", dictionaries=(dictionary,))


def test_a_glossary_is_kept_for_its_owner_only(store):
    first, second = make(store), make(store)
    assert store.list("ann") == [first, second]
    assert store.list("bob") == []
    assert store.get("ann", first.glossary_id.upper()) == first
    with pytest.raises(ServiceError, match="no glossary has that id; list them") as caught:
        store.get("bob", first.glossary_id)
    assert caught.value.kind == "not_found"
    with pytest.raises(ServiceError, match="no glossary has that id"):
        store.delete("bob", first.glossary_id)
    store.delete("ann", first.glossary_id)
    store.delete("ann", second.glossary_id)
    assert store.list("ann") == []
    assert store._of_owner == {}


def test_an_id_must_be_one(store):
    with pytest.raises(ServiceError, match="Invalid or missing glossary id") as caught:
        store.get("ann", "not an id")
    assert caught.value.kind == "bad_request"
    with pytest.raises(ServiceError, match="no glossary has that id"):
        store.get("ann", str(uuid.uuid4()))


def test_terms_of_texts_are_found_once(store):
    glossary = make(store)
    assert set(glossary.dictionaries[0].find_terms(["An old dog and a Dog.", "A dog."])) == {
        ("old dog", "vieux chien"),
        ("dog", "chien"),
    }
    assert glossary.dictionaries[0].find_terms(["Dogs bark."]) == ()


WORDS = st.lists(st.sampled_from(["dog", "Dog", "old", "ß", "-", "l'", "DOGS"]), min_size=1)


@settings(max_examples=50)
@given(terms=st.lists(WORDS.map(" ".join), min_size=1, max_size=4), text=WORDS.map(" ".join))
def test_all_terms_that_the_translator_looks_for_are_found(terms, text):
    unique = {term.casefold(): term for term in terms}.values()
    entries = tuple((term, "x") for term in unique)
    glossary = make(GlossaryStore(), entries=entries)
    found = {term for term, _ in glossary.dictionaries[0].find_terms([text])}
    wanted = Glossary([Term(*each, place="") for each in entries]).find(text)
    assert {term.source for term in wanted} <= found


@pytest.mark.slow
def test_the_cost_of_a_long_text_is_linear_however_large_the_glossary():
    entries = read_entries("\n".join(f"a a {number}\tb" for number in range(20_000)), "tsv")
    glossary = make(GlossaryStore(), entries=entries)

    def find(count):
        assert glossary.dictionaries[0].find_terms(["a " * count + "a a 77"]) == (("a a 77", "b"),)

    assert grows_linearly(find, 1250)


def test_terms_of_many_words_take_more_room(monkeypatch, store):
    words = (("a " * 20, "b"),)
    monkeypatch.setattr(glossaries, "MOST_CHARACTERS", 200)
    make(store, entries=(("a" * 40, "b"),))
    with pytest.raises(ServiceError, match="no room"):
        make(store, "bob", words)


def test_room_is_free_again_after_deleting(monkeypatch, store):
    monkeypatch.setattr(glossaries, "MOST_CHARACTERS", 80)
    for _ in range(20):
        store.delete("ann", make(store).glossary_id)
    assert store.list("ann") == []


def test_threads_may_keep_glossaries_at_once(monkeypatch, store):
    monkeypatch.setattr(glossaries, "MOST_GLOSSARIES", 3)

    def keep(number):
        owner = str(number // 6)
        try:
            return make(store, owner).glossary_id
        except ServiceError:
            return None

    with ThreadPoolExecutor(8) as threads:
        kept = list(threads.map(keep, range(600)))
    assert sum(each is not None for each in kept) == 300
    assert [len(store.list(str(owner))) for owner in range(100)] == [3] * 100


def test_many_terms_at_once_are_refused(monkeypatch, store):
    monkeypatch.setattr(glossaries, "MOST_TERMS", 1)
    with pytest.raises(ServiceError, match="2 terms of the glossary occur, but 1 are the most"):
        make(store).dictionaries[0].find_terms(["an old dog"])


@pytest.mark.parametrize(
    ("limit", "value"), [("MOST_GLOSSARIES", 1), ("MOST_CHARACTERS", 40), ("MOST_CHARACTERS", 7)]
)
def test_room_is_limited(store, monkeypatch, limit, value):
    make(store)
    monkeypatch.setattr(glossaries, limit, value)
    owner = "bob" if value == 7 else "ann"
    with pytest.raises(ServiceError, match="no room for another glossary; delete one") as caught:
        make(store, owner)
    assert caught.value.kind == "quota"


def test_a_glossary_is_changed_in_its_place_and_only_if_there_is_room(store, monkeypatch):
    first, second = make(store), make(store)
    longer = Dictionary(source="en", target="fr", entries=(("tree", "a" * 60),))

    def grow(glossary):
        merged = glossary.dictionaries[0].merge(longer)
        return replace(glossary, dictionaries=(merged,))

    monkeypatch.setattr(glossaries, "MOST_CHARACTERS", first.size + second.size + 20)
    with pytest.raises(ServiceError, match="no room"):
        store.update("ann", first.glossary_id, grow)
    assert store.list("ann") == [first, second]
    monkeypatch.setattr(glossaries, "MOST_CHARACTERS", 1000)
    changed = store.update("ann", first.glossary_id, grow)
    assert [len(each.dictionaries[0].entries) for each in store.list("ann")] == [3, 2]
    assert store._size == changed.size + second.size
    for each in (changed, second):
        store.delete("ann", each.glossary_id)
    assert store._size == 0


def test_newer_entries_of_a_dictionary_count(store):
    old, new = (
        Dictionary(source="en", target="fr", entries=each)
        for each in ((("dog", "chien"), ("cat", "chat")), (("Dog", "clebs"), ("tree", "arbre")))
    )
    assert old.merge(new).entries == (("Dog", "clebs"), ("cat", "chat"), ("tree", "arbre"))
    assert old.merge(new).find_terms(["a tree, a dog"]) == (("tree", "arbre"), ("Dog", "clebs"))
