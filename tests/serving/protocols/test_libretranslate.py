import io
import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import httpx
import pytest
from deep_translator import LibreTranslator
from deep_translator.exceptions import ServerException
from libretranslatepy import LibreTranslateAPI
from tests.decoding.made_calibration import copy_calibrated
from tests.serving.documents.pdf.pdf_files import draw
from tests.serving.fake_service import FakeService, fail, talk_to
from tests.serving.running_server import KEY, make_keys, serve, without_second_look
from tests.serving.small_service import copy_folder

from dragoman.decoding.translator import Translator
from dragoman.serving.documents.document_store import find_store
from dragoman.serving.documents.pdf.pdf_documents import PDF_OUTPUTS
from dragoman.serving.service_types import OVERLOADED_MESSAGE, ServiceError


@pytest.fixture(scope="module")
def folders(tiny_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return [copy_folder(tiny_folder.path, folder, *pair) for pair in (("en", "fr"), ("fr", "es"))]


@pytest.fixture(scope="module")
def url(folders):
    with serve(folders, max_characters=200) as address:
        yield address


@pytest.fixture(scope="module")
def expected(folders):
    """Give what the model itself makes of texts."""
    translator = Translator.load(folders[0], "cpu")
    texts = ["The old dog sees a house.", "The old dog."]
    return {text: translator.translate(text).text for text in texts}


def refused(call, *arguments):
    """Call a client that is refused, and give status and message."""
    with pytest.raises(urllib.error.HTTPError) as caught:
        call(*arguments)
    with caught.value as error:
        return error.code, json.loads(error.read())["error"]


class TestWithTheRealClient:
    def test_texts_are_translated(self, url, expected):
        client = LibreTranslateAPI(url)
        for text, translation in expected.items():
            assert client.translate(text, "en", "fr") == translation
            lines = client.translate(f"{text}\r\n\r\n  {text}", "en", "fr")
            assert lines == f"{translation}\n\n  {translation}"

    def test_other_clients_of_the_protocol(self, url, expected):
        """Its parameters stand in the address, and it has a key for a server that wants none."""
        more = {"custom_url": f"{url}/", "api_key": "any"}
        client = LibreTranslator(source="en", target="fr", **more)
        texts = list(expected)
        assert client.translate_batch(texts) == list(expected.values())
        found = LibreTranslator(source="auto", target="fr", **more).translate(texts[0])
        assert found == expected[texts[0]]
        with pytest.raises(ServerException):
            LibreTranslator(source="de", target="fr", **more).translate("Hallo.")

    def test_languages_are_listed(self, url):
        assert LibreTranslateAPI(url, api_key="whatever").languages() == [
            {"code": "en", "name": "English", "targets": ["en", "es", "fr"]},
            {"code": "es", "name": "Spanish", "targets": ["es"]},
            {"code": "fr", "name": "French", "targets": ["es", "fr"]},
        ]

    def test_languages_are_detected(self, url):
        best, *_ = LibreTranslateAPI(url).detect("El perro viejo ve una casa.")
        assert best["language"] == "es"
        assert 50 < best["confidence"] <= 100

    def test_an_unknown_language(self, url):
        translate = LibreTranslateAPI(url).translate
        assert refused(translate, "Hello.", "zz", "fr") == (400, "zz is not supported")
        assert refused(translate, "Hello.", "en", "zz") == (400, "zz is not supported")

    def test_a_text_that_is_too_long(self, url):
        status, message = refused(LibreTranslateAPI(url).translate, "a " * 101, "en", "fr")
        assert status == 400
        assert message == "Invalid request: request (202) exceeds text limit (200)"

    def test_keys_and_too_many_requests(self, folders):
        with serve(folders[:1], make_keys(requests_per_minute=1)) as address:
            bad = LibreTranslateAPI(address, api_key="wrong")
            assert refused(bad.translate, "Hello.", "en", "fr") == (403, "Invalid API key")
            assert refused(bad.detect, "Hello.") == (403, "Invalid API key")
            none = LibreTranslateAPI(address)
            status, message = refused(none.translate, "Hello.", "en", "fr")
            assert (status, message[:27]) == (400, "Please contact the server o")
            good = LibreTranslateAPI(address, api_key=KEY)
            assert good.languages()
            assert good.translate("The dog.", "en", "fr")
            status, message = refused(good.translate, "The dog.", "en", "fr")
            assert (status, message) == (429, "Slowdown: 1 per 1 minute")


class TestOverHttp:
    def test_a_batch_with_everything(self, url):
        texts = ["The old <b>dog</b>.", "Le vieux <i>chien</i> voit le jardin."]
        body = {"q": texts, "source": "auto", "target": "es", "format": "html", "alternatives": 2}
        answer = httpx.post(f"{url}/translate", json=body, timeout=30)
        assert answer.status_code == 200
        found = answer.json()
        assert set(found) == {"translatedText", "detectedLanguage", "alternatives"}
        assert [each["language"] for each in found["detectedLanguage"]] == ["en", "fr"]
        assert [len(each) for each in found["alternatives"]] == [2, 2]
        for text, tag in zip(found["translatedText"], "bi", strict=True):
            assert re.findall(r"</?\w>", text) == [f"<{tag}>", f"</{tag}>"]

    def test_confidence_is_told_where_it_is_asked_for(self, folders, tmp_path):
        sure = [copy_calibrated(each, tmp_path / each.name) for each in folders]
        texts = ["The old dog.", "A house. The dog sees."]
        body = {"q": texts, "source": "en", "target": "fr"}
        with serve(sure) as address:
            asked = httpx.post(f"{address}/translate", json=body | {"confidence": True}, timeout=30)
            both = {"q": "The dog.", "source": "en", "target": "es", "confidence": "true"}
            twice = httpx.post(f"{address}/translate", data=both, timeout=30).json()
            unasked = httpx.post(f"{address}/translate", json=body, timeout=30)
            assert LibreTranslateAPI(address).translate("The old dog.", "en", "fr")
        with without_second_look():
            first, second = (Translator.load(each, "cpu") for each in sure)
            expected = [100 * first.translate(text).confidence for text in texts]
            one = first.translate("The dog.")
            product = 100 * one.confidence * second.translate(one.text).confidence
        assert asked.json()["confidence"] == pytest.approx(expected, abs=0.06)
        assert twice["confidence"] == pytest.approx(product, abs=0.06)
        assert set(unasked.json()) == {"translatedText"}

    def test_a_language_from_which_no_model_leads(self, url):
        text = "El perro viejo ve una casa pequeña en el jardín."
        body = {"q": text, "source": "auto", "target": "fr"}
        answer = httpx.post(f"{url}/translate", json=body, timeout=30)
        assert answer.status_code == 400
        assert answer.json()["error"] == (
            "the text seems to be Spanish (es), which no model translates to fr; "
            "give its source language"
        )
        for letterless in (" ", "…"):
            answer = httpx.post(f"{url}/translate", json=body | {"q": letterless}, timeout=30)
            assert answer.json()["translatedText"] == letterless

    def test_a_language_that_no_model_reads(self, url):
        text = "Der alte Hund sieht ein kleines Haus im Garten."
        body = {"q": text, "source": "auto", "target": "fr"}
        answer = httpx.post(f"{url}/translate", json=body, timeout=30)
        assert answer.status_code == 400
        assert answer.json()["error"] == (
            "the text seems to be German (de), which no model translates to fr; "
            "give its source language"
        )
        best, *_ = httpx.post(f"{url}/detect", data={"q": text}, timeout=30).json()
        assert (best["language"], best["confidence"]) == ("de", 100)

    def test_a_file(self, url, expected):
        text = "The old dog."
        files = {"file": ("my è.txt", f"{text}\n\n{text}\n".encode())}
        form = {"source": "en", "target": "fr"}
        answer = httpx.post(f"{url}/translate_file", data=form, files=files, timeout=30)
        address = answer.json()["translatedFileUrl"]
        assert re.fullmatch(rf"{url}/download_file/[0-9a-f-]{{36}}\.my%20%C3%A8_fr\.txt", address)
        file = httpx.get(address)
        translation = expected[text]
        assert file.text == f"{translation}\n\n{translation}\n"
        assert file.headers["content-disposition"].startswith("attachment; ")
        assert file.headers["content-type"] == "application/octet-stream"
        assert httpx.get(address.replace("_fr", "_es")).status_code == 404

    def test_settings(self, url):
        settings = httpx.get(f"{url}/frontend/settings").json()
        assert settings["charLimit"] == 200
        assert settings["keyRequired"] is False
        assert settings["language"] == {
            "source": {"code": "en", "name": "English"},
            "target": {"code": "es", "name": "Spanish"},
        }
        assert ".docx" in settings["supportedFilesFormat"]

    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/translate", 405),
            ("GET", "/detect", 405),
            ("POST", "/languages", 405),
            ("POST", "/suggest", 403),
            ("GET", "/health", 200),
            ("GET", "/spec", 200),
            ("GET", "/nothing", 404),
        ],
    )
    def test_methods(self, url, method, path, status):
        answer = httpx.request(method, url + path, timeout=30)
        assert answer.status_code == status
        assert status == 200 or isinstance(answer.json()["error"], str)
        assert answer.headers["access-control-allow-origin"] == "*"


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service):
    with talk_to(service) as client:
        yield client


def test_json_and_forms_say_the_same(client, service):
    body = {"q": "a\r\nb", "source": "EN", "target": "fr", "alternatives": 1, "format": "html"}
    assert client.post("/translate", json=body).json() == {
        "translatedText": "A\r\nB",
        "alternatives": ["A\r\nB"],
    }
    assert client.post("/translate", data=body).json()["translatedText"] == "A\nB"
    assert client.post("/translate", params=body).json()["translatedText"] == "A\nB"
    (first, second, third) = service.requests
    assert (first.source, first.target, first.markup, first.num_alternatives) == (
        ("EN", "fr", "html", 1)
    )
    assert second == third


def test_confidence_in_per_cent_or_null(client):
    body = {"q": ["a", ""], "source": "en", "target": "fr", "confidence": True}
    assert client.post("/translate", json=body).json()["confidence"] == [76.5, None]
    one = {"q": "a", "source": "en", "target": "fr", "confidence": "1"}
    assert client.post("/translate", data=one).json()["confidence"] == 76.5
    assert "confidence" not in client.post("/translate", json=body | {"confidence": False}).json()


def test_what_is_not_asked_for_is_not_answered(client):
    body = {"q": "a", "source": "en", "target": "fr"}
    assert client.post("/translate", json=body).json() == {"translatedText": "A"}
    assert client.post("/translate", json={**body, "source": "auto"}).json() == {
        "translatedText": "A",
        "detectedLanguage": {"confidence": 88, "language": "en"},
    }
    assert client.post("/translate", json={**body, "q": ["a"], "source": "auto"}).json() == {
        "translatedText": ["A"],
        "detectedLanguage": [{"confidence": 88, "language": "en"}],
    }
    assert client.post("/detect", data={"q": "a"}).json() == [
        {"confidence": 88, "language": "en"},
        {"confidence": 12, "language": "fr"},
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"q": 3}, "Invalid request: q must be text"),
        ({"q": ["a", {}]}, "Invalid request: q must be text"),
        ({"source": None}, "Invalid request: missing source parameter"),
        ({"target": ""}, "Invalid request: missing target parameter"),
        ({"target": ["fr"]}, "Invalid request: target must be one text, not a list"),
        ({"format": "pdf"}, "Invalid request: format pdf is not supported; text and html are"),
        ({"alternatives": "x"}, "Invalid request: alternatives must be a whole number"),
        ({"alternatives": [1]}, "Invalid request: alternatives must be a whole number"),
        ({"confidence": "very"}, "Invalid request: confidence must be true or false"),
    ],
)
def test_wrong_parameters(client, change, message):
    body = {"q": "a", "source": "en", "target": "fr", **change}
    answer = client.post("/translate", json=body)
    assert answer.status_code == 400
    assert answer.json() == {"error": message}


def test_a_form_has_one_text(client):
    answer = client.post("/translate", data={"q": ["a", "b"], "source": "en", "target": "fr"})
    assert answer.json() == {"error": "Invalid request: a form has one q; send JSON for more"}


@pytest.mark.parametrize(
    ("kind", "status", "message"),
    [
        ("bad_request", 400, "it is bad_request"),
        ("unknown_language", 400, "it is unknown_language"),
        ("too_long", 400, "Invalid request: request (60) exceeds text limit (50)"),
        ("too_many_texts", 400, "Invalid request: request (60) exceeds text limit (50)"),
        ("missing_key", 400, "Please contact the server operator to get an API key"),
        ("bad_key", 403, "Invalid API key"),
        ("forbidden", 403, "it is forbidden"),
        ("quota", 403, "it is quota"),
        ("not_found", 404, "it is not_found"),
        ("too_many_requests", 429, "it is too_many_requests"),
        ("overloaded", 429, "Slowdown: it is overloaded"),
        ("not_ready", 503, "it is not_ready"),
        ("cancelled", 503, "it is cancelled"),
        ("failed", 500, "it is failed"),
    ],
)
def test_refusals(client, service, kind, status, message):
    service.error = fail(kind)
    service.error.retry_after = 2.5
    answer = client.post("/translate", json={"q": "a", "source": "en", "target": "fr"})
    assert answer.status_code == status
    assert answer.json() == {"error": message}
    assert answer.headers["retry-after"] == "3"


def test_a_full_queue_is_told_once(client, service):
    service.error = ServiceError("overloaded", OVERLOADED_MESSAGE)
    answer = client.post("/translate", json={"q": "a", "source": "en", "target": "fr"})
    assert answer.json() == {"error": OVERLOADED_MESSAGE}


def test_nothing_is_charged_for_what_is_not_answered(service):
    keys = make_keys(characters_per_month=10)
    client = talk_to(service, keys)
    body = {"q": "abcdef", "source": "en", "target": "fr", "api_key": KEY}
    service.error = fail("overloaded")
    assert client.post("/translate", json=body).status_code == 429
    service.error = None
    assert client.post("/translate", json=body).status_code == 200
    assert client.post("/translate", json=body).status_code == 403
    del body["api_key"]
    bearer = {"Authorization": f"Bearer {KEY}"}
    assert client.post("/translate", json={**body, "q": "ab"}, headers=bearer).status_code == 200


def test_a_text_to_detect_may_not_be_too_long():
    client = talk_to(FakeService(max_characters=3))
    answer = client.post("/detect", data={"q": "four"})
    assert answer.status_code == 400
    assert answer.json() == {"error": "Invalid request: request (4) exceeds text limit (3)"}


def send_file(client, name="a.txt", content=b"one", **change):
    form = {"source": "en", "target": "fr", **change}
    return client.post("/translate_file", data=form, files={"file": (name, io.BytesIO(content))})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.exe", "Invalid request: file format not supported; send one of txt, md, html"),
        ("a", "Invalid request: file format not supported"),
        ("..", "Invalid request: the file has no name"),
        ("folder/", "Invalid request: the file has no name"),
        ("a\u202etxt.exe", "Invalid request: the file name has characters"),
        ("a／b.txt", "Invalid request: the file name has characters"),
        ("a" * 300 + ".txt", "Invalid request: the file name is too long; shorten it"),
    ],
)
def test_odd_file_names_are_refused(client, name, message):
    answer = send_file(client, name)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(message)


@pytest.mark.parametrize("name", ["/tmp/a.txt", "..\\a.txt", "C:\\texts/a.txt"])
def test_of_a_path_the_last_part_is_the_name(client, name):
    assert send_file(client, name).json()["translatedFileUrl"].endswith(".a_fr.txt")


@pytest.mark.parametrize("name", [b"a\x07.txt", b"a\rX-Evil: 1.txt", b"a\xff.txt", b"\0.txt", b""])
def test_odd_bytes_in_file_names_are_refused(client, name):
    head = b'--x\r\nContent-Disposition: form-data; name="'
    file = head + b'file"; filename="' + name + b'"\r\n\r\none\r\n'
    fields = b"".join(
        head + field + b'"\r\n\r\n' + value + b"\r\n"
        for field, value in ((b"source", b"en"), (b"target", b"fr"))
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = client.post("/translate_file", content=file + fields + b"--x--\r\n", headers=headers)
    if name == b"a\xff.txt":  # Which is read as Latin-1, and is then a name.
        assert answer.json()["translatedFileUrl"].endswith("a%C3%BF_fr.txt")
    else:
        assert answer.status_code == 400
        assert "error" in answer.json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "zz"}, "zz is not supported"),
        ({"source": "zz"}, "zz is not supported"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"content": b"\x81\x8d"}, "Invalid request: the file is not UTF-8; save it as UTF-8"),
        ({"content": b"a\0b"}, "Invalid request: the file has a NUL character, so it is no text"),
        ({"name": "a.docx"}, "Invalid request: the file is damaged, or no archive"),
    ],
)
def test_wrong_files_are_refused(client, change, message):
    answer = send_file(client, **change)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(message)


@pytest.mark.parametrize("output", ["", "docx", "txt"])
def test_a_pdf_becomes_a_word_file_or_text_and_says_so(client, output):
    content = draw((50, 700, "one"))
    sent = send_file(client, "a.pdf", content, output_format=output)
    suffix = f".{output or 'docx'}"
    address = sent.json()["translatedFileUrl"]
    assert address.endswith(f".a_fr{suffix}")
    file = client.get(address)
    assert file.headers["content-type"] == PDF_OUTPUTS[suffix]
    assert file.content.startswith(b"PK") if suffix == ".docx" else file.content == b"ONE\n"
    answer = send_file(client, "a.pdf", content, output_format="pdf")
    assert answer.status_code == 400
    assert "a .pdf file becomes .docx or .txt" in answer.json()["error"]


def test_a_file_must_be_there(client):
    answer = client.post("/translate_file", data={"source": "en", "target": "fr"})
    assert answer.json() == {"error": "Invalid request: missing file parameter"}


def test_files_are_only_in_the_temporary_folder(client, service):
    address = send_file(client, "a.txt").json()["translatedFileUrl"]
    store = find_store(client.app)
    assert client.get(address).text == "ONE"
    assert [each.read_bytes() for each in store.folder.iterdir()] == [b"ONE"]
    assert store.folder.stat().st_mode & 0o077 == 0
    service.error = fail("failed")
    assert send_file(client, "b.txt").status_code == 500
    assert len(list(store.folder.iterdir())) == 1
    store.close()
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "00000000-0000-0000-0000-000000000000/../x",
        "%00",
        "x",
    ],
)
def test_odd_addresses_lead_nowhere(client, name):
    answer = client.get(f"/download_file/{name}")
    assert answer.status_code in (400, 404)
    assert "error" in answer.json()
    answer = client.get("/download_file/00000000-0000-0000-0000-000000000000.a.txt")
    assert answer.status_code == 404


def test_a_file_is_charged_by_its_characters(service):
    keys = make_keys(characters_per_month=10)
    client = talk_to(service, keys)
    assert send_file(client, content=b"one two", api_key=KEY).status_code == 200
    assert send_file(client, content=b"one two", api_key=KEY).status_code == 403
    assert send_file(client, content=b"one two").status_code == 400


def test_nothing_else_is_written(client, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    send_file(client, "a.html", b"<p>one</p>")
    assert list(Path.cwd().iterdir()) == []
