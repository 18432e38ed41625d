"""Refusals speak the language of whoever is refused."""

import json

import pytest

from dragoman.serving.http.error_responses import cors_headers, is_open, write_error_response


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/translate", {"error": "no"}),
        ("/v2x", {"error": "no"}),
        ("/v2/translate", {"message": "no"}),
        (
            "/language/translate/v2",
            {
                "error": {
                    "code": 429,
                    "message": "no",
                    "status": "RESOURCE_EXHAUSTED",
                    "errors": [{"message": "no", "domain": "global", "reason": "refused"}],
                }
            },
        ),
    ],
)
def test_the_body_is_as_the_protocol_s_clients_read_it(path, body):
    headers, content = write_error_response(path, 429, "no", retry_after=0.2)
    assert json.loads(content) == body
    found = dict(headers)
    assert found[b"content-length"] == str(len(content)).encode()
    assert found[b"content-type"] == b"application/json"
    assert found[b"retry-after"] == b"1"  # whole seconds, and never none


def test_nothing_is_said_of_coming_back_where_that_is_no_use():
    assert b"retry-after" not in dict(write_error_response("/translate", 413, "no")[0])


def test_one_origin_or_none_can_be_named():
    headers = cors_headers("/translate", "https://example.org")
    assert (b"access-control-allow-origin", b"https://example.org") in headers
    assert (b"vary", b"Origin") in headers
    assert cors_headers("/translate", None) == [(b"x-content-type-options", b"nosniff")]
    assert not is_open("/translate", None)
    assert is_open("/pages", "*")
    assert is_open("/api/translate", "*")


def test_web_pages_may_send_what_clients_send():
    """Headers that browsers ask for before they send them, in whatever case."""
    told = dict(cors_headers("/translate", "*"))[b"access-control-allow-headers"].decode()
    allowed = {each.lower() for each in told.split(", ")}
    sent = (
        "Authorization", "Content-Type", "Ocp-Apim-Subscription-Key", "X-ClientTraceId",
        "Ocp-Apim-Subscription-Region", "X-Goog-Api-Key", "x-ms-client-request-id",
        "x-ms-useragent",
    )  # fmt: skip
    assert {each.lower() for each in sent} <= allowed


@pytest.mark.parametrize("path", ["/page", "/page/api/page", "/metrics", "/metrics/"])
def test_what_is_private_is_closed_to_all_origins(path):
    assert not is_open(path, "*")
    assert cors_headers(path, "*") == [(b"x-content-type-options", b"nosniff")]
