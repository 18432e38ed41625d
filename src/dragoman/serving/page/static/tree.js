// The tree that beam search grows: columns are steps, boxes are subwords that were tried.
import { complain, fill, make, say } from "./dom.js";
import { fixed, percent } from "./wording.js";
import { inks } from "./colours.js";
import { shorten } from "./pen.js";
import { ask, isFrozen } from "./server.js";
import { change, focused, known, state } from "./state.js";
import { Picture } from "./canvas.js";
import { tidy } from "./numbers.js";

const columnWidth = 108, boxWidth = 86, rowHeight = 42, boxHeight = 32, top = 26, left = 10;
// Sentences of everyday language in which the models that come along go wrong word by word.
const greedyFails = {
  "fr en": "Jane visite l’Afrique en septembre.", "en fr": "He broke his leg.", "es en": "Prefiero ir a pie.",
  "en es": "He refused to help me.", "en de": "I cannot afford to buy a new car.", "de en": "Je mehr ich lerne, desto weniger weiß ich.",
};
let picture, playing = null, box, openCase, latest = "";

const beamNow = () => Math.max(1, Math.min(8, state.grow));
const nodesOf = tree => tree.nodes.map(([step, piece, parent, log, total, fate, score, isBest], index) => ({ index, step, piece, parent, log, total, fate, score, isBest }));
const stepsOf = tree => Math.max(...tree.nodes.map(node => node[0])) + 1;
const grownNow = tree => state.grown > 0 && state.grown < stepsOf(tree) ? state.grown : stepsOf(tree);

export function planTree(found) {
  const tree = found.trees[beamNow()];
  return planNodes(tree, grownNow(tree));
}
function planNodes(tree, grown) {
  const nodes = nodesOf(tree).filter(node => node.step < grown), counts = [];
  for (const node of nodes) { node.row = counts[node.step] ?? 0; counts[node.step] = node.row + 1; }
  const width = left * 2 + grown * columnWidth, height = top + Math.max(...counts) * rowHeight + 8, isWhole = grown === stepsOf(tree);
  const x = node => left + node.step * columnWidth, y = node => top + node.row * rowHeight;
  const isBest = node => isWhole && node.isBest;
  return {
    width, height,
    draw(pen, dark, at) {
      const ink = inks(dark);
      pen.rect(0, 0, width, height, ink.paper);
      for (let step = 0; step < grown; step++) pen.text(`${step + 1}`, left + step * columnWidth + boxWidth / 2, 11, { size: 11, align: "center", fill: ink.faint });
      const all = new Map(nodes.map(node => [node.index, node]));
      for (const node of nodes) {
        const parent = all.get(node.parent);
        if (parent) pen.line([[x(parent) + boxWidth, y(parent) + boxHeight / 2], [x(node), y(node) + boxHeight / 2]], isBest(node) ? ink.accent : node.fate === "pruned" ? ink.line : ink.faint, isBest(node) ? 3 : 1.2);
      }
      for (const node of nodes) {
        const isPruned = node.fate === "pruned", isHere = at?.index === node.index;
        const stroke = isHere || isBest(node) ? ink.accent : isPruned ? ink.line : ink.faint;
        pen.rect(x(node), y(node), boxWidth, boxHeight, ink.paper);
        pen.frame(x(node), y(node), boxWidth, boxHeight, stroke, isBest(node) || isHere ? 2 : 1);
        const name = { size: 13, weight: isBest(node) ? 700 : 400, align: "center", fill: isPruned ? ink.faint : isBest(node) ? ink.accent : ink.ink };
        pen.text(shorten(tidy(node.piece), boxWidth - 8, name), x(node) + boxWidth / 2, y(node) + 11, name);
        const below = node.score === null ? `${percent(Math.exp(node.log))}  Σ ${fixed(node.total, 2)}` : `${percent(Math.exp(node.log))}  → ${fixed(node.score, 2)}`;
        pen.text(below, x(node) + boxWidth / 2, y(node) + 24, { size: 10, align: "center", weight: node.score === null ? 400 : 700, fill: isPruned ? ink.faint : ink.ink });
      }
    },
    hit(px, py) {
      const node = nodes.find(each => px >= x(each) && px < x(each) + boxWidth && py >= y(each) && py < y(each) + boxHeight);
      return node ? { index: node.index } : null;
    },
    move(at, dx, dy) {
      const node = nodes.find(each => each.index === at?.index) ?? { step: dx || dy ? -1 : 0, row: 0, index: -1 };
      if (node.step < 0) return { index: nodes[0].index };
      const next = dx < 0 ? nodes.find(each => each.index === node.parent)
        : dx > 0 ? nodes.find(each => each.parent === node.index) : nodes.find(each => each.step === node.step && each.row === node.row + dy);
      return { index: (next ?? node).index };
    },
    tell(at) {
      const node = nodes.find(each => each.index === at.index), words = [];
      if (!node) return "";
      for (let each = nodes.find(other => other.index === node.parent); each; each = nodes.find(other => other.index === each.parent)) words.unshift(each.piece);
      const before = words.join("").replaceAll("▁", " ").trim();
      const fates = { kept: "It lives on.", pruned: tree.beam === 1 ? "Greedy search does not follow it." : "It is pruned: others are more probable.", ended: "" };
      const end = node.score === null ? "" : ` Ended: score ${fixed(node.total, 2)} / ((5 + ${node.step + 1}) / 6)^${tree.alpha} = ${fixed(node.score, 2)}.`;
      return `“${tidy(node.piece)}” ${before ? `after “${before}”` : "at the beginning"}: ${percent(Math.exp(node.log))}, log ${fixed(node.log, 2)}; with all before it ${fixed(node.total, 2)}. ${fates[node.fate]}${end}`;
    },
  };
}

async function fetchTree(beam) {
  const { pair, found } = openCase();
  if (!found.trees[beam]) {
    if (isFrozen) throw new Error("The tree of this beam is not in this file.");
    found.trees[beam] = await ask("tree", { ...pair, beam });
  }
  return found.trees[beam];
}

// For a file: the tree that is shown, and those of greedy search and of a beam of 4.
export async function packTrees(open) {
  openCase = open;
  for (const beam of new Set([beamNow(), 1, 4])) await fetchTree(beam);
}

function build() {
  picture = new Picture("Beam tree", { hint: "Point at a box to read it; arrow keys walk through the tree." });
  box.parts = { controls: make("div", { className: "controls" }), says: make("p", { className: "caption" }), versus: make("div", { className: "versus" }), result: make("p", { className: "result", dir: "auto" }) };
  const { controls, says, versus, result } = box.parts;
  box.replaceChildren(controls, says, result, picture.element, versus);
}

export async function drawTree(element, open) {
  openCase = open;
  if (box !== element) { box = element; build(); }
  drawControls(null);
  const beam = beamNow(), { pair } = open(), wanted = JSON.stringify([pair, beam]);
  latest = wanted;
  box.classList.add("busy");
  try {
    const tree = await fetchTree(beam);
    if (latest !== wanted) return;
    drawControls(tree);
    showTree(tree);
    drawVersus(open().found);
    complain(null);
    if (!isFrozen && exampleNow() === focused()?.source && !(open().found.trees[1] && open().found.trees[4])) compare();
  } catch (error) { complain(error); }
  if (latest === wanted) box.classList.remove("busy");
}
function showTree(tree) {
  const { says, result } = box.parts, grown = grownNow(tree);
  says.textContent = `Columns are steps, boxes the subwords that were tried: how probable each is after those before it, and the sum (Σ) of their log-probabilities. Of each step the ${tree.beam === 1 ? "most probable one lives" : `${tree.beam} most probable live`} on; grey ones are pruned. Where a translation ends stands its score: the sum divided by ((5 + length) / 6)^${tree.alpha}. The best is bold.`;
  result.textContent = grown < stepsOf(tree) ? `step ${grown} of ${stepsOf(tree)}` : `${tree.text}  (score ${fixed(tree.score, 2)})`;
  picture.canvas.setAttribute("aria-label", `Beam tree, beam ${tree.beam}, ${grown} steps. Arrow keys walk through it.`);
  picture.show(() => planNodes(tree, grown));
}

function drawControls(tree) {
  const { controls } = box.parts, focus = controls.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  const beam = make("select", { "data-name": "beam" });
  const beams = isFrozen ? Object.keys(openCase().found.trees).map(Number) : [1, 2, 3, 4, 5, 6, 7, 8];
  fill(beam, beams.map(each => [each, each > 1 ? each : "1, greedy"]), beamNow());
  beam.onchange = () => { stop(); change({ grow: Number(beam.value), grown: 0 }); drawTree(box, openCase); };
  const total = tree ? stepsOf(tree) : 1, grown = tree ? grownNow(tree) : 1;
  const go = to => { change({ grown: to >= total ? 0 : Math.max(1, to) }); showTree(tree); drawControls(tree); };
  const button = (name, label, text, onclick, disabled) => make("button", { className: "small", "data-name": name, "aria-label": label, onclick, disabled: !tree || disabled }, text);
  controls.replaceChildren(
    make("label", {}, "Beam ", beam),
    make("span", { className: "sentences" }, button("back", "Step back", "‹", () => { stop(); go(grown - 1); }, grown <= 1),
      ` step ${grown} of ${total} `, button("next", "Step on", "›", () => { stop(); go(grown + 1); }, grown >= total)),
    button("play", playing ? "Stop" : "Play", playing ? "■ Stop" : "▶ Play", () => playing ? (stop(), drawControls(tree)) : play(tree, go), false),
    ...(isFrozen ? [] : [make("button", { className: "small", "data-name": "versus", onclick: compare }, "Greedy against beam 4")]));
  controls.querySelector(`[data-name="${focus}"]:not(:disabled)`)?.focus();
}
function stop() { clearInterval(playing); playing = null; }
function play(tree, go) {
  stop();
  if (grownNow(tree) === stepsOf(tree)) change({ grown: 1 });
  playing = setInterval(() => {
    if (!box.isConnected || box.hidden || state.view !== "inside") return stop();
    const next = grownNow(tree) + 1;
    if (next >= stepsOf(tree)) stop();
    go(next);
  }, 900);
  go(grownNow(tree));
}

// Greedy search and a beam of 4, of the same model on the same sentence: who does better?
const exampleNow = () => greedyFails[`${state.from === "auto" ? known.path[0] : state.from} ${state.to}`];
async function compare() {
  box.parts.versus.replaceChildren(make("p", { className: "faint" }, "…"));
  try {
    for (const beam of [1, 4]) await fetchTree(beam);
    drawVersus(openCase().found);
    say(box.parts.versus.textContent);
  } catch (error) { complain(error); }
}
function drawVersus({ trees }) {
  const one = trees[1], four = trees[4], { versus } = box.parts;
  const example = exampleNow(), offer = example && !isFrozen && example !== focused()?.source
    ? make("p", { className: "faint" }, "A sentence to try: ", make("button", { className: "link", lang: state.from, onclick: () => { stop(); change({ text: example, sentence: 0, grown: 0 }); } }, example)) : "";
  if (!one || !four) return versus.replaceChildren(offer);
  const isSame = one.text === four.text, gain = four.logProbability - one.logProbability;
  const times = Math.exp(Math.abs(gain)), ratio = times < 10 ? times.toFixed(1) : Math.round(times).toLocaleString("en");
  const verdict = isSame ? "Both find the same here." : gain > 0
    ? `The beam’s translation is ${ratio} times as probable to this very model: greedy search chose the most probable subword at each step, and missed it.`
    : `Greedy search’s is ${ratio} times as probable; with the length penalty the beam’s score is ${four.score > one.score ? "better" : "worse"}.`;
  versus.replaceChildren(make("h2", {}, "Greedy against beam 4"), make("dl", {}, ...[["Greedy", one], ["Beam 4", four]].flatMap(([name, tree]) => [
    make("dt", {}, name), make("dd", { dir: "auto" }, tree.text, make("span", { className: "faint" }, ` log-probability ${fixed(tree.logProbability, 2)}, score ${fixed(tree.score, 2)}`))])),
  make("p", {}, verdict), offer);
}
