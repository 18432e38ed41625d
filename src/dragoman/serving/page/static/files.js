// Files dropped onto the desk are translated with their layout, and come back to be saved.
import { complain, find, make, save } from "./dom.js";
import { sendForm } from "./server.js";
import { state } from "./state.js";
import { addDrawer, fileInput, small } from "./bench.js";
import { termsNow } from "./glossary.js";

const pause = 700;
let jobs = [], drawer;
const wait = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds));
const form = fields => {
  const made = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value) made.append(name, value);
  return made;
};

async function makeGlossary(from) {
  const terms = termsNow();
  if (!from || !terms.length) return "";
  const fields = { name: "page", source_lang: from, target_lang: state.to, entries: terms.map(sides => sides.join("\t")).join("\n"), entries_format: "tsv" };
  return (await (await sendForm("v2/glossaries", form(fields))).json()).glossary_id;
}
async function translate(job) {
  let glossary = "";
  try {
    const from = state.from === "auto" ? "" : state.from;
    glossary = await makeGlossary(from);
    const fields = { file: job.file, filename: job.file.name, source_lang: from, target_lang: state.to, glossary_id: glossary };
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
    job.result = await (await sendForm(`${address}/result`, form({ document_key }))).blob();
    Object.assign(job, { share: 1, says: "done" });
  } catch (error) { Object.assign(job, { share: null, says: error.message }); }
  if (glossary) sendForm(`v2/glossaries/${glossary}`, null, "DELETE").catch(() => null);
  drawer.draw();
}
export function takeFiles(files) {
  if (!files.length) return;
  const added = files.map(file => ({ file, to: state.to, share: 0, says: "sending" }));
  jobs = [...jobs, ...added];
  drawer.open(true);
  added.reduce((before, job) => before.then(() => translate(job)), Promise.resolve());
}
const nameOf = ({ file, to }) => file.name.replace(/(\.[^.]+)?$/, ending => `.${to}${ending}`);

function draw(panel) {
  const hasFocus = panel.contains(document.activeElement);
  const line = job => make("li", {}, make("span", {}, job.file.name), " ",
    job.share !== null && !job.result ? make("progress", { max: 1, value: job.share, "aria-label": job.file.name }) : null, make("span", { className: "faint", role: "status" }, ` ${job.says} `),
    job.result ? small("Save", () => save(nameOf(job), job.result), { "aria-label": `Save ${nameOf(job)}` }) : null,
    job.share === null || job.result ? small("✕", () => { jobs = jobs.filter(each => each !== job); drawer.draw(); }, { className: "quiet small", "aria-label": `Remove ${job.file.name} from the list` }) : null);
  panel.replaceChildren(make("h2", {}, "Files"),
    make("p", { className: "faint" }, "Drop files onto the desk: text, Word, PowerPoint, Excel, OpenDocument, EPUB, HTML, Markdown, subtitles, PO, XLIFF, TMX, tables. They keep their layout."),
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
    else complain(new Error("Files are translated in the view “Translate”."));
  });
}
