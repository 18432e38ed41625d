// What the heads look at: lines, a grid of all, a heat map; and what happens without a head.
import { complain, find, make, markedText, say, segments, tick } from "./dom.js";
import { fixed, times } from "./wording.js";
import { hue, inks, isDark } from "./colours.js";
import { widthOf } from "./pen.js";
import { ask, isFrozen, snapshot } from "./server.js";
import { change, emit, focused, known, listOff, modelInside, on, onChange, state } from "./state.js";
import { meanOf, showMap, unpackLook } from "./tensors.js";
import { planGrid, planLines, planMap } from "./pictures.js";
import { Picture, tableOf } from "./canvas.js";

const kindNames = { cross: "Cross", encoder: "Encoder", decoder: "Decoder", gradient: "Gradient × input" };
const kindSays = (one, other) => ({
  cross: `While a word is being written (${one}), which source words (${other}) does the decoder look at?`,
  encoder: `While the source is being read, which of its words (${other}) does each word (${one}) look at?`,
  decoder: `While a word is being written (${one}), which words written before it (${other}) does it look at?`,
  gradient: `While a word is being written (${one}), which source words (${other}) decide it?`,
});
let picture, request, pendingFor = "";
const parts = {};

const chosenMaps = () => known.look.kinds[state.kind];
const chosenMap = () => chosenMaps()[Math.min(state.layer, chosenMaps().length) - 1];
const isOff = (layer, head) => listOff().some(each => each[0] === state.kind && each[1] === layer && each[2] === head);
function shownHeads() {
  const count = chosenMap().numHeads, every = Array.from({ length: count }, (_, head) => head);
  if (!state.heads) return every;
  const chosen = state.heads.split(".").map(each => Number(each) - 1);
  return every.filter(head => chosen.includes(head));
}
function showHeads(heads) {
  change({ heads: heads.length === chosenMap().numHeads ? "" : heads.map(head => head + 1).join(".") || "0" });
  drawAttention();
}
const soloHead = head => {
  const shown = shownHeads(), isAlone = shown.length === 1 && shown[0] === head;
  showHeads(isAlone ? Array.from({ length: chosenMap().numHeads }, (_, each) => each) : [head]);
};
const toggleHead = head => {
  const shown = shownHeads();
  showHeads(shown.includes(head) ? shown.filter(each => each !== head) : [...shown, head].sort((one, other) => one - other));
};

// Ask for the attention of the focused sentence, unless it is there.
async function fetchLook() {
  const sentence = focused(), model = modelInside();
  if (isFrozen || state.view !== "attention" || !sentence?.text || !model) return drawAttention();
  const body = { model: model.name, source: sentence.source, translation: sentence.text, off: listOff(), beam: state.beam || undefined };
  const wanted = JSON.stringify(body);
  if (known.look && known.lookFor === wanted) return drawAttention();
  if (pendingFor === wanted) return;
  request?.abort();
  request = new AbortController();
  pendingFor = wanted;
  find("attention").classList.add("busy");
  try {
    const answer = await ask("attention", body, request.signal);
    performance.mark("attention arrived");
    Object.assign(known, { answer, look: unpackLook(answer), lookFor: wanted });
    complain(null);
    drawAttention();
    performance.measure("attention drawn", "attention arrived");
  } catch (error) {
    if (error.name !== "AbortError" && listOff().length && error.kind === "bad_request") change({ off: "" });
    complain(error);
  }
  if (pendingFor === wanted) { pendingFor = ""; find("attention").classList.remove("busy"); }
}

function build() {
  picture = new Picture("Attention", { pick: at => pickAt(at) });
  for (const name of ["controls", "heads", "caption", "without", "table"]) parts[name] = make("div", { className: name });
  parts.none = make("p", { className: "empty" });
  find("attention").replaceChildren(parts.none, parts.controls, parts.heads, parts.caption, picture.element, parts.without, parts.table);
}

function pickAt(at) {
  if (state.picture !== "grid") return;
  change({ picture: "map", layer: at.row + 1, heads: String(at.column + 1) });
  drawAttention();
  picture.canvas.focus();
}

function whyNothing() {
  if (!known.sentences.some(sentence => sentence.text)) return "Type a text above to see what the model looks at.";
  if (!modelInside() && !isFrozen) return "This was translated in two steps, through a third language. Choose languages that one model translates, or a model, to look inside.";
  return known.look ? "" : "…";
}

export function drawAttention() {
  if (state.view !== "attention" || !picture) return;
  const nothing = whyNothing();
  parts.none.textContent = nothing;
  for (const element of [parts.controls, parts.heads, parts.caption, picture.element, parts.without, parts.table]) element.hidden = Boolean(nothing);
  if (nothing) return;
  if (!known.look.kinds[state.kind]) state.kind = Object.keys(known.look.kinds)[0];
  state.layer = Math.max(1, Math.min(state.layer, chosenMaps().length));
  drawControls();
  drawChips();
  drawPicture();
  drawWithout();
}

function drawControls() {
  const key = JSON.stringify([Object.keys(known.look.kinds), state.kind, state.picture, chosenMaps().length, state.words, state.specials, focusPlace()]);
  const slider = parts.controls.querySelector("[type=range]");
  if (parts.controls.key === key) {
    if (slider) { slider.value = state.layer; slider.nextElementSibling.textContent = chosenMap().layer; }
    return;
  }
  parts.controls.key = key;
  const hadFocus = parts.controls.contains(document.activeElement) ? document.activeElement : null;
  const pick = changes => { change(changes); drawAttention(); };
  const layers = chosenMaps().length, isLayered = state.picture !== "grid" && layers > 1;
  const range = isLayered && make("input", { type: "range", min: 1, max: layers, value: state.layer, "aria-label": "Layer" });
  if (range) range.oninput = () => { pick({ layer: Number(range.value) }); say(`layer ${range.value}`); };
  parts.controls.replaceChildren(...[
    sentencePicker(),
    segments("kind", "Kind of attention", Object.keys(known.look.kinds).map(kind => [kind, kindNames[kind]]), state.kind, kind => pick({ kind })),
    segments("picture", "Picture", [["lines", "Lines"], ["grid", "All heads"], ["map", "Heat map"]], state.picture, value => pick({ picture: value })),
    range ? make("label", { className: "layer" }, "Layer ", range, make("output", {}, String(chosenMap().layer)))
      : layers === 1 && chosenMap().layer > 1 ? make("span", {}, `Layer ${chosenMap().layer}`) : null,
    tick("whole words", Boolean(state.words), on => pick({ words: Number(on) }), "Add up the subwords of a word"),
    tick("start and end", Boolean(state.specials), on => pick({ specials: Number(on) }), "Show the symbols for the beginning and the end"),
  ].filter(Boolean));
  if (hadFocus) parts.controls.querySelector(`[name="${hadFocus.name}"][value="${hadFocus.value}"]`)?.focus();
}

// Of a text with several sentences, one is looked into.
export const focusPlace = () => {
  const real = known.sentences.flatMap((sentence, index) => sentence.source ? [index] : []);
  return [real.indexOf(state.sentence), real];
};
export function sentencePicker() {
  const [at, real] = focusPlace();
  if (real.length < 2) return null;
  const name = ` sentence ${at + 1} of ${real.length} `;
  // A file has what was looked into, and cannot ask for more.
  if (isFrozen) return make("span", { className: "sentences faint" }, name);
  const go = step => () => {
    Object.assign(known, { look: null, why: null });
    change({ sentence: real[at + step] });
    emit("translation");
  };
  return make("span", { className: "sentences" },
    make("button", { className: "quiet small", disabled: at <= 0, "aria-label": "Sentence before", onclick: go(-1) }, "‹"), name,
    make("button", { className: "quiet small", disabled: at >= real.length - 1, "aria-label": "Next sentence", onclick: go(1) }, "›"));
}

function powerSign() {
  const sign = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  sign.setAttribute("viewBox", "0 0 24 24");
  sign.setAttribute("aria-hidden", "true");
  path.setAttribute("d", "M12 3v9M6.5 6.5a8 8 0 1 0 11 0");
  sign.append(path);
  return make("span", { className: "power-sign" }, sign);
}

// A chip a head: click shows or hides it, double-click (or Shift) shows it alone; the sign of a
// switch takes it out of the model.
function drawChips() {
  const map = chosenMap(), isMany = state.kind !== "gradient" && state.picture !== "grid";
  parts.heads.hidden = !isMany;
  if (!isMany) return;
  if (parts.heads.count !== map.numHeads || !parts.heads.firstChild) {
    parts.heads.count = map.numHeads;
    parts.heads.replaceChildren(make("span", { className: "faint" }, "Heads"),
      ...Array.from({ length: map.numHeads }, (_, head) => chip(head)),
      make("span", { className: "faint hint" }, map.numHeads > 1 ? "click: show or hide · double-click: only this one" : "", ...(isFrozen ? [] : [map.numHeads > 1 ? " · " : "", powerSign(), " switch off in the model"])));
  }
  const shown = shownHeads();
  parts.heads.querySelectorAll(".chip").forEach((element, head) => {
    const [main, power] = element.children, off = isOff(map.layer, head + 1);
    element.style.setProperty("--hue", hue(head, isDark()));
    element.classList.toggle("off", off);
    main.setAttribute("aria-pressed", shown.includes(head));
    power.setAttribute("aria-pressed", off);
  });
}
function chip(head) {
  const main = make("button", { className: "head", "aria-label": `Head ${head + 1}`, title: "Click: show or hide. Double-click, or with Shift: only this one." }, String(head + 1));
  main.onclick = event => event.shiftKey ? soloHead(head) : toggleHead(head);
  main.ondblclick = () => soloHead(head);
  main.onkeydown = event => {
    if (!event.shiftKey || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    soloHead(head);
  };
  const power = make("button", { className: "power", hidden: isFrozen, "aria-label": `Switch head ${head + 1} off in the model`, title: "Switch this head off in the model, and translate again" }, powerSign());
  power.onclick = () => switchHead(head);
  return make("span", { className: "chip" }, main, power);
}
function switchHead(head) {
  const name = `${state.kind}.${chosenMap().layer}.${head + 1}`;
  const now = state.off.split(",").filter(Boolean);
  change({ off: (now.includes(name) ? now.filter(each => each !== name) : [...now, name]).join(",") });
  drawChips();
  fetchLook();
}

const shownOf = map => showMap(map, known.look.sides, Boolean(state.words), Boolean(state.specials));
const nameHeads = heads => heads.length === 1 ? `head ${heads[0] + 1}`
  : heads.length === chosenMap().numHeads ? "mean of all heads" : `mean of heads ${heads.map(head => head + 1).join(", ")}`;

// From a width to the picture that is asked for: also what is exported.
export function planAttention(width) {
  const shown = shownOf(chosenMap()), heads = shownHeads();
  if (state.picture === "grid")
    return planGrid(chosenMaps().map(map => ({ layer: map.layer, shown: shownOf(map) })), width, isOff);
  if (state.picture === "lines") return planLines(shown, heads, width, state.kind === "gradient" ? "depends on" : "looks at");
  const numbers = heads.length ? meanOf(shown.heads, heads) : new Float32Array(shown.heads[0].length);
  return planMap(shown.queries, shown.keys, numbers, width);
}
export function describeAttention() {
  const where = state.kind === "gradient" ? "gradient × input" : `${kindNames[state.kind].toLowerCase()} attention`;
  if (state.picture === "grid") return `${where}, all layers (rows) and heads (columns)`;
  if (state.kind === "gradient") return where;
  const heads = shownHeads(), layer = `${where}, layer ${chosenMap().layer}`;
  return state.picture === "lines" && heads.length > 1 ? `${layer}, heads ` : `${layer}, ${nameHeads(heads)}`;
}

// For a picture that stands alone: what it is, and which colour is which head.
export function planHeading() {
  const text = describeAttention(), style = { size: 13 };
  return {
    width: 10, height: 19,
    draw(pen, dark) {
      pen.text(text, 0, 9, { ...style, fill: inks(dark).faint });
      if (!text.endsWith("heads ")) return;
      shownHeads().forEach((head, place) => pen.text(String(head + 1), widthOf(text, style) + 4 + place * 16, 9, { ...style, weight: 700, fill: hue(head, dark) }));
    },
  };
}

function drawPicture() {
  const isGrid = state.picture === "grid";
  parts.caption.replaceChildren(make("p", {}, known.look.remark ? make("strong", {}, `${known.look.remark[0].toUpperCase()}${known.look.remark.slice(1)}. `) : "", (state.picture === "lines" ? kindSays("left", "right") : kindSays("rows", "columns"))[state.kind],
    isGrid ? " Each small map is a head, each row of maps a layer. Choose one to enlarge it." : ""));
  picture.hint = isGrid ? "Point at a head to read what it does." : state.picture === "lines" ? "Point at a word to see only its lines." : "Point at a cell to read its number.";
  picture.canvas.setAttribute("aria-label", `${describeAttention()}. Arrow keys explore it.`);
  picture.show(planAttention);
  parts.table.replaceChildren(isGrid ? "" : tableOf(() => {
    const shown = shownOf(chosenMap()), heads = shownHeads(), width = shown.keys.length;
    const numbers = heads.length ? meanOf(shown.heads, heads) : [];
    return { caption: describeAttention(), columns: shown.keys,
      rows: shown.queries.map((word, row) => [word, ...shown.keys.map((_, column) => (numbers[row * width + column] ?? 0).toFixed(3))]) };
  }));
}

function drawWithout() {
  const told = known.look.without;
  parts.without.hidden = !told;
  if (!told) return parts.without.replaceChildren();
  const before = known.look.translation, ratio = Math.exp(told.logProbabilityWithout - told.logProbability);
  const names = told.heads.map(([kind, layer, head]) => `${kind} ${layer}.${head}`).join(", ");
  const isSame = told.translation === before;
  parts.without.replaceChildren(
    make("h2", {}, `Without ${told.heads.length === 1 ? "head" : "heads"} ${names}`),
    make("p", { className: "result", dir: "auto", lang: state.to }, ...(isSame ? [before] : markedText(before, told.translation, true))),
    make("p", { className: "faint" }, isSame ? "The translation stays the same. " : "The translation changes. ",
      `The log-probability of “${before}” goes from ${fixed(told.logProbability, 2)} to ${fixed(told.logProbabilityWithout, 2)}: it is ${ratio >= 1 ? `${times(ratio)} as` : `${times(1 / ratio)} less`} probable.`),
    isFrozen ? "" : make("button", { className: "small", onclick: () => { change({ off: "" }); fetchLook(); } }, "Switch all on again"));
  say(isSame ? "The translation stays the same" : `The translation becomes ${told.translation}`);
}

export function startAttention() {
  build();
  if (isFrozen && snapshot.attention) Object.assign(known, { answer: snapshot.attention, look: unpackLook(snapshot.attention) });
  on("translation", fetchLook);
  on("theme", drawAttention);
  onChange(changes => { if ("view" in changes || "off" in changes) fetchLook(); });
  fetchLook();
}
