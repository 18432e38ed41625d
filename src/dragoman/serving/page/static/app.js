// Where the page begins.
import { complain, find } from "./dom.js";
import { onScheme } from "./colours.js";
import { ask, isFrozen, snapshot, useKey } from "./server.js";
import { change, emit, known, on, onChange, state } from "./state.js";
import { redrawAll } from "./canvas.js";
import { startDesk } from "./desk.js";
import { startAttention } from "./attention.js";
import { startWhy } from "./why.js";
import { startInside } from "./inside.js";
import { startBreak } from "./break.js";
import { startTraining } from "./training.js";
import { startMeanings } from "./meanings.js";
import { startLessons } from "./lessons.js";
import { startExport } from "./export.js";

const views = ["translate", "attention", "why", "inside", "break", "training", "lessons"];
const themes = ["", "light", "dark"], signs = { "": "◐", light: "☀", dark: "☾" };
const themeNames = { "": "as the system says", light: "light", dark: "dark" };

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  try { localStorage.setItem("dragoman-theme", theme); } catch { /* until the page is left */ }
  const button = find("theme");
  button.textContent = signs[theme];
  button.title = `Colours: ${themeNames[theme]}`;
  button.setAttribute("aria-label", button.title);
  redrawAll();
  emit("theme");
}

function showView() {
  const there = views.filter(view => !find(`tab-${view}`).hidden);
  if (!there.includes(state.view)) state.view = there[0];
  for (const view of views) {
    const tab = find(`tab-${view}`), isHere = view === state.view;
    tab.setAttribute("aria-selected", isHere);
    tab.tabIndex = isHere ? 0 : -1;
    find(view).hidden = !isHere;
  }
  find("desk").hidden = ["training", "break", "lessons"].includes(state.view);
  document.body.dataset.view = state.view;
}

function startViews() {
  const hasModels = known.page.models.length > 0;
  if (!hasModels && !isFrozen) for (const view of views) if (view !== "training") find(`tab-${view}`).hidden = true;
  if (isFrozen) {
    const has = { translate: snapshot.sentences?.length, attention: snapshot.attention, why: snapshot.why, inside: snapshot.inside, break: Object.keys(snapshot.broken ?? {}).length, training: snapshot.runs?.length };
    for (const view of views) find(`tab-${view}`).hidden = !has[view];
  }
  const tabs = find("views");
  tabs.onclick = event => { const { view } = event.target.dataset; if (view) change({ view }); };
  tabs.onkeydown = event => {
    const there = views.filter(view => !find(`tab-${view}`).hidden), at = there.indexOf(state.view);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1 + there.length, Home: 0, End: there.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    change({ view: there[next % there.length] });
    find(`tab-${state.view}`).focus();
  };
}

async function start() {
  let theme = "";
  try { theme = localStorage.getItem("dragoman-theme") ?? ""; } catch { /* as the system says */ }
  setTheme(themes.includes(theme) ? theme : "");
  find("theme").onclick = () => setTheme(themes[(themes.indexOf(document.documentElement.dataset.theme ?? "") + 1) % 3]);
  onScheme(() => { redrawAll(); emit("theme"); });
  on("key", () => { find("key-form").hidden = false; find("key").focus(); });
  find("key-form").onsubmit = event => {
    event.preventDefault();
    useKey(find("key").value);
    find("key-form").hidden = true;
    emit("key-given");
  };
  try {
    known.page = isFrozen ? snapshot.page : await ask("page");
  } catch (error) {
    find("loading").hidden = true;
    if (error.kind === "unreachable" || error.kind === "not_ready") setTimeout(start, 3000);
    return complain(error);
  }
  complain(null);
  startViews();
  showView();
  onChange(changes => { if ("view" in changes) showView(); });
  if (known.page.models.length || isFrozen) startDesk();
  startAttention();
  startWhy();
  startInside();
  startBreak();
  startTraining();
  startMeanings();
  startLessons();
  startExport();
  find("loading").hidden = true;
  document.body.dataset.ready = "yes";
}
start();
