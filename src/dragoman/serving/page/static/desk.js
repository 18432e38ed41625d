// The tools of the desk, in the order in which they stand there, and the count of characters.
import { find, make, say } from "./dom.js";
import { isFrozen } from "./server.js";
import { change, known, on, state } from "./state.js";
import { spoken } from "./sentences.js";
import { isOver, startTranslate } from "./translate.js";
import { startRows } from "./rows.js";
import { startDoubts } from "./doubts.js";
import { startGlossary } from "./glossary.js";
import { startFiles } from "./files.js";
import { startPast, takeDraft } from "./past.js";
import { startCompare } from "./compare.js";
import { startSpeech } from "./speech.js";
import { startKeys } from "./keys.js";

const counted = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
// From so many sentences on, rows are easier to work in.
const longText = 12;
let wasOver = false;
function showCount() {
  const length = [...state.text].length, most = known.page.limits.characters, sentences = spoken().length;
  const words = state.text.split(/\s+/).filter(Boolean).length;
  const told = isOver() ? [`The text has ${length.toLocaleString("en")} characters, but ${most.toLocaleString("en")} are the most: translate it as a file, or in parts.`] : [most && !isFrozen ? `${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters` : counted(length, "character"),
    counted(words, "word"), sentences > 1 ? counted(sentences, "sentence") : ""];
  const rows = sentences >= longText && !state.layout && !isOver() ? [" · ", make("button", { className: "link", type: "button", onclick: () => change({ layout: "rows" }) }, "work in rows")] : [];
  find("count").replaceChildren(told.filter(Boolean).join(" · "), ...rows);
  find("count").classList.toggle("over", isOver());
  if (isOver() && !wasOver) say(find("count").textContent);
  wasOver = isOver();
}

export function startDesk() {
  startRows();
  startDoubts();
  on("drawn", showCount);
  on("typed", showCount);
  if (!isFrozen) for (const start of [startGlossary, startFiles, startPast, startCompare, startKeys]) start();
  if (!isFrozen) takeDraft();
  startTranslate();
  startSpeech();
  showCount();
}
