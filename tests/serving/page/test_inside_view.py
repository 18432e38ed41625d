"""The view “Inside” in a real browser: steps with the model’s numbers, beam tree, temperature."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from urllib.parse import quote

import pytest
import torch
from tests.models.variants import FAMILIES
from tests.serving.browser import DESK, PHONE, open_page
from tests.serving.running_server import serve
from tests.serving.word_model import write_word_model

from dragoman.decoding.translator import Translator
from dragoman.folder import Facts, ModelFolder
from dragoman.insight.beam_tree import grow_tree
from dragoman.insight.machine.code_lines import find_code
from dragoman.insight.machine.recording import record_pair
from dragoman.insight.sampling import draw_samples, find_next_words
from dragoman.models.build import build_model
from dragoman.options import to_plain
from dragoman.serving.page.page_document import read_asset
from dragoman.weights import vocabulary_of, write_model

SOURCE, TARGET = "the old dog sees a tree", "le vieux chien voit un arbre"
SMALL = {"width": 320, "height": 640}
FIRST, LAST = "source.subwords", "output.next"


@pytest.fixture(scope="module")
def folder(tmp_path_factory, vocabularies):
    return write_word_model(tmp_path_factory.mktemp("served") / "words", vocabularies)


@pytest.fixture(scope="module")
def url(folder):
    with serve([folder]) as address:
        yield address


@pytest.fixture(scope="module")
def translator(folder):
    return Translator.load(folder, "cpu")


@pytest.fixture(scope="module")
def recording(translator):
    return record_pair(translator, SOURCE, TARGET)


@pytest.fixture
def page(browser, url):
    with open_page(browser, url) as opened:
        yield opened


def visit(page, url, **state):
    parts = {"text": SOURCE, "from": "en", "to": "fr", "view": "inside"} | state
    address = "&".join(f"{name}={quote(str(value))}" for name, value in parts.items())
    page.goto("about:blank")
    page.goto(f"{url}/#{address}")
    page.wait_for_selector("#translation .word", state="attached")
    settle(page)


def settle(page):
    """Wait until numbers are there."""
    page.wait_for_function(
        "() => !document.querySelector('#inside .busy, #inside.busy')"
        " && ![...document.querySelectorAll('#inside .numbers-line')]"
        ".some(each => each.textContent === '…')"
    )


def open_step(page, url, step, **state):
    visit(page, url, step=step, **state)
    page.wait_for_selector("#inside .panel h2")


def num(value: float) -> str:
    """Write a number as the page does."""
    if value == -math.inf:
        return "−∞"
    size = abs(value)
    bounds = ((99.95, 0), (9.995, 1), (0.0995, 2), (0.00995, 3), (5e-5, 4))
    digits = next((digits for least, digits in bounds if size >= least), 2)
    text = f"{size:.{digits}f}"
    return f"−{text}" if value < 0 and float(text) else text


def sums(page) -> list[str]:
    return page.locator("#inside .sum .numbers-line").all_inner_texts()


def near(text: str, value: float):
    """Whether a number as written is the model’s, to the digits written."""
    shown = float(text.replace("−", "-"))
    digits = len(text.partition(".")[2])
    assert abs(shown - value) <= 0.5 * 10**-digits + 1e-4, (text, value)


def result_of(line: str) -> str:
    return line.rsplit("= ", 1)[1]


SHOWN = {
    "source.embedding": ("source", "words"),
    "source.position": ("source", "x"),
    "encoder.1.self.norm": ("encoder.1.self", "normed"),
    "encoder.1.self.projections": ("encoder.1.self", "query"),
    "encoder.1.self.scores": ("encoder.1.self", "scores"),
    "encoder.1.self.softmax": ("encoder.1.self", "weights"),
    "encoder.1.self.average": ("encoder.1.self", "contexts"),
    "encoder.1.self.join": ("encoder.1.self", "output"),
    "encoder.1.self.add": ("encoder.1.self", "result"),
    "encoder.1.feed.inner": ("encoder.1.feed", "active"),
    "encoder.1.feed.outer": ("encoder.1.feed", "output"),
    "encoder.norm.norm": ("encoder.norm", "result"),
    "target.position": ("target", "x"),
    "decoder.2.self.softmax": ("decoder.2.self", "weights"),
    "decoder.2.cross.projections": ("decoder.2.cross", "query"),
    "decoder.2.cross.softmax": ("decoder.2.cross", "weights"),
    "decoder.2.cross.average": ("decoder.2.cross", "contexts"),
    "decoder.2.feed.add": ("decoder.2.feed", "result"),
}


@pytest.mark.slow
def test_numbers_are_those_of_the_model(page, url, recording):
    for step, (part, name) in SHOWN.items():
        for head, row, column in ((2, 2, 1), (4, 3, 2)):
            open_step(page, url, step, head=head, cell=f"{row}.{column}")
            numbers = recording.parts[part].numbers[name]
            value = numbers[head - 1, row, column] if numbers.ndim == 3 else numbers[row, column]
            near(result_of(sums(page)[-1]), value)


def test_every_number_says_its_sum(page, url, recording):
    open_step(page, url, "encoder.1.self.softmax", head=2, cell="2.3")
    numbers = recording.parts["encoder.1.self"].numbers
    product, scaled, weight = sums(page)
    assert product.startswith("q·k = ")
    assert result_of(product) == num(numbers["products"][1, 2, 3])
    root = math.sqrt(recording.options.head_key_dim)
    assert scaled == f"÷ √8 = ÷ {num(root)} = {num(numbers['scores'][1, 2, 3])}"
    assert weight.startswith(f"softmax = exp({num(numbers['scores'][1, 2, 3])})")
    assert result_of(weight) == num(numbers["weights"][1, 2, 3])
    page.click("#inside .chain >> text=V >> nth=1")
    settle(page)
    assert sums(page)[0].startswith("z = ")
    page.click("#inside .sum summary")
    page.wait_for_selector("#inside .sum tbody tr")
    rows = page.locator("#inside .sum tbody tr").all_inner_texts()
    assert len(rows) == len(recording.source)


def test_masked_scores_are_minus_infinity(page, url, recording):
    open_step(page, url, "decoder.1.self.mask", cell="1.4")
    assert "−∞" in sums(page)[-1]
    open_step(page, url, "decoder.1.self.softmax", cell="1.4")
    assert sums(page)[-1].endswith("= 0")


@pytest.mark.slow
def test_all_steps_are_walked_by_button_and_by_keys(page, url):
    visit(page, url, step=FIRST, place=7)
    titles = [page.inner_text("#inside h2")]
    for count in range(200):
        button = page.locator("[data-go=next]")
        if button.inner_text().startswith("Next word"):
            break
        if count % 2:
            button.click()
        else:
            page.keyboard.press("ArrowRight")
        settle(page)
        titles.append(page.inner_text("#inside h2"))
        assert page.locator("#inside .equation").inner_text()
    assert len(set(titles)) == len(titles)
    assert any("Encoder layer 1, self-attention: Softmax" in title for title in titles)
    assert any("Decoder layer 2, cross-attention" in title for title in titles)
    assert titles[-1] == "Output: Next word"
    page.click("[data-go=next]")
    settle(page)
    assert page.inner_text("#inside h2") == "Translation so far: Subwords"
    assert page.locator("#inside .subwords li").count() == 8  # one more than before
    page.keyboard.press("ArrowLeft")
    settle(page)
    assert "Encoder" in page.inner_text("#inside h2")


def test_step_head_and_cell_are_in_the_address(page, url):
    visit(page, url)
    page.focus(".map [data-step='decoder.1.cross.projections']")
    page.keyboard.press("Enter")
    settle(page)
    page.click("#inside .chain >> text=Softmax")
    settle(page)
    page.select_option("#inside [name=head]", "3")
    page.focus("#inside canvas")
    page.keyboard.press("ArrowUp")
    page.wait_for_function(
        "() => location.hash.includes('cell=') && location.hash.includes('head=3')"
    )
    assert "step=decoder.1.cross.softmax" in page.evaluate("location.hash")
    before = sums(page)
    page.reload()
    page.wait_for_selector("#inside .numbers-line")
    settle(page)
    assert page.input_value("#inside [name=head]") == "3"
    assert sums(page) == before
    here = page.locator(".map [aria-current=step]")
    assert here.get_attribute("data-step") == "decoder.1.cross.projections"


def test_a_cell_is_chosen_by_pointer(page, url):
    open_step(page, url, "encoder.1.self.softmax", cell="0.0")
    before = page.inner_text("#inside .sum h3")
    page.click("#inside canvas", position={"x": 300, "y": 150})
    script = "before => document.querySelector('#inside .sum h3').innerText !== before"
    page.wait_for_function(script, arg=before)


def test_layers_are_chosen(page, url):
    open_step(page, url, "decoder.1.self.softmax")
    page.select_option("#inside .map-box select", "2")
    settle(page)
    assert page.inner_text("#inside h2") == "Decoder layer 2, masked self-attention: Softmax"


def test_decoder_shows_what_was_said_up_to_a_word(page, url, recording):
    open_step(page, url, "decoder.1.self.softmax", place=3)
    label = page.get_attribute("#inside canvas", "aria-label")
    assert label.startswith("weights, head 1: 3 × 3 numbers")
    slider = page.locator("[aria-label='How far the translation is']")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert "4 × 4 numbers" in page.get_attribute("#inside canvas", "aria-label")
    open_step(page, url, "target.subwords", place=3)
    said = page.locator("#inside .subwords b").all_inner_texts()
    assert said[0] == "⟨start⟩"
    assert len(said) == 3


def test_code_and_paper_are_named(page, url):
    open_step(page, url, "encoder.1.self.softmax")
    found = find_code()["softmax"]
    summary = page.locator("#inside .source summary")
    assert summary.inner_text().startswith(f"{found.file}, line {found.line}")
    summary.click()
    assert "softmax(dim=-1)" in page.inner_text("#inside .source .here")
    link = page.locator("#inside .code a")
    assert link.inner_text() == "§ 3.2.1, equation 1"
    assert link.get_attribute("href").endswith("#S3.SS2.SSS1")


def test_next_word_is_chosen_by_its_probability(page, url, recording):
    logits = recording.parts["output"].numbers["logits"][2]
    best = int(logits.argmax())
    open_step(page, url, "output.softmax", place=3)
    chances = page.locator("#inside .next-words .chance").all_inner_texts()
    probability = math.exp(logits[best]) / sum(math.exp(each) for each in logits)
    assert chances[0] == f"{probability * 100:.0f} %"
    near(result_of(sums(page)[-1]), probability)
    open_step(page, url, "output.logits", place=3)
    near(result_of(sums(page)[0]), logits[best])
    page.locator("#inside .next-words button").nth(1).click()
    settle(page)
    near(result_of(sums(page)[0]), sorted(logits)[-2])
    open_step(page, url, LAST, place=3)
    assert "The most probable next subword is" in page.inner_text("#inside .sum")


def test_file_works_without_a_server(page, browser, url, tmp_path, recording):
    open_step(page, url, "encoder.1.self.softmax", head=2, cell="2.3")
    shown = sums(page)
    page.click("#export")
    with page.expect_download() as download:
        page.click("#export-menu [data-format=html]")
    path = tmp_path / "inside.html"
    download.value.save_as(path)
    with open_page(browser, path.as_uri()) as opened:
        opened.goto(path.as_uri())
        opened.wait_for_selector("#inside .numbers-line")
        assert sums(opened) == shown
        for _ in range(200):
            if opened.locator("[data-go=next]").is_disabled():
                break
            opened.click("[data-go=next]")
            assert not opened.inner_text("#notice")
        assert opened.inner_text("#inside h2") == "Output: Next word"
        opened.click(".map [data-step='decoder.2.cross.projections']")
        opened.click("#inside .chain >> text=Softmax")
        weights = recording.parts["decoder.2.cross"].numbers["weights"][1]
        near(result_of(sums(opened)[-1]), weights[-1].max())


def test_pictures_are_exported(page, url):
    for state in ({"step": "encoder.1.self.softmax"}, {"show": "tree"}, {"show": "samples"}):
        visit(page, url, **state)
        page.wait_for_selector("#inside canvas, #inside .drawn li", state="attached")
        page.wait_for_timeout(200)
        page.click("#export")
        with page.expect_download() as download:
            page.click("#export-menu [data-format=svg]")
        content = download.value.path().read_text()
        assert content.startswith("<svg")
        assert SOURCE in content


def test_tree_is_that_of_the_search(page, url, translator):
    visit(page, url, show="tree", grow=2)
    page.wait_for_selector("#inside .tree .result:has-text('score')")
    tree = grow_tree(translator, SOURCE, 2)
    told = page.inner_text("#inside .tree .result")
    assert told == f"{tree.text} (score {tree.best.score:.2f})".replace("-", "−")
    page.focus("#inside .tree canvas")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "() => document.querySelector('#inside .tree .readout').innerText.includes('log')"
    )
    readout = page.inner_text("#inside .tree .readout")
    log, total = re.search(r"log (−?[\d.]+); with all before it (−?[\d.]+)\.", readout).groups()
    place = -1
    for step in range(3):  # the first that goes on from the first
        place = next(index for index, node in enumerate(tree.nodes)
                     if (node.step, node.parent) == (step, place))  # fmt: skip
    near(log, tree.nodes[place].log_probability)
    near(total, tree.nodes[place].total)
    page.select_option("#inside .tree select", "8")
    page.wait_for_selector("#inside .tree canvas[aria-label^='Beam tree, beam 8']")


def test_tree_grows_step_by_step_and_plays(page, url):
    visit(page, url, show="tree", grown=2)
    page.wait_for_selector("#inside .tree .result:has-text('step 2 of')")
    page.click("[aria-label='Step on']")
    page.wait_for_selector("#inside .tree .result:has-text('step 3 of')")
    page.click("[aria-label=Play]")
    page.wait_for_selector("#inside .tree .result:has-text('step 5 of')")
    page.click("[aria-label=Stop]")
    page.keyboard.press("Tab")
    assert page.evaluate("location.hash").count("grown=") == 1


def test_greedy_search_is_set_against_a_beam(page, url, translator):
    visit(page, url, show="tree")
    page.click("text=Greedy against beam 4")
    page.wait_for_selector("#inside .versus dd >> nth=1")
    texts = page.locator("#inside .versus dd").all_inner_texts()
    trees = [grow_tree(translator, SOURCE, beam) for beam in (1, 4)]
    for told, tree in zip(texts, trees, strict=True):
        assert told.startswith(tree.text)
        assert f"{tree.best.log_probability:.2f}".replace("-", "−") in told
    verdict = page.inner_text("#inside .versus p >> nth=0")
    is_same = trees[0].text == trees[1].text
    assert ("Both find the same here." in verdict) == is_same


def list_examples() -> list[tuple[str, str, str]]:
    """Read the sentences that the page offers where greedy search goes wrong."""
    code = read_asset("tree.js").content.decode()
    return re.findall(r'"(\w\w) (\w\w)": "([^"]+)"', code)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target", "sentence"), list_examples())
def test_greedy_search_fails_where_the_page_says_so(
    source, target, sentence, tmp_path, monkeypatch
):
    """With the models that come along: the beam finds what the same model finds more probable."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    command = ["pull", f"{source}-{target}", "--source", "box"]
    subprocess.run([sys.executable, "-m", "dragoman", *command], check=True, capture_output=True)
    translator = Translator.load(f"{source}-{target}", "cpu")
    greedy, wide = (grow_tree(translator, sentence, beam) for beam in (1, 4))
    assert greedy.text != wide.text
    assert wide.best.log_probability > greedy.best.log_probability
    if (source, target) == ("fr", "en"):
        assert greedy.text == "Jane visiting Africa in September."
        assert wide.text == "Jane is visiting Africa in September."


def test_example_is_tried_at_once(page, url):
    visit(page, url, show="tree")
    page.click("#inside .versus .link")
    page.wait_for_selector("#inside .versus dd >> nth=1")
    assert page.input_value("#text") == "He broke his leg."


def test_temperature_flattens_the_distribution_and_draws(page, url, translator):
    visit(page, url, show="samples", place=2)
    page.wait_for_selector("#inside .drawn li")
    place = find_next_words(translator, SOURCE, TARGET)[1]

    def expected(heat):
        normaliser = place.normalisers[round(heat * 10) - 1]
        return math.exp(max(place.logits) / heat - normaliser)

    def shown():
        text = page.locator("#inside .halves .chance").first.inner_text()
        return float(re.sub(r"[^\d.]", "", text)) / 100

    assert shown() == pytest.approx(expected(1.0), abs=0.006)
    drawn = draw_samples(translator, SOURCE, temperature=1.0, num_samples=6, seed=1)
    texts = page.locator("#inside .drawn li").all_inner_texts()
    assert [text.rsplit(" log-probability", 1)[0] for text in texts] == [
        each.text for each in drawn
    ]
    page.focus("[aria-label=Temperature]")
    page.keyboard.press("End")
    page.wait_for_function("() => document.querySelector('.heat output').innerText === '2.0'")
    assert shown() == pytest.approx(expected(2.0), abs=0.006)
    page.wait_for_function(
        "before => document.querySelector('#inside .drawn').innerText !== before",
        arg="\n".join(texts),
    )
    page.click("text=Draw again")
    page.wait_for_function("() => location.hash.includes('seed=2')")


@pytest.mark.slow
@pytest.mark.parametrize(("size", "scheme"), [(SMALL, "light"), (PHONE, "dark"), (DESK, "dark")])
def test_page_never_scrolls_sideways(browser, url, size, scheme):
    with open_page(browser, url, viewport=size, color_scheme=scheme) as page:
        views = [{"step": step} for step in ("source.subwords", "encoder.1.self.projections",
                 "encoder.1.feed.inner", "decoder.1.self.mask", "output.logits", LAST)]  # fmt: skip
        for state in (*views, {"show": "tree"}, {"show": "samples"}):
            visit(page, url, **state)
            page.wait_for_timeout(150)
            assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, state
        if size != DESK:
            small = page.evaluate(
                """() => [...document.querySelectorAll('#inside :is(.walk, .chain) button')]
                .filter(one => one.offsetParent && one.offsetHeight < 44).length"""
            )
            assert not small


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_anybody(browser, url, scheme):
    axe = pytest.importorskip("tests.serving.axe", reason="the look for barriers is not here yet")
    with open_page(browser, url, color_scheme=scheme, bypass_csp=True) as page:
        views = [{"step": step} for step in (FIRST, "encoder.1.self.projections",
                 "decoder.1.self.mask", "output.softmax", LAST)]  # fmt: skip
        for state in (*views, {"show": "tree"}, {"show": "samples"}):
            visit(page, url, **state)
            page.evaluate(
                "document.querySelectorAll('#inside details').forEach(d => d.open = true)"
            )
            assert not axe.find_barriers(page), state


def write_untrained(path, shape, vocabularies):
    """Write the folder of an untrained model whose biases and gains do something."""
    torch.manual_seed(3)
    model = build_model(shape, vocabulary_of(vocabularies)).eval()
    with torch.no_grad():
        for each in model.parameters():
            if each.dim() == 1:
                each.add_(torch.randn(each.shape) / 3)
    config = {"model": to_plain(shape), "search": {"beam_size": 2, "max_extra_tokens": 4}}
    facts = Facts(
        source_language="en", target_language="fr", longest_source=40, training_pairs=1, steps=1,
        weights="best", scores={},
    )  # fmt: skip
    folder = ModelFolder(
        path=path, config=config, options=shape, vocabularies=vocabularies, facts=facts
    )
    write_model(path, folder, model)
    return path


POST_NORM = (
    *(("target.position", "x"), ("encoder.2.self.projections", "value")),
    *(("encoder.2.self.join", "output"), ("encoder.2.self.add", "sum")),
    *(("encoder.2.self.add", "result"), ("decoder.1.self.scores", "scaled")),
    *(("decoder.1.cross.projections", "key"), ("decoder.1.feed.inner", "inner")),
    *(("decoder.1.feed.outer", "output"), ("decoder.2.feed.add", "result")),
)


def test_other_transformers_tell_their_sums(browser, tmp_path, vocabularies):
    """One with norms behind the sub-layers, biases, Marian’s positions and another activation."""
    shape = replace(FAMILIES["opus"], positions="marian")
    path = write_untrained(tmp_path / "post", shape, vocabularies)
    translator = Translator.load(path, "cpu")
    with serve([path]) as address, open_page(browser, address) as page:
        visit(page, address)
        page.wait_for_selector("#inside .panel h2")
        recording = record_pair(translator, SOURCE, page.inner_text("#translation").strip())
        assert page.locator(".map .box").count() == 7 + 12
        for step, name in POST_NORM:
            open_step(page, address, step, matrix=name, head=2, cell="1.0")
            numbers = recording.parts[step.rsplit(".", 1)[0]].numbers[
                "scores" if name == "scaled" else name
            ]
            value = numbers[1, 1, 0] if numbers.ndim == 3 else numbers[1, 0]
            near(result_of(sums(page)[-1]), value)


def test_model_that_cannot_be_followed_says_so(browser, tmp_path, vocabularies):
    path = write_untrained(tmp_path / "rnn", FAMILIES["rnnsearch"], vocabularies)
    with serve([path]) as address, open_page(browser, address) as page:
        visit(page, address)
        page.wait_for_selector("#inside .empty:has-text('no Transformer')")
        page.check("#inside [value=tree]", force=True)
        page.wait_for_selector("#inside .tree .result:has-text('score')")


def test_too_long_a_sentence_says_so(page, url):
    visit(page, url, text="the dog sees a tree " * 12)
    page.wait_for_selector("#inside .empty:has-text('too long to look into')")


def test_nothing_is_shown_without_a_text(page, url):
    page.goto(f"{url}/#view=inside")
    page.wait_for_selector("#inside .empty:has-text('Type a text above')")
