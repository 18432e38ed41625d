// Attention as it comes from the server, and as it is shown: of subwords, or merged to words.

const specials = ["⟨start⟩", "⟨end⟩"];

function toBytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let place = 0; place < raw.length; place++) bytes[place] = raw.charCodeAt(place);
  return bytes;
}

// { kinds: { cross: [{ layer, numHeads, queries, keys, weights }, …], … }, sides, … }
export function unpackLook(answer) {
  const kinds = {};
  for (const name of ["cross", "encoder", "decoder", "gradient"]) {
    const maps = answer.maps.filter(map => map.kind === name).sort((one, other) => one.layer - other.layer);
    if (maps.length) kinds[name] = maps.map(map => ({ ...map, weights: toBytes(map.weights), shown: {} }));
  }
  return { ...answer, kinds };
}

// A piece that goes on with a word has a dot before it.
const namePiece = (piece, index) => piece.startsWith("▁") ? piece.slice(1) || "␣"
  : !index || specials.includes(piece) ? piece : `·${piece}`;

// Which row of what is shown each token goes to; −1: none.
function groupsOf(side, byWords, withSpecials) {
  const labels = [], places = [];
  let last = -1;
  side.pieces.forEach((piece, index) => {
    const isHidden = !withSpecials && specials.includes(piece);
    if (isHidden) return places.push(-1);
    const isNew = !byWords || side.wordOf[index] !== last;
    last = side.wordOf[index];
    if (isNew) labels.push(byWords ? side.words[side.wordOf[index]] : namePiece(piece, index));
    places.push(labels.length - 1);
  });
  const counts = labels.map((_, row) => places.filter(place => place === row).length);
  return { labels, places, counts };
}

// What a map looks like: labels, and for each head numbers from 0 to 1, row by row. The attention
// to a word is the sum of that to its pieces; the attention of a word the mean of its pieces'.
export function showMap(map, sides, byWords, withSpecials) {
  const key = `${byWords} ${withSpecials}`;
  if (map.shown[key]) return map.shown[key];
  const rows = groupsOf(sides[map.queries], byWords, withSpecials);
  const columns = groupsOf(sides[map.keys], byWords, withSpecials);
  const numQueries = rows.places.length, numKeys = columns.places.length, width = columns.labels.length;
  const heads = [];
  for (let head = 0; head < map.numHeads; head++) {
    const numbers = new Float32Array(rows.labels.length * width);
    for (let query = 0; query < numQueries; query++) {
      const row = rows.places[query];
      if (row < 0) continue;
      const from = (head * numQueries + query) * numKeys, share = 255 * rows.counts[row];
      for (let place = 0; place < numKeys; place++)
        if (columns.places[place] >= 0)
          numbers[row * width + columns.places[place]] += map.weights[from + place] / share;
    }
    heads.push(numbers);
  }
  return map.shown[key] = { queries: rows.labels, keys: columns.labels, heads };
}

export function meanOf(heads, chosen) {
  const mean = new Float32Array(heads[0].length);
  for (const head of chosen) for (let place = 0; place < mean.length; place++) mean[place] += heads[head][place] / chosen.length;
  return mean;
}
