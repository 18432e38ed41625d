// The sentences of the text: their words, which belong together, and what was chosen to be said.
import { complain, matchWords, wordsOf } from "./dom.js";
import { ask, isFrozen } from "./server.js";
import { change, emit, focused, known, modelInside, state, write } from "./state.js";
import { remember } from "./undo.js";

// The server counts characters, the browser halves of some.
function unitsOf(text) {
  if (!/[\u{10000}-\u{10ffff}]/u.test(text)) return at => at;
  const places = [0];
  for (const character of text) places.push(places.at(-1) + character.length);
  return at => places[at] ?? text.length;
}
const isCovering = (word, begin, end) => word.begin < end && begin < word.end;

// Words of both sides, which belong together, and where the doubts are.
export function prepare(sentence) {
  if (sentence.prepared === sentence.text && sentence.links) return;
  sentence.prepared = sentence.text;
  sentence.sourceWords = wordsOf(sentence.source, known.path[0]);
  sentence.targetWords = wordsOf(sentence.text, state.to);
  const here = unitsOf(sentence.source), there = unitsOf(sentence.text);
  const links = new Set();
  for (const [begin, end, first, last] of sentence.alignment)
    sentence.sourceWords.forEach((word, one) => {
      if (!isCovering(word, here(begin), here(end))) return;
      sentence.targetWords.forEach((other, two) => { if (isCovering(other, there(first), there(last))) links.add(`${one} ${two}`); });
    });
  sentence.links = [...links].map(link => link.split(" ").map(Number));
  sentence.marks = (sentence.doubts ?? []).map(doubt => {
    const units = doubt.side === "source" ? here : there, words = sentence[`${doubt.side}Words`];
    const isWhole = units(doubt.begin) === 0 && units(doubt.end) >= sentence[doubt.side === "source" ? "source" : "text"].length && words.length > 1;
    return { ...doubt, isWhole, places: isWhole ? [] : words.flatMap((word, place) => isCovering(word, units(doubt.begin), units(doubt.end)) ? [place] : []) };
  });
}

export const spoken = () => known.sentences.flatMap((sentence, place) => sentence.source ? [place] : []);
export const isMany = () => spoken().length > 1;
export const numberOf = place => spoken().indexOf(place) + 1;
export const wholeTranslation = () => known.sentences.map(sentence => sentence.text + sentence.space).join("");
export const keptOf = sentence => known.kept[sentence.key] ?? null;

// Whether a sentence was edited a little: most of its words stayed, in their order.
const leastAlike = .6;
function isAlike(one, other) {
  const [before, after] = [one, other].map(source => wordsOf(source, known.path[0]).map(word => word.text.toLowerCase()));
  return 2 * matchWords(before, after).length >= leastAlike * (before.length + after.length);
}
// What was kept for a sentence that was edited stays at its place, and says that it is to be checked.
function carryKept(before, sentences) {
  const old = new Set(before.map(each => each.key)), now = new Set(sentences.map(each => each.key));
  const shift = sentences.length - before.length;
  sentences.forEach((sentence, place) => {
    if (!sentence.source || old.has(sentence.key) || keptOf(sentence)) return;
    for (const other of [before[place], before[place - shift]]) {
      const kept = other?.key && !now.has(other.key) && other.key.startsWith(`${state.to}\n`) && keptOf(other);
      if (!kept || !isAlike(kept.changedFrom ?? other.source, sentence.source)) continue;
      const changedFrom = kept.changedFrom ?? other.source;
      known.kept[sentence.key] = changedFrom === sentence.source ? { text: kept.text } : { text: kept.text, changedFrom };
      return;
    }
  });
}

// Take what the server said of a text; what was chosen before for the same sentences stays.
export function takeSentences(sentences) {
  const times = new Map(), before = known.sentences;
  for (const sentence of sentences) {
    const { source, text, confidence, alignment, alternatives, doubts = [], machine } = sentence;
    const time = (times.get(source) ?? 0) + 1;
    times.set(source, time);
    sentence.key = `${state.to}\n${time}\n${source}`;
    sentence.machine = machine ?? { text, confidence, alignment, alternatives, doubts };
  }
  known.sentences = sentences;
  for (const [place, text] of Object.entries(state.said ?? {})) {
    const sentence = sentences[place];
    if (!sentence?.source || keptOf(sentence)) continue;
    known.kept[sentence.key] = sentence.text === text ? { ...sentence.machine, isLocked: true } : { text };
  }
  if (sentences.length) {
    if (!Object.keys(state.said ?? {}).length) carryKept(before, sentences);
    state.said = {};
  }
  sentences.forEach(showSentence);
}
// What was chosen, or else what the model said.
function showSentence(sentence) {
  const shown = keptOf(sentence) ?? sentence.machine, { text, confidence = null, doubts = [], sure = null } = shown;
  Object.assign(sentence, {
    alignment: shown.alignment ?? carry(sentence, text), text, confidence, doubts, sure, prepared: null,
    alternatives: shown.alternatives ?? sentence.machine.alternatives,
  });
}
export function showKept() {
  for (const sentence of known.sentences) showSentence(sentence);
  fillIn();
}
// Of a text that somebody wrote: words that stayed keep their counterparts (and are marked so), and
// those written in place of others take over theirs.
function carry(sentence, text) {
  const { text: before, alignment } = sentence;
  const one = wordsOf(before, state.to), other = wordsOf(text, state.to), carried = [];
  const link = (from, to, isSame) => {
    for (const [begin, end, first, last] of alignment)
      if (isCovering(from, first, last)) carried.push([begin, end, to.begin, to.end, isSame]);
  };
  let i = 0, j = 0;
  for (const [left, right] of [...matchWords(one.map(word => word.text), other.map(word => word.text)), [one.length, other.length]]) {
    for (const from of one.slice(i, left)) for (const to of other.slice(j, right)) link(from, to, false);
    if (left < one.length) link(one[left], other[right], true);
    i = left + 1; j = right + 1;
  }
  return carried;
}

// Another sentence is looked at.
export function focusSentence(index) {
  if (index === state.sentence || !known.sentences[index]) return;
  if (!isFrozen) Object.assign(known, { look: null, why: null });
  change({ sentence: index });
  emit("translation");
}

// Say something else in a sentence, and keep it until somebody says otherwise.
export function keep(index, record) {
  const sentence = known.sentences[index];
  if (!sentence || isFrozen) return;
  remember();
  if (record === null || record.text === sentence.machine.text && !record.isLocked) delete known.kept[sentence.key];
  else known.kept[sentence.key] = record;
  showSentence(sentence);
  Object.assign(known, { look: null, why: null });
  change({ sentence: index });
  emit("settle");
  fillIn();
}
export const release = index => keep(index, null);
export const lock = index => {
  const { text, confidence, alignment, alternatives, doubts, sure } = known.sentences[index];
  keep(index, { text, confidence, alignment, alternatives, doubts, sure, isLocked: true });
};

// Translate the rest of a sentence anew after a beginning.
export async function continueFrom(index, prefix, settings) {
  const sentence = known.sentences[index];
  emit("busy", "translating …");
  try {
    const { sentences: [found] } = await ask("translate", { text: sentence.source, prefix, ...settings });
    const { text, confidence, alignment, alternatives, doubts } = found;
    if (known.sentences[index] === sentence) keep(index, { text, confidence, alignment, alternatives, doubts });
    complain(null);
  } catch (error) { complain(error); }
  emit("busy", "");
}

let filling = false;
// Ask which words belong together in what somebody chose or wrote.
export async function fillIn() {
  const model = modelInside();
  if (!model || filling || isFrozen) return;
  filling = true;
  for (;;) {
    const sentence = known.sentences.find(each => keptOf(each) && !keptOf(each).alignment);
    if (!sentence) break;
    const kept = keptOf(sentence);
    try {
      const found = await ask("alignment", { model: model.name, source: sentence.source, translation: kept.text });
      const same = sentence.alignment.filter(span => span[4]);
      const others = found.alignment.filter(([, , first, last]) => !same.some(span => span[2] < last && first < span[3]));
      Object.assign(kept, { alignment: [...same, ...others], sure: found.probabilities, doubts: found.doubts });
    } catch { Object.assign(kept, { alignment: sentence.alignment }); }
    if (keptOf(sentence) !== kept || sentence.text !== kept.text) continue;
    Object.assign(sentence, { alignment: kept.alignment, sure: kept.sure ?? null, doubts: kept.doubts ?? [], prepared: null });
    emit("redraw");
  }
  filling = false;
  write();
}
