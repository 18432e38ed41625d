"""The application puts all protocols over one service."""

import json

import pytest
from tests.serving.fake_service import TestClient
from tests.serving.small_service import make_service

from dragoman.serving.app import build_app
from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.http.error_responses import cors_headers, is_open
from dragoman.serving.language_pairs import ServedModels
from dragoman.serving.page.page_runs import WatchedRuns
from dragoman.serving.service import Service


@pytest.fixture(scope="module")
def service(tiny_folder):
    service = make_service([tiny_folder.path])
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="module")
def client(service):
    return TestClient(build_app(service, ApiKeys()))


def test_signs_of_life(client):
    assert client.get("/health").json() == {"status": "ok"}
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready"})


def test_a_service_that_stops_is_alive_but_not_ready(tiny_folder):
    client = TestClient(build_app(make_service([tiny_folder.path]), ApiKeys()))
    assert client.get("/health").status_code == 200
    answer = client.get("/ready")
    assert (answer.status_code, answer.json()) == (503, {"status": "not ready"})


def test_figures_are_given_as_prometheus_reads_them(client):
    answer = client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'dragoman_queue_tokens{model="tiny"}' in answer.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/nix", {"error": "Not Found"}),
        ("/v2/nix", {"message": "Not Found"}),
        ("/v3/style_rules", {"message": "Not Found"}),
    ],
)
def test_unknown_paths_are_refused_in_the_words_of_their_protocol(client, path, body):
    answer = client.get(path)
    assert (answer.status_code, answer.json()) == (404, body)
    assert answer.headers["content-type"] == "application/json"


def test_google_s_clients_are_told_a_code(client):
    answer = client.get("/language/translate/v9")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == 404


@pytest.mark.parametrize("path", ["/languages/", "/v2/languages/", "/health/", "/page/api/page/"])
def test_a_slash_too_many_is_no_redirection_to_whatever_host(client, path):
    answer = client.get(path, headers={"host": "evil.example"}, follow_redirects=False)
    assert answer.status_code == 404
    assert "evil.example" not in f"{answer.headers}{answer.text}"


def test_web_pages_are_told_all_methods_that_they_may_use(client):
    open_routes = [each for each in client.app.routes if is_open(each.path, "*")]
    methods = {method for each in open_routes for method in getattr(each, "methods", ())} - {"HEAD"}
    headers = dict(cors_headers("/translate", "*"))
    told = headers[b"access-control-allow-methods"].decode().split(", ")
    assert told == sorted(methods)


@pytest.mark.parametrize(("method", "path"), [("GET", "/detect"), ("POST", "/languages")])
def test_wrong_methods_are_named(client, method, path):
    answer = client.request(method, path)
    assert answer.status_code == 405
    assert json.loads(answer.content) == {"error": "Method Not Allowed"}
    assert "allow" in answer.headers


@pytest.mark.parametrize(
    "path", ["/", "/languages", "/frontend/settings", "/spec", "/v2/languages", "/v2/usage"]
)
def test_all_protocols_are_there(client, path):
    assert client.get(path).status_code in (200, 403)


def test_a_server_of_runs_has_no_protocols(tmp_path):
    service = Service(ServedModels([]))
    client = TestClient(build_app(service, ApiKeys(), WatchedRuns([tmp_path])))
    told = [{"number": 0, "name": tmp_path.name}]
    assert client.get("/page/api/page").json()["runs"] == told
    assert client.get("/health").status_code == 200
    answer = client.post("/page/api/translate", json={"text": "A dog.", "target": "fr"})
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == "no models are served here, only training runs"
    for path in ("/frontend/settings", "/languages", "/v2/languages", "/spec"):
        assert client.get(path).status_code == 404


def test_handlers_find_service_and_keys_in_the_state(service):
    keys = ApiKeys()
    app = build_app(service, keys)
    assert app.state.service is service
    assert app.state.keys is keys
