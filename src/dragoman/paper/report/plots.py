"""Render the description of a plot with matplotlib."""

import io
import math
import textwrap
from collections.abc import Sequence
from typing import Any

from dragoman.paper.report.result import Bar, Bars, HeatMap, Lines, Mark, Plot, Series, show

# Colours for colour-blind readers (Okabe and Ito), with a marker each for print.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#4d4d4d", "#e69f00")
_MARKERS = "osD^vP*X"
_INK, _FAINT = "#221d29", "#8d8796"
_SETTINGS: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.parse_math": False,
    "text.color": _INK,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.labelcolor": _INK,
    "axes.edgecolor": _FAINT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
_PANEL_INCHES = (5.6, 4.0)
_BAR_INCHES = 0.27
_PER_ROW = 2
_MOST_NUMBERED_CELLS = 120
_MOST_TICKED_SIZES = 9
_MOST_MARKED_POINTS = 24
_PLAIN_EXPONENTS = range(-3, 5)


def draw(plot: Plot) -> bytes:
    """Render a plot as a PNG."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    columns = min(_PER_ROW, len(plot.panels))
    rows = math.ceil(len(plot.panels) / columns)
    deepest = max(map(_inches_deep, plot.panels))
    with matplotlib.rc_context(_SETTINGS):
        size = (_PANEL_INCHES[0] * max(columns, 1.3), deepest * rows + 0.5)
        layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
        figure = Figure(figsize=size, facecolor="white", layout=layout)
        figure.suptitle(textwrap.fill(plot.title, 58 * columns), size=13, weight="bold")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        for panel, each in zip(plot.panels, axes, strict=False):
            match panel:
                case Lines():
                    _draw_lines(each, panel)
                case HeatMap():
                    _draw_heat_map(each, panel, figure)
                case Bars():
                    _draw_bars(each, panel)
            if panel.title:
                each.set_title(textwrap.fill(panel.title, 52), loc="left", pad=16)
        for each in axes[len(plot.panels) :]:
            each.set_axis_off()
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


def _inches_deep(panel: Lines | HeatMap | Bars) -> float:
    """Return the height of a panel in inches."""
    if isinstance(panel, Bars):
        return max(_PANEL_INCHES[1], 1.2 + _BAR_INCHES * len(panel.bars))
    if isinstance(panel, HeatMap) and panel.y_names:
        return max(_PANEL_INCHES[1], 1.2 + 0.3 * len(panel.y_names))
    return _PANEL_INCHES[1]


def _draw_lines(axes: Any, panel: Lines) -> None:  # noqa: ANN401
    for index, series in enumerate(panel.series):
        _draw_series(axes, series, index)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.set_xscale(panel.x_scale)
    axes.set_yscale(panel.y_scale)
    if panel.y_limits is not None:
        axes.set_ylim(*panel.y_limits)
    axes.grid(color="#e4e0e8", linewidth=0.7)
    axes.set_axisbelow(True)
    _write_numbers(axes)
    sizes = sorted({x for series in panel.series for x in series.x})
    if panel.x_scale == "log" and len(sizes) <= _MOST_TICKED_SIZES and max(sizes) < 1e6:
        axes.set_xticks(sizes, [f"{size:.4g}" for size in sizes])
        axes.set_xticks([], minor=True)
    _draw_marks(axes, panel.marks)
    _name_points(axes, panel.series)
    if len(panel.series) > 1 and not all(series.point_names for series in panel.series):
        axes.legend(loc="best")


def _name_points(axes: Any, several: Sequence[Series]) -> None:  # noqa: ANN401
    """Label points, each at the first position where the label covers nothing."""
    # Label positions: alignment, and offset in shares of half the label's size and of the axes.
    sides = (("left", "center", 1, 0), ("right", "center", -1, 0),
             ("center", "bottom", 0, 0.05), ("center", "top", 0, -0.05))  # fmt: skip
    to_share = axes.transData + axes.transAxes.inverted()
    points = [to_share.transform(each) for series in several
              for each in zip(series.x, series.y, strict=True)]  # fmt: skip
    taken = [(x, y, 0.012, 0.02) for x, y in points]
    for index, series in enumerate(several):
        for x, y, name in zip(series.x, series.y, series.point_names, strict=False):
            (across, up), half = to_share.transform((x, y)), 0.011 * len(name)
            boxes = [(across + right * (half + 0.02), up + above, half, 0.025)
                     for _, _, right, above in sides]  # fmt: skip
            free = (each for each, box in enumerate(boxes)
                    if box[0] > half and not _overlaps(box, taken))  # fmt: skip
            chosen = next(free, 0)
            taken.append(boxes[chosen])
            align, valign, right, above = sides[chosen]
            axes.annotate(
                name, (x, y), xytext=(7 * right, 100 * above), textcoords="offset points",
                size=8.5, color=_COLOURS[index % len(_COLOURS)], ha=align, va=valign,
            )  # fmt: skip


def _overlaps(box: tuple[float, ...], others: Sequence[tuple[float, ...]]) -> bool:
    """Tell whether a box (centre and half sizes) overlaps another."""
    x, y, width, height = box
    return any(
        abs(x - other[0]) < width + other[2] and abs(y - other[1]) < height + other[3]
        for other in others
    )


def _draw_series(axes: Any, series: Series, index: int) -> None:  # noqa: ANN401
    colour = _COLOURS[index % len(_COLOURS)]
    joined = {"line": "-", "dashes": "--", "dots": ""}[series.style]
    # No markers on curves of many points.
    is_curve = len(series.x) > _MOST_MARKED_POINTS
    marker = "" if is_curve and series.style != "dots" else _MARKERS[index % len(_MARKERS)]
    axes.plot(series.x, series.y, color=colour, linestyle=joined, marker=marker,
              markersize=2.5 if is_curve else 4.5, linewidth=1.6, label=series.name)  # fmt: skip
    if series.deviation is not None:
        low = [y - each for y, each in zip(series.y, series.deviation, strict=True)]
        high = [y + each for y, each in zip(series.y, series.deviation, strict=True)]
        axes.fill_between(series.x, low, high, color=colour, alpha=0.18, linewidth=0)


def _draw_marks(axes: Any, marks: tuple[Mark, ...]) -> None:  # noqa: ANN401
    for mark in marks:
        axes.axvline(mark.value, color=_FAINT, linestyle=":", linewidth=1.4)
        axes.annotate(
            mark.text, (mark.value, 1), xycoords=("data", "axes fraction"), xytext=(3, 1),
            textcoords="offset points", size=8.5, color="#6a6373", va="bottom", ha="center",
        )  # fmt: skip


def _draw_heat_map(axes: Any, panel: HeatMap, figure: Any) -> None:  # noqa: ANN401
    cells = [value for row in panel.values for value in row]
    most = panel.largest or max(abs(value) for value in cells) or 1.0
    colours, low = ("RdBu_r", -most) if panel.is_signed else ("magma_r", 0.0)
    image = axes.imshow(
        panel.values, cmap=colours, vmin=low, vmax=most, aspect="auto", interpolation="none"
    )
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.spines[:].set_visible(False)
    for names, put in ((panel.x_names, axes.set_xticks), (panel.y_names, axes.set_yticks)):
        if names:
            put(range(len(names)), names)
    if max(map(len, panel.x_names), default=0) * len(panel.x_names) > 60:
        axes.tick_params(axis="x", rotation=90)
    if len(cells) <= _MOST_NUMBERED_CELLS:
        for row_index, row in enumerate(panel.values):
            for column_index, value in enumerate(row):
                ink = "white" if abs(value) > 0.55 * most else _INK
                axes.text(column_index, row_index, f"{value:.2f}", size=8.5, color=ink,
                          ha="center", va="center")  # fmt: skip
    figure.colorbar(image, ax=axes, label=panel.value_label).outline.set_visible(False)


def _draw_bars(axes: Any, panel: Bars) -> None:  # noqa: ANN401
    together: dict[str, list[Bar]] = {}
    for bar in panel.bars:
        together.setdefault(bar.name, []).append(bar)
    groups = list(dict.fromkeys(bar.group for bar in panel.bars))
    thickness = 0.8 / max(map(len, together.values()))
    is_log = panel.x_scale == "log"
    least = 10 ** math.floor(math.log10(min(bar.end for bar in panel.bars))) if is_log else 0
    for name_index, bars in enumerate(together.values()):
        for index, bar in enumerate(bars):
            start = bar.start or least
            axes.barh(
                name_index + thickness * (index - (len(bars) - 1) / 2), bar.end - start,
                left=start, height=thickness * 0.9, xerr=bar.deviation, ecolor=_INK, capsize=2,
                color=_COLOURS[groups.index(bar.group) % len(_COLOURS)],
            )  # fmt: skip
    axes.set_xscale(panel.x_scale)
    _write_numbers(axes)
    axes.set_yticks(range(len(together)), together)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(panel.x_label)
    axes.grid(axis="x", color="#e4e0e8", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.margins(y=0.01)
    _draw_marks(axes, panel.marks)
    if is_log:
        axes.set_xlim(left=least)
    elif any(bar.start for bar in panel.bars):
        seen = [*(bar.start for bar in panel.bars), *(bar.end for bar in panel.bars),
                *(mark.value for mark in panel.marks)]  # fmt: skip
        margin = 0.04 * (max(seen) - min(seen))
        axes.set_xlim(min(seen) - margin, max(seen) + margin)
    if len(groups) > 1:
        handles = [axes.barh(0, 0, color=_COLOURS[index % len(_COLOURS)])
                   for index in range(len(groups))]  # fmt: skip
        axes.legend(handles, groups, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=3)


def _write_numbers(axes: Any) -> None:  # noqa: ANN401
    """Format the tick labels, and limit their number."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        if scale == "log":
            axis.set_major_formatter(FuncFormatter(lambda value, _: _write_power(value)))
            axis.set_minor_formatter(NullFormatter())
        elif axis is axes.xaxis:
            axis.set_major_locator(MaxNLocator(6))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


def _write_power(value: float) -> str:
    """Write a power of ten."""
    exponent = round(math.log10(value))
    if exponent in _PLAIN_EXPONENTS:
        return f"{value:,.6g}"
    return show(value, ".0e").removeprefix("1·")
