"""Pictures show the weights they are given, legibly, and whatever the tokens hold."""

import itertools
import json
import subprocess
import sys
import warnings
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread

from dragoman.errors import FolderError, OptionError
from dragoman.insight import picture
from dragoman.insight.picture import AttentionMap, draw_maps

NASTY = ("</script><script>alert(1)</script>", "<!--", "-->", "&lt;", '"', "$x^2$", "", " ", "\n\0")


def make_map(
    queries=("a", "b"), keys=("x", "y", "z"), *, heads=1, kind="cross", layer=1
) -> AttentionMap:
    generator = np.random.default_rng(len(queries) + 10 * len(keys) + 100 * layer)
    weights = generator.dirichlet(np.full(len(keys), 0.3), size=(heads, len(queries)))
    return AttentionMap(
        kind=kind, layer=layer, weights=weights, queries=tuple(queries), keys=tuple(keys)
    )


class Page(HTMLParser):
    """Reads a page as a browser would: where elements begin and end, and their text."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.texts: list[tuple[str, str]] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.texts.append((tag, ""))
        self.attributes.extend(attrs)

    def handle_data(self, data):
        if self.texts:
            tag, text = self.texts[-1]
            self.texts[-1] = (tag, text + data)

    def find(self, tag: str) -> list[str]:
        return [text.strip() for name, text in self.texts if name == tag]


def read_data(path: Path) -> dict:
    data, _ = Page(path.read_text(encoding="utf-8")).find("script")
    return json.loads(data)


@pytest.fixture
def layout():
    """Draw into a figure and keep it, to be asked where things are."""

    def draw(maps, title="Title", subtitle="Subtitle"):
        with matplotlib.rc_context({"font.family": ["DejaVu Sans"], "text.parse_math": False}):
            figure = picture._draw_figure(maps, title, subtitle)
            figure.draw_without_rendering()
        return figure

    return draw


LONG = tuple(f"▁Donaudampfschifffahrtsgesellschaft{i}" for i in range(9))
LAYOUTS = {
    "one small map": [make_map()],
    "one token": [make_map(("a",), ("b",))],
    "forty tokens": [make_map([f"▁token{i}" for i in range(40)], [f"key{i}" for i in range(40)])],
    "long tokens": [make_map(LONG, LONG)],
    "six layers": [make_map(LONG[:3], LONG, heads=8, layer=i, kind="encoder") for i in range(1, 7)],
    "all kinds": [
        make_map("abc", "abc", heads=4, kind="encoder"),
        make_map("xy", "xy", heads=4, kind="decoder"),
        make_map("xy", "abc", heads=2),
    ],
    "gradient": [make_map("abc", "xy", kind="gradient")],
    "gradient below heads": [
        make_map("abc", "xy", heads=3),
        make_map("abc", "xy", kind="gradient"),
    ],
    "one query": [make_map("a", "abcdefgh", heads=8, layer=i) for i in (1, 2)],
}


@pytest.mark.parametrize("maps", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_no_text_overlaps_another_or_leaves_the_picture(maps, layout):
    figure = layout(maps, title="A title that is long enough to need several lines " * 3)
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = list(figure.texts)
    for axes in figure.axes:
        labels = itertools.chain(axes.get_xticklabels(), axes.get_yticklabels(), [axes.title])
        texts += [label for label in labels if label.get_visible()]
    boxes = [
        (text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text()
    ]
    boxes = [(text, box) for text, box in boxes if box.width > 1]
    for text, box in boxes:
        assert box.x0 >= 0, text
        assert box.y0 >= 0, text
        assert box.x1 <= figure.bbox.x1, text
        assert box.y1 <= figure.bbox.y1, text
    for (one, first), (other, second) in itertools.combinations(boxes, 2):
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        deep = min(first.y1, second.y1) - max(first.y0, second.y0)
        # Boxes include room for ascenders; a pixel of a hundred to the inch is nothing to see.
        assert min(wide, deep) <= 1, (one, other)


@pytest.mark.parametrize("maps", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_there_is_a_panel_per_head_and_labels_are_not_tiny(maps, layout):
    figure = layout(maps)
    *panels, _ = figure.axes
    assert len(panels) == sum(len(one.weights) for one in maps)
    drawn = [np.asarray(axes.images[0].get_array()) for axes in panels]
    for shown, head in zip(drawn, (head for one in maps for head in one.weights), strict=True):
        np.testing.assert_array_equal(shown, head)
    assert min(label.get_size() for axes in panels[:1] for label in axes.get_yticklabels()) >= 7
    last = panels[-1]
    assert [label.get_text() for label in last.get_xticklabels()] == [
        picture._shorten(key) for key in maps[-1].keys
    ]


def test_gradients_have_neither_layer_nor_head(layout):
    figure = layout([make_map("ab", "xy", heads=2), make_map("abc", "xyz", kind="gradient")])
    assert {"cross 1", "gradient × input"} <= {text.get_text() for text in figure.texts}
    titles = [axes.title.get_text() for axes in figure.axes]
    assert titles == ["head 1", "head 2", "", ""]


def test_pixels_have_the_colour_of_the_weight(tmp_path, layout):
    one = make_map("abc", "wxyz")
    draw_maps([one], tmp_path / "map.png", title="Title", subtitle="Subtitle")
    pixels = imread(tmp_path / "map.png")
    box = layout([one]).axes[0].get_position()
    for (row, column), weight in np.ndenumerate(one.weights[0]):
        # A little inside the corner of the cell: its middle bears a number.
        x = box.x0 + box.width * (column + 0.15) / 4
        y = 1 - box.y1 + box.height * (row + 0.15) / 3
        pixel = pixels[int(y * pixels.shape[0]), int(x * pixels.shape[1])]
        np.testing.assert_allclose(pixel, matplotlib.colormaps["magma_r"](weight), atol=0.02)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".html", ".PNG"])
def test_any_token_can_be_drawn(suffix, tmp_path):
    maps = [make_map(NASTY, NASTY, heads=2), make_map(NASTY, "ab", heads=2, kind="encoder")]
    path = tmp_path / f"map{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_maps(maps, path, title="</title><b>$", subtitle="--> @DATA@ </p>")
    assert list(tmp_path.iterdir()) == [path]
    if suffix == ".svg":
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    if suffix == ".PNG":
        assert imread(path, format="png").ndim == 3


def test_the_page_holds_the_weights_and_tokens(tmp_path):
    maps = [make_map(NASTY, ("a", *NASTY), heads=3), make_map("ab", "ab", kind="encoder", layer=2)]
    draw_maps(maps, tmp_path / "map.html", title="Title", subtitle="Sub")
    found = read_data(tmp_path / "map.html")["maps"]
    assert [(one["kind"], one["layer"]) for one in found] == [("cross", 1), ("encoder", 2)]
    for one, given_map in zip(found, maps, strict=True):
        np.testing.assert_allclose(one["heads"], given_map.weights, atol=5.1e-5)
    # All as given but for what cannot be seen.
    assert found[0]["keys"] == ["a", *NASTY[:-3], "∅", "␣", r"\n\x00"]


@settings(max_examples=50, deadline=None)
@given(text=st.text(st.characters(codec="utf-8"), min_size=1))
def test_no_text_breaks_out_of_the_page(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "map.html"
    draw_maps([make_map((text, "b"), ("x", text))], path, title=text, subtitle=text + "<script>")
    page = Page(path.read_text(encoding="utf-8"))
    expected = picture._make_legible(text)
    assert len(page.find("script")) == 2
    assert read_data(path)["maps"][0]["keys"] == ["x", expected]
    assert page.find("title") == page.find("h1") == [expected.strip()]
    assert page.find("p") == [picture._make_legible(text + "<script>").strip()]


def test_the_page_asks_for_nothing_from_elsewhere(tmp_path):
    draw_maps([make_map()], tmp_path / "map.html", title="Title")
    text = (tmp_path / "map.html").read_text(encoding="utf-8")
    page = Page(text)
    assert not {"src", "href", "action"} & {name for name, _ in page.attributes}
    assert not any(word in text for word in ("http:", "https:", "url(", "@import", "fetch("))
    assert any("default-src 'none'" in (value or "") for _, value in page.attributes)


def test_heads_can_be_averaged(tmp_path):
    one = make_map("abc", "ab", heads=4)
    draw_maps([one], tmp_path / "map.html", title="Title", average_heads=True)
    data = read_data(tmp_path / "map.html")
    assert data["average"] is True
    np.testing.assert_allclose(data["maps"][0]["heads"], [one.weights.mean(axis=0)], atol=5.1e-5)


def test_tokens_without_a_font_warn_once_and_are_drawn(tmp_path):
    # A character of a private plane, which no font has.
    maps = [make_map(("\U000f1234",) * 3, ("\U000f1235", "a"), heads=2)]
    for suffix in (".png", ".svg"):
        with pytest.warns(UserWarning, match="no installed font has") as caught:
            draw_maps(maps, tmp_path / f"map{suffix}", title="Title")
        assert len(caught) == 1
    # Where glyphs are missing, the characters themselves are kept for another viewer.
    assert "\U000f1234" in (tmp_path / "map.svg").read_text(encoding="utf-8")


def test_a_font_is_found_for_what_dejavu_has():
    assert picture._choose_fonts("abc äöü Жλא ▁") == (["DejaVu Sans"], set())


def test_pictures_are_the_same_every_time(tmp_path):
    for suffix in (".png", ".svg", ".html"):
        paths = [tmp_path / f"{name}{suffix}" for name in ("one", "two")]
        for path in paths:
            draw_maps([make_map(heads=2)], path, title="Title")
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_settings_of_matplotlib_are_left_as_they_were(tmp_path):
    before = dict(matplotlib.rcParams)
    draw_maps([make_map()], tmp_path / "map.svg", title="Title")
    assert dict(matplotlib.rcParams) == before


def test_an_unknown_suffix_names_the_known(tmp_path):
    with pytest.raises(OptionError, match=r"map\.pdf: .*“\.pdf” is unknown; use \.png, \.svg or"):
        draw_maps([make_map()], tmp_path / "map.pdf", title="Title")


def test_nothing_to_draw_is_an_error(tmp_path):
    with pytest.raises(OptionError, match="there is no attention to draw; choose at least one"):
        draw_maps([], tmp_path / "map.png", title="Title")


def test_too_many_tokens_for_a_picture_are_refused(tmp_path, monkeypatch):
    maps = [make_map("abcdefghij", "abcdefghij", heads=8)]
    # Panels of 1.6 inches side by side need 75 dots per inch for their labels to be read.
    monkeypatch.setattr(picture, "_MOST_PIXELS", 8 * 1.6 * 1.6 * 75**2)
    with pytest.raises(
        OptionError, match=r"too large for one legible picture \(panels: 8\); choose"
    ):
        draw_maps(maps, tmp_path / "map.png", title="Title")
    assert not list(tmp_path.iterdir())
    draw_maps(maps, tmp_path / "map.svg", title="Title")


def test_a_place_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.html").mkdir()
    for path in ("file/map.html", "folder.html"):
        with pytest.raises(
            FolderError, match=r"cannot be written .*; free some space or choose"
        ) as caught:
            draw_maps([make_map()], tmp_path / path, title="Title")
        assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.html"]


def test_a_failure_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "map.html"
    path.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(FolderError, match="No space left on device"):
        draw_maps([make_map()], path, title="Title")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_maps_that_contradict_themselves_are_mistakes(tmp_path):
    with pytest.raises(ValueError, match="kind is 'other'"):
        make_map(kind="other")
    with pytest.raises(ValueError, match="weights are"):
        AttentionMap(
            kind="cross", layer=1, weights=np.ones((1, 2, 2)), queries=("a",), keys=("b", "c")
        )
    with pytest.raises(ValueError, match="given twice"):
        draw_maps([make_map(), make_map()], tmp_path / "map.png", title="Title")


def test_importing_does_not_import_matplotlib():
    code = "import sys, dragoman.insight.picture; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
