// What is shown, as a file that needs nothing else: HTML that is still alive, SVG or PNG.
import { complain, copyText, find, save, toast } from "./dom.js";
import { isDark } from "./colours.js";
import { CanvasPen, SvgPen, wrap } from "./pen.js";
import { askText, isFrozen } from "./server.js";
import { change, focused, known, makeLink, state, write } from "./state.js";
import { textFiles } from "./texts.js";
import { planPairs, planText, stack } from "./pictures.js";
import { planAttention, planHeading } from "./attention.js";
import { planWhy } from "./why.js";
import { packInside, planInside } from "./inside.js";
import { planBreak } from "./break.js";
import { planTraining } from "./training.js";
import { current, stateAt } from "./lessons.js";

const width = 880, MOST_SECONDS = 60;

function planView() {
  if (state.view === "training") return planTraining(width);
  if (state.view === "break") return planBreak(width);
  const sentence = focused();
  if (!sentence?.text) throw new Error("There is nothing to export yet.");
  const heading = planText(wrap(`${sentence.source}  →  ${sentence.text}`, width, { size: 15, weight: 600 }), { size: 15, weight: 600 });
  if (state.view === "translate") {
    const words = side => sentence[`${side}Words`].map(word => word.text);
    return stack([planPairs(words("source"), words("target"), sentence.links, width)]);
  }
  if (state.view === "why") {
    if (!known.why) throw new Error("There is no explanation yet.");
    return stack([heading, planWhy(width)]);
  }
  if (state.view === "inside") return stack([heading, ...planInside(width)]);
  if (!known.look) throw new Error("There is no attention to export yet.");
  return stack([heading, planHeading(), planAttention(width)]);
}

function takeSnapshot() {
  return {
    state: { ...state, layout: state.view === "translate" ? state.layout : "" }, page: { ...known.page }, path: known.path, notes: known.notes, kept: known.kept,
    sentences: known.sentences.map(({ source, space, text, alternatives, alignment, sure, confidence, doubts, machine }) =>
      ({ source, space, text, alternatives, alignment, sure, confidence, doubts, machine })),
    attention: known.look ? known.answer : null, why: known.why,
    inside: state.view === "inside" ? known.inside : null,
    runs: state.view === "training" ? known.runs : [],
    broken: state.view === "break" ? Object.fromEntries(Object.entries(known.broken).map(([name, { look, ...answer }]) => [name, answer])) : {},
  };
}

// A function in place of a text, since “$” means something in a replacement.
async function writeFile(data) {
  const text = JSON.stringify(data).toWellFormed().replace(/</g, "\\u003c");
  return (await askText("shell")).replace("@SNAPSHOT@", () => text);
}
async function toHtml() {
  if (isFrozen) return `<!doctype html>\n${document.documentElement.outerHTML}`;
  if (state.view === "inside") await packInside();
  return writeFile(takeSnapshot());
}

// What a step shows is there when the server has answered all that its view asks.
const isThere = () => {
  const { why, look, inside, sentences } = known;
  if (sentences.map(({ source, space }) => source + space).join("") !== state.text) return false;
  if (state.view === "why") return Boolean(why) && (why.isExact || why.numMasks >= why.ofMasks);
  const asked = { attention: look, inside };
  return !(state.view in asked) || Boolean(asked[state.view]);
};
async function waitUntilThere() {
  const end = Date.now() + MOST_SECONDS * 1000;
  do await new Promise(resolve => setTimeout(resolve, 100));
  while (!isThere() && Date.now() < end);
  if (!isThere()) throw new Error("The server took too long for this lesson; try again.");
}
// All steps of a lesson, each with what the page shows once it was answered.
async function lessonToHtml() {
  const lesson = current(), before = { ...state }, steps = [];
  try {
    for (const place of lesson.steps.keys()) {
      toast(`Step ${place + 1} of ${lesson.steps.length} …`);
      change({ ...stateAt(lesson, place + 1), at: place + 1 });
      await waitUntilThere();
      if (state.view === "inside") await packInside();
      steps.push(takeSnapshot());
    }
  } finally { change({ ...before, said: {} }); }
  return writeFile({ lesson: lesson.id, steps });
}
function toSvg(plan) {
  const pen = new SvgPen(plan.width, plan.height);
  plan.draw(pen, isDark(), null);
  return pen.toString();
}
function toPng(plan) {
  const canvas = document.createElement("canvas");
  const most = Math.sqrt(16e6 / (plan.width * plan.height));
  plan.draw(new CanvasPen(canvas, plan.width, plan.height, Math.min(2, most)), isDark(), null);
  return new Promise((resolve, reject) => canvas.toBlob(blob => blob ? resolve(blob) : reject(new Error("The picture is too large for this browser.")), "image/png"));
}

async function exportView(format) {
  try {
    if (format === "lesson") {
      save(`dragoman-lesson-${state.lesson}.html`, await lessonToHtml(), "text/html");
      return complain(null);
    }
    const plan = format === "html" || textFiles[format] ? null : planView();
    if (!["training", "break"].includes(state.view) && !focused()?.text) throw new Error("There is nothing to export yet.");
    if (textFiles[format]) {
      const [ending, type, write] = textFiles[format];
      return save(`translation.${ending}`, write(), type);
    }
    const content = format === "html" ? await toHtml() : format === "svg" ? toSvg(plan) : await toPng(plan);
    save(`dragoman-${state.view}.${format}`, content, { html: "text/html", svg: "image/svg+xml", png: "image/png" }[format]);
    complain(null);
  } catch (error) { complain(error); }
}

export function startExport() {
  const menu = find("export-menu"), button = find("export"), items = [...menu.querySelectorAll("[role=menuitem]")];
  const open = isOpen => {
    menu.hidden = !isOpen;
    button.setAttribute("aria-expanded", isOpen);
    for (const item of items) if (textFiles[item.dataset.format]) item.hidden = state.view !== "translate";
    find("export-lesson").hidden = isFrozen || !current();
    if (isOpen) items[0].focus();
  };
  if (isFrozen) items[0].hidden = true;
  button.onclick = () => open(menu.hidden);
  menu.onclick = event => {
    const format = event.target.closest("[data-format]")?.dataset.format;
    if (!format) return;
    open(false);
    button.focus();
    exportView(format);
  };
  menu.onkeydown = event => {
    const there = items.filter(item => !item.hidden), at = there.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (event.key === "Escape") { open(false); button.focus(); }
    else if (next !== undefined) { event.preventDefault(); there.at(next % there.length).focus(); }
  };
  document.addEventListener("pointerdown", event => { if (!menu.parentNode.contains(event.target)) open(false); });
  find("share").hidden = isFrozen;
  find("share").onclick = async () => {
    const { link, left, choices } = makeLink(), whole = new URL(link, location.href).href;
    if (!left) write();
    await copyText(whole, left ? `Link copied, but ${left.toLocaleString("en")} characters at the end${choices ? ` and ${choices} of your choices` : ""} did not fit: export a file to hand on all.` : "Link copied");
  };
}
