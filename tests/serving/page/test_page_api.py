"""The page's own protocol over HTTP: answers equal to what the parts compute, and refusals."""

import asyncio
import gzip
import json
import threading

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Route
from tests.decoding.made_calibration import copy_calibrated
from tests.serving.running_server import KEY, make_keys, serve, without_second_look
from tests.serving.small_service import copy_folder

from dragoman.decoding.translator import Translator
from dragoman.insight.attention import look_at
from dragoman.insight.choices import list_choices
from dragoman.insight.explanation import explain
from dragoman.serving.page import page_api
from dragoman.serving.page.page_api import (
    CONTENT_SECURITY_POLICY,
    STATUS,
    TextPart,
    give_asset,
    give_index,
    split_parts,
)
from dragoman.serving.page.page_document import ASSETS, read_asset
from dragoman.serving.page.page_insight import write_look
from dragoman.serving.service_types import ErrorKind
from dragoman.text.sentence_splitting import split_text

SOURCE, TARGET = "The old dog sees.", "Le vieux chien."
PAIR = {"model": "en-fr", "source": SOURCE, "translation": TARGET}


@pytest.fixture(scope="module")
def folders(tiny_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    made = [copy_folder(tiny_folder.path, folder, *pair) for pair in (("en", "fr"), ("fr", "es"))]
    update = {"event": "update", "time": 1.0, "step": 1, "loss": 2.0}
    (made[0] / "metrics.jsonl").write_text(json.dumps(update) + "\n")
    return made


@pytest.fixture(scope="module")
def url(folders):
    with serve(folders, max_texts=2) as address:
        yield address


@pytest.fixture(scope="module")
def translator(folders):
    return Translator.load(folders[0], "cpu")


def post(url, name, body, **more) -> httpx.Response:
    return httpx.post(f"{url}/page/api/{name}", json=body, timeout=30, **more)


def complaint(answer: httpx.Response) -> tuple[int, str, str]:
    told = answer.json()["error"]
    return answer.status_code, told["kind"], told["message"]


def test_page_is_told_what_there_is(url):
    told = httpx.get(f"{url}/page/api/page").json()
    assert [(each["name"], each["source"], each["target"]) for each in told["models"]] == [
        ("en-fr", "en", "fr"), ("fr-es", "fr", "es"),
    ]  # fmt: skip
    assert {each["code"]: each["targets"] for each in told["languages"]} == {
        "en": ["es", "fr"], "es": [], "fr": ["es"],
    }  # fmt: skip
    assert told["models"][0]["family"] == "transformer"
    assert told["runs"] == [{"number": 0, "name": "en-fr"}]
    assert told["needsKey"] is False
    assert told["limits"]["masks"] == 4000


def test_page_and_its_files_are_there(url):
    assert "<title>Dragoman</title>" in httpx.get(f"{url}/").text
    assert httpx.get(f"{url}/page/app.js").status_code == 200
    assert "@SNAPSHOT@" in httpx.get(f"{url}/page/api/shell").text


def test_text_comes_back_sentence_by_sentence(url, translator):
    text = " The dog sees. A tree!\n\nThe house "
    told = post(url, "translate", {"text": text, "source": "en", "target": "fr"}).json()
    sentences = told["sentences"]
    assert "".join(each["source"] + each["space"] for each in sentences) == text
    spoken = [each for each in sentences if each["source"]]
    assert [each["source"] for each in spoken] == ["The dog sees.", "A tree!", "The house"]
    assert [each["text"] for each in spoken] == [
        translator.translate(each["source"]).text for each in spoken
    ]
    for each in spoken:
        for begin, end, first, last in each["alignment"]:
            assert each["source"][begin:end].strip()
            assert each["text"][first:last].strip()
    assert told["path"] == ["en", "fr"]
    assert told["confidence"] is None


def test_confidence_is_told_of_each_sentence(url, folders, tmp_path):
    body = {"text": "The dog. A tree.", "source": "en", "target": "fr"}
    unknown = post(url, "translate", body).json()["sentences"]
    assert [each["confidence"] for each in unknown] == [None, None]
    sure = copy_calibrated(folders[0], tmp_path / "sure")
    with serve([sure]) as address:
        found = post(address, "translate", body).json()["sentences"]
    with without_second_look():
        translator = Translator.load(sure, "cpu")
        expected = [translator.translate(each["source"]).confidence for each in found]
    assert [each["confidence"] for each in found] == pytest.approx(expected, abs=1e-5)


def test_alternatives_beam_and_prefix(url, translator):
    body = {"text": SOURCE, "source": "en", "target": "fr", "alternatives": 2, "beam": 4}
    (one,) = post(url, "translate", body).json()["sentences"]
    assert len(one["alternatives"]) == 2
    assert one["text"] not in one["alternatives"]
    prefix = "Le vieux"
    (forced,) = post(url, "translate", body | {"prefix": prefix}).json()["sentences"]
    assert forced["text"].startswith(prefix)


def test_language_is_found_and_said(url):
    told = post(url, "translate", {"text": "the small dog", "target": "es"}).json()
    assert told["source"] in ("en", "fr", "es")
    assert 0 <= told["confidence"] <= 1


def test_way_through_a_third_language_is_said(url):
    told = post(url, "translate", {"text": "the dog", "source": "en", "target": "es"}).json()
    assert told["path"] == ["en", "fr", "es"]


def test_no_text_is_no_translation(url):
    told = post(url, "translate", {"text": " ", "source": "en", "target": "fr"}).json()
    assert told["sentences"] == [
        {
            "source": "",
            "space": " ",
            "text": "",
            "alternatives": [],
            "alignment": [],
            "confidence": None,
            "doubts": [],
        }
    ]


def test_models_that_translated_are_named(url):
    body = {"text": "the dog", "source": "en", "target": "fr"}
    assert post(url, "translate", body).json()["models"] == ["en-fr"]
    assert post(url, "translate", body | {"target": "es"}).json()["models"] == ["en-fr", "fr-es"]


def test_longest_text_is_that_of_the_other_protocols(folders):
    with serve(folders, max_characters=30) as address:
        body = {"text": "the dog sees. " * 3, "source": "en", "target": "fr"}
        told = complaint(post(address, "translate", body))
        assert told[:2] == (413, "too_long")
        assert "42 characters, but 30 are the most" in told[2]
        assert post(address, "translate", body | {"text": "the dog"}).status_code == 200


def test_terms_of_a_glossary_appear(url):
    body = {"text": "the old dog sees a tree", "source": "en", "target": "fr"}
    terms = {"terms": {"en": [["dog", "jardin"], ["house", "arbre"]], "fr": [["dog", "chien"]]}}
    (one,) = post(url, "translate", body | terms).json()["sentences"]
    assert "jardin" in one["text"].split()


@pytest.mark.parametrize("terms", [[], {"en": "dog"}, {"en": [["dog"]]}, {"en": [["dog", " "]]},
                                   {"en": [["dog", "x" * 201]]}, {"en": [[1, 2]]}])  # fmt: skip
def test_odd_glossary_is_refused(url, terms):
    body = {"text": "the dog", "source": "en", "target": "fr", "terms": terms or [1]}
    told = complaint(post(url, "translate", body))
    assert told[:2] == (400, "bad_request")
    assert "“terms” must be like" in told[2]


def test_too_large_glossary_is_refused(url):
    terms = {"en": [[f"dog {number}", "chien"] for number in range(2001)]}
    body = {"text": "the dog", "source": "en", "target": "fr", "terms": terms}
    assert "2,001 terms; 2,000 are the most" in complaint(post(url, "translate", body))[2]


def test_doubts_are_told_of_translations(url):
    told = post(url, "alignment", PAIR | {"translation": "Le vieux vieux chien 5."}).json()
    assert [(each["kind"], each["side"]) for each in told["doubts"]] == [
        ("number", "target"), ("repetition", "target"),
    ]  # fmt: skip
    (one,) = post(
        url, "translate", {"text": "The dog sees 17 trees.", "source": "en", "target": "fr"}
    ).json()["sentences"]
    found = [
        each for each in one["doubts"] if each["side"] == "source" and each["kind"] == "number"
    ]
    assert [one["source"][each["begin"] : each["end"]] for each in found] in ([], ["17"])
    assert bool(found) == ("17" not in one["text"])


def test_choices_are_the_models(url, translator):
    told = post(url, "choices", PAIR | {"prefix": "Le"}).json()["choices"]
    expected = list_choices(translator, SOURCE, "Le")
    assert [each["prefix"] for each in told] == [each.prefix for each in expected]
    assert [each["probability"] for each in told] == pytest.approx(
        [each.probability for each in expected], abs=1e-5
    )


def test_attention_is_what_is_seen(url, translator):
    told = post(url, "attention", PAIR).json()
    expected = write_look(translator, look_at(translator, SOURCE, translation=TARGET))
    assert told == json.loads(json.dumps(expected))
    without = post(url, "attention", PAIR | {"off": [["cross", 1, 1]], "beam": 2}).json()["without"]
    assert without["heads"] == [["cross", 1, 1]]
    assert without["translation"]


def test_alignment_of_any_translation(url):
    told = post(url, "alignment", PAIR).json()
    assert told["words"] == TARGET.split()
    assert len(told["probabilities"]) == 3


def test_why_becomes_surer_line_by_line(url, translator, monkeypatch):
    monkeypatch.setattr(page_api, "STEP_TOKENS", 16)
    body = PAIR | {"source": "The old dog sees a small garden.", "masks": 60}  # of 128 ways
    lines = post(url, "why", body).text.splitlines()
    told = [json.loads(line) for line in lines]
    assert len(told) > 2
    counts = [each["numMasks"] for each in told]
    assert counts == sorted(counts)
    assert counts[-1] == 60
    assert set(told[0]) > set(told[-1])
    expected = explain(translator, body["source"], translation=TARGET, num_masks=60)
    assert told[0]["sourceWords"] == list(expected.source_words)
    off = np.array(told[-1]["rise"]) - expected.rise.values
    assert (np.abs(off) < 5 * np.hypot(told[-1]["errors"], expected.rise.errors) + 1e-4).all()


def test_short_sentences_are_explained_exactly(url):
    lines = post(url, "why", PAIR | {"masks": 100}).text.splitlines()
    (told,) = map(json.loads, lines)
    assert (told["isExact"], told["numMasks"]) == (True, 16)


def test_translating_goes_on_while_somebody_asks_why(url):
    body = PAIR | {"source": "The old dog sees a small garden tree house.", "masks": 1500}
    lines = []

    def ask():
        with httpx.stream("POST", f"{url}/page/api/why", json=body, timeout=60) as answer:
            lines.extend(answer.iter_lines())

    thread = threading.Thread(target=ask)
    thread.start()
    done = 0
    while thread.is_alive() and done < 3:
        text = f"The dog {done}"
        told = post(url, "translate", {"text": text, "source": "en", "target": "fr"})
        assert told.status_code == 200
        done += 1
    thread.join(60)
    assert done >= 1
    assert json.loads(lines[-1])["numMasks"] == 1500


def test_runs_are_read_by_number(url):
    told = httpx.get(f"{url}/page/api/runs/0", params={"offset": 0, "token": ""}).json()
    assert told["points"] == [[1, 1.0, 2.0, *[None] * 4]]
    again = httpx.get(
        f"{url}/page/api/runs/0", params={"offset": told["offset"], "token": told["token"]}
    ).json()
    assert (again["restarts"], again["points"]) == (False, [])
    assert complaint(httpx.get(f"{url}/page/api/runs/7")) == (
        404,
        "not_found",
        "there is no such run",
    )
    for offset in ("-1", "x", str(1 << 60)):
        answer = httpx.get(f"{url}/page/api/runs/0", params={"offset": offset})
        assert complaint(answer) == (400, "bad_request", "“offset” must be a whole number")
    assert httpx.get(f"{url}/page/api/runs/..%2f..").status_code == 404


REFUSED = [
    ("translate", {}, (400, "bad_request")),
    ("translate", {"text": "x", "target": "zz", "source": "en"}, (400, "unknown_language")),
    ("translate", {"text": "x" * 30_000, "target": "fr", "source": "en"}, (413, "too_long")),
    ("translate", {"text": "x", "target": "fr", "source": "en", "beam": 99}, (400, "bad_request")),
    ("translate", {"text": "x", "target": "fr", "alternatives": 50}, (400, "bad_request")),
    ("translate", {"text": "x", "target": "fr", "model": "none"}, (404, "not_found")),
    ("choices", PAIR | {"model": "none"}, (404, "not_found")),
    ("choices", PAIR | {"source": " "}, (400, "bad_request")),
    ("attention", PAIR | {"source": ""}, (400, "bad_request")),
    ("attention", PAIR | {"off": [["cross", 1, 99]]}, (400, "bad_request")),
    ("attention", PAIR | {"source": "dog " * 500}, (413, "too_long")),
    ("alignment", PAIR | {"translation": "chien " * 500}, (413, "too_long")),
    ("why", PAIR | {"masks": 1_000_000}, (400, "bad_request")),
    ("why", PAIR | {"source": "dog " * 60, "masks": 4000, "translation": "chien " * 60},
     (400, "bad_request")),
    ("why", PAIR | {"translation": ""}, (400, "bad_request")),
    ("why", PAIR | {"source": "\u200b"}, (400, "bad_request")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body", "expected"), REFUSED)
def test_refusals(url, name, body, expected):
    status, kind, message = complaint(post(url, name, body))
    assert (status, kind) == expected
    assert message
    assert "\n" not in message


@pytest.mark.parametrize("name", ["translate", "choices", "attention", "why", "alignment"])
def test_hostile_bodies_are_refused(url, name):
    kind = {"Content-Type": "application/json"}
    for body in (b"\xff\xfe", b"[" * 50_000, b'{"text": "\\ud800", "source": "\\ud800"}', b"{}"):
        answer = httpx.post(f"{url}/page/api/{name}", content=body, headers=kind)
        assert answer.status_code == 400, body[:20]
    assert httpx.get(f"{url}/page/api/{name}").status_code == 405
    nasty = "a\x00b \u202e <script>alert(1)</script> &amp; \U0001f600"
    body = {"model": "en-fr", "text": nasty, "source": nasty, "target": "fr", "prefix": ""}
    body |= {"source": "en"} if name == "translate" else {"translation": nasty}
    assert post(url, name, body).status_code == 200


def test_every_kind_of_error_has_a_status():
    assert set(STATUS) == set(ErrorKind.__args__)


def test_keys_are_wanted_where_there_are_keys(folders):
    with serve(folders[:1], keys=make_keys(requests_per_minute=2)) as url:
        body = {"text": "x", "source": "en", "target": "fr"}
        assert complaint(post(url, "translate", body))[:2] == (401, "missing_key")
        wrong = {"Authorization": "Bearer wrong"}
        assert complaint(post(url, "translate", body, headers=wrong))[:2] == (403, "bad_key")
        right = {"Authorization": f"Bearer {KEY}"}
        assert httpx.get(f"{url}/page/api/page").json()["needsKey"] is True
        assert httpx.get(f"{url}/page/api/runs/0").status_code == 401
        assert httpx.get(f"{url}/page/api/runs/0", headers=right).status_code == 200
        assert post(url, "translate", body, headers=right).status_code == 200
        assert post(url, "alignment", PAIR, headers=right).status_code == 200
        answer = post(url, "choices", PAIR, headers=right)
        assert complaint(answer)[:2] == (429, "too_many_requests")
        assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.parametrize("name", ["translate", "choices", "attention", "why", "alignment"])
def test_what_other_pages_may_send_unasked_is_refused(url, name):
    body = json.dumps(PAIR | {"text": SOURCE, "source": "en", "target": "fr"})
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = httpx.post(f"{url}/page/api/{name}", content=body, headers={"Content-Type": kind})
        assert complaint(answer) == (400, "bad_request", "Content-Type must be application/json")


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "http://127.0.0.1"},  # another port of the same machine
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "OWN"},
]
OWN = [
    {"Origin": "OWN"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "OWN"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "https://LOCALHOST", "Host": "localhost"},  # a proxy speaks TLS
    {"Origin": "https://localhost", "Host": "localhost:443"},
    {"Origin": "http://localhost:8443", "Host": "localhost:8443"},
]


@pytest.mark.parametrize("is_own", [False, True])
def test_other_sites_pages_are_refused(url, is_own):
    for headers in OWN if is_own else FOREIGN:
        said = {name: url if value == "OWN" else value for name, value in headers.items()}
        body = {"text": "A dog.", "source": "en", "target": "fr"}
        answers = [post(url, "translate", body, headers=said)]
        answers += [
            httpx.get(f"{url}/page/api/{name}", headers=said) for name in ("page", "runs/0")
        ]
        for answer in answers:
            assert answer.status_code == (200 if is_own else 403), headers
            assert "access-control-allow-origin" not in answer.headers


def test_a_log_with_half_characters_and_endless_numbers_is_shown(folders):
    log = folders[1] / "metrics.jsonl"
    log.write_text('{"event": "end", "why": "\\ud800", "loss": NaN, "bleu": 1e999}\n')
    with serve(folders[1:]) as url:
        answer = httpx.get(f"{url}/page/api/runs/0")
    log.unlink()
    assert answer.json()["events"] == [
        {"event": "end", "why": "\ud800", "loss": None, "bleu": None}
    ]


def test_a_run_s_number_may_be_anything(url):
    for number in ("9" * 5000, "00", "-1", "x", "%00", "١"):
        assert httpx.get(f"{url}/page/api/runs/{number}").status_code == 404, number[:9]


def test_runs_are_not_shown_through_a_proxy(folders):
    for options, headers in (
        ({"proxy": "127.0.0.1"}, {}),
        ({"proxy": "127.0.0.1"}, {"X-Forwarded-For": "127.0.0.1"}),
        ({}, {"X-Forwarded-For": "127.0.0.1"}),  # a proxy that nobody told of
        ({}, {"Forwarded": "for=127.0.0.1"}),
    ):
        with serve(folders[:1], **options) as url:
            assert httpx.get(f"{url}/page/api/page", headers=headers).json()["runs"] == []
            assert httpx.get(f"{url}/page/api/runs/0", headers=headers).status_code == 404


def test_through_a_proxy_a_key_opens_the_runs(folders):
    with serve(folders[:1], keys=make_keys(), proxy="127.0.0.1") as url:
        assert httpx.get(f"{url}/page/api/runs/0").status_code == 401
        right = {"Authorization": f"Bearer {KEY}", "X-Forwarded-For": "1.2.3.4"}
        assert httpx.get(f"{url}/page/api/runs/0", headers=right).status_code == 200


def test_runs_are_not_shown_to_other_machines(folders):
    with serve(folders[:1], host="0.0.0.0") as url:
        assert httpx.get(f"{url}/page/api/page").json()["runs"] == []
        assert httpx.get(f"{url}/page/api/runs/0").status_code == 404


APP = Starlette(routes=[Route("/", give_index), Route("/page/{name}", give_asset)])


def get(path, **headers) -> httpx.Response:
    """Ask for something, and keep the answer as it came."""

    async def ask():
        transport = httpx.ASGITransport(APP)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.get(path, headers=named)

    return asyncio.run(ask())


@pytest.mark.parametrize("name", ASSETS)
def test_files_are_given(name):
    answer = get(f"/page/{name}")
    assert answer.status_code == 200
    assert answer.content == read_asset(name).content
    assert answer.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    kinds = {"js": "text/javascript", "css": "text/css", "html": "text/html",
             "svg": "image/svg+xml"}  # fmt: skip
    assert answer.headers["content-type"].startswith(kinds[name.rsplit(".", 1)[1]])


def test_page_is_at_the_root():
    assert get("/").content == read_asset("index.html").content


def test_files_are_compressed_for_who_can_read_it():
    answer = get("/page/app.js", accept_encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.content == read_asset("app.js").content
    assert int(answer.headers["content-length"]) == len(read_asset("app.js").compressed)
    plain = get("/page/app.js", accept_encoding="identity")
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(read_asset("app.js").compressed) == plain.content


def test_unchanged_files_are_not_sent_again():
    tag = get("/page/app.js").headers["etag"]
    again = get("/page/app.js", if_none_match=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert get("/page/app.js", if_none_match='"x"').status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/page/none.js", "/page/__init__.py", "/page/..%2fpage_api.py", "/page/%2e%2e%2foptions.py",
     "/page/app.js%00.css", "/page//app.js"],
)  # fmt: skip
def test_nothing_else_is_given(path):
    answer = get(path)
    assert answer.status_code == 404
    assert b"import" not in answer.content


def test_policy_allows_only_the_page_itself():
    for part in CONTENT_SECURITY_POLICY.split("; "):
        assert "unsafe" not in part
        assert "http" not in part
        assert "*" not in part


@given(st.text())
def test_parts_give_back_the_text(text):
    parts = split_parts(split_text(text, "en"))
    assert "".join(part.text + part.space for part in parts) == text
    assert all(part.text for part in parts[1:])
    assert all(not part.space.strip() and part.text == part.text.strip() for part in parts)
    assert all(len(part.text.splitlines()) <= 1 for part in parts)


def test_sentences_and_lines():
    text = "  One. Two!\nthree\n\nFour"
    assert split_parts(split_text(text, "en")) == [
        TextPart("", "  "),
        TextPart("One.", " "),
        TextPart("Two!", "\n"),
        TextPart("three", "\n\n"),
        TextPart("Four", ""),
    ]


def test_nothing():
    assert split_parts([]) == []
    assert split_parts(split_text(" \n ", None)) == [TextPart("", " \n ")]
