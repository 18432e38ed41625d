// Places to look at again: numbers, names, lengths, repetition, wrong language, low confidence.
import { find, make, say } from "./dom.js";
import { percent } from "./wording.js";
import { isFrozen } from "./server.js";
import { emit, known, on, state } from "./state.js";
import { focusSentence, isMany, numberOf } from "./sentences.js";
import { goTo, light, wordOf } from "./words.js";
import { addTool } from "./bench.js";

const leastConfidence = .35, leastChance = .1;
const settled = new Set();
let list = [], at = -1, button;

const nameOf = (sentence, mark) => `${sentence.key}\n${sentence.text}\n${mark.side} ${mark.words}`;
// To what the server found comes what the model says of itself.
function collect() {
  list = [];
  known.sentences.forEach((sentence, place) => {
    if (!sentence.text || !sentence.marks) return;
    sentence.marks = sentence.marks.filter(mark => mark.kind !== "confidence");
    if (typeof sentence.confidence === "number" && sentence.confidence < leastConfidence)
      sentence.marks.push({ kind: "confidence", side: "target", isWhole: true, places: [], words: `only ${Math.round(100 * sentence.confidence)} % sure to be good` });
    if (sentence.sure?.length === sentence.targetWords.length)
      sentence.sure.forEach((chance, word) => {
        if (chance < leastChance) sentence.marks.push({ kind: "confidence", side: "target", isWhole: false, places: [word], words: `the model gives “${sentence.targetWords[word].text}” only ${percent(chance)}` });
      });
    for (const mark of sentence.marks) {
      mark.isSettled = settled.has(nameOf(sentence, mark));
      if (!mark.isSettled) list.push({ place, mark });
    }
  });
  button.textContent = list.length ? `${list.length} ${list.length === 1 ? "doubt" : "doubts"}` : "No doubts";
  button.disabled = !list.length;
  if (at >= list.length) at = -1;
  if (!list.length) find("doubt").replaceChildren();
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
  if (element) { goTo(element); element.scrollIntoView({ block: "nearest" }); }
  if (mark.places.length) light(mark.side, place, mark.places[0]);
  const told = `${isMany() ? `Sentence ${numberOf(place)}: ` : ""}${mark.words}.`;
  find("doubt").replaceChildren(make("span", {}, `Doubt ${at + 1} of ${list.length}. ${told} `),
    ...(isFrozen ? [] : [make("button", { className: "small", type: "button", onclick: settle }, "It is right")]));
  say(told);
}
function settle() {
  const { place, mark } = list[at];
  const sentence = known.sentences[place];
  // Whoever says that a word is right says so of all that was doubtful at it.
  for (const other of sentence.marks)
    if (other === mark || other.side === mark.side && other.places.some(word => mark.places.includes(word))) settled.add(nameOf(sentence, other));
  at = Math.max(-1, at - 1);
  emit("redraw");
  find("doubt").replaceChildren();
  if (list.length) nextDoubt();
}

export function startDoubts() {
  button = addTool("No doubts", "Numbers, names, lengths, repetition, language and confidence; F8 goes to the next", () => nextDoubt());
  on("prepared", collect);
  collect();
}
