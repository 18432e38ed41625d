"""Odd requests to a server, by a seed, and what becomes of them."""

import contextlib
import json
import random
import re
import socket
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

PATHS = (
    "/health", "/ready", "/metrics", "/translate", "/detect", "/languages", "/translate_file",
    "/translate/{source}/{target}",
    "/download_file/{name:path}", "/frontend/settings", "/suggest", "/v2/translate",
    "/v2/languages", "/v2/usage", "/v2/document", "/v2/document/{document_id}",
    "/v2/document/{document_id}/result", "/v2/glossary-language-pairs", "/v2/glossaries",
    "/v2/glossaries/{glossary_id}", "/v2/glossaries/{glossary_id}/entries",
    "/v3/glossaries", "/v3/glossaries/{glossary_id}", "/v3/glossaries/{glossary_id}/entries",
    "/v3/glossaries/{glossary_id}/dictionaries", "/api/translate", "/api/languages", "/api/ready",
    "/language/translate/v2", "/language/translate/v2/languages",
    "/language/translate/v2/detect", "/spec", "/openapi.json", "/", "/page/{name}",
    "/page/api/page", "/page/api/shell", "/page/api/translate", "/page/api/choices",
    "/page/api/alignment", "/page/api/attention", "/page/api/why", "/page/api/inside",
    "/page/api/terms", "/page/api/tree", "/page/api/samples", "/page/api/broken", "/page/api/runs",
    "/page/api/runs/{number}", "/page/api/runs/{number}/facts", "/page/api/runs/{number}/stages",
    "/page/api/runs/{number}/look",
)  # fmt: skip
"""The routes of the server: a test compares them with what is there."""

_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "get", "A")
_FIELDS = (
    "text_list", "inputs", "from", "to", "dictionaries",
    "q", "text", "source", "target", "format", "alternatives", "api_key", "key", "auth_key",
    "source_lang", "target_lang", "split_sentences", "preserve_formatting", "tag_handling",
    "outline_detection", "splitting_tags", "non_splitting_tags", "ignore_tags", "formality",
    "glossary_id", "context", "model_type", "show_billed_characters", "type", "model", "beam",
    "prefix", "translation", "masks", "seed", "off", "file", "filename", "output_format",
    "document_key", "name", "entries", "entries_format", "offset", "token",
)  # fmt: skip
_TEXTS = (
    "", " ", "A dog.", "en", "fr", "EN-GB", "auto", "html", "xml", "text", "tsv", "a\tb",
    "tiny", "0", "1", "-1", "1e999", "9" * 400, "9" * 5000, "true", "\0", "a\0b", "\u202e",
    "\u200b", "\U0001f600", "<b>x</b>", "<" * 3000, "&#0;", "&#xd800;", "<a" + " b" * 500, "../..",
    "a" * 30_000, "dog " * 5000, "%00", "x.txt", "x.docx", "x.html", "\r\n", "é" * 100,
)  # fmt: skip
_JSON_PARTS = (
    b"null", b"true", b"0", b"-0", b"1e999", b"-1e999", b"NaN", b"Infinity", b"9" * 400,
    b"9" * 5000, b"1.5", b'"\\ud800"', b'"\\u0000"', b"[]", b"{}", b"[[[]]]", b'["a", 1, null]',
    b'[["cross", 1, 1]]', b'[["cross", 99999999999999999999999, -1]]', b'"A dog."', b'"en"',
    b'"fr"', b'"EN"', b'["A dog."]', b"[" * 5000 + b"]" * 5000, b'{"a":' * 2000, b'"\xff"', b"",
)  # fmt: skip
_TYPES = (
    "application/json", "application/json", "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=b", "multipart/form-data; boundary=b", "multipart/form-data",
    "multipart/form-data; boundary=", "multipart/form-data; boundary=b; charset=utf-7",
    "application/json; charset=utf-16", "application/x-www-form-urlencoded; charset=rot13",
    "text/plain", "application/octet-stream", "a", "", "application/json;" * 50, "é/ü",
)  # fmt: skip
_HANDSHAKE = (
    b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=="
)
_HEADERS = (
    b"Authorization: Bearer x", b"Authorization: DeepL-Auth-Key \xff", b"Authorization: ",
    b"Accept-Encoding: gzip", b"Accept-Encoding: \xff", b"Expect: 100-continue", b"Expect: x",
    _HANDSHAKE, b"Connection: upgrade\r\nUpgrade: websocket", b"Connection: close",
    b"Range: bytes=0-0",
    b"If-None-Match: *", b"Origin: http://127.0.0.1", b"Origin: null", b"Origin: \xff",
    b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Site: same-origin", b"X-Forwarded-For: 1.2.3.4",
    b"X-Forwarded-For: " + b"9" * 3000, b"X-Forwarded-Proto: \xff", b"Cookie: a=b; c",
    b"Accept-Language: " + b"x," * 1000, b"X-Goog-Api-Key: \xff", b"Content-Encoding: gzip",
    b"Host: evil.example", b"Host: ", b"Host: [::1", b"Content-Length: 0", b"Content-Length: 1",
    b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Transfer-Encoding: gzip",
    b"Transfer-Encoding: chunked", b"X: a\r\n folded", b"X: a\nY: b", b"X\0: b", b": b",
)  # fmt: skip
_BROKEN = (
    b"\r\n\r\n", b"\0" * 100, b"\x16\x03\x01\x02\x00", b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    b"GET /\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://evil/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 500 + b"\r\n",
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3\r\nabcdefgh\r\n0\r\n\r\n",
)  # fmt: skip


# Whoever sends “Expect: 100-continue” is told to go on first.
_STATUS = re.compile(rb"(?:HTTP/1\.1 100 [^\r]*\r\n\r\n)*HTTP/1\.1 (?!100)(\d{3})")


def make_request(chance: random.Random) -> bytes:
    """Make one request, mostly of sound HTTP with odd contents.

    Parameters
    ----------
    chance : random.Random
        Decides.

    Returns
    -------
    bytes
        What to send.
    """
    if chance.random() < 0.05:
        return chance.choice(_BROKEN)
    kind = chance.choice(_TYPES)
    body = _make_body(chance, kind)
    path = _fill_path(chance, chance.choice(PATHS))
    if chance.random() < 0.3:
        path += "?" + _make_query(chance)
    method = chance.choices(("POST", "GET", chance.choice(_METHODS)), (5, 4, 1))[0]
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: localhost"]
    lines += [b"Content-Type: " + kind.encode()] if kind or chance.random() < 0.5 else []
    lines += chance.sample(_HEADERS, chance.choice((0, 0, 0, 1, 1, 2)))
    if chance.random() < 0.95:
        lines.append(b"Content-Length: %d" % len(body))
    else:
        lines.append(b"Transfer-Encoding: chunked")
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    return b"\r\n".join([*lines, b"", body])


def _fill_path(chance: random.Random, route: str) -> str:
    """Put something odd into the place that a route has for it."""
    path = route
    while "{" in path:
        before, _, rest = path.partition("{")
        text = chance.choice((*_TEXTS, "app.js", "00000000-0000-0000-0000-000000000000.x.txt"))
        path = before + urllib.parse.quote(text[:6000], safe="./") + rest.partition("}")[2]
    if chance.random() < 0.1:
        path += chance.choice(("/", "//", "/..", "/%2e%2e/", "%00", "%ff", ";a", "%"))
    return path


def _make_query(chance: random.Random) -> str:
    pairs = [
        f"{chance.choice(_FIELDS)}={urllib.parse.quote(chance.choice(_TEXTS)[:3000])}"
        for _ in range(chance.randrange(1, 6))
    ]
    return "&".join([*pairs, chance.choice(("", "%ff=%ff", "&&==&", "q=%", "%zz", "q=%ud800"))])


def _make_body(chance: random.Random, kind: str) -> bytes:
    if chance.random() < 0.05:
        return chance.randbytes(chance.choice((0, 1, 100, 5000)))
    if kind.startswith("multipart"):
        return _make_form(chance)
    if "json" in kind:
        return _make_json(chance)
    return _make_query(chance).encode()


def _make_json(chance: random.Random) -> bytes:
    if chance.random() < 0.15:
        return chance.choice(_JSON_PARTS)
    fields = []
    for name in chance.sample(_FIELDS, chance.randrange(1, 12)):
        text = json.dumps(chance.choice(_TEXTS)).encode()
        value = text if chance.random() < 0.5 else chance.choice(_JSON_PARTS)
        fields.append(b'"%s": %s' % (name.encode(), value))
    if chance.random() < 0.7:  # so that many get as far as the model
        fields += [b'"q": "A dog."', b'"text": "A dog."', b'"source": "en"', b'"target": "fr"']
        fields += [b'"model": "tiny"', b'"translation": "Le chien."', b'"target_lang": "FR"']
    chance.shuffle(fields)
    return b"{" + b", ".join(fields) + b"}"


def _make_form(chance: random.Random) -> bytes:
    """Make a form in parts, of which some are broken."""
    parts = []
    for name in chance.sample(_FIELDS, chance.randrange(0, 6)):
        text = chance.choice(_TEXTS).encode()
        parts.append(b'Content-Disposition: form-data; name="%s"\r\n\r\n%s' % (name.encode(), text))
    if chance.random() < 0.6:
        suffix = chance.choice(("txt", "md", "html", "srt", "docx", "pptx", "odt", "epub", "x", ""))
        content = chance.choice((b"A dog.", b"PK\x03\x04", b"\xff\xfe", b"<p>A dog.", b"\0", b""))
        head = f'Content-Disposition: form-data; name="file"; filename="a.{suffix}"\r\n\r\n'
        parts.append(head.encode() + content)
        parts.append(b'Content-Disposition: form-data; name="source"\r\n\r\nen')
        parts.append(b'Content-Disposition: form-data; name="target"\r\n\r\nfr')
    parts.append(chance.choice((b"", b"x", b"Content-Disposition\r\n\r\n", b"\xff: \xff\r\n\r\nx")))
    ends = (b"\r\n--b--\r\n", b"\r\n--b--", b"\r\n--b", b"", b"\r\n--x--\r\n", b"--b--" * 100)
    return b"".join(b"\r\n--b\r\n" + part for part in parts) + chance.choice(ends)


@dataclass
class Outcome:
    """What became of requests.

    Parameters
    ----------
    num_tried : int
        How many were sent.
    statuses : Counter[int]
        How often each status came; 0: the connection was closed without an answer.
    failures : list[bytes]
        Requests that were answered with a status from 500.
    hangs : list[bytes]
        Requests on which nothing came in time.
    """

    num_tried: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: list[bytes] = field(default_factory=list)
    hangs: list[bytes] = field(default_factory=list)


def attack(port: int, seed: int, num_requests: int, most_seconds: float) -> Outcome:
    """Send requests one by one, each on a connection of its own.

    Parameters
    ----------
    port : int
        Of a server on loopback.
    seed : int
        Decides which requests.
    num_requests : int
        How many at most.
    most_seconds : float
        How long at most.

    Returns
    -------
    Outcome
        What became of them.
    """
    outcome = Outcome()
    until = time.monotonic() + most_seconds
    for request in make_requests(seed, num_requests):
        if time.monotonic() > until:
            break
        outcome.num_tried += 1
        status = send(port, request)
        if status is None:
            outcome.hangs.append(request)
            continue
        outcome.statuses[status] += 1
        if status >= 500:
            outcome.failures.append(request)
    return outcome


def make_requests(seed: int, count: int) -> Iterator[bytes]:
    """Make requests.

    Parameters
    ----------
    seed : int
        Equal seeds make equal requests.
    count : int
        How many.

    Yields
    ------
    bytes
        A request.
    """
    chance = random.Random(seed)
    for _ in range(count):
        yield make_request(chance)


def send(port: int, request: bytes, seconds: float = 10.0) -> int | None:
    """Send a request.

    Parameters
    ----------
    port : int
        Of a server on loopback.
    request : bytes
        The request.
    seconds : float
        How long to wait for an answer.

    Returns
    -------
    int | None
        The status of the answer; 0: the connection was closed; None: nothing happened.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(request)
        answer = b""
        try:
            while not (found := _STATUS.match(answer)) and (more := connection.recv(4096)):
                answer += more
        except ConnectionError:
            return 0
        except TimeoutError:
            return None
    return int(found[1]) if found else 0
