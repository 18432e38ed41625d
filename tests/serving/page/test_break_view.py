"""The view “Break it”, and a sentence through a run’s past, in a real browser."""

import base64
import json
import re
import shutil

import httpx
import numpy as np
import pytest
import torch
from tests.serving.browser import DESK, PHONE, open_page
from tests.serving.running_server import KEY, make_keys, serve, watch
from tests.serving.small_service import copy_folder
from tests.serving.word_model import write_word_model

from dragoman.decoding.translator import Translator
from dragoman.serving.page.broken_models import MANIFEST, BrokenModels
from dragoman.weights import read_weights, write_weights

SOURCE, TARGET = "the old dog sees a tree", "le vieux chien voit un arbre"
CHANGES = {
    "whole": "",
    "no-mask": "decoder_mask",
    "no-scaling": "scaled",
    "no-residual": "residual",
}
EXAMPLE, REFERENCE = "the dog sees a house", "un chien voit une maison"
SIZES = [{"viewport": DESK}, {"viewport": PHONE, "has_touch": True},
         {"viewport": {"width": 320, "height": 640}, "has_touch": True},
         {"color_scheme": "dark"}]  # fmt: skip


@pytest.fixture(scope="module")
def word_model(tmp_path_factory, vocabularies):
    return write_word_model(tmp_path_factory.mktemp("served") / "words", vocabularies)


@pytest.fixture(scope="module")
def broken(tmp_path_factory, word_model):
    """Models that differ from the whole one as their options say; none is trained anew."""
    place = tmp_path_factory.mktemp("broken")
    models = []
    for number, (name, change) in enumerate(CHANGES.items()):
        folder = copy_folder(word_model, place / name, "en", "fr").rename(place / f"{name}-model")
        (place / name).rmdir()
        folder.rename(place / name)
        config = place / name / "config.toml"
        lines = config.read_text().splitlines()[:-1]  # the last one is its digest
        config.write_text("\n".join(lines).replace(f"\n{change} = true", f"\n{change} = false"))
        published = {"bleu": 25.8 - number, "perplexity": 4.9} if number < 2 else None
        models.append({"name": name, "title": name.replace("-", " "), "change": change,
                       "section": "section 3", "says": "The paper says so.", "published": published,
                       "bleu": 80.0 - 20 * number, "perplexity": 1.5, "seconds": 40.0,
                       "parameters": 1234})  # fmt: skip
    told = {"format": 1, "corpus": "a corpus", "updates": 600, "models": models,
            "examples": [[EXAMPLE, REFERENCE]]}  # fmt: skip
    (place / MANIFEST).write_text(json.dumps(told))
    return place


@pytest.fixture(scope="module")
def url(word_model, broken):
    with serve([word_model], broken=BrokenModels(broken)) as address:
        yield address


def results(page):
    return dict(zip(page.locator(".card h3").all_inner_texts(),
                    page.locator(".card .result").all_inner_texts(), strict=True))  # fmt: skip


def open_break(page, url, more=""):
    page.goto(f"{url}/#view=break{more}")
    page.wait_for_function(
        "() => { const all = [...document.querySelectorAll('.card .result')];"
        " return all.length && all.every(one => one.textContent !== '…'); }"
    )


@pytest.fixture(scope="module")
def translation(word_model):
    return Translator.load(word_model, "cpu").translate(EXAMPLE).text


def test_one_sentence_is_translated_by_all(browser, url, translation):
    with open_page(browser, url) as page:
        open_break(page, url)
        told = results(page)
        assert list(told) == ["whole", "no mask", "no scaling", "no residual"]
        assert told["whole"].split("\n") == [translation, f"reference: {REFERENCE}"]
        assert told["no residual"] != told["whole"]
        assert page.locator(".card canvas").count() == 4
        said = page.locator(".card").nth(1).inner_text()
        assert "60.0 BLEU · perplexity 1.5 · 1,234 parameters · trained in 40 s" in said
        assert "section 3: The paper says so. (there 24.8 BLEU, the base model 25.8)" in said
        assert "(no figure there)" in page.locator(".card").nth(2).inner_text()
        assert f"made to say “{REFERENCE}”" in page.inner_text("#break")
        page.fill(".sentence-input", SOURCE)
        page.wait_for_function(
            f"() => document.querySelector('.card .result').innerText === '{TARGET}'"
        )
        page.wait_for_function("() => location.hash.includes('trial=the+old')")
        # Of this one nobody has a reference: all say what the whole model says.
        page.wait_for_selector(f"text=made to say “{TARGET}”")


def test_models_are_switched_by_keys(browser, url):
    with open_page(browser, url) as page:
        open_break(page, url)
        switch = page.get_by_role("button", name="no mask")
        assert switch.get_attribute("aria-pressed") == "true"
        switch.focus()
        page.keyboard.press("Enter")
        assert list(results(page)) == ["whole", "no scaling", "no residual"]
        assert switch.get_attribute("aria-pressed") == "false"
        page.wait_for_function("() => location.hash.includes('broken=no-scaling')")
        page.reload()
        page.wait_for_selector(".card:nth-child(3) canvas")
        assert list(results(page)) == ["whole", "no scaling", "no residual"]
        for name in ("no scaling", "no residual"):
            page.get_by_role("button", name=name).click()
        assert list(results(page)) == ["whole"]
        page.get_by_role("button", name="no mask").click()
        assert list(results(page)) == ["whole", "no mask"]


def ask(url, **fields):
    return httpx.post(f"{url}/page/api/broken", json=fields, timeout=60)


def test_without_a_mask_the_decoder_sees_later_words(url):
    """Read from what the page is sent: above the diagonal there is nothing, or something."""
    seen = {}
    for name in ("whole", "no-mask"):
        told = ask(url, model=name, text=SOURCE, say=TARGET).json()
        look = next(each for each in told["maps"] if each["kind"] == "decoder")
        length = len(told["sides"]["target"]["pieces"])
        weights = np.frombuffer(base64.b64decode(look["weights"]), np.uint8)
        seen[name] = np.triu(weights.reshape(-1, length, length), 1).max()
    assert seen["whole"] == 0
    assert seen["no-mask"] > 0


def test_wrong_questions_are_refused(url):
    for fields, status, message in [
        ({"model": "none", "text": "a"}, 404, "no broken model is called “none”"),
        ({"model": "../whole", "text": "a"}, 404, "no broken model is called “../whole”"),
        ({"model": "whole", "text": " "}, 400, "“text” is empty; give a sentence"),
        ({"model": "whole"}, 400, "“text” must be a text"),
        ({"model": "whole", "text": "a", "say": 3}, 400, "“say” must be a text"),
        ({"model": "whole", "text": "dog " * 999}, 413, "the sentence is too long to look into"),
    ]:  # fmt: skip
        answer = ask(url, **fields)
        told = answer.json()["error"]["message"]
        assert answer.status_code == status
        assert told.split(":")[0] == message
    foreign = {"Origin": "http://evil.example"}
    answer = httpx.post(
        f"{url}/page/api/broken", json={"model": "whole", "text": "a"}, headers=foreign
    )
    assert answer.status_code == 403


def test_key_is_wanted_for_broken_models_too(word_model, broken):
    with serve([word_model], keys=make_keys(), broken=BrokenModels(broken)) as url:
        assert ask(url, model="whole", text=SOURCE).status_code == 401
        right = {"Authorization": f"Bearer {KEY}"}
        fields = {"model": "whole", "text": SOURCE}
        answer = httpx.post(f"{url}/page/api/broken", json=fields, headers=right, timeout=60)
        assert answer.json()["translation"] == TARGET


def test_without_models_the_command_is_named(browser, word_model):
    with serve([word_model]) as url, open_page(browser, url) as page:
        page.goto(f"{url}/#view=break")
        page.wait_for_selector("text=dragoman paper broken")
        assert ask(url, model="whole", text="a").status_code == 404


def test_view_is_exported(browser, url, tmp_path, translation):
    with open_page(browser, url) as page:
        open_break(page, url)
        for kind in ("svg", "html"):
            page.click("#export")
            with page.expect_download() as download:
                page.click(f"[data-format={kind}]")
            download.value.save_as(tmp_path / f"view.{kind}")
    assert f"whole: {translation}" in (tmp_path / "view.svg").read_text()
    with open_page(browser, tmp_path.as_uri()) as frozen:
        frozen.goto((tmp_path / "view.html").as_uri())
        frozen.wait_for_selector(".card:nth-child(4) canvas")
        assert results(frozen)["whole"].startswith(translation)


@pytest.mark.parametrize("more", SIZES)
def test_break_view_fits(browser, url, more):
    with open_page(browser, url, **more) as page:
        open_break(page, url)
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.fixture(scope="module")
def runs(tmp_path_factory, word_model):
    """A run whose first weights say nothing sensible, and whose last are the finished model’s."""
    place = tmp_path_factory.mktemp("runs")
    run = place / "run"
    shutil.copytree(word_model, run)
    (run / "snapshots").mkdir()
    weights = read_weights(run / "model.safetensors")
    torch.manual_seed(1)
    for step, share in ((1, 0.0), (5, 0.5), (10, 1.0)):
        mixed = {
            name: (share * each + (1 - share) * 0.02 * torch.randn_like(each))
            for name, each in weights.items()
        }
        write_weights(run / "snapshots" / f"step-{step:08d}.safetensors", mixed)
    events = [{"event": "start", "time": 1000.0, "step": 0},
              {"event": "update", "time": 1001.0, "step": 10, "loss": 1.0},
              {"event": "validation", "time": 1002.0, "step": 10, "loss": 1.0, "bleu": 9.0,
               "is_best": True, "probes": [[SOURCE, TARGET, TARGET]]}]  # fmt: skip
    (run / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return place


@pytest.fixture
def past(browser, runs):
    with watch([runs]) as url, open_page(browser, url) as page:
        page.goto(f"{url}/#view=training")
        page.wait_for_selector(f".stages .result:has-text('{TARGET}')")
        yield page


def stage_of(page):
    return page.inner_text(".stages output")


def test_sentence_is_followed_from_the_first_update(past, translation):
    """The probe of the log is the first sentence; the slider is a slider, so keys work."""
    assert stage_of(past) == "the finished model: the best weights"
    assert past.input_value(".stages .sentence-input") == SOURCE
    assert "4 stages kept" in past.inner_text(".stages")
    past.focus(".stages .scrubber")
    past.keyboard.press("Home")
    assert stage_of(past) == "update 1"
    past.wait_for_function(
        f"() => document.querySelector('.stages .result').innerText !== '{TARGET}'"
    )
    past.wait_for_function("() => location.hash.includes('stage=update+1')")
    first = past.eval_on_selector(".stages canvas", "one => one.toDataURL()")
    for name in ("update 5", "update 10"):
        past.keyboard.press("ArrowRight")
        assert stage_of(past) == name
    past.wait_for_function(
        f"() => document.querySelector('.stages .result').innerText === '{TARGET}'"
    )
    assert past.eval_on_selector(".stages canvas", "one => one.toDataURL()") != first
    past.fill(".stages .sentence-input", EXAMPLE)
    past.wait_for_function(
        "text => document.querySelector('.stages .result').innerText === text", arg=translation
    )


def test_run_is_played(past):
    past.get_by_role("button", name="Play").click()
    past.wait_for_function(
        "() => document.querySelector('.stages output').textContent === 'update 1'"
    )
    past.wait_for_function(
        "() => document.querySelector('.stages output').textContent.startsWith('the finished')"
    )
    past.wait_for_selector(".stages button:has-text('Play')")


def test_what_was_not_kept_is_refused(runs):
    with watch([runs]) as url:

        def look(**fields):
            return httpx.post(f"{url}/page/api/runs/0/look", json=fields, timeout=60)

        stages = httpx.get(f"{url}/page/api/runs/0/stages").json()["stages"]
        names = ["update 1", "update 5", "update 10", "model"]
        assert [each["name"] for each in stages] == names
        assert look(text=SOURCE, stage="model").json()["translation"] == TARGET
        for stage in ("update 2", "../model", ""):
            answer = look(text=SOURCE, stage=stage)
            assert answer.status_code == 404
            assert re.search(
                f"has not kept “{re.escape(stage)}”", answer.json()["error"]["message"]
            )
        answer = httpx.post(f"{url}/page/api/runs/7/look", json={"text": "a", "stage": "model"})
        assert answer.status_code == 404


@pytest.mark.parametrize("more", SIZES[1:])
def test_stages_fit(browser, runs, more):
    with watch([runs]) as url, open_page(browser, url, **more) as page:
        page.goto(f"{url}/#view=training")
        page.wait_for_selector(f".stages .result:has-text('{TARGET}')")
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0
