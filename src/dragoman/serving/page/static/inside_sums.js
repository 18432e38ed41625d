// How a number comes about, with the numbers it is made of.
import { factor, num, plus } from "./numbers.js";

const mostTerms = 3;

// left·right as “1.20×0.40 + … (46 more) = 11.9”, the largest terms first.
export function product(name, left, right, total, bias = 0) {
  const order = Array.from(left, (_, place) => place).sort((one, other) => Math.abs(left[other] * right[other]) - Math.abs(left[one] * right[one]));
  const shown = order.slice(0, mostTerms).map(place => `${factor(left[place])}×${factor(right[place])}`);
  const rest = order.length - shown.length;
  return `${name} = ${shown.join(" + ")}${rest > 0 ? ` + … (${rest} more)` : ""}${bias ? ` ${plus(bias)}` : ""} = ${num(total)}`;
}
export const termsOf = (left, right) => ({ left: [...left], right: [...right] });

// One row of a matrix [rows, columns], or of a head of [heads, rows, columns].
export function rowOf({ shape, entries }, row, head = 0) {
  const width = shape.at(-1), from = (shape.length === 3 ? head * shape[1] * width : 0) + row * width;
  return entries.subarray(from, from + width);
}
const columnOf = ({ shape, entries }, column, head = 0) => {
  const [numRows, width] = shape.slice(-2), from = shape.length === 3 ? head * numRows * width : 0;
  return Float32Array.from({ length: numRows }, (_, row) => entries[from + row * width + column]);
};
const at = (matrix, row, column, head = 0) => rowOf(matrix, row, head)[column];
const sum = list => list.reduce((total, each) => total + each, 0);

function scoreLines({ numbers, shape, cell: { row, column }, head }, isToScore) {
  const query = rowOf(numbers.query, row, head), key = rowOf(numbers.key, column, head);
  const dot = at(numbers.products, row, column, head), bias = numbers.bias ? at(numbers.bias, row, column, head) : 0;
  const root = Math.sqrt(shape.keyDim), score = dot / (shape.isScaled ? root : 1) + bias;
  const lines = [product("q·k", query, key, dot)];
  if (shape.isScaled) lines.push(`÷ √${shape.keyDim} = ÷ ${num(root)} = ${num(dot / root)}`);
  if (numbers.bias) lines.push(`${plus(bias)} for the distance = ${num(score)}`);
  return { lines, terms: isToScore ? null : { ...termsOf(query, key), names: ["q", "k"] }, score };
}
function softmaxLine(row, column, name = "softmax") {
  const finite = [...row].filter(value => value > -Infinity), most = Math.max(...finite), least = most > 30 ? most : 0;
  const raised = finite.map(value => Math.exp(value - least)), total = sum(raised);
  if (row[column] === -Infinity) return `${name} = exp(−∞) / ${num(total)} = 0`;
  const own = Math.exp(row[column] - least), shift = least ? ` − ${num(least)}` : "";
  const shown = raised.length > 4 ? [...raised.slice(0, 3).map(num), "…"] : raised.map(num);
  return `${name} = exp(${num(row[column])}${shift}) / Σ exp = ${num(own)} / (${shown.join(" + ")}) = ${num(own)} / ${num(total)} = ${num(own / total)}`;
}
function normLine(values, { numbers, cell: { row, column } }) {
  const mean = numbers.mean.entries[row], deviation = numbers.deviation.entries[row];
  const gain = numbers.gain.entries[column], shift = numbers.shift?.entries[column];
  const value = (values[column] - mean) / deviation * gain + (shift ?? 0);
  return [`μ = ${num(mean)}, σ = ${num(deviation)}: mean and deviation of the ${values.length} entries of this row`,
    `(${num(values[column])} ${plus(-mean)}) / ${num(deviation)} × ${factor(gain)}${shift === undefined ? "" : ` ${plus(shift)}`} = ${num(value)}`];
}
const sublayers = { output: "output", query: "query", key: "key", value: "value", inner: "inner", gate: "gate" };

// What is to be said of a cell: lines; terms of a sum, or the linear map that has to be asked for.
export function explain(context) {
  const { step, name, numbers, cell: { row, column }, head, shape, ids, kind } = context;
  const value = name === "scaled" ? null : at(numbers[name], row, column, head);
  if (step.id === "embedding") {
    const root = Math.sqrt(shape.modelDim);
    return { lines: [`E[${ids[row]}] entry ${column + 1} × √${shape.modelDim} = ${factor(value / root)} × ${num(root)} = ${num(value)}`] };
  }
  if (step.id === "position") return { lines: positionLines(context, value) };
  if (name === "x" || name === "memory" || name === "hidden")
    return { lines: [`${num(value)} comes from the step before`] };
  if (name === "scaled") return scoreLines(context, false);
  if (name === "scores") {
    const found = scoreLines(context, false);
    const line = value === -Infinity ? "may not look there: −∞ in place of it" : "may look there: stays as it is";
    return { ...found, lines: [...found.lines, line] };
  }
  if (name === "weights") {
    const found = scoreLines(context, true), scores = rowOf(numbers.scores, row, head);
    return { lines: [...found.lines, ...(scores[column] === -Infinity ? ["masked: −∞"] : []), softmaxLine(scores, column)] };
  }
  if (name === "contexts") {
    const weights = rowOf(numbers.weights, row, head), values = columnOf(numbers.value, column, head);
    return { lines: [product("z", weights, values, value)], terms: { ...termsOf(weights, values), names: ["weight", "v"] } };
  }
  if (name === "normed" || (name === "result" && step.id === "norm")) return { lines: normLine(rowOf(numbers.x, row), context) };
  if (name === "sum" || (name === "result" && shape.isPre))
    return { lines: [`x + sub-layer = ${num(at(numbers.x, row, column))} ${plus(at(numbers.output, row, column))} = ${num(value)}`] };
  if (name === "result") {
    const sums = rowOf(numbers.sum, row);
    return { lines: [`x + sub-layer = ${num(at(numbers.x, row, column))} ${plus(at(numbers.output, row, column))} = ${num(sums[column])}`, ...normLine(sums, context)] };
  }
  if (name === "active") {
    const inner = at(numbers.inner, row, column), gate = numbers.gate && at(numbers.gate, row, column);
    const line = shape.activation === "relu" ? `max(0, ${num(inner)}) = ${num(value)}`
      : gate === undefined ? `${shape.activation}(${num(inner)}) = ${num(value)}` : `gate of ${num(gate)}, times ${num(inner)} = ${num(value)}`;
    return { lines: [line], map: { name: "inner", label: "x W₁ + b₁", value: inner } };
  }
  const label = { output: kind === "feed" ? "a·w + b" : "z·w", inner: "x·w + b", gate: "x·w + b" }[name] ?? "x·w";
  return { lines: [], map: { name: kind === "feed" && name === "output" ? "outer" : sublayers[name], label, value } };
}

function positionLines({ name, numbers, cell: { row, column }, shape }, value) {
  const position = at(numbers.positions, row, column), d = shape.modelDim, whole = shape.positions === "marian" ? Math.max(1, d - 2) : d;
  const pair = column - column % 2, isSinusoid = ["sinusoidal", "marian"].includes(shape.positions);
  const wave = isSinusoid ? `P = ${column % 2 ? "cos" : "sin"}(${row} / 10000^(${pair}/${whole})) = ${column % 2 ? "cos" : "sin"}(${num(row / 10000 ** (pair / whole))}) = ${num(position)}` : `P = ${num(position)} at place ${row}`;
  return name === "positions" ? [wave] : [wave, `e + P = ${num(at(numbers.words, row, column))} ${plus(position)} = ${num(value)}`];
}

// Of the next word: logit and probability.
export function explainWord({ logits, normaliser, index, isProbability }) {
  const logit = logits[index];
  return isProbability ? [`log Σ exp(logit) over all subwords = ${num(normaliser)}`, `p = exp(${num(logit)} ${plus(-normaliser)}) = exp(${num(logit - normaliser)}) = ${num(Math.exp(logit - normaliser))}`] : [];
}
