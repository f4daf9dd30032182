// SPDX-License-Identifier: Apache-2.0
// Bars, one a second, stacked by cause. uPlot draws lines and bars but stacks nothing: each series is
// the sum up to its cause, and the largest is drawn first.
/* global uPlot */
import { clock } from "/format.js";

export const COLOURS = 8;
const HEIGHT = 220;
const SPAN_S = 300;
const SPAN_MIN_S = 60; // a page just opened has seen less, and grows

const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function stacked(rows, n) {
  const sums = [];
  let below = new Array(n).fill(0);
  for (const row of rows) {
    below = row.map((value, i) => value + below[i]);
    sums.unshift(below);
  }
  return sums;
}

export class Chart {
  // picked(from, until): a second was clicked, in seconds since 1970; pointed(text): what lies there.
  constructor(node, picked, pointed) {
    Object.assign(this, { node, picked, pointed, causes: [], rows: [], xs: [] });
    new ResizeObserver(() => this.plot?.setSize({ width: node.clientWidth, height: HEIGHT })).observe(node);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw(true));
    node.addEventListener("click", () => this.click());
  }

  show(causes, [xs, rows]) {
    const same = causes.length === this.causes.length && causes.every((c, i) => c.id === this.causes[i].id);
    Object.assign(this, { causes, xs, rows });
    this.draw(!same);
  }

  data() {
    return [this.xs, ...stacked(this.rows, this.xs.length)];
  }

  draw(anew) {
    if (this.plot && !anew) {
      this.plot.setData(this.data(), false);
      this.plot.setScale("x", this.range());
      return;
    }
    this.plot?.destroy();
    this.plot = new uPlot(this.options(), this.data(), this.node);
  }

  range() {
    const last = this.xs.length ? this.xs[this.xs.length - 1] : Date.now() / 1000;
    const first = Math.min(this.xs[0] ?? last, last - SPAN_MIN_S);
    return { min: Math.max(first, last - SPAN_S), max: last + 1 };
  }

  options() {
    const axis = { stroke: token("--muted"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const bars = uPlot.paths.bars({ size: [1, 12, 1], align: 1 });
    return {
      width: this.node.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      padding: [8, 4, 0, 0],
      scales: {
        x: { time: true, range: () => Object.values(this.range()) },
        y: { range: (u, min, max) => [0, Math.max(max * 1.1, 0.1)] },
      },
      axes: [
        { ...axis, grid: { show: false }, size: 30, space: 80, values: (u, splits) => splits.map((s) => clock(s * 1e9)) },
        { ...axis, size: 64, values: (u, splits) => splits.map((v) => `${+v.toPrecision(3)} ms`) },
      ],
      series: [{}, ...this.causes.map((c, i) => ({ label: c.id, fill: token(`--s${i % COLOURS}`), width: 0, paths: bars, points: { show: false } })).reverse()],
      hooks: { setCursor: [() => this.point()] },
    };
  }

  point() {
    const i = this.plot.cursor.idx;
    if (i === null || i === undefined || this.plot.cursor.left < 0) {
      this.pointed("ms in each second");
      return;
    }
    const parts = this.causes.map((c, k) => [c.reason, this.rows[k][i]]).filter(([, ms]) => ms > 0);
    const text = parts.map(([reason, ms]) => `${reason} ${ms.toPrecision(3)} ms`).join(", ") || "no stop";
    this.pointed(`${clock(this.xs[i] * 1e9)}: ${text}`);
  }

  click() {
    const i = this.plot?.cursor.idx;
    if (i === null || i === undefined) return;
    this.picked(i > 0 ? this.xs[i - 1] : this.xs[i] - 1, this.xs[i]);
  }
}
