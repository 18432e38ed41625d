// What the page asks its server; or, where the page is a file, what was written into it.

const frozen = document.getElementById("snapshot");
const written = frozen ? JSON.parse(frozen.textContent) : null;
// A lesson is a file with a snapshot for each step; which one is shown stands in the address.
const place = Number(new URLSearchParams(location.hash.slice(1)).get("at")) || 1;
export const snapshot = written?.steps ? written.steps[Math.min(place, written.steps.length) - 1] : written;
export const isFrozen = snapshot !== null;
// Whether a file has only what one step of a lesson shows.
export const isPart = isFrozen && !written.steps;

let key = null;
try { key = sessionStorage.getItem("dragoman-key"); } catch { /* a file, or storage is off */ }
export function useKey(text) {
  key = text;
  try { sessionStorage.setItem("dragoman-key", text); } catch { /* used until the page is left */ }
}

async function fetchFrom(path, { body, signal } = {}) {
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("The server does not answer. Is it still running?"), { kind: "unreachable" });
  }
  if (answer.ok) return answer;
  const told = (await answer.json().catch(() => ({}))).error;
  const problem = new Error(told?.message ?? `The server answers with status ${answer.status}.`);
  problem.kind = told?.kind ?? "failed";
  problem.seconds = Number(answer.headers.get("Retry-After")) || 0;
  throw problem;
}

export const ask = async (name, body, signal) => (await fetchFrom(`page/api/${name}`, { body, signal })).json();
export const askText = async name => (await fetchFrom(`page/api/${name}`)).text();

// Hands on each line of an answer as soon as it is there.
export async function askLines(name, body, signal, take) {
  const reader = (await fetchFrom(`page/api/${name}`, { body, signal })).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    const lines = (rest + (value ?? "")).split("\n");
    rest = done ? "" : lines.pop();
    for (const line of lines) {
      if (!line) continue;
      const told = JSON.parse(line);
      if (told.error) throw Object.assign(new Error(told.error.message), { kind: told.error.kind });
      take(told);
    }
    if (done) return;
  }
}

// Files go by a protocol that other programs use too: forms, and errors as it writes them.
export async function sendForm(path, body, method = "POST") {
  const headers = key ? { Authorization: `DeepL-Auth-Key ${key}` } : {};
  let answer;
  try {
    answer = await fetch(path, { method, headers, body });
  } catch { throw new Error("The server does not answer. Is it still running?"); }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  throw new Error(told.detail ?? told.message ?? `The server answers with status ${answer.status}.`);
}
