// Numbers in words: how they are written everywhere on the page.

export const whole = count => count.toLocaleString("en");
// “1 word”, “2 words”, “12,000 characters”.
export const counted = (count, one, several = `${one}s`) => `${whole(count)} ${count === 1 ? one : several}`;

// A number with so many digits after the point; never “−0.00”.
export function fixed(value, digits) {
  const text = value.toFixed(digits).replace("-", "−");
  return /[1-9]/.test(text) ? text : text.replace("−", "");
}
// The same with its sign; what rounds to zero has none.
export function signed(value, digits) {
  const text = fixed(value, digits);
  return value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

// A share of a whole. What is not quite nothing is not called nothing, nor what is not quite all all.
export function percent(share) {
  const value = share * 100;
  if (value <= 0) return "0 %";
  if (value >= 100) return "100 %";
  if (value < .1) return "under 0.1 %";
  if (value > 99.9) return "over 99.9 %";
  const digits = value < 10 || value > 99 ? 1 : 0;
  return `${value.toFixed(digits).replace(/\.0$/, "")} %`;
}

const raised = text => [...text].map(sign => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻").join("");
// 1.6·10¹⁹ instead of 1.6e+19.
export function scientific(value, digits = 1) {
  const [factor, power] = value.toExponential(digits).split("e");
  return `${factor.replace("-", "−").replace(/\.0+$/, "")}·10${raised(power.replace("+", ""))}`;
}

// How many times, for a ratio of 1 or more: “1.5 times”, “240 times”, “3.2·10⁹ times”.
export function times(ratio) {
  if (!Number.isFinite(ratio) || ratio > 1e100) return "more than 10¹⁰⁰ times";
  if (ratio >= 999_500) return `${scientific(ratio)} times`;
  const shown = ratio >= 100 ? whole(Number(ratio.toPrecision(2))) : String(Number(ratio.toPrecision(2)));
  return `${shown} ${shown === "1" ? "time" : "times"}`;
}

// For axes and readouts: three digits that matter.
export function brief(value) {
  const size = Math.abs(value), sign = value < 0 ? "−" : "";
  if (!size) return "0";
  if (size >= 1e15) return scientific(value);
  for (const [unit, name] of [[1e12, " T"], [1e9, " G"], [1e6, " M"], [1e3, " k"]])
    if (size >= 9.995 * unit || (unit > 1e3 && size >= .9995 * unit)) return `${sign}${Number((size / unit).toPrecision(3))}${name}`;
  return size < 1e-4 ? scientific(value) : `${sign}${Number(size.toPrecision(3))}`;
}

export function span(seconds) {
  const minutes = Math.round(seconds / 60);
  if (seconds < 59.5) return `${Math.max(1, Math.round(seconds))} s`;
  return minutes < 60 ? `${minutes} min` : `${whole(Math.floor(minutes / 60))} h ${minutes % 60} min`;
}
