// The tools of the desk, in the order in which they stand there, and the count of characters.
import { find } from "./dom.js";
import { isFrozen } from "./server.js";
import { known, on, state } from "./state.js";
import { spoken } from "./sentences.js";
import { startTranslate } from "./translate.js";
import { startRows } from "./rows.js";
import { startDoubts } from "./doubts.js";
import { startGlossary } from "./glossary.js";
import { startFiles } from "./files.js";
import { startPast } from "./past.js";
import { startCompare } from "./compare.js";
import { startSpeech } from "./speech.js";
import { startKeys } from "./keys.js";

const counted = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
function showCount() {
  const length = [...state.text].length, most = known.page.limits.characters, sentences = spoken().length;
  const words = state.text.split(/\s+/).filter(Boolean).length;
  find("count").textContent = [most && !isFrozen ? `${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters` : counted(length, "character"),
    counted(words, "word"), sentences > 1 ? counted(sentences, "sentence") : ""].filter(Boolean).join(" · ");
  find("count").classList.toggle("over", Boolean(most) && length > most);
}

export function startDesk() {
  startRows();
  startDoubts();
  on("drawn", showCount);
  on("typed", showCount);
  if (!isFrozen) for (const start of [startGlossary, startFiles, startPast, startCompare, startKeys]) start();
  startTranslate();
  startSpeech();
  showCount();
}
