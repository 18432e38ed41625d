// Everything by keys, and a sheet of them.
import { find, make, recall, retain, tick } from "./dom.js";
import { change, known, state } from "./state.js";
import { focusSentence, keptOf, lock, release, spoken } from "./sentences.js";
import { goTo, isRows, wordOf } from "./words.js";
import { editSentence } from "./choices.js";
import { editSource } from "./rows.js";
import { nextDoubt, settleDoubt } from "./doubts.js";
import { addTool } from "./bench.js";
import { swap } from "./translate.js";

const press = id => find(id).click();
const open = id => document.querySelector(`[aria-controls="${id}"]`)?.click();
// The sentence at whose word one is, else the one looked at.
const here = () => Number(document.activeElement?.closest?.(".word")?.dataset.sentence ?? state.sentence);
const first = () => wordOf(state.sentence, 0) ?? wordOf(spoken()[0], 0);
function keepOrNot(place) {
  const sentence = known.sentences[place];
  if (sentence?.source) (keptOf(sentence) ? release : lock)(place);
}
function step(by) {
  const all = spoken(), next = all[all.indexOf(here()) + by];
  if (next === undefined) return;
  focusSentence(next);
  const word = wordOf(next, 0);
  if (word) goTo(word);
}
// The keyboard stays at its word.
function turn() {
  const { sentence, word } = document.activeElement?.closest?.("[role=button].word")?.dataset ?? {};
  change({ layout: isRows() ? "" : "rows" });
  const there = word && wordOf(sentence, word);
  if (there) goTo(there);
}
// With a modifier or a function key they work everywhere; single letters outside of fields only.
const everywhere = [
  ["Ctrl+Enter", "From the text to its translation, and back", () => document.activeElement === find("text") ? first() && goTo(first()) : isRows() ? change({ layout: "" }) : find("text").focus()],
  ["F8", "Next doubt; with Shift the one before", event => nextDoubt(event.shiftKey ? -1 : 1)],
  ["F2", "Write into the sentence’s translation; with Shift into its text, in rows", event => event.shiftKey ? editSource(here()) : editSentence(here())],
  ["Alt+ArrowDown", "Next sentence", () => step(1)],
  ["Alt+ArrowUp", "Sentence before", () => step(-1)],
];
const letters = [
  ["?", "This sheet", () => sheet.showModal()],
  ["e", "To the text", () => { change({ layout: "" }); find("text").focus(); }],
  ["t", "To the translation", () => first() && goTo(first())],
  ["k", "Keep the sentence’s translation, or go back to the model’s", () => keepOrNot(here())],
  ["c", "Copy the translation", () => press("copy")],
  ["s", "Swap the languages", swap],
  ["r", "Rows, or the whole text", turn],
  ["y", "It is right: settle the doubt that is shown", settleDoubt],
  ["g", "Glossary", () => open("glossary")],
  ["h", "History", () => open("past")],
  ["f", "Files", () => open("files")],
  ["v", "Compare", () => open("compared")],
  ["x", "Export", () => press("export")],
  ["l", "Copy a link", () => press("share")],
];
const others = [
  ["Ctrl+Z", "Undo; with Shift redo"],
  ["Arrow keys", "From word to word, from sentence to sentence, from choice to choice"],
  ["Enter", "At a word: what else could stand there"],
  ["Escape", "Close what is open"],
];
let sheet, hasLetters = recall("letters", true);

function makeSheet() {
  const line = ([key, words]) => [make("dt", {}, ...key.split("+").flatMap((part, place) => [place ? "+" : "", make("kbd", {}, part.replace(/^Arrow(?=[A-Z])/, ""))])), make("dd", {}, words)];
  sheet = make("dialog", { id: "keys", "aria-labelledby": "keys-title" }, make("h2", { id: "keys-title" }, "Keys"),
    make("dl", {}, ...[...others, ...everywhere, ...letters].flatMap(line)),
    tick("single letters work outside of fields", hasLetters, isOn => { hasLetters = isOn; retain("letters", isOn); }),
    make("p", { className: "actions" }, make("button", { type: "button", onclick: () => sheet.close() }, "Close")));
  document.body.append(sheet);
}
export function startKeys() {
  makeSheet();
  addTool("Keys", "All keys (?)", () => sheet.showModal());
  document.addEventListener("keydown", event => {
    if (event.defaultPrevented || sheet.open || state.view !== "translate" && event.key !== "?") return;
    const name = [(event.ctrlKey || event.metaKey) && "Ctrl", event.altKey && "Alt", event.key].filter(Boolean).join("+");
    const isField = event.target.closest?.("input:not([type=radio]):not([type=checkbox]), textarea, select, [contenteditable], dialog");
    const found = everywhere.find(([key]) => key === name) ?? (hasLetters && !isField && !find("choices").contains(event.target) && letters.find(([key]) => key === name));
    if (!found) return;
    event.preventDefault();
    found[2](event);
  });
}
