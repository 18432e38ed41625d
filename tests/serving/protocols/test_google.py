import httpx
import pytest
from google.api_core import exceptions
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import translate_v2
from google.oauth2.credentials import Credentials
from tests.serving.fake_service import FakeService, fail, talk_to
from tests.serving.running_server import KEY, make_keys, serve
from tests.serving.small_service import copy_folder

from dragoman.decoding.translator import Translator

PATH = "/language/translate/v2"


@pytest.fixture(scope="module")
def folders(tiny_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return [copy_folder(tiny_folder.path, folder, *pair) for pair in (("en", "fr"), ("fr", "en"))]


@pytest.fixture(scope="module")
def url(folders):
    with serve(folders, max_characters=300, max_texts=4) as address:
        yield address


def connect(url, token=None):
    credentials = Credentials(token) if token else AnonymousCredentials()
    options = ClientOptions(api_endpoint=url)
    return translate_v2.Client(credentials=credentials, client_options=options)


class TestWithTheRealClient:
    def test_texts_are_translated(self, url, folders):
        texts = ["The old dog sees a house.", "A tree."]
        expected = [each.text for each in Translator.load(folders[0], "cpu").translate_all(texts)]
        client = connect(url)
        found = client.translate(texts, target_language="fr", source_language="en", format_="text")
        assert [each["translatedText"] for each in found] == expected
        assert [each["input"] for each in found] == texts
        assert "detectedSourceLanguage" not in found[0]
        one = client.translate(texts[0], target_language="fr", model="nmt")
        assert (one["detectedSourceLanguage"], one["model"]) == ("en", "nmt")

    def test_html_is_what_is_meant_by_default(self, url):
        found = connect(url).translate("The <b>dog</b> &amp; tree", "fr", source_language="en")
        text = found["translatedText"]
        assert text.count("<b>") == text.count("</b>") == 1
        assert "&" not in text.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")

    def test_languages_are_listed(self, url):
        assert connect(url).get_languages() == [
            {"language": "en", "name": "English"},
            {"language": "fr", "name": "French"},
        ]

    def test_languages_are_detected(self, url):
        client = connect(url)
        assert client.detect_language("Le vieux chien voit le jardin.")["language"] == "fr"
        found = client.detect_language(["The old dog.", "Le vieux chien."])
        assert [each["language"] for each in found] == ["en", "fr"]
        assert all(0 < each["confidence"] <= 1 for each in found)

    def test_an_unknown_language(self, url):
        with pytest.raises(exceptions.BadRequest, match="Invalid Value: zz is not supported"):
            connect(url).translate("Hello.", target_language="zz")
        with pytest.raises(exceptions.BadRequest, match="Invalid Value: zz is not supported"):
            connect(url).get_languages("zz")

    def test_languages_are_named_whatever_language_is_asked_for(self, url):
        assert connect(url).get_languages("ja") == connect(url).get_languages()

    def test_too_much_text(self, url):
        with pytest.raises(exceptions.BadRequest, match="Text too long"):
            connect(url).translate("a " * 200, target_language="fr")
        with pytest.raises(exceptions.BadRequest, match="Too many text segments"):
            connect(url).translate(["a"] * 5, target_language="fr")

    def test_keys_and_too_many_requests(self, folders):
        with serve(folders[:1], make_keys(requests_per_minute=1)) as address:
            with pytest.raises(exceptions.Forbidden, match="missing a valid API key"):
                connect(address).translate("A tree.", target_language="fr")
            with pytest.raises(exceptions.Forbidden, match="API key not valid"):
                connect(address, "wrong").translate("A tree.", target_language="fr")
            client = connect(address, KEY)
            assert client.translate("A tree.", target_language="fr")["translatedText"]
            with pytest.raises(exceptions.TooManyRequests, match="Slowdown"):
                client.translate("A tree.", target_language="fr")


def test_addresses_over_http(url):
    query = {"q": ["A tree.", "The dog."], "target": "fr", "source": "en", "key": "whatever"}
    by_address = httpx.get(url + PATH, params=query, timeout=30).json()
    override = {"X-HTTP-Method-Override": "GET"}
    by_form = httpx.post(url + PATH, data=query, headers=override, timeout=30).json()
    assert by_address == by_form
    assert len(by_address["data"]["translations"]) == 2
    found = httpx.get(f"{url}{PATH}/detect", params={"q": "Le chien voit."}, timeout=30).json()
    assert found["data"]["detections"][0][0]["language"] == "fr"


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service):
    return talk_to(service)


def test_what_the_service_is_asked(client, service):
    client.post(PATH, json={"q": "a", "target": "fr", "source": None, "format": None, "cid": []})
    client.post(PATH, json={"q": ["a", "b"], "target": "fr", "source": "en", "format": "text"})
    first, second = service.requests
    assert (first.texts, first.source, first.markup) == (("a",), None, "html")
    assert (second.texts, second.source, second.markup) == (("a", "b"), "en", "text")


def test_only_what_is_declared_may_be_posted(client):
    assert client.post(f"{PATH}/languages", json={}).status_code == 405


def test_names_only_where_asked_for(client):
    assert client.get(f"{PATH}/languages").json()["data"]["languages"][0] == {"language": "en"}
    named = client.get(f"{PATH}/languages", params={"target": "fr"}).json()
    assert named["data"]["languages"][0] == {"language": "en", "name": "English"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": None}, "Required parameter: q"),
        ({"q": []}, "Required parameter: q"),
        ({"q": [None]}, "Invalid request: q must be text"),
        ({"target": None}, "Required parameter: target"),
        ({"format": "pdf"}, "Invalid Value: format must be text or html"),
    ],
)
def test_wrong_parameters(client, change, message):
    answer = client.post(PATH, json={"q": "a", "target": "fr", **change})
    assert answer.status_code == 400
    assert answer.json() == {
        "error": {
            "code": 400,
            "message": message,
            "status": "INVALID_ARGUMENT",
            "errors": [{"message": message, "domain": "global", "reason": "badRequest"}],
        }
    }


@pytest.mark.parametrize(
    ("kind", "code", "status", "message"),
    [
        ("bad_request", 400, "INVALID_ARGUMENT", "it is bad_request"),
        ("unknown_language", 400, "INVALID_ARGUMENT", "Invalid Value: it is unknown_language"),
        ("too_long", 400, "INVALID_ARGUMENT", "Text too long: it is too_long"),
        ("too_many_texts", 400, "INVALID_ARGUMENT", "Too many text segments: it is too_many_texts"),
        ("missing_key", 403, "PERMISSION_DENIED", "The request is missing a valid API key."),
        ("bad_key", 400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
        ("forbidden", 403, "PERMISSION_DENIED", "it is forbidden"),
        ("quota", 403, "RESOURCE_EXHAUSTED", "Daily Limit Exceeded: it is quota"),
        ("not_found", 404, "NOT_FOUND", "it is not_found"),
        ("too_many_requests", 429, "RESOURCE_EXHAUSTED", "it is too_many_requests"),
        ("overloaded", 429, "RESOURCE_EXHAUSTED", "it is overloaded"),
        ("not_ready", 503, "UNAVAILABLE", "it is not_ready"),
        ("cancelled", 503, "UNAVAILABLE", "it is cancelled"),
        ("failed", 500, "INTERNAL", "it is failed"),
    ],
)
def test_refusals(client, service, kind, code, status, message):
    service.error = fail(kind)
    answer = client.post(PATH, json={"q": "a", "target": "fr"})
    error = answer.json()["error"]
    assert answer.status_code == error["code"] == code
    assert (error["status"], error["message"]) == (status, message)


def test_where_keys_are_read(service):
    client = talk_to(service, make_keys())
    body = {"q": "a", "target": "fr"}
    assert client.post(PATH, json=body, params={"key": KEY}).status_code == 200
    assert client.post(PATH, json=body, headers={"X-Goog-Api-Key": KEY}).status_code == 200
    assert (
        client.post(PATH, json=body, headers={"Authorization": f"Bearer {KEY}"}).status_code == 200
    )
    assert client.post(PATH, json=body, params={"key": "wrong"}).status_code == 400
    for place in ("/languages", "/detect"):
        assert client.get(PATH + place, params={"q": "a"}).status_code == 403


def test_a_text_to_detect_may_not_be_too_long():
    answer = talk_to(FakeService(max_characters=3)).post(f"{PATH}/detect", json={"q": ["four"]})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].endswith("4 characters, but 3 are the most")
