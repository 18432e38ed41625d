// What is shown, as a file that needs nothing else: HTML that is still alive, SVG or PNG.
import { complain, find, save, toast } from "./dom.js";
import { isDark } from "./colours.js";
import { CanvasPen, SvgPen, wrap } from "./pen.js";
import { askText, isFrozen } from "./server.js";
import { address, focused, known, state } from "./state.js";
import { planPairs, planText, stack } from "./pictures.js";
import { planAttention, planHeading } from "./attention.js";
import { planWhy } from "./why.js";
import { planBreak } from "./break.js";
import { planTraining } from "./training.js";

const width = 880;

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
  if (!known.look) throw new Error("There is no attention to export yet.");
  return stack([heading, planHeading(), planAttention(width)]);
}

function takeSnapshot() {
  return {
    state: { ...state }, page: { ...known.page }, path: known.path, notes: known.notes,
    sentences: known.sentences.map(({ source, space, text, alternatives, alignment, sure, best, confidence, bestConfidence }) => ({ source, space, text, alternatives, alignment, sure, best, confidence, bestConfidence })),
    attention: known.look ? known.answer : null, why: known.why,
    runs: state.view === "training" ? known.runs : [],
    broken: state.view === "break" ? Object.fromEntries(Object.entries(known.broken).map(([name, { look, ...answer }]) => [name, answer])) : {},
  };
}

async function toHtml() {
  if (isFrozen) return `<!doctype html>\n${document.documentElement.outerHTML}`;
  const data = JSON.stringify(takeSnapshot()).toWellFormed().replace(/</g, "\\u003c");
  const shell = await askText("shell");
  // A function, since “$” means something in a replacement.
  return shell.replace("@SNAPSHOT@", () => data);
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
    const plan = format === "html" ? null : planView();
    if (!["training", "break"].includes(state.view) && !focused()?.text) throw new Error("There is nothing to export yet.");
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
    const link = new URL(address(), location.href).href;
    history.replaceState(null, "", link);
    try {
      await navigator.clipboard.writeText(link);
      toast("Link copied");
    } catch { toast("The link is in the address bar."); }
  };
}
