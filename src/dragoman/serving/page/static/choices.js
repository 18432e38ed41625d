// What else could stand at a word: the box that opens there, and writing into the sentence itself.
import { find, make, say } from "./dom.js";
import { percent } from "./wording.js";
import { ask, isFrozen } from "./server.js";
import { emit, known, modelInside, on, onChange } from "./state.js";
import { continueFrom, focusSentence, keep, keptOf, lock, numberOf, release } from "./sentences.js";
import { goTo, sentenceBox, targetBox, wordOf } from "./words.js";

let opened = null, settingsNow = () => ({});
const box = () => find("choices");
const wordBox = () => opened && (wordOf(opened.index, opened.word) ?? sentenceBox(opened.index)?.querySelector(".word"));

export async function showChoices(index, word) {
  focusSentence(index);
  if (isFrozen) return;
  const sentence = known.sentences[index], model = modelInside(), mine = { index, word };
  opened = mine;
  const prefix = sentence.text.slice(0, sentence.targetWords[word].begin).trimEnd();
  const goOn = text => { closeChoices(); continueFrom(index, text, settingsNow()); };
  const heading = make("p", { className: "faint" }, prefix ? "After " : "At the beginning", prefix ? make("q", { dir: "auto" }, prefix.split(/\s+/).slice(-3).join(" ")) : "", " the model would say");
  const list = make("div", { className: "list" }, make("p", { className: "faint" }, model ? "…" : "Translated in two steps: the choices of one model are not known. Your own words are taken."));
  const own = ownWord(prefix, goOn);
  box().replaceChildren(...(model ? [heading] : []), list, own, actions(index, word));
  box().hidden = false;
  placeBox();
  if (!model) return own.querySelector("input").focus();
  try {
    const { choices } = await ask("choices", { model: model.name, source: sentence.source, prefix });
    if (opened !== mine) return;
    const now = sentence.targetWords[word].text;
    list.replaceChildren(...choices.map(choice => choiceButton(choice, now, index, goOn)));
    placeBox();
    if (!box().contains(document.activeElement)) (list.querySelector("[aria-current]") ?? list.querySelector("button"))?.focus();
  } catch (error) {
    if (opened === mine) list.replaceChildren(make("p", {}, error.message));
  }
}
function choiceButton(choice, now, index, goOn) {
  const bar = make("i", { className: "bar" }), isEnd = !choice.word;
  bar.style.inlineSize = `${Math.max(1, choice.probability * 100)}%`;
  const rest = choice.translation.slice(choice.prefix.length);
  return make("button", { className: "choice", "aria-current": choice.word === now ? "true" : null, dir: "auto", title: choice.translation,
    onclick: () => { if (!isEnd) return goOn(choice.prefix); closeChoices(); keep(index, { text: choice.prefix }); } },
  bar, make("b", {}, isEnd ? "⟨end⟩" : choice.word), make("span", { className: "faint rest" }, rest), make("span", { className: "chance" }, percent(choice.probability)));
}
function ownWord(prefix, goOn) {
  const input = make("input", { placeholder: "or your own words", "aria-label": "Your own words", dir: "auto" });
  const form = make("form", { className: "own" }, input, make("button", { className: "small" }, "Say it"));
  form.onsubmit = event => { event.preventDefault(); if (input.value.trim()) goOn(`${prefix} ${input.value.trim()}`.trim()); };
  return form;
}
function actions(index, word) {
  const sentence = known.sentences[index], kept = keptOf(sentence);
  const button = (label, call) => make("button", { className: "small", type: "button", onclick: call }, label);
  const row = make("div", { className: "actions" },
    button("Edit sentence", () => editSentence(index, word)),
    kept ? button("Back to the model’s", () => { closeChoices(); release(index); }) : button("Keep as it is", () => { closeChoices(); lock(index); }));
  emit("actions", row, index, word);
  return row;
}
function placeBox() {
  const target = wordBox()?.getBoundingClientRect(), width = box().offsetWidth, room = document.documentElement.clientWidth;
  if (!target) return closeChoices(false);
  box().style.left = `${Math.max(8, Math.min(target.left, room - width - 8)) + scrollX}px`;
  // Below the word, or above it where only there is room; else the page scrolls to show it.
  const height = box().offsetHeight, top = find("toolbar").getBoundingClientRect().bottom;
  const isAbove = target.bottom + 6 + height > innerHeight && target.top - 6 - height > Math.max(0, top);
  box().style.top = `${(isAbove ? target.top - 6 - height : target.bottom + 6) + scrollY}px`;
  if (!isAbove) box().scrollIntoView({ block: "nearest", inline: "nearest" });
}
export function closeChoices(keepsFocus = true) {
  if (box().hidden) return;
  box().hidden = true;
  if (keepsFocus && wordBox()) goTo(wordBox());
  opened = null;
}

// Write into the translation of a sentence, at a word or over all of it; Enter takes it, Escape does not.
export function editSentence(index, word = null) {
  const sentence = known.sentences[index], place = sentenceBox(index);
  if (!place || isFrozen) return;
  closeChoices(false);
  focusSentence(index);
  const field = sentenceBox(index), text = sentence.text;
  field.textContent = text;
  field.contentEditable = "plaintext-only";
  for (const [name, value] of [["role", "textbox"], ["aria-label", `Translation of sentence ${numberOf(index)}. Enter takes it, Escape leaves it as it was.`]]) field.setAttribute(name, value);
  field.classList.add("editing");
  field.focus();
  const end = sentence.targetWords[word]?.end ?? text.length;
  if (field.firstChild) getSelection().setBaseAndExtent(field.firstChild, word === null ? 0 : end, field.firstChild, end);
  let isDone = false;
  const finish = isTaken => {
    if (isDone) return;
    isDone = true;
    const written = field.textContent.replace(/\s+/g, " ").trim(), hadFocus = document.activeElement === field;
    field.classList.remove("editing");
    if (isTaken && written && written !== text) keep(index, { text: written }); else emit("redraw");
    if (hadFocus || document.activeElement === document.body) { const back = wordOf(index, 0); if (back) goTo(back); }
    if (isTaken && written !== text) say(`Sentence ${numberOf(index)} taken`);
  };
  field.onblur = () => finish(true);
  field.onkeydown = event => {
    event.stopPropagation();
    if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); finish(true); }
    else if (event.key === "Escape") { event.preventDefault(); finish(false); }
  };
}
export const isEditing = () => Boolean(targetBox().querySelector(".editing"));

export function startChoices(settings) {
  settingsNow = settings;
  on("close-choices", closeChoices);
  const choices = box();
  choices.onkeydown = event => {
    const buttons = [...choices.querySelectorAll("button, input")], at = buttons.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (event.key === "Escape") { event.preventDefault(); closeChoices(); }
    else if (event.key === "Tab" && at === (event.shiftKey ? 0 : buttons.length - 1)) closeChoices();
    else if (next !== undefined) { event.preventDefault(); buttons.at(next % buttons.length)?.focus(); }
  };
  choices.addEventListener("focusout", event => { if (event.relatedTarget && !choices.contains(event.relatedTarget)) closeChoices(false); });
  document.addEventListener("pointerdown", event => { if (!choices.contains(event.target)) closeChoices(false); });
  addEventListener("resize", () => { if (!choices.hidden) placeBox(); });
  for (const pane of [find("translation"), find("stack")]) pane.addEventListener("scroll", () => closeChoices(false));
  onChange(changes => { if ("view" in changes || "layout" in changes) closeChoices(false); });
}
