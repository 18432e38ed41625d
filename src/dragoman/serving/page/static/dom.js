// Making and finding elements, saying things to people.

export const find = id => document.getElementById(id);

// make("button", { className: "x", onclick }, "child", element): names of attributes that have no
// property of their own (aria-…, data-…, role) are set as attributes.
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key in element && !key.includes("-")) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.filter(child => child !== null && child !== undefined));
  return element;
}

let lastSaid;
// Tell somebody who listens to the page rather than looks at it.
export function say(text) {
  clearTimeout(lastSaid);
  lastSaid = setTimeout(() => { find("said").textContent = text; }, 300);
}

let toastTimer;
// With a button if there is something to do about it: { label, call }.
export function toast(text, action) {
  const box = find("toast");
  box.replaceChildren(text);
  if (action) box.append(" ", make("button", { className: "link", onclick: () => { box.hidden = true; action.call(); } }, action.label));
  box.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { box.hidden = true; }, action ? 10000 : 2600);
}

// Over plain HTTP browsers offer no clipboard: there a selection is copied, as of old.
export async function copyText(text, said) {
  let isDone = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const before = document.activeElement, box = make("textarea", { className: "hidden", value: text, readOnly: true });
    document.body.append(box);
    box.select();
    isDone = document.execCommand("copy");
    box.remove();
    before?.focus();
  }
  toast(isDone ? said : "This browser does not let the page copy: select the text and press Ctrl+C.");
  return isDone;
}

// What this browser keeps for the page; nothing where storage is off or full.
export function recall(name, otherwise) {
  try { return JSON.parse(localStorage.getItem(`dragoman-${name}`)) ?? otherwise; } catch { return otherwise; }
}
export function retain(name, value) {
  try {
    if (value === null) localStorage.removeItem(`dragoman-${name}`);
    else localStorage.setItem(`dragoman-${name}`, JSON.stringify(value));
    return true;
  } catch { return false; }
}

export function complain(error) {
  const box = find("notice");
  const isNothing = !error || error.name === "AbortError";
  box.hidden = isNothing;
  const told = isNothing ? "" : error.message ?? String(error);
  box.textContent = told.charAt(0).toUpperCase() + told.slice(1);
}

export function debounce(milliseconds, call) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...values), milliseconds);
  };
}

// A row of choices of which one holds: radio buttons, so arrow keys work by themselves.
export function segments(name, legend, options, current, pick) {
  const box = make("fieldset", { className: "segments" }, make("legend", { className: "hidden" }, legend));
  for (const [value, label] of options) {
    const input = make("input", { type: "radio", name, value, checked: value === current });
    input.onchange = () => pick(value);
    box.append(make("label", {}, input, make("span", {}, label)));
  }
  return box;
}

export function tick(label, checked, change, title) {
  const input = make("input", { type: "checkbox", checked });
  input.onchange = () => change(input.checked);
  return make("label", { className: "tick", title }, input, ` ${label}`);
}

export function fill(select, options, current) {
  select.replaceChildren(...options.map(([value, label]) =>
    make("option", { value, selected: String(value) === String(current) }, label)));
}

export function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const unspaced = /[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff]/;
let segmenter;
// The words of a text with the places where they begin and end.
export function wordsOf(text, language) {
  const words = [];
  for (const match of text.matchAll(/\S+/gu)) {
    if (unspaced.test(match[0]) && window.Intl?.Segmenter) {
      segmenter ??= new Intl.Segmenter(language || undefined, { granularity: "word" });
      for (const part of segmenter.segment(match[0])) {
        const begin = match.index + part.index;
        words.push({ text: part.segment, begin, end: begin + part.segment.length });
      }
    } else words.push({ text: match[0], begin: match.index, end: match.index + match[0].length });
  }
  return words;
}

// The longest common subsequence of two lists, as pairs of places.
export function matchWords(one, other) {
  const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i--)
    for (let j = other.length - 1; j >= 0; j--)
      lengths[i][j] = one[i] === other[j] ? lengths[i + 1][j + 1] + 1
        : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  const pairs = [];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) pairs.push([i++, j++]);
    else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
    else j++;
  }
  return pairs;
}

// The words of two texts in order, those of one only with a sign.
export function changedWords(before, after) {
  const one = before.split(/\s+/), other = after.split(/\s+/), marked = [];
  let i = 0, j = 0;
  for (const [left, right] of [...matchWords(one, other), [one.length, other.length]]) {
    while (i < left) marked.push([one[i++], "del"]);
    while (j < right) marked.push([other[j++], "mark"]);
    if (i < one.length) marked.push([other[j], ""]);
    i++; j++;
  }
  return marked;
}

// The second text, what is new in it marked, and if so wished what is gone struck out.
export function markedText(before, after, withGone = false) {
  return changedWords(before, after).filter(([, sign]) => withGone || sign !== "del")
    .flatMap(([word, sign], place) => [place ? " " : "", sign ? make(sign, {}, word) : word]);
}
