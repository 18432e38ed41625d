// What is shown: all of it in one object, and in the address, so that a link leads back to it.
import { isFrozen, snapshot } from "./server.js";
import { debounce } from "./dom.js";

const defaults = {
  view: "translate",
  text: "", from: "", to: "", model: "", beam: 0, alternatives: 3,
  sentence: 0, layout: "", compare: "", cut: 0,
  picture: "lines", kind: "cross", layer: 1, heads: "", words: 1, specials: 1, off: "",
  word: 0, masks: 300,
  show: "steps", step: "", matrix: "", head: 1, cell: "", place: 0, grow: 4, grown: 0, heat: 100, seed: 1,
  broken: "", trial: "", probe: "", follow: "", stage: "",
  axis: "step", without: "", smooth: 0, logs: "", zoom: "",
  lesson: "", at: 1,
};
// What belongs to the text rather than to how one looks at it.
const ofText = ["text", "said", "from", "to", "model", "beam", "alternatives", "sentence", "cut"];
const longest = 1900;

// Choices of words stand in the address as “say.2=…” for the third sentence. A text that is too
// long for an address is held by the browser's history.
function read(address, held) {
  const found = { ...defaults, said: {} };
  let only = "";
  for (const [name, value] of new URLSearchParams(address.replace(/^#/, ""))) {
    const number = Number(value);
    if (/^say\.\d{1,5}$/.test(name)) found.said[name.slice(4)] = value;
    else if (name === "say") only = value;
    else if (!(name in defaults)) continue;
    else if (typeof defaults[name] === "string") found[name] = value;
    else if (Number.isInteger(number)) found[name] = number;
  }
  if (only) found.said[found.sentence] = only;
  return held ? { ...found, text: held.text, said: held.said } : found;
}

export const state = { ...read(location.hash, history.state?.held), ...(snapshot?.state ?? {}) };

// What the server said: the page's facts, and of the focused sentence whatever was asked; and what
// was chosen or written instead of what it said, by the key of the sentence.
export const known = {
  page: null, sentences: [], path: [], notes: [], models: [], kept: {},
  look: null, answer: null, why: null, inside: null, runs: [], broken: {},
};
export const saidNow = () => known.sentences.length === 0 ? state.said
  : Object.fromEntries(known.sentences.flatMap(({ key }, place) => known.kept[key] ? [[place, known.kept[key].text]] : []));

function compose(changes = {}, said = {}) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...state, ...changes }))
    if (name in defaults && value !== defaults[name]) parts.set(name, value);
  for (const [place, text] of Object.entries(said)) parts.set(`say.${place}`, text);
  return `#${parts}`;
}
export const isLong = () => compose({}, saidNow()).length > longest;
// A text that the history of a tab holds is named in its address by a number made of it.
export const sumOf = text => [...text].reduce((sum, each) => Math.imul(sum ^ each.codePointAt(0), 16777619) >>> 0, 2166136261);
export const heldSum = () => Number(new URLSearchParams(location.hash.slice(1)).get("held")) || 0;
export const isHeldElsewhere = () => heldSum() > 0 && !history.state?.held && !state.text;
export function address() {
  if (!isLong()) return compose({}, saidNow());
  const short = compose({ text: "" });
  return `${short.length <= longest ? short : compose({ text: "", off: "" })}&held=${sumOf(state.text)}`;
}
// For somebody else: what does not fit is cut off, and said to be; so are choices of what is cut.
export function makeLink() {
  const said = saidNow();
  if (!isLong()) return { link: compose({}, said), left: 0, choices: 0 };
  return cutLink(said, endsOf());
}
function endsOf() {
  let at = 0;
  return known.sentences.map(({ source, space }) => { const end = at + source.length; at = end + space.length; return end; });
}
function cutLink(said, ends) {
  let low = 0, high = state.text.length;
  const within = length => Object.fromEntries(Object.entries(said).filter(([place]) => ends[place] <= length));
  const cut = length => compose({ text: state.text.slice(0, length).toWellFormed(), cut: 1, off: "" }, within(length));
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (cut(middle).length <= longest) low = middle; else high = middle - 1;
  }
  const end = state.text.slice(0, low).search(/\s\S*$/);
  const length = low < state.text.length && end > low / 2 ? end : low;
  const choices = Object.keys(said).length - Object.keys(within(length)).length;
  return { link: cut(length), left: state.text.length - length, choices };
}

const session = history.state?.session ?? crypto.getRandomValues(new Uint32Array(2)).join("");
const entry = () => ({ session, held: isLong() ? { text: state.text, said: saidNow() } : null });
function writeNow() {
  if (isFrozen) return;
  try {
    history.replaceState(entry(), "", address());
  } catch { /* too long for this browser, or asked too often */ }
}
export const write = debounce(250, writeNow);
const listeners = [];
export const onChange = call => listeners.push(call);
export function change(changes) {
  // Another view is a step that “Back” takes back.
  if (!isFrozen && changes.view && changes.view !== state.view) {
    writeNow();
    Object.assign(state, changes);
    history.pushState(entry(), "", address());
  } else Object.assign(state, changes);
  write();
  for (const call of listeners) call(changes);
}
// “Back” and “Forward” show another view of the same text; a text comes back where there is none.
// An address from elsewhere brings its own.
addEventListener("popstate", event => {
  if (isFrozen) return;
  const found = read(location.hash, event.state?.held);
  if (event.state?.session === session && (state.text || !found.text))
    for (const name of ofText) delete found[name];
  else if (location.hash === address()) return;
  else emit("arrival");
  Object.assign(state, found);
  const isLost = isHeldElsewhere();
  write();
  for (const call of listeners) call(found);
  if (isLost) emit("lost");
});

// Things that happen: “translation” (another one), “key” (one is wanted), “key-given”, “theme”,
// “arrival” (another address is about to be shown) and those of the desk.
const topics = {};
export const on = (topic, call) => (topics[topic] ??= []).push(call);
export const emit = (topic, ...values) => topics[topic]?.forEach(call => call(...values));

export const focused = () => known.sentences[state.sentence] ?? null;
// The one model that translated, if there was one: only into that can one look.
export function modelInside() {
  const models = known.page?.models ?? [];
  if (state.model) return models.find(model => model.name === state.model) ?? null;
  if (known.path.length !== 2) return null;
  return models.find(model => model.source === known.path[0] && model.target === known.path[1]) ?? null;
}
export const listOff = () => state.off.split(",").filter(Boolean).map(each => {
  const [kind, layer, head] = each.split(".");
  return [kind, Number(layer), Number(head)];
});
