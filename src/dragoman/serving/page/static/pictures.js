// Pictures of attention and of importance. Each is planned first (where everything stands), then
// drawn by any pen; who points at the picture is told by the plan what is there.
import { hue, inks, weightTable } from "./colours.js";
import { shorten, widthOf } from "./pen.js";
import { brief, fixed, percent, signed } from "./wording.js";

const label = { size: 14 }, small = { size: 12 }, MOST_CURVES = 600;
const widest = (texts, style, most) => Math.min(most, Math.max(10, ...texts.map(text => widthOf(text, style)))) + 2;

// Words on both sides, a line for each weight of each head that is shown.
export function planLines(shown, heads, width, verb = "looks at") {
  const rowHeight = 26, top = 30;
  const side = Math.min(widest([...shown.queries, ...shown.keys], label, 220), width * .36);
  const isNarrow = width < 520, gap = Math.max(90, Math.min(isNarrow ? 200 : 420, width - 2 * side - 40));
  const left = Math.max(8, (width - 2 * side - gap) / 2) + side, right = left + gap;
  const height = top + rowHeight * Math.max(shown.queries.length, shown.keys.length) + 10;
  const y = row => top + rowHeight * (row + .5);
  return {
    width, height, left, right, side, y, rowHeight,
    draw(pen, dark, at) {
      const ink = inks(dark);
      pen.rect(0, 0, width, height, ink.paper);
      pen.text("this word", left - 12, 14, { ...small, fill: ink.faint, align: "right" });
      pen.text(verb, right + 12, 14, { ...small, fill: ink.faint });
      const lines = listLines(shown, heads, at);
      // Heads run side by side, so that none hides another. Curves are easier to follow, but take
      // twice as long to draw: of very many, nobody can follow one anyway.
      const pitch = Math.min(2.6, 16 / heads.length), isMany = lines.length > MOST_CURVES;
      for (const [strand, query, key, weight] of lines) {
        const offset = (strand - (heads.length - 1) / 2) * pitch, from = y(query) + offset, to = y(key) + offset;
        const colour = hue(heads[strand], dark), thickness = at ? 2 : 1.6, alpha = Math.min(1, .04 + .96 * weight);
        if (isMany) pen.line([[left, from], [right, to]], colour, thickness, alpha);
        else pen.curve(left, from, right, to, colour, thickness, alpha);
      }
      const boxes = at ? lines.map(([strand, query, key, weight]) => [heads[strand], at.side === "query" ? key : query, weight]) : [];
      drawBoxes(pen, this, heads, boxes, at, dark);
      const word = (text, row, isLeft) => {
        const isHere = at && (at.side === "query") === isLeft && at.row === row;
        const isFaint = at && (at.side === "query") === isLeft && !isHere;
        const style = { ...label, weight: isHere ? 700 : 400, fill: isHere ? ink.accent : isFaint ? ink.faint : ink.ink, align: isLeft ? "right" : "left" };
        pen.text(shorten(text, side, style), isLeft ? left - 12 : right + 12, y(row), style);
      };
      shown.queries.forEach((text, row) => word(text, row, true));
      shown.keys.forEach((text, row) => word(text, row, false));
    },
    hit(x, atY) {
      const row = Math.floor((atY - top) / rowHeight);
      const isLeft = x < (left + right) / 2;
      const count = isLeft ? shown.queries.length : shown.keys.length;
      return row < 0 || row >= count ? null : { side: isLeft ? "query" : "key", row };
    },
    move(at, dx, dy) {
      const from = at ?? { side: "query", row: -1 };
      const side = dx < 0 ? "query" : dx > 0 ? "key" : from.side;
      const count = (side === "query" ? shown.queries : shown.keys).length;
      return { side, row: Math.max(0, Math.min(count - 1, from.row + dy)) };
    },
    tell(at) {
      const isQuery = at.side === "query", columns = shown.keys.length;
      const others = isQuery ? shown.keys : shown.queries;
      const weights = others.map((text, other) => [text, heads.reduce((sum, head) => sum +
        shown.heads[head][isQuery ? at.row * columns + other : other * columns + at.row], 0) / heads.length]);
      const best = weights.sort((one, another) => another[1] - one[1]).slice(0, 4).filter(each => each[1] >= .005);
      const list = best.map(([text, weight]) => `${text} ${weight.toFixed(2)}`).join(" · ");
      return isQuery ? `“${shown.queries[at.row]}” ${verb}: ${list}` : `“${shown.keys[at.row]}” ← ${list}`;
    },
  };
}

// What is to be seen of each head: [its place among those shown, query, key, weight].
function listLines(shown, heads, at) {
  const lines = [], columns = shown.keys.length;
  heads.forEach((head, strand) => {
    for (let query = 0; query < shown.queries.length; query++)
      for (let key = 0; key < columns; key++) {
        const weight = shown.heads[head][query * columns + key];
        if (weight >= .03 && (!at || at.row === (at.side === "query" ? query : key))) lines.push([strand, query, key, weight]);
      }
  });
  return lines;
}

// Beside each word of the other side a box for each head, as strong as its weight.
function drawBoxes(pen, plan, heads, boxes, at, dark) {
  if (!at) return;
  const size = Math.min(9, 60 / heads.length);
  for (const [head, row, weight] of boxes) {
    const offset = 8 + (heads.indexOf(head) + 1) * (size + 1);
    const x = at.side === "query" ? plan.right - offset : plan.left + offset - size;
    const [red, green, blue] = [1, 3, 5].map(place => parseInt(hue(head, dark).slice(place, place + 2), 16));
    pen.rect(x, plan.y(row) - size / 2, size, size, `rgba(${red},${green},${blue},${weight.toFixed(2)})`, 2);
  }
}

// Colours of a matrix as bytes.
export function toCells(numbers, dark, colour) {
  const bytes = new Uint8ClampedArray(numbers.length * 4), steps = colour ? null : weightTable(dark);
  for (let place = 0; place < numbers.length; place++) {
    if (steps) {
      const from = Math.max(0, Math.min(255, Math.round(numbers[place] * 255))) * 3;
      bytes.set([steps[from], steps[from + 1], steps[from + 2], 255], place * 4);
    } else bytes.set([...colour(numbers[place], place).match(/\d+/g).map(Number), 255], place * 4);
  }
  return bytes;
}

// A heat map with its words: rows look at columns.
export function planMap(rows, columns, numbers, width, { colour, tell, title, mostCell = 44, note } = {}) {
  const fit = style => {
    const side = Math.min(widest(rows, style, 200), width * .32) + 8;
    return { style, side, cell: Math.max(6, Math.min(mostCell, (width - side - 8) / columns.length)) };
  };
  let { style, side, cell } = fit(label);
  if (cell < 15) ({ style, side, cell } = fit({ size: Math.max(7, Math.min(12, cell - 1)) }));
  const head = widest(columns, style, 130) + 10, top = (title ? 28 : 0) + head;
  const height = top + cell * rows.length + 6 + (note ? 20 : 0);
  const left = side, count = columns.length;
  const used = Math.min(width, Math.ceil(left + cell * count + 8));
  return {
    width: Math.max(used, title ? Math.min(width, 200) : 0), height, cell, top, left,
    draw(pen, dark, at) {
      const ink = inks(dark);
      pen.rect(0, 0, this.width, height, ink.paper);
      if (title) pen.text(title, 0, 12, { size: 14, weight: 600, fill: ink.ink });
      pen.cells(left, top, cell * count, cell * rows.length, count, rows.length, toCells(numbers, dark, colour && ((value, place) => colour(value, dark, place))));
      pen.frame(left - .5, top - .5, cell * count + 1, cell * rows.length + 1, ink.line);
      rows.forEach((text, row) => {
        const isHere = at?.row === row, own = { ...style, align: "right", fill: isHere ? ink.accent : ink.ink, weight: isHere ? 700 : 400 };
        pen.text(shorten(text, side - 8, own), left - 6, top + cell * (row + .5), own);
      });
      columns.forEach((text, column) => {
        const isHere = at?.column === column, own = { ...style, turned: true, fill: isHere ? ink.accent : ink.ink, weight: isHere ? 700 : 400 };
        pen.text(shorten(text, head - 12, own), left + cell * (column + .5), top - 6, own);
      });
      if (cell >= 34) for (let place = 0; place < numbers.length; place++) {
        const value = numbers[place], text = tell ? tell.number(place) : value >= .005 ? value.toFixed(2) : "";
        const strength = tell ? tell.strength(place) : value;
        const isLight = dark ? strength > .6 : strength < .45;
        pen.text(text, left + cell * (place % count + .5), top + cell * (Math.floor(place / count) + .5),
          { size: 11, align: "center", fill: isLight ? "#241d2b" : "#fff" });
      }
      if (at) pen.frame(left + cell * at.column, top + cell * at.row, cell, cell, ink.accent, 2);
      if (note) pen.text(note, left, height - 9, { ...small, fill: ink.faint });
    },
    hit(x, y) {
      const column = Math.floor((x - left) / cell), row = Math.floor((y - top) / cell);
      return column < 0 || row < 0 || column >= count || row >= rows.length ? null : { row, column };
    },
    move(at, dx, dy) {
      const from = at ?? { row: dy ? -1 : 0, column: dx ? -1 : 0 };
      return { row: Math.max(0, Math.min(rows.length - 1, from.row + dy)), column: Math.max(0, Math.min(count - 1, from.column + dx)) };
    },
    tell(at) {
      const place = at.row * count + at.column;
      return tell ? tell.sentence(at.row, at.column, place) : `“${rows[at.row]}” looks at “${columns[at.column]}”: ${numbers[place].toFixed(3)}`;
    },
  };
}

// All layers × heads of a kind, small.
export function planGrid(maps, width, isOff) {
  const numHeads = Math.max(...maps.map(map => map.shown.heads.length));
  const left = 30, top = 26, gap = 8;
  const cell = Math.max(30, Math.min(150, (width - left - 4) / numHeads - gap));
  const ratio = map => Math.max(.35, Math.min(2, map.shown.queries.length / map.shown.keys.length));
  const rowHeight = Math.max(...maps.map(ratio)) * cell, pitch = rowHeight + gap;
  const height = top + pitch * maps.length;
  const used = Math.min(width, left + numHeads * (cell + gap));
  return {
    width: used, height,
    draw(pen, dark, at) {
      const ink = inks(dark);
      pen.rect(0, 0, used, height, ink.paper);
      for (let head = 0; head < numHeads; head++)
        pen.text(String(head + 1), left + head * (cell + gap) + cell / 2, 13, { ...small, align: "center", weight: 600, fill: hue(head, dark) });
      maps.forEach(({ layer, shown }, row) => {
        const y = top + row * pitch;
        pen.text(String(layer), 12, y + rowHeight / 2, { ...small, align: "center", weight: 600, fill: ink.faint });
        shown.heads.forEach((numbers, head) => {
          const x = left + head * (cell + gap), isHere = at?.row === row && at.column === head;
          pen.cells(x, y, cell, rowHeight, shown.keys.length, shown.queries.length, toCells(numbers, dark));
          pen.frame(x - .5, y - .5, cell + 1, rowHeight + 1, isHere ? ink.accent : ink.line, isHere ? 2.5 : 1);
          if (isOff(layer, head + 1)) {
            pen.line([[x, y], [x + cell, y + rowHeight]], ink.faint, 1.5);
            pen.line([[x + cell, y], [x, y + rowHeight]], ink.faint, 1.5);
          }
        });
      });
    },
    hit(x, y) {
      const column = Math.floor((x - left) / (cell + gap)), row = Math.floor((y - top) / pitch);
      const isThere = maps[row] && column >= 0 && column < maps[row].shown.heads.length;
      return isThere ? { row, column } : null;
    },
    move(at, dx, dy) {
      const from = at ?? { row: dy ? -1 : 0, column: dx ? -1 : 0 };
      return { row: Math.max(0, Math.min(maps.length - 1, from.row + dy)), column: Math.max(0, Math.min(numHeads - 1, from.column + dx)) };
    },
    tell: at => `Layer ${maps[at.row].layer}, head ${at.column + 1}: ${describeHead(maps[at.row].shown, at.column)}`,
  };
}

// In words, what a head does: where most of it goes.
function describeHead(shown, head) {
  const columns = shown.keys.length, numbers = shown.heads[head];
  let entropy = 0, diagonal = 0;
  const totals = new Float32Array(columns);
  shown.queries.forEach((_, row) => {
    for (let column = 0; column < columns; column++) {
      const weight = numbers[row * columns + column];
      totals[column] += weight / shown.queries.length;
      if (weight > 0) entropy -= weight * Math.log2(weight) / shown.queries.length;
      if (Math.abs(row / shown.queries.length - column / columns) < 1.5 / columns) diagonal += weight / shown.queries.length;
    }
  });
  const most = totals.indexOf(Math.max(...totals));
  const spread = `spread over about ${fixed(2 ** entropy, 1).replace(".0", "")} ${2 ** entropy < 1.05 ? "word" : "words"}`;
  if (totals[most] > .5) return `${percent(totals[most])} goes to “${shown.keys[most]}”; ${spread}`;
  return diagonal > .6 ? `follows the order of the words; ${spread}` : spread;
}

// The sentence over its translation, joined where words correspond.
export function planPairs(sourceWords, targetWords, links, width) {
  const gap = 12, rowGap = 74, lineHeight = 26;
  const place = words => {
    let x = 14, line = 0;
    return words.map(word => {
      const wide = widthOf(word, label);
      if (x + wide > width - 14 && x > 14) { x = 14; line++; }
      const found = { word, x, line, wide };
      x += wide + gap;
      return found;
    });
  };
  const top = place(sourceWords), bottom = place(targetWords);
  const topLines = (top.at(-1)?.line ?? 0) + 1, bottomLines = (bottom.at(-1)?.line ?? 0) + 1;
  const firstBottom = 24 + topLines * lineHeight + rowGap;
  const height = firstBottom + bottomLines * lineHeight;
  const middle = each => each.x + each.wide / 2;
  const used = Math.max(0, ...[...top, ...bottom].map(each => each.x + each.wide)) + 14;
  return {
    width: used, height,
    draw(pen, dark) {
      const ink = inks(dark);
      pen.rect(0, 0, width, height, ink.paper);
      const y = (each, first) => first + each.line * lineHeight;
      for (const [source, target] of links) {
        const one = top[source], other = bottom[target];
        if (one && other) pen.line([[middle(one), y(one, 24) + 12], [middle(other), y(other, firstBottom) - 12]], ink.accent, 1.5, .55);
      }
      for (const each of top) pen.text(each.word, each.x, y(each, 24), { ...label, fill: ink.ink });
      for (const each of bottom) pen.text(each.word, each.x, y(each, firstBottom), { ...label, fill: ink.ink });
    },
  };
}

// Of one target word: a bar for each source word, by several accounts, with errors where there are.
// accounts: [{ name, values, errors, low, high, isSigned, colour }]: bars of one scale have the same
// low and high. rows: [{ text, place }], or { text, isGap } where words are left out.
export function planBars(rows, accounts, width) {
  const texts = rows.map(row => row.text);
  const side = Math.min(widest(texts, label, 190), width * .3) + 8, rowHeight = 24, top = 46;
  const gap = 26, room = (width - side - 6 - gap * (accounts.length - 1)) / accounts.length;
  const height = top + rows.length * rowHeight + 6, hasNumbers = room > 130;
  const written = (value, isSigned) => isSigned ? signed(value, 2) : fixed(value, 2);
  return {
    width, height,
    draw(pen, dark, at) {
      const ink = inks(dark);
      pen.rect(0, 0, width, height, ink.paper);
      rows.forEach(({ text, isGap }, row) => {
        const isHere = at?.row === row, own = { ...label, size: isGap ? 11 : 14, align: "right", fill: isHere ? ink.accent : isGap ? ink.faint : ink.ink, weight: isHere ? 700 : 400 };
        pen.text(shorten(text, side - 10, own), side - 8, top + rowHeight * (row + .5), own);
      });
      accounts.forEach((account, index) => drawAccount(pen, account, side + index * (room + gap), ink, dark));
    },
    hit(_, y) {
      const row = Math.floor((y - top) / rowHeight);
      return row < 0 || row >= rows.length ? null : { row };
    },
    move: (at, _, dy) => ({ row: Math.max(0, Math.min(rows.length - 1, (at?.row ?? -1) + dy)) }),
    tell(at) {
      const { text, place, isGap } = rows[at.row];
      if (isGap) return `${text}: not shown here, but in the maps below`;
      return `“${text}”: ${accounts.map(account => `${account.name} ${written(account.values[place], account.isSigned)}${account.errors?.[place] ? ` ± ${fixed(account.errors[place], 2)}` : ""}`).join(" · ")}`;
    },
  };

  function drawAccount(pen, account, x, ink, dark) {
    const { low, high, values, errors } = account, scale = (room - (hasNumbers ? 48 : 4)) / (high - low), X = value => x + (value - low) * scale;
    pen.text(account.name, x, 12, { ...small, weight: 600, fill: ink.faint });
    const ticks = low < 0 && -low * scale > 26 ? [low, 0, high] : [0, high];
    for (const tick of ticks) {
      pen.line([[X(tick), top - 4], [X(tick), height - 4]], ink.line, 1, tick ? .6 : 1);
      pen.text(tick ? brief(tick) : "0", X(tick), top - 12, { size: 10, align: tick === high ? "right" : tick === 0 && low === 0 ? "left" : "center", fill: ink.faint });
    }
    rows.forEach(({ place, isGap }, row) => {
      const y = top + rowHeight * row, middle = y + rowHeight / 2;
      if (isGap) return pen.line([[x, middle], [x + room, middle]], ink.line, 1, 1, [2, 4]);
      const value = values[place], error = errors?.[place] ?? 0, end = X(Math.max(0, value)) + error * scale + 6;
      pen.rect(Math.min(X(0), X(value)), y + 5, Math.max(.5, Math.abs(value * scale)), rowHeight - 10, account.colour(value, dark, place), 2);
      pen.frame(Math.min(X(0), X(value)), y + 5, Math.max(.5, Math.abs(value * scale)), rowHeight - 10, ink.faint, .5);
      if (hasNumbers) pen.text(written(value, account.isSigned), end, middle, { size: 11, fill: ink.faint });
      if (!error) return;
      pen.line([[X(value - error), middle], [X(value + error), middle]], ink.ink, 1.5);
      for (const whisker of [-error, error]) pen.line([[X(value + whisker), middle - 4], [X(value + whisker), middle + 4]], ink.ink, 1.5);
    });
  }
}

// Several columns of pictures beside one another.
export function beside(columns, gap = 24) {
  const place = columns.map((_, index) => columns.slice(0, index).reduce((x, column) => x + column.width + gap, 0));
  const last = columns.length - 1;
  return {
    width: place[last] + columns[last].width, height: Math.max(...columns.map(column => column.height)),
    draw(pen, dark) { columns.forEach((column, index) => column.draw(shifted(pen, place[index], 0), dark, null)); },
  };
}
// Several pictures under one another, as one.
export function pile(parts, width, gap = 14) {
  let y = 0;
  const placed = parts.map(part => { const at = y; y += part.height + gap; return [part, at]; });
  return { width, height: y, draw(pen, dark) { for (const [part, at] of placed) part.draw(shifted(pen, 0, at), dark, null); } };
}
// A pile on paper with a margin.
export function stack(parts) {
  const inner = pile(parts, Math.max(...parts.map(part => part.width)));
  return {
    width: inner.width + 32, height: inner.height + 18,
    draw(pen, dark) {
      pen.rect(0, 0, this.width, this.height, inks(dark).paper);
      inner.draw(shifted(pen, 16, 16), dark);
    },
  };
}
// Lines of text; with hues, each has a dot before it.
export function planText(lines, style = {}, hues = null) {
  const lineHeight = (style.size ?? 13) + 6, indent = hues ? 16 : 0;
  return {
    width: indent + Math.max(0, ...lines.map(line => widthOf(line, style))), height: lines.length * lineHeight,
    draw(pen, dark) {
      lines.forEach((line, row) => {
        if (hues) pen.dot(5, lineHeight * (row + .5), 5, hue(hues[row], dark));
        pen.text(line, indent, lineHeight * (row + .5), { ...style, fill: inks(dark)[style.ink ?? "ink"] });
      });
    },
  };
}

// The same pen, with its origin elsewhere.
function shifted(pen, dx, dy) {
  return {
    rect: (x, y, ...rest) => pen.rect(x + dx, y + dy, ...rest),
    frame: (x, y, ...rest) => pen.frame(x + dx, y + dy, ...rest),
    line: (points, ...rest) => pen.line(points.map(([x, y]) => [x + dx, y + dy]), ...rest),
    curve: (x1, y1, x2, y2, ...rest) => pen.curve(x1 + dx, y1 + dy, x2 + dx, y2 + dy, ...rest),
    dot: (x, y, ...rest) => pen.dot(x + dx, y + dy, ...rest),
    text: (text, x, y, style) => pen.text(text, x + dx, y + dy, style),
    cells: (x, y, ...rest) => pen.cells(x + dx, y + dy, ...rest),
  };
}
