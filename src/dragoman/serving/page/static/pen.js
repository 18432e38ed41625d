// One drawing, three media: a canvas on the screen, an SVG file, a PNG file.

const family = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', 'DejaVu Sans', sans-serif";
const fontOf = style => `${style.weight ?? 400} ${style.size ?? 13}px ${family}`;
const rightToLeft = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;

export class CanvasPen {
  constructor(canvas, width, height, scale) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    this.brush = canvas.getContext("2d");
    this.brush.setTransform(scale, 0, 0, scale, 0, 0);
    this.brush.textBaseline = "middle";
  }
  rect(x, y, width, height, fill, radius = 0) {
    this.brush.fillStyle = fill;
    if (!radius) return this.brush.fillRect(x, y, width, height);
    this.brush.beginPath();
    this.brush.roundRect(x, y, width, height, radius);
    this.brush.fill();
  }
  frame(x, y, width, height, stroke, thickness = 1) {
    this.brush.strokeStyle = stroke;
    this.brush.lineWidth = thickness;
    this.brush.strokeRect(x, y, width, height);
  }
  line(points, stroke, thickness = 1, alpha = 1, dashes = []) {
    const brush = this.brush;
    brush.globalAlpha = alpha;
    brush.strokeStyle = stroke;
    brush.lineWidth = thickness;
    brush.lineJoin = "round";
    brush.setLineDash(dashes);
    brush.beginPath();
    points.forEach(([x, y], place) => place ? brush.lineTo(x, y) : brush.moveTo(x, y));
    brush.stroke();
    brush.setLineDash([]);
    brush.globalAlpha = 1;
  }
  curve(x1, y1, x2, y2, stroke, thickness, alpha) {
    const brush = this.brush, middle = (x1 + x2) / 2;
    brush.globalAlpha = alpha;
    brush.strokeStyle = stroke;
    brush.lineWidth = thickness;
    brush.beginPath();
    brush.moveTo(x1, y1);
    brush.bezierCurveTo(middle, y1, middle, y2, x2, y2);
    brush.stroke();
    brush.globalAlpha = 1;
  }
  dot(x, y, radius, fill) {
    this.brush.fillStyle = fill;
    this.brush.beginPath();
    this.brush.arc(x, y, radius, 0, 7);
    this.brush.fill();
  }
  text(text, x, y, style) {
    const brush = this.brush;
    brush.font = fontOf(style);
    brush.fillStyle = style.fill;
    brush.textAlign = style.align ?? "left";
    brush.direction = rightToLeft.test(text) ? "rtl" : "ltr";
    if (!style.turned) return brush.fillText(text, x, y);
    brush.save();
    brush.translate(x, y);
    brush.rotate(-Math.PI / 2);
    brush.fillText(text, 0, 0);
    brush.restore();
  }
  // A heat map: cells whose colours stand in bytes, four to a cell.
  cells(x, y, width, height, columns, rows, bytes) {
    const small = new OffscreenCanvas(columns, rows);
    small.getContext("2d").putImageData(new ImageData(bytes, columns, rows), 0, 0);
    this.brush.imageSmoothingEnabled = false;
    this.brush.drawImage(small, x, y, width, height);
  }
}

const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = text => String(text).toWellFormed()
  .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
  .replace(/[&<>"]/g, each => escapes[each]);
const short = number => String(Math.round(number * 100) / 100);

export class SvgPen {
  constructor(width, height) {
    this.size = `width="${short(width)}" height="${short(height)}" viewBox="0 0 ${short(width)} ${short(height)}"`;
    this.parts = [];
  }
  rect(x, y, width, height, fill, radius = 0) {
    this.parts.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" fill="${fill}"${radius ? ` rx="${radius}"` : ""}/>`);
  }
  frame(x, y, width, height, stroke, thickness = 1) {
    this.parts.push(`<rect x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}" fill="none" stroke="${stroke}" stroke-width="${thickness}"/>`);
  }
  line(points, stroke, thickness = 1, alpha = 1, dashes = []) {
    const path = points.map(([x, y]) => `${short(x)},${short(y)}`).join(" ");
    this.parts.push(`<polyline points="${path}" fill="none" stroke="${stroke}" stroke-width="${thickness}"${alpha < 1 ? ` stroke-opacity="${short(alpha)}"` : ""}${dashes.length ? ` stroke-dasharray="${dashes}"` : ""} stroke-linejoin="round"/>`);
  }
  curve(x1, y1, x2, y2, stroke, thickness, alpha) {
    const middle = short((x1 + x2) / 2);
    this.parts.push(`<path d="M${short(x1)} ${short(y1)}C${middle} ${short(y1)} ${middle} ${short(y2)} ${short(x2)} ${short(y2)}" fill="none" stroke="${stroke}" stroke-width="${short(thickness)}" stroke-opacity="${short(alpha)}"/>`);
  }
  dot(x, y, radius, fill) {
    this.parts.push(`<circle cx="${short(x)}" cy="${short(y)}" r="${short(radius)}" fill="${fill}"/>`);
  }
  text(text, x, y, style) {
    const isTurned = style.turned ? ` transform="rotate(-90 ${short(x)} ${short(y)})"` : "";
    const isRight = rightToLeft.test(text);
    const ends = isRight ? { left: "end", right: "start" } : { left: "start", right: "end" };
    const anchor = style.align === "center" ? "middle" : ends[style.align ?? "left"];
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" font-size="${style.size ?? 13}" font-weight="${style.weight ?? 400}" fill="${style.fill}" text-anchor="${anchor}" dominant-baseline="central"${isRight ? ' direction="rtl"' : ""}${isTurned}>${escape(text)}</text>`);
  }
  cells(x, y, width, height, columns, rows, bytes) {
    const wide = width / columns, high = height / rows;
    for (let row = 0; row < rows; row++)
      for (let column = 0; column < columns; column++) {
        const at = 4 * (row * columns + column);
        this.rect(x + column * wide, y + row * high, wide + .3, high + .3, `rgb(${bytes[at]},${bytes[at + 1]},${bytes[at + 2]})`);
      }
  }
  toString() {
    return `<svg xmlns="http://www.w3.org/2000/svg" ${this.size} font-family="${escape(family)}">${this.parts.join("\n")}</svg>\n`;
  }
}

const ruler = document.createElement("canvas").getContext("2d");
export function widthOf(text, style = {}) {
  ruler.font = fontOf(style);
  return ruler.measureText(text).width;
}
// Cut a label to a width, with an ellipsis.
export function shorten(text, width, style) {
  if (widthOf(text, style) <= width) return text;
  const characters = [...text];
  while (characters.length && widthOf(`${characters.join("")}…`, style) > width) characters.pop();
  return `${characters.join("")}…`;
}
// Break a text into lines of a width.
export function wrap(text, width, style) {
  const lines = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    const longer = line ? `${line} ${word}` : word;
    if (line && widthOf(longer, style) > width) { lines.push(line); line = word; } else line = longer;
  }
  return line ? [...lines, line] : lines;
}
