import contextlib
import io
import time
from dataclasses import replace

import deepl
import docx
import pytest
from tests.serving.documents.pdf.pdf_files import draw
from tests.serving.fake_service import FakeService, fail, talk_to
from tests.serving.running_server import KEY, make_keys, serve
from tests.serving.small_service import copy_folder

from dragoman.decoding.translator import Translator
from dragoman.serving.documents import document_store
from dragoman.serving.documents.document_store import find_store
from dragoman.serving.documents.pdf.pdf_documents import PDF_OUTPUTS


@pytest.fixture(scope="module")
def folder(tiny_folder, tmp_path_factory):
    return copy_folder(tiny_folder.path, tmp_path_factory.mktemp("pairs"), "en", "fr")


@pytest.fixture
def impatient(monkeypatch):
    """Let the client look more often than each five seconds."""
    sleep = time.sleep
    monkeypatch.setattr(deepl.translator.time, "sleep", lambda _: sleep(0.02))


def test_the_real_client_translates_a_document(folder, tmp_path, impatient):
    text = "The old dog."
    translator = Translator.load(folder, "cpu")
    once = replace(translator.options, search_again=False)  # as the server of these tests
    expected = translator.translate(text, options=once).text
    (tmp_path / "in.txt").write_text(f"{text}\n", encoding="utf-8")
    with (
        serve([folder]) as url,
        contextlib.closing(deepl.Translator("any", server_url=url)) as client,
    ):
        status = client.translate_document_from_filepath(
            tmp_path / "in.txt", tmp_path / "out.txt", target_lang="FR", source_lang="EN"
        )
        assert status.done
        assert status.billed_characters == len(text)
        handle = client.translate_document_upload(
            b"<p>A tree.</p>", target_lang="FR", filename="a.html"
        )
        assert client.translate_document_wait_until_done(handle).done
        assert client.translate_document_download(handle).content.startswith(b"<p>")
        with pytest.raises(deepl.DeepLException, match="Not found"):
            client.translate_document_get_status(deepl.DocumentHandle(handle.document_id, "wrong"))
        with pytest.raises(deepl.DeepLException, match="file extension"):
            client.translate_document_upload(b"a", target_lang="FR", filename="a.exe")
        with pytest.raises(deepl.DeepLException, match=r"a \.txt file stays one"):
            client.translate_document_upload(
                b"a", target_lang="FR", filename="a.txt", output_format="pdf"
            )
    assert (tmp_path / "out.txt").read_text(encoding="utf-8") == f"{expected}\n"


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service):
    with talk_to(service) as client:
        yield client
        find_store(client.app).close()


def upload(client, name="a.txt", content=b"one\ntwo\n", **form):
    files = {"file": (name, io.BytesIO(content))}
    return client.post("/v2/document", data={"target_lang": "FR", **form}, files=files)


def status_of(client, handle, **body):
    path = f"/v2/document/{handle['document_id']}"
    return client.post(path, json={"document_key": handle["document_key"], **body})


def wait(client, handle, wanted):
    until = time.monotonic() + 10
    while status_of(client, handle).json()["status"] != wanted:
        assert time.monotonic() < until
        time.sleep(0.01)
    return status_of(client, handle).json()


def test_the_life_of_a_document(client, service):
    service.is_held = True
    handle = upload(client).json()
    assert set(handle) == {"document_id", "document_key"}
    status = wait(client, handle, "translating")
    assert status["seconds_remaining"] == 1
    path = f"/v2/document/{handle['document_id']}/result"
    key = {"document_key": handle["document_key"]}
    early = client.post(path, json=key)
    assert (early.status_code, early.json()) == (
        503,
        {"message": "Document translation is not done"},
    )
    service.is_held = False
    status = wait(client, handle, "done")
    assert status == {
        "document_id": handle["document_id"],
        "status": "done",
        "billed_characters": 6,
    }
    for method in ("GET", "POST"):
        result = client.request(method, path, data=key)
        assert result.content == b"ONE\nTWO\n"
        assert result.headers["content-disposition"] == 'attachment; filename="a.txt"'


@pytest.mark.parametrize(
    ("form", "name", "media_type"),
    [
        ({}, "a.b.docx", PDF_OUTPUTS[".docx"]),
        ({"output_format": "docx"}, "a.b.docx", PDF_OUTPUTS[".docx"]),
        ({"output_format": "txt"}, "a.b.txt", PDF_OUTPUTS[".txt"]),
    ],
)
def test_a_pdf_becomes_a_word_file_or_text_and_says_so(client, form, name, media_type):
    handle = upload(client, "a.b.pdf", draw((50, 700, "one")), **form).json()
    wait(client, handle, "done")
    key = {"document_key": handle["document_key"]}
    result = client.post(f"/v2/document/{handle['document_id']}/result", data=key)
    assert result.headers["content-type"] == media_type
    assert result.headers["content-disposition"] == f'attachment; filename="{name}"'
    if name.endswith(".txt"):
        assert result.content == b"ONE\n"
    else:
        assert docx.Document(io.BytesIO(result.content)).paragraphs[0].text == "ONE"


def test_a_pdf_stays_none(client):
    answer = upload(client, "a.pdf", draw((50, 700, "one")), output_format="pdf")
    assert answer.status_code == 400
    assert "a .pdf file becomes .docx or .txt" in answer.json()["message"]


def test_a_document_is_only_for_who_knows_its_key_and_owns_it(service):
    client = talk_to(service, make_keys())
    with client:
        header = {"Authorization": f"DeepL-Auth-Key {KEY}"}
        assert upload(client).status_code == 403
        handle = upload(client, auth_key=KEY).json()
        assert status_of(client, handle).status_code == 403
        path = f"/v2/document/{handle['document_id']}"
        assert client.post(path, json={"document_key": "é"}, headers=header).status_code == 404
        assert client.post(path, json={}, headers=header).json() == {
            "message": "Parameter 'document_key' not specified."
        }
        assert client.post("/v2/document/x", json=handle, headers=header).status_code == 404
        stored = find_store(client.app).get(handle["document_id"])
        stored.owner = "another"
        assert client.post(path, json=handle, headers=header).status_code == 404


def test_a_document_that_fails(client, service):
    service.error = fail("failed")
    handle = upload(client).json()
    status = wait(client, handle, "error")
    assert status["error_message"] == "it is failed"
    result = client.post(f"/v2/document/{handle['document_id']}/result", json=handle)
    assert (result.status_code, result.json()["message"]) == (
        400,
        "The document could not be translated: it is failed",
    )
    service.error = ZeroDivisionError("secret")
    status = wait(client, upload(client).json(), "error")
    assert status["error_message"] == "internal error"


def test_a_document_is_charged_once_it_is_translated(service):
    keys = make_keys(characters_per_month=10)
    with talk_to(service, keys) as client:
        assert upload(client, content=b"one two three", auth_key=KEY).status_code == 456
        assert len(find_store(client.app)._documents) == 0
        service.error = fail("failed")
        handle = upload(client, auth_key=KEY).json()
        until = time.monotonic() + 10
        while status_of(client, handle, auth_key=KEY).json()["status"] != "error":
            assert time.monotonic() < until
        usage = client.get("/v2/usage", params={"auth_key": KEY}).json()
        assert usage["character_count"] == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target_lang": "ZZ"}, "Value for 'target_lang' not supported."),
        ({"source_lang": "ZZ"}, "Value for 'source_lang' not supported."),
        ({"source_lang": "FR"}, "Source and target language are equal."),
        (
            {"target_lang": "EN-GB"},
            "Source and target language are equal: the document seems to be English already",
        ),
        ({"source_lang": "PT"}, "Value for 'target_lang' not supported."),
        ({"formality": "more"}, "Target language FR does not support formality."),
        (
            {"output_format": "docx"},
            "Value for 'output_format' not supported: a .txt file stays one.",
        ),
        ({"filename": "../a.txt"}, "Invalid request: the file name has characters"),
        ({"content": b"\x81\x8d"}, "Invalid request: the file is not UTF-8"),
        ({"glossary_id": "x", "source_lang": "EN"}, "Invalid or missing glossary id"),
    ],
)
def test_wrong_documents(client, change, message):
    answer = upload(client, **change)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith(message)


def test_a_document_without_letters_is_in_no_language(client):
    handle = upload(client, content=b"12 345", target_lang="EN-US").json()
    assert wait(client, handle, "done")["billed_characters"] == 6


def test_a_pair_that_no_model_serves_is_refused_at_once(client):
    answer = upload(client, source_lang="PT")
    assert answer.json()["detail"] == "no model translates pt to fr"
    assert len(find_store(client.app)._documents) == 0


def test_the_file_must_be_there(client):
    answer = client.post("/v2/document", data={"target_lang": "FR"})
    assert answer.json() == {"message": "Parameter 'file' not specified."}


def test_documents_are_limited(client, service, monkeypatch):
    monkeypatch.setattr(document_store, "MOST_OF_A_CLIENT", 1)
    service.is_held = True
    assert upload(client).status_code == 200
    answer = upload(client)
    assert answer.status_code == 429
    assert answer.json()["message"].startswith("too many documents are being kept")
    service.is_held = False


def test_files_for_exchange_are_read_for_the_target_language(client):
    xliff = '<xliff version="2.0"{}><segment{}><source>one %s</source>{}</segment></xliff>'
    handle = upload(client, "a.xliff", xliff.format("", "", "").encode()).json()
    wait(client, handle, "done")
    path = f"/v2/document/{handle['document_id']}/result"
    result = client.post(path, json={"document_key": handle["document_key"]})
    expected = xliff.format(' trgLang="fr"', ' state="translated"', "<target>ONE %s</target>")
    assert result.text == expected
    refused = upload(client, "a.xliff", xliff.format(' trgLang="de"', "", "").encode())
    assert refused.status_code == 400
    assert "the file is for translations into “de”, not “fr”" in refused.json()["message"]
