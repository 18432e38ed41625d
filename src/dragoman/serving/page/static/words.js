// Words of both sides on the screen: pointing at one shows its counterparts.
import { find, make, say } from "./dom.js";
import { percent } from "./wording.js";
import { isFrozen } from "./server.js";
import { focused, known, state } from "./state.js";
import { isMany, keptOf, numberOf, spoken } from "./sentences.js";

// How probable it is that a sentence is translated well: a small mark behind it, and in words.
const inWords = share => {
  const words = ["very probably flawed", "probably flawed", "uncertain", "probably good", "very probably good"];
  return `${Math.round(share * 100)} %, ${words[Math.min(4, Math.floor(share * 5))]}`;
};
const isTold = sentence => typeof sentence?.confidence === "number";
export function trustMark(sentence) {
  if (!isTold(sentence)) return [];
  const words = `confidence ${inWords(sentence.confidence)}`, filled = make("b");
  filled.style.inlineSize = `${sentence.confidence * 100}%`;
  return [make("span", { className: "trust", role: "img", "aria-label": words, title: words },
    make("i", {}, filled), `${Math.round(sentence.confidence * 100)} %`)];
}
export function trustLine() {
  const sentence = focused(), told = known.sentences.filter(each => each.source);
  if (!isTold(sentence)) return [];
  const mean = told.every(isTold) ? told.reduce((sum, each) => sum + each.confidence, 0) / told.length : null;
  const whole = told.length > 1 && mean !== null ? `; of all ${told.length} sentences about ${Math.round(mean * 100)} % are good` : "";
  return [make("p", { className: "faint" }, `Confidence${told.length > 1 ? ` in sentence ${numberOf(state.sentence)}` : ""}: ${inWords(sentence.confidence)}${whole}`)];
}

// What is doubtful at a word, of those doubts that nobody has looked at.
const doubtAt = (sentence, side, index) => sentence.marks.find(mark => !mark.isSettled && mark.side === side && mark.places.includes(index));

export function wordSpans(sentence, place, side) {
  const isTarget = side === "target", text = isTarget ? sentence.text : sentence.source, parts = [];
  let at = 0;
  sentence[`${side}Words`].forEach((word, index) => {
    parts.push(text.slice(at, word.begin));
    const doubt = doubtAt(sentence, side, index), chance = isTarget && sentence.sure?.length === sentence.targetWords.length ? sentence.sure[index] : 1;
    const names = ["word", chance < .5 && "unsure", doubt && "doubt"].filter(Boolean);
    const properties = { className: names.join(" "), "data-sentence": place, "data-word": index };
    if (isTarget) Object.assign(properties, { role: "button", tabIndex: -1, "aria-haspopup": "dialog" });
    const told = [chance < 1 ? `the model gives this word ${percent(chance)}` : "", doubt?.words].filter(Boolean).join("; ");
    if (told) properties.title = told;
    parts.push(make("span", properties, word.text));
    at = word.end;
  });
  return [...parts, text.slice(at)];
}
// What is doubtful of a sentence as a whole.
export function doubtMark(sentence) {
  const marks = sentence.marks.filter(mark => mark.isWhole && !mark.isSettled), words = marks.map(mark => mark.words).join("; ");
  if (!words) return [];
  const told = marks.find(mark => mark.kind === "source")?.words;
  return [make("span", { className: "doubtful", role: "img", "aria-label": `doubt: ${words}`, title: words }, told ? `⚠\ufe0e ${told}` : "⚠\ufe0e")];
}
// A sentence of the translation: marked if it is the one looked at, or says what somebody chose.
export function targetSpan(sentence, place) {
  const names = ["sentence", isMany() && place === state.sentence && "focused", keptOf(sentence) && "kept"].filter(Boolean);
  return make("span", { className: names.join(" "), "data-place": place }, ...wordSpans(sentence, place, "target"));
}

// What is shown of a side: in the two panes, or in rows.
export const isRows = () => state.layout === "rows" && state.view === "translate";
export const targetBox = () => find(isRows() ? "rows" : "translation");
export const wordOf = (index, word) => targetBox().querySelector(`[role=button][data-sentence="${index}"][data-word="${word}"]`);
export const sentenceBox = index => targetBox().querySelector(`.sentence[data-place="${index}"]`);

// Draw the translation anew; the keyboard stays at its word.
export function keepingFocus(box, draw) {
  const { sentence, word } = box.contains(document.activeElement) ? document.activeElement.closest(".word")?.dataset ?? {} : {};
  draw();
  const words = [...box.querySelectorAll("[role=button].word")], before = word && (wordOf(sentence, word) ?? sentenceBox(sentence)?.querySelector(".word"));
  const first = before ?? words[0];
  if (first) first.tabIndex = 0;
  if (before) before.focus();
}
export function drawMirror(isCurrent) {
  find("mirror").replaceChildren(...(isCurrent ? known.sentences.flatMap((sentence, place) =>
    [...wordSpans(sentence, place, "source"), sentence.space]) : [state.text]), "\u200b");
}
export function drawWords() {
  const box = find("translation");
  keepingFocus(box, () => box.replaceChildren(...known.sentences.flatMap((sentence, place) =>
    [targetSpan(sentence, place), ...trustMark(sentence), ...doubtMark(sentence), sentence.space])));
}
export function showFocus() {
  for (const element of document.querySelectorAll(".sentence[data-place], #rows tr[data-place]"))
    element.classList.toggle("focused", isMany() && Number(element.dataset.place) === state.sentence);
}

// Light up a word and its counterparts on both sides.
export function light(side, index, word) {
  for (const lit of document.querySelectorAll(".word.lit, .word.here")) lit.classList.remove("lit", "here");
  const sentence = known.sentences[index];
  if (!sentence?.links) return;
  const boxes = { source: find(isRows() ? "rows" : "mirror"), target: targetBox() };
  const kind = { source: ":not([role])", target: "[role]" };
  const mark = (where, at, name) => boxes[where].querySelector(`.word${kind[where]}[data-sentence="${index}"][data-word="${at}"]`)?.classList.add(name);
  mark(side, word, "here");
  const other = side === "source" ? "target" : "source", found = [];
  for (const link of sentence.links) {
    const [from, to] = side === "source" ? link : [link[1], link[0]];
    if (from !== word) continue;
    mark(other, to, "lit");
    found.push(sentence[`${other}Words`][to]?.text);
  }
  return found;
}
const wordAt = element => element?.closest?.(".word");
const lightElement = (side, element) => element
  ? light(side, Number(element.dataset.sentence), Number(element.dataset.word)) : light(side, -1, -1);

export function watchPointer(isCurrent) {
  for (const box of [find("translation"), find("rows")]) {
    box.onpointerover = event => {
      const word = wordAt(event.target);
      lightElement(word?.getAttribute("role") || !word ? "target" : "source", word);
    };
    box.onpointerleave = () => light("target", -1, -1);
  }
  find("stack").onpointermove = event => lightElement("source",
    document.elementsFromPoint(event.clientX, event.clientY).find(element => element.closest("#mirror .word")));
  find("stack").onpointerleave = () => light("source", -1, -1);
  document.addEventListener("selectionchange", () => {
    if (document.activeElement !== find("text") || !isCurrent()) return;
    let at = find("text").selectionStart;
    for (const [index, sentence] of known.sentences.entries()) {
      const word = sentence.sourceWords?.findIndex(each => each.begin <= at && at <= each.end) ?? -1;
      if (word >= 0) return light("source", index, word);
      at -= sentence.source.length + sentence.space.length;
      if (at < 0) break;
    }
    light("source", -1, -1);
  });
}

// Words of the translation are reached by arrow keys; Enter opens one, F2 edits its sentence.
export function watchWords(box, open, edit) {
  const isEditing = event => event.target.closest("[contenteditable]");
  box.addEventListener("click", event => {
    const word = wordAt(event.target);
    if (word?.getAttribute("role") && !isEditing(event) && !getSelection().toString()) open(Number(word.dataset.sentence), Number(word.dataset.word));
  });
  box.addEventListener("dblclick", event => {
    const word = wordAt(event.target);
    if (word?.getAttribute("role") && !isEditing(event) && !isFrozen) edit(Number(word.dataset.sentence), Number(word.dataset.word));
  });
  box.addEventListener("focusin", event => {
    const word = wordAt(event.target);
    if (!word?.getAttribute("role")) return;
    const found = lightElement("target", word);
    if (word.matches(":focus-visible") && found?.length) say(`from ${found.join(", ")}${word.title ? `; ${word.title}` : ""}`);
  });
  box.addEventListener("keydown", event => {
    const word = wordAt(event.target), words = [...box.querySelectorAll("[role=button].word")], at = words.indexOf(word);
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    const { sentence, word: index } = word.dataset;
    const isRight = getComputedStyle(word).direction === "rtl" ? -1 : 1;
    const next = { ArrowRight: at + isRight, ArrowLeft: at - isRight, Home: 0, End: words.length - 1 }[event.key];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const beside = step && spoken()[spoken().indexOf(Number(sentence)) + step];
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); open(Number(sentence), Number(index)); }
    else if (event.key === "F2" && !event.shiftKey) { event.preventDefault(); edit(Number(sentence)); }
    else if (next !== undefined && words[next]) { event.preventDefault(); goTo(words[next]); }
    else if (beside !== undefined && wordOf(beside, 0)) { event.preventDefault(); goTo(wordOf(beside, 0)); }
  });
}
export function goTo(word) {
  for (const other of targetBox().querySelectorAll(".word[tabindex='0']")) other.tabIndex = -1;
  word.tabIndex = 0;
  word.focus();
}
