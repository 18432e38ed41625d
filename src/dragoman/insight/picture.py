"""Draw heat maps of attention: as a picture (.png, .svg) or as a page to explore (.html)."""

import html
import io
import itertools
import json
import math
import os
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.errors import OptionError

_KINDS = ("encoder", "decoder", "cross")
_LONGEST_LABEL = 24
_MOST_PIXELS = 40e6
_FEWEST_DOTS_PER_INCH = 75


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionMap:
    """What the heads of one attention layer attend to in one sentence.

    Attributes
    ----------
    kind : str
        “encoder” or “decoder” for self-attention, “cross” for the decoder over the source.
    layer : int
        The layer, counted from 1.
    weights : np.ndarray
        Float [heads, queries, keys]; each row sums to 1.
    queries, keys : tuple[str, ...]
        The tokens that attend and those attended to.
    """

    kind: str
    layer: int
    weights: np.ndarray
    queries: tuple[str, ...]
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"kind is {self.kind!r}, not one of {', '.join(_KINDS)}")
        expected = (len(self.queries), len(self.keys))
        if self.weights.ndim != 3 or self.weights.shape[1:] != expected or not self.weights.size:
            raise ValueError(f"weights are {self.weights.shape}, not (heads, *{expected})")


def draw_maps(
    maps: Sequence[AttentionMap],
    path: Path,
    *,
    title: str,
    subtitle: str = "",
    average_heads: bool = False,
) -> None:
    """Draw one heat map per layer and head into a file.

    Parameters
    ----------
    maps : Sequence[AttentionMap]
        What to draw, from top to bottom; no kind and layer twice.
    path : Path
        The file; its suffix, .png, .svg or .html, says what to make. It appears only when whole.
    title : str
        The heading.
    subtitle : str
        A line below the heading.
    average_heads : bool
        Whether to draw the mean of the heads in place of each head.

    Notes
    -----
    A picture has a fixed scale, from 0 to 1, and grows with the number of tokens so that labels
    stay legible. Where that would need more than 40 million pixels, it is refused.
    """
    suffix = path.suffix.lower()
    if suffix not in (".png", ".svg", ".html"):
        raise OptionError(f"{path}: a picture of “{suffix}” is unknown; use .png, .svg or .html")
    if not maps:
        raise OptionError(f"{path}: there is no attention to draw; choose at least one layer")
    if len({(one.kind, one.layer) for one in maps}) < len(maps):
        raise ValueError("the same kind and layer are given twice")
    legible = [
        replace(
            one,
            weights=one.weights.mean(axis=0, keepdims=True) if average_heads else one.weights,
            queries=tuple(map(_make_legible, one.queries)),
            keys=tuple(map(_make_legible, one.keys)),
        )
        for one in maps
    ]
    title, subtitle = (_make_legible(text) if text else "" for text in (title, subtitle))
    if suffix == ".html":
        content = _write_page(legible, title, subtitle, average_heads).encode()
    else:
        content = _render(legible, path, title, subtitle)
    _put_in_place(path, content)


def _make_legible(token: str) -> str:
    """Show what cannot be seen or written: controls, blanks and what is no character."""
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


def _put_in_place(path: Path, content: bytes) -> None:
    """Write beside the file, then move: a reader sees the old file or the new, never half."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise OptionError(
            f"{path}: cannot be written ({reason}); name a file in a folder you may write to"
        ) from error


def _shorten(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else label[: _LONGEST_LABEL - 1] + "…"


def _render(maps: Sequence[AttentionMap], path: Path, title: str, subtitle: str) -> bytes:
    """Draw with matplotlib into memory."""
    import matplotlib

    families, missing = _choose_fonts(title + subtitle + "".join(_list_labels(maps)))
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
        figure = _draw_figure(maps, title, subtitle)
        width, height = figure.get_size_inches()
        dots = min(200.0, math.sqrt(_MOST_PIXELS / (width * height)))
        if dots < _FEWEST_DOTS_PER_INCH and path.suffix.lower() == ".png":
            raise OptionError(
                f"{path}: too large for one legible picture (panels: "
                f"{sum(len(one.weights) for one in maps)}); choose fewer layers, average the "
                "heads, or write .svg or .html"
            )
        content = io.BytesIO()
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
        figure.savefig(content, format=path.suffix[1:].lower(), dpi=dots, metadata=metadata)
    return content.getvalue()


def _choose_fonts(text: str) -> tuple[list[str], set[str]]:
    """Find installed fonts that together have every character; return also those none has."""
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


def _measure(texts: Iterable[str], size: float, weight: str = "normal") -> float:
    """Find the width of the widest text in inches."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    renderer, font = RendererAgg(8, 8, 72), FontProperties(size=size, weight=weight)
    return max(renderer.get_text_width_height_descent(text, font, False)[0] for text in texts) / 72


def _wrap(text: str, size: float, weight: str, width: float) -> list[tuple[str, float, str]]:
    """Break a text into lines of a width in inches, each with its size and weight."""
    share = width / max(_measure([text or "."], size, weight), width)
    return [(line, size, weight) for line in textwrap.wrap(text, max(8, int(len(text) * share)))]


def _draw_figure(maps: Sequence[AttentionMap], title: str, subtitle: str) -> Any:  # noqa: ANN401
    """Lay out all panels in inches from the top left, a row per map, and draw them."""
    from matplotlib.figure import Figure

    alone = len(maps) == 1 and len(maps[0].weights) == 1
    longest = max(max(one.weights.shape[1:]) for one in maps)
    cell = min(0.6, max(0.17, 6.5 / longest)) if alone else min(0.4, max(0.125, 1.6 / longest))
    size = min(11 if alone else 8.5, cell * 72 * 0.8)
    names = [f"{one.kind} {one.layer}" for one in maps]
    with_keys = [one.keys != below.keys for one, below in itertools.pairwise(maps)] + [True]
    with_heads = [not alone and above for above in [True, *with_keys[:-1]]]
    left = 0.55 + _measure(_list_labels(maps, keys=False), size)
    widest_key = _measure(_list_labels(maps, queries=False), size)
    rotation, below = (0, 0.25) if widest_key < cell * 0.8 else (90, widest_key + 0.15)
    pitch = 0.12 + max(0.5, cell * max(len(one.keys) for one in maps))
    width = max(left + pitch * max(len(one.weights) for one in maps) + 1.0, 4.5)
    heading = _wrap(title, 13, "bold", width - 0.4) + _wrap(subtitle, 10, "normal", width - 0.4)
    y = 0.35 + sum(points / 50 for _, points, _ in heading)
    tops, depths = [], [max(cell * len(one.queries), _measure(names, 9, "bold")) for one in maps]
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
            axes.set_title(f"head {head_index + 1}" if with_heads[index] else "", size=9, pad=4)
            keys = one.keys if with_keys[index] else ()
            queries = one.queries if head_index == 0 else ()
            axes.set_xticks(range(len(keys)), map(_shorten, keys), size=size, rotation=rotation)
            axes.set_yticks(range(len(queries)), map(_shorten, queries), size=size)
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
    return [_shorten(token) for one in maps for token in (*one.queries * queries, *one.keys * keys)]


def _write_page(
    maps: Sequence[AttentionMap], title: str, subtitle: str, average_heads: bool
) -> str:
    """Fill the page: text is escaped, and the data hold no “<” that could end their element."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    data = {
        "colours": [to_hex(colour) for colour in colormaps["magma"](range(256))],
        "average": average_heads,
        "maps": [
            {
                "kind": one.kind,
                "layer": one.layer,
                "queries": one.queries,
                "keys": one.keys,
                "heads": np.round(one.weights.astype(np.float64), 4).tolist(),
            }
            for one in maps
        ],
    }
    parts = {
        "TITLE": html.escape(title),
        "SUBTITLE": html.escape(subtitle),
        "DATA": json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),
    }
    # In one pass, so that nothing inside a text is taken for a place to fill.
    return re.sub(r"@(TITLE|SUBTITLE|DATA)@", lambda found: parts[found[1]], _PAGE)


_PAGE = r"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>@TITLE@</title>
<style>
  :root { color-scheme: light dark; --paper: #fff; --ink: #221d29; --faint: #6a6373;
    --line: #d8d3de; --accent: #86207c }
  @media (prefers-color-scheme: dark) { :root { --paper: #16131b; --ink: #ece8f1;
    --faint: #a69eb1; --line: #3b3544; --accent: #f48fb8 } }
  body { margin: 2rem auto; padding: 0 1.5rem; max-width: 76rem;
    font: 1rem/1.4 system-ui, sans-serif; background: var(--paper); color: var(--ink) }
  h1 { margin: 0; font-size: 1.5rem } p { margin: .3rem 0 1.2rem; color: var(--faint) }
  form { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: end; margin-bottom: 1.2rem }
  fieldset { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap }
  legend, .scale { font-size: .85rem; color: var(--faint) }
  fieldset input { position: absolute; opacity: 0 }
  fieldset span { display: block; padding: .3rem .8rem; margin-left: -1px;
    border: 1px solid var(--line) }
  fieldset span:hover { cursor: pointer; color: var(--accent) }
  input:checked + span { background: var(--accent); color: var(--paper) }
  :focus-visible, input:focus-visible + span { outline: 3px solid var(--accent);
    outline-offset: 2px }
  .scale i { display: inline-block; width: 9rem; height: .8rem; margin: 0 .5rem }
  #heads { display: grid; gap: .8rem;
    grid-template-columns: repeat(auto-fill, minmax(7.5rem, 1fr)) }
  #heads button { font: inherit; font-size: .85rem; color: inherit; background: none;
    padding: .4rem; border: 1px solid var(--line); border-radius: .4rem; cursor: pointer }
  #heads [aria-pressed=true] { border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent) }
  canvas { display: block; width: 100%; max-height: 12rem; image-rendering: pixelated }
  #large { overflow-x: auto; padding: 1.5rem 0 5rem }
  table { border-collapse: collapse; font-size: var(--size) }
  caption { text-align: start; font-weight: 600; font-size: 1rem; padding-bottom: .6rem }
  th { font-weight: 400; white-space: nowrap; padding: .1rem .4rem; text-align: end;
    max-width: 14rem; overflow: hidden; text-overflow: ellipsis; line-height: 1.1 }
  thead th { writing-mode: vertical-rl; text-orientation: sideways; transform: rotate(180deg);
    text-align: start; max-width: none; max-height: 14rem; padding: 0;
    text-indent: .4rem; width: var(--cell) }
  td { min-width: var(--cell); height: var(--cell); padding: 0; border: 1px solid var(--paper) }
  td:focus { outline-offset: -2px } th.lit { color: var(--accent); font-weight: 700 }
  #tip { position: fixed; z-index: 1; pointer-events: none; padding: .3rem .6rem; max-width: 30rem;
    border-radius: .3rem; background: var(--ink); color: var(--paper); overflow-wrap: anywhere }
</style>
<h1 dir="auto">@TITLE@</h1>
<p dir="auto">@SUBTITLE@</p>
<noscript>This page draws its maps with JavaScript, which is switched off.</noscript>
<form><fieldset id="kinds"></fieldset><fieldset id="layers"></fieldset>
  <div class="scale">weight 0<i id="scale"></i>1</div></form>
<div id="heads" role="group" aria-label="Heads"></div>
<div id="large"></div>
<div id="tip" role="status" hidden></div>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
const find = id => document.getElementById(id);
const data = JSON.parse(find("data").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
let map = data.maps[0], head = 0;
const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
// Small weights recede into the paper, whether it is light or dark.
const colour = weight => {
  const place = Math.round(255 * Math.min(1, Math.max(0, weight)));
  return data.colours[dark.matches ? place : 255 - place];
};
const nameHead = index => data.average ? "mean of heads" : `head ${index + 1}`;

function tell(box, index, query, key) {
  const weight = map.heads[index][query][key].toFixed(3), tip = find("tip");
  tip.replaceChildren(make("bdi", { textContent: map.queries[query] }), " → ",
    make("bdi", { textContent: map.keys[key] }), make("b", { textContent: `  ${weight}` }));
  tip.hidden = false;
  tip.style.left = `${Math.max(0, Math.min(box.right + 8, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(0, Math.min(box.bottom + 8, innerHeight - tip.offsetHeight - 8))}px`;
}
function hush() {
  find("tip").hidden = true;
  document.querySelectorAll("th.lit").forEach(label => label.classList.remove("lit"));
}
function choose(id, legend, options, current, pick) {
  const focused = find(id).contains(document.activeElement);
  find(id).replaceChildren(make("legend", { textContent: legend }), ...options.map(option =>
    make("label", {}, make("input", { type: "radio", name: id, checked: option === current,
      onchange: () => pick(option) }), make("span", { textContent: option }))));
  if (focused) find(id).querySelector(":checked").focus();
}
function thumbnail(weights, index) {
  const canvas = make("canvas", { width: map.keys.length, height: map.queries.length });
  const brush = canvas.getContext("2d");
  weights.forEach((row, query) => row.forEach((weight, key) => {
    brush.fillStyle = colour(weight);
    brush.fillRect(key, query, 1, 1);
  }));
  canvas.onpointermove = event => {
    const box = canvas.getBoundingClientRect();
    const part = (at, length, count) =>
      Math.min(count - 1, Math.max(0, Math.floor(at / length * count)));
    tell({ right: event.clientX + 6, bottom: event.clientY + 6 }, index,
      part(event.clientY - box.top, box.height, map.queries.length),
      part(event.clientX - box.left, box.width, map.keys.length));
  };
  canvas.onpointerleave = hush;
  return make("button", { type: "button", ariaPressed: index === head, onclick: () => {
    head = index;
    [...find("heads").children].forEach((one, place) => { one.ariaPressed = place === head; });
    enlarge();
  } }, canvas, nameHead(index));
}
function enlarge() {
  const label = (token, scope) =>
    make("th", { title: token, scope }, make("bdi", { textContent: token }));
  const rows = map.heads[head].map((row, query) => make("tr", {}, label(map.queries[query], "row"),
    ...row.map((weight, key) => make("td", { tabIndex: query + key ? -1 : 0,
      ariaLabel: `${map.queries[query]} → ${map.keys[key]}: ${weight.toFixed(3)}`,
      style: `background: ${colour(weight)}` }))));
  const top = make("tr", {}, make("td", {}), ...map.keys.map(token => label(token, "col")));
  const caption = `${map.kind}, layer ${map.layer}, ${nameHead(head)}: rows attend to columns`;
  const table = make("table", {}, make("caption", { textContent: caption }),
    make("thead", {}, top), make("tbody", {}, ...rows));
  const most = Math.max(map.keys.length, map.queries.length);
  table.style.setProperty("--cell", `${Math.min(2.6, Math.max(1.1, 40 / most))}rem`);
  table.style.setProperty("--size", most > 24 ? ".75rem" : "1rem");
  const show = event => {
    hush();
    const cell = event.target.closest("tbody td");
    if (!cell) return;
    const query = cell.parentNode.rowIndex - 1, key = cell.cellIndex - 1;
    cell.parentNode.cells[0].classList.add("lit");
    top.cells[key + 1].classList.add("lit");
    tell(cell.getBoundingClientRect(), head, query, key);
  };
  table.onpointerover = show;
  table.onpointerleave = hush;
  table.addEventListener("focusin", show);
  table.addEventListener("focusout", hush);
  table.onkeydown = event => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    const cell = event.target.closest("tbody td");
    if (!step || !cell) return;
    event.preventDefault();
    const next = rows[cell.parentNode.rowIndex - 1 + step[0]]?.cells[cell.cellIndex + step[1]];
    if (next?.tagName !== "TD") return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  };
  find("large").replaceChildren(table);
}
function draw() {
  hush();
  const layers = data.maps.filter(one => one.kind === map.kind).map(one => one.layer);
  const pick = (kind, layer) => {
    map = data.maps.find(one => one.kind === kind && one.layer === layer)
      ?? data.maps.find(one => one.kind === kind);
    draw();
  };
  choose("kinds", "Attention", [...new Set(data.maps.map(one => one.kind))], map.kind,
    kind => pick(kind, map.layer));
  choose("layers", "Layer", layers, map.layer, layer => pick(map.kind, layer));
  head = Math.min(head, map.heads.length - 1);
  find("scale").style.background =
    `linear-gradient(to right, ${[...Array(11).keys()].map(tenth => colour(tenth / 10))})`;
  find("heads").replaceChildren(...map.heads.map(thumbnail));
  enlarge();
}
dark.onchange = draw;
draw();
</script>
"""
