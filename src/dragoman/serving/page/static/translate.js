// The desk: a text, its translation word by word, and what else could stand there.
import { complain, debounce, fill, find, make, markedText, say, toast, wordsOf } from "./dom.js";
import { percent } from "./wording.js";
import { ask, isFrozen, snapshot } from "./server.js";
import { change, emit, focused, known, modelInside, on, onChange, state } from "./state.js";

const examples = {
  fr: "Jane visite l’Afrique en septembre.", en: "this cat is very large",
  de: "Guten Morgen, wie geht es Ihnen?", es: "Este gato es muy grande.",
};
let request = null, translated = null;

const languageOf = code => known.page.languages.find(language => language.code === code);
const nameOf = code => languageOf(code)?.name ?? code;
const targetsOf = code => code ? languageOf(code)?.targets ?? []
  : [...new Set(known.page.languages.flatMap(language => language.targets))];

// Lists that hold together: languages that can be translated, models that do it.
function fillLists() {
  const { languages, models, limits } = known.page;
  const sources = languages.filter(language => language.targets.length);
  if (!state.from && !state.to && models.length) Object.assign(state, { from: models[0].source, to: models[0].target });
  if (state.from && state.from !== "auto" && !languageOf(state.from)) state.from = sources[0]?.code ?? "";
  const from = state.from === "auto" ? "" : state.from, targets = targetsOf(from);
  if (!targets.includes(state.to)) state.to = targets[0] ?? "";
  fill(find("source"), [["auto", "Detect language"], ...sources.map(({ code, name }) => [code, name])], state.from);
  fill(find("target"), targets.map(code => [code, nameOf(code)]), state.to);
  const fitting = models.filter(model => (!from || model.source === from) && model.target === state.to);
  if (state.model && !fitting.some(model => model.name === state.model)) state.model = "";
  fill(find("model"), [["", fitting.length === 1 ? fitting[0].name : "Automatic"],
    ...(fitting.length > 1 ? fitting.map(({ name, family }) => [name, `${name} · ${family}`]) : [])], state.model);
  const own = fitting[0]?.beam;
  const beams = [1, 2, 4, 8, 16, 32].filter(beam => beam <= (limits.beam ?? 16));
  fill(find("beam"), [[0, own ? `${own}, as trained` : "As trained"], ...beams.map(beam => [beam, beam])], state.beam);
  fill(find("alternatives"), Array.from({ length: 9 }, (_, count) => [count, count]), state.alternatives);
  find("text").lang = from;
  find("translation").lang = state.to;
  const isBack = Boolean(from) && targetsOf(state.to).includes(from);
  find("swap").disabled = isFrozen || !(isBack || (!from && known.path.length && targetsOf(state.to).includes(known.path[0])));
  find("swap").title = find("swap").disabled ? "No model translates back" : "Swap the languages";
}

const settings = () => ({
  source: state.from === "auto" ? "" : state.from, target: state.to, model: state.model,
  beam: state.beam || undefined, alternatives: state.alternatives,
});

async function translateAll() {
  request?.abort();
  const text = state.text;
  if (!text.trim() || !state.to) return take({ sentences: [], path: [], notes: [] }, text);
  request = new AbortController();
  const { signal } = request;
  find("busy").textContent = "…";
  find("translation").classList.add("old");
  try {
    const answer = await ask("translate", { text, ...settings() }, signal);
    complain(null);
    await take(answer, text);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (error.kind === "missing_key" || error.kind === "bad_key") emit("key");
    complain(error);
  }
  find("busy").textContent = "";
  find("translation").classList.remove("old");
}
const soon = debounce(220, translateAll);

async function take(answer, text) {
  translated = text;
  Object.assign(known, { sentences: answer.sentences, path: answer.path, notes: answer.notes, look: null, why: null });
  find("detected").textContent = state.from === "auto" && answer.sentences.length
    ? `${nameOf(answer.source)}${answer.confidence === null ? "" : `, ${percent(answer.confidence)} sure`}` : "";
  const spoken = state.say, place = state.sentence;
  if (!known.sentences[place]?.source)
    state.sentence = Math.max(0, known.sentences.findIndex(sentence => sentence.source));
  const wanted = focused();
  if (spoken && wanted && place === state.sentence && wanted.text !== spoken) await adopt(state.sentence, spoken);
  else settle();
}

// Everything that hangs on the translation is drawn anew.
function settle() {
  for (const sentence of known.sentences) prepare(sentence);
  fillLists();
  drawMirror();
  drawWords();
  drawOthers();
  say(known.sentences.map(sentence => sentence.text).join(" "));
  emit("translation");
  weighWords();
}

// Words of both sides, and which belong together.
function prepare(sentence) {
  if (sentence.prepared === sentence.text) return;
  sentence.prepared = sentence.text;
  sentence.sourceWords = wordsOf(sentence.source, state.from);
  sentence.targetWords = wordsOf(sentence.text, state.to);
  const touches = (word, begin, end) => word.begin < end && begin < word.end;
  sentence.links = sentence.alignment.flatMap(([begin, end, first, last]) =>
    sentence.sourceWords.flatMap((word, one) => touches(word, begin, end)
      ? sentence.targetWords.flatMap((other, two) => touches(other, first, last) ? [[one, two]] : []) : []));
}

// Words that the model was unsure of are underlined; asked for when nothing else is going on.
const weighWords = debounce(500, async () => {
  const model = modelInside(), texts = known.sentences;
  if (isFrozen || !model || translated !== state.text) return;
  for (const [place, sentence] of texts.slice(0, 12).entries()) {
    if (!sentence.text || sentence.sure) continue;
    try {
      const pair = { model: model.name, source: sentence.source, translation: sentence.text };
      const { probabilities } = await ask("alignment", pair);
      if (texts !== known.sentences) return;
      sentence.sure = probabilities;
      if (probabilities.length === sentence.targetWords.length) markUnsure(place, probabilities);
    } catch { return; }
  }
});
function markUnsure(place, probabilities) {
  for (const element of find("translation").querySelectorAll(`[data-sentence="${place}"]`)) {
    const chance = probabilities[element.dataset.word];
    element.classList.toggle("unsure", chance < .5);
    element.title = `the model gives this word ${percent(chance)}`;
  }
}

// How probable it is that a sentence is translated well: a small mark behind it, and in words.
const inWords = share => {
  const words = ["very probably flawed", "probably flawed", "uncertain", "probably good", "very probably good"];
  return `${Math.round(share * 100)} %, ${words[Math.min(4, Math.floor(share * 5))]}`;
};
const isTold = sentence => typeof sentence?.confidence === "number";
function trustMark(sentence) {
  if (!isTold(sentence)) return [];
  const words = `confidence ${inWords(sentence.confidence)}`, filled = make("b");
  filled.style.inlineSize = `${sentence.confidence * 100}%`;
  return [make("span", { className: "trust", role: "img", "aria-label": words, title: words },
    make("i", {}, filled), `${Math.round(sentence.confidence * 100)} %`)];
}
function trustLine() {
  const sentence = focused(), told = known.sentences.filter(each => each.source);
  if (!isTold(sentence)) return [];
  const mean = told.every(isTold) ? told.reduce((sum, each) => sum + each.confidence, 0) / told.length : null;
  const whole = told.length > 1 && mean !== null ? `; of all ${told.length} sentences about ${Math.round(mean * 100)} % are good` : "";
  return [make("p", { className: "faint" }, `Confidence${told.length > 1 ? ` in sentence ${place()}` : ""}: ${inWords(sentence.confidence)}${whole}`)];
}

function wordSpans(sentence, place, words, text, isButton) {
  const parts = [];
  let at = 0;
  words.forEach((word, index) => {
    parts.push(text.slice(at, word.begin));
    const properties = { className: "word", "data-sentence": place, "data-word": index };
    if (isButton) Object.assign(properties, { role: "button", tabIndex: -1, "aria-haspopup": "dialog" });
    parts.push(make("span", properties, word.text));
    at = word.end;
  });
  return [...parts, text.slice(at)];
}

function drawMirror() {
  const isCurrent = translated === state.text;
  find("mirror").replaceChildren(...(isCurrent ? known.sentences.flatMap((sentence, place) =>
    [...wordSpans(sentence, place, sentence.sourceWords, sentence.source, false), sentence.space]) : [state.text]), "\u200b");
}

function drawWords() {
  const box = find("translation"), hadFocus = box.contains(document.activeElement);
  const many = known.sentences.filter(sentence => sentence.source).length > 1;
  box.replaceChildren(...known.sentences.flatMap((sentence, place) => [
    make("span", { className: many && place === state.sentence ? "sentence focused" : "sentence" },
      ...wordSpans(sentence, place, sentence.targetWords, sentence.text, true)), ...trustMark(sentence), sentence.space]));
  const first = box.querySelector(".word");
  if (first) first.tabIndex = 0;
  if (hadFocus) first?.focus();
  known.sentences.forEach((sentence, place) => { if (sentence.sure) markUnsure(place, sentence.sure); });
}

function drawOthers() {
  find("notes").replaceChildren(...trustLine(), ...known.notes.map(note => make("p", { className: "faint" }, note)));
  const sentence = focused(), box = find("others");
  if (!sentence?.alternatives.length) return box.replaceChildren();
  const many = known.sentences.filter(each => each.source).length > 1;
  const best = sentence.best ?? sentence.text;
  const list = [best, ...sentence.alternatives].filter(text => text !== sentence.text);
  box.replaceChildren(
    make("h2", {}, many ? `Other translations of sentence ${place()}` : "Other translations"),
    make("ol", { className: "others", lang: state.to }, ...list.map(text => make("li", {},
      make("button", { className: "other", dir: "auto", disabled: isFrozen, onclick: () => adopt(state.sentence, text) }, ...markedText(sentence.text, text))))));
}
const place = () => known.sentences.slice(0, state.sentence + 1).filter(sentence => sentence.source).length;

function keepBest(sentence) {
  if (sentence.best === undefined) Object.assign(sentence, { best: sentence.text, bestConfidence: sentence.confidence });
}

// Take another translation of a sentence, and ask which words belong together now.
async function adopt(index, text) {
  const sentence = known.sentences[index], model = modelInside();
  keepBest(sentence);
  const confidence = text === sentence.best ? sentence.bestConfidence : null;
  Object.assign(sentence, { text, confidence, alignment: [], sure: null });
  Object.assign(known, { look: null, why: null });
  change({ say: text === sentence.best ? "" : text, sentence: index });
  if (model) {
    try {
      const found = await ask("alignment", { model: model.name, source: sentence.source, translation: text });
      Object.assign(sentence, { alignment: found.alignment, sure: found.probabilities, prepared: null });
    } catch (error) { complain(error); }
  }
  settle();
}

// Light up a word and its counterparts on both sides.
function light(side, sentence, word) {
  for (const lit of document.querySelectorAll(".word.lit, .word.here")) lit.classList.remove("lit", "here");
  const links = known.sentences[sentence]?.links;
  if (!links) return;
  const boxes = { source: find("mirror"), target: find("translation") };
  const mark = (where, index, name) => boxes[where].querySelector(`[data-sentence="${sentence}"][data-word="${index}"]`)?.classList.add(name);
  mark(side, word, "here");
  const found = [];
  for (const [one, other] of links) {
    if ((side === "source" ? one : other) !== word) continue;
    const counterpart = side === "source" ? other : one;
    mark(side === "source" ? "target" : "source", counterpart, "lit");
    found.push((side === "source" ? known.sentences[sentence].targetWords : known.sentences[sentence].sourceWords)[counterpart]?.text);
  }
  return found;
}
const wordAt = element => element?.closest?.(".word");
const lightElement = (side, element) => element
  ? light(side, Number(element.dataset.sentence), Number(element.dataset.word)) : light(side, -1, -1);

function watchPointer() {
  const box = find("translation");
  box.onpointerover = event => lightElement("target", wordAt(event.target));
  box.onpointerleave = () => light("target", -1, -1);
  find("stack").onpointermove = event => {
    const under = document.elementsFromPoint(event.clientX, event.clientY).find(element => element.closest("#mirror .word"));
    lightElement("source", under);
  };
  find("stack").onpointerleave = () => light("source", -1, -1);
  document.addEventListener("selectionchange", () => {
    if (document.activeElement !== find("text") || translated !== state.text) return;
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

function watchWords() {
  const box = find("translation");
  const open = element => showChoices(element, Number(element.dataset.sentence), Number(element.dataset.word));
  box.onclick = event => { const word = wordAt(event.target); if (word && !getSelection().toString()) open(word); };
  box.addEventListener("focusin", event => {
    const word = wordAt(event.target);
    if (!word) return;
    const found = lightElement("target", word);
    if (word.matches(":focus-visible") && found?.length) say(`from ${found.join(", ")}`);
  });
  box.onkeydown = event => {
    const word = wordAt(event.target), words = [...box.querySelectorAll(".word")], at = words.indexOf(word);
    const isRight = getComputedStyle(box).direction === "rtl" ? -1 : 1;
    const next = { ArrowRight: at + isRight, ArrowLeft: at - isRight, Home: 0, End: words.length - 1 }[event.key];
    if (word && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); open(word); }
    else if (word && next !== undefined && words[next]) {
      event.preventDefault();
      word.tabIndex = -1;
      words[next].tabIndex = 0;
      words[next].focus();
    }
  };
}

// What the model would rather have said at a word.
async function showChoices(element, index, word) {
  const sentence = known.sentences[index], model = modelInside(), box = find("choices");
  if (index !== state.sentence) { change({ sentence: index, say: "" }); known.look = known.why = null; drawOthers(); emit("translation"); }
  if (isFrozen) return;
  if (!model) return toast(known.path.length > 2 ? "Translated in two steps: choose one of the models to look inside." : "Choose a model to look inside.");
  const prefix = sentence.text.slice(0, sentence.targetWords[word].begin).trimEnd();
  const heading = make("p", { className: "faint" }, prefix ? "After " : "At the beginning", prefix ? make("q", { dir: "auto" }, prefix.split(/\s+/).slice(-3).join(" ")) : "", " the model would say");
  const list = make("div", { className: "list" }, make("p", { className: "faint" }, "…"));
  box.replaceChildren(heading, list);
  box.hidden = false;
  box.opener = element;
  placeBox(box, element);
  try {
    const { choices } = await ask("choices", { model: model.name, source: sentence.source, prefix });
    const goOn = text => continueFrom(index, text);
    const now = sentence.targetWords[word].text;
    list.replaceChildren(...choices.map(choice => choiceButton(choice, now, prefix, goOn)), ownWord(prefix, goOn));
    placeBox(box, element);
    (list.querySelector("[aria-current]") ?? list.querySelector("button"))?.focus();
  } catch (error) {
    list.replaceChildren(make("p", {}, error.message));
  }
}
function choiceButton(choice, now, prefix, goOn) {
  const isNow = choice.word === now;
  const bar = make("i", { className: "bar" });
  bar.style.inlineSize = `${Math.max(1, choice.probability * 100)}%`;
  const rest = choice.translation.slice(choice.prefix.length);
  const isEnd = !choice.word;
  return make("button", { className: "choice", "aria-current": isNow ? "true" : null, dir: "auto", title: choice.translation,
    onclick: () => isEnd ? closeChoices() || adopt(state.sentence, choice.prefix) : goOn(choice.prefix) },
  bar, make("b", {}, isEnd ? "⟨end⟩" : choice.word), make("span", { className: "faint rest" }, rest), make("span", { className: "chance" }, percent(choice.probability)));
}
function ownWord(prefix, goOn) {
  const input = make("input", { placeholder: "or your own words", "aria-label": "Your own words", dir: "auto" });
  const form = make("form", { className: "own" }, input, make("button", { className: "small" }, "Say it"));
  form.onsubmit = event => { event.preventDefault(); if (input.value.trim()) goOn(`${prefix} ${input.value.trim()}`.trim()); };
  return form;
}
function placeBox(box, element) {
  const target = element.getBoundingClientRect(), width = box.offsetWidth, room = document.documentElement.clientWidth;
  box.style.left = `${Math.max(8, Math.min(target.left, room - width - 8)) + scrollX}px`;
  box.style.top = `${target.bottom + 6 + scrollY}px`;
}
function closeChoices(keepsFocus = true) {
  const box = find("choices");
  if (box.hidden) return;
  box.hidden = true;
  if (keepsFocus) box.opener?.focus();
}

// Translate the rest of a sentence anew after a beginning.
async function continueFrom(index, prefix) {
  closeChoices();
  const sentence = known.sentences[index];
  find("busy").textContent = "…";
  try {
    const { sentences } = await ask("translate", { text: sentence.source, prefix, ...settings() });
    const [found] = sentences;
    keepBest(sentence);
    const { text, confidence, alignment, alternatives } = found;
    Object.assign(sentence, { text, confidence, alignment, alternatives, sure: null });
    Object.assign(known, { look: null, why: null });
    change({ say: found.text === sentence.best ? "" : found.text, sentence: index });
    complain(null);
    settle();
  } catch (error) { complain(error); }
  find("busy").textContent = "";
}

function watchLists() {
  const set = (name, value) => { change({ [name]: value, say: "" }); fillLists(); translateAll(); };
  find("source").onchange = event => set("from", event.target.value);
  find("target").onchange = event => set("to", event.target.value);
  find("model").onchange = event => set("model", event.target.value);
  find("beam").onchange = event => set("beam", Number(event.target.value));
  find("alternatives").onchange = event => set("alternatives", Number(event.target.value));
  find("how").onsubmit = event => event.preventDefault();
  find("swap").onclick = () => {
    const text = known.sentences.map(sentence => sentence.text + sentence.space).join("") || state.text;
    const from = state.from === "auto" ? known.path[0] : state.from;
    change({ from: state.to, to: from, model: "", text, say: "", sentence: 0 });
    find("text").value = text;
    fillLists();
    translateAll();
    find("text").focus();
  };
  find("clear").onclick = () => { write(""); find("text").focus(); };
  find("copy").onclick = async () => {
    await navigator.clipboard.writeText(known.sentences.map(sentence => sentence.text + sentence.space).join(""));
    toast("Copied");
  };
}

function write(text) {
  find("text").value = text;
  change({ text, say: "" });
  drawMirror();
  if (text.trim()) soon(); else translateAll();
}

export function startTranslate() {
  const box = find("text");
  box.value = state.text;
  box.oninput = () => write(box.value);
  fillLists();
  watchLists();
  watchPointer();
  watchWords();
  const choices = find("choices");
  choices.onkeydown = event => {
    const buttons = [...choices.querySelectorAll("button, input")], at = buttons.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (event.key === "Escape") closeChoices();
    else if (next !== undefined) { event.preventDefault(); buttons.at(next % buttons.length)?.focus(); }
  };
  document.addEventListener("pointerdown", event => { if (!choices.contains(event.target)) closeChoices(false); });
  onChange(changes => {
    if ("text" in changes && changes.text !== box.value) { box.value = changes.text; fillLists(); translateAll(); }
    else if ("sentence" in changes && known.sentences.every(each => each.prepared === each.text)) { drawWords(); drawOthers(); }
  });
  on("key-given", translateAll);
  if (isFrozen) {
    for (const element of [box, ...document.querySelectorAll("#desk select, #how select")]) element.disabled = element !== box;
    box.readOnly = true;
    find("how").hidden = find("clear").hidden = find("swap").hidden = true;
    translated = state.text;
    Object.assign(known, { sentences: snapshot.sentences ?? [], path: snapshot.path ?? [], notes: snapshot.notes ?? [] });
    return settle();
  }
  if (state.text) return translateAll();
  const example = examples[state.from];
  if (example) find("others").replaceChildren(make("p", { className: "faint" }, "Nothing to translate yet? ",
    make("button", { className: "link", lang: state.from, onclick: () => { write(example); box.focus(); } }, example)));
  if (matchMedia("(hover: hover)").matches) box.focus();
}
