// Samples of the translation at a temperature, and what that does to the next word.
import { complain, debounce, make } from "./dom.js";
import { fixed, percent } from "./wording.js";
import { ask, isFrozen } from "./server.js";
import { change, state } from "./state.js";
import { tidy } from "./numbers.js";
import { planText } from "./pictures.js";

const coldest = 10, hottest = 200;
let box, openCase, latest = "";

const heatNow = () => Math.max(coldest, Math.min(hottest, Math.round(state.heat / 10) * 10));
const keyOf = () => `${heatNow()} ${state.seed}`;
const placeIn = answer => state.place && state.place < answer.places.length ? state.place : 1;
const nameOf = place => tidy(place.pieces.at(-1));

// Probabilities of the listed subwords at a temperature, most probable first at temperature 1.
function chancesAt(answer, place, temperature) {
  const { logits, normalisers, pieces } = answer.places[place - 1];
  const index = answer.temperatures.reduce((best, each, at) => Math.abs(each - temperature) < Math.abs(answer.temperatures[best] - temperature) ? at : best, 0);
  return pieces.map((piece, at) => [piece, Math.exp(logits[at] / temperature - normalisers[index]), logits[at], at === pieces.length - 1])
    .sort((one, other) => other[2] - one[2]);
}

function build() {
  const range = make("input", { type: "range", min: coldest, max: hottest, step: 10, "aria-label": "Temperature" });
  const output = make("output", {}), place = make("input", { type: "range", min: 1, max: 1, "aria-label": "Word" }), where = make("output", {});
  const again = make("button", { hidden: isFrozen, onclick: () => { change({ seed: state.seed + 1 }); fetchSamples(); } }, "Draw again");
  const controls = make("div", { className: "controls" }, make("label", { className: "layer heat" }, "Temperature ", range, output), again);
  const chart = make("ol", { className: "next-words" }), list = make("ol", { className: "others drawn" });
  box.parts = { range, output, place, where, chart, list, note: make("p", { className: "caption" }), heading: make("h2", {}, "The next word") };
  range.oninput = () => { change({ heat: Number(range.value) }); drawHeat(); soon(); };
  place.oninput = () => { change({ place: Number(place.value) }); drawHeat(); };
  box.replaceChildren(controls,
    make("p", { className: "caption" }, "A sample is drawn word by word, each subword as often as its probability says. A temperature T divides all logits before the softmax: below 1 the probable become more probable still, above 1 the distribution flattens, and odd words are drawn."),
    make("div", { className: "halves" },
      make("section", {}, box.parts.heading, make("label", { className: "layer" }, "At word ", place, where), box.parts.note, chart),
      make("section", {}, make("h2", {}, "Samples of the translation"), list)));
}

export function drawSamples(element, open) {
  openCase = open;
  if (box !== element) { box = element; build(); }
  box.parts.range.value = heatNow();
  drawHeat();
  fetchSamples();
}
const answerNow = () => openCase().found.samples[keyOf()] ?? Object.values(openCase().found.samples)[0];

// The chart, which needs no new answer: scores and what normalises them at each temperature are there.
function drawHeat() {
  const heat = heatNow() / 100, answer = answerNow(), { output, place, where, chart, note } = box.parts;
  output.textContent = fixed(heat, 1);
  box.parts.range.setAttribute("aria-valuetext", fixed(heat, 1));
  if (!answer) return;
  const at = placeIn(answer);
  place.max = answer.places.length;
  place.value = at;
  where.textContent = `${at} of ${answer.places.length}: “${nameOf(answer.places[at - 1])}”`;
  const cold = chancesAt(answer, at, 1), hot = chancesAt(answer, at, heat), listed = hot.reduce((sum, each) => sum + each[1], 0);
  note.textContent = `Bars: at temperature ${fixed(heat, 1)}; lines: at 1. All other subwords together: ${percent(Math.max(0, 1 - listed))}.`;
  chart.replaceChildren(...hot.map(([piece, chance, , isSaid], row) => {
    const bar = make("i", { className: "bar" }), line = make("i", { className: "was" });
    bar.style.inlineSize = `${chance * 100}%`;
    line.style.insetInlineStart = `${cold[row][1] * 100}%`;
    return make("li", { className: "choice" }, bar, line, make("b", {}, make("bdi", {}, tidy(piece))),
      make("span", { className: "faint rest" }, isSaid ? "said" : ""), make("span", { className: "chance" }, percent(chance)));
  }));
}

const soon = debounce(250, () => fetchSamples());
async function fetchSamples() {
  const { pair, found } = openCase(), key = keyOf(), wanted = JSON.stringify([pair, key]);
  latest = wanted;
  box.parts.list.classList.add("busy");
  try {
    if (!found.samples[key] && isFrozen) {
      box.parts.list.replaceChildren(make("li", { className: "faint" }, "The samples of this temperature are not in this file."));
      return box.parts.list.classList.remove("busy");
    }
    found.samples[key] ??= await ask("samples", { ...pair, temperature: heatNow(), seed: state.seed });
    if (latest !== wanted) return;
    complain(null);
    drawHeat();
    box.parts.list.replaceChildren(...found.samples[key].samples.map(([text, log]) =>
      make("li", { className: "other", dir: "auto" }, text, make("span", { className: "faint" }, ` log-probability ${fixed(log, 1)}`))));
  } catch (error) { complain(error); }
  if (latest === wanted) box.parts.list.classList.remove("busy");
}

// For a file: the samples of the temperature that is chosen.
export async function packSamples(open) {
  const { pair, found } = open();
  found.samples[keyOf()] ??= await ask("samples", { ...pair, temperature: heatNow(), seed: state.seed });
}

export function planSamples(found, width) {
  const answer = found.samples[keyOf()], at = placeIn(answer), heat = heatNow() / 100;
  return planText([
    `Temperature ${fixed(heat, 1)}, word ${at}:`, ...chancesAt(answer, at, heat).map(([piece, chance]) => `${tidy(piece)}  ${percent(chance)}`), "",
    "Samples:", ...answer.samples.map(([text, log]) => `${text}  (log-probability ${fixed(log, 1)})`),
  ].map(line => line.slice(0, width / 5)));
}
