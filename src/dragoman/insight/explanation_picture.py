"""Draw an explanation as a picture (.png, .svg): three methods side by side."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dragoman.files import write_file
from dragoman.insight.explanation import CAPTIONS, Explanation
from dragoman.insight.picture import make_legible, measure, render_figure, shorten, wrap_text
from dragoman.insight.rise import Importance

_FOR, _AGAINST = "#86207c", "#0f6f6b"
_WEIGHTS = ["#ffffff", "#fdeccb", "#fec488", "#fc8961", "#e75263", "#b73779", "#832681", "#51127c"]
_GAP = 0.45


class Panel(NamedTuple):
    """The picture of one method."""

    name: str
    numbers: np.ndarray
    errors: np.ndarray | None
    is_signed: bool
    caption: str


def draw_explanation(found: Explanation, path: Path) -> None:
    """Draw an explanation into a file.

    Notes
    -----
    Colours of the signed accounts go with the square root of the numbers, so that small ones can
    be seen; where a number is less than twice its standard error, it is faint.
    """
    rows = [shorten(make_legible(word)) for word in found.target_words[:-1]]
    columns = [shorten(make_legible(word)) for word in found.source_words]
    rise = found.rise
    panels = [
        Panel("RISE", rise.values[:-1], rise.errors[:-1], True, CAPTIONS["rise"]),
        Panel("gradient × input", found.gradient[:-1], None, True, CAPTIONS["gradient"]),
    ]
    if found.attention is not None:
        panels.append(Panel("attention", found.attention[:-1], None, False, CAPTIONS["attention"]))
    title = make_legible(f"{found.source}  →  {found.translation}")
    text = title + "".join((*rows, *columns)) + "".join(CAPTIONS.values())
    num_panels = len(panels)
    content = render_figure(
        path, text, num_panels, lambda: _draw_figure(panels, rows, columns, title, rise)
    )
    write_file(path, content)


def _draw_figure(
    panels: Sequence[Panel], rows: list[str], columns: list[str], title: str, rise: Importance
) -> Any:  # noqa: ANN401
    """Lay the panels out side by side, with captions."""
    from matplotlib.figure import Figure

    cell = min(0.5, max(0.16, 4.5 / max(len(rows), len(columns))))
    size = min(10.0, cell * 72 * 0.8)
    left, head = measure(rows, size) + 0.3, measure(columns, size) + 0.25
    pitch = max(2.6, left + cell * len(columns)) + _GAP
    width = 0.2 + pitch * len(panels)
    heading = wrap_text(title, 13, "bold", width - 0.4)
    if rise.is_exact:
        doubt = f"RISE: exact, all {rise.num_masks} ways of leaving words out were tried"
    else:
        largest = rise.errors.max()
        doubt = f"RISE: {rise.num_masks} masks; largest Monte-Carlo standard error ± {largest:.2f}"
    heading += wrap_text(doubt, 10, "normal", width - 0.4)
    captions = [wrap_text(panel.caption, 8, "normal", pitch - _GAP) for panel in panels]
    top = 0.3 + sum(points / 50 for _, points, _ in heading) + 0.35 + head
    below = top + cell * len(rows) + 0.2
    height = below + max(map(len, captions)) * 0.16 + 0.2
    figure = Figure(figsize=(width, height), facecolor="white")
    y = 0.2
    for line, points, weight in heading:
        figure.text(0.2 / width, 1 - y / height, line, size=points, weight=weight, va="top")
        y += points / 50
    for index, (panel, caption) in enumerate(zip(panels, captions, strict=True)):
        x = 0.2 + index * pitch
        box = (x + left) / width, 1 - (top + cell * len(rows)) / height
        wide, high = cell * len(columns) / width, cell * len(rows) / height
        axes = figure.add_axes((*box, wide, high))
        _draw_panel(axes, panel, cell)
        axes.set_xticks(range(len(columns)), columns, size=size, rotation=90)
        axes.set_yticks(range(len(rows)), rows, size=size)
        name_y = 1 - (top - head - 0.1) / height
        figure.text(x / width, name_y, panel.name, size=10, weight="bold", va="bottom")
        for number, (line, points, _) in enumerate(caption):
            line_y = 1 - (below + number * 0.16) / height
            figure.text(x / width, line_y, line, size=points, va="top", color="#665f70")
    return figure


def _draw_panel(axes: Any, panel: Panel, cell: float) -> None:  # noqa: ANN401
    """Draw one heat map, with numbers where they fit."""
    from matplotlib.colors import LinearSegmentedColormap

    numbers = panel.numbers
    most = max(float(np.abs(numbers).max()), 1e-9)
    is_sure = np.ones(numbers.shape, bool)
    if panel.errors is not None:
        is_sure = np.abs(numbers) >= 2 * panel.errors
    if panel.is_signed:
        colours = LinearSegmentedColormap.from_list("signed", [_AGAINST, "white", _FOR])
        strength = np.sign(numbers) * np.sqrt(np.abs(numbers) / most) * np.where(is_sure, 1, 0.35)
        axes.imshow(strength, cmap=colours, vmin=-1, vmax=1, aspect="auto", interpolation="none")
    else:
        strength = numbers
        colours = LinearSegmentedColormap.from_list("weight", _WEIGHTS)
        axes.imshow(numbers, cmap=colours, vmin=0, vmax=1, aspect="auto", interpolation="none")
    axes.tick_params(length=0, pad=3, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_color("#c9c4d0")
    if cell < 0.36:
        return
    digits = 1 if most >= 10 else 2
    for (row, column), number in np.ndenumerate(numbers):
        if not is_sure[row, column] or abs(number) < 0.05 * most:
            continue
        ink = "white" if abs(strength[row, column]) > 0.6 else "#3b3344"
        text = f"{number:.{digits}f}".replace("-", "−")
        axes.text(column, row, text, size=6.5, color=ink, ha="center", va="center")
