// Figure 1 of the paper, drawn by hand, as a map: every box leads to its step.

const svgNamespace = "http://www.w3.org/2000/svg";
const boxWidth = 142, boxHeight = 30, pitch = 40, left = 16, middle = 200, bottom = 8;

function draw(name, properties, ...children) {
  const element = document.createElementNS(svgNamespace, name);
  for (const [key, value] of Object.entries(properties)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Boxes of both columns from bottom to top, for the layers that are shown.
function listBoxes(told, layers) {
  const { isPre } = told.shape, positions = side => told.hasPositions ? [["+ position", `${side}.position`, "position"]] : [];
  const around = (part, first, label, kind) => [
    ...(isPre ? [["Norm", `${part}.norm`, "norm"]] : []), [label, `${part}.${first}`, kind],
    [isPre ? "Add" : "Add & norm", `${part}.add`, "norm"]];
  const encoder = `encoder.${layers.encoder}`, decoder = `decoder.${layers.decoder}`;
  const final = stack => isPre ? [["Norm", `${stack}.norm.norm`, "norm"]] : [];
  return {
    encoder: {
      before: [["Subwords", "source.subwords", "words"], ["Embedding", "source.embedding", "words"], ...positions("source")],
      layer: [...around(`${encoder}.self`, "projections", "Self-attention", "attention"), ...around(`${encoder}.feed`, "inner", "Feed-forward", "feed")],
      after: final("encoder"),
    },
    decoder: {
      before: [["Subwords so far", "target.subwords", "words"], ["Embedding", "target.embedding", "words"], ...positions("target")],
      layer: [...around(`${decoder}.self`, "projections", "Masked attention", "attention"), ...around(`${decoder}.cross`, "projections", "Cross-attention", "attention"),
        ...around(`${decoder}.feed`, "inner", "Feed-forward", "feed")],
      after: [...final("decoder"), ["Linear", "output.logits", "feed"], ["Softmax", "output.softmax", "attention"], ["Next word", "output.next", "words"]],
    },
  };
}

// The key of the box in which a step lies: the last box of its part that does not come after it.
function boxOf(step, keys, order) {
  const index = order.indexOf(step);
  return keys.filter(key => key.startsWith(`${step.slice(0, step.lastIndexOf("."))}.`) && order.indexOf(key) <= index).at(-1) ?? step;
}

// told: what there is; step: where one is; go: what to do when a box is chosen.
export function drawMap(told, layers, step, order, go) {
  const columns = listBoxes(told, layers), all = column => [...column.before, ...column.layer, ...column.after];
  const keys = [...all(columns.encoder), ...all(columns.decoder)].map(box => box[1]);
  const here = boxOf(step, keys, order), numRows = all(columns.decoder).length;
  const height = numRows * pitch + bottom + 8, width = middle + boxWidth + 28;
  const y = row => height - bottom - (row + 1) * pitch;
  const map = draw("svg", { viewBox: `0 0 ${width} ${height}`, class: "map", role: "group", "aria-label": "The Transformer as in figure 1 of the paper: each box leads to its step" });
  const lines = draw("g", { "aria-hidden": "true" }), boxes = draw("g", {});
  map.append(lines, boxes);
  const line = (points, name = "flow") => lines.append(draw("path", { d: points, class: name }));
  const places = {};
  for (const [name, x] of [["encoder", left], ["decoder", middle]]) {
    const column = columns[name], list = all(column), first = column.before.length, last = first + column.layer.length - 1;
    lines.append(draw("rect", { x: x - 9, y: y(last) - 7, width: boxWidth + 18, height: (last - first) * pitch + boxHeight + 14, rx: 8, class: "layer" }));
    lines.append(draw("text", { x: x + boxWidth + 18, y: (y(first) + y(last) + boxHeight) / 2, class: "times", transform: `rotate(90 ${x + boxWidth + 18} ${(y(first) + y(last) + boxHeight) / 2})` }, `layer ${layers[name]} of ${told.shape[`${name}Layers`]}`));
    list.forEach(([label, key, kind], row) => {
      places[key] = [x, y(row)];
      if (row) line(`M${x + boxWidth / 2} ${y(row - 1)}V${y(row) + boxHeight}`);
      // Residual connections go round the sub-layer.
      if (label.startsWith("Add")) {
        const from = y(row - (told.shape.isPre ? 2 : 1)) + boxHeight + (pitch - boxHeight) / 2, side = x - 5;
        line(`M${x + boxWidth / 2} ${from}H${side + 4}Q${side} ${from} ${side} ${from - 4}V${y(row) + boxHeight / 2 + 4}Q${side} ${y(row) + boxHeight / 2} ${side + 4} ${y(row) + boxHeight / 2}H${x}`, "flow around");
      }
      const isHere = key === here, box = draw("g", { class: `box of-${kind}${isHere ? " here" : ""}`, role: "button", tabindex: 0, "data-step": key, "aria-label": `${label}${key.split(".").length > 3 ? `, ${name} layer ${layers[name]}` : ""}` },
        draw("rect", { x: x - 8, y: y(row) - 5, width: boxWidth + 16, height: pitch, class: "reach" }),
        draw("rect", { x, y: y(row), width: boxWidth, height: boxHeight, rx: 6 }), draw("text", { x: x + boxWidth / 2, y: y(row) + boxHeight / 2 + 1 }, label));
      if (isHere) box.setAttribute("aria-current", "step");
      box.onclick = () => go(key);
      box.onkeydown = event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); go(key); } };
      boxes.append(box);
    });
  }
  const [, top] = places[all(columns.encoder).at(-1)[1]], [crossX, crossY] = places[`decoder.${layers.decoder}.cross.projections`];
  const between = middle - 16;
  line(`M${left + boxWidth / 2} ${top}V${top - 8}Q${left + boxWidth / 2} ${top - 12} ${left + boxWidth / 2 + 4} ${top - 12}H${between - 4}Q${between} ${top - 12} ${between} ${top - 8}V${crossY + boxHeight / 2}H${crossX}`, "flow across");
  return map;
}
