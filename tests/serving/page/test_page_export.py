"""Pages written from the terminal hold what was found, and open in a browser without a server."""

import base64
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.serving.browser import open_browser, open_page

from dragoman.decoding.translator import Translator
from dragoman.insight.attention import look_at
from dragoman.insight.explanation import explain
from dragoman.insight.picture import mean_heads
from dragoman.models.build import build_model
from dragoman.models.recurrent.options import Seq2seqOptions
from dragoman.serving.page.page_export import write_explanation_page, write_look_page
from dragoman.weights import vocabulary_of

SOURCE, TARGET = "The old dog sees.", "Le vieux chien."
NASTY = "</script><script>alert(1)</script> <!-- $& @SNAPSHOT@ “&lt;”"


@pytest.fixture(scope="module")
def translator(tiny_folder):
    return Translator.load(tiny_folder.path, "cpu")


def read_snapshot(page: str) -> dict:
    begin = page.index('id="snapshot">') + len('id="snapshot">')
    return json.loads(page[begin : page.index("</script>", begin)])


def test_look_has_the_maps_that_were_seen(translator):
    seen = look_at(translator, SOURCE, translation=TARGET, kinds=["decoder"], layers=[2])
    snapshot = read_snapshot(write_look_page(translator, seen))
    (one,) = snapshot["attention"]["maps"]
    assert (one["kind"], one["layer"]) == ("decoder", 2)
    weights = np.frombuffer(base64.b64decode(one["weights"]), np.uint8) / 255
    np.testing.assert_allclose(weights, seen.maps[0].weights.ravel(), atol=1 / 255)
    assert snapshot["state"]["view"] == "attention"
    assert snapshot["state"]["kind"] == "decoder"
    assert snapshot["why"] is None


def test_heads_can_be_averaged(translator):
    seen = look_at(translator, SOURCE, translation=TARGET, kinds=["cross"])
    mean = replace(seen, maps=tuple(mean_heads(seen.maps)))
    maps = read_snapshot(write_look_page(translator, mean))["attention"]["maps"]
    assert [one["numHeads"] for one in maps] == [1, 1]


def test_explanation_has_all_accounts_and_the_attention(translator):
    found = explain(translator, SOURCE, translation=TARGET, num_masks=20)
    snapshot = read_snapshot(write_explanation_page(translator, found))
    np.testing.assert_allclose(snapshot["why"]["rise"], found.rise.values, atol=6e-6)
    assert snapshot["state"]["view"] == "why"
    assert snapshot["attention"]["maps"]
    (sentence,) = snapshot["sentences"]
    assert (sentence["source"], sentence["text"]) == (SOURCE, TARGET)
    assert sentence["alignment"]
    assert [each["name"] for each in snapshot["page"]["languages"]] == ["English", "French"]


def test_languages_may_be_unknown(translator):
    facts = replace(translator.folder.facts, source_language=None, target_language=None)
    nameless = Translator(
        replace(translator.folder, facts=facts), translator.model, torch.device("cpu")
    )
    seen = look_at(nameless, SOURCE, translation=TARGET)
    snapshot = read_snapshot(write_look_page(nameless, seen))
    assert snapshot["path"] == ["source", "target"]


def test_no_text_breaks_out(translator):
    found = explain(translator, NASTY, translation=NASTY, num_masks=64)
    page = write_explanation_page(translator, found)
    assert read_snapshot(page)["sentences"][0]["source"] == NASTY
    assert page.count("<script") == 2


def test_pages_open_without_a_server(translator, vocabularies, tmp_path):
    shape = Seq2seqOptions(num_layers=1, model_dim=8)
    torch.manual_seed(1)
    model = build_model(shape, vocabulary_of(vocabularies)).eval()
    plain = Translator(replace(translator.folder, options=shape), model, torch.device("cpu"))
    found = explain(translator, NASTY, translation=TARGET, num_masks=64)
    pages = {
        "look": write_look_page(translator, look_at(translator, SOURCE, translation=TARGET)),
        "gradient": write_look_page(plain, look_at(plain, SOURCE, translation=TARGET)),
        "why": write_explanation_page(translator, found),
        "plain-why": write_explanation_page(
            plain, explain(plain, SOURCE, translation=TARGET, num_masks=20)
        ),
    }
    with open_browser() as browser:
        for name, text in pages.items():
            path = tmp_path / f"{name}.html"
            path.write_text(text, encoding="utf-8")
            with open_page(browser, tmp_path.as_uri()) as page:
                page.goto(path.as_uri())
                page.wait_for_selector("body[data-ready]")
                view = "why" if "why" in name else "attention"
                assert page.get_attribute(f"#tab-{view}", "aria-selected") == "true"
                assert page.inner_text("#translation") == TARGET
                page.wait_for_selector(f"#{view} canvas")
                assert page.is_hidden("#tab-training")
                if name == "gradient":
                    assert "This model has no attention" in page.inner_text("#attention .caption")
                if name == "plain-why":
                    assert "no attention to the source" in page.inner_text("#why .accounts")
                if name == "why":
                    assert page.input_value("#text") == NASTY
