// The steps of a sentence through a Transformer: their names, words and equations.

// Sections of the paper: what to call them, and the place in its published pages.
const sections = {
  "3.1": ["§ 3.1, figure 1", "S3.SS1"], "3.2.1": ["§ 3.2.1, equation 1", "S3.SS2.SSS1"],
  "3.2.2": ["§ 3.2.2, figure 2", "S3.SS2.SSS2"], "3.2.3": ["§ 3.2.3", "S3.SS2.SSS3"],
  "3.3": ["§ 3.3, equation 2", "S3.SS3"], "3.4": ["§ 3.4", "S3.SS4"], "3.5": ["§ 3.5", "S3.SS5"],
  "5.1": ["§ 5.1", "S5.SS1"], "6.1": ["§ 6.1", "S6.SS1"],
};
export const sectionOf = (paper, name) => ({ label: sections[name][0], href: `${paper}#${sections[name][1]}` });

const norms = { layer: "LayerNorm", rms: "RMSNorm" };
const normEquations = { layer: "(x − μ)/σ ⊙ γ + β", rms: "x/σ ⊙ γ" };

// Where a part stands: {stack, layer, sublayer}.
export function placeOf(part) {
  const [stack, layer, sublayer] = part.split(".");
  return { stack, layer: Number(layer) || 0, sublayer: sublayer ?? layer ?? "" };
}
export function nameOf(part) {
  const { stack, layer, sublayer } = placeOf(part);
  if (stack === "source") return "Source";
  if (stack === "target") return "Translation so far";
  if (stack === "output") return "Output";
  if (sublayer === "norm") return stack === "encoder" ? "Encoder, final norm" : "Decoder, final norm";
  const names = { self: stack === "encoder" ? "self-attention" : "masked self-attention", cross: "cross-attention", feed: "feed-forward" };
  return `${stack === "encoder" ? "Encoder" : "Decoder"} layer ${layer}, ${names[sublayer]}`;
}

const matrix = (name, label, more = {}) => ({ name, label, columns: "entries", ...more });

function embeddingSteps(side, told) {
  const { shape } = told, isSource = side === "source", d = shape.modelDim;
  const steps = [{
    id: "subwords", title: "Subwords", paper: "5.1", code: isSource ? ["subwords"] : ["subwords", "shifted"], matrices: [],
    equation: isSource ? "text → subwords → numbers" : "⟨start⟩, y₁, y₂, … → the next subword",
    says: isSource ? `The sentence is cut into subwords. Each has a number, its row in a vocabulary of ${shape.vocabulary.toLocaleString("en")}.`
      : "The decoder reads what has been said so far, shifted by one: it begins with a start symbol, and at each place must say the next subword.",
  }, {
    id: "embedding", title: "Embedding", paper: "3.4", code: ["embedding"], matrices: [matrix("words", "E[number] · √d")],
    equation: `e = E[number] · √d,  √d = √${d} = ${Math.sqrt(d).toFixed(2)}`,
    says: `Each number takes its row out of the matrix E: a vector of ${d} entries, learnt in training. ${isSource ? "" : "The row of the start symbol is zero. "}Multiplied by √d it is as large as the positions that are added next.`,
  }];
  if (told.hasPositions) steps.push({
    id: "position", title: "+ position", paper: "3.5", matrices: [matrix("positions", "P"), matrix("x", "x = e + P")], shown: "x",
    code: ["sinusoidal", "marian"].includes(shape.positions) ? ["add-position", "sinusoids"] : ["add-position"],
    equation: { sinusoidal: "x = e + P,  P(p, 2i) = sin(p / 10000^{2i/d}),  P(p, 2i+1) = cos(p / 10000^{2i/d})",
      marian: "x = e + P,  P(p, 2i) = sin(p / 10000^{2i/(d−2)}),  P(p, 2i+1) = cos(p / 10000^{2i/(d−2)})" }[shape.positions] ?? "x = e + P",
    says: "Attention by itself does not know which word came first. So a vector that depends on the place alone is added to each word.",
  });
  return steps;
}

const normStep = (told, shown = "normed") => ({
  id: "norm", title: "Norm", paper: "3.1", code: [`norm-${told.shape.norm}`], matrices: [matrix("x", "x"), matrix(shown, "normalised")], shown,
  equation: `${norms[told.shape.norm]}(x) = ${normEquations[told.shape.norm]}`,
  says: told.shape.norm === "layer"
    ? "Each word’s vector by itself: its mean μ is taken away, then it is divided by its deviation σ, and each entry gets a learnt gain γ and shift β. This model normalises before each sub-layer; the paper did so after it."
    : "Each word’s vector by itself is divided by its root mean square σ, and each entry gets a learnt gain γ.",
});
function addStep(told, sublayer) {
  const { isPre, norm } = told.shape, matrices = [matrix("x", "x"), matrix("output", sublayer)];
  return isPre ? {
    id: "add", title: "Add", paper: "3.1", code: ["add-pre"], matrices: [...matrices, matrix("result", "x + sub-layer")], shown: "result",
    equation: `x + ${sublayer}(${norms[norm]}(x))`,
    says: "What the sub-layer says is added to what went into it: the residual connection. A word’s vector is carried past every layer, and each adds to it.",
  } : {
    id: "add", title: "Add & norm", paper: "3.1", code: ["add-post", `norm-${norm}`], matrices: [...matrices, matrix("sum", "x + sub-layer"), matrix("result", "normalised")], shown: "result",
    equation: `${norms[norm]}(x + ${sublayer}(x)),  ${norms[norm]}(z) = ${normEquations[norm].replace("x", "z")}`,
    says: "What the sub-layer says is added to what went into it (the residual connection); then each word’s vector is normalised by its own mean μ and deviation σ.",
  };
}

function attentionSteps(part, told) {
  const { shape } = told, { stack, sublayer } = placeOf(part), isCross = sublayer === "cross";
  const isMasked = stack === "decoder" && !isCross;
  const root = shape.isScaled ? "/√d_k" : "", head = { perHead: true }, keys = { perHead: true, columns: "keys" };
  const who = { encoder: "the source’s words", decoder: "the words said so far" }[stack];
  const isTurned = shape.positions === "rotary", hasBias = ["alibi", "relative"].includes(shape.positions) && !isCross;
  const mask = {
    id: "mask", title: "Mask", paper: "3.2.3", matrices: [matrix("scores", "masked scores", keys)],
    code: isMasked ? ["causal", "mask"] : ["mask"],
    equation: isMasked ? "score(i, j) = −∞ where j > i" : "score(i, j) = −∞ where j may not be looked at",
    says: isMasked ? "A word may look at itself and at those before it, not at what comes later: when translating, nothing later is there yet. Forbidden scores become −∞."
      : "This model does not read the end of a sentence: its scores become −∞.",
  };
  return [
    ...(shape.isPre ? [normStep(told)] : []),
    {
      id: "projections", title: "Q, K, V", paper: "3.2.2", code: ["query", "key", "value"],
      matrices: [...(isCross ? [matrix("memory", "encoder’s output", { rows: "keys" })] : []),
        matrix("query", "Q", head), matrix("key", "K", { ...head, rows: "keys" }), matrix("value", "V", { ...head, rows: "keys" })], shown: "query",
      equation: isCross ? "Q = x W^Q,  K = m W^K,  V = m W^V  (m: what the encoder says)" : "Q = x W^Q,  K = x W^K,  V = x W^V",
      says: `Each head multiplies the vectors by its own matrices: a query (what a word looks for), a key (by what it is found) and a value (what it gives), of ${shape.keyDim} entries each. ${isCross ? "Queries come from the translation, keys and values from the source." : ""}${isTurned && !isCross ? " Queries and keys are then turned by an angle that grows with the place." : ""}`,
    },
    {
      id: "scores", title: "QKᵀ/√d_k", paper: "3.2.1", code: hasBias ? ["scores", "bias"] : ["scores"], matrices: [matrix("scaled", `QKᵀ${root}${hasBias ? " + position" : ""}`, keys)],
      equation: `score(i, j) = qᵢ·kⱼ${shape.isScaled ? `/√d_k,  √${shape.keyDim} = ${Math.sqrt(shape.keyDim).toFixed(2)}` : ""}${hasBias ? ",  plus what the distance adds" : ""}`,
      says: `Each query is compared with each key: the larger their dot product, the better they fit.${shape.isScaled ? " It is divided by √d_k, so that the softmax does not become all or nothing." : ""}`,
    },
    ...(isMasked || !shape.readsEnd ? [mask] : []),
    {
      id: "softmax", title: "Softmax", paper: "3.2.1", code: ["softmax"], matrices: [matrix("weights", "weights", { ...keys, isWeight: true })],
      equation: "weight(i, j) = exp(score(i, j)) / Σₗ exp(score(i, l))",
      says: `The scores of a row become weights between 0 and 1 that sum to 1: how much each word (row) looks at ${isCross ? "each source word" : `each of ${who}`} (column).${isMasked || !shape.readsEnd ? "" : " Nothing is masked here."}`,
    },
    {
      id: "average", title: "× V", paper: "3.2.1", code: ["average"], matrices: [matrix("contexts", "weights × V", head)],
      equation: "zᵢ = Σⱼ weight(i, j) · vⱼ",
      says: "Each word takes the average of the values, each as much as its weight says.",
    },
    {
      id: "join", title: "Heads, Wᴼ", paper: "3.2.2", code: ["join"], matrices: [matrix("output", "Concat(z) Wᴼ")],
      equation: "MultiHead = Concat(head₁, …, head_h) Wᴼ",
      says: `What the ${shape.heads} heads found is put side by side, and mixed by one more matrix.`,
    },
    addStep(told, "Attention"),
  ];
}

const activations = {
  relu: ["max(0, {})", "Everything negative becomes 0."], swish: ["SiLU({})", ""], gelu: ["GELU({})", ""], "gelu-sigmoid": ["z·σ(1.702 z), z = {}", ""],
  swiglu: ["SiLU(x W_g + b_g) ⊙ ({})", "A second product is the gate."], geglu: ["GELU(x W_g + b_g) ⊙ ({})", "A second product is the gate."],
};
function feedSteps(told) {
  const { shape } = told, [activation, note] = activations[shape.activation], isGated = shape.activation.endsWith("glu");
  return [
    ...(shape.isPre ? [normStep(told)] : []),
    {
      id: "inner", title: "Widen", paper: "3.3", code: ["inner"], shown: "active",
      matrices: [matrix("inner", "x W₁ + b₁"), ...(isGated ? [matrix("gate", "x W_g + b_g")] : []), matrix("active", activation.replace("{}", "x W₁ + b₁"))],
      equation: `a = ${activation.replace("{}", "x W₁ + b₁")}`,
      says: `Each word by itself, the same for all: its ${shape.modelDim} entries become ${shape.innerDim}. ${note}`,
    },
    {
      id: "outer", title: "Narrow", paper: "3.3", code: ["outer"], matrices: [matrix("output", "a W₂ + b₂")],
      equation: "FFN(x) = a W₂ + b₂", says: `And back to ${shape.modelDim} entries.`,
    },
    addStep(told, "FFN"),
  ];
}

const outputSteps = told => [
  {
    id: "hidden", title: "Decoder’s output", paper: "3.4", code: ["logits"], matrices: [matrix("hidden", "h")],
    equation: "h", says: "What the last layer of the decoder says at each place. From the last row the next subword is made.",
  },
  {
    id: "logits", title: "Logits", paper: "3.4", code: ["logits"], matrices: [], isList: true,
    equation: "logit(w) = h · E[w]", says: `The last vector is compared with each of the ${told.shape.vocabulary.toLocaleString("en")} subwords. Shown are those that fit best.`,
  },
  {
    id: "softmax", title: "Softmax", paper: "3.4", code: ["next-softmax"], matrices: [], isList: true,
    equation: "p(w) = exp(logit(w)) / Σᵥ exp(logit(v))", says: "The logits become probabilities, which sum to 1 over all subwords.",
  },
  {
    id: "next", title: "Next word", paper: "6.1", code: ["choose"], matrices: [], isList: true,
    equation: "y = argmax p(w), or what beam search finds", says: "",
  },
];

const normStepOf = told => [{ ...normStep(told, "result"), says: `${normStep(told).says.split(". This")[0]}. So ends the stack.` }];

// All steps of a model in order: [{part, id, …}].
export function listSteps(told) {
  const steps = [];
  for (const [part, kind] of Object.entries(told.parts)) {
    const some = kind === "embedding" ? embeddingSteps(part, told) : kind === "attention" ? attentionSteps(part, told)
      : kind === "feed" ? feedSteps(told) : kind === "norm" ? normStepOf(told) : outputSteps(told);
    for (const step of some) steps.push({ ...step, part, kind, key: `${part}.${step.id}` });
  }
  return steps;
}
