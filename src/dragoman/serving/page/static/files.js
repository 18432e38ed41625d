// Files dropped onto the desk are translated with their layout, and come back to be saved.
import { complain, find, make, save } from "./dom.js";
import { ask, sendForm } from "./server.js";
import { onChange, state } from "./state.js";
import { addDrawer, fileInput, small } from "./bench.js";
import { hasTermsInto, termsOf } from "./glossary.js";

const pause = 700;
// Files in which the page can read which language they are in.
const readable = /\.(txt|md|markdown|html?|xhtml|srt|vtt|csv|tsv|tex|json|ya?ml)$/i, mostRead = 600;
let jobs = [], drawer, isRefused = false;
const wait = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));
const form = fields => {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value) made.append(name, value);
  return made;
};

// A glossary is one of two languages, so that of the file must be known.
async function detect({ file, to }) {
  if (!hasTermsInto(to) || !readable.test(file.name)) return "";
  const text = (await file.slice(0, 4 * mostRead).text()).slice(0, mostRead).toWellFormed();
  return text.trim() ? (await ask("translate", { text, target: to, alternatives: 0 }).catch(() => ({}))).source ?? "" : "";
}
async function makeGlossary(from, to) {
  const terms = from ? termsOf(from, to) : [];
  if (!terms.length) return "";
  const fields = { name: "page", source_lang: from, target_lang: to, entries: terms.map(sides => sides.join("\t")).join("\n"), entries_format: "tsv" };
  return (await (await sendForm("v2/glossaries", form(fields))).json()).glossary_id;
}
async function translate(job) {
  let glossary = "";
  try {
    if (!job.file.size) throw new Error("This file is empty.");
    const from = job.from || await detect(job);
    glossary = await makeGlossary(from, job.to);
    if (!from && hasTermsInto(job.to)) job.note = [job.note, "without the glossary: choose the language of the file to use it"].filter(Boolean).join("; ");
    const fields = { file: job.file, filename: job.file.name, source_lang: from, target_lang: job.to, glossary_id: glossary };
    const { document_id, document_key } = await (await sendForm("v2/document", form(fields))).json();
    const begun = performance.now(), address = `v2/document/${document_id}`;
    for (;;) {
      const told = await (await sendForm(address, form({ document_key }))).json();
      if (told.status === "error") throw new Error(told.error_message);
      if (told.status === "done") break;
      const gone = (performance.now() - begun) / 1000, left = told.seconds_remaining ?? gone;
      Object.assign(job, { share: gone / (gone + left + .1), says: `about ${Math.max(1, Math.ceil(left))} s left` });
      drawer.draw();
      await wait(pause);
    }
    const answer = await sendForm(`${address}/result`, form({ document_key }));
    job.ending = endingOf(answer.headers.get("Content-Disposition"));
    job.result = await answer.blob();
    Object.assign(job, { share: 1, says: "done" });
  } catch (error) { Object.assign(job, { share: null, says: plainly(error.message) }); }
  if (glossary) sendForm(`v2/glossaries/${glossary}`, null, "DELETE").catch(() => null);
  drawer.draw();
}
// What was sent may come back as something else: a PDF as a Word file.
const endingOf = disposition => /filename\*?=.*(\.[a-z0-9]+)"?$/i.exec(disposition ?? "")?.[1] ?? null;
function plainly(message) {
  if (/file format not supported/.test(message)) return "Files of this kind are not translated: the list above names those that are.";
  const bare = message.replace(/^(Invalid request|The document could not be translated): (the file (?=has|is))?/, (_, __, file) => file ? "The file " : "");
  return bare === "internal error" ? "The server failed at this file." : `${bare[0]?.toUpperCase() ?? ""}${bare.slice(1)}`;
}
export function takeFiles(files) {
  if (!files.length) return;
  const added = files.map(file => ({ file, from: state.from === "auto" ? "" : state.from, to: state.to, share: 0, says: "sending", note: /\.pdf$/i.test(file.name) ? "PDF becomes Word" : "" }));
  jobs = [...jobs, ...added];
  drawer.open(true);
  added.reduce((before, job) => before.then(() => translate(job)), Promise.resolve());
}
const nameOf = ({ file, to, ending }) => file.name.replace(/(\.[^.]+)?$/, own => `.${to}${ending ?? own}`);

function draw(panel) {
  const hasFocus = panel.contains(document.activeElement);
  const line = job => make("li", {}, make("span", { className: "name" }, job.file.name), " ",
    job.share !== null && !job.result ? make("progress", { max: 1, value: job.share, "aria-label": job.file.name }) : null, make("span", { className: "faint", role: "status" }, ` ${[job.says, job.note].filter(Boolean).join(" · ")} `),
    job.result ? small("Save", () => save(nameOf(job), job.result), { "aria-label": `Save ${nameOf(job)}` }) : null,
    job.share === null || job.result ? small("✕", () => { jobs = jobs.filter(each => each !== job); drawer.draw(); }, { className: "quiet small", "aria-label": `Remove ${job.file.name} from the list` }) : null);
  panel.replaceChildren(make("h2", {}, "Files"),
    make("p", { className: "faint" }, "Drop files onto the desk: text, Word, PowerPoint, Excel, OpenDocument, EPUB, HTML, Markdown, subtitles, PO, XLIFF, TMX, tables keep their layout. A PDF becomes a Word file with its text."),
    make("p", { className: "actions" }, ...fileInput("Choose files", "", takeFiles, true)),
    make("ul", { className: "terms" }, ...jobs.map(line)));
  if (hasFocus) panel.querySelector("button")?.focus();
}

export function startFiles() {
  drawer = addDrawer("files", "Files", "Files to translate", draw);
  const desk = find("desk"), hasFiles = event => [...event.dataTransfer?.types ?? []].includes("Files");
  const mark = isOver => desk.classList.toggle("over", isOver);
  addEventListener("dragover", event => { if (hasFiles(event)) { event.preventDefault(); mark(!desk.hidden); } });
  addEventListener("dragleave", event => { if (!event.relatedTarget) mark(false); });
  addEventListener("drop", event => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    mark(false);
    if (state.view === "translate") takeFiles([...event.dataTransfer.files]);
    else { isRefused = true; complain(new Error("Files are translated in the view “Translate”.")); }
  });
  onChange(changes => { if ("view" in changes && isRefused) { isRefused = false; complain(null); } });
}
