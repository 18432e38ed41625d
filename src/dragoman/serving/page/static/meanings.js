// What the words of this page mean: a list of terms, and a button behind each term in a text.
import { find, make } from "./dom.js";

// Other ways in which texts write a term follow behind “|”.
const list = {
  "alternative|alternatives": "A translation that the search also found, but thinks less probable.",
  "attention": "A way for a word to take information from other words: a weight says how much it takes from each, and the weights of a row sum to 1.",
  "beam|beam search": "How many unfinished translations (hypotheses) the search keeps at each step. With 1 it takes the most probable next word each time: greedy search.",
  "BLEU": "A score from 0 to 100 that counts how many runs of one to four words a translation shares with a reference made by a person.",
  "bottleneck": "In the oldest encoder–decoder models all of a sentence had to fit into one vector, however long the sentence was.",
  "causal mask|mask|masked": "A rule that forbids a word to look at words behind it. The decoder needs it in training: there the whole translation is known, and without the rule it would read the answer.",
  "confidence": "The probability that a translation is good, learnt from held-out lines on which it could be checked.",
  "cross-attention|cross": "Attention of the words of the translation to the words of the source: the decoder asks, the encoder's words answer.",
  "decoder": "The half of the model that writes the translation, one subword at a time.",
  "dot product": "Multiply two lists of numbers place by place and add it all up. It is large where both point the same way.",
  "embedding|embeddings": "The list of numbers that stands for a subword. It is learnt, and is the same wherever the subword stands.",
  "encoder": "The half of the model that reads the source. Every word there may look at every other.",
  "end symbol|⟨end⟩": "The subword with which the model says that a sentence is over.",
  "epoch": "One pass of training over all sentence pairs.",
  "feed-forward": "Two matrix products with a bend between them (ReLU), applied to each word by itself after it has looked at the others.",
  "gradient × input": "A first guess of what mattered: how much the answer would change if an input changed a little, times the input.",
  "greedy|greedy search": "Take the most probable next word, always. Fast, but a good beginning may lead to a bad end.",
  "head|heads": "One of several attentions that run side by side in a layer, each with its own queries, keys and values. Different heads can look at different things.",
  "hypothesis|hypotheses": "A translation that the search has begun and may yet give up.",
  "key|keys": "What a word offers to be found by. A query is compared with it.",
  "layer|layers": "Attention and feed-forward together. Models stack several; each works on what the one below has made.",
  "layer norm|add & norm": "After each step the result is added to what was there before (a residual connection), and the numbers of each word are brought to a common scale.",
  "length penalty": "A correction that keeps the search from preferring short translations: every further word makes a sentence less probable.",
  "logit|logits": "The score of each subword before softmax turns the scores into probabilities.",
  "loss": "What training makes smaller: how surprised the model is by the right next word, on average.",
  "positional encoding|positions": "A list of numbers for each place in the sentence, added to the embedding. Without it attention could not tell “dog bites man” from “man bites dog”.",
  "probability": "How likely the model thinks a word, between 0 and 1, over all words that could stand there.",
  "query|queries": "What a word is looking for. It is compared with the key of every word that it may look at.",
  "residual|residual connection": "Adding the input of a step to its result, so that information and gradients have a way around it.",
  "RISE": "Leave source words out at random, many times, and see what it does to each word of the translation. What matters is missed.",
  "scaling|scaled": "Dividing by the square root of the width of a head. Without it softmax becomes all or nothing in wide heads, and hardly any gradient is left.",
  "self-attention": "Attention of the words of a sentence to each other.",
  "softmax": "Turns any scores into shares that sum to 1: e to the score, divided by the sum over all scores.",
  "start symbol|⟨start⟩": "What the decoder reads before it has written anything.",
  "subword|subwords": "A piece of a word. Frequent words are one piece; rare ones are put together from several, so that nothing is unknown.",
  "temperature": "Divides the scores before softmax when translations are sampled. Below 1 the probable becomes more probable, above 1 everything becomes more alike.",
  "teacher forcing": "In training the decoder is given the right beginning, whatever it would have written itself.",
  "value|values": "What a word hands over when it is looked at. Attention mixes values by its weights.",
  "warm-up": "At the beginning of training the learning rate rises slowly, so that the first, wild steps do no harm.",
};

const meanings = new Map(), titles = new Map();
for (const [names, meaning] of Object.entries(list)) {
  const [title, ...others] = names.split("|");
  for (const name of [title, ...others]) { meanings.set(name.toLowerCase(), meaning); titles.set(name.toLowerCase(), title); }
}

export const terms = Object.entries(list).map(([names, meaning]) => [names.split("|")[0], meaning]).sort(([one], [other]) => one.localeCompare(other));

// Turn “{term}” of a text into buttons that explain the term, and “*word*” into quotations.
export function explained(text) {
  return text.split(/(\{[^}]+\}|\*[^*]+\*)/).map(part => {
    if (part.startsWith("*")) return make("q", {}, part.slice(1, -1));
    if (!part.startsWith("{")) return part;
    const word = part.slice(1, -1);
    if (!meanings.has(word.toLowerCase())) throw new Error(`no such term: ${word}`);
    return make("button", { type: "button", className: "term", "data-term": word, "aria-haspopup": "dialog" }, word);
  });
}

function showTerm(button) {
  const box = find("term-box"), name = button.dataset.term.toLowerCase();
  box.replaceChildren(make("b", {}, titles.get(name)), make("p", {}, meanings.get(name)));
  box.hidden = false;
  box.opener = button;
  const at = button.getBoundingClientRect(), room = document.documentElement.clientWidth;
  box.style.left = `${Math.max(8, Math.min(at.left, room - box.offsetWidth - 8)) + scrollX}px`;
  box.style.top = `${at.bottom + 6 + scrollY}px`;
  box.focus();
}
function closeTerm(keepsFocus) {
  const box = find("term-box");
  if (box.hidden) return;
  box.hidden = true;
  if (keepsFocus) box.opener?.focus();
}

function drawTerms() {
  find("terms-list").replaceChildren(...terms.flatMap(([title, meaning]) => [make("dt", {}, title), make("dd", {}, meaning)]));
}

export function startMeanings() {
  document.addEventListener("click", event => {
    const button = event.target.closest?.(".term");
    if (button) showTerm(button);
    else if (!event.target.closest?.("#term-box")) closeTerm(false);
  });
  find("term-box").onkeydown = event => { if (event.key === "Escape") closeTerm(true); };
  const dialog = find("terms");
  find("terms-button").onclick = () => { drawTerms(); dialog.showModal(); };
  find("terms-close").onclick = () => dialog.close();
}
