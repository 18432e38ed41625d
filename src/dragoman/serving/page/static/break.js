// Break it: the same sentence by the whole model and by models that lack one part each.
import { complain, debounce, fill, find, make, markedText, say, segments } from "./dom.js";
import { brief, counted, fixed, span, whole } from "./wording.js";
import { ask, isFrozen, snapshot } from "./server.js";
import { change, known, on, onChange, state } from "./state.js";
import { pile, planText, stack } from "./pictures.js";
import { lookOf, planMean } from "./stages.js";
import { wrap } from "./pen.js";
import { Picture } from "./canvas.js";

const kinds = [["cross", "Cross"], ["encoder", "Encoder"], ["decoder", "Decoder"]];
const parts = {}, cards = new Map();
let request = null, askedFor = "";

const models = () => known.page.broken.models;
const chosen = () => state.broken ? state.broken.split("|") : models().slice(1).map(model => model.name);
const shownModels = () => models().filter((model, place) => !place || chosen().includes(model.name));
const textNow = () => state.trial || known.page.broken.examples[0]?.[0] || "";

// What all are made to say while one looks into them, so that they can be compared: the reference,
// or else what the whole model says.
const referenceNow = () => known.page.broken.examples.find(([source]) => source === textNow())?.[1];
const sayNow = () => referenceNow() ?? known.broken[models()[0].name]?.translation ?? "";

async function fetchAll() {
  if (isFrozen || state.view !== "break" || !known.page.broken) return;
  const text = textNow().trim(), wanted = JSON.stringify([text, shownModels().map(model => model.name)]);
  if (!text || askedFor === wanted) return drawBreak();
  request?.abort();
  request = new AbortController();
  askedFor = wanted;
  if (known.brokenFor !== text) Object.assign(known, { broken: {}, brokenFor: text });
  drawBreak();
  try {
    for (const { name } of shownModels()) {
      if (known.broken[name]) continue;
      known.broken[name] = await ask("broken", { model: name, text, say: sayNow() }, request.signal);
      drawBreak();
    }
    complain(null);
    say(`Translated by ${counted(shownModels().length, "model")}`);
  } catch (error) {
    if (error.name !== "AbortError") askedFor = "";
    complain(error);
  }
}

function build() {
  for (const name of ["switches", "cards"]) parts[name] = make("div", { className: name });
  parts.said = make("p", { className: "faint hint" });
  parts.none = make("div", { className: "empty" });
  parts.controls = make("div", { className: "controls" });
  find("break").replaceChildren(make("h2", { className: "hidden" }, "Break it"), parts.none, parts.controls, parts.switches, parts.said, parts.cards);
  if (!known.page.broken) {
    parts.none.append(make("p", {}, "What is each part of the Transformer good for? Seven small models, each without one of them, answer that."),
      make("p", {}, "Train them, in a few minutes: ", make("code", {}, "dragoman paper broken"), ". Then start the server with ", make("code", {}, "--broken broken-models"), "."));
    return;
  }
  const { examples, corpus, updates } = known.page.broken;
  const text = make("input", { value: textNow(), "aria-label": "Sentence to translate", dir: "auto", className: "sentence-input", maxLength: 400, disabled: isFrozen });
  const soon = debounce(300, fetchAll);
  text.oninput = () => { change({ trial: text.value }); soon(); };
  const list = make("select", { "aria-label": "Held-out sentences", hidden: isFrozen });
  fill(list, [["", "Another sentence …"], ...examples.map(([source]) => [source, source])], "");
  list.onchange = () => {
    if (!list.value) return;
    text.value = list.value;
    change({ trial: list.value });
    list.value = "";
    fetchAll();
  };
  parts.text = text;
  parts.controls.append(make("label", { className: "grow" }, "Sentence ", text), list,
    segments("broken-kind", "Attention", kinds, kinds.some(([kind]) => kind === state.kind) ? state.kind : "cross", kind => { change({ kind }); drawBreak(); }));
  parts.switches.append(...models().slice(1).map(switchFor));
  parts.cards.after(make("p", { className: "faint note" }, `All were trained alike on ${corpus}: ${counted(updates, "update")} each. BLEU is of held-out sentences. The page trains nothing: that is for the command, since whoever can see the page could keep the machine busy.`));
}

function switchFor(model) {
  const button = make("button", { className: "pill", "aria-pressed": chosen().includes(model.name), disabled: isFrozen }, model.title);
  button.onclick = () => {
    const now = chosen(), next = now.includes(model.name) ? now.filter(name => name !== model.name) : [...now, model.name];
    const isAll = next.length === models().length - 1;
    change({ broken: isAll ? "" : next.join("|") || "none" });
    drawBreak();
    fetchAll();
  };
  button.model = model.name;
  return button;
}

// A card of a model: made once, filled when its answer is there.
function cardOf(model) {
  if (cards.has(model.name)) return cards.get(model.name);
  const picture = new Picture(`Attention: ${model.title}`, { hint: "The last layer, the mean of its heads." });
  const told = make("p", { className: "result", dir: "auto" }), bar = make("meter", { min: 0, max: 100, value: model.bleu, "aria-label": `BLEU of ${model.title}` });
  const { published } = model, base = models()[0].published;
  const row = published ? `there ${fixed(published.bleu, 1)} BLEU${base && published.bleu !== base.bleu ? `, the base model ${fixed(base.bleu, 1)}` : ""}` : "no figure there";
  const element = make("section", { className: "card" }, make("h3", {}, model.title), make("p", { className: "faint" }, model.change), told,
    make("p", { className: "figures" }, bar, ` ${fixed(model.bleu, 1)} BLEU · perplexity ${brief(model.perplexity)} · ${whole(model.parameters)} parameters · trained in ${span(model.seconds)}`),
    picture.element, make("p", { className: "faint paper" }, make("b", {}, model.section), `: ${model.says} (${row})`));
  cards.set(model.name, { element, picture, told });
  return cards.get(model.name);
}

function drawCard(name) {
  const model = models().find(each => each.name === name), { picture, told } = cardOf(model);
  const answer = known.broken[name], first = known.broken[models()[0].name], isFirst = name === models()[0].name;
  const reference = referenceNow();
  told.replaceChildren(...(!answer ? ["…"] : !answer.translation ? [make("span", { className: "faint" }, "says nothing")]
    : isFirst || !first ? [answer.translation] : markedText(first.translation, answer.translation)));
  if (isFirst && reference && answer) told.append(make("span", { className: "faint reference" }, ` reference: ${reference}`));
  const look = answer && (answer.look ??= lookOf(answer));
  picture.element.hidden = !look;
  if (!look) return;
  const kind = look.kinds[state.kind] ? state.kind : Object.keys(look.kinds)[0];
  picture.hint = look.remark ? `${look.remark[0].toUpperCase()}${look.remark.slice(1)}.` : "The last layer, the mean of its heads.";
  picture.show(width => planMean(look, kind, width, 30), picture.at);
}

export function drawBreak() {
  if (state.view !== "break" || !parts.cards || !known.page.broken) return;
  for (const button of parts.switches.children) button.setAttribute("aria-pressed", chosen().includes(button.model));
  if (document.activeElement !== parts.text) parts.text.value = textNow();
  const elements = shownModels().map(model => cardOf(model).element);
  if (elements.length !== parts.cards.children.length || elements.some((element, place) => parts.cards.children[place] !== element)) parts.cards.replaceChildren(...elements);
  for (const { name } of shownModels()) drawCard(name);
  const said = known.broken[models()[0].name]?.said;
  parts.said.textContent = said ? `Attention is shown while each is made to say “${said}”` : "";
}

export function planBreak(width) {
  const told = shownModels().filter(model => known.broken[model.name]);
  if (!told.length) throw new Error("There is nothing to export yet.");
  return stack([planText([textNow()], { size: 15, weight: 600 }), ...told.map(model => {
    const answer = known.broken[model.name], look = answer.look ??= lookOf(answer);
    const lines = [`${model.title}: ${answer.translation || "says nothing"}`, `${fixed(model.bleu, 1)} BLEU, perplexity ${brief(model.perplexity)}`];
    const kind = look?.kinds[state.kind] ? state.kind : "cross";
    return pile([planText(lines.flatMap(line => wrap(line, width, { size: 13 })), { size: 13 }), ...(look ? [planMean(look, kind, width, 26)] : [])], width);
  })]);
}

export function startBreak() {
  if (isFrozen) known.broken = snapshot.broken ?? {};
  build();
  on("theme", drawBreak);
  onChange(changes => { if ("view" in changes) { drawBreak(); fetchAll(); } });
  drawBreak();
  fetchAll();
}
