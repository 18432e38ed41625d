import contextlib
import time
import uuid

import deepl
import pytest
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
