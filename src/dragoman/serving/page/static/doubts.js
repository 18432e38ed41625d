// Places to look at again: numbers, names, lengths, repetition, wrong language, low confidence.
import { find, make } from "./dom.js";
import { percent } from "./wording.js";
import { isFrozen } from "./server.js";
import { emit, known, on, state } from "./state.js";
import { focusSentence, isMany, keptOf, numberOf } from "./sentences.js";
import { goTo, light, wordOf } from "./words.js";
import { addTool } from "./bench.js";

const leastConfidence = .35, leastChance = .1;
const settled = new Set();
let list = [], at = -1, isChecking = false, button;

const nameOf = (sentence, mark) => `${sentence.key}\n${sentence.text}\n${mark.side} ${mark.words}`;
// To what the server found comes what the model says of itself.
function collect() {
  const shown = list[at];
  list = [];
  known.sentences.forEach((sentence, place) => {
    if (!sentence.text || !sentence.marks) return;
    sentence.marks = sentence.marks.filter(mark => !["confidence", "source"].includes(mark.kind));
    if (typeof sentence.confidence === "number" && sentence.confidence < leastConfidence)
      sentence.marks.push({ kind: "confidence", side: "target", isWhole: true, places: [], words: `only ${Math.round(100 * sentence.confidence)} % sure to be good` });
    // What somebody chose or wrote need not please the model.
    if (!keptOf(sentence) && sentence.sure?.length === sentence.targetWords.length)
      sentence.sure.forEach((chance, word) => {
        const how = chance < .001 ? "hardly any probability" : `only ${percent(chance)}`;
        if (chance < leastChance) sentence.marks.push({ kind: "confidence", side: "target", isWhole: false, places: [word], words: `the model gives “${sentence.targetWords[word].text}” ${how}` });
      });
    const { changedFrom } = keptOf(sentence) ?? {};
    if (changedFrom) sentence.marks.push({ kind: "source", side: "target", isWhole: true, places: [], words: "source changed: check" });
    for (const mark of sentence.marks) {
      const name = nameOf(sentence, mark);
      mark.isSettled = settled.has(name);
      if (!mark.isSettled) list.push({ place, mark, name });
    }
  });
  at = shown ? list.findIndex(({ place, name }) => place === shown.place && name === shown.name) : -1;
  showState();
}
// How many there are, and the one that is shown if it is still there.
function showState() {
  const counted = list.length ? `${list.length} ${list.length === 1 ? "doubt" : "doubts"}` : "No doubts";
  button.textContent = isChecking ? list.length ? `${counted}, checking …` : "checking …" : counted;
  button.disabled = !list.length;
  if (at < 0) find("doubt").replaceChildren();
  else if (find("doubt").firstChild) find("doubt").firstChild.textContent = told();
}
function told() {
  const { place, mark } = list[at];
  return `Doubt ${at + 1} of ${list.length}${isChecking ? ", checking …" : ""}. ${isMany() ? `Sentence ${numberOf(place)}: ` : ""}${mark.words}. `;
}

export function nextDoubt(step = 1) {
  if (!list.length) return;
  // From where one is, in the order of the text.
  const here = list[at], isHere = here && here.place === state.sentence;
  if (isHere) at = (at + step + list.length) % list.length;
  else {
    const next = step > 0 ? list.findIndex(({ place }) => place >= state.sentence) : list.findLastIndex(({ place }) => place <= state.sentence);
    at = next >= 0 ? next : step > 0 ? 0 : list.length - 1;
  }
  show();
}
function show() {
  const { place, mark } = list[at], sentence = known.sentences[place];
  focusSentence(place);
  const counterpart = sentence.links.find(([source]) => mark.side === "source" && mark.places.includes(source));
  const word = mark.side === "target" ? mark.places[0] ?? 0 : counterpart?.[1] ?? 0;
  const element = wordOf(place, word);
  if (element) goTo(element);
  if (mark.places.length) light(mark.side, place, mark.places[0]);
  find("doubt").replaceChildren(make("span", {}, told()),
    ...(isFrozen ? [] : [make("button", { className: "small", type: "button", title: "It is right (y)", onclick: settleDoubt }, "It is right")]));
  if (element) element.scrollIntoView({ block: "nearest" });
}
export function settleDoubt() {
  if (at < 0 || isFrozen) return;
  const { place, mark } = list[at], here = at;
  const sentence = known.sentences[place];
  // Whoever says that a word is right says so of all that was doubtful at it.
  for (const other of sentence.marks)
    if (other === mark || other.side === mark.side && other.places.some(word => mark.places.includes(word))) settled.add(nameOf(sentence, other));
  emit("redraw");
  if (!list.length) return;
  at = here % list.length;
  show();
}

export function startDoubts() {
  button = addTool("No doubts", "Numbers, names, lengths, repetition, language and confidence; F8 goes to the next", () => nextDoubt());
  button.classList.add("counted");
  on("prepared", collect);
  on("weighing", isNow => { isChecking = isNow; showState(); });
  collect();
}
