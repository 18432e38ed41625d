"""Numbers in the page's words, as its browser writes them."""

import pytest
from tests.serving.browser import open_browser, open_page
from tests.serving.running_server import watch


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """Call a function of wording.js in the browser."""
    with open_browser() as browser, watch([tmp_path_factory.mktemp("none")]) as url, \
            open_page(browser, url) as page:  # fmt: skip
        page.goto(url)

        def call(name, *values):
            script = (
                "async ([name, values]) => (await import('./page/wording.js'))[name](...values)"
            )
            return page.evaluate(script, [name, values])

        yield call


@pytest.mark.parametrize(("values", "text"), [
    ((1, "character"), "1 character"), ((0, "character"), "0 characters"),
    ((12000, "character"), "12,000 characters"), ((1, "match", "matches"), "1 match"),
    ((2, "match", "matches"), "2 matches"),
])  # fmt: skip
def test_things_are_counted(write, values, text):
    assert write("counted", *values) == text


@pytest.mark.parametrize(("values", "text"), [
    ((-0.001, 2), "0.00"), ((-0.0, 1), "0.0"), ((-0.005001, 2), "−0.01"), ((1.25, 1), "1.3"),
    ((-12, 0), "−12"),
])  # fmt: skip
def test_nothing_is_never_negative(write, values, text):
    assert write("fixed", *values) == text


@pytest.mark.parametrize(("value", "text"), [
    (0.004, "0.00"), (-0.004, "0.00"), (0.5, "+0.50"), (-0.5, "−0.50"),
])  # fmt: skip
def test_signs_are_told(write, value, text):
    assert write("signed", value, 2) == text


@pytest.mark.parametrize(("share", "text"), [
    (0, "0 %"), (1e-9, "under 0.1 %"), (0.0009, "under 0.1 %"), (0.001, "0.1 %"), (0.034, "3.4 %"),
    (0.05, "5 %"), (0.456, "46 %"), (0.99, "99 %"), (0.9949, "99.5 %"), (0.9989, "99.9 %"),
    (0.99999, "over 99.9 %"), (1, "100 %"),
])  # fmt: skip
def test_shares_are_neither_nothing_nor_all_unless_they_are(write, share, text):
    assert write("percent", share) == text


@pytest.mark.parametrize(("ratio", "text"), [
    (1, "1 time"), (1.04, "1 time"), (1.54, "1.5 times"), (99, "99 times"), (240.7, "240 times"),
    (12345, "12,000 times"), (1.6e19, "1.6·10¹⁹ times"), (1e300, "more than 10¹⁰⁰ times"),
    (999_999, "1·10⁶ times"),
])  # fmt: skip
def test_times_are_readable(write, ratio, text):
    assert write("times", ratio) == text


@pytest.mark.parametrize(("value", "text"), [
    (0, "0"), (0.00115, "0.00115"), (1e-7, "1·10⁻⁷"), (-0.5, "−0.5"), (9990, "9990"),
    (12345, "12.3 k"), (999_999, "1 M"), (2.5e6, "2.5 M"), (-3e9, "−3 G"), (4e18, "4·10¹⁸"),
])  # fmt: skip
def test_numbers_on_axes_are_brief(write, value, text):
    assert write("brief", value) == text


@pytest.mark.parametrize(("seconds", "text"), [
    (0.2, "1 s"), (59, "59 s"), (59.7, "1 min"), (600, "10 min"), (7230, "2 h 1 min"),
    (3600, "1 h 0 min"),
])  # fmt: skip
def test_spans_of_time_are_told(write, seconds, text):
    assert write("span", seconds) == text
