// Lessons: a list of them, and the bar that leads through one. A step asks first; what the page shows
// of the sentence stays hidden until something was predicted.
import { find, make } from "./dom.js";
import { isFrozen, isPart } from "./server.js";
import { change, emit, known, onChange, state } from "./state.js";
import { isCourse, lessons } from "./lesson_texts.js";
import { explained } from "./meanings.js";

// Kept until the tab is closed: in a file each step is the page loaded anew.
const answers = {};
try { Object.assign(answers, JSON.parse(sessionStorage.getItem("dragoman-answers") ?? "{}")); } catch { /* storage is off */ }
const fresh = {
  view: "translate", model: "", beam: 0, sentence: 0, layout: "", compare: "", off: "", specials: 1, word: 0,
  picture: "lines", kind: "cross", layer: 1, heads: "", words: 1,
  show: "steps", step: "", matrix: "", head: 1, cell: "", place: 0, grow: 4, grown: 0,
};

const lessonOf = id => lessons.find(lesson => lesson.id === id) ?? null;
export const current = () => lessonOf(state.lesson);
const placeOf = lesson => Math.max(1, Math.min(state.at, lesson.steps.length));
const isServed = lesson => {
  const [from, to] = lesson.pair.split("-");
  return known.page.languages.some(language => language.code === from && language.targets.includes(to));
};
const nameOf = code => known.page.languages.find(language => language.code === code)?.name ?? code;
const textOf = (lesson, place) =>
  lesson.steps.slice(0, place).reduce((text, step) => step.state?.text ?? text, lesson.text);
export const isPredicted = () => {
  const lesson = current();
  return !lesson || `${lesson.id} ${placeOf(lesson)}` in answers;
};

// What the page shows at a step of a lesson.
export function stateAt(lesson, place) {
  const [from, to] = lesson.pair.split("-"), step = lesson.steps[place - 1];
  const shown = step.state?.view === "break" && !known.page.broken ? step.otherwise : step.state ?? {};
  const view = find(`tab-${shown.view}`)?.hidden === false ? shown.view : "translate";
  return { ...fresh, ...shown, view, from, to, text: textOf(lesson, place) };
}

function goTo(id, at = 1) {
  if (isFrozen) {
    location.hash = `at=${at}`;
    return location.reload();
  }
  change({ lesson: id, at });
  if (id) find("lesson").scrollIntoView({ block: "start" });
  find(id ? "lesson-title" : "tab-lessons").focus();
}

function answer(lesson, place, choice) {
  answers[`${lesson.id} ${place}`] = choice;
  try { sessionStorage.setItem("dragoman-answers", JSON.stringify(answers)); } catch { /* until the page is left */ }
  drawBar();  // first, since nothing is drawn where nothing can be seen
  change(isFrozen ? { view: state.view } : stateAt(lesson, place));
  find("lesson").querySelector(".verdict").focus();
}

function drawQuestion(lesson, place) {
  const { ask, choices, right, why } = lesson.steps[place - 1], given = answers[`${lesson.id} ${place}`];
  const isAnswered = given !== undefined;
  const buttons = choices.map((choice, index) => {
    const mark = !isAnswered ? "" : index === right ? "right" : index === given ? "wrong" : "";
    return make("button", { type: "button", className: `guess ${mark}`, disabled: isAnswered, "aria-pressed": isAnswered ? String(index === given) : null,
      onclick: () => answer(lesson, place, index) }, ...explained(choice), mark && make("span", { className: "hidden" }, mark === "right" ? " – right" : " – your answer"));
  });
  const parts = [make("p", { className: "question", id: "lesson-question" }, make("b", {}, "Predict first: "), ...explained(ask)),
    make("div", { className: "guesses", role: "group", "aria-labelledby": "lesson-question" }, ...buttons)];
  if (!isAnswered) return parts;
  return [...parts, make("div", { className: "verdict", tabIndex: -1 }, make("p", {}, make("b", {}, ...given === right ? ["Right."] : ["The answer: ", ...explained(choices[right]), "."]), " ", ...explained(why)))];
}

export function drawBar() {
  const bar = find("lesson"), lesson = current();
  bar.hidden = !lesson;
  document.body.dataset.lesson = !lesson ? "" : isPredicted() ? "shown" : "asked";
  if (!lesson) return bar.replaceChildren();
  const place = placeOf(lesson), last = lesson.steps.length;
  const button = (label, step, isOff) => make("button", { type: "button", disabled: isOff, onclick: () => goTo(step ? lesson.id : "", step || 1) }, label);
  bar.replaceChildren(
    make("div", { className: "lesson-head" },
      make("h2", { id: "lesson-title", tabIndex: -1 }, lesson.title), make("span", { className: "faint" }, `Step ${place} of ${last}`),
      make("span", { className: "lesson-tools" }, ...isPart ? [] : [button("Question before", place - 1, place === 1), button("Next question", place + 1, place === last || !isPredicted())],
        isFrozen ? null : make("button", { type: "button", onclick: () => find("export-lesson").click() }, "As a file"), isFrozen ? null : button("End lesson", 0, false))),
    make("blockquote", { lang: lesson.pair.split("-")[0], dir: "auto" }, textOf(lesson, place)),
    make("p", {}, ...explained(lesson.steps[place - 1].say)),
    ...drawQuestion(lesson, place));
}

function card(lesson) {
  const [from, to] = lesson.pair.split("-"), isHere = isServed(lesson);
  return make("li", { className: "card" },
    make("button", { type: "button", className: "link", disabled: !isHere, onclick: () => goTo(lesson.id) }, lesson.title),
    make("p", {}, ...explained(lesson.about)),
    make("p", { className: "faint" }, `${nameOf(from)} to ${nameOf(to)} · about ${lesson.minutes} minutes · ${lesson.steps.length} steps`),
    isHere ? null : make("p", { className: "faint" }, "Needs a model of this pair: ", make("code", {}, `dragoman pull ${lesson.pair} --source box`)));
}

function drawList() {
  const list = (title, some) => [make("h2", {}, title), make("ul", { className: "cards" }, ...some.map(card))];
  find("lessons").replaceChildren(
    make("p", {}, "Each step asks you to predict what the model will do, then runs it, then explains. Terms with a dotted line open their meaning. The keys n and p go from question to question. A lesson is in the address, so a link leads to its step; “As a file” takes all of it along."),
    ...list("Courses", lessons.filter(isCourse)),
    ...list("Sentences", lessons.filter(lesson => !isCourse(lesson))));
}

function setSize(isLarge) {
  document.documentElement.dataset.size = isLarge ? "large" : "";
  find("size").setAttribute("aria-pressed", isLarge);
  try { localStorage.setItem("dragoman-size", isLarge ? "large" : ""); } catch { /* until the page is left */ }
  emit("theme");  // pictures measure their text anew
}

export function startLessons() {
  let size = "";
  try { size = localStorage.getItem("dragoman-size") ?? ""; } catch { /* as it is */ }
  setSize(size === "large");
  find("size").onclick = () => setSize(document.documentElement.dataset.size !== "large");
  if (state.lesson && !current()) state.lesson = "";
  if (!isFrozen) drawList();
  drawBar();
  document.addEventListener("keydown", event => {
    const by = { n: 1, p: -1 }[event.key], lesson = current();
    if (!by || !lesson || event.ctrlKey || event.altKey || event.metaKey || event.target.closest?.("input, textarea, select, [contenteditable], dialog")) return;
    const next = placeOf(lesson) + by;
    if (!isPart && next >= 1 && next <= lesson.steps.length && (by < 0 || isPredicted())) goTo(lesson.id, next);
  });
  onChange(changes => {
    if (!("lesson" in changes || "at" in changes)) return;
    const lesson = current();
    if (isFrozen) return;
    drawBar();
    if (lesson && isPredicted()) change(stateAt(lesson, placeOf(lesson)));
    else if (lesson && changes.view === undefined && state.view === "lessons") change({ view: "translate" });
  });
}
