// Numbers on the page: unpacked, written, and drawn as coloured matrices that can be read cell by cell.
import { make } from "./dom.js";
import { inks, signedColour, weightColour } from "./colours.js";
import { shorten, widthOf } from "./pen.js";

// A matrix as the server sends it: { shape, entries }, 32-bit floats in base64.
export function unpack(text) {
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place++) bytes[place] = raw.charCodeAt(place);
  return new Float32Array(bytes.buffer);
}

// As few digits as tell a number: 11.9, 2.13, 0.034.
export function num(value) {
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  const digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= .0995 || size < 5e-5 ? 2 : size >= .00995 ? 3 : 4;
  const text = size.toFixed(digits);
  return value < 0 && Number(text) !== 0 ? `−${text}` : text;
}
export const factor = value => value < 0 && num(value).startsWith("−") ? `(${num(value)})` : num(value);
// + 0.3 or − 0.3
export const plus = value => num(value).startsWith("−") ? `− ${num(-value)}` : `+ ${num(value)}`;
// A subword that goes on with a word has a dot before it.
export const tidy = (piece, index = 1) => piece.startsWith("▁") ? piece.slice(1) || "␣" : !index || piece.startsWith("⟨") ? piece : `·${piece}`;

// x^{2i} and d_k as they are written by hand.
export const typeset = text => text.split(/([\^_](?:\{[^}]*\}|\w))/).map(part => {
  const [, sign, inner] = /^([\^_])\{?([^}]*)\}?$/.exec(part) ?? [];
  return sign ? make(sign === "^" ? "sup" : "sub", {}, inner) : part;
});

const label = { size: 13 }, small = { size: 11 };
const cellWidth = 54, cellHeight = 26, mostRows = 14;

// A matrix of numbers with the names of its rows and columns. Where there is room every number is
// written; else the whole is a picture, and beneath it stand the numbers around the chosen cell.
// cell: {row, column}, the chosen one. isWeight: from 0 to 1, not signed.
export function planNumbers({ rows, columns, numbers, width, cell, isWeight = false, named = true }) {
  const numColumns = columns.length, numRows = rows.length;
  const side = Math.min(width * .3, 130, Math.max(24, ...rows.map(text => widthOf(text, label)))) + 10;
  const fits = Math.max(1, Math.floor((width - side - 2) / cellWidth));
  const isWhole = numColumns <= fits && numRows <= 24;
  const window = {
    columns: Math.min(numColumns, fits), rows: Math.min(numRows, isWhole ? numRows : mostRows),
    column: 0, row: 0,
  };
  if (!isWhole) {
    window.column = Math.max(0, Math.min(numColumns - window.columns, cell.column - (window.columns >> 1)));
    window.row = Math.max(0, Math.min(numRows - window.rows, cell.row - (window.rows >> 1)));
  }
  const pixel = isWhole ? 0 : Math.max(1, Math.min(16, (width - side - 2) / numColumns));
  const pixelHeight = isWhole ? 0 : Math.max(5, Math.min(18, 240 / numRows));
  const mapHeight = pixelHeight * numRows, head = named ? 58 : 22;
  const top = (isWhole ? 0 : mapHeight + 16) + head;
  const height = top + window.rows * cellHeight + 4;
  const largest = isWeight ? 1 : Math.max(1e-9, ...numbers.map(value => Number.isFinite(value) ? Math.abs(value) : 0));
  const colourOf = (value, dark) => value === -Infinity ? inks(dark).line
    : isWeight ? weightColour(value, dark) : signedColour(value / largest, dark);
  const used = Math.ceil(side + Math.max(pixel * numColumns, window.columns * cellWidth)) + 2;
  const clamp = (value, most) => Math.max(0, Math.min(most, value));
  const drawMap = (pen, dark, ink) => {
    for (let row = 0; row < numRows; row++) {
      if (pixelHeight >= 11) pen.text(shorten(rows[row], side - 10, small), side - 6, pixelHeight * (row + .5), { ...small, align: "right", fill: row === cell.row ? ink.accent : ink.faint });
      for (let column = 0; column < numColumns; column++)
        pen.rect(side + pixel * column, pixelHeight * row, pixel + .3, pixelHeight + .3, colourOf(numbers[row * numColumns + column], dark));
    }
    pen.frame(side - .5, -.5, pixel * numColumns + 1, mapHeight + 1, ink.line);
    pen.frame(side + pixel * window.column - 1, pixelHeight * window.row - .5, pixel * window.columns + 2, pixelHeight * window.rows + 1, ink.accent, 1.5);
  };
  return {
    width: used, height,
    draw(pen, dark, at) {
      const ink = inks(dark), chosen = at ?? cell;
      pen.rect(0, 0, used, height, ink.paper);
      if (!isWhole) drawMap(pen, dark, ink);
      for (let offset = 0; offset < window.columns; offset++) {
        const column = window.column + offset, x = side + cellWidth * (offset + .5), isHere = column === chosen.column;
        const style = { ...label, align: named ? "left" : "center", turned: named, fill: isHere ? ink.accent : ink.faint, weight: isHere ? 700 : 400 };
        pen.text(named ? shorten(columns[column], head - 8, label) : columns[column], x, named ? top - 6 : top - 11, style);
      }
      for (let offset = 0; offset < window.rows; offset++) {
        const row = window.row + offset, y = top + cellHeight * offset, isHere = row === chosen.row;
        pen.text(shorten(rows[row], side - 10, label), side - 6, y + cellHeight / 2, { ...label, align: "right", fill: isHere ? ink.accent : ink.ink, weight: isHere ? 700 : 400 });
        for (let step = 0; step < window.columns; step++) {
          const column = window.column + step, value = numbers[row * numColumns + column], x = side + cellWidth * step;
          pen.rect(x, y, cellWidth - 1, cellHeight - 1, colourOf(value, dark));
          const strength = value === -Infinity ? 0 : Math.abs(value) / largest;
          const isPale = dark ? strength > (isWeight ? .6 : .55) : strength < (isWeight ? .45 : .5);
          pen.text(num(value), x + cellWidth / 2, y + cellHeight / 2, { size: 12, align: "center", fill: value === -Infinity ? ink.ink : isPale ? "#221d29" : "#fff" });
        }
      }
      for (const [each, thickness] of [[cell, 2.5], ...(at ? [[at, 1.5]] : [])]) {
        const column = each.column - window.column, row = each.row - window.row;
        if (column >= 0 && row >= 0 && column < window.columns && row < window.rows)
          pen.frame(side + cellWidth * column, top + cellHeight * row, cellWidth - 1, cellHeight - 1, ink.accent, thickness);
      }
    },
    hit(x, y) {
      if (!isWhole && y < mapHeight && x >= side && x < side + pixel * numColumns)
        return { row: clamp(Math.floor(y / pixelHeight), numRows - 1), column: clamp(Math.floor((x - side) / pixel), numColumns - 1) };
      const column = Math.floor((x - side) / cellWidth), row = Math.floor((y - top) / cellHeight);
      if (column < 0 || row < 0 || column >= window.columns || row >= window.rows) return null;
      return { row: window.row + row, column: window.column + column };
    },
    tell: at => `${rows[at.row]}, ${columns[at.column]}: ${num(numbers[at.row * numColumns + at.column])}`,
  };
}
