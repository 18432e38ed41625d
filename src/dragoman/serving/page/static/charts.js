// Curves of training runs.
import { hue, inks } from "./colours.js";
import { widthOf } from "./pen.js";

function niceStep(range, count) {
  const rough = range / count, power = 10 ** Math.floor(Math.log10(rough)), share = rough / power;
  return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}
function ticksOf(low, high, count) {
  if (!(high > low)) return [low];
  const step = niceStep(high - low, count), ticks = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) ticks.push(Math.abs(at) < step * 1e-6 ? 0 : at);
  return ticks;
}
export function brief(value) {
  const size = Math.abs(value);
  if (size >= 1e6) return `${+(value / 1e6).toPrecision(3)} M`;
  if (size >= 1e4) return `${+(value / 1e3).toPrecision(3)} k`;
  if (size && size < 1e-4) return value.toExponential(1).replace("e-", "e−");
  return String(+value.toPrecision(3));
}

// series: [{ name, index, points: [[x, y], …], isFaint, hasDots }]
export function planChart(title, series, xName, width, height = 210) {
  const left = 48, top = 30, bottom = 30, right = 12;
  const all = series.flatMap(each => each.points);
  const bounds = values => [Math.min(...values), Math.max(...values)];
  let [x0, x1] = all.length ? bounds(all.map(point => point[0])) : [0, 1];
  let [y0, y1] = all.length ? bounds(all.map(point => point[1])) : [0, 1];
  x0 = Math.min(x0, 0);
  if (y0 > 0 && y0 < .6 * y1) y0 = 0;
  const padding = (y1 - y0 || Math.abs(y1) || 1) * .06;
  y1 += padding;
  if (y0 !== 0) y0 -= padding;
  if (x1 === x0) x1 = x0 + 1;
  const X = value => left + (value - x0) / (x1 - x0) * (width - left - right);
  const Y = value => height - bottom - (value - y0) / (y1 - y0) * (height - top - bottom);
  const nearest = (points, x) => points.reduce((best, point) =>
    best === null || Math.abs(point[0] - x) < Math.abs(best[0] - x) ? point : best, null);
  const stops = [...new Set(all.map(point => point[0]))].sort((one, other) => one - other);
  return {
    width, height,
    draw(pen, dark, at) {
      const ink = inks(dark);
      pen.rect(0, 0, width, height, ink.paper);
      pen.text(title, 2, 11, { size: 14, weight: 600, fill: ink.ink });
      for (const tick of ticksOf(y0, y1, 4)) {
        pen.line([[left, Y(tick)], [width - right, Y(tick)]], ink.line, 1, .8);
        pen.text(brief(tick), left - 7, Y(tick), { size: 11, align: "right", fill: ink.faint });
      }
      for (const tick of ticksOf(x0, x1, Math.max(2, Math.min(6, width / 90))))
        pen.text(brief(tick), X(tick), height - bottom + 13, { size: 11, align: "center", fill: ink.faint });
      const nameWidth = widthOf(xName, { size: 11 });
      pen.text(xName, width - right - nameWidth, height - 5, { size: 11, fill: ink.faint });
      if (!all.length) pen.text("nothing yet", width / 2, height / 2, { size: 13, align: "center", fill: ink.faint });
      for (const { index, points, isFaint, hasDots } of series) {
        const path = points.map(([x, y]) => [X(x), Y(y)]);
        if (path.length > 1) pen.line(path, hue(index, dark), isFaint ? 1.25 : 2.25, isFaint ? .55 : 1);
        if (hasDots || path.length === 1) for (const [x, y] of path.length > 60 ? path.slice(-1) : path) pen.dot(x, y, 2.8, hue(index, dark));
      }
      if (at) {
        pen.line([[X(at.x), top - 4], [X(at.x), height - bottom]], ink.faint, 1, .8, [3, 3]);
        for (const { index, points } of series) {
          const point = nearest(points, at.x);
          if (point) pen.dot(X(point[0]), Y(point[1]), 4, hue(index, dark));
        }
      }
    },
    hit(x, y) {
      if (!all.length || x < left - 8 || x > width || y < 0 || y > height) return null;
      const value = x0 + (x - left) / (width - left - right) * (x1 - x0);
      return { x: stops.reduce((best, stop) => Math.abs(stop - value) < Math.abs(best - value) ? stop : best, stops[0]) };
    },
    move(at, dx) {
      if (!stops.length) return null;
      const place = at ? stops.indexOf(at.x) : dx > 0 ? -1 : stops.length;
      return { x: stops[Math.max(0, Math.min(stops.length - 1, place + dx))] };
    },
    tell(at) {
      const said = series.map(({ name, points }) => {
        const point = nearest(points, at.x);
        return point ? `${name} ${brief(point[1])}` : null;
      });
      return `${xName} ${xName === "step" ? at.x.toLocaleString("en") : at.x.toFixed(1)}: ${said.filter(Boolean).join(" · ")}`;
    },
  };
}
