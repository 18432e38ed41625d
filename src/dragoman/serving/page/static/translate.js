// The desk: a text, its translation, and the lists of languages and models.
import { complain, copyText, debounce, fill, find, make, markedText, say, toast } from "./dom.js";
import { percent } from "./wording.js";
import { ask, isFrozen, snapshot } from "./server.js";
import { change, emit, focused, isHeldElsewhere, known, modelInside, on, onChange, state } from "./state.js";
import { canRedo, canUndo, redo, remember, undo } from "./undo.js";
import { fillIn, focusSentence, isMany, keep, keptOf, numberOf, prepare, release, showKept, spoken, takeSentences, wholeTranslation } from "./sentences.js";
import { drawMirror, drawWords, showFocus, trustLine, watchPointer, watchWords } from "./words.js";
import { closeChoices, editSentence, isEditing, showChoices, startChoices } from "./choices.js";

const examples = {
  fr: "Jane visite l’Afrique en septembre.", en: "this cat is very large",
  de: "Guten Morgen, wie geht es Ihnen?", es: "Este gato es muy grande.",
};
const temporary = ["unreachable", "not_ready", "overloaded", "too_many_requests"];
const lost = "This text was held by another tab; it is not in the address.";
let request = null, translated = null, retry = null, failures = 0;

const languageOf = code => known.page.languages.find(language => language.code === code);
export const nameOf = code => languageOf(code)?.name ?? code;
const targetsOf = code => code ? languageOf(code)?.targets ?? []
  : [...new Set(known.page.languages.flatMap(language => language.targets))];
export const isOver = () => !isFrozen && [...state.text].length > (known.page.limits.characters || Infinity);
export const isCurrent = () => translated === state.text;

// Languages of a link that nobody here translates are said, not silently replaced.
function checkLanguages() {
  const sources = known.page.languages.filter(language => language.targets.length), wanted = { ...state };
  if (!state.from && !state.to && known.page.models.length) Object.assign(state, { from: known.page.models[0].source, to: known.page.models[0].target });
  if (state.from && state.from !== "auto" && !languageOf(state.from)?.targets.length) state.from = sources[0]?.code ?? "";
  const targets = targetsOf(state.from === "auto" ? "" : state.from);
  if (!targets.includes(state.to)) state.to = targets[0] ?? "";
  if (state.model && !fittingModels().some(model => model.name === state.model)) state.model = "";
  const missing = ["from", "to", "model"].filter(name => wanted[name] && wanted[name] !== state[name]).map(name => `“${wanted[name].slice(0, 40)}”`);
  const pair = `${nameOf(state.from === "auto" ? "Detected language" : state.from)} → ${nameOf(state.to)}`;
  remark(missing.length ? `${missing.join(" and ")} of this link ${missing.length > 1 ? "are" : "is"} not served here; shown is ${pair}.` : "");
}
function remark(text) {
  find("remark").textContent = text;
  find("remark").hidden = !text;
}
const sourceCode = () => state.from === "auto" ? "" : state.from;
const fittingModels = () => known.page.models.filter(model => (!sourceCode() || model.source === sourceCode()) && model.target === state.to);

// Lists that hold together: languages that can be translated, models that do it.
function fillLists() {
  const { languages, limits } = known.page, from = sourceCode(), targets = targetsOf(from);
  const sources = languages.filter(language => language.targets.length);
  if (!targets.includes(state.to)) state.to = targets[0] ?? "";
  fill(find("source"), [["auto", "Detect language"], ...sources.map(({ code, name }) => [code, name])], state.from);
  fill(find("target"), targets.map(code => [code, nameOf(code)]), state.to);
  const fitting = fittingModels();
  if (state.model && !fitting.some(model => model.name === state.model)) state.model = "";
  const took = state.model || !known.models.length ? "" : ` (${known.models.join(", then ")})`;
  fill(find("model"), [["", fitting.length === 1 && from ? fitting[0].name : `Automatic${took}`],
    ...(fitting.length > 1 || !from ? fitting.map(({ name, family }) => [name, `${name} · ${family}`]) : [])], state.model);
  const own = fitting[0]?.beam;
  const beams = [1, 2, 4, 8, 16, 32].filter(beam => beam <= (limits.beam ?? 16));
  fill(find("beam"), [[0, own ? `${own}, as trained` : "As trained"], ...beams.map(beam => [beam, beam])], state.beam);
  fill(find("alternatives"), Array.from({ length: 9 }, (_, count) => [count, count]), state.alternatives);
  find("text").lang = from || known.path[0] || "";
  find("translation").lang = state.to;
  const isBack = Boolean(from) && targetsOf(state.to).includes(from);
  find("swap").disabled = isFrozen || !(isBack || (!from && known.path.length && targetsOf(state.to).includes(known.path[0])));
  find("swap").title = find("swap").disabled ? "No model translates back" : "Swap the languages";
}

export const settings = () => {
  const asked = { source: sourceCode(), target: state.to, model: state.model, beam: state.beam || undefined, alternatives: state.alternatives };
  emit("asking", asked);
  return asked;
};
const setBusy = text => { find("busy").textContent = text; };

async function translateAll() {
  request?.abort();
  clearTimeout(retry);
  const text = state.text;
  if (text && find("remark").textContent === lost) remark("");
  if (!text.trim() || !state.to) { failures = 0; complain(null); showStale(false); return take({ sentences: [], path: [], notes: [], models: [] }, text); }
  if (isOver()) { failures = 0; complain(null); showStale(true); emit("typed"); retry = null; return setBusy("too long"); }
  request = new AbortController();
  const { signal } = request;
  setBusy("translating …");
  showStale(true);
  try {
    const answer = await ask("translate", { text, ...settings() }, signal);
    complain(null);
    failures = 0;
    showStale(false);
    take(answer, text);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.kind === "missing_key" || error.kind === "bad_key") emit("key");
    tryAgain(error);
  }
  if (!retry) setBusy("");
}
// What stands there is no translation of the present text.
function showStale(isStale) {
  find("desk").classList.toggle("stale", isStale);
  find("translation").classList.toggle("old", isStale);
}
function tryAgain(error) {
  retry = null;
  if (!temporary.includes(error.kind)) return complain(error);
  const seconds = Math.max(error.seconds ?? 0, Math.min(15, 2 ** failures++));
  complain(new Error(`${error.message} Trying again …`));
  setBusy("not translated yet");
  retry = setTimeout(() => { retry = null; translateAll(); }, 1000 * seconds);
}
const soon = debounce(220, translateAll);

function take(answer, text) {
  retry = null;
  setBusy("");
  translated = text;
  Object.assign(known, { path: answer.path, notes: answer.notes, models: answer.models ?? [], look: null, why: null });
  find("detected").textContent = state.from === "auto" && answer.sentences.length
    ? `${nameOf(answer.source)}${answer.confidence === null ? "" : `, ${percent(answer.confidence)} sure`}` : "";
  takeSentences(answer.sentences);
  if (!focused()?.source) state.sentence = Math.max(0, spoken()[0] ?? 0);
  settle();
  fillIn();
}

// Everything that hangs on the translation is drawn anew.
function settle() {
  fillLists();
  redraw();
  say(wholeTranslation());
  emit("translation");
  emit("weighing", Boolean(!isFrozen && modelInside() && spoken().length));
  weighWords();
}
function redraw() {
  if (isEditing()) return;
  for (const sentence of known.sentences) prepare(sentence);
  emit("prepared");
  drawMirror(isCurrent());
  drawWords();
  if (state.layout === "rows") emit("rows");
  drawOthers();
  emit("drawn");
}

// Words that the model was unsure of are underlined; asked for one after the other, those of the
// sentence looked at first, when nothing else is going on.
let weighing = 0;
const weighWords = debounce(500, async () => {
  const turn = ++weighing, goesOn = await weighAll();
  if (turn === weighing) emit("weighing", goesOn);
});
// Whether there is more to come.
async function weighAll() {
  const model = modelInside(), sentences = known.sentences;
  if (isFrozen || !model || !isCurrent()) return false;
  const wanted = sentences.filter(sentence => sentence.source && sentence.text);
  const at = Math.max(0, wanted.indexOf(focused()));
  for (const sentence of [...wanted.slice(at), ...wanted.slice(0, at)]) {
    const { text } = sentence, shown = keptOf(sentence) ?? sentence.machine;
    if (sentence.sure || shown.sure) continue;
    try {
      const { probabilities } = await ask("alignment", { model: model.name, source: sentence.source, translation: text });
      shown.sure = probabilities;
    } catch (error) {
      if (error.kind !== "too_long") {
        const isTemporary = temporary.includes(error.kind);
        if (isTemporary) setTimeout(weighWords, 5000);
        return isTemporary;
      }
      shown.sure = [];
    }
    if (sentences !== known.sentences) return true;
    if (sentence.text === text) sentence.sure = shown.sure;
    if (shown.sure.some(chance => chance < .5)) redrawSoon();
  }
  return false;
}
const redrawSoon = debounce(100, () => { if (!isEditing()) redraw(); });

function drawOthers() {
  find("notes").replaceChildren(...trustLine(), ...known.notes.map(note => make("p", { className: "faint" }, note)));
  const sentence = focused(), box = find("others");
  if (!sentence?.text) return isFrozen || state.text || box.replaceChildren();
  const list = [...new Set([sentence.machine.text, ...sentence.alternatives])].filter(text => text !== sentence.text);
  if (!list.length) return box.replaceChildren();
  box.replaceChildren(
    make("h2", {}, isMany() ? `Other translations of sentence ${numberOf(state.sentence)}` : "Other translations"),
    make("ol", { className: "others", lang: state.to }, ...list.map(text => make("li", {},
      make("button", { className: "other", dir: "auto", disabled: isFrozen, onclick: () => text === sentence.machine.text ? release(state.sentence) : keep(state.sentence, { text }) }, ...markedText(sentence.text, text))))));
}

function watchLists() {
  const set = (name, value) => { remember(); remark(""); change({ [name]: value }); fillLists(); translateAll(); };
  find("source").onchange = event => set("from", event.target.value);
  find("target").onchange = event => set("to", event.target.value);
  find("model").onchange = event => set("model", event.target.value);
  find("beam").onchange = event => set("beam", Number(event.target.value));
  find("alternatives").onchange = event => set("alternatives", Number(event.target.value));
  find("how").onsubmit = event => event.preventDefault();
  find("swap").onclick = swap;
  find("clear").onclick = clear;
  find("copy").onclick = () => copyText(wholeTranslation(), "Copied");
}
export function swap() {
  if (find("swap").disabled) return;
  const text = isCurrent() && wholeTranslation() || state.text, from = sourceCode() || known.path[0];
  remember();
  change({ from: state.to, to: from, model: "", sentence: 0 });
  putText(text);
  fillLists();
  find("text").focus();
}
export function clear() {
  if (!state.text) return;
  remember();
  putText("");
  toast("Text cleared.", { label: "Undo", call: undo });
  find("text").focus();
}
// Put another text onto the desk.
export function putText(text) {
  find("text").value = text;
  change({ text, said: {}, cut: 0 });
  drawMirror(false);
  translateAll();
}
// Another text with its languages and choices, as the history keeps it.
export function openText({ text, from, to, said }) {
  change({ from, to, model: "", sentence: 0, layout: state.layout });
  find("text").value = text;
  change({ text, said: { ...said }, cut: 0 });
  checkLanguages();
  fillLists();
  translateAll();
}
function typed() {
  remember(true);
  change({ text: find("text").value, cut: 0 });
  drawMirror(false);
  emit("typed");
  if (state.text.trim()) { showStale(true); soon(); } else translateAll();
}

function restore(changes) {
  const isOther = ["text", "from", "to", "model"].some(name => changes[name] !== state[name]);
  change(changes);
  find("text").value = state.text;
  if (isOther) { fillLists(); drawMirror(false); translateAll(); }
  else { showKept(); settle(); }
}

// Undo and redo, by keys everywhere but in fields with an undo of their own.
function watchUndo() {
  const isElsewhere = target => target.closest?.("input, [contenteditable], dialog, textarea:not(#text)");
  document.addEventListener("keydown", event => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || isElsewhere(event.target) || state.view === "training") return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    (key === "y" || event.shiftKey ? redo : undo)();
  });
  find("text").addEventListener("beforeinput", event => {
    const step = { historyUndo: undo, historyRedo: redo }[event.inputType];
    if (step) { event.preventDefault(); step(); }
  });
  const button = (label, sign, call) => make("button", { className: "quiet small", type: "button", "aria-label": label, title: label, onclick: call }, sign);
  const back = button("Undo (Ctrl+Z)", "↶", undo), forth = button("Redo (Ctrl+Shift+Z)", "↷", redo);
  const show = () => { back.disabled = !canUndo(); forth.disabled = !canRedo(); };
  find("bench").append(make("span", { className: "pair" }, back, forth));
  on("undo", show);
  show();
}

function watchChanges() {
  const box = find("text");
  on("put", putText);
  on("again", () => { if (state.text.trim()) translateAll(); });
  on("settle", settle);
  on("redraw", redraw);
  on("restore", restore);
  on("busy", setBusy);
  on("arrival", () => {
    if (!state.text) return;
    remember();
    toast("Another text is shown.", { label: "Undo", call: undo });
  });
  onChange(changes => {
    // All of another address, or a text that was not typed here.
    if (("said" in changes && "from" in changes) || ("text" in changes && changes.text !== box.value)) {
      box.value = state.text;
      checkLanguages();
      fillLists();
      drawMirror(false);
      translateAll();
    } else if ("sentence" in changes && known.sentences.every(each => each.prepared === each.text)) { showFocus(); drawOthers(); }
    if (changes.layout !== undefined) redraw();
  });
  on("lost", () => remark(lost));
  on("key-given", translateAll);
  addEventListener("online", () => { if (retry) translateAll(); });
}

function startFrozen() {
  for (const element of document.querySelectorAll("#desk select, #how select")) element.disabled = true;
  find("text").readOnly = true;
  find("how").hidden = find("clear").hidden = find("swap").hidden = true;
  translated = state.text;
  Object.assign(known, { path: snapshot.path ?? [], notes: snapshot.notes ?? [], kept: snapshot.kept ?? {} });
  // Only one sentence was looked into.
  onChange(changes => { if (changes.view && changes.view !== "translate") change({ sentence: snapshot.state.sentence ?? 0 }); });
  takeSentences(snapshot.sentences ?? []);
  settle();
}

export function startTranslate() {
  const box = find("text");
  box.value = state.text;
  box.oninput = typed;
  checkLanguages();
  fillLists();
  watchLists();
  watchPointer(isCurrent);
  for (const place of [find("translation"), find("rows")]) watchWords(place, showChoices, editSentence);
  startChoices(settings);
  watchChanges();
  if (isFrozen) return startFrozen();
  watchUndo();
  if (state.cut) toast("This link holds only the beginning of a text.");
  if (state.text) return translateAll();
  if (isHeldElsewhere()) return remark(lost);
  const example = examples[state.from];
  if (example) find("others").replaceChildren(make("p", { className: "faint" }, "Nothing to translate yet? ",
    make("button", { className: "link", lang: state.from, onclick: () => { remember(); putText(example); box.focus(); } }, example)));
  if (matchMedia("(hover: hover)").matches) box.focus();
}
