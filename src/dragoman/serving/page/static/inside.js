// One’s own sentence through the whole machine, step by step, with the model’s numbers.
import { complain, debounce, fill, find, make, say, segments } from "./dom.js";
import { percent } from "./wording.js";
import { ask, isFrozen, snapshot } from "./server.js";
import { change, focused, known, modelInside, on, onChange, state } from "./state.js";
import { num, planNumbers, tidy, typeset, unpack } from "./numbers.js";
import { listSteps, nameOf, placeOf, sectionOf } from "./inside_steps.js";
import { explain, explainWord, product, termsOf } from "./inside_sums.js";
import { drawMap } from "./inside_map.js";
import { planText } from "./pictures.js";
import { Picture } from "./canvas.js";
import { sentencePicker } from "./attention.js";
import { drawTree, packTrees, planTree } from "./tree.js";
import { drawSamples, packSamples, planSamples } from "./samples.js";

const MOST_EXPORTED = 14e6;
const tabs = [["steps", "Step by step"], ["tree", "Beam tree"], ["samples", "Temperature"]];
const layers = { encoder: 1, decoder: 1 };
let parts = {}, picture, steps = [], order = [], request = null;

// What the server said of this pair: { key, told, parts, terms, trees, samples }.
const emptyCase = key => ({ key, told: null, parts: {}, terms: {}, trees: {}, samples: {} });
const pairOf = () => ({ model: modelInside()?.name, source: focused()?.source, translation: focused()?.text });
function openCase() {
  const pair = pairOf(), key = JSON.stringify(pair);
  if (known.inside?.key !== key && !(isFrozen && known.inside)) known.inside = emptyCase(key);
  return { pair, found: known.inside };
}

const stepNow = () => steps[order.indexOf(state.step)] ?? steps[0];
const lastPlace = () => known.inside.told.said.length;
export const placeNow = () => state.place && state.place < lastPlace() ? state.place : lastPlace();
const isTarget = part => !part.startsWith("encoder") && part !== "source";

// The numbers of a part, unpacked once.
async function numbersOf(part) {
  const { pair, found } = openCase();
  if (!found.parts[part]) {
    if (isFrozen) throw new Error("The numbers of this layer were too many for the file. Open the page at its server to see them.");
    found.parts[part] = await ask("inside", { ...pair, part });
  }
  return opened(found.parts[part]);
}
const unpacked = new WeakMap();
function opened(answer) {
  if (!unpacked.has(answer)) unpacked.set(answer, Object.fromEntries(Object.entries(answer.numbers).map(
    ([name, { shape, entries }]) => [name, { shape, entries: unpack(entries) }])));
  return unpacked.get(answer);
}
const ready = part => known.inside.parts[part] ? opened(known.inside.parts[part]) : null;

async function fetchOutline() {
  if (state.view !== "inside") return;
  const sentence = focused(), model = modelInside();
  if (!sentence?.text || (!model && !isFrozen)) return drawInside();
  const { pair, found } = openCase();
  if (!found.told) {
    request?.abort();
    request = new AbortController();
    find("inside").classList.add("busy");
    try {
      const told = await ask("inside", pair, request.signal);
      if (known.inside !== found) return;
      found.told = told;
      complain(null);
    } catch (error) {
      if (error.name !== "AbortError") { found.problem = error.message; drawInside(); }
      return;
    } finally { if (known.inside === found) find("inside").classList.remove("busy"); }
  }
  takeOutline();
  await showStep();
}
function takeOutline() {
  const { told } = known.inside;
  if (!told || told.remark) return;
  steps = listSteps(told);
  order = steps.map(step => step.key);
}

async function showStep() {
  if (state.view !== "inside") return;
  const { told } = known.inside;
  if (state.show === "steps" && told && !told.remark) {
    const { part } = stepNow();
    if (!known.inside.parts[part]) {
      const here = known.inside;
      parts.panel.classList.add("busy");
      try { await numbersOf(part); complain(null); } catch (error) { complain(error); }
      parts.panel.classList.remove("busy");
      if (known.inside !== here || stepNow().part !== part) return;
    }
    const { stack, layer } = placeOf(part);
    if (layer) layers[stack] = layer;
  }
  drawInside();
}

// A chosen cell is kept where the next step has the same rows and columns, else its row if it can be.
function keptCell(before, after) {
  const columnsOf = step => step.isList ? "words" : step.matrices.at(-1)?.columns;
  if (isTarget(before.part) !== isTarget(after.part) || before.isList !== after.isList) return "";
  return before.part === after.part && columnsOf(before) === columnsOf(after) ? state.cell : state.cell.split(".")[0];
}
function go(key) {
  if (!order.includes(key)) return;
  change({ step: key, matrix: "", cell: keptCell(stepNow(), steps[order.indexOf(key)]) });
  showStep();
  say(`${nameOf(stepNow().part)}: ${stepNow().title}`);
}
// The step before or after; behind the last one the next word is begun.
function goBy(by) {
  const index = order.indexOf(stepNow().key) + by;
  if (index >= 0 && index < order.length) return go(order[index]);
  const place = placeNow() + by;
  if (by > 0 && place <= lastPlace()) { change({ place: place === lastPlace() ? 0 : place }); go("target.subwords"); }
}
const isAtEnd = () => order.indexOf(stepNow().key) === order.length - 1 && placeNow() === lastPlace();

function build() {
  picture = new Picture("Matrix", { pick: at => pickCell(at), hint: "Choose a cell to see its sum; arrow keys move it." });
  picture.element.id = "inside-picture";
  const names = ["none", "controls", "map", "head", "says", "matrices", "list", "sum", "code", "tree", "samples"];
  for (const name of names) parts[name] = make("div", { className: name });
  parts.none.className = "empty";
  parts.layers = make("div", { className: "controls" });
  parts.mapBox = make("details", { className: "map-box", open: matchMedia("(min-width: 58rem)").matches }, make("summary", {}, "Map of the model"), parts.layers, parts.map);
  parts.panel = make("div", { className: "panel" }, parts.head, parts.says, parts.matrices, picture.element, parts.list, parts.sum, parts.code);
  parts.steps = make("div", { className: "machine" }, parts.mapBox, parts.panel);
  find("inside").replaceChildren(parts.none, parts.controls, parts.steps, parts.tree, parts.samples);
  picture.canvas.addEventListener("keydown", moveCell, true);
}

function whyNothing() {
  if (!known.sentences.some(sentence => sentence.text)) return "Type a text above to follow it through the model.";
  if (!modelInside() && !isFrozen) return "This was translated in two steps, through a third language. Choose languages that one model translates, or a model, to look inside.";
  return known.inside?.problem ?? "";
}

export function drawInside() {
  if (state.view !== "inside" || !picture) return;
  const nothing = whyNothing();
  if (!tabs.some(([name]) => name === state.show)) state.show = "steps";
  parts.none.textContent = nothing;
  parts.controls.hidden = Boolean(nothing);
  const { told } = known.inside ?? {}, isSteps = state.show === "steps";
  if (!nothing && isSteps && told?.remark) parts.none.textContent = told.remark;
  parts.steps.hidden = Boolean(nothing) || !isSteps || !told || Boolean(told.remark);
  parts.tree.hidden = Boolean(nothing) || state.show !== "tree";
  parts.samples.hidden = Boolean(nothing) || state.show !== "samples";
  if (nothing) return;
  drawControls();
  if (!parts.steps.hidden) drawSteps();
  if (!parts.tree.hidden) drawTree(parts.tree, openCase);
  if (!parts.samples.hidden) drawSamples(parts.samples, openCase);
}

function drawControls() {
  const focus = document.activeElement?.closest?.("#inside > .controls") && document.activeElement;
  parts.controls.replaceChildren(...[
    sentencePicker(),
    segments("show", "What to see", tabs, state.show, show => { change({ show }); showStep(); }),
  ].filter(Boolean));
  if (focus) parts.controls.querySelector(`[name="${focus.name}"][value="${focus.value}"]`)?.focus();
}

function drawSteps() {
  const step = stepNow(), { told } = known.inside;
  const mapFocus = parts.map.contains(document.activeElement);
  parts.map.replaceChildren(drawMap(told, layers, step.key, order, go));
  if (mapFocus) parts.map.querySelector(".here")?.focus();
  drawLayers();
  drawHead(step);
  const numbers = ready(step.part);
  if (numbers) drawNumbers(step, numbers);
  for (const name of ["matrices", "list", "sum"]) parts[name].hidden = !numbers;
  drawCode(step);
}

function drawLayers() {
  const { shape } = known.inside.told, key = JSON.stringify([layers, shape.encoderLayers, shape.decoderLayers]);
  if (parts.layers.key === key) return;
  parts.layers.key = key;
  const pick = (stack, count) => {
    if (count < 2) return null;
    const select = make("select", {});
    fill(select, Array.from({ length: count }, (_, index) => [index + 1, index + 1]), layers[stack]);
    select.onchange = () => {
      layers[stack] = Number(select.value);
      const { part, id } = stepNow(), where = placeOf(part);
      go(where.stack === stack && where.layer ? `${stack}.${select.value}.${where.sublayer}.${id}` : `${stack}.${select.value}.self.projections`);
    };
    return make("label", {}, stack === "encoder" ? "Encoder layer " : "Decoder layer ", select);
  };
  parts.layers.replaceChildren(...[pick("encoder", shape.encoderLayers), pick("decoder", shape.decoderLayers)].filter(Boolean));
}

function drawHead(step) {
  const { told } = known.inside, siblings = steps.filter(each => each.part === step.part), index = order.indexOf(step.key);
  const focus = parts.head.contains(document.activeElement) ? document.activeElement.dataset.go : null;
  const back = make("button", { "data-go": "back", onclick: () => goBy(-1), disabled: index === 0 }, "‹ Back");
  const next = make("button", { "data-go": "next", className: "main", onclick: () => goBy(1), disabled: isAtEnd() },
    index === order.length - 1 && !isAtEnd() ? "Next word ›" : "Next ›");
  const chain = make("ol", { className: "chain", "aria-label": "Steps of this part" }, ...siblings.map(each =>
    make("li", {}, make("button", { className: "pill", "data-go": each.key, "aria-current": each.key === step.key ? "step" : null, onclick: () => go(each.key) }, ...typeset(each.title)))));
  parts.head.replaceChildren(
    make("div", { className: "walk" }, back, make("span", { className: "faint count" }, `step ${index + 1} of ${order.length}`), next),
    make("h2", {}, `${nameOf(step.part)}: `, ...typeset(step.title)), chain, ...(isTarget(step.part) ? [placePicker(told)] : []));
  if (focus) (parts.head.querySelector(`[data-go="${CSS.escape(focus)}"]:not(:disabled)`) ?? back).focus();
}

// How much of the translation has been said: the rows that the decoder has by then.
function placePicker(told) {
  const range = make("input", { type: "range", min: 1, max: told.said.length, value: placeNow(), "aria-label": "How far the translation is" });
  const output = make("output", {}, saidAt(placeNow()));
  range.oninput = () => {
    const place = Number(range.value);
    change({ place: place === told.said.length ? 0 : place, cell: "" });
    output.textContent = saidAt(place);
    say(saidAt(place));
    const step = stepNow(), numbers = ready(step.part);
    if (numbers) drawNumbers(step, numbers);
    parts.head.querySelector("[data-go=next]").disabled = isAtEnd();
  };
  return make("label", { className: "layer" }, "Word ", range, output);
}
const saidAt = place => `${place} of ${lastPlace()}: “${tidy(known.inside.told.said[place - 1], place - 1)}”`;

// Of a matrix that is shown: its rows and columns, and one head’s numbers.
function viewOf(step, numbers) {
  const { told } = known.inside, chosen = step.matrices.find(each => each.name === state.matrix)
    ?? step.matrices.find(each => each.name === step.shown) ?? step.matrices.at(-1);
  const name = chosen.name, { sublayer } = placeOf(step.part), head = headNow();
  const all = name === "scaled" ? scaledScores(numbers, told.shape) : numbers[name];
  const isOfKeys = chosen.rows === "keys", keysOfSource = !isTarget(step.part) || sublayer === "cross";
  const rowSide = isOfKeys && keysOfSource || !isTarget(step.part) ? "source" : "read";
  const cut = list => list.slice(0, placeNow());
  const labels = side => side === "source" ? told.source.map(tidy) : cut(told.read.map(tidy));
  const rows = labels(rowSide), columns = chosen.columns === "keys" ? labels(keysOfSource ? "source" : "read")
    : Array.from({ length: all.shape.at(-1) }, (_, index) => String(index + 1));
  const [numRows, width] = all.shape.slice(-2), from = all.shape.length === 3 ? head * numRows * width : 0;
  const shown = new Float32Array(rows.length * columns.length);
  rows.forEach((_, row) => shown.set(all.entries.subarray(from + row * width, from + row * width + columns.length), row * columns.length));
  return { chosen, name, rows, columns, numbers: shown, head, named: chosen.columns === "keys", rowSide };
}
function scaledScores(numbers, shape) {
  const { products, bias } = numbers, scale = shape.isScaled ? 1 / Math.sqrt(shape.keyDim) : 1;
  return { shape: products.shape, entries: products.entries.map((value, place) => value * scale + (bias ? bias.entries[place] : 0)) };
}
const headNow = () => Math.max(0, Math.min(known.inside.told.shape.heads, state.head) - 1);

// The chosen cell; where none is chosen, the largest of the last row or of the row chosen before.
function cellOf({ rows, columns, numbers, rowSide }) {
  const [row, column] = state.cell.split(".").map(Number), width = columns.length;
  const isRow = state.cell !== "" && row >= 0 && row < rows.length;
  const usual = rowSide === "source" ? 0 : rows.length - 1, chosen = isRow ? row : usual;
  if (isRow && column >= 0 && column < width) return { row: chosen, column };
  let best = 0;
  for (let place = 1; place < width; place++) if (Math.abs(numbers[chosen * width + place]) > Math.abs(numbers[chosen * width + best]) && Number.isFinite(numbers[chosen * width + place])) best = place;
  return { row: chosen, column: best };
}

function drawNumbers(step, numbers) {
  parts.says.replaceChildren(make("p", { className: "equation" }, ...typeset(step.equation)), make("p", {}, ...typeset(step.says)));
  picture.element.hidden = !step.matrices.length;
  parts.matrices.replaceChildren();
  parts.list.replaceChildren();
  parts.sum.replaceChildren();
  if (step.id === "subwords") return drawSubwords(step);
  if (step.isList) return drawWords(step);
  drawMatrices(step);
  const view = viewOf(step, numbers), cell = cellOf(view);
  const label = `${view.chosen.label}${view.chosen.perHead ? `, head ${view.head + 1}` : ""}: ${view.rows.length} × ${view.columns.length} numbers`;
  picture.canvas.setAttribute("aria-label", `${label}. Arrow keys move the chosen cell.`);
  picture.show(width => planNumbers({ ...view, width, cell, isWeight: view.chosen.isWeight }));
  drawSum(step, numbers, view, cell);
}

function drawMatrices(step) {
  const { shape } = known.inside.told, shown = viewOf(step, ready(step.part)).name, row = [];
  if (step.matrices.length > 1) row.push(segments("matrix", "Matrix", step.matrices.map(each => [each.name, each.label]), shown, matrix => { change({ matrix, cell: state.cell.split(".")[0] }); redrawNumbers("matrix"); }));
  if (step.matrices.some(each => each.perHead) && shape.heads > 1) {
    const select = make("select", { name: "head" });
    fill(select, Array.from({ length: shape.heads }, (_, index) => [index + 1, index + 1]), headNow() + 1);
    select.onchange = () => { change({ head: Number(select.value) }); redrawNumbers("head"); };
    row.push(make("label", {}, "Head ", select));
  }
  parts.matrices.replaceChildren(...row);
}
function redrawNumbers(focus) {
  const step = stepNow();
  drawNumbers(step, ready(step.part));
  parts.matrices.querySelector(focus === "head" ? "[name=head]" : "[name=matrix]:checked")?.focus();
}

function pickCell(at) {
  change({ cell: `${at.row}.${at.column}` });
  refreshCell();
}
function refreshCell() {
  const step = stepNow(), numbers = ready(step.part);
  if (!numbers || !step.matrices.length) return;
  const view = viewOf(step, numbers), cell = cellOf(view);
  picture.at = null;
  picture.planOf = width => planNumbers({ ...view, width, cell, isWeight: view.chosen.isWeight });
  picture.resize(true);
  picture.readout.textContent = picture.plan?.tell(cell) ?? "";
  drawSum(step, numbers, view, cell);
}
function moveCell(event) {
  const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!by) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const step = stepNow(), view = viewOf(step, ready(step.part)), cell = cellOf(view);
  const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));
  pickCell({ row: clamp(cell.row + by[0], view.rows.length), column: clamp(cell.column + by[1], view.columns.length) });
}

const soon = debounce(200, (...values) => fetchTerms(...values));
function drawSum(step, numbers, view, cell) {
  const { told } = known.inside, ids = view.rowSide === "source" ? told.ids.source : told.ids.read;
  const told1 = explain({ step, name: view.name, numbers, cell, head: view.head, shape: told.shape, ids, kind: step.kind });
  const where = `${view.rows[cell.row]}, ${view.named ? view.columns[cell.column] : `entry ${cell.column + 1}`}`;
  parts.sum.replaceChildren(make("h3", {}, make("bdi", {}, where)), ...told1.lines.map(text => make("p", { className: "numbers-line" }, text)));
  if (told1.terms) parts.sum.append(termTable(told1.terms.left, told1.terms.right, told1.terms.names));
  if (!told1.map) return;
  const { map } = told1, box = make("div", {}, make("p", { className: "numbers-line faint" }, "…"));
  parts.sum.insertBefore(box, parts.sum.children[1] ?? null);
  const head = ["query", "key", "value"].includes(map.name) ? view.head : 0;
  const asked = { part: step.part, map: map.name, row: cell.row, column: cell.column, head };
  const found = known.inside.terms[JSON.stringify(asked)];
  if (found) showTerms(box, found, map); else if (isFrozen) box.firstChild.textContent = `${map.label} = ${num(map.value)}. The matrices of weights are not in this file.`;
  else soon(box, asked, map);
}
async function fetchTerms(box, asked, map) {
  const { pair, found } = openCase();
  if (!box.isConnected) return;
  try {
    found.terms[JSON.stringify(asked)] = await ask("terms", { ...pair, ...asked });
    if (box.isConnected) showTerms(box, found.terms[JSON.stringify(asked)], map);
  } catch (error) { box.firstChild.textContent = error.message; }
}
function showTerms(box, answer, map) {
  const left = unpack(answer.left), right = unpack(answer.right);
  const total = left.reduce((sum, each, place) => sum + each * right[place], answer.bias);
  const isTurned = Math.abs(total - map.value) > 1e-3 * Math.max(1, Math.abs(total));
  box.replaceChildren(make("p", { className: "numbers-line" }, product(map.label, left, right, total, answer.bias)),
    isTurned ? make("p", { className: "numbers-line" }, `turned with its neighbour by the angle of its place: ${num(map.value)}`) : "",
    termTable(left, right, ["in", "weight"]));
}
function termTable(left, right, names = ["", ""]) {
  const box = make("details", { className: "numbers" }, make("summary", {}, `All ${left.length} terms`));
  box.ontoggle = () => {
    if (!box.open || box.querySelector("table")) return;
    const { left: ones, right: others } = termsOf(left, right);
    const cells = list => list.map(text => make("td", {}, text));
    box.append(make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Terms of the sum" }, make("table", {},
      make("thead", {}, make("tr", {}, ...["entry", ...names, "product"].map(text => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...ones.map((one, place) => make("tr", {}, ...cells([place + 1, num(one), num(others[place]), num(one * others[place])])))))));
  };
  return box;
}

function drawSubwords(step) {
  const { told } = known.inside, isSource = step.part === "source";
  const pieces = isSource ? told.source : told.read.slice(0, placeNow()), ids = isSource ? told.ids.source : told.ids.read;
  parts.list.replaceChildren(make("ol", { className: "subwords", dir: "auto" }, ...pieces.map((piece, index) =>
    make("li", {}, make("b", {}, make("bdi", {}, tidy(piece, index))), make("span", { className: "faint" }, String(ids[index]))))));
  parts.sum.replaceChildren(make("p", { className: "faint" }, "A dot before a subword says that it goes on with a word."));
  if (!isSource) parts.sum.append(make("p", {}, `To be said next: “${tidy(told.said[placeNow() - 1], placeNow() - 1)}”.`));
}

// The most probable next subwords, as a list of which one can be chosen.
function drawWords(step) {
  const { told } = known.inside, answer = known.inside.parts.output, place = answer.places[placeNow() - 1];
  const unit = answer.temperatures.findIndex(each => Math.abs(each - 1) < 1e-9), normaliser = place.normalisers[unit];
  const chances = place.logits.map(logit => Math.exp(logit - normaliser)), isLogits = step.id === "logits";
  const order = place.ids.map((_, index) => index).sort((one, other) => place.logits[other] - place.logits[one]);
  const best = order[0], said = place.ids.length - 1;
  const [, column] = state.cell.split(".").map(Number), index = order.includes(column) ? column : step.id === "next" ? said : best;
  const most = Math.max(...place.logits.map(Math.abs));
  parts.list.replaceChildren(make("ol", { className: "next-words" }, ...order.map(each => {
    const bar = make("i", { className: "bar" }), share = isLogits ? Math.max(0, place.logits[each]) / most : chances[each];
    bar.style.inlineSize = `${Math.max(.5, share * 100)}%`;
    const button = make("button", { className: "choice", "aria-pressed": each === index, onclick: () => { change({ cell: `0.${each}` }); drawWords(step); parts.list.querySelector("[aria-pressed=true]").focus(); } },
      bar, make("b", {}, make("bdi", {}, tidy(place.pieces[each]))), make("span", { className: "faint rest" }, each === said ? "said here" : ""), make("span", { className: "chance" }, isLogits ? num(place.logits[each]) : percent(chances[each])));
    return make("li", {}, button);
  })));
  const word = `“${tidy(place.pieces[index])}”`;
  parts.sum.replaceChildren(make("h3", {}, make("bdi", {}, word)));
  if (step.id === "next") return drawChoice(place, chances, best, said);
  for (const text of explainWord({ logits: place.logits, normaliser, index, isProbability: !isLogits })) parts.sum.append(make("p", { className: "numbers-line" }, text));
  if (!isLogits) return;
  const box = make("div", {}, make("p", { className: "numbers-line faint" }, "…")), map = { label: "h·E[w]", value: place.logits[index] };
  parts.sum.append(box);
  const asked = { part: "output", map: "logit", row: placeNow() - 1, column: place.ids[index], head: 0 };
  const found = known.inside.terms[JSON.stringify(asked)];
  if (found) showTerms(box, found, map); else if (isFrozen) box.firstChild.textContent = `${map.label} = ${num(map.value)}. The matrices of weights are not in this file.`;
  else soon(box, asked, map);
  parts.sum.append(make("p", { className: "faint" }, `of ${told.shape.vocabulary.toLocaleString("en")} subwords`));
}
function drawChoice(place, chances, best, said) {
  const name = index => `“${tidy(place.pieces[index])}”`;
  parts.sum.replaceChildren(make("p", {}, best === said
    ? `The most probable next subword is ${name(best)} with ${percent(chances[best])}, and the translation says it.`
    : `The most probable next subword is ${name(best)} with ${percent(chances[best])}. The translation says ${name(said)} (${percent(chances[said])}): beam search found that better in the end, or you chose it.`),
  make("p", {}, isAtEnd() ? "Here the translation ends." : "“Next word” feeds it to the decoder, which goes on."),
  make("p", { className: "ways" }, make("button", { onclick: () => { change({ show: "tree" }); showStep(); } }, "See the beam tree"),
    make("button", { onclick: () => { change({ show: "samples" }); showStep(); } }, "Try a temperature")));
}

function drawCode(step) {
  const { told } = known.inside, { label, href } = sectionOf(told.paper, step.paper), key = `${step.key}`;
  if (parts.code.key === key && parts.code.told === told) return;
  Object.assign(parts.code, { key, told });
  const lines = step.code.map(name => told.code[name]).filter(Boolean);
  parts.code.replaceChildren(
    make("p", {}, "The paper: ", make("a", { href, rel: "noreferrer", target: "_blank" }, label)),
    ...lines.map(codeOf));
}
function codeOf({ file, line, function: name, first, text }) {
  const list = text.split("\n").map((each, index) => make("span", { className: first + index === line ? "here" : "" }, `${String(first + index).padStart(4)}  ${each}\n`));
  return make("details", { className: "source" }, make("summary", {}, `${file}, line ${line}`, make("span", { className: "faint" }, ` in ${name}`)),
    make("pre", { tabIndex: 0, "aria-label": `Lines of ${file}` }, ...list));
}

function watchKeys() {
  document.addEventListener("keydown", event => {
    if (state.view !== "inside" || state.show !== "steps" || parts.steps.hidden || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.target.closest("input, select, textarea, canvas, [role=tablist], #translation, pre, .scroll")) return;
    event.preventDefault();
    goBy(by);
  });
}

// What is shown, as a drawing.
export function planInside(width) {
  if (state.show === "tree") return [planTree(known.inside)];
  if (state.show === "samples") return [planSamples(known.inside, width)];
  const step = stepNow(), numbers = ready(step.part);
  const lines = [...parts.sum.querySelectorAll("h3, .numbers-line")].map(each => each.textContent);
  const view = step.matrices.length ? viewOf(step, numbers) : null;
  return [
    planText([`${nameOf(step.part)}: ${step.title}`], { weight: 600 }), planText([step.equation]),
    ...(view ? [planNumbers({ ...view, width, cell: cellOf(view), isWeight: view.chosen.isWeight })] : []),
    planText(lines.length ? lines : [parts.list.textContent], { size: 12 }),
  ];
}

// For a file: the numbers of all parts, or of as many as it may hold, those being shown first.
export async function packInside() {
  const { pair, found } = openCase();
  if (found.told && !found.told.remark) {
    const here = stepNow().part, names = [here, "source", "target", "output", ...Object.keys(found.told.parts)];
    for (const part of new Set(names)) {
      if (JSON.stringify(found.parts).length > MOST_EXPORTED) break;
      found.parts[part] ??= await ask("inside", { ...pair, part });
    }
  }
  await packTrees(openCase);
  await packSamples(openCase);
  return found;
}

export function startInside() {
  build();
  if (isFrozen && snapshot.inside) { known.inside = snapshot.inside; takeOutline(); }
  on("translation", fetchOutline);
  on("theme", drawInside);
  onChange(changes => { if ("view" in changes) fetchOutline(); });
  watchKeys();
  fetchOutline();
}
