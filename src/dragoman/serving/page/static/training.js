// Training runs: curves that grow while they are watched, and translations as they improve.
import { complain, find, make, markedText, say, segments, tick } from "./dom.js";
import { counted, fixed, brief, span, whole } from "./wording.js";
import { hue, isDark } from "./colours.js";
import { ask, isFrozen, snapshot } from "./server.js";
import { change, known, on, onChange, state } from "./state.js";
import { planChart, smooth } from "./charts.js";
import { beside, planText, stack } from "./pictures.js";
import { Picture } from "./canvas.js";
import { drawStages } from "./stages.js";

const charts = [
  ["loss", "Loss", "thin: training, with label smoothing; thick: validation, in nats"],
  ["bleu", "BLEU on the validation pairs", ""],
  ["rate", "Learning rate", ""],
  ["speed", "Tokens per second", ""],
];
const ENDED_EVERY = 8;
const parts = {}, pictures = {}, rows = new Map();
let timer, isReading = false, round = 0;

const isShown = run => !state.without.split("|").includes(run.name);
const isRateTest = run => Boolean(run.rates) && !run.events.length && !run.points.length;
const lastChange = run => run.events.findLast(event => ["start", "end", "stop"].includes(event.event));
const hasEnded = run => { const last = lastChange(run); return last !== undefined && last.event !== "start"; };

// The runs that there are now: those that were known keep what was read of them.
function takeRuns(told) {
  const before = new Map(known.runs.map(run => [run.number, run]));
  const empty = { offset: 0, token: "", factsToken: "", points: [], validations: [], events: [], isWaiting: true, options: {}, rates: null };
  const isSame = told.length === known.runs.length && told.every((run, place) => run.number === known.runs[place].number && run.name === known.runs[place].name);
  known.runs = told.map(run => Object.assign(before.get(run.number) ?? structuredClone(empty), run));
  return !isSame;
}

async function readRun(run) {
  let isChanged = false;
  for (let more = true; more;) {
    const told = await ask(`runs/${run.number}?offset=${run.offset}&token=${encodeURIComponent(run.token)}`);
    if (told.restarts) Object.assign(run, { points: [], validations: [], events: [] });
    isChanged ||= told.points.length + told.validations.length + told.events.length > 0 || run.isWaiting !== told.isWaiting;
    run.points.push(...told.points);
    run.validations.push(...told.validations);
    run.events.push(...told.events);
    Object.assign(run, { offset: told.offset, token: told.token, isWaiting: told.isWaiting });
    more = told.isMore;
    if (run.factsToken === told.facts) continue;
    Object.assign(run, await ask(`runs/${run.number}/facts`), { factsToken: told.facts });
    isChanged = true;
  }
  return isChanged;
}

async function readRuns() {
  if (isFrozen || isReading || state.view !== "training") return;
  isReading = true;
  let isChanged = false, problem = null;
  try {
    isChanged = takeRuns((await ask("runs")).runs);
    for (const run of known.runs) {
      if (hasEnded(run) && round % ENDED_EVERY) continue;
      try { isChanged = await readRun(run) || isChanged; } catch (error) { problem ??= error; }
    }
  } catch (error) { problem = error; }
  complain(problem);
  round++;
  isReading = false;
  if (isChanged || !parts.charts.drawn) drawTraining();
  clearTimeout(timer);
  timer = setTimeout(readRuns, 1500);
}

function seriesOf(name) {
  const series = [], weight = state.smooth / 100;
  for (const run of known.runs) {
    if (!isShown(run)) continue;
    const begin = run.points[0]?.[1] ?? run.validations[0]?.time ?? 0;
    const start = run.events.find(event => event.event === "start")?.time ?? begin;
    const x = (step, time) => state.axis === "step" ? step : (time - start) / 60;
    const curve = (label, all, more = {}) => {
      const points = all.filter(point => point.every(Number.isFinite));
      const isSmoothed = weight > 0 && !more.hasDots && name !== "rate";
      series.push({ name: label, index: run.number, points: isSmoothed ? smooth(points, weight) : points, raw: isSmoothed ? points : null, ...more });
    };
    const column = { loss: 2, rate: 3, speed: 4 }[name];
    if (column) curve(name === "loss" ? `${run.name} training` : run.name, run.points.map(point => [x(point[0], point[1]), point[column]]), { isFaint: name === "loss" });
    if (name === "loss") curve(`${run.name} validation`, run.validations.map(each => [x(each.step, each.time), each.loss]), { hasDots: true });
    if (name === "bleu") curve(run.name, run.validations.map(each => [x(each.step, each.time), each.bleu]), { hasDots: true });
  }
  return series;
}

// What all charts show of the horizontal axis.
function wholeRange() {
  const isLog = state.logs.includes("x");
  const all = charts.flatMap(([name]) => seriesOf(name)).flatMap(each => each.points).map(point => point[0]).filter(x => !isLog || x > 0);
  if (!all.length) return [isLog ? .1 : 0, 1];
  const [low, high] = all.reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);
  return isLog ? [low, high > low ? high : 2 * low] : [Math.min(0, low), high > low ? high : low + 1];
}
function zoomed() {
  const [from, to] = state.zoom.split("..").map(Number);
  return state.zoom && Number.isFinite(from) && to > from && (from > 0 || !state.logs.includes("x")) ? [from, to] : null;
}
function zoomTo(from, to) {
  const [low, high] = wholeRange(), begin = Math.max(low, Math.min(from, to)), end = Math.min(high, Math.max(from, to));
  if (!(end > begin)) return;
  const isWhole = begin <= low && end >= high, short = value => Number(value.toPrecision(6));
  change({ zoom: isWhole ? "" : `${short(begin)}..${short(end)}` });
  drawTraining();
  say(isWhole ? "the whole run" : `${brief(begin)} to ${brief(end)}`);
}
// By a factor about a place; moved by a share of what is seen.
function zoomBy(factor, centre, shift = 0) {
  const isLog = state.logs.includes("x"), turn = isLog ? Math.log : x => x, back = isLog ? Math.exp : x => x;
  const limits = wholeRange(), [low, high] = limits.map(turn), [from, to] = (zoomed() ?? limits).map(turn);
  const middle = centre === undefined ? (from + to) / 2 : turn(centre), move = shift * (to - from);
  const wide = Math.min(high - low, (to - from) * factor), share = to > from ? (middle - from) / (to - from) : .5;
  const begin = Math.max(low, Math.min(high - wide, middle - share * wide + move));
  zoomTo(wide >= high - low ? limits[0] : back(begin), wide >= high - low ? limits[1] : back(begin + wide));
}
const wholeRun = () => { change({ zoom: "" }); drawTraining(); say("the whole run"); };

function howOf() {
  const range = zoomed();
  return { xName: state.axis, isWhole: state.axis === "step", logs: state.logs, range: range ?? wholeRange(), isZoomed: range !== null };
}
const planOne = (name, title, width, height) => planChart(title, seriesOf(name), howOf(), width, height);

// The curve of a learning-rate test, as “dragoman train --find-learning-rate” draws it.
function planRates(run, width, height) {
  const { rates, losses, smoothed, steepest, turning, suggested } = run.rates;
  const marks = [["suggested", suggested, []], ["lowest", turning, [2, 3]], ["falls fastest", steepest, [6, 4]]]
    .map(([name, x, dashes]) => ({ x, dashes, text: `${name}: ${brief(x)}` }));
  const points = smoothed.map((loss, place) => [rates[place], loss]), raw = losses.map((loss, place) => [rates[place], loss]);
  const least = Math.min(...losses), most = smoothed[0] + .2 * (smoothed[0] - least);
  return planChart(`Learning-rate test of ${run.name}: loss`, [{ name: "loss", index: run.number, points, raw }],
    { xName: "learning rate", logs: "x", marks, mostY: most }, width, height);
}

// Pointing at one chart points at all; dragging over a part, or + and −, shows it larger.
function watchChart(picture) {
  const { canvas } = picture;
  const valueAt = event => picture.plan.valueAt(event.clientX - canvas.getBoundingClientRect().left);
  let from = null, begun = 0;
  picture.onPoint = at => { for (const [name] of charts) if (pictures[name] !== picture) pictures[name].follow(at); };
  canvas.addEventListener("pointerdown", event => {
    if (event.pointerType === "touch" || event.button || !picture.at) return;
    from = valueAt(event);
    begun = event.clientX;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => { if (from !== null) picture.point({ x: valueAt(event), from }); });
  const end = event => {
    if (from === null) return;
    const begin = from;
    from = null;
    picture.point(null);
    if (event.type === "pointerup" && Math.abs(event.clientX - begun) > 6) zoomTo(begin, valueAt(event));
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("dblclick", wholeRun);
  canvas.addEventListener("keydown", event => {
    const centre = picture.at?.x, isShift = event.shiftKey;
    const act = { "+": () => zoomBy(.5, centre), "=": () => zoomBy(.5, centre), "-": () => zoomBy(2, centre), 0: wholeRun,
      ArrowLeft: isShift && (() => zoomBy(1, undefined, -.25)), ArrowRight: isShift && (() => zoomBy(1, undefined, .25)) }[event.key];
    if (!act || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    act();
  }, true);
}

function build() {
  for (const name of ["controls", "runs", "settings", "charts", "rates", "differences", "stages", "probes"]) parts[name] = make("div", { className: name });
  parts.none = make("p", { className: "empty" });
  const redraw = changes => { change(changes); drawTraining(); };
  const log = axis => checked => redraw({ logs: ["x", "y"].filter(each => each === axis ? checked : state.logs.includes(each)).join(""), zoom: "" });
  const smoothing = make("input", { type: "range", min: 0, max: 98, step: 2, value: state.smooth, "aria-label": "Smoothing", className: "smoothing" });
  const shown = make("output", {}, `${state.smooth} %`);
  smoothing.oninput = () => { shown.textContent = `${smoothing.value} %`; redraw({ smooth: Number(smoothing.value) }); };
  parts.whole = make("button", { className: "small", onclick: wholeRun }, "Whole run");
  parts.settings.className = "controls settings";
  parts.settings.append(
    segments("axis", "Horizontal axis", [["step", "Steps"], ["minutes", "Minutes"]], state.axis, axis => redraw({ axis, zoom: "" })),
    tick("logarithmic across", state.logs.includes("x"), log("x"), "Show the horizontal axis logarithmically"),
    tick("logarithmic up", state.logs.includes("y"), log("y"), "Show the vertical axes logarithmically"),
    make("label", {}, "Smoothing ", smoothing, shown),
    make("span", { className: "zoom", role: "group", "aria-label": "Zoom" },
      make("button", { className: "small", "aria-label": "Zoom out", onclick: () => zoomBy(2) }, "−"),
      make("button", { className: "small", "aria-label": "Zoom in", onclick: () => zoomBy(.5) }, "+"), parts.whole),
    make("span", { className: "faint hint" }, "Drag over a chart to see a part of it. With keys: + − 0, and Shift with arrows."));
  for (const [name, title, hint] of charts) {
    pictures[name] = new Picture(title, { hint });
    watchChart(pictures[name]);
    parts.charts.append(pictures[name].element);
  }
  find("training").replaceChildren(parts.none, parts.runs, parts.settings, parts.charts, parts.rates, parts.stages, parts.differences, parts.probes);
}

function endOf([, time, , , , , left]) {
  const ends = new Date(1000 * (time + left)), isToday = ends.toDateString() === new Date().toDateString();
  const day = isToday ? {} : { weekday: "long", day: "numeric", month: "long" };
  const rest = time + left - Date.now() / 1000;
  return `ends about ${ends.toLocaleString("en-GB", { ...day, hour: "2-digit", minute: "2-digit" })}${rest > 0 ? `, in ${span(rest)}` : ""}`;
}

// Whether validation had stopped improving when the run said so, and has not become better since.
const isStagnant = run => {
  const told = run.events.findLast(event => event.event === "stagnation");
  return told !== undefined && !run.validations.some(each => each.is_best && each.step > told.step);
};

function statusOf(run) {
  if (isRateTest(run)) return `learning-rate test · suggests ${brief(run.rates.suggested)}`;
  const last = run.points.at(-1);
  if (run.isWaiting || !run.events.length) return "has not begun";
  const best = Math.max(...run.validations.map(each => each.bleu ?? -1));
  const said = [last ? `step ${whole(last[0])}` : "", best >= 0 ? `best BLEU ${fixed(best, 1)}` : ""];
  const isOver = hasEnded(run), isQuiet = last && Date.now() / 1000 - last[1] > 600;
  if (last && Number.isFinite(last[5])) said.push(`${Math.floor(100 * last[5] + 1e-9)} % done`);
  if (last && Number.isFinite(last[6]) && !isOver && !isQuiet) said.push(endOf(last));
  if (isStagnant(run)) said.push("has stopped improving");
  return [...said.filter(Boolean), isOver ? "ended" : isQuiet ? "quiet" : "running"].join(" · ");
}

// A row of the list of runs: made once, so that what has the focus keeps it.
function rowOf(run) {
  if (!rows.has(run.number)) {
    const box = make("input", { type: "checkbox" }), swatch = make("i", { className: "swatch" }), name = make("b");
    const status = make("span", { className: "faint" }), bar = make("progress", { max: 1 });
    const element = make("label", { className: "run" }, box, swatch, name, bar, status);
    rows.set(run.number, { element, box, swatch, name, bar, status });
  }
  const row = rows.get(run.number), last = run.points.at(-1);
  row.box.checked = isShown(run);
  row.box.onchange = () => {
    const without = state.without.split("|").filter(Boolean).filter(name => name !== run.name);
    change({ without: (row.box.checked ? without : [...without, run.name]).join("|") });
    drawTraining();
  };
  row.swatch.style.background = hue(run.number, isDark());
  row.name.textContent = run.name;
  row.bar.hidden = !last || !Number.isFinite(last[5]);
  row.bar.value = last?.[5] ?? 0;
  row.bar.setAttribute("aria-label", `progress of ${run.name}`);
  row.status.textContent = statusOf(run);
  return row.element;
}

function drawTraining() {
  if (state.view !== "training" || !parts.none) return;
  const { runs } = known, shown = runs.filter(isShown);
  parts.none.textContent = runs.length ? "" : "No runs to watch yet; those that begin appear here by themselves. Start the server with “dragoman watch RUN…”, or serve a model from the folder in which it was trained.";
  const hasCurves = runs.some(run => !isRateTest(run));
  for (const name of ["runs", "rates", "differences", "probes"]) parts[name].hidden = !runs.length;
  for (const name of ["settings", "charts"]) parts[name].hidden = !hasCurves;
  parts.charts.drawn = true;
  if (!runs.length) return;
  const elements = runs.map(rowOf);
  if (elements.length !== parts.runs.children.length || elements.some((element, place) => parts.runs.children[place] !== element)) parts.runs.replaceChildren(...elements);
  parts.whole.disabled = !zoomed();
  for (const [name, title] of charts) pictures[name].show(width => planOne(name, title, width), pictures[name].at);
  drawRates(shown.filter(run => run.rates));
  drawDifferences(shown);
  drawProbes(shown);
  if (!isFrozen) drawStages(parts.stages);
}

function drawRates(runs) {
  const boxes = runs.map(run => {
    const picture = pictures[`rates ${run.number}`] ??= new Picture(`Learning-rate test of ${run.name}`, { hint: "The learning rate rises at every update; pale: each update, strong: smoothed." });
    return picture;
  });
  if (boxes.length !== parts.rates.children.length || boxes.some((box, place) => parts.rates.children[place] !== box.element)) parts.rates.replaceChildren(...boxes.map(box => box.element));
  boxes.forEach((box, place) => box.show(width => planRates(runs[place], width, 240), box.at));
}

// In which options the chosen runs differ.
export function listDifferences(runs) {
  const names = [...new Set(runs.flatMap(run => Object.keys(run.options)))];
  return names.filter(name => new Set(runs.map(run => run.options[name])).size > 1)
    .map(name => [name, ...runs.map(run => run.options[name] ?? "—")]);
}
function drawDifferences(shown) {
  const runs = shown.filter(run => Object.keys(run.options).length), key = JSON.stringify(runs.map(run => [run.name, run.number, run.options]));
  if (parts.differences.key === key) return;
  parts.differences.key = key;
  if (runs.length < 2) return parts.differences.replaceChildren();
  const found = listDifferences(runs), title = "What differs in their configurations";
  if (!found.length) return parts.differences.replaceChildren(make("h2", {}, title), make("p", { className: "faint" }, `Nothing: the ${counted(runs.length, "run")} have the same options.`));
  const head = [make("th", { scope: "col" }, "Option"), ...runs.map(run => make("th", { scope: "col" }, run.name))];
  const body = found.map(([name, ...values]) => make("tr", {}, make("th", { scope: "row" }, name), ...values.map(value => make("td", {}, value))));
  parts.differences.replaceChildren(make("h2", {}, title), make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": title },
    make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body))));
}

// What became of the same few sentences at each validation, newest first; what is not in the
// reference is marked. In older logs each validation has one sentence, and not the same.
function drawProbes(runs) {
  const key = JSON.stringify(runs.map(run => [run.name, run.token, run.validations.length, run.validations.at(-1)?.step]));
  if (parts.probes.key === key) return;
  parts.probes.key = key;
  const places = [...parts.probes.querySelectorAll(".scroll")].map(box => [box.scrollTop, box === document.activeElement]);
  const boxes = runs.filter(run => run.validations.some(each => each.probes.length)).map(run => {
    const shown = run.validations.filter(each => each.probes.length).slice(-40).reverse();
    const columns = [...shown[0].probes.keys()], text = probe => probe?.slice(0, 2).join("\n");
    const isSame = columns.map(column => shown.every(each => text(each.probes[column]) === text(shown[0].probes[column])));
    const names = columns.map(column => columns.length > 1 ? `Sentence ${column + 1}` : "Sentence");
    const given = ([source, reference]) => [make("div", { dir: "auto" }, source), make("div", { dir: "auto", className: "faint" }, reference)];
    const head = [make("th", { scope: "col" }, "Step"), make("th", { scope: "col" }, "BLEU"),
      ...columns.map(column => make("th", { scope: "col" }, make("div", { className: "name" }, names[column]), ...(isSame[column] ? given(shown[0].probes[column]) : [])))];
    const lines = shown.map(({ step, bleu, is_best: isBest, probes }) => make("tr", {}, ...[
      make("td", {}, make("span", {}, whole(step), isBest ? make("span", { className: "best", title: "the best validation so far" }, " ★") : "")),
      make("td", {}, bleu === null ? "" : fixed(bleu, 1)),
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
      make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": title }, make("table", { className: "probe" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines))));
  });
  parts.probes.replaceChildren(...boxes);
  parts.probes.querySelectorAll(".scroll").forEach((box, place) => {
    const [top, hadFocus] = places[place] ?? [0, false];
    if (hadFocus) box.focus();
    box.scrollTop = top;
  });
}

export function planTraining(width) {
  const shown = known.runs.filter(isShown), half = (width - 24) / 2;
  const [loss, bleu, rate, speed] = charts.map(([name, title]) => planOne(name, title, half, 230));
  const curves = known.runs.some(run => !isRateTest(run)) ? [beside([loss, bleu]), beside([rate, speed])] : [];
  return stack([planText(shown.map(run => `${run.name}: ${statusOf(run)}`), { size: 13 }, shown.map(run => run.number)), ...curves,
    ...shown.filter(run => run.rates).map(run => planRates(run, width, 260))]);
}

export function startTraining() {
  if (isFrozen) known.runs = snapshot.runs ?? [];
  else takeRuns(known.page.runs);
  build();
  on("theme", drawTraining);
  onChange(changes => {
    if (!("view" in changes)) return;
    drawTraining();
    readRuns();
  });
  drawTraining();
  readRuns();
}
