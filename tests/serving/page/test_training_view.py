"""The training view in a real browser: runs that come and go, charts that are explored."""

import dataclasses
import json
import time

import pytest
from tests.serving.browser import PHONE, open_page
from tests.serving.running_server import watch

from dragoman.serving.page import page_runs
from dragoman.training.learning_rate_finder import analyse_curve, rate_of

SOURCE, TARGET = "the old dog", "le vieux chien"


def write_run(folder, last, *, first=1, begun=1000.0, **options):
    """Write the log and the configuration of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    events = [{"event": "start", "time": begun, "step": 0}] if first == 1 else []
    for step in range(first, last + 1):
        now = {"time": begun + step, "step": step}
        rates = {"learning_rate": 0.001 * step, "tokens_per_second": 900.0 + step}
        events.append({"event": "update", "loss": 8 / step + step % 2} | now | rates)
        if step % 10 == 0:
            probes = [[SOURCE, TARGET, "le chien"], ["the cat", "le chat", "le chat"],
                      ["a tree", "un arbre", f"un {step}"]]  # fmt: skip
            scores = {"loss": 4 / step, "bleu": step / 2, "is_best": True, "probes": probes}
            events.append({"event": "validation"} | now | scores)
    with (folder / "metrics.jsonl").open("a") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)
    if options:
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in options.items())
        (folder / "config.toml").write_text(f"[training]\n{lines}")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(page_runs, "LOOK_EVERY", 0.0)
    write_run(tmp_path / "seed-10", 40, begun=2000.0, seed=10, warmup_steps=20)
    write_run(tmp_path / "seed-2", 60, begun=1000.0, seed=2, warmup_steps=20)
    return tmp_path


@pytest.fixture
def page(browser, folder):
    with watch([folder]) as url, open_page(browser, url) as opened:
        opened.goto(f"{url}/#view=training")
        opened.wait_for_selector("text=step 60 · best BLEU 30.0")
        opened.wait_for_selector(".differences tbody tr")
        yield opened


def names(page):
    return page.locator(".run b").all_inner_texts()


def colours(page):
    swatches = page.eval_on_selector_all(".swatch", "all => all.map(one => one.style.background)")
    return dict(zip(names(page), swatches, strict=True))


def readouts(page):
    return page.locator(".charts .readout").all_inner_texts()


def point(page, chart, keys):
    page.focus(f".charts canvas >> nth={chart}")
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(100)


def test_runs_stand_in_natural_order(page):
    assert names(page) == ["seed-2", "seed-10"]


def test_run_that_begins_later_appears_and_colours_stay(page, folder):
    before = colours(page)
    page.focus(".run input >> nth=1")
    write_run(folder / "seed-1", 20, begun=900.0, seed=1, warmup_steps=20)
    page.wait_for_selector(".run:has-text('seed-1') >> text=step 20")
    assert names(page) == ["seed-1", "seed-2", "seed-10"]
    after = colours(page)
    assert {name: after[name] for name in before} == before
    assert after["seed-1"] not in before.values()
    page.reload()
    page.wait_for_selector(".run:has-text('seed-1') >> text=step 20")
    assert colours(page) == after


def test_what_has_the_focus_keeps_it_while_runs_grow(page, folder):
    page.focus(".run input >> nth=1")
    write_run(folder / "seed-2", 80, first=61)
    page.wait_for_selector("text=step 80 · best BLEU 40.0")
    assert page.evaluate("() => document.activeElement.matches('.run:nth-child(2) input')")


def test_only_what_is_there_is_reported(page):
    """At the last step of the longer run, the other has ended."""
    point(page, 0, ["ArrowLeft"])
    told = readouts(page)[0]
    assert told.startswith("step 60: ")
    assert "seed-2 training" in told
    assert "seed-10" not in told
    point(page, 0, ["Escape", "ArrowRight"])
    told = readouts(page)[0]
    assert told.startswith("step 1: seed-2 training 9 · ")
    assert "validation" not in told  # the first is at step 10


def test_one_cursor_is_in_all_charts(page):
    pictures = "all => all.map(one => one.toDataURL())"
    before = page.eval_on_selector_all(".charts canvas", pictures)
    point(page, 1, ["ArrowRight", "ArrowRight"])
    told = readouts(page)
    assert [each.split(":")[0] for each in told] == ["step 20"] * 4
    assert "seed-10 20" not in told[1]
    assert "seed-2 0.02" in told[2]
    after = page.eval_on_selector_all(".charts canvas", pictures)
    assert all(one != other for one, other in zip(before, after, strict=True))
    # Only the chart that is pointed at speaks.
    live = page.eval_on_selector_all(".charts .readout", "all => all.map(one => one.ariaLive)")
    assert live == ["off", "polite", "off", "off"]
    page.keyboard.press("Escape")
    page.wait_for_timeout(100)
    assert not any(each.startswith("step") for each in readouts(page))


def test_curves_are_smoothed(page):
    point(page, 0, ["ArrowRight"] * 4)
    assert "smoothed" not in readouts(page)[0]
    page.focus(".smoothing")
    page.keyboard.press("End")
    assert page.inner_text(".settings output") == "98 %"
    page.wait_for_function("() => location.hash.includes('smooth=98')")
    point(page, 0, ["ArrowRight"] * 4)
    assert "step 4: seed-2 training 2, smoothed 4.61" in readouts(page)[0]
    assert "smoothed" not in readouts(page)[2]  # the learning rate is no measurement


def test_axes_become_logarithmic(page):
    before = page.eval_on_selector(".charts canvas", "one => one.toDataURL()")
    for label, logs in (("logarithmic across", "x"), ("logarithmic up", "xy")):
        page.check(f"text={label}")
        after = page.eval_on_selector(".charts canvas", "one => one.toDataURL()")
        assert after != before
        before = after
        page.wait_for_function("logs => location.hash.includes(`logs=${logs}`)", arg=logs)
    point(page, 0, ["ArrowRight"])
    assert readouts(page)[0].startswith("step 1: ")


def zoom_of(page):
    page.wait_for_timeout(400)
    found = page.evaluate("() => new URLSearchParams(location.hash.slice(1)).get('zoom')")
    return found and [float(each) for each in found.split("..")]


def test_dragging_shows_a_part_and_double_click_all(page):
    box = page.locator(".charts canvas >> nth=0").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, middle, steps=4)
    page.wait_for_timeout(100)
    assert " to " in readouts(page)[0]
    page.mouse.up()
    begin, end = zoom_of(page)
    assert 15 < begin < end < 40
    point(page, 3, ["ArrowRight"])
    assert begin <= float(readouts(page)[3].split(":")[0].split(" ")[1]) <= begin + 1
    page.locator(".charts canvas >> nth=0").dblclick()
    assert zoom_of(page) is None


def test_zoom_by_keys_and_buttons(page):
    point(page, 0, ["ArrowLeft", "+"])
    assert zoom_of(page) == [30, 60]
    page.keyboard.press("Shift+ArrowLeft")
    assert zoom_of(page) == [22.5, 52.5]
    page.keyboard.press("-")
    assert zoom_of(page) is None
    page.get_by_role("button", name="Zoom in").click()
    assert zoom_of(page) == [15, 45]
    page.get_by_role("button", name="Whole run").click()
    assert zoom_of(page) is None
    page.get_by_role("button", name="Zoom in").click()
    assert zoom_of(page) == [15, 45]
    page.reload()
    page.wait_for_selector("text=step 60")
    assert zoom_of(page) == [15, 45]
    page.keyboard.press("Tab")
    page.focus(".charts canvas")
    page.keyboard.press("0")
    assert zoom_of(page) is None


def test_progress_and_end_are_told(page, folder):
    now = time.time()
    event = {"event": "update", "time": now, "step": 61, "loss": 1.0, "learning_rate": 0.1,
             "tokens_per_second": 9.0, "share_done": 0.29, "seconds_left": 7230.0}  # fmt: skip
    with (folder / "seed-2" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\n")
    page.wait_for_selector("text=29 % done · ends about")
    told = page.inner_text(".run >> nth=0")
    clock = page.evaluate(
        "ms => new Date(ms).toLocaleString('en-GB', { hour: '2-digit', minute: '2-digit' })",
        (now + 7230) * 1000,
    )
    assert f"{clock}, in 2 h 0 min" in told
    assert told.endswith("running")
    bar = page.get_by_role("progressbar", name="progress of seed-2")
    assert bar.evaluate("one => one.value") == 0.29


def test_configurations_are_compared(page, folder):
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    assert page.eval_on_selector_all(".differences tr", cells) == [
        ["Option", "seed-2", "seed-10"], ["training.seed", "2", "10"],
    ]  # fmt: skip
    write_run(folder / "b", 10, begun=3000.0, seed=2, warmup_steps=40, schedule="cosine")
    page.wait_for_selector(".differences th:has-text('training.schedule')")
    assert page.eval_on_selector_all(".differences tr", cells) == [
        ["Option", "b", "seed-2", "seed-10"], ["training.seed", "2", "2", "10"],
        ["training.warmup_steps", "40", "20", "20"], ["training.schedule", "cosine", "—", "—"],
    ]  # fmt: skip
    page.uncheck(".run:has-text('seed-10') input")
    page.uncheck(".run:has-text('seed-2') input")
    assert page.locator(".differences table").count() == 0


def test_probes_are_the_same_at_every_validation(page):
    heads = page.locator(".probes section >> nth=0 >> th").all_inner_texts()
    assert [each.split("\n") for each in heads[2:]] == [
        ["Sentence 1", SOURCE, TARGET], ["Sentence 2", "the cat", "le chat"],
        ["Sentence 3", "a tree", "un arbre"],
    ]  # fmt: skip
    shown = page.locator(".probes section >> nth=0 >> td:nth-child(5)").all_inner_texts()
    assert shown == [f"un {step}" for step in range(60, 0, -10)]


def test_learning_rate_test_is_drawn(browser, tmp_path):
    losses = [
        9 - 7 * (index / 150) ** 2 if index < 150 else 2 + (index - 150) ** 2 / 20
        for index in range(180)
    ]
    found = analyse_curve(losses, has_diverged=True)
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "learning-rate.json").write_text(json.dumps(dataclasses.asdict(found)))
    with watch([tmp_path]) as url, open_page(browser, url) as page:
        page.goto(f"{url}/#view=training")
        page.wait_for_selector("text=learning-rate test · suggests")
        assert page.is_hidden(".charts")
        page.focus(".rates canvas")
        page.keyboard.press("ArrowRight")
        told = "1·10⁻⁷"
        page.wait_for_selector(f".rates .readout:has-text('learning rate {told}: loss 9')")
        assert rate_of(0) == 1e-7
        page.click("#export")
        with page.expect_download() as download:
            page.click("[data-format=svg]")
        drawn = download.value.path().read_text()
        for name, value in (("suggested", found.suggested), ("lowest", found.turning)):
            assert f"{name}: {value:.3g}"[:12] in drawn


@pytest.mark.parametrize("more", [{"viewport": PHONE, "has_touch": True},
                                  {"viewport": {"width": 320, "height": 640}, "has_touch": True},
                                  {"color_scheme": "dark"}])  # fmt: skip
def test_view_fits(browser, folder, more):
    with watch([folder]) as url, open_page(browser, url, **more) as page:
        page.goto(f"{url}/#view=training")
        page.wait_for_selector(".differences tbody tr")
        page.wait_for_selector(".probe tbody tr")
        wide = page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0
