"""Draw attention heat maps as a picture (.png, .svg)."""

import io
import itertools
import math
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import OptionError
from dragoman.files import write_file
from dragoman.insight.maps import GRADIENT, AttentionMap

_LONGEST_LABEL = 24
_MOST_PIXELS = 40e6
_FEWEST_DOTS_PER_INCH = 75


def draw_maps(
    maps: Sequence[AttentionMap],
    path: Path,
    *,
    title: str,
    subtitle: str = "",
) -> None:
    """Draw one heat map per layer and head into a file.

    Parameters
    ----------
    maps : Sequence[AttentionMap]
        What to draw, from top to bottom; no kind and layer twice.
    path : Path
        The file; its suffix, .png or .svg, says what to make. It appears only when whole.
    title : str
        The heading.
    subtitle : str
        A line below the heading.

    Notes
    -----
    A picture has a fixed scale, from 0 to 1, and grows with the number of tokens so that labels
    stay legible. Where that would need more than 40 million pixels, it is refused.
    """
    suffix = path.suffix.lower()
    if suffix not in (".png", ".svg"):
        raise OptionError(f"{path}: a picture of “{suffix}” is unknown; use .png, .svg or .html")
    if not maps:
        raise OptionError(f"{path}: there is no attention to draw; choose at least one layer")
    if len({(one.kind, one.layer) for one in maps}) < len(maps):
        raise ValueError("the same kind and layer are given twice")
    legible = [
        replace(
            one,
            queries=tuple(map(make_legible, one.queries)),
            keys=tuple(map(make_legible, one.keys)),
        )
        for one in maps
    ]
    title, subtitle = (make_legible(text) if text else "" for text in (title, subtitle))
    text = title + subtitle + "".join(_list_labels(legible))
    num_panels = sum(len(one.weights) for one in legible)
    content = render_figure(path, text, num_panels, lambda: _draw_figure(legible, title, subtitle))
    write_file(path, content)


def mean_heads(maps: Sequence[AttentionMap]) -> list[AttentionMap]:
    """Replace the heads of each map by their mean."""
    return [replace(one, weights=one.weights.mean(axis=0, keepdims=True)) for one in maps]


def make_legible(token: str) -> str:
    """Make blanks, control characters and undecodable bytes of a label visible."""
    shown = []
    for character in token or "∅":
        category = unicodedata.category(character)
        if category == "Cc":
            shown.append(repr(character)[1:-1])
        elif category == "Cs" or character in "\ufffe\uffff":
            shown.append("\ufffd")
        else:
            shown.append(character)
    text = "".join(shown)
    return text if text.strip() else "␣" * len(text)


def shorten(label: str) -> str:
    """Truncate a label to the width beside a picture."""
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


def render_figure(path: Path, text: str, num_panels: int, draw: Callable[[], Any]) -> bytes:
    """Render with matplotlib in memory, with fonts that have every character.

    Parameters
    ----------
    path : Path
        The file that it is for, .png or .svg.
    text : str
        All characters that are drawn.
    num_panels : int
        How many heat maps there are, to tell somebody for whom they are too many.
    draw : Callable[[], Any]
        Makes the figure.
    """
    import matplotlib

    families, missing = _choose_fonts(text)
    if missing:
        few = "".join(sorted(missing)[:8])
        message = f"{path}: no installed font has “{few}”, drawn as boxes; .html has no such limit"
        warnings.warn(message, stacklevel=3)
    settings: dict[Any, Any] = {
        "font.family": families,
        "text.parse_math": False,
        # Text that cannot be drawn here may be legible where the file is opened.
        "svg.fonttype": "none" if missing else "path",
        "svg.hashsalt": "dragoman",
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = draw()
        width, height = figure.get_size_inches()
        dots = min(200.0, math.sqrt(_MOST_PIXELS / (width * height)))
        if dots < _FEWEST_DOTS_PER_INCH and path.suffix.lower() == ".png":
            raise OptionError(
                f"{path}: too large for one legible picture (panels: {num_panels}); choose fewer "
                "layers, average the heads, or write .svg or .html"
            )
        content = io.BytesIO()
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(content, format=path.suffix[1:].lower(), dpi=dots, metadata=metadata)
    return content.getvalue()


def _choose_fonts(text: str) -> tuple[list[str], set[str]]:
    """Find installed fonts that together have every character; also return characters none has."""
    from matplotlib.font_manager import findfont, fontManager, get_font

    families = ["DejaVu Sans"]
    missing = {character for character in text if not character.isspace()}
    missing -= set(map(chr, get_font(findfont(families[0])).get_charmap()))
    fonts = [
        font
        for font in fontManager.ttflist
        # “Last Resort” comes with matplotlib and has a box for every character.
        if font.style == "normal" and font.weight == 400 and "Last Resort" not in font.name
    ]
    for font in sorted(fonts, key=lambda font: ("Sans" not in font.name, font.name, font.fname)):
        if not missing:
            break
        try:
            found = missing & set(map(chr, get_font(font.fname).get_charmap()))
        except (OSError, RuntimeError):
            continue
        if found and font.name not in families:
            families.append(font.name)
            missing -= found
    return families, missing


def measure(texts: Iterable[str], size: float, weight: str = "normal") -> float:
    """Measure the widest of some texts."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    renderer, font = RendererAgg(8, 8, 72), FontProperties(size=size, weight=weight)
    return max(renderer.get_text_width_height_descent(text, font, False)[0] for text in texts) / 72


def wrap_text(text: str, size: float, weight: str, width: float) -> list[tuple[str, float, str]]:
    """Break a text into lines."""
    share = width / max(measure([text or "."], size, weight), width)
    return [(line, size, weight) for line in textwrap.wrap(text, max(8, int(len(text) * share)))]


def _draw_figure(maps: Sequence[AttentionMap], title: str, subtitle: str) -> Any:  # noqa: ANN401
    """Lay out all panels in inches from the top left, one row per map, and draw them."""
    from matplotlib.figure import Figure

    alone = len(maps) == 1 and len(maps[0].weights) == 1
    longest = max(max(one.weights.shape[1:]) for one in maps)
    cell = min(0.6, max(0.17, 6.5 / longest)) if alone else min(0.4, max(0.125, 1.6 / longest))
    size = min(11 if alone else 8.5, cell * 72 * 0.8)
    names = [one.name for one in maps]
    with_keys = [one.keys != below.keys for one, below in itertools.pairwise(maps)] + [True]
    with_heads = [not alone and above for above in [True, *with_keys[:-1]]]
    left = 0.55 + measure(_list_labels(maps, keys=False), size)
    widest_key = measure(_list_labels(maps, queries=False), size)
    rotation, below = (0, 0.25) if widest_key < cell * 0.8 else (90, widest_key + 0.15)
    pitch = 0.12 + max(0.5, cell * max(len(one.keys) for one in maps))
    width = max(left + pitch * max(len(one.weights) for one in maps) + 1.0, 4.5)
    lines = ((title, 13, "bold"), (subtitle, 10, "normal"))
    heading = [line for each in lines for line in wrap_text(*each, width - 0.4)]
    y = 0.35 + sum(points / 50 for _, points, _ in heading)
    tops, depths = [], [max(cell * len(one.queries), measure(names, 9, "bold")) for one in maps]
    for depth, has_keys, has_heads in zip(depths, with_keys, with_heads, strict=True):
        tops.append(y + 0.25 * has_heads)
        y = tops[-1] + depth + 0.12 + below * has_keys
    bar_depth = max(0.8, min(3.0, depths[0]))
    height, y = max(y + 0.1, tops[0] + bar_depth + 0.2), 0.2
    figure = Figure(figsize=(width, height), facecolor="white")
    for line, points, weight in heading:
        figure.text(0.2 / width, 1 - y / height, line, size=points, weight=weight, va="top")
        y += points / 50

    def place(x: float, top: float, wide: float, deep: float) -> Any:  # noqa: ANN401
        return figure.add_axes((x / width, 1 - (top + deep) / height, wide / width, deep / height))

    for index, (one, top) in enumerate(zip(maps, tops, strict=True)):
        deep, wide = cell * len(one.queries), cell * len(one.keys)
        x, middle = 0.2 / width, 1 - (top + deep / 2) / height
        figure.text(x, middle, names[index], size=9, rotation=90, va="center", weight="bold")
        for head_index, weights in enumerate(one.weights):
            axes = place(left + head_index * pitch, top, wide, deep)
            image = _draw_panel(axes, weights, cell)
            is_head = with_heads[index] and one.kind != GRADIENT
            axes.set_title(f"head {head_index + 1}" if is_head else "", size=9, pad=4)
            keys = one.keys if with_keys[index] else ()
            queries = one.queries if head_index == 0 else ()
            axes.set_xticks(range(len(keys)), map(shorten, keys), size=size, rotation=rotation)
            axes.set_yticks(range(len(queries)), map(shorten, queries), size=size)
    bar = place(width - 0.75, tops[0], 0.14, bar_depth)
    figure.colorbar(image, cax=bar, ticks=[0, 0.5, 1]).outline.set_visible(False)
    bar.tick_params(length=0, labelsize=9)
    return figure


def _draw_panel(axes: Any, weights: np.ndarray, cell: float) -> Any:  # noqa: ANN401
    """Draw one heat map, with numbers where they fit, and return its image."""
    image = axes.imshow(
        weights, cmap="magma_r", vmin=0, vmax=1, interpolation="none", aspect="auto"
    )
    axes.tick_params(length=0, pad=3)
    axes.spines[:].set_color("#c9c4d0")
    if cell >= 0.4:
        for (row, column), weight in np.ndenumerate(weights):
            ink = "white" if weight > 0.5 else "#3b3344"
            text = f"{weight:.2f}" if weight >= 0.005 else ""
            axes.text(column, row, text, size=7.5, color=ink, ha="center", va="center")
    return image


def _list_labels(
    maps: Sequence[AttentionMap], *, queries: bool = True, keys: bool = True
) -> list[str]:
    return [shorten(token) for one in maps for token in (*one.queries * queries, *one.keys * keys)]
