// A long text as rows: a sentence, its translation, how sure it is, and whether it is kept.
import { find, make, segments } from "./dom.js";
import { isFrozen } from "./server.js";
import { change, emit, known, on, onChange, state } from "./state.js";
import { keptOf, lock, numberOf, release, spoken } from "./sentences.js";
import { remember } from "./undo.js";
import { doubtMark, keepingFocus, targetSpan, trustMark, wordSpans } from "./words.js";

function drawRows() {
  const box = find("rows"), y = scrollY;
  const head = make("tr", {}, ...["No.", "Text", "Translation", "Kept"].map(name => make("th", { scope: "col" }, name)));
  const body = make("tbody", {}, ...spoken().map(row));
  keepingFocus(box, () => box.replaceChildren(make("table", { className: "rows" }, make("caption", { className: "hidden" }, "Sentences and their translations"), make("thead", {}, head), body)));
  scrollTo(0, y);
}
function row(place) {
  const sentence = known.sentences[place], kept = keptOf(sentence);
  const keepButton = make("button", {
    className: "small", type: "button", disabled: isFrozen, "aria-pressed": Boolean(kept), "aria-label": `Keep the translation of sentence ${numberOf(place)}`,
    title: kept ? "Kept through changes; press for the model’s own" : "Keep this translation through changes",
    onclick: () => kept ? release(place) : lock(place),
  }, kept ? "kept" : "keep");
  const source = make("td", { className: "src", lang: known.path[0] ?? "", dir: "auto" }, make("span", { className: "own-text" }, ...wordSpans(sentence, place, "source")));
  source.ondblclick = () => editSource(place);
  return make("tr", { "data-place": place, className: place === state.sentence ? "focused" : "" },
    make("th", { scope: "row" }, String(numberOf(place))), source,
    make("td", { className: "dst", lang: state.to, dir: "auto" }, targetSpan(sentence, place), ...doubtMark(sentence)),
    make("td", {}, ...trustMark(sentence), keepButton));
}

// Write into a sentence of the text itself; all others keep what was chosen for them.
export function editSource(place) {
  const field = find("rows").querySelector(`tr[data-place="${place}"] .own-text`), sentence = known.sentences[place];
  if (!field || isFrozen) return;
  field.textContent = sentence.source;
  field.contentEditable = "plaintext-only";
  field.setAttribute("role", "textbox");
  field.setAttribute("aria-label", `Sentence ${numberOf(place)}. Enter takes it, Escape leaves it as it was.`);
  field.classList.add("editing");
  field.focus();
  let isDone = false;
  const finish = isTaken => {
    if (isDone) return;
    isDone = true;
    const written = field.textContent.replace(/\s+/g, " ").trim();
    field.classList.remove("editing");
    if (!isTaken || !written || written === sentence.source) return emit("redraw");
    remember();
    emit("put", known.sentences.map((each, other) => (other === place ? written : each.source) + each.space).join(""));
  };
  field.onblur = () => finish(true);
  field.onkeydown = event => {
    event.stopPropagation();
    if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); finish(true); }
    else if (event.key === "Escape") { event.preventDefault(); finish(false); }
  };
}

export function startRows() {
  const show = () => {
    document.body.dataset.layout = state.layout || "text";
    find("rows").hidden = state.layout !== "rows";
    if (!state.layout) find("rows").replaceChildren();
  };
  if (state.layout !== "rows") state.layout = "";
  find("bench").append(segments("layout", "Layout", [["", "Text"], ["rows", "Rows"]], state.layout, layout => change({ layout })));
  onChange(changes => {
    if (changes.layout === undefined) return;
    show();
    for (const input of document.querySelectorAll("[name=layout]")) input.checked = input.value === state.layout;
  });
  on("rows", drawRows);
  show();
}
