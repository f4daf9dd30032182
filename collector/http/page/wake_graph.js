// SPDX-License-Identifier: Apache-2.0
// Which functions' goroutines wake which: functions in a circle, an arrow a pair, the wider the more wakes.
const PAIRS = 24;
const SIZE = 520;
const RADIUS = 150;
const DOT = 5;

function svgElement(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const nameOf = (name) => name || "runtime";
const short = (name) => (name.length > 30 ? `…${name.slice(-29)}` : name);

function places(pairs) {
  const names = [...new Set(pairs.flatMap((p) => [nameOf(p.waker), nameOf(p.woken)]))];
  return new Map(names.map((name, i) => [name, (2 * Math.PI * i) / names.length - Math.PI / 2]));
}

const at = (angle, radius) => [SIZE / 2 + radius * Math.cos(angle), (SIZE * 2) / 5 + radius * 0.9 * Math.sin(angle)];

function arrow(from, to, width, about) {
  const [x1, y1] = at(from, RADIUS - DOT);
  const [x2, y2] = at(to, RADIUS - DOT);
  const d = from === to ? `M${x1} ${y1}q-30 -36 0 -36t${x2 - x1} 36` : `M${x1} ${y1}Q${SIZE / 2} ${(SIZE * 2) / 5} ${x2} ${y2}`;
  const node = svgElement("path", { d, class: "wake", "stroke-width": width.toFixed(1), "marker-end": "url(#wake-end)" });
  node.append(svgElement("title", {}, about));
  return node;
}

function label(name, angle) {
  const [x, y] = at(angle, RADIUS + 12);
  const isLeft = Math.cos(angle) < -0.01;
  const node = svgElement("text", { x, y: y + 4, "text-anchor": Math.abs(Math.cos(angle)) < 0.2 ? "middle" : isLeft ? "end" : "start" }, short(name));
  node.append(svgElement("title", {}, name));
  return node;
}

// rows: of the table by_pair.
export function wakeGraph(rows) {
  const pairs = rows.filter((row) => !row.other).sort((a, b) => b.waits.count - a.waits.count).slice(0, PAIRS);
  const angles = places(pairs);
  const most = Math.max(1, ...pairs.map((p) => p.waits.count));
  const node = svgElement("svg", { viewBox: `-70 40 ${SIZE + 140} ${(SIZE * 4) / 5 - 70}`, class: "wake-graph", role: "img", "aria-label": "Functions and which of them wake which; the table below has the same" });
  const end = svgElement("marker", { id: "wake-end", viewBox: "0 0 6 6", refX: 5, refY: 3, markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto" });
  end.append(svgElement("path", { d: "M0 0L6 3L0 6Z", class: "wake-end" }));
  node.append(end);
  for (const p of pairs) {
    const about = `${nameOf(p.waker)} wakes ${nameOf(p.woken)}: ${p.waits.count} times`;
    node.append(arrow(angles.get(nameOf(p.waker)), angles.get(nameOf(p.woken)), 1 + 4 * Math.sqrt(p.waits.count / most), about));
  }
  for (const [name, angle] of angles) {
    const [cx, cy] = at(angle, RADIUS);
    node.append(svgElement("circle", { cx, cy, r: DOT }), label(name, angle));
  }
  return node;
}
