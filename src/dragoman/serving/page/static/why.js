// Why a word: RISE with its error, gradient × input and attention, side by side.
import { complain, fill, find, make, say } from "./dom.js";
import { brief, counted, fixed, signed, times } from "./wording.js";
import { isDark, signedColour, weightColour } from "./colours.js";
import { askLines, isFrozen, snapshot } from "./server.js";
import { change, focused, known, modelInside, on, onChange, state } from "./state.js";
import { beside, pile, planBars, planMap, planText } from "./pictures.js";
import { wrap } from "./pen.js";
import { Picture, tableOf } from "./canvas.js";
import { sentencePicker } from "./attention.js";

const accountNames = { rise: "RISE", gradient: "Gradient × input", attention: "Attention" };
const MOST_BARS = 16;
const parts = {}, maps = {};
let bars, request, askedFor = "";

async function fetchWhy() {
  const sentence = focused(), model = modelInside();
  if (isFrozen || state.view !== "why" || !sentence?.text || !model) return drawWhy();
  const body = { model: model.name, source: sentence.source, translation: sentence.text, masks: state.masks };
  const wanted = JSON.stringify(body);
  if (askedFor === wanted) return drawWhy();
  request?.abort();
  request = new AbortController();
  askedFor = wanted;
  known.why = null;
  drawWhy();
  try {
    await askLines("why", body, request.signal, told => {
      known.why = { ...known.why, ...told };
      drawWhy();
    });
    complain(null);
    say(`Explained with ${counted(known.why.numMasks, "mask")}`);
  } catch (error) {
    if (error.name !== "AbortError") askedFor = "";
    complain(error);
    if (error.name !== "AbortError") { parts.none.textContent = ""; }
  }
}

function build() {
  for (const name of ["controls", "progress", "words", "bars", "accounts", "table"]) parts[name] = make("div", { className: name });
  parts.none = make("p", { className: "empty" });
  bars = new Picture("Importance of each source word", { hint: "Point at a bar to read its number." });
  parts.bars.append(bars.element);
  for (const name of Object.keys(accountNames)) {
    maps[name] = new Picture(accountNames[name], { pick: at => choose(at.row) });
    maps[name].box = make("section", { className: "account" }, make("h2", {}, accountNames[name]), maps[name].element, maps[name].caption = make("p", { className: "caption" }));
    parts.accounts.append(maps[name].box);
  }
  const masks = make("select", { "aria-label": "Masks" });
  fill(masks, [100, 300, 1000, 3000].map(count => [count, count]), state.masks);
  masks.onchange = () => { change({ masks: Number(masks.value) }); fetchWhy(); };
  parts.pick = make("span", { className: "pick" });
  parts.legend = make("p", { className: "legend faint" });
  parts.controls.append(parts.pick, isFrozen ? "" : make("label", {}, "Masks ", masks), parts.progress);
  find("why").replaceChildren(parts.none, parts.controls, parts.words, parts.bars, parts.legend, parts.accounts, parts.table);
}

function choose(word) {
  change({ word });
  drawWhy();
  say(bars.plan ? `Why “${known.why.targetWords[state.word]}”` : "");
}

const rowsOf = (why, name) => (why[name] ?? []).slice(0, why.targetWords.length - 1);

function whyNothing() {
  if (!known.sentences.some(sentence => sentence.text)) return "Type a text above, then ask which of its words each word of the translation depends on.";
  if (!modelInside() && !isFrozen) return "This was translated in two steps, through a third language. Choose a model to ask why.";
  return known.why ? "" : "Asking the model about the sentence with words left out …";
}

export function drawWhy() {
  if (state.view !== "why" || !bars) return;
  const nothing = whyNothing(), why = known.why;
  parts.none.textContent = nothing;
  parts.controls.hidden = !known.sentences.some(sentence => sentence.text);
  parts.pick.replaceChildren(sentencePicker() ?? "");
  for (const name of ["words", "bars", "accounts", "legend", "table"]) parts[name].hidden = !why;
  parts.progress.hidden = !why;
  if (!why) return;
  const count = why.targetWords.length - 1;
  state.word = Math.max(0, Math.min(state.word, count - 1));
  drawProgress(why);
  drawLegend(why);
  parts.accounts.classList.toggle("long", why.sourceWords.length > MOST_BARS);
  drawTargetWords(why, count);
  bars.hint = why.sourceWords.length > MOST_BARS ? `The ${MOST_BARS} most important of ${counted(why.sourceWords.length, "source word")}; a dotted line stands where others are left out.` : "Point at a bar to read its number.";
  bars.show(width => planWhyBars(why, width));
  for (const name of Object.keys(accountNames)) {
    const isThere = Boolean(why[name]);
    maps[name].element.hidden = !isThere;
    maps[name].caption.textContent = isThere ? why.captions[name] : "This model has no attention to the source.";
    if (isThere) maps[name].show(width => planAccount(why, name, width));
  }
  parts.table.replaceChildren(tableOf(() => ({
    caption: "RISE: change of log-probability ± Monte-Carlo standard error", columns: why.sourceWords,
    rows: rowsOf(why, "rise").map((row, at) => [why.targetWords[at], ...row.map((value, place) => `${fixed(value, 2)} ± ${fixed(why.errors[at][place], 2)}`)]),
  })));
}

// One scale for the whole sentence: RISE and gradient × input are both changes of log-probability.
function scaleOf(why) {
  const rows = ["rise", "gradient"].flatMap(name => rowsOf(why, name)), numbers = rows.flat();
  const reach = Math.max(...rowsOf(why, "rise").flatMap((row, at) => row.map((value, place) => value + why.errors[at][place])), ...numbers, .01);
  return { low: Math.min(0, ...numbers), high: reach, most: Math.max(reach, ...numbers.map(Math.abs)) };
}
const strengthOf = (value, most) => Math.sqrt(Math.min(1, Math.abs(value) / most));
const isSureOf = (why, row, place) => Math.abs(why.rise[row][place]) >= 2 * why.errors[row][place];
const shade = (value, most, isSure, dark) => signedColour(Math.sign(value) * strengthOf(value, most) * (isSure ? 1 : .35), dark);

// Source words that no word of the translation needs: perhaps they were not translated.
function listUnused(why) {
  const count = why.targetWords.length - 1;
  return why.sourceWords.filter((_, place) => rowsOf(why, "rise").length && Array.from({ length: count }, (_, row) => row)
    .every(row => Math.abs(why.rise[row][place]) < .1 || !isSureOf(why, row, place)));
}

function drawLegend(why) {
  const { most } = scaleOf(why), dark = isDark(), steps = Array.from({ length: 21 }, (_, step) => step / 10 - 1);
  const strip = (colours, ends, text) => {
    const bar = make("i", { className: "strip" });
    bar.style.background = `linear-gradient(to right, ${colours.join(", ")})`;
    return make("span", {}, ends[0], " ", bar, ` ${ends[1]} ${text}`);
  };
  const faint = make("i");
  faint.style.background = shade(most / 2, most, false, dark);
  const unused = listUnused(why), isDone = why.isExact || why.numMasks >= why.ofMasks;
  parts.legend.replaceChildren(
    strip(steps.map(step => shade(step * most, most, true, dark)), [brief(-most), `+${brief(most)}`], "change of log-probability, for RISE and gradient × input alike: against the word, for it"),
    ...(why.attention ? [strip(steps.slice(10).map(step => weightColour(step, dark)), ["0", "1"], "attention")] : []),
    make("span", {}, faint, "faint in RISE: may be chance, less than two standard errors"),
    ...(isDone && unused.length ? [make("span", { className: "unused" }, "No word of the translation depends on ", ...unused.flatMap((word, place) => [place ? ", " : "", make("b", { dir: "auto" }, word)]), unused.length > 1 ? ": they may have been left out, or may not matter." : ": it may have been left out, or may not matter.")] : []));
}

function describeMasks(why) {
  const largest = Math.max(0, ...why.errors.flat());
  return why.isExact ? `exact: all ${counted(why.numMasks, "way")} of leaving words out were tried`
    : `${why.numMasks} of ${why.ofMasks} random masks · largest Monte-Carlo error ± ${fixed(largest, 2)}`;
}
function drawProgress(why) {
  const isDone = why.isExact || why.numMasks >= why.ofMasks;
  parts.progress.replaceChildren(...(isDone ? [] : [make("progress", { max: why.ofMasks, value: why.numMasks, "aria-label": "Masks tried" })]),
    make("span", { className: "faint" }, ` ${describeMasks(why)}`));
}

function drawTargetWords(why, count) {
  const isSame = parts.words.key === why.translation;
  if (!isSame) {
    parts.words.key = why.translation;
    parts.words.replaceChildren(make("span", { className: "faint" }, "Why"), make("div", { role: "radiogroup", "aria-label": "Word to explain", className: "choose", lang: state.to, dir: "auto" },
      ...why.targetWords.slice(0, count).map((word, index) => make("button", { role: "radio", className: "pill", onclick: () => choose(index) }, word))));
    parts.words.onkeydown = event => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      choose((state.word + step + count) % count);
      parts.words.querySelector("[aria-checked=true]").focus();
    };
  }
  parts.words.querySelectorAll("[role=radio]").forEach((button, index) => {
    button.setAttribute("aria-checked", index === state.word);
    button.tabIndex = index === state.word ? 0 : -1;
  });
}

// Of the chosen word, all accounts.
export function planWhyBars(why, width) {
  const { low, high, most } = scaleOf(why), row = state.word;
  const accounts = Object.keys(accountNames).filter(name => why[name]).map(name => ({
    name: width < 560 ? { rise: "RISE", gradient: "Gradient", attention: "Attention" }[name] : accountNames[name],
    values: why[name][row], errors: name === "rise" ? why.errors[row] : null, isSigned: name !== "attention",
    ...(name === "attention" ? { low: 0, high: 1, colour: weightColour }
      : { low, high, colour: (value, dark, place) => shade(value, most, name !== "rise" || isSureOf(why, row, place), dark) }),
  }));
  return planBars(rowsWithGaps(mostImportant(accounts, why.sourceWords.length), why.sourceWords), accounts, width);
}
// The words that are shown; what is left out between them is marked.
function rowsWithGaps(kept, words) {
  return [...kept, words.length].flatMap((place, at) => {
    const missing = place - (at ? kept[at - 1] + 1 : 0);
    const gap = missing ? [{ text: `⋯ ${counted(missing, "word")}`, isGap: true }] : [];
    return place < words.length ? [...gap, { text: words[place], place }] : gap;
  });
}
// Of a long sentence the words that any account finds important, in their order.
function mostImportant(accounts, count) {
  const places = Array.from({ length: count }, (_, place) => place);
  if (count <= MOST_BARS) return places;
  const share = place => Math.max(...accounts.map(({ values, high, low }) => Math.abs(values[place]) / Math.max(high, -low)));
  return places.sort((one, other) => share(other) - share(one)).slice(0, MOST_BARS).sort((one, other) => one - other);
}

// A map of one account. Numbers that their error may explain are faint.
export function planAccount(why, name, width, title) {
  const mostCell = why.sourceWords.length > MOST_BARS ? 20 : 34;
  const rows = rowsOf(why, name), numbers = rows.flat(), columns = why.sourceWords;
  const errors = name === "rise" ? rowsOf(why, "errors").flat() : null;
  const targets = why.targetWords.slice(0, rows.length);
  if (name === "attention") return planMap(targets, columns, numbers, width, { title, mostCell });
  const { most } = scaleOf(why);
  const isSure = place => !errors || Math.abs(numbers[place]) >= 2 * errors[place];
  const strength = place => strengthOf(numbers[place], most) * (isSure(place) ? 1 : .35);
  const digits = most >= 3 ? 1 : 2;
  return planMap(targets, columns, numbers, width, {
    title, mostCell,
    colour: (value, dark, place) => shade(value, most, isSure(place), dark),
    tell: {
      strength,
      number: place => Math.abs(numbers[place]) >= most * .05 && isSure(place) ? fixed(numbers[place], digits) : "",
      sentence: (row, column, place) => {
        const value = numbers[place], error = errors ? ` ± ${fixed(errors[place], 2)}` : "", ratio = times(Math.exp(Math.abs(value)));
        const compared = !errors ? "" : ratio === "1 time" ? ": as probable without it" : `: ${ratio} as probable ${value >= 0 ? "with" : "without"} it`;
        return `“${targets[row]}” and “${columns[column]}”: ${signed(value, 2)}${error}${isSure(place) ? compared : " (may be chance)"}`;
      },
    },
  });
}

export function planWhy(width) {
  const why = known.why, heading = { size: 14, weight: 600 };
  const names = Object.keys(accountNames).filter(name => why[name]);
  // Short sentences have room for all accounts side by side.
  const isShort = why.sourceWords.length <= 14, wide = isShort ? (width - 24 * (names.length - 1)) / names.length : width;
  const columns = names.map(name => pile([planAccount(why, name, wide, accountNames[name]),
    planText(wrap(why.captions[name], wide, { size: 12 }), { size: 12, ink: "faint" })], wide));
  return pile([
    planText([`Why “${why.targetWords[state.word]}”? (${describeMasks(why)})`], heading),
    planWhyBars(why, width),
    ...(isShort ? [beside(columns)] : columns),
  ], width);
}

export function startWhy() {
  build();
  if (isFrozen && snapshot.why) known.why = snapshot.why;
  on("translation", () => { if (!isFrozen) askedFor = ""; fetchWhy(); });
  on("theme", drawWhy);
  onChange(changes => { if ("view" in changes) fetchWhy(); });
  fetchWhy();
}
