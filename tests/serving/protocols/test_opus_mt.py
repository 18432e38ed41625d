import pytest
from tests.serving.fake_service import FakeService, fail, talk_to


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service):
    with talk_to(service) as client:
        yield client


SENT = {"from": "en", "to": "fr", "source": "A dog."}


def test_texts_are_translated(client, service):
    assert client.post("/api/translate", json=SENT).json() == {"translation": "A DOG."}
    assert (service.requests[0].source, service.requests[0].target) == ("en", "fr")


def test_languages_are_listed(client):
    found = client.get("/api/languages").json()
    assert found == {"languages": {"en": ["fr", "pt"], "fr": ["en", "pt"]}}


def test_whether_texts_are_accepted(client, service):
    assert client.get("/api/ready").status_code == 204
    service.is_accepting = False
    assert client.get("/api/ready").status_code == 503


@pytest.mark.parametrize("name", SENT)
def test_what_is_missing_is_named(client, name):
    sent = {key: value for key, value in SENT.items() if key != name}
    answer = client.post("/api/translate", json=sent)
    assert answer.status_code == 400
    assert answer.json() == {"error": f"Invalid request: missing {name} parameter"}


def test_errors_of_the_service(client, service):
    service.error = fail("overloaded")
    answer = client.post("/api/translate", json=SENT)
    assert (answer.status_code, answer.json()) == (429, {"error": "it is overloaded"})
