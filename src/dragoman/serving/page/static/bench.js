// The tools below the desk: buttons, and drawers of which one is open at a time.
import { find, make } from "./dom.js";

export function addTool(label, title, call) {
  const button = make("button", { className: "tool", type: "button", title, onclick: call }, label);
  find("bench").append(button);
  return button;
}
// A drawer is drawn when it is opened, and when draw() is called.
export function addDrawer(id, label, title, fillPanel) {
  const panel = make("section", { id, className: "drawer", "aria-label": title, hidden: true });
  const draw = () => { if (!panel.hidden) fillPanel(panel); };
  const button = addTool(label, title, () => open(panel.hidden));
  button.setAttribute("aria-expanded", "false");
  button.setAttribute("aria-controls", id);
  const open = isOpen => {
    for (const other of find("drawers").children)
      if (other !== panel && !other.hidden) document.querySelector(`[aria-controls="${other.id}"]`).click();
    panel.hidden = !isOpen;
    button.setAttribute("aria-expanded", isOpen);
    draw();
    if (isOpen) panel.querySelector("input, button, select")?.focus();
  };
  panel.onkeydown = event => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    open(false);
    button.focus();
  };
  find("drawers").append(panel);
  return { panel, draw, open, button };
}
export const small = (label, call, more = {}) => make("button", { className: "small", type: "button", onclick: call, ...more }, label);
export function fileInput(label, types, take, isMany = false) {
  const input = make("input", { type: "file", className: "hidden", accept: types, multiple: isMany, "aria-label": label, tabIndex: -1 });
  input.onchange = () => { take([...input.files]); input.value = ""; };
  return [small(label, () => input.click()), input];
}
