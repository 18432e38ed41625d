// A picture on the page: drawn sharp at any width, explored by pointer and by arrow keys.
import { make } from "./dom.js";
import { CanvasPen } from "./pen.js";
import { isDark } from "./colours.js";

const all = new Set();
export const redrawAll = () => all.forEach(picture => picture.redraw());
const sizes = new ResizeObserver(entries => {
  for (const { target } of entries) target.picture.resize();
});
const steps = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };

export class Picture {
  // pick: what to do where somebody clicks or presses Enter.
  constructor(name, { pick, hint = "" } = {}) {
    this.canvas = make("canvas", { tabIndex: 0, role: "application", "aria-label": `${name}. Arrow keys explore it.` });
    this.readout = make("p", { className: "readout", "aria-live": "polite" });
    this.frame = make("div", { className: "frame" }, this.canvas);
    this.element = make("figure", { className: "picture" }, this.frame, this.readout);
    this.element.picture = this;
    this.name = name;
    this.hint = hint;
    this.pick = pick;
    this.at = null;
    this.canvas.onpointermove = event => this.point(this.where(event));
    this.canvas.onpointerleave = () => this.point(null);
    this.canvas.onclick = event => { const at = this.where(event); this.point(at); if (at) this.pick?.(at); };
    this.canvas.onkeydown = event => this.press(event);
    this.canvas.onblur = () => this.point(null);
  }
  // planOf: from the width that there is to what is drawn.
  show(planOf, at = null) {
    this.planOf = planOf;
    this.at = at;
    all.add(this);
    sizes.observe(this.element);
    this.resize(true);
  }
  resize(isNew = false) {
    const width = Math.floor(this.frame.clientWidth);
    if (!this.planOf || !width || (!isNew && width === this.planned)) return;
    this.planned = width;
    this.plan = this.planOf(width);
    this.redraw();
  }
  redraw() {
    if (!this.plan || !this.canvas.isConnected) return;
    const scale = Math.min(3, window.devicePixelRatio || 1);
    const { width, height } = this.plan;
    const pen = new CanvasPen(this.canvas, width, height, scale);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.plan.draw(pen, isDark(), this.at);
    const told = this.at ? this.plan.tell(this.at) : this.hint;
    if (this.readout.textContent !== told) this.readout.textContent = told;
  }
  where(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.plan?.hit(event.clientX - box.left, event.clientY - box.top) ?? null;
  }
  point(at) {
    if (JSON.stringify(at) === JSON.stringify(this.at)) return;
    this.readout.ariaLive = "polite";
    this.onPoint?.(at);
    this.follow(at);
  }
  // The same in silence, since somebody points at another picture.
  follow(at) {
    if (document.activeElement !== this.canvas) this.readout.ariaLive = "off";
    this.at = at;
    this.canvas.style.cursor = at && this.pick ? "pointer" : "";
    cancelAnimationFrame(this.waiting);
    this.waiting = requestAnimationFrame(() => this.redraw());
  }
  press(event) {
    const step = steps[event.key];
    if (step && this.plan?.move) {
      event.preventDefault();
      this.point(this.plan.move(this.at, ...step));
    } else if ((event.key === "Enter" || event.key === " ") && this.at) {
      event.preventDefault();
      this.pick?.(this.at);
    } else if (event.key === "Escape") this.point(null);
  }
}

// The numbers of a picture as a table, made when somebody opens it.
export function tableOf(build) {
  const box = make("details", { className: "numbers" }, make("summary", {}, "The numbers as a table"));
  box.ontoggle = () => {
    box.querySelector("div")?.remove();
    if (!box.open) return;
    const { caption, columns, rows } = build();
    const head = make("tr", {}, make("td"), ...columns.map(text => make("th", { scope: "col" }, make("bdi", {}, text))));
    const body = rows.map(([name, ...cells]) => make("tr", {}, make("th", { scope: "row" }, make("bdi", {}, name)), ...cells.map(cell => make("td", {}, cell))));
    box.append(make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption },
      make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body))));
  };
  return box;
}
