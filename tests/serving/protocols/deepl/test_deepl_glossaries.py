import contextlib
import time
import uuid

import deepl
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries
from tests.serving.fake_service import FakeService, talk_to
from tests.serving.running_server import serve
from tests.serving.small_service import copy_folder


@pytest.fixture(scope="module")
def url(tiny_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    with serve([copy_folder(tiny_folder.path, folder, "en", "fr")]) as address:
        yield address


class TestWithTheRealClient:
    def test_a_glossary_is_kept_used_and_forgotten(self, url):
        with contextlib.closing(deepl.Translator("any", server_url=url)) as client:
            entries = {"dog": "jardin", "the house": "la maison"}
            made = client.create_glossary("mine", "EN", "FR", entries)
            assert (made.name, made.ready, made.entry_count) == ("mine", True, 2)
            assert (made.source_lang, made.target_lang) == ("EN", "FR")
            assert [each.glossary_id for each in client.list_glossaries()] == [made.glossary_id]
            assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
            assert client.get_glossary_entries(made) == entries
            found = client.translate_text_with_glossary("The old dog.", made)
            assert "jardin" in found.text
            client.delete_glossary(made)
            assert client.list_glossaries() == []
            for call in (client.get_glossary, client.delete_glossary, client.get_glossary_entries):
                with pytest.raises(deepl.GlossaryNotFoundException):
                    call(made.glossary_id)

    def test_a_glossary_of_csv(self, url):
        with contextlib.closing(deepl.Translator("any", server_url=url)) as client:
            csv = 'dog,"le chien, grand",en,fr\ntree,arbre,en,fr'
            made = client.create_glossary_from_csv("csv", "EN", "FR", csv)
            assert client.get_glossary_entries(made)["dog"] == "le chien, grand"

    def test_wrong_ids_and_languages(self, url):
        with contextlib.closing(deepl.Translator("any", server_url=url)) as client:
            with pytest.raises(deepl.DeepLException, match="Invalid or missing glossary id"):
                client.get_glossary("invalid")
            with pytest.raises(
                deepl.DeepLException, match="Unsupported glossary source and target"
            ):
                client.create_glossary("mine", "FR", "EN-US", {"a": "b"})


@pytest.fixture(scope="module")
def two_ways(tiny_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    pairs = (("en", "fr"), ("fr", "en"))
    with serve([copy_folder(tiny_folder.path, folder, *pair) for pair in pairs]) as address:
        yield address


def describe(info):
    return {(each.source_lang, each.target_lang): each.entry_count for each in info.dictionaries}


def entries_of(client, made, source, target):
    (found,) = client.get_multilingual_glossary_entries(made, source, target).dictionaries
    assert (found.source_lang, found.target_lang) == (source.lower(), target.lower())
    return deepl.convert_tsv_to_dict(found.entries)


class TestGlossariesOfSeveralPairsWithTheRealClient:
    def test_the_life_of_a_glossary(self, two_ways):
        into, back = (
            MultilingualGlossaryDictionaryEntries("EN", "FR", {"dog": "jardin"}),
            MultilingualGlossaryDictionaryEntries("FR", "EN-US", {"chien": "garden"}),
        )
        with contextlib.closing(deepl.DeepLClient("any", server_url=two_ways)) as client:
            made = client.create_multilingual_glossary("ours", [into, back])
            assert describe(made) == {("EN", "FR"): 1, ("FR", "EN"): 1}
            assert client.list_glossaries() == []
            with pytest.raises(deepl.GlossaryNotFoundException, match="several dictionaries"):
                client.get_glossary(made.glossary_id)
            found = client.translate_text(
                "The old dog.", source_lang="EN", target_lang="FR", glossary=made
            )
            assert "jardin" in found.text
            more = MultilingualGlossaryDictionaryEntries(
                "EN", "FR", {"Dog": "arbre", "tree": "chien"}
            )
            assert describe(client.update_multilingual_glossary_dictionary(made, more)) == {
                ("EN", "FR"): 2,
                ("FR", "EN"): 1,
            }
            assert entries_of(client, made, "EN", "FR") == {"Dog": "arbre", "tree": "chien"}
            replaced = client.replace_multilingual_glossary_dictionary(made, into)
            assert (replaced.source_lang, replaced.entry_count) == ("EN", 1)
            renamed = client.update_multilingual_glossary_name(made, "theirs")
            assert (renamed.name, renamed.creation_time) == ("theirs", made.creation_time)
            client.delete_multilingual_glossary_dictionary(made, source_lang="fr", target_lang="en")
            (listed,) = client.list_multilingual_glossaries()
            assert describe(listed) == {("EN", "FR"): 1}
            assert [each.name for each in client.list_glossaries()] == ["theirs"]
            for call in (
                lambda: client.get_multilingual_glossary_entries(made, "FR", "EN"),
                lambda: client.delete_multilingual_glossary_dictionary(made, made.dictionaries[1]),
            ):
                with pytest.raises(deepl.GlossaryNotFoundException, match="no dictionary fr to en"):
                    call()
            client.delete_multilingual_glossary(made)
            with pytest.raises(deepl.GlossaryNotFoundException):
                client.get_multilingual_glossary(made.glossary_id)

    def test_csv(self, two_ways):
        with contextlib.closing(deepl.DeepLClient("any", server_url=two_ways)) as client:
            made = client.create_multilingual_glossary_from_csv("csv", "EN", "FR", "dog,chien")
            client.update_multilingual_glossary_dictionary_from_csv(made, "FR", "EN", "chien,dog")
            assert entries_of(client, made, "FR", "EN") == {"chien": "dog"}
            client.delete_multilingual_glossary(made)


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service):
    with talk_to(service) as client:
        yield client


def create(client, **change):
    body = {
        "name": "mine",
        "source_lang": "en",
        "target_lang": "fr",
        "entries": "dog\tchien\nold dog\tvieux chien",
        "entries_format": "tsv",
        **change,
    }
    return client.post("/v2/glossaries", json={k: v for k, v in body.items() if v is not None})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "Parameter 'name' not specified."),
        ({"name": ""}, "Parameter 'name' not specified."),
        ({"name": "a" * 2000}, "Parameter 'name' has more than 1024 characters."),
        ({"entries": None}, "Parameter 'entries' not specified."),
        ({"entries_format": None}, "Parameter 'entries_format' not specified."),
        ({"entries_format": "xml"}, "Value for 'entries_format' not supported"),
        ({"source_lang": "zz"}, "Value for 'source_lang' not supported."),
        ({"target_lang": None}, "Parameter 'target_lang' not specified."),
        ({"source_lang": "pt"}, "Unsupported glossary source and target language pair."),
        ({"entries": "dog"}, "Entry 1 has 1 columns"),
    ],
)
def test_wrong_glossaries(client, change, message):
    answer = create(client, **change)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(message)


def test_status_and_fields(client):
    made = create(client)
    assert made.status_code == 201
    assert set(made.json()) == {
        "glossary_id",
        "name",
        "ready",
        "source_lang",
        "target_lang",
        "creation_time",
        "entry_count",
    }
    path = f"/v2/glossaries/{made.json()['glossary_id']}"
    assert client.get(path).json() == made.json()
    entries = client.get(f"{path}/entries")
    assert entries.headers["content-type"].startswith("text/tab-separated-values")
    assert entries.text == "dog\tchien\nold dog\tvieux chien"
    gone = client.delete(path)
    assert (gone.status_code, gone.content) == (204, b"")
    assert client.get(path).status_code == 404


def test_terms_that_occur_are_used(client, service):
    first = create(client).json()["glossary_id"]
    second = create(client, entries="dog\tclebs\ncat\tchat").json()["glossary_id"]
    texts = ["An <b>old</b> dog", "A cat"]
    body = {"text": texts, "source_lang": "EN", "target_lang": "FR", "tag_handling": "xml"}
    client.post("/v2/translate", json={**body, "glossary_id": first})
    client.post("/v2/translate", json={**body, "glossary_ids": [second, first]})
    client.post("/v2/translate", data={**body, "glossary_ids": f"{first},{second}"})
    terms = [set(request.terms) for request in service.requests]
    old = ("old dog", "vieux chien")
    assert terms == [
        {old, ("dog", "chien")},
        {old, ("dog", "clebs"), ("cat", "chat")},
        {old, ("dog", "chien"), ("cat", "chat")},
    ]
    client.post("/v2/translate", json=body)
    assert service.requests[-1].terms == ()


def test_terms_of_documents_are_found_where_they_occur(client, service):
    made = create(client).json()["glossary_id"]
    form = {"source_lang": "EN", "target_lang": "FR", "glossary_id": made}
    lines = b"cat\n" * 40 + b"dog\n"
    assert client.post("/v2/document", data=form, files={"file": ("a.txt", lines)}).json()
    until = time.monotonic() + 10
    while len(service.requests) < 2:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert [request.terms for request in service.requests] == [(), (("dog", "chien"),)]


def test_a_glossary_must_fit(client):
    made = create(client).json()["glossary_id"]
    body = {"text": ["a"], "source_lang": "FR", "target_lang": "EN", "glossary_id": made}
    answer = client.post("/v2/translate", json=body)
    assert answer.json() == {"message": "The glossary is for another pair of languages."}
    body |= {"source_lang": "EN", "target_lang": "FR", "glossary_id": str(uuid.uuid4())}
    assert client.post("/v2/translate", json=body).status_code == 404


DICTIONARY = {
    "source_lang": "en",
    "target_lang": "fr",
    "entries": "dog\tchien",
    "entries_format": "tsv",
}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"dictionaries": [DICTIONARY]}, "Parameter 'name' not specified."),
        ({"name": "mine"}, "Parameter 'dictionaries' not specified."),
        ({"name": "mine", "dictionaries": []}, "Parameter 'dictionaries' not specified."),
        ({"name": "mine", "dictionaries": ["dog"]}, "Invalid request: dictionaries must be obj"),
        (
            {"name": "mine", "dictionaries": [DICTIONARY, DICTIONARY]},
            "two dictionaries are en to fr; join them",
        ),
        (
            {"name": "mine", "dictionaries": [{**DICTIONARY, "source_lang": "pt"}]},
            "Unsupported glossary source and target language pair.",
        ),
        (
            {"name": "mine", "dictionaries": [{**DICTIONARY, "entries": "dog\0\tchien"}]},
            "Invalid request: the text has a NUL character",
        ),
        (
            {"name": "mine", "dictionaries": [{**DICTIONARY, "entries": ["dog"]}]},
            "Invalid request: entries must be one text",
        ),
    ],
)
def test_wrong_glossaries_of_several_pairs(client, body, message):
    answer = client.post("/v3/glossaries", json=body)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(message)


def test_forms_number_their_dictionaries(client):
    """So do DeepL's clients in other languages than Python."""
    second = DICTIONARY | {"source_lang": "fr", "target_lang": "en", "entries": "a\tb\nc\td"}
    form = {"name": "mine"} | {
        f"dictionaries[{number}].{name}": value
        for number, each in enumerate((DICTIONARY, second))
        for name, value in each.items()
    }
    made = client.post("/v3/glossaries", data=form)
    assert made.status_code == 201
    counts = {each["source_lang"]: each["entry_count"] for each in made.json()["dictionaries"]}
    assert counts == {"en": 1, "fr": 2}
    more = {f"dictionaries[0].{name}": value for name, value in DICTIONARY.items()}
    path = f"/v3/glossaries/{made.json()['glossary_id']}"
    changed = client.patch(path, data=more | {"dictionaries[0].entries": "tree\tarbre"})
    assert changed.json()["dictionaries"][0]["entry_count"] == 2
    odd = client.post("/v3/glossaries", data={"name": "a", "dictionaries[x].source_lang": "en"})
    assert odd.json() == {"message": "Parameter 'dictionaries' not specified."}


def test_a_change_of_nothing_is_refused(client):
    made = client.post("/v3/glossaries", json={"name": "mine", "dictionaries": [DICTIONARY]})
    assert made.status_code == 201
    answer = client.patch(f"/v3/glossaries/{made.json()['glossary_id']}", json={})
    assert answer.json() == {"message": "Parameter 'name' not specified."}
