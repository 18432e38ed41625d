// Training runs: curves that grow while they are watched, and translations as they improve.
import { complain, find, make, markedText, say, segments } from "./dom.js";
import { hue, isDark } from "./colours.js";
import { ask, isFrozen, snapshot } from "./server.js";
import { change, known, on, onChange, state } from "./state.js";
import { planChart } from "./charts.js";
import { beside, planText, stack } from "./pictures.js";
import { Picture } from "./canvas.js";

const charts = [
  ["loss", "Loss", "thin: training, with label smoothing; thick: validation, in nats"],
  ["bleu", "BLEU on the validation pairs", ""],
  ["rate", "Learning rate", ""],
  ["speed", "Tokens per second", ""],
];
const parts = {}, pictures = {};
let timer, isReading = false;

const isShown = run => !state.without.split("|").includes(run.name);

async function readRuns() {
  if (isFrozen || isReading || state.view !== "training") return;
  isReading = true;
  let isChanged = false;
  try {
    for (const [index, run] of known.runs.entries()) {
      for (let more = true; more;) {
        const told = await ask(`runs/${index}?offset=${run.offset}&token=${encodeURIComponent(run.token)}`);
        if (told.restarts) Object.assign(run, { points: [], validations: [], events: [] });
        isChanged ||= told.restarts || told.points.length + told.validations.length + told.events.length > 0;
        run.points.push(...told.points);
        run.validations.push(...told.validations);
        run.events.push(...told.events);
        Object.assign(run, { offset: told.offset, token: told.token, isWaiting: told.isWaiting });
        more = told.isMore;
      }
    }
    complain(null);
  } catch (error) { complain(error); }
  isReading = false;
  if (isChanged || !parts.charts.drawn) drawTraining();
  clearTimeout(timer);
  timer = setTimeout(readRuns, 1500);
}

function seriesOf(name) {
  const series = [];
  known.runs.forEach((run, index) => {
    if (!isShown(run)) return;
    const begin = run.points[0]?.[1] ?? run.validations[0]?.time ?? 0;
    const start = run.events.find(event => event.event === "start")?.time ?? begin;
    const x = (step, time) => state.axis === "step" ? step : (time - start) / 60;
    const curve = (label, points, more = {}) => series.push({ name: label, index, points: points.filter(point => Number.isFinite(point[1]) && point[1] !== null), ...more });
    const column = { loss: 2, rate: 3, speed: 4 }[name];
    if (column) curve(name === "loss" ? `${run.name} training` : run.name, run.points.map(point => [x(point[0], point[1]), point[column]]), { isFaint: name === "loss" });
    if (name === "loss") curve(`${run.name} validation`, run.validations.map(each => [x(each.step, each.time), each.loss]), { hasDots: true });
    if (name === "bleu") curve(run.name, run.validations.map(each => [x(each.step, each.time), each.bleu]), { hasDots: true });
  });
  return series;
}
const planOne = (name, title, width, height) => planChart(title, seriesOf(name), state.axis, width, height);

function build() {
  for (const name of ["controls", "runs", "charts", "probes"]) parts[name] = make("div", { className: name });
  parts.none = make("p", { className: "empty" });
  parts.controls.append(parts.runs, segments("axis", "Horizontal axis", [["step", "Steps"], ["minutes", "Minutes"]], state.axis, axis => { change({ axis }); drawTraining(); }));
  for (const [name, title, hint] of charts) {
    pictures[name] = new Picture(title, { hint });
    parts.charts.append(pictures[name].element);
  }
  find("training").replaceChildren(parts.none, parts.controls, parts.charts, parts.probes);
}

function endOf([, time, , , , , left]) {
  const ends = new Date(1000 * (time + left)), isToday = ends.toDateString() === new Date().toDateString();
  const day = isToday ? {} : { weekday: "long", day: "numeric", month: "long" };
  return `ends about ${ends.toLocaleString("en-GB", { ...day, hour: "2-digit", minute: "2-digit" })}`;
}

// Whether validation had stopped improving when the run said so, and has not become better since.
const isStagnant = run => {
  const told = run.events.findLast(event => event.event === "stagnation");
  return told !== undefined && !run.validations.some(each => each.is_best && each.step > told.step);
};

function statusOf(run) {
  const last = run.points.at(-1), change = run.events.findLast(event => ["start", "end", "stop"].includes(event.event));
  if (run.isWaiting || !run.events.length) return "has not begun";
  const best = Math.max(...run.validations.map(each => each.bleu ?? -1));
  const said = [last ? `step ${last[0].toLocaleString("en")}` : "", best >= 0 ? `best BLEU ${best.toFixed(1)}` : ""];
  const hasEnded = change !== undefined && change.event !== "start", isQuiet = last && Date.now() / 1000 - last[1] > 600;
  if (last && Number.isFinite(last[5])) said.push(`${Math.floor(100 * last[5])} % done`);
  if (last && Number.isFinite(last[6]) && !hasEnded && !isQuiet) said.push(endOf(last));
  if (isStagnant(run)) said.push("has stopped improving");
  return [...said.filter(Boolean), hasEnded ? "ended" : isQuiet ? "quiet" : "running"].join(" · ");
}

function drawTraining() {
  if (state.view !== "training" || !parts.none) return;
  const { runs } = known;
  parts.none.textContent = runs.length ? "" : "No runs to watch. Start the server with “dragoman watch RUN…”, or serve a model from the folder in which it was trained.";
  for (const name of ["controls", "charts", "probes"]) parts[name].hidden = !runs.length;
  parts.charts.drawn = true;
  if (!runs.length) return;
  parts.runs.replaceChildren(...runs.map((run, index) => {
    const box = make("input", { type: "checkbox", checked: isShown(run) });
    box.onchange = () => {
      const without = state.without.split("|").filter(Boolean).filter(name => name !== run.name);
      change({ without: (box.checked ? without : [...without, run.name]).join("|") });
      drawTraining();
    };
    const swatch = make("i", { className: "swatch" });
    swatch.style.background = hue(index, isDark());
    return make("label", { className: "run" }, box, swatch, make("b", {}, run.name), make("span", { className: "faint" }, statusOf(run)));
  }));
  for (const [name, title] of charts) {
    const at = pictures[name].at;
    pictures[name].show(width => planOne(name, title, width));
    if (at) pictures[name].point(at);
  }
  drawProbes(runs.filter(isShown));
}

// What became of the same few sentences at each validation, newest first; what is not in the
// reference is marked. In older logs each validation has one sentence, and not the same.
function drawProbes(runs) {
  const boxes = runs.filter(run => run.validations.some(each => each.probes.length)).map(run => {
    const shown = run.validations.filter(each => each.probes.length).slice(-40).reverse();
    const columns = [...shown[0].probes.keys()], text = probe => probe?.slice(0, 2).join("\n");
    const isSame = columns.map(column => shown.every(each => text(each.probes[column]) === text(shown[0].probes[column])));
    const names = columns.map(column => columns.length > 1 ? `Sentence ${column + 1}` : "Sentence");
    const given = ([source, reference]) => [make("div", { dir: "auto" }, source), make("div", { dir: "auto", className: "faint" }, reference)];
    const head = [make("th", { scope: "col" }, "Step"), make("th", { scope: "col" }, "BLEU"),
      ...columns.map(column => make("th", { scope: "col" }, make("div", { className: "name" }, names[column]), ...(isSame[column] ? given(shown[0].probes[column]) : [])))];
    const rows = shown.map(({ step, bleu, is_best: isBest, probes }) => make("tr", {}, ...[
      make("td", {}, make("span", {}, step.toLocaleString("en"), isBest ? make("span", { className: "best", title: "the best validation so far" }, " ★") : "")),
      make("td", {}, bleu === null ? "" : bleu.toFixed(1)),
      ...columns.map(column => {
        const probe = probes[column];
        if (!probe) return make("td", {});
        const translation = make("div", { dir: "auto" }, ...markedText(probe[1], probe[2]));
        return make("td", {}, make("div", {}, ...(isSame[column] ? [] : given(probe)), translation));
      })].map((cell, place) => {
      cell.dataset.name = ["Step", "BLEU", ...names][place];
      return cell;
    })));
    const title = runs.length > 1 ? `Translations of ${run.name}` : "Translations, newest first";
    return make("section", {}, make("h2", {}, title),
      make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": title }, make("table", { className: "probe" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))));
  });
  parts.probes.replaceChildren(...boxes);
}

export function planTraining(width) {
  const shown = known.runs.flatMap((run, index) => isShown(run) ? [[`${run.name}: ${statusOf(run)}`, index]] : []);
  const half = (width - 24) / 2, [loss, bleu, rate, speed] = charts.map(([name, title]) => planOne(name, title, half, 230));
  return stack([planText(shown.map(each => each[0]), { size: 13 }, shown.map(each => each[1])), beside([loss, bleu]), beside([rate, speed])]);
}

export function startTraining() {
  const empty = name => ({ name, offset: 0, token: "", points: [], validations: [], events: [], isWaiting: true });
  known.runs = isFrozen ? snapshot.runs ?? [] : known.page.runs.map(empty);
  build();
  on("theme", drawTraining);
  onChange(changes => { if ("view" in changes) { drawTraining(); readRuns(); } });
  drawTraining();
  readRuns();
}
