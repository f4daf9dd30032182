// SPDX-License-Identifier: Apache-2.0
// Small pictures of how a number went: a line a stream, or layers one above the other.
const WIDTH = 240;
const HEIGHT = 48;
const COLOURS = 8;
const GAP = 2.5; // a pause of so many usual steps ends a line

function svgElement(tag, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

const middle = (sorted) => sorted[Math.floor(sorted.length / 2)] ?? 0;
export const stepOf = (points) => middle(points.slice(1).map(([at], i) => at - points[i][0]).sort((a, b) => a - b));

// Pieces of a line without pauses.
export function pieces(points) {
  const most = GAP * stepOf(points);
  const out = [];
  for (const [i, point] of points.entries()) {
    if (i === 0 || point[0] - points[i - 1][0] > most) out.push([]);
    out.at(-1).push(point);
  }
  return out;
}

export class Spark {
  // picked(wallNs): a place was clicked.
  constructor(label, picked) {
    this.node = svgElement("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "spark", role: "img", "aria-label": label });
    this.lines = svgElement("g");
    this.mark = svgElement("line", { class: "mark", y1: 0, y2: HEIGHT });
    this.node.append(this.lines, this.mark);
    this.node.addEventListener("click", (event) => {
      const box = this.node.getBoundingClientRect();
      picked(this.from + ((event.clientX - box.left) / box.width) * (this.until - this.from));
    });
  }

  x(at) {
    return (((at - this.from) / (this.until - this.from)) * WIDTH).toFixed(1);
  }

  y(value) {
    return (HEIGHT - 1 - (value / this.most) * (HEIGHT - 3)).toFixed(1);
  }

  range(from, until, most) {
    Object.assign(this, { from, until, most: most > 0 ? most : 1 });
  }

  // lines: [{ colour, points: [[wallNs, value]] }], null values left out before.
  show(lines, from, until) {
    this.range(from, until, lines.flatMap((l) => l.points).reduce((most, [, value]) => Math.max(most, value), 0));
    this.lines.replaceChildren(...lines.flatMap(({ colour, points }) => pieces(points).map((piece) => this.line(colour, piece))));
  }

  // A single point is a stroke of some pixels.
  line(colour, piece) {
    const d = piece.map(([at, value], i) => `${i === 0 ? "M" : "L"}${this.x(at)} ${this.y(value)}`).join("");
    return svgElement("path", { class: "line", "data-colour": colour % COLOURS, d: piece.length > 1 ? d : `${d}h1` });
  }

  // layers: [{ colour, name, values: [value] }] over the same times.
  showLayers(times, layers, from, until) {
    const below = times.map(() => 0);
    this.range(from, until, Math.max(...times.map((_, i) => layers.reduce((sum, l) => sum + l.values[i], 0)), 0));
    const nodes = layers.map(({ colour, name, values }) => {
      const lower = [...below];
      for (const [i, value] of values.entries()) below[i] += value;
      const forth = times.map((at, i) => `${this.x(at)} ${this.y(below[i])}`);
      const back = times.map((at, i) => `${this.x(at)} ${this.y(lower[i])}`).reverse();
      const node = svgElement("path", { class: "layer", "data-colour": colour % COLOURS, d: `M${[...forth, ...back].join("L")}Z` });
      const title = svgElement("title");
      title.textContent = name;
      node.append(title);
      return node;
    });
    this.lines.replaceChildren(...nodes);
  }

  // null: none.
  point(at) {
    const isIn = at !== null && this.from !== undefined && at >= this.from && at <= this.until;
    this.mark.toggleAttribute("hidden", !isIn);
    if (!isIn) return;
    this.mark.setAttribute("x1", this.x(at));
    this.mark.setAttribute("x2", this.x(at));
  }
}
