// Texts translated before, kept in this browser if somebody wants that.
import { debounce, find, make, recall, retain, tick, toast } from "./dom.js";
import { heldSum, isLong, on, saidNow, state, sumOf } from "./state.js";
import { remember } from "./undo.js";
import { wholeTranslation } from "./sentences.js";
import { addDrawer, small } from "./bench.js";
import { isCurrent, openText } from "./translate.js";

const most = 100, atOnce = 300;
let entries = recall("history", null), drawer;

const note = debounce(3000, () => {
  const text = state.text.trim();
  if (entries === null || !text || !isCurrent()) return;
  const last = entries[0];
  const goesOn = last && last.from === state.from && last.to === state.to && (text.startsWith(last.text.trim()) || last.text.trim().startsWith(text));
  const entry = { time: Date.now(), from: state.from, to: state.to, text: state.text, translation: wholeTranslation().slice(0, 200), said: saidNow() };
  store([entry, ...entries.slice(goesOn ? 1 : 0)].slice(0, most));
});
function store(list) {
  entries = list;
  // What has room: the oldest make way.
  while (!retain("history", entries) && entries?.length) entries = entries.slice(0, Math.floor(entries.length / 2));
  drawer.draw();
}
// With a history, the desk as it was left is there again when the page is opened.
const draft = debounce(atOnce, () => {
  if (entries === null) return;
  const { text, from, to, model } = state;
  retain("draft", text.trim() ? { text, from, to, model, said: saidNow() } : null);
});
// The draft, if the address has no text, or names this one as held elsewhere.
export function takeDraft() {
  const kept = entries === null ? null : recall("draft", null), sum = heldSum();
  if (typeof kept?.text !== "string" || state.text || state.lesson || (sum && sum !== sumOf(kept.text))) return;
  const { text, from, to, model, said } = kept;
  Object.assign(state, { text, from, to, model, said: { ...said } });
  toast("Your last text is here again.");
}
const oneLine = text => text.replace(/\s+/g, " ").trim().slice(0, 90);

function draw(panel) {
  const open = entry => { remember(); openText(entry); toast("Taken from the history"); };
  panel.replaceChildren(make("h2", {}, "History"),
    tick("keep a history in this browser", entries !== null, isOn => { store(isOn ? [] : null); if (isOn) { note(); draft(); } else retain("draft", null); find("past").querySelector("input").focus(); }),
    make("p", { className: "faint" }, entries === null ? "Off: nothing is kept when the tab is closed. Switching it off again deletes it." : `The last ${most} texts; they leave this browser only to be translated. The text on the desk is there again in a new tab.`),
    make("ol", { className: "terms" }, ...(entries ?? []).map((entry, place) => make("li", {},
      make("button", { className: "other", type: "button", dir: "auto", title: new Date(entry.time).toLocaleString(), onclick: () => open(entry) },
        make("span", { className: "faint" }, `${entry.from} → ${entry.to} `), oneLine(entry.text), " ", make("span", { className: "faint" }, oneLine(entry.translation))),
      small("✕", () => store(entries.filter((_, other) => other !== place)), { className: "quiet small", "aria-label": `Forget text ${place + 1}` })))),
    ...(entries?.length ? [make("p", { className: "actions" }, small("Delete all", () => store([])))] : []));
}

export function startPast() {
  drawer = addDrawer("past", "History", "History", draw);
  on("translation", note);
  on("translation", draft);
  on("typed", draft);
  // A text that no address holds, with work of hands in it, would be lost.
  addEventListener("beforeunload", event => { if (entries === null && isLong() && Object.keys(saidNow()).length) event.preventDefault(); });
}
