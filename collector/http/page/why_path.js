// SPDX-License-Identifier: Apache-2.0
// A critical path as a picture: time from left to right, waits that were followed one row down.
import { duration } from "/format.js";

const WIDTH = 1000;
const ROW = 22;
const BAR = 18;
const ROWS_MAX = 24;
// state -> [colour of the timeline's looks, words]
export const STATES = new Map([
  ["Running", ["run", "running"]],
  ["Runnable", ["runnable", "waiting for a P"]],
  ["Syscall", ["syscall", "in a system call"]],
  ["Waiting", ["wait", "waiting"]],
  ["unknown", ["unknown", "not known"]],
]);

function svgElement(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

export function stateWords({ state, reason }) {
  const [, words] = STATES.get(state) ?? ["", state];
  return `${words}${reason ? ` (${reason})` : ""}`;
}

export function pieceText(piece) {
  const subject = piece.goroutine > 0 ? `goroutine ${piece.goroutine} ${piece.entry}` : "no goroutine is known";
  const place = piece.function ? `, at ${piece.function}${piece.line ? `:${piece.line}` : ""}` : "";
  return `${duration(piece.total_ns)}: ${subject}, ${stateWords(piece)}${place}${piece.end ? `; ${piece.end}` : ""}`;
}

// pointed(text): what lies under the pointer; chosen(piece): it was clicked.
export function pathPicture(pieces, figures, pointed, chosen) {
  const deepest = Math.min(ROWS_MAX - 1, pieces.reduce((most, p) => Math.max(most, p.depth), 0));
  const height = (deepest + 1) * ROW;
  const node = svgElement("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", class: "why-path", role: "img", "aria-label": "The pieces of the critical path; the list below has the same" });
  node.style.height = `${height}px`;
  for (const piece of pieces) {
    const x = ((piece.from_ns - figures.from_ns) / figures.total_ns) * WIDTH;
    const width = Math.max((piece.total_ns / figures.total_ns) * WIDTH, 0.5);
    const [look] = STATES.get(piece.state) ?? ["unknown"];
    const bar = svgElement("rect", { x: x.toFixed(2), width: width.toFixed(2), y: Math.min(piece.depth, deepest) * ROW, height: BAR, class: `piece ${look}` });
    bar.append(svgElement("title", {}, pieceText(piece)));
    bar.addEventListener("pointerenter", () => pointed(pieceText(piece)));
    bar.addEventListener("click", () => chosen(piece));
    node.append(bar);
  }
  node.addEventListener("pointerleave", () => pointed(""));
  return node;
}
