"""Pictures: every kind of panel is drawn, as large as it needs to be, with what was asked for."""

import io

import matplotlib.image
import numpy as np
import pytest
from matplotlib.figure import Figure

from dragoman.paper.report import plots as drawing
from dragoman.paper.report.plots import draw
from dragoman.paper.report.result import Bar, Bars, HeatMap, Lines, Mark, Plot, Series

LINES = Lines(
    title="Lines", x_label="x (m)", y_label="y (s)", x_scale="log", y_scale="log",
    marks=(Mark(value=4, text="here"),),
    series=(
        Series(name="one", x=[2, 4, 8], y=[1, 2, 3], deviation=[0.1, 0.1, 0.1]),
        Series(name="two", x=[2, 4, 8], y=[3, 2, 1], style="dashes"),
    ),
)  # fmt: skip
MAP = HeatMap(
    title="", x_label="column", y_label="row", value_label="share", values=[[0, 0.5], [1, 0.25]],
    x_names=("a", "b"), y_names=("c", "d"), largest=1.0,
)  # fmt: skip
BARS = Bars(
    title="Bars", x_label="length", marks=(Mark(value=1.5, text="limit"),),
    bars=(
        Bar(name="a", group="g", end=2, deviation=0.2), Bar(name="a", group="h", end=3),
        Bar(name="b", group="g", end=1, start=0.5),
    ),
)  # fmt: skip


@pytest.fixture
def figures(monkeypatch):
    """Keep what was drawn, to look at it as the picture's maker sees it."""
    made = []
    kept = Figure.savefig

    def keep(figure, *args, **kwargs):
        made.append(figure)
        return kept(figure, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", keep)
    return made


def texts(figure) -> set[str]:
    figure.draw_without_rendering()
    return {
        each.get_text() for each in figure.findobj(match=lambda each: hasattr(each, "get_text"))
    }


def pixels(content: bytes) -> np.ndarray:
    return matplotlib.image.imread(io.BytesIO(content), format="png")


def test_all_panels_say_what_they_show(figures):
    content = draw(Plot(name="p", title="All $kinds$", panels=(LINES, MAP, BARS)))
    assert content.startswith(b"\x89PNG")
    assert pixels(content)[..., :3].std() > 0.01
    expected = {
        "All $kinds$", "Lines", "x (m)", "y (s)", "one", "two", "here", "2", "4", "8",
        "column", "row", "share", "a", "b", "c", "d", "0.50", "Bars", "length", "g", "h", "limit",
    }  # fmt: skip
    assert expected <= texts(figures[0])


def test_bars_grow_downwards_with_their_number():
    many = tuple(Bar(name=str(index), group="g", end=1) for index in range(40))
    small = pixels(draw(Plot(name="p", title="", panels=(BARS,))))
    large = pixels(draw(Plot(name="p", title="", panels=(Bars(title="", x_label="", bars=many),))))
    assert large.shape[0] > 2 * small.shape[0]
    assert large.shape[1] == small.shape[1]


def test_logarithmic_bars_begin_at_a_power_of_ten(figures):
    bars = (Bar(name="a", group="g", end=3e-5), Bar(name="b", group="g", end=2e-3))
    draw(Plot(name="p", title="", panels=(Bars(title="", x_label="", bars=bars, x_scale="log"),)))
    assert figures[0].axes[0].get_xlim()[0] == pytest.approx(1e-5)


def test_limits_are_kept(figures):
    panel = Lines(title="", x_label="", y_label="", y_limits=(0, 1),
                  series=(Series(name="s", x=[1, 2], y=[0.4, 5]),))  # fmt: skip
    draw(Plot(name="p", title="", panels=(panel,)))
    assert figures[0].axes[0].get_ylim() == (0, 1)


@pytest.mark.parametrize(
    ("value", "text"), [(1e19, "10¹⁹"), (1e-7, "10⁻⁷"), (10_000, "10,000"), (0.1, "0.1"), (1, "1")]
)
def test_powers_of_ten_beside_an_axis(value, text):
    assert drawing._write_power(value) == text


def test_names_of_near_points_do_not_cover_one_another(figures):
    series = Series(
        name="s", x=[1, 1.05, 2], y=[1, 1, 1.001], style="dots", point_names=("left", "right", "up")
    )
    draw(Plot(name="p", title="", panels=(
        Lines(title="", x_label="", y_label="", series=(series,)),)))  # fmt: skip
    figure = figures[0]
    figure.draw_without_rendering()
    boxes = [each.get_window_extent() for each in figure.axes[0].texts]
    assert len(boxes) == 3
    for index, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[index + 1 :])
