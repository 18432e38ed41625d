// A glossary that this browser keeps: terms that must appear, for each pair of languages.
import { complain, find, make, recall, retain, save, toast } from "./dom.js";
import { emit, known, on, onChange, state } from "./state.js";
import { addDrawer, fileInput, small } from "./bench.js";
import { nameOf } from "./translate.js";

const longestTerm = 200, mostSent = 2000;
let glossaries = recall("glossary", {}), told = "", drawer;

const pairNow = () => `${known.path[0] ?? (state.from === "auto" ? known.page.models[0]?.source : state.from)}>${state.to}`;
export const termsNow = () => glossaries[pairNow()] ?? [];
export const termsOf = (from, to) => glossaries[`${from}>${to}`] ?? [];
export const hasTermsInto = to => Object.keys(glossaries).some(pair => pair.split(">")[1] === to);
function put(pair, terms, message = "") {
  told = message;
  if (terms.length) glossaries[pair] = terms; else delete glossaries[pair];
  if (!retain("glossary", glossaries)) toast("This browser has no room for the glossary: it is kept until the page is left.");
  drawer.draw();
  emit("again");
}
const clean = text => text.replace(/\s+/g, " ").trim();
function merge(terms, added) {
  const all = new Map(terms.map(pair => [pair[0].toLowerCase(), pair]));
  for (const pair of added) all.set(pair[0].toLowerCase(), pair);
  return [...all.values()].sort((one, other) => one[0].localeCompare(other[0]));
}
export function addTerm(term, translation) {
  const pair = [clean(term), clean(translation)];
  if (!pair[0] || !pair[1] || pair.some(side => side.length > longestTerm)) return complain(new Error(`A term and its translation have from 1 to ${longestTerm} characters.`));
  put(pairNow(), merge(termsNow(), [pair]));
  toast(`“${pair[0]}” becomes “${pair[1]}” from now on.`);
}

export function readTsv(text) {
  const found = [], odd = [];
  text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/).forEach((line, number) => {
    if (!line.trim()) return;
    const sides = line.split("\t").map(clean);
    if (sides.length >= 2 && sides[0] && sides[1] && sides[0].length <= longestTerm && sides[1].length <= longestTerm) found.push([sides[0], sides[1]]);
    else odd.push(number + 1);
  });
  return { found, odd };
}
async function importTsv([file]) {
  if (!file) return;
  const { found, odd } = readTsv(await file.text());
  let message = `${found.length} ${found.length === 1 ? "term" : "terms"} taken from ${file.name}.`;
  if (odd.length) message += ` Line ${odd[0]}${odd.length > 1 ? ` and ${odd.length - 1} more` : ""} left out: a line is a term, a tab and its translation.`;
  put(pairNow(), merge(termsNow(), found), message);
}

function removeAll(pair) {
  const gone = glossaries[pair];
  put(pair, []);
  toast(`${gone.length} ${gone.length === 1 ? "term" : "terms"} removed.`, { label: "Undo", call: () => put(pair, merge(glossaries[pair] ?? [], gone)) });
}

function draw(panel) {
  const pair = pairNow(), [from, to] = pair.split(">"), terms = termsNow();
  const input = (label, lang) => make("input", { placeholder: label, "aria-label": label, lang, dir: "auto", maxLength: longestTerm, required: true });
  const one = input(`Term in ${nameOf(from)}`, from), other = input(`Its translation in ${nameOf(to)}`, to);
  const form = make("form", { className: "own" }, one, other, make("button", { className: "small" }, "Add"));
  form.onsubmit = event => { event.preventDefault(); addTerm(one.value, other.value); panel.querySelector("input").focus(); };
  const remove = term => put(pair, terms.filter(each => each[0] !== term));
  panel.replaceChildren(
    make("h2", {}, `Glossary, ${nameOf(from)} → ${nameOf(to)}`),
    make("p", { className: "faint" }, "Where a term occurs, its translation must appear. Kept in this browser, sent with each request."),
    form,
    make("p", { role: "status" }, told),
    make("ul", { className: "terms" }, ...terms.map(([term, translation]) => make("li", {}, make("span", { lang: from, dir: "auto" }, term), " → ", make("span", { lang: to, dir: "auto" }, translation),
      small("✕", () => remove(term), { "aria-label": `Remove ${term}`, className: "quiet small" })))),
    make("p", { className: "actions" }, ...fileInput("Take a TSV file", ".tsv,.txt,text/tab-separated-values", importTsv),
      small("Save as TSV", () => save(`glossary-${from}-${to}.tsv`, terms.map(sides => `${sides.join("\t")}\n`).join(""), "text/tab-separated-values"), { disabled: !terms.length }),
      small("Remove all", () => removeAll(pair), { disabled: !terms.length })));
}

// From the box of choices: the word and what it translates.
function addAction(row, index, word) {
  const sentence = known.sentences[index];
  const sources = sentence.links.filter(([, to]) => to === word).map(([from]) => from).sort((a, b) => a - b);
  const bare = text => text.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
  row.append(small("Add to glossary", () => {
    const box = find("choices");
    const one = make("input", { value: bare(sources.map(at => sentence.sourceWords[at].text).join(" ")), "aria-label": "Term" }), other = make("input", { value: bare(sentence.targetWords[word].text), "aria-label": "Its translation" });
    const form = make("form", { className: "own" }, one, "→", other, make("button", { className: "small" }, "Add"));
    form.onsubmit = event => { event.preventDefault(); emit("close-choices"); addTerm(one.value, other.value); };
    box.replaceChildren(make("p", { className: "faint" }, "Wherever the first occurs, the second must appear"), form);
    one.select();
  }));
}

export function startGlossary() {
  drawer = addDrawer("glossary", "Glossary", "Glossary", draw);
  on("actions", addAction);
  on("asking", asked => {
    const lower = state.text.toLowerCase(), isThere = ([term]) => lower.includes(term.toLowerCase());
    const terms = {};
    for (const [pair, entries] of Object.entries(glossaries)) {
      const [from, to] = pair.split(">"), found = entries.filter(isThere).slice(0, mostSent);
      if (to === state.to && (!asked.source || asked.source === from) && found.length) terms[from] = found;
    }
    if (Object.keys(terms).length) asked.terms = terms;
  });
  on("translation", () => drawer.draw());
  onChange(changes => { if ("to" in changes || "from" in changes) drawer.draw(); });
}
