// Colours of weights, of signed numbers, of heads and of runs; on light and on dark paper.

const media = matchMedia("(prefers-color-scheme: dark)");
export const isDark = () => {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : media.matches;
};
export const onScheme = call => media.addEventListener("change", call);

const hex = text => [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
const papers = { light: "#ffffff", dark: "#1d1924" };
const scales = {
  light: ["#ffffff", "#fdeccb", "#fec488", "#fc8961", "#e75263", "#b73779", "#832681", "#51127c", "#2a1055"],
  dark: ["#1d1924", "#33165c", "#57157e", "#832681", "#b73779", "#e75263", "#fc8961", "#fec488", "#fcfdbf"],
  lightFor: ["#ffffff", "#f3d3ee", "#d98fcd", "#b1479f", "#86207c", "#5a0c53"],
  darkFor: ["#1d1924", "#4a1c46", "#86327c", "#c557a8", "#f48fb8", "#ffd0e2"],
  lightAgainst: ["#ffffff", "#c9ecea", "#7fcac6", "#2f9c97", "#0f6f6b", "#084744"],
  darkAgainst: ["#1d1924", "#143b3c", "#17696a", "#269a98", "#4fd1c5", "#b5f3ec"],
};
const tables = {};
// 256 steps of a scale as [red, green, blue, …].
function table(name) {
  if (tables[name]) return tables[name];
  const stops = scales[name].map(hex), bytes = new Uint8Array(768);
  for (let step = 0; step < 256; step++) {
    const at = step / 255 * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    for (let part = 0; part < 3; part++)
      bytes[step * 3 + part] = Math.round(stops[low][part] + (at - low) * (stops[low + 1][part] - stops[low][part]));
  }
  return tables[name] = bytes;
}
const clamp = value => Math.max(0, Math.min(255, Math.round(value * 255)));
function entry(bytes, value) {
  const at = clamp(value) * 3;
  return `rgb(${bytes[at]},${bytes[at + 1]},${bytes[at + 2]})`;
}
// weight: from 0 (paper) to 1.
export const weightTable = dark => table(dark ? "dark" : "light");
export const weightColour = (weight, dark) => entry(weightTable(dark), weight);
// value: from −1 (against) over 0 (paper) to 1 (for).
export const signedColour = (value, dark) =>
  entry(table((dark ? "dark" : "light") + (value < 0 ? "Against" : "For")), Math.abs(value));

const lightHues = ["#2f6fdb", "#d1670a", "#23824a", "#c9342f", "#8447c9", "#0b8483", "#c02f83", "#7c6d0c"];
const darkHues = ["#74a5ff", "#ffa352", "#5fce8d", "#ff837b", "#c19bfb", "#45cdca", "#ff8cc5", "#d4c24e"];
export const hue = (index, dark) => (dark ? darkHues : lightHues)[index % 8];

export const inks = dark => dark
  ? { paper: papers.dark, ink: "#ece8f1", faint: "#a79fb3", line: "#3d3647", accent: "#f48fb8" }
  : { paper: papers.light, ink: "#221d29", faint: "#665f70", line: "#dcd6e2", accent: "#86207c" };
