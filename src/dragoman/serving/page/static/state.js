// What is shown: all of it in one object, and in the address, so that a link leads back to it.
import { isFrozen, snapshot } from "./server.js";
import { debounce } from "./dom.js";

const defaults = {
  view: "translate",
  text: "", from: "", to: "", model: "", beam: 0, alternatives: 3,
  sentence: 0, say: "",
  picture: "lines", kind: "cross", layer: 1, heads: "", words: 1, specials: 1, off: "",
  word: 0, masks: 300,
  broken: "", trial: "", probe: "", follow: "", stage: "",
  axis: "step", without: "", smooth: 0, logs: "", zoom: "",
};

function read(address) {
  const found = { ...defaults };
  for (const [name, value] of new URLSearchParams(address.replace(/^#/, ""))) {
    if (!(name in defaults)) continue;
    const number = Number(value);
    if (typeof defaults[name] === "string") found[name] = value;
    else if (Number.isInteger(number)) found[name] = number;
  }
  return found;
}

export const state = { ...read(location.hash), ...(snapshot?.state ?? {}) };

export function address() {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(state))
    if (name in defaults && value !== defaults[name]) parts.set(name, value);
  return `#${parts}`;
}

// Long texts make long addresses, which the history need not keep.
const write = debounce(250, () => { if (!isFrozen) history.replaceState(null, "", address()); });
const listeners = [];
export const onChange = call => listeners.push(call);
export function change(changes) {
  Object.assign(state, changes);
  write();
  for (const call of listeners) call(changes);
}
addEventListener("hashchange", () => {
  if (location.hash !== address()) change(read(location.hash));
});

// Things that happen: “translation” (another one), “key” (one is wanted), “key-given”, “theme”.
const topics = {};
export const on = (topic, call) => (topics[topic] ??= []).push(call);
export const emit = topic => topics[topic]?.forEach(call => call());

// What the server said: the page's facts, and of the focused sentence whatever was asked.
export const known = { page: null, sentences: [], path: [], notes: [], look: null, answer: null, why: null, runs: [], broken: {} };

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
