"""The page on which attention is explored: one HTML file that needs nothing else."""

import html
import json
import re
from collections.abc import Sequence

import numpy as np

from dragoman.insight.maps import AttentionMap


def write_page(maps: Sequence[AttentionMap], title: str, subtitle: str, average_heads: bool) -> str:
    """Write maps as a page to explore in a browser, without anything from outside.

    Parameters
    ----------
    maps : Sequence[AttentionMap]
        What to show.
    title : str
        The page's title.
    subtitle : str
        A line below it.
    average_heads : bool
        Whether the heads were averaged.

    Returns
    -------
    str
        HTML. Text is escaped, and the data hold no “<” that could end their element.
    """
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
const isGradient = () => map.kind === "gradient";
const nameHead = index =>
  isGradient() ? "gradient × input" : data.average ? "mean of heads" : `head ${index + 1}`;

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
  const caption = isGradient() ? "gradient × input: the share of columns in deciding rows"
    : `${map.kind}, layer ${map.layer}, ${nameHead(head)}: rows attend to columns`;
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
  choose("kinds", "Kind", [...new Set(data.maps.map(one => one.kind))], map.kind,
    kind => pick(kind, map.layer));
  choose("layers", "Layer", layers, map.layer, layer => pick(map.kind, layer));
  find("layers").style.display = isGradient() ? "none" : "";
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
