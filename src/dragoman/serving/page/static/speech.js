// Listening, by the voices that the browser has; without one for a language there is no button.
import { find, make } from "./dom.js";
import { known, on, state } from "./state.js";
import { wholeTranslation } from "./sentences.js";

const voiceFor = code => {
  const plain = (code ?? "").toLowerCase().split(/[-_]/)[0];
  return plain && speechSynthesis.getVoices().find(voice => voice.lang.toLowerCase().split(/[-_]/)[0] === plain);
};
function speak(text, code, button) {
  const wasSpeaking = button.getAttribute("aria-pressed") === "true";
  speechSynthesis.cancel();
  if (wasSpeaking || !text.trim()) return;
  const said = new SpeechSynthesisUtterance(text);
  said.voice = voiceFor(code);
  said.lang = said.voice?.lang ?? code;
  const show = isOn => button.setAttribute("aria-pressed", isOn);
  said.onstart = () => show(true);
  said.onend = said.onerror = () => show(false);
  speechSynthesis.speak(said);
}
export function startSpeech() {
  if (!window.speechSynthesis) return;
  const listen = (label, before, what) => {
    const button = make("button", { className: "quiet small listen", type: "button", "aria-label": label, title: label, "aria-pressed": "false", hidden: true }, "🔊\ufe0e");
    button.onclick = () => speak(...what(), button);
    find(before).before(button);
    return button;
  };
  const source = () => [state.text, known.path[0] ?? state.from], target = () => [wholeTranslation(), state.to];
  const buttons = [[listen("Listen to the text", "clear", source), source], [listen("Listen to the translation", "copy", target), target]];
  const show = () => { for (const [button, what] of buttons) button.hidden = !voiceFor(what()[1]) || !what()[0].trim(); };
  speechSynthesis.addEventListener?.("voiceschanged", show);
  on("drawn", show);
  addEventListener("pagehide", () => speechSynthesis.cancel());
  show();
}
