"""The routes of the view “Inside” over HTTP: numbers equal to the recording, and refusals."""

import base64
import json
import math
from dataclasses import replace

import httpx
import numpy as np
import pytest
from tests.models.variants import FAMILIES
from tests.serving.running_server import serve
from tests.serving.small_service import copy_folder

from dragoman.decoding.translator import Translator
from dragoman.insight.beam_tree import grow_tree
from dragoman.insight.machine.code_lines import find_code
from dragoman.insight.machine.recording import record_pair
from dragoman.insight.sampling import draw_samples
from dragoman.serving.page.page_inside import LONGEST_INSIDE, look_inside
from dragoman.serving.page.page_request import SentencePair

SOURCE, TARGET = "The old dog sees.", "Le vieux chien."
PAIR = {"model": "en-fr", "source": SOURCE, "translation": TARGET}


@pytest.fixture(scope="module")
def folder(tiny_folder, tmp_path_factory):
    return copy_folder(tiny_folder.path, tmp_path_factory.mktemp("served"), "en", "fr")


@pytest.fixture(scope="module")
def url(folder):
    with serve([folder]) as address:
        yield address


@pytest.fixture(scope="module")
def translator(folder):
    return Translator.load(folder, "cpu")


def post(url, name, **body) -> httpx.Response:
    return httpx.post(f"{url}/page/api/{name}", json=PAIR | body, timeout=60)


def read_matrix(told) -> np.ndarray:
    entries = np.frombuffer(base64.b64decode(told["entries"]), "<f4")
    return entries.reshape(told["shape"])


def complaint(answer) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["message"]


def test_outline_tells_shape_subwords_parts_and_code(url, translator):
    told = post(url, "inside").json()
    recording = record_pair(translator, SOURCE, TARGET)
    assert tuple(told["said"]) == recording.said
    assert tuple(told["ids"]["source"]) == recording.source_ids
    assert list(told["parts"]) == list(recording.parts)
    assert told["shape"]["heads"] == translator.folder.options.num_heads
    assert told["remark"] == ""
    assert told["hasPositions"] is True
    assert told["code"]["softmax"]["line"] == find_code()["softmax"].line
    assert told["paper"].startswith("https://arxiv.org/")


def test_numbers_of_every_part_arrive_as_they_were_recorded(url, translator):
    recording = record_pair(translator, SOURCE, TARGET)
    for name, part in recording.parts.items():
        answer = post(url, "inside", part=name)
        assert len(answer.content) < 4_000_000
        numbers = {key: read_matrix(each) for key, each in answer.json()["numbers"].items()}
        assert numbers.keys() == part.numbers.keys() - {"logits"}
        for key, found in numbers.items():
            np.testing.assert_allclose(found, part.numbers[key], rtol=1e-5, atol=1e-5)


def test_terms_sum_to_the_number(url, translator):
    recording = record_pair(translator, SOURCE, TARGET)
    asked = {"part": "encoder.1.self", "map": "key", "row": 2, "column": 1, "head": 1}
    told = post(url, "terms", **asked).json()
    left, right = (np.frombuffer(base64.b64decode(told[side]), "<f4") for side in ("left", "right"))
    shown = recording.parts["encoder.1.self"].numbers["key"][1, 2, 1]
    assert left @ right + told["bias"] == pytest.approx(shown, abs=1e-5)


def test_output_has_the_probabilities_of_the_model(url, translator):
    told = post(url, "inside", part="output").json()
    logits = record_pair(translator, SOURCE, TARGET).parts["output"].numbers["logits"]
    one = told["temperatures"].index(1.0)
    for place, scores in zip(told["places"], logits, strict=True):
        expected = np.exp(scores - np.logaddexp.reduce(scores.astype(np.float64)))[place["ids"]]
        shown = [math.exp(each - place["normalisers"][one]) for each in place["logits"]]
        np.testing.assert_allclose(shown, expected, atol=1e-4)


@pytest.mark.parametrize("beam", [1, 4, 8])
def test_tree_is_the_one_that_is_grown(url, translator, beam):
    told = post(url, "tree", beam=beam).json()
    tree = grow_tree(translator, SOURCE, beam)
    assert (told["text"], told["beam"]) == (tree.text, beam)
    assert told["score"] == pytest.approx(tree.best.score, abs=1e-5)
    expected = [[each.step, each.parent, each.fate, each.is_best] for each in tree.nodes]
    assert [[node[0], node[2], node[5], node[7]] for node in told["nodes"]] == expected
    totals = [each.total for each in tree.nodes]
    assert [node[4] for node in told["nodes"]] == pytest.approx(totals, abs=1e-4)


def test_samples_are_those_of_the_temperature(url, translator):
    told = post(url, "samples", temperature=70, count=3, seed=5).json()
    drawn = draw_samples(translator, SOURCE, temperature=0.7, num_samples=3, seed=5)
    assert [text for text, _ in told["samples"]] == [each.text for each in drawn]
    assert len(told["places"]) == len(record_pair(translator, SOURCE, TARGET).said)


@pytest.mark.parametrize(
    ("name", "body", "status", "message"),
    [
        ("inside", {"part": "encoder.9.self"}, 400, "there is no part “encoder.9.self”"),
        ("inside", {"model": "nobody"}, 404, "no model is called “nobody”"),
        ("inside", {"source": " "}, 400, "the sentence is empty"),
        ("inside", {"source": "the dog " * 60}, 413, "the sentence is too long to look into"),
        ("inside", {"translation": "le chien " * 60}, 413, "the translation is too long"),
        ("terms", {"part": "source", "map": "query"}, 400, "there is no linear map “query”"),
        ("terms", {"part": "output", "map": "logit", "row": 999}, 400, "there is no entry (999"),
        ("terms", {"part": "output", "map": "logit", "row": -1}, 400, "“row” must be from 0"),
        ("terms", {"map": "query"}, 400, "“part” must be a text"),
        ("tree", {"beam": 9}, 400, "“beam” must be from 1 to 8"),
        ("tree", {"source": "the dog " * 60}, 413, "the sentence is too long to look into"),
        ("tree", {"source": ""}, 400, "the sentence to translate is empty"),
        ("samples", {"temperature": 4}, 400, "“temperature” must be from 5 to 200"),
        ("samples", {"temperature": 201}, 400, "“temperature” must be from 5 to 200"),
        ("samples", {"count": 13}, 400, "“count” must be from 1 to 12"),
        ("samples", {"source": ""}, 400, "the sentence is empty"),
    ],
)
def test_bad_requests_are_refused(url, name, body, status, message):
    found = complaint(post(url, name, **body))
    assert found[0] == status
    assert message in found[1]


def test_other_sites_are_refused(url):
    for name in ("inside", "terms", "tree", "samples"):
        headers = {"Sec-Fetch-Site": "cross-site"}
        answer = httpx.post(f"{url}/page/api/{name}", json=PAIR, headers=headers)
        assert answer.status_code == 403


def test_longest_sentence_that_is_allowed_is_answered(url, translator):
    words = "dog " * (LONGEST_INSIDE + 20)
    ids = translator.folder.vocabularies.source.encode([words])[0][: LONGEST_INSIDE - 1]
    text = translator.folder.vocabularies.source.decode([ids])[0]
    assert len(translator.encode(text)) == LONGEST_INSIDE
    assert post(url, "inside", source=text).status_code == 200


def test_model_that_cannot_be_followed_says_what_can_be_seen(translator_of):
    translator = translator_of(FAMILIES["rnnsearch"])
    pair = SentencePair("any", SOURCE, TARGET)
    told = look_inside(translator, pair, "")
    assert list(told) == ["remark"]
    assert "no Transformer (rnnsearch)" in told["remark"]
    json.dumps(told)
    # The tree and the samples work with every family.
    options = replace(translator.options, beam_size=2, search_again=False)
    assert (
        grow_tree(translator, SOURCE, 2).text == translator.translate(SOURCE, options=options).text
    )
    assert len(draw_samples(translator, SOURCE, temperature=1.0, num_samples=2, seed=1)) == 2
