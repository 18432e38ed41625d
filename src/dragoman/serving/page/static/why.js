// Why a word: RISE with its error, gradient × input and attention, side by side.
import { complain, fill, find, make, say } from "./dom.js";
import { fixed } from "./wording.js";
import { isDark, signedColour } from "./colours.js";
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
    say(`Explained with ${known.why.numMasks} masks`);
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
  drawLegend();
  parts.accounts.classList.toggle("long", why.sourceWords.length > MOST_BARS);
  drawTargetWords(why, count);
  bars.hint = why.sourceWords.length > MOST_BARS ? `The ${MOST_BARS} most important of ${why.sourceWords.length} source words.` : "Point at a bar to read its number.";
  bars.show(width => planWhyBars(why, width));
  for (const name of Object.keys(accountNames)) {
    const isThere = Boolean(why[name]);
    maps[name].element.hidden = !isThere;
    maps[name].caption.textContent = isThere ? why.captions[name] : "This model has no attention to the source.";
    if (isThere) maps[name].show(width => planAccount(why, name, width));
  }
  parts.table.replaceChildren(tableOf(() => ({
    caption: "RISE: change of log-probability ± Monte-Carlo standard error", columns: why.sourceWords,
    rows: rowsOf(why, "rise").map((row, at) => [why.targetWords[at], ...row.map((value, place) => `${value.toFixed(2)} ± ${why.errors[at][place].toFixed(2)}`)]),
  })));
}

function drawLegend() {
  const entries = [[.75, "the source word speaks for the word"], [-.75, "against it"], [.15, "faint in RISE: may be chance, less than two standard errors"]];
  parts.legend.replaceChildren(...entries.map(([value, text]) => {
    const swatch = make("i");
    swatch.style.background = signedColour(value, isDark());
    return make("span", {}, swatch, text);
  }));
}

function describeMasks(why) {
  const largest = Math.max(0, ...why.errors.flat());
  return why.isExact ? `exact: all ${why.numMasks} ways of leaving words out were tried`
    : `${why.numMasks} of ${why.ofMasks} random masks · largest Monte-Carlo error ± ${largest.toFixed(2)}`;
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
  const accounts = Object.keys(accountNames).filter(name => why[name]).map(name => ({
    name: width < 560 ? { rise: "RISE", gradient: "Gradient", attention: "Attention" }[name] : accountNames[name],
    values: why[name][state.word], errors: name === "rise" ? why.errors[state.word] : null, isSigned: name !== "attention",
  }));
  const kept = mostImportant(accounts, why.sourceWords.length);
  const take = list => list && kept.map(place => list[place]);
  return planBars(take(why.sourceWords), accounts.map(account => ({ ...account, values: take(account.values), errors: take(account.errors) })), width);
}
// Of a long sentence the words that any account finds important, in their order.
function mostImportant(accounts, count) {
  const places = Array.from({ length: count }, (_, place) => place);
  if (count <= MOST_BARS) return places;
  const share = place => Math.max(...accounts.map(({ values }) => Math.abs(values[place]) / Math.max(1e-9, ...values.map(Math.abs))));
  return places.sort((one, other) => share(other) - share(one)).slice(0, MOST_BARS).sort((one, other) => one - other);
}

// A map of one account. Numbers that their error may explain are faint.
export function planAccount(why, name, width, title) {
  const mostCell = why.sourceWords.length > MOST_BARS ? 20 : 34;
  const rows = rowsOf(why, name), numbers = Float32Array.from(rows.flat()), columns = why.sourceWords;
  const errors = name === "rise" ? Float32Array.from(rowsOf(why, "errors").flat()) : null;
  const targets = why.targetWords.slice(0, rows.length);
  if (name === "attention") return planMap(targets, columns, numbers, width, { title, mostCell });
  const most = Math.max(1e-9, ...numbers.map(Math.abs));
  const isSure = place => !errors || Math.abs(numbers[place]) >= 2 * errors[place];
  const strength = place => Math.sqrt(Math.abs(numbers[place]) / most) * (isSure(place) ? 1 : .35);
  const digits = most >= 3 ? 1 : 2;
  return planMap(targets, columns, numbers, width, {
    title, mostCell,
    colour: (value, dark, place) => signedColour(Math.sign(value) * strength(place), dark),
    tell: {
      strength,
      number: place => Math.abs(numbers[place]) >= most * .05 && isSure(place) ? fixed(numbers[place], digits) : "",
      sentence: (row, column, place) => {
        const value = numbers[place], error = errors ? ` ± ${errors[place].toFixed(2)}` : "";
        const times = errors ? `: ${Math.exp(Math.abs(value)).toPrecision(2)} times as probable ${value >= 0 ? "with" : "without"} it` : "";
        return `“${targets[row]}” and “${columns[column]}”: ${value >= 0 ? "+" : "−"}${Math.abs(value).toFixed(2)}${error}${isSure(place) ? times : " (may be chance)"}`;
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
