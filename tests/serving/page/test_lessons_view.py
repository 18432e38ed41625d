"""Lessons in a real browser: predict, run, explain; terms, size, print."""

import pytest
from tests.serving.browser import PHONE, open_page
from tests.serving.running_server import serve
from tests.serving.small_service import copy_folder
from tests.serving.word_model import write_word_model

NARROW = {"width": 320, "height": 640}
TEXTS = """async () => {
  const { lessons } = await import("./page/lesson_texts.js");
  const { explained } = await import("./page/meanings.js");
  const said = [];
  for (const { id, steps, ...lesson } of lessons) {
    explained(lesson.about);
    for (const { say, ask, choices, why, ...step } of steps) {
      for (const text of [say, ask, why, ...choices]) explained(text);
      said.push({ id, choices, ...lesson, ...step });
    }
  }
  return said;
}"""


@pytest.fixture(scope="module")
def url(tmp_path_factory, vocabularies):
    folder = tmp_path_factory.mktemp("lessons")
    first = write_word_model(folder / "words", vocabularies)
    with serve([first, copy_folder(first, folder, "fr", "en")]) as address:
        yield address


@pytest.fixture
def page(browser, url):
    with open_page(browser, url) as opened:
        opened.goto(f"{url}/#view=lessons")
        opened.wait_for_selector("body[data-ready]")
        yield opened


def shows(page, selector) -> bool:
    return page.locator(selector).is_visible()


def test_every_text_is_well_formed(page):
    """Terms that are not in the list would throw."""
    steps = page.evaluate(TEXTS)
    assert len({each["id"] for each in steps}) == 16
    known = set(page.evaluate("async () => Object.keys((await import('./page/state.js')).state)"))
    for step in steps:
        assert 0 <= step["right"] < len(step["choices"]) >= 2, step["id"]
        assert len(set(step["choices"])) == len(step["choices"])
        assert set(step.get("state", {})) <= known, step["id"]
        source, target = step["pair"].split("-")
        assert {source, target} <= {"de", "en", "fr", "es"}
        assert source != target


def test_what_is_shown_stays_hidden_until_something_was_predicted(page):
    page.click("text=Words that must agree")
    page.wait_for_url("**lesson=agreement**")
    assert page.evaluate("document.activeElement.id") == "lesson-title"
    assert not shows(page, "#desk")
    assert not shows(page, ".verdict")
    assert page.locator("#lesson >> text=Next question").is_disabled()
    page.click(".guess >> nth=0")
    page.wait_for_selector("#translation .word")
    assert page.input_value("#text") == "I bought a red car and a big house."
    assert "grande" in page.inner_text(".verdict b")
    assert page.locator(".guess.right").inner_text().strip().startswith("grande")
    assert page.locator(".guess.wrong").count() == 1
    page.click("#lesson >> text=Next question")
    assert not shows(page, "#attention")
    page.click(".guess >> nth=0")
    page.wait_for_selector("#attention canvas")
    assert page.inner_text(".verdict b") == "Right."
    page.click("#lesson >> text=Question before")
    page.wait_for_selector("#translate", state="visible")
    assert page.locator(".guess.wrong").count() == 1, "answers stay"
    page.click("#lesson >> text=End lesson")
    assert not shows(page, "#lesson")


def test_a_link_leads_to_the_step_and_asks_anew(browser, url):
    with open_page(browser, url) as page:
        page.goto(f"{url}/#lesson=gender&at=2")
        page.wait_for_selector("#lesson")
        assert "Step 2 of 2" in page.inner_text("#lesson")
        assert not shows(page, "#desk")
        page.goto(f"{url}/#lesson=no-such-lesson")
        page.reload()
        page.wait_for_selector("body[data-ready]")
        assert not shows(page, "#lesson")
        assert shows(page, "#desk")


def test_lessons_for_which_there_is_no_model_say_what_brings_one(page):
    card = page.locator(".card", has_text="A verb in two halves")
    assert card.locator("button").is_disabled()
    assert "dragoman pull de-en --source box" in card.inner_text()
    assert page.locator(".card", has_text="She and he").locator("button").is_enabled()


def test_a_view_that_this_server_has_not_is_said_to_be_missing(browser, url):
    script = """async () => {
      const { stateAt } = await import("./page/lessons.js");
      const steps = [{ state: { view: "elsewhere" } }];
      return stateAt({ pair: "en-fr", text: "x", steps }, 1).view;
    }"""
    with open_page(browser, url) as page:
        page.goto(url)
        page.wait_for_selector("body[data-ready]")
        assert page.evaluate(script) == "translate"


def test_terms_open_their_meaning(page):
    page.click("text=Words that must agree")
    page.click(".guess >> nth=1")
    term = page.locator(".verdict .term")
    assert term.inner_text() == "decoder"
    term.focus()
    page.keyboard.press("Enter")
    assert "writes the translation" in page.inner_text("#term-box")
    page.keyboard.press("Escape")
    assert not shows(page, "#term-box")
    assert page.evaluate("document.activeElement.className") == "term"
    term.click()
    page.mouse.click(5, 400)
    assert not shows(page, "#term-box")
    page.click("#terms-button")
    listed = page.locator("#terms-list dt").all_inner_texts()
    assert {"head", "beam", "cross-attention", "softmax"} <= set(listed)
    assert listed[0] < "attention" < listed[-1]
    page.keyboard.press("Escape")
    assert not shows(page, "#terms")


def test_everything_works_by_keyboard(page):
    page.focus("text=Words that must agree")
    page.keyboard.press("Enter")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className").startswith("guess"):
            break
    page.keyboard.press("Space")
    page.wait_for_selector(".verdict")
    assert page.evaluate("document.activeElement.className") == "verdict"


def test_large_letters_for_a_projector_stay(page, url):
    size = "parseFloat(getComputedStyle(document.body).fontSize)"
    before = page.evaluate(size)
    page.click("#size")
    assert page.evaluate(size) == 1.5 * before
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert page.evaluate(size) == 1.5 * before
    page.click("#size")
    assert page.evaluate(size) == before


def test_paper_has_no_buttons_on_it(page):
    page.click("text=Words that must agree")
    page.click(".guess >> nth=1")
    page.wait_for_selector("#translation .word")
    page.emulate_media(media="print")
    assert not shows(page, "header")
    assert not shows(page, ".lesson-tools")
    assert shows(page, "#lesson blockquote")
    assert shows(page, "#translation")


@pytest.mark.parametrize("size", [PHONE, NARROW])
@pytest.mark.parametrize("address", ["#view=lessons", "#lesson=agreement&at=1"])
def test_on_a_phone_nothing_scrolls_sideways(browser, url, size, address):
    with open_page(browser, url, viewport=size, has_touch=True) as page:
        page.goto(f"{url}/{address}")
        page.wait_for_selector("body[data-ready]")
        if "at=" in address:
            page.tap(".guess >> nth=1")
            page.wait_for_selector("#translation .word")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= size["width"]
        buttons = ".guess" if "at=" in address else ".card .link"
        script = "all => all.map(one => one.getBoundingClientRect().height)"
        assert min(page.eval_on_selector_all(buttons, script)) >= 44


def test_a_lesson_goes_into_one_file_with_all_its_steps(browser, url, tmp_path):
    with open_page(browser, url) as page:
        page.goto(f"{url}/#lesson=agreement&at=1")
        page.wait_for_selector("body[data-ready]")
        page.click(".guess >> nth=1")
        page.wait_for_selector("#translation .word")
        page.click("#export")
        with page.expect_download() as download:
            page.click("#export-lesson")
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert page.locator("#lesson-title").inner_text() == "Words that must agree"
        assert "Step 1 of 3" in page.inner_text("#lesson")
        assert page.locator("#export-lesson").is_hidden()
    assert path.name == "dragoman-lesson-agreement.html"
    address = path.as_uri()
    with open_page(browser, address.rsplit("/", 1)[0]) as page:
        page.goto(address)
        for step, box in enumerate(("#translation .word", "#attention canvas", "#why canvas"), 1):
            page.wait_for_selector("body[data-ready]")
            assert f"Step {step} of 3" in page.inner_text("#lesson")
            assert not shows(page, "#desk")
            page.click(".guess >> nth=0")
            page.wait_for_selector(box)
            if step < 3:
                page.click("#lesson >> text=Next question")
                page.wait_for_function("step => location.hash === `#at=${step}`", arg=step + 1)
        page.click("#lesson >> text=Question before")
        page.wait_for_selector(".verdict")
        assert page.locator("#lesson button", has_text="End lesson").count() == 0


def test_a_picture_that_is_shown_again_is_drawn_anew(page):
    """Attention, another view, Attention with other settings: of the same sentence."""
    page.click("text=Attention is all you need: the talk")
    boxes = ("#translation", "#attention canvas", "#inside", "#attention canvas")
    for step, box in enumerate(boxes, 1):
        page.click(".guess >> nth=1")
        page.wait_for_selector(box)
        page.wait_for_timeout(300)
        if step < 4:
            page.keyboard.press("n")
    drawn = "document.querySelector('#attention canvas').toDataURL()"
    grid = page.evaluate(drawn)
    page.reload()
    page.wait_for_selector("#attention canvas")
    page.wait_for_function(f"() => {drawn}.length > 5000")
    page.wait_for_timeout(500)
    assert page.evaluate(drawn) == grid


def test_a_file_of_one_step_leads_nowhere_else(page, browser, tmp_path):
    page.click("text=Words that must agree")
    page.click(".guess >> nth=1")
    page.wait_for_selector("#translation .word")
    page.click("#export")
    with page.expect_download() as download:
        page.click("[data-format=html]")
    download.value.save_as(tmp_path / "step.html")
    with open_page(browser, tmp_path.as_uri()) as frozen:
        frozen.goto((tmp_path / "step.html").as_uri())
        frozen.wait_for_selector(".guess")
        assert frozen.locator(".lesson-tools button").count() == 0


def test_a_wrong_guess_is_answered_in_plain_words(page):
    page.click("text=Scaled dot-product attention in ten minutes")
    for _ in range(2):
        page.click(".guess >> nth=1")
        page.keyboard.press("n")
    page.click(".guess >> nth=0")
    answer = page.inner_text(".verdict b")
    assert answer == "The answer: nearly all weight on one word."
