// A run’s past: the same sentence, its translation and its attention from the first update to the last.
import { complain, debounce, fill, make, markedText, say } from "./dom.js";
import { counted, whole } from "./wording.js";
import { ask } from "./server.js";
import { change, known, state } from "./state.js";
import { planMap } from "./pictures.js";
import { meanOf, showMap, unpackLook } from "./tensors.js";
import { Picture } from "./canvas.js";

const kindNames = { cross: "Cross", encoder: "Encoder", decoder: "Decoder", gradient: "Gradient × input" };
const MOST_KEPT = 200, PLAY = 700;

// The mean of all heads of the last layer of a kind: what one sees of a model at a glance.
export function planMean(look, kind, width, mostCell = 34) {
  const maps = look.kinds[kind] ?? Object.values(look.kinds)[0], shown = showMap(maps.at(-1), look.sides, true, true);
  return planMap(shown.queries, shown.keys, meanOf(shown.heads, [...shown.heads.keys()]), width, { mostCell });
}
export const lookOf = answer => answer.maps.length ? unpackLook(answer) : null;

const parts = {}, answers = new Map();
let picture, request = null, run = null, stages = [], playing = null, listedFor = "";

const nameOf = stage => stage.name === "model" ? "the finished model: the best weights" : `update ${whole(stage.step)}`;
const keyOf = (stage, text) => JSON.stringify([run.number, stage.name, stage.name === "model" ? stages.length : 0, text]);

async function fetchStage(stage, text, signal) {
  const key = keyOf(stage, text);
  if (!answers.has(key)) {
    const answer = await ask(`runs/${run.number}/look`, { text, stage: stage.name }, signal);
    if (answers.size >= MOST_KEPT) answers.delete(answers.keys().next().value);
    answers.set(key, { ...answer, look: lookOf(answer) });
  }
  return answers.get(key);
}

const placeNow = () => {
  const at = stages.findIndex(stage => stage.name === state.stage);
  return at >= 0 ? at : stages.length - 1;
};

async function show() {
  const text = parts.text.value.trim(), stage = stages[placeNow()];
  if (!stage || !text) return;
  parts.range.value = placeNow();
  parts.range.setAttribute("aria-valuetext", nameOf(stage));
  parts.at.textContent = nameOf(stage);
  request?.abort();
  request = new AbortController();
  try {
    const found = await fetchStage(stage, text, request.signal), last = await fetchStage(stages.at(-1), text, request.signal);
    complain(null);
    parts.told.replaceChildren(...(found.translation ? markedText(last.translation, found.translation) : [make("span", { className: "faint" }, "says nothing")]));
    parts.hint.textContent = found.remark === "" || !found.remark ? "Marked: what the last one does not say." : found.remark;
    picture.element.hidden = !found.look;
    if (found.look) {
      const kinds = Object.keys(found.look.kinds), kind = kinds.includes(state.kind) ? state.kind : kinds[0];
      fill(parts.kind, kinds.map(each => [each, kindNames[each]]), kind);
      picture.show(width => planMean(found.look, kind, width), picture.at);
    }
    say(`${nameOf(stage)}: ${found.translation}`);
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    stop();
    complain(error);
    return false;
  }
}

function stop() {
  clearTimeout(playing);
  playing = null;
  parts.play.textContent = "Play";
}
async function step(place) {
  change({ stage: stages[place].name });
  const isThere = await show();
  if (playing === null || !isThere) return;
  if (place + 1 < stages.length) playing = setTimeout(() => step(place + 1), PLAY);
  else stop();
}
function play() {
  if (playing !== null) return stop();
  playing = 0;
  parts.play.textContent = "Stop";
  const from = placeNow();
  step(from + 1 < stages.length ? from : 0);
}

function build(box) {
  const text = make("input", { value: state.probe, "aria-label": "Sentence to follow", dir: "auto", className: "sentence-input", maxLength: 400 });
  const soon = debounce(300, show);
  text.oninput = () => { change({ probe: text.value }); stop(); soon(); };
  const choose = make("select", { "aria-label": "Run to look back on" });
  choose.onchange = () => { change({ follow: choose.value, stage: "" }); stop(); listedFor = ""; drawStages(); };
  const range = make("input", { type: "range", min: 0, value: 0, "aria-label": "Update", className: "scrubber" });
  range.oninput = () => { stop(); change({ stage: stages[Number(range.value)].name }); show(); };
  const kind = make("select", { "aria-label": "Attention" });
  kind.onchange = () => { change({ kind: kind.value }); show(); };
  const button = make("button", { className: "small", onclick: play }, "Play");
  picture = new Picture("Attention at this update, the mean of all heads of the last layer", { hint: "Attention of the last layer, the mean of its heads." });
  Object.assign(parts, { box, text, choose, range, kind, play: button, at: make("output"), count: make("span", { className: "faint" }),
    told: make("p", { className: "result", dir: "auto" }), hint: make("p", { className: "faint hint" }) });
  box.replaceChildren(make("h2", {}, "One sentence through the run"),
    make("div", { className: "controls" }, choose, make("label", { className: "grow" }, "Sentence ", text), make("label", {}, "Attention ", kind)),
    make("div", { className: "controls" }, button, range, parts.at, parts.count), parts.told, parts.hint, picture.element);
}

// Of the chosen run, what it has kept; asked for again when the run has got further.
export async function drawStages(box = parts.box) {
  if (!parts.box) build(box);
  const there = known.runs.filter(each => each.events.length && !each.isWaiting);
  parts.box.hidden = !there.length;
  if (!there.length) return;
  run = there.find(each => each.name === state.follow) ?? there[0];
  fill(parts.choose, there.map(each => [each.name, each.name]), run.name);
  parts.choose.hidden = there.length < 2;
  const now = JSON.stringify([run.number, run.token, run.points.length, run.validations.length, run.events.length]);
  if (listedFor === now) return;
  listedFor = now;
  try { stages = (await ask(`runs/${run.number}/stages`)).stages; } catch (error) { return complain(error); }
  parts.box.hidden = stages.length < 2;
  if (stages.length < 2) return;
  parts.range.max = stages.length - 1;
  parts.count.textContent = `${counted(stages.length, "stage")} kept${stages.some(stage => stage.step < 100 && stage.step > 0) ? "" : "; train with --snapshots to keep early ones too"}`;
  if (!parts.text.value) parts.text.value = state.probe || run.validations.findLast(each => each.probes.length)?.probes.at(-1)[0] || "";
  if (playing === null) show();
}
