"""The desk in a real browser: nothing is lost, nothing misleads, everything can be undone."""

import contextlib
import re
from urllib.parse import quote

import pytest
from tests.serving.browser import open_browser, open_page
from tests.serving.running_server import serve
from tests.serving.small_service import copy_folder
from tests.serving.word_model import write_word_model

SOURCE = "the old dog sees a tree"
TARGET = "le vieux chien voit un arbre"
TWO = f"{SOURCE}\nthe house likes the garden"
LONGEST_ADDRESS = 2000


@pytest.fixture(scope="module")
def folders(tmp_path_factory, vocabularies):
    folder = tmp_path_factory.mktemp("served")
    first = write_word_model(folder / "words", vocabularies)
    return [first, copy_folder(first, folder, "fr", "en")]


@pytest.fixture(scope="module")
def url(folders):
    with serve(folders, names=("classroom.test",)) as address:
        yield address


@pytest.fixture(scope="module")
def browser():
    # Another name for this machine, which browsers do not trust as they trust loopback.
    with open_browser("--host-resolver-rules=MAP classroom.test 127.0.0.1") as started:
        yield started


@pytest.fixture
def page(browser, url):
    with open_page(browser, url) as opened:
        yield opened


def visit(page, url, text=SOURCE, **state):
    parts = {"text": text, "from": "en", "to": "fr"} | state
    page.goto(f"{url}/#" + "&".join(f"{name}={quote(str(each))}" for name, each in parts.items()))
    page.reload()
    page.wait_for_selector("body[data-ready]")
    if text.strip():
        page.wait_for_selector("#translation:not(.old) .word", state="attached")


def said(page) -> str:
    return page.inner_text("#translation").strip()


def wait_said(page, pattern):
    script = "what => new RegExp(what).test(document.querySelector('#translation').innerText)"
    page.wait_for_function(script, arg=pattern)


def word(page, text, place=0):
    return page.locator(f"#translation .word[data-sentence='{place}']", has_text=text).first


def choose(page, text, choice, place=0):
    """Choose another word in a sentence."""
    word(page, text, place).click()
    page.locator(".choice", has_text=re.compile(rf"^{choice}")).first.click()
    page.wait_for_selector(f".sentence.kept[data-place='{place}']")


def sentence(page, place) -> str:
    return page.inner_text(f"#translation .sentence[data-place='{place}']").strip()


def test_choices_open_at_their_word_whichever_sentence_it_is_in(page, url):
    visit(page, url, TWO)
    for place in (1, 0):
        target = page.locator(f"#translation .word[data-sentence='{place}']").nth(2)
        target.click()
        page.wait_for_selector(".choice")
        at, box = target.bounding_box(), page.locator("#choices").bounding_box()
        assert abs(box["x"] - at["x"]) < 30
        assert 0 < box["y"] - at["y"] - at["height"] < 30
        page.keyboard.press("Escape")
        assert page.is_hidden("#choices")
        focus = (
            "() => [document.activeElement.dataset.sentence, document.activeElement.dataset.word]"
        )
        assert page.evaluate(focus) == [str(place), "2"]


def test_choices_close_when_one_goes_elsewhere(page, url):
    visit(page, url)
    word(page, "vieux").click()
    page.wait_for_selector(".choice:focus")
    page.evaluate("() => document.querySelector('#tab-attention').click()")
    assert page.is_hidden("#choices")
    page.click("#tab-translate")
    word(page, "vieux").click()
    page.wait_for_selector(".choice:focus")
    for _ in range(20):
        page.keyboard.press("Tab")
    assert page.is_hidden("#choices")


def test_choices_outlive_edits_elsewhere_and_other_settings(page, url):
    visit(page, url, TWO)
    choose(page, "vieux", "petit")
    first = sentence(page, 0)
    choose(page, "jardin", "chien", place=1)
    second = sentence(page, 1)
    page.focus("#text")
    page.keyboard.press("Control+End")
    page.keyboard.type("\na small tree")
    page.wait_for_selector("#translation:not(.old) .sentence[data-place='2']")
    assert [sentence(page, 0), sentence(page, 1)] == [first, second]
    page.select_option("#alternatives", "1")
    page.wait_for_selector("#translation:not(.old)")
    page.select_option("#beam", "4")
    page.wait_for_selector("#translation:not(.old)")
    assert [sentence(page, 0), sentence(page, 1)] == [first, second]
    page.click("#share")
    link = page.evaluate("() => navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#translation .sentence.kept[data-place='1']")
    assert [sentence(page, 0), sentence(page, 1)] == [first, second]


def test_links_of_before_still_keep_their_choice(page, url):
    visit(page, url, say="un petit chien")
    wait_said(page, "^un petit chien$")


def test_exported_file_of_many_sentences_stays_whole(browser, url, tmp_path):
    with open_page(browser, url) as page:
        visit(page, url, TWO, view="attention")
        page.wait_for_selector("#attention .chip")
        page.click("#export")
        with page.expect_download() as download:
            page.click("[data-format=html]")
        download.value.save_as(tmp_path / "view.html")
    with open_page(browser, tmp_path.as_uri()) as frozen:
        frozen.goto((tmp_path / "view.html").as_uri())
        frozen.wait_for_selector("#attention .chip")
        assert frozen.locator("[aria-label='Next sentence']").count() == 0
        assert "sentence 1 of 2" in frozen.inner_text("#attention")
        # Pointing elsewhere and coming back leaves what was looked into.
        frozen.locator("#translation .word[data-sentence='1']").first.click()
        frozen.click("#tab-attention")
        assert frozen.is_visible("#attention canvas")
        assert frozen.is_visible("#attention .chip >> nth=0")


def test_copy_works_over_plain_http(browser, url):
    """As in a classroom: by the name of another machine, where browsers offer no clipboard."""
    port = url.rpartition(":")[2]
    with open_page(browser, f"http://classroom.test:{port}") as page:
        visit(page, f"http://classroom.test:{port}")
        assert page.evaluate("() => navigator.clipboard") is None
        page.click("#copy")
        assert page.inner_text("#toast") == "Copied"
        page.fill("#text", "")
        page.focus("#text")
        page.keyboard.press("Control+V")
        assert page.input_value("#text") == TARGET
        page.click("#share")
        assert page.inner_text("#toast") == "Link copied"


def test_old_translation_is_faint_while_the_server_is_away_and_comes_when_it_is_back(
    browser, folders
):
    with contextlib.ExitStack() as stack:
        with serve(folders[:1]) as address:
            page = stack.enter_context(open_page(browser, address, allow_absence=True))
            visit(page, address)
        page.fill("#text", "the old dog")
        page.wait_for_selector("text=The server does not answer")
        assert page.get_attribute("#translation", "class").split() == ["words", "old"]
        assert "not translated yet" in page.inner_text("#busy")
        with serve(folders[:1], listen_port=int(address.rpartition(":")[2])):
            page.wait_for_selector("#translation:not(.old)", timeout=30_000)
            assert said(page) == "le vieux chien"
            assert page.is_hidden("#notice")
            assert page.inner_text("#busy") == ""
            stack.close()


def test_words_are_marked_in_every_sentence(page, url):
    text = "\n".join(f"the old dog zq{number}x sees." for number in range(16))
    visit(page, url, text)
    page.wait_for_function(
        "() => [...document.querySelectorAll('.unsure')].some(one => one.dataset.sentence > 13)"
    )


def test_pictures_are_in_sight_however_long_the_text_is(page, url):
    visit(page, url, "\n\n".join(f"{SOURCE}\nthe house likes the garden" for _ in range(5)))
    height = page.viewport_size["height"]
    for view in ("attention", "why"):
        page.click(f"#tab-{view}")
        page.wait_for_selector(f"#{view} canvas >> nth=0")
        assert page.locator(f"#{view} canvas").first.bounding_box()["y"] < height - 200


def test_addresses_stay_short_and_long_texts_come_back(page, url):
    text = f"{TWO}\n" * 340
    visit(page, url)
    page.fill("#text", text[:16_000])
    page.wait_for_selector("#translation:not(.old) .sentence[data-place='100']", timeout=60_000)
    choose(page, "vieux", "petit")
    page.wait_for_timeout(500)
    assert len(page.url) < LONGEST_ADDRESS
    kept = sentence(page, 0)
    page.reload()
    page.wait_for_selector("#translation .sentence.kept", timeout=60_000)
    assert page.input_value("#text") == text[:16_000]
    assert sentence(page, 0) == kept
    page.click("#share")
    assert "did not fit: export a file" in page.inner_text("#toast")
    link = page.evaluate("() => navigator.clipboard.readText()")
    assert len(link) < LONGEST_ADDRESS
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("text=only the beginning of a text")
    assert text.startswith(page.input_value("#text"))


def test_too_long_text_is_said(browser, folders):
    with serve(folders[:1], max_characters=40) as address, open_page(browser, address) as page:
        visit(page, address)
        page.fill("#text", "the old dog sees a tree the old dog sees a tree")
        page.wait_for_selector("text=47 characters, but 40 are the most")


def test_languages_of_a_link_that_are_not_served_are_said(page, url):
    visit(page, url, **{"from": "xx", "to": "tlh"})
    told = page.inner_text("#remark")
    assert "“xx” and “tlh” of this link are not served here" in told
    assert "English → French" in told
    page.select_option("#source", "fr")
    assert page.is_hidden("#remark")


def test_automatic_says_which_model_translated(browser, folders):
    with serve([*folders, folders[0]]) as address, open_page(browser, address) as page:
        visit(page, address)
        assert page.inner_text("#model option:checked") == "Automatic (words)"
        visit(page, address, "le chien voit un arbre", **{"from": "auto", "to": "en"})
        assert page.inner_text("#model option:checked") == "Automatic (fr-en)"


def test_nothing_empty_is_shown_while_it_loads(page, url):
    page.route("**/page/api/page", lambda _: None)
    page.goto(url)
    assert page.inner_text("#loading") == "Loading …"
    assert page.is_hidden("#desk")


def test_clearing_and_starting_anew_can_be_undone(page, url):
    visit(page, url)
    choose(page, "vieux", "petit")
    kept = said(page)
    page.click("#clear")
    assert page.input_value("#text") == ""
    page.click("#toast button")
    wait_said(page, f"^{kept}$")
    assert page.input_value("#text") == SOURCE
    page.click(".brand")
    page.wait_for_function("() => document.querySelector('#text').value === ''")
    page.click("#toast button")
    wait_said(page, f"^{kept}$")
    page.click(".brand")
    page.wait_for_function("() => document.querySelector('#text').value === ''")
    page.go_back()
    page.wait_for_function("text => document.querySelector('#text').value === text", arg=SOURCE)


def test_back_leads_to_the_view_before_and_keeps_the_text(page, url):
    visit(page, url)
    page.click("#tab-attention")
    page.click("#tab-why")
    page.fill("#text", "the small dog")
    page.wait_for_selector("#translation:not(.old)")
    page.go_back()
    page.wait_for_selector("#tab-attention[aria-selected=true]")
    page.go_back()
    page.wait_for_selector("#tab-translate[aria-selected=true]")
    assert page.input_value("#text") == "the small dog"
    page.go_forward()
    page.wait_for_selector("#tab-attention[aria-selected=true]")
