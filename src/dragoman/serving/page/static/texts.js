// The translation as text files: alone, beside its source, as a translation memory.
import { known, state } from "./state.js";
import { keptOf, wholeTranslation } from "./sentences.js";

const escapeXml = text => text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "")
  .replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
const pairs = () => known.sentences.filter(sentence => sentence.source);
const languages = () => [known.path[0] ?? state.from, state.to].map(code => code.replace("_", "-"));

function writeTmx() {
  const [from, to] = languages(), time = new Date().toISOString().replace(/[-:]|\.\d+/g, "");
  const unit = sentence => `<tu creationdate="${time}"${keptOf(sentence) ? ' changeid="person"' : ""}>`
    + `<tuv xml:lang="${escapeXml(from)}"><seg>${escapeXml(sentence.source)}</seg></tuv>`
    + `<tuv xml:lang="${escapeXml(to)}"><seg>${escapeXml(sentence.text)}</seg></tuv></tu>\n`;
  return `<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n`
    + `<header creationtool="Dragoman" creationtoolversion="1" segtype="sentence" o-tmf="Dragoman" adminlang="en" srclang="${escapeXml(from)}" datatype="plaintext"/>\n`
    + `<body>\n${pairs().map(unit).join("")}</body>\n</tmx>\n`;
}
const writeTsv = () => pairs().map(({ source, text }) => `${[source, text].map(side => side.replace(/\s+/g, " ")).join("\t")}\n`).join("");
function writeBilingual() {
  const [from, to] = languages().map(escapeXml);
  const row = ({ source, text }) => `<tr><td lang="${from}" dir="auto">${escapeXml(source)}</td><td lang="${to}" dir="auto">${escapeXml(text)}</td></tr>\n`;
  return `<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n`
    + `<meta name="color-scheme" content="light dark">\n<title>Text and translation</title>\n`
    + `<style>body { font: 1rem/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 70rem; padding: 0 1rem } table { border-collapse: collapse; width: 100% }\n`
    + `td, th { width: 50%; padding: .5rem .8rem; vertical-align: top; text-align: start; border-bottom: 1px solid #8888; overflow-wrap: anywhere } tr { break-inside: avoid }</style>\n</head>\n`
    + `<body>\n<main>\n<h1>Text and translation</h1>\n<table>\n<thead><tr><th scope="col">${from}</th><th scope="col">${to}</th></tr></thead>\n<tbody>\n${pairs().map(row).join("")}</tbody>\n</table>\n</main>\n</body>\n</html>\n`;
}

// By the name of the entry in the menu: ending of the file, its type, and what writes it.
export const textFiles = {
  txt: ["txt", "text/plain", wholeTranslation],
  tsv: ["tsv", "text/tab-separated-values", writeTsv],
  tmx: ["tmx", "application/xml", writeTmx],
  bilingual: ["bilingual.html", "text/html", writeBilingual],
};
