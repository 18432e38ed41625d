// What was done at the desk can be undone and done again: texts, languages, choices of words.
import { emit, known, state } from "./state.js";

const most = 200, pause = 1200;
let past = [], future = [], typedAt = 0;
const settings = ["text", "from", "to", "model", "sentence"];
const picture = () => ({ ...Object.fromEntries(settings.map(name => [name, state[name]])), kept: { ...known.kept } });
const isSame = (one, other) => settings.slice(0, 4).every(name => one[name] === other[name])
  && Object.keys({ ...one.kept, ...other.kept }).every(key => one.kept[key]?.text === other.kept[key]?.text);

// Called before something is changed. What is typed without a pause is one step.
export function remember(isTyping = false) {
  const now = performance.now(), goesOn = isTyping && typedAt && now - typedAt < pause;
  typedAt = isTyping ? now : 0;
  if (goesOn) return;
  past = [...past.slice(1 - most), picture()];
  future = [];
  emit("undo");
}
function step(from, to) {
  typedAt = 0;
  const now = picture();
  while (from.length && isSame(from.at(-1), now)) from.pop();
  const found = from.pop();
  if (!found) return false;
  to.push(now);
  const { kept, ...changes } = found;
  known.kept = kept;
  emit("restore", changes);
  emit("undo");
  return true;
}
export const undo = () => step(past, future);
export const redo = () => step(future, past);
export const canUndo = () => past.length > 0;
export const canRedo = () => future.length > 0;
