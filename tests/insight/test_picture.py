"""Pictures show the weights they are given, legibly, and whatever the tokens hold."""

import itertools
import subprocess
import sys
import warnings
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread

from dragoman.errors import FolderError, OptionError
from dragoman.insight import picture
from dragoman.insight.picture import AttentionMap, draw_maps, mean_heads

NASTY = ("</script><script>alert(1)</script>", "<!--", "-->", "&lt;", '"', "$x^2$", "", " ", "\n\0")


def make_map(
    queries=("a", "b"), keys=("x", "y", "z"), *, heads=1, kind="cross", layer=1
) -> AttentionMap:
    generator = np.random.default_rng(len(queries) + 10 * len(keys) + 100 * layer)
    weights = generator.dirichlet(np.full(len(keys), 0.3), size=(heads, len(queries)))
    return AttentionMap(
        kind=kind, layer=layer, weights=weights, queries=tuple(queries), keys=tuple(keys)
    )


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
        picture.shorten(key) for key in maps[-1].keys
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


@pytest.mark.parametrize("suffix", [".png", ".svg", ".PNG"])
def test_any_token_can_be_drawn(suffix, tmp_path):
    maps = [make_map(NASTY, NASTY, heads=2), make_map(NASTY, "ab", heads=2, kind="encoder")]
    path = tmp_path / f"map{suffix}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_maps(maps, path, title="</title><b>$", subtitle="--> </p>")
    assert list(tmp_path.iterdir()) == [path]
    if suffix == ".svg":
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    if suffix == ".PNG":
        assert imread(path, format="png").ndim == 3


def test_heads_can_be_averaged():
    one = make_map("abc", "ab", heads=4)
    (mean,) = mean_heads([one])
    np.testing.assert_allclose(mean.weights, [one.weights.mean(axis=0)])
    assert (mean.queries, mean.keys) == (one.queries, one.keys)


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
    for suffix in (".png", ".svg"):
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
    (tmp_path / "folder.svg").mkdir()
    for path in ("file/map.svg", "folder.svg"):
        with pytest.raises(
            FolderError, match=r"cannot be written .*; free some space or choose"
        ) as caught:
            draw_maps([make_map()], tmp_path / path, title="Title")
        assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.svg"]


def test_a_failure_leaves_the_old_file_whole(tmp_path, monkeypatch):
    path = tmp_path / "map.svg"
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
