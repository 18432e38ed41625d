"""marian-server's protocol, with the library that its clients use."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import websocket
from tests.serving.fake_service import FakeService, WebSocketDenialResponse, fail, talk_to
from tests.serving.running_server import KEY, make_keys, serve
from tests.serving.small_service import copy_folder

from dragoman.serving.protocols.marian import CODES

PATH = "/translate/en/fr"


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def client(service):
    with talk_to(service) as client:
        yield client


def refusal_of(client, path=PATH, **more):
    """Open a WebSocket that is refused, and give status and message."""
    with pytest.raises(WebSocketDenialResponse) as caught, client.websocket_connect(path, **more):
        pass
    return caught.value.status_code, caught.value.json()["error"]


def closing_of(socket):
    message = socket.receive()
    assert message["type"] == "websocket.close"
    return message["code"], message["reason"]


@pytest.mark.parametrize(
    ("sent", "answered"),
    [
        ("A dog.", "A DOG."),
        ("A dog.\n", "A DOG.\n"),
        ("A dog.\n\n A tree. A dog. \n", "A DOG.\n\n A TREE. A DOG. \n"),
        ("", ""),
        ("\n", "\n"),
        ("\n\n", "\n\n"),
        ("a\r\nb", "A\r\nB"),
    ],
)
def test_as_many_lines_come_back_as_were_sent(client, sent, answered):
    with client.websocket_connect(PATH) as socket:
        for _ in range(2):
            socket.send_text(sent)
            assert socket.receive_text() == answered


def test_a_line_break_that_the_model_writes_is_none(client, service, monkeypatch):
    translate = service.translate

    async def break_lines(request):
        return [replace(each, text=f"{each.text}\n!") for each in await translate(request)]

    monkeypatch.setattr(service, "translate", break_lines)
    with client.websocket_connect(PATH) as socket:
        socket.send_text("a\nb\n")
        assert socket.receive_text() == "A !\nB !\n"


def test_the_address_says_the_languages(client, service):
    for path, pair in (
        ("/translate/EN/fr", ("en", "fr")),
        ("/translate/auto/pt", (None, "pt")),
    ):
        with client.websocket_connect(path) as socket:
            socket.send_text("a")
            socket.receive_text()
        assert (service.requests[-1].source, service.requests[-1].target) == pair


def test_a_plain_address_is_for_the_only_pair(client, service, monkeypatch):
    assert refusal_of(client, "/translate") == (
        404,
        "this server translates several pairs; ask for one of /translate/en/fr, /translate/fr/en, "
        "/translate/en/pt",
    )
    models = service.models()[:1]
    monkeypatch.setattr(service, "models", lambda: models)
    with client.websocket_connect("/translate") as socket:
        socket.send_text("a")
        assert socket.receive_text() == "A"
    assert (service.requests[-1].source, service.requests[-1].target) == ("en", "fr")


def test_languages_that_are_not_served_are_refused(client):
    assert refusal_of(client, "/translate/en/zz") == (404, "zz is not supported")
    assert refusal_of(client, "/translate/zz/en") == (404, "zz is not supported")
    assert refusal_of(client, "/translate/pt/en") == (404, "no model translates pt to en")
    assert refusal_of(client, "/translate/en/auto") == (404, "auto is not supported")


@pytest.mark.parametrize("kind", CODES)
def test_errors_close_the_connection_with_a_reason(client, service, kind):
    service.error = fail(kind)
    with client.websocket_connect(PATH) as socket:
        socket.send_text("a")
        assert closing_of(socket) == (CODES[kind], f"it is {kind}")


def test_a_long_reason_is_cut_between_characters(client, service):
    service.error = fail("failed")
    service.error.message = "é" * 100
    with client.websocket_connect(PATH) as socket:
        socket.send_text("a")
        assert closing_of(socket) == (1011, "é" * 61)


def test_bytes_and_nul_are_no_text(client):
    with client.websocket_connect(PATH) as socket:
        socket.send_bytes(b"a")
        assert closing_of(socket) == (1003, "the message is not text; send lines of text")
    with client.websocket_connect(PATH) as socket:
        socket.send_text("a\0")
        assert closing_of(socket) == (
            1008,
            "Invalid request: the text has a NUL character; leave it out",
        )


def test_keys_are_wanted_at_the_handshake_and_charged_for_each_message(service):
    keys = make_keys(characters_per_month=10, requests_per_minute=3)
    with talk_to(service, keys) as client:
        assert refusal_of(client) == (403, "this server wants an API key; send one")
        wrong = {"Authorization": "Bearer wrong"}
        assert refusal_of(client, headers=wrong) == (403, "Invalid API key")
        assert refusal_of(client, f"{PATH}?api_key=wrong")[0] == 403
        with client.websocket_connect(f"{PATH}?api_key={KEY}") as socket:
            socket.send_text("1234\n567")
            assert socket.receive_text() == "1234\n567"
            socket.send_text("12345")
            code, reason = closing_of(socket)
        assert (code, reason[:30]) == (1008, "the key's 10 characters a mont")
        right = {"Authorization": f"Bearer {KEY}"}
        with client.websocket_connect(PATH, headers=right) as socket:
            socket.send_text("1")
            assert socket.receive_text() == "1"
            socket.send_text("1")
            assert closing_of(socket) == (1013, "Slowdown: 3 per 1 minute")


def translate_as_marian_s_client(url, lines, batch_size):
    """Send lines in batches as the client of Marian does, and take what comes."""
    socket = websocket.create_connection(url, timeout=30)
    printed = []
    batch = ""
    for count, line in enumerate(lines, start=1):
        batch += f"{line}\n"
        if count % batch_size == 0:
            socket.send(batch)
            printed += socket.recv().removesuffix("\n").split("\n")
            batch = ""
    if batch:
        socket.send(batch)
        printed += socket.recv().removesuffix("\n").split("\n")
    socket.close()
    return printed


def test_marian_s_clients_get_line_for_line_the_same(tiny_folder, tmp_path, caplog):
    folder = copy_folder(tiny_folder.path, tmp_path, "en", "fr")
    words = ("dog", "house", "tree", "garden", "old dog", "small tree")
    lines = [f"The {word} likes the {other}." for word in words for other in words]
    with serve([folder]) as url:
        address = f"{url.replace('http', 'ws')}/translate"
        one_by_one = translate_as_marian_s_client(address, lines, 1)
        with ThreadPoolExecutor(24) as pool:
            calls = [
                pool.submit(translate_as_marian_s_client, address, lines, 1 + index % 12)
                for index in range(24)
            ]
            found = [call.result() for call in calls]
        with pytest.raises(websocket.WebSocketBadStatusException) as caught:
            websocket.create_connection(f"{address}/en/de")
    assert len(one_by_one) == len(lines)
    assert found == [one_by_one] * 24
    assert caught.value.status_code == 404
    assert b"de is not supported" in caught.value.resp_body
    assert not caplog.records
