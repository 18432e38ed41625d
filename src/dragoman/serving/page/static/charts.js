// Curves of training runs: linear or logarithmic, smoothed, zoomed, with one cursor.
import { hue, inks } from "./colours.js";
import { widthOf } from "./pen.js";
import { brief, whole } from "./wording.js";

const left = 52, top = 30, bottom = 30, right = 12;

function niceStep(range, count) {
  const rough = range / count, power = 10 ** Math.floor(Math.log10(rough)), share = rough / power;
  return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}
function linearTicks(low, high, count) {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, count), ticks = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) ticks.push(Math.abs(at) < step * 1e-6 ? 0 : at);
  return ticks;
}
// Powers of ten, and what lies between them where there are few.
function logTicks(low, high, count) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), ticks = [];
  const stride = Math.max(1, Math.ceil((last - first) / count));
  const factors = last - first <= 1 ? [1, 2, 3, 5, 7] : last - first <= 2 ? [1, 2, 5] : [1];
  for (let power = first; power <= last; power += stride) ticks.push(...factors.map(factor => factor * 10 ** power));
  const shown = ticks.filter(tick => tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9));
  return shown.length > 1 ? shown : linearTicks(low, high, count).filter(tick => tick > 0);
}
// From values to places on an axis and back.
function makeAxis(low, high, from, to, isLog) {
  const turn = isLog ? Math.log : value => value, back = isLog ? Math.exp : value => value;
  const begin = turn(low), range = turn(high) - begin;
  return {
    low, high,
    place: value => from + (turn(value) - begin) / range * (to - from),
    value: place => back(begin + (place - from) / (to - from) * range),
    ticks: count => isLog ? logTicks(low, high, count) : linearTicks(low, high, count),
  };
}

// An exponential mean, without its pull to the first value: weight from 0 (none) to under 1.
export function smooth(points, weight) {
  if (!weight) return points;
  let sum = 0, share = 0;
  return points.map(([x, y]) => {
    sum = weight * sum + (1 - weight) * y;
    share = weight * share + (1 - weight);
    return [x, sum / share];
  });
}

// A line within a frame: pieces of it, cut where it leaves.
function cut(path, low, high) {
  const pieces = [];
  let piece = [];
  const edge = ([x1, y1], [x2, y2], x) => [x, y1 + (x - x1) / (x2 - x1) * (y2 - y1)];
  path.forEach((point, place) => {
    const before = path[place - 1], isIn = point[0] >= low && point[0] <= high;
    if (before) {
      const sides = [low, high].filter(side => (before[0] - side) * (point[0] - side) < 0);
      for (const side of sides) piece.push(edge(before, point, side));
    }
    if (isIn) piece.push(point);
    else if (piece.length) { pieces.push(piece); piece = []; }
  });
  return piece.length ? [...pieces, piece] : pieces;
}

const bounds = values => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);
const dashesOf = index => [[], [7, 4], [2, 3]][Math.floor(index / 8) % 3];
const nearest = (points, x) => points.reduce((best, point) =>
  best === null || Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best, null);

function axesOf(series, width, height, { logs = "", range = null, isZoomed = false, mostY = Infinity }) {
  const isLogX = logs.includes("x"), isLogY = logs.includes("y");
  const drawable = ([x, y]) => (!isLogX || x > 0) && (!isLogY || y > 0);
  const kept = series.map(each => ({ ...each, points: each.points.filter(drawable), raw: each.raw?.filter(drawable) }));
  const every = kept.flatMap(each => each.raw ? [...each.points, ...each.raw] : each.points);
  let [x0, x1] = range ?? (every.length ? bounds(every.map(point => point[0])) : [isLogX ? .1 : 0, 1]);
  if (!(x1 > x0)) x1 = isLogX ? x0 * 2 : x0 + 1;
  const X = makeAxis(x0, x1, left, width - right, isLogX);
  const inside = every.filter(([x]) => x >= x0 && x <= x1), seen = inside.length ? inside : every;
  let [y0, y1] = seen.length ? bounds(seen.map(point => Math.min(mostY, point[1]))) : [isLogY ? .1 : 0, 1];
  if (isLogY) [y0, y1] = [y0 / (y1 / y0) ** .05 / 1.02, y1 * (y1 / y0) ** .05 * 1.02];
  else {
    if (y0 > 0 && y0 < .6 * y1 && !isZoomed && mostY === Infinity) y0 = 0;
    const padding = (y1 - y0 || Math.abs(y1) || 1) * .06;
    y1 += padding;
    if (y0 !== 0) y0 -= padding;
  }
  return { X, Y: makeAxis(y0, y1, height - bottom, top, isLogY), kept };
}

// series: [{ name, index, points: [[x, y], …], raw, isFaint, hasDots }]; raw: not smoothed.
// how: { xName, isWhole, logs: "xy", range: [from, to], isZoomed, marks: [{ x, text, dashes }], mostY }
export function planChart(title, series, how, width, height = 210) {
  const { X, Y, kept } = axesOf(series, width, height, how), { xName, marks = [] } = how;
  const hasAny = kept.some(each => each.points.length);
  const stops = [...new Set(kept.flatMap(each => each.points.map(point => point[0])))]
    .filter(x => x >= X.low && x <= X.high).sort((one, other) => one - other);
  const toX = x => how.isWhole ? whole(Math.round(x)) : brief(x);
  const closest = x => stops.reduce((best, stop) => Math.abs(X.place(stop) - X.place(x)) < Math.abs(X.place(best) - X.place(x)) ? stop : best, stops[0]);
  // Of a run that had not begun there, or had ended, there is nothing to tell.
  const pointAt = ({ points }, x) => points.length && x >= points[0][0] && x <= points.at(-1)[0] ? nearest(points, x) : null;
  return {
    width, height, low: X.low, high: X.high, valueAt: x => X.value(Math.max(left, Math.min(width - right, x))),
    draw(pen, dark, at) {
      const ink = inks(dark);
      pen.rect(0, 0, width, height, ink.paper);
      pen.text(title, 2, 11, { size: 14, weight: 600, fill: ink.ink });
      for (const tick of Y.ticks(4)) {
        pen.line([[left, Y.place(tick)], [width - right, Y.place(tick)]], ink.line, 1, .8);
        pen.text(brief(tick), left - 7, Y.place(tick), { size: 11, align: "right", fill: ink.faint });
      }
      for (const tick of X.ticks(Math.max(2, Math.min(6, width / 90))))
        pen.text(brief(tick), X.place(tick), height - bottom + 13, { size: 11, align: "center", fill: ink.faint });
      const nameWidth = widthOf(xName, { size: 11 });
      pen.text(xName, width - right - nameWidth, height - 5, { size: 11, fill: ink.faint });
      if (!hasAny) pen.text("nothing yet", width / 2, height / 2, { size: 13, align: "center", fill: ink.faint });
      const place = ([x, y]) => [X.place(x), Math.max(top - 8, Math.min(height - bottom, Y.place(y)))];
      const curve = (points, index, thickness, alpha) => {
        for (const piece of cut(points.map(place), left, width - right)) if (piece.length > 1) pen.line(piece, hue(index, dark), thickness, alpha, dashesOf(index));
      };
      for (const { index, points, raw, isFaint, hasDots } of kept) {
        if (raw) curve(raw, index, 1, .3);
        curve(points, index, isFaint ? 1.25 : 2.25, isFaint && !raw ? .55 : 1);
        const dots = points.filter(([x]) => x >= X.low && x <= X.high);
        if (hasDots || points.length === 1) for (const point of dots.length > 60 ? dots.slice(-1) : dots) pen.dot(...place(point), 2.8, hue(index, dark));
      }
      const seen = marks.filter(({ x }) => x >= X.low && x <= X.high);
      for (const { x, dashes } of seen) pen.line([[X.place(x), top - 4], [X.place(x), height - bottom]], ink.ink, 1.3, 1, dashes);
      seen.forEach(({ x, text }, row) => {
        const from = X.place(x), isRight = from > width * .5, y = top + 4 + 16 * row;
        const style = { size: 11, fill: ink.ink, align: isRight ? "right" : "left" }, wide = widthOf(text, style);
        pen.rect(isRight ? from - wide - 7 : from + 3, y - 7, wide + 4, 14, ink.paper);
        pen.text(text, from + (isRight ? -5 : 5), y, style);
      });
      if (at) drawCursor(pen, ink, dark, at, place);
    },
    hit(x, y) {
      if (!stops.length || x < left - 8 || x > width || y < 0 || y > height) return null;
      return { x: closest(Math.max(X.low, X.value(x))) };
    },
    move(at, dx) {
      if (!stops.length) return null;
      const place = at ? stops.indexOf(closest(at.x)) : dx > 0 ? -1 : stops.length;
      return { x: stops[Math.max(0, Math.min(stops.length - 1, place + dx))] };
    },
    tell(at) {
      if (at.from !== undefined) return `${xName} ${toX(Math.min(at.x, at.from))} to ${toX(Math.max(at.x, at.from))}`;
      const said = kept.flatMap(each => {
        const point = pointAt(each, at.x);
        if (!point) return [];
        const raw = each.raw && nearest(each.raw, at.x);
        const where = toX(point[0]) === toX(at.x) ? "" : ` (at ${toX(point[0])})`;
        return [`${each.name} ${brief(raw ? raw[1] : point[1])}${raw ? `, smoothed ${brief(point[1])}` : ""}${where}`];
      });
      return `${xName} ${toX(at.x)}: ${said.join(" · ") || "nothing here"}`;
    },
  };

  // A line through all charts; while somebody drags, the part that will be shown.
  function drawCursor(pen, ink, dark, at, place) {
    const inside = x => Math.max(left, Math.min(width - right, X.place(Math.max(X.low, x))));
    if (at.from !== undefined) {
      for (const x of [at.from, at.x]) pen.line([[inside(x), top - 4], [inside(x), height - bottom]], ink.accent, 1.5);
      const y = height - bottom;
      pen.line([[inside(at.from), y], [inside(at.x), y]], ink.accent, 4);
      return;
    }
    if (at.x < X.low || at.x > X.high) return;
    pen.line([[X.place(at.x), top - 4], [X.place(at.x), height - bottom]], ink.faint, 1, .8, [3, 3]);
    for (const each of kept) {
      const point = pointAt(each, at.x);
      if (point && point[0] >= X.low && point[0] <= X.high) pen.dot(...place(point), 4, hue(each.index, dark));
    }
  }
}
