"""The view “Why” in a browser: one scale, a legend, what is missing; and all views on phones."""

import re
from urllib.parse import quote

import pytest
from tests.serving.browser import PHONE, open_page
from tests.serving.running_server import serve
from tests.serving.word_model import write_word_model

SOURCE = "the old dog sees a tree"
TINY = {"width": 320, "height": 640}
COUNT = 20


@pytest.fixture(scope="module")
def url(tmp_path_factory, vocabularies):
    folder = write_word_model(tmp_path_factory.mktemp("served") / "words", vocabularies)
    with serve([folder]) as address:
        yield address


def open_view(page, url, view, text=SOURCE):
    page.goto(f"{url}/#text={quote(text)}&from=en&to=fr&view={view}&masks=100")
    page.reload()
    page.wait_for_selector("#translation .word", state="attached")


def explanation(**changes):
    """Make an explanation of two words by many, in which little happens."""
    words = [f"w{place}" for place in range(COUNT)]
    rise = [[0.0] * COUNT for _ in range(3)]
    rise[0][3], rise[0][7], rise[1][3] = 44.0, -0.001, -2.0
    gradient = [[-0.001] * COUNT for _ in range(3)]
    attention = [[1 / COUNT] * COUNT for _ in range(3)]
    found = {"source": " ".join(words), "translation": "un deux", "sourceWords": words,
             "targetWords": ["un", "deux", "⟨end⟩"], "rise": rise, "gradient": gradient,
             "captions": {"rise": "r", "gradient": "g", "attention": "a"}, "attention": attention,
             "errors": [[0.0] * COUNT for _ in range(3)], "numMasks": 100, "ofMasks": 100,
             "isExact": False}  # fmt: skip
    return found | changes


@pytest.fixture
def explained(browser, url):
    """The view with an explanation of known numbers, and its picture as SVG."""
    with open_page(browser, url) as page:
        page.route("**/page/api/why", lambda route: route.fulfill(json=explanation()))
        open_view(page, url, "why")
        page.wait_for_selector("#why .bars canvas")

        def read_svg():
            page.click("#export")
            with page.expect_download() as download:
                page.click("[data-format=svg]")
            return download.value.path().read_text()

        yield page, read_svg


def told(page, keys):
    page.focus("#why .bars canvas")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    return page.inner_text("#why .bars .readout")


def test_bars_of_all_words_are_on_one_scale(explained):
    """The largest of the sentence ends the scale of each word, in both units of log-probability."""
    page, read_svg = explained
    for _ in range(2):
        ends = re.findall(r">([^<]+)</text>", read_svg())
        assert ends.count("44") >= 2  # RISE and gradient × input
        page.get_by_role("radio", name="deux").click()
    legend = page.inner_text("#why .legend")
    assert "−44" in legend
    assert "+44 change of log-probability" in legend
    assert "1 attention" in legend
    assert page.locator("#why .legend .strip").count() == 2


def test_nothing_is_shown_as_minus_zero(explained):
    page, read_svg = explained
    assert "−0.00" not in read_svg()
    said = told(page, ["ArrowDown"] * 6)
    assert "−0.00" not in said
    page.click("#why .table summary")
    page.wait_for_selector("#why .table td")
    assert "−0.00" not in page.inner_text("#why .table")


def test_words_that_are_left_out_are_marked(explained):
    page, read_svg = explained
    shown = read_svg()
    assert "⋯ 4 words" in shown or "⋯ 1 word" in shown
    hidden = COUNT - 16
    gaps = [int(each) for each in re.findall(r"⋯ (\d+) word", shown)]
    assert sum(gaps) == hidden
    assert "a dotted line stands where others are left out" in page.inner_text("#why .bars")


def test_words_on_which_nothing_depends_are_named(explained):
    page, _ = explained
    unused = page.inner_text("#why .unused")
    assert unused.startswith("No word of the translation depends on w0, w1, w2, w4")
    assert unused.endswith("they may have been left out, or may not matter.")


def test_huge_ratios_are_readable(explained):
    page, _ = explained
    page.focus("#why .account canvas >> nth=0")
    for key in ("ArrowDown", *["ArrowRight"] * 3):
        page.keyboard.press(key)
    page.wait_for_timeout(100)
    assert "1.3·10¹⁹ times as probable with it" in page.inner_text(
        "#why .account .readout >> nth=0"
    )


VIEWS = ("translate", "attention", "why", "break", "training")


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("size", [PHONE, TINY], ids=["390", "320"])
def test_page_never_scrolls_sideways(browser, url, view, size):
    with open_page(browser, url, viewport=size, has_touch=True) as page:
        open_view(page, url, view)
        page.wait_for_timeout(800)
        assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("view", VIEWS)
def test_targets_are_wide_enough_for_fingers(browser, url, view):
    """A word within a text is as high as its line, as everywhere."""
    small = """() => [...document.querySelectorAll("button, select, input, summary, a")]
        .filter(one => one.checkVisibility())
        .map(one => [one.outerHTML.slice(0, 90),
            ...[one, ...(one.labels ?? [])].map(each => each.getBoundingClientRect())])
        .filter(([, ...boxes]) => !boxes.some(box => box.height >= 43.5 && box.width >= 43.5))
        .map(([text, ...boxes]) => `${text} ${boxes[0].width} × ${boxes[0].height}`)"""
    with open_page(browser, url, viewport=PHONE, has_touch=True, is_mobile=True) as page:
        open_view(page, url, view)
        page.wait_for_timeout(800)
        assert page.evaluate("() => matchMedia('(pointer: coarse)').matches")
        assert "\n".join(page.evaluate(small)) == ""


def test_page_has_one_first_heading(browser, url):
    with open_page(browser, url) as page:
        for view in VIEWS:
            open_view(page, url, view)
            assert page.locator("h1").count() == 1
