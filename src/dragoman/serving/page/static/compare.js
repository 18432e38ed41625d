// Two or three models or beams side by side, and where they differ.
import { complain, fill, make, markedText } from "./dom.js";
import { ask } from "./server.js";
import { change, known, on, state } from "./state.js";
import { keep, keptOf } from "./sentences.js";
import { addDrawer, small } from "./bench.js";
import { settings } from "./translate.js";

const most = 3;
let drawer, request, results = [], asked = "";

const fitting = () => known.page.models.filter(model => model.source === known.path[0] && model.target === state.to);
const parse = () => state.compare.split(",").filter(Boolean).slice(0, most).map(each => {
  const [model, beam] = each.split("@");
  return { model: fitting().some(({ name }) => name === model) ? model : "", beam: Number(beam) || 0 };
});
// Unless somebody chose: all models of the pair, or one with a wide beam and with none.
function columns() {
  if (state.compare) return parse();
  const names = fitting().map(model => model.name);
  return names.length > 1 ? names.slice(0, most).map(model => ({ model, beam: 0 })) : [{ model: "", beam: 0 }, { model: "", beam: 1 }];
}
const store = list => { change({ compare: list.map(({ model, beam }) => `${model}@${beam}`).join(",") }); drawer.draw(); };

async function fetchAll(list) {
  const wanted = JSON.stringify([list, state.text, settings()]);
  if (wanted === asked) return;
  asked = wanted;
  request?.abort();
  request = new AbortController();
  const { signal } = request;
  try {
    results = await Promise.all(list.map(({ model, beam }) => ask("translate", { text: state.text, ...settings(), source: known.path[0], model, beam: beam || undefined, alternatives: 0 }, signal)));
    drawer.draw();
  } catch (error) {
    if (error.name === "AbortError") return;
    asked = "";
    complain(error);
  }
}
function columnHead(list, place) {
  const { model, beam } = list[place], name = make("select", { "aria-label": `Model of column ${place + 1}` }), width = make("select", { "aria-label": `Beam of column ${place + 1}` });
  const set = changes => store(list.map((each, other) => other === place ? { ...each, ...changes } : each));
  fill(name, [["", "Automatic"], ...fitting().map(each => [each.name, each.name])], model);
  fill(width, [[0, "beam as trained"], ...[1, 2, 4, 8, 16].filter(each => each <= known.page.limits.beam).map(each => [each, `beam ${each}`])], beam);
  name.onchange = () => set({ model: name.value });
  width.onchange = () => set({ beam: Number(width.value) });
  return make("th", { scope: "col" }, name, " ", width, list.length > 2 ? small("✕", () => store(list.filter((_, other) => other !== place)), { className: "quiet small", "aria-label": `Remove column ${place + 1}` }) : null);
}
function draw(panel) {
  if (!known.path.length || !state.text.trim()) return panel.replaceChildren(make("h2", {}, "Compare"), make("p", { className: "faint" }, "Type a text above to compare its translations."));
  const list = columns(), focus = panel.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  const isThere = results.length === list.length && results.every(({ sentences }) => sentences.length === known.sentences.length);
  const cell = (place, column) => {
    const text = results[column].sentences[place].text, isSame = text === known.sentences[place].text;
    return make("td", { dir: "auto", lang: state.to }, ...(column ? markedText(results[0].sentences[place].text, text) : [text]), " ",
      isSame ? make("span", { className: "faint" }, "✓ taken") : small("Take", () => keep(place, { text }), { "aria-label": `Take column ${column + 1} for “${text.slice(0, 60)}”` }));
  };
  // What somebody kept or wrote stands beside what the models say.
  const hasOwn = isThere && known.sentences.some(keptOf);
  const own = place => hasOwn ? [make("td", { dir: "auto", lang: state.to }, ...(keptOf(known.sentences[place]) ? markedText(results[0].sentences[place].text, known.sentences[place].text) : []))] : [];
  const rows = isThere ? known.sentences.flatMap((sentence, place) => sentence.source ? [make("tr", {}, make("th", { scope: "row", dir: "auto" }, sentence.source), ...list.map((_, column) => cell(place, column)), ...own(place))] : []) : [];
  const differing = isThere ? known.sentences.filter((_, place) => new Set(results.map(({ sentences }) => sentences[place].text)).size > 1).length : 0;
  panel.replaceChildren(make("h2", {}, "Compare"),
    make("p", { className: "faint", role: "status" }, isThere ? `${differing} of ${rows.length} ${rows.length === 1 ? "sentence differs" : "sentences differ"}; what differs from the first column is marked.` : "translating …"),
    make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Translations side by side" }, make("table", { className: "compared" }, make("thead", {}, make("tr", {}, make("td"), ...list.map((_, place) => columnHead(list, place)), ...(hasOwn ? [make("th", { scope: "col" }, "yours")] : []))), make("tbody", {}, ...rows))),
    make("p", { className: "actions" }, small("Add a column", () => store([...list, { model: "", beam: 4 }]), { disabled: list.length >= most })));
  if (focus) panel.querySelector(`[aria-label="${CSS.escape(focus)}"]`)?.focus();
  fetchAll(list);
}
export function startCompare() {
  drawer = addDrawer("compared", "Compare", "Compare models or beams", draw);
  on("drawn", () => drawer.draw());
  if (state.compare) on("drawn", openOnce);
}
let wasOpened = false;
function openOnce() {
  if (wasOpened || !known.path.length) return;
  wasOpened = true;
  drawer.open(true);
}
