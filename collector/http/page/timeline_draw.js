// SPDX-License-Identifier: Apache-2.0
// Rows on a canvas. Each row is drawn once for each picture, to a strip as wide as the picture; a frame only moves strips.
import { bytes, duration, hueOf, short } from "/format.js";
import { MIXED, SHARE_ALL } from "/timeline_pictures.js";
import { idInWords } from "/words.js";

export const AXIS = 24;
const TEXT_MIN = 34; // pixels that a cell needs for words
const WAITING = 4;
const SCALE_MAX = 2;

export class Drawing {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: false });
    this.strips = new Map(); // row's key -> { lane, canvas }
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.readColours());
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    this.dark = matchMedia("(prefers-color-scheme: dark)").matches;
    this.look = Array.from({ length: 18 }, (_, i) => style.getPropertyValue(`--look-${i}`).trim());
    for (const name of ["surface", "raised", "text", "muted", "line", "accent", "bad"]) this[name] = style.getPropertyValue(`--${name}`).trim();
    this.onCell = style.getPropertyValue("--on-cell").trim();
    this.strips.clear();
  }

  resize(width, height) {
    this.scale = Math.min(devicePixelRatio || 1, SCALE_MAX);
    const [w, h] = [Math.round(width * this.scale), Math.round(height * this.scale)];
    if (this.canvas.width !== w || this.canvas.height !== h) Object.assign(this.canvas, { width: w, height: h });
    this.canvas.style.height = `${height}px`;
    Object.assign(this, { width, height });
  }

  /* --- strips --- */

  colourOf(lane, i) {
    const look = lane.look(i);
    if (lane.kind === "task" || lane.kind === "region") return `hsl(${hueOf(lane.label(i))} 45% ${this.dark ? 45 : 50}%)`;
    return this.look[look];
  }

  drawCells(context, lane, scale, height, words) {
    for (let i = 0; i < lane.cells; i++) {
      const x = lane.from(i) * scale;
      const width = Math.max(lane.until(i) * scale - x, 0.75);
      const share = lane.share(i);
      const isGroup = lane.kind === "group";
      const part = isGroup ? Math.min(1, Math.log2(1 + share / 256) / 4 + 0.15) : lane.flags(i) & MIXED ? Math.max(0.15, share / SHARE_ALL) : 1;
      context.fillStyle = this.colourOf(lane, i);
      if (isGroup && lane.look(i) >= WAITING) context.fillRect(x, height - 4, width, 2);
      else context.fillRect(x, height - 2 - (height - 4) * part, width, (height - 4) * part);
      if (words && width > TEXT_MIN && !isGroup) this.drawWords(context, lane, i, x, width, height);
    }
  }

  drawWords(context, lane, i, x, width, height) {
    const isGoroutine = lane.kind === "goroutine";
    const text = isGoroutine ? lane.picture.looks[lane.look(i)] : lane.kind === "proc" || lane.kind === "thread" ? `${idInWords(lane.picture.program, lane.subject(i))} ${lane.label(i)}` : lane.label(i);
    if (!text || (isGoroutine && lane.look(i) === 0)) return;
    context.save();
    context.beginPath();
    context.rect(x, 0, width - 2, height);
    context.clip();
    context.fillStyle = lane.look(i) >= WAITING && lane.look(i) <= 9 ? this.text : this.onCell;
    context.fillText(text, x + 4, height / 2 + 0.5);
    context.restore();
  }

  drawSeries(context, lane, scale, height) {
    let most = 0;
    for (let i = 0; i < lane.cells; i++) most = Math.max(most, lane.value(i));
    context.fillStyle = lane.kind === "count" ? this.look[[0, 1, 2, 4][lane.id]] : this.look[17];
    for (let i = 0; i < lane.cells && most > 0; i++) {
      const x = lane.from(i) * scale;
      const high = ((height - 4) * lane.value(i)) / most;
      context.fillRect(x, height - 2 - high, lane.until(i) * scale - x + 0.6, high); // a little over the next: no seam between equal ones
    }
    return most;
  }

  drawMoments(context, lane, scale, height) {
    context.fillStyle = this.look[lane.kind === "log" ? 15 : 16];
    for (let i = 0; i < lane.cells; i++) context.fillRect(lane.from(i) * scale - 0.5, 3, lane.kind === "log" ? 2 : 1, height - 6);
  }

  strip(row) {
    const known = this.strips.get(row.key);
    if (known?.lane === row.lane) return known;
    const { picture } = row.lane;
    const pixels = Math.min(8192, Math.ceil(Number(picture.until - picture.from) / picture.pixel));
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: Math.max(1, Math.round(pixels * this.scale)), height: Math.round(row.height * this.scale) });
    const context = canvas.getContext("2d");
    context.scale(this.scale, this.scale);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const scale = pixels / Number(picture.until - picture.from);
    const made = { lane: row.lane, canvas, most: null };
    if (row.lane.kind === "count" || row.lane.kind === "metric") made.most = this.drawSeries(context, row.lane, scale, row.height);
    else if (row.lane.kind === "log" || row.lane.kind === "sample") this.drawMoments(context, row.lane, scale, row.height);
    else this.drawCells(context, row.lane, scale, row.height, true);
    this.strips.set(row.key, made);
    return made;
  }

  /* --- a frame --- */

  // view: { from, until } as BigInt of the wall clock; left: where the picture begins, behind the labels.
  frame(rows, scrolled, view, left, marks) {
    const c = this.context;
    const drawn = new Set();
    const length = Number(view.until - view.from);

    c.setTransform(this.scale, 0, 0, this.scale, 0, 0);
    c.fillStyle = this.surface;
    c.fillRect(0, 0, this.width, this.height);
    const ticks = this.ticks(view, length, left);
    c.fillStyle = this.line;
    for (const { x } of ticks) c.fillRect(x, AXIS, 1, this.height);
    for (const row of rows) {
      const y = row.top - scrolled + AXIS;
      if (y + row.height < AXIS || y > this.height) continue;
      if (row.head) {
        c.fillStyle = this.raised;
        c.fillRect(0, y, this.width, row.height);
      } else {
        this.drawRow(row, y, view, length, left);
        drawn.add(row.key);
      }
    }
    for (const key of this.strips.keys()) if (!drawn.has(key)) this.strips.delete(key);
    this.drawMarks(rows, scrolled, marks, length, view, left);
    this.drawAxis(ticks, left);
  }

  drawRow(row, y, view, length, left) {
    const { picture } = row.lane;
    const strip = this.strip(row);
    const wide = this.width - left;
    const of = Number(picture.until - picture.from);
    const x = (Number(picture.from - view.from) / length) * wide;
    const width = (of / length) * wide;
    const c = this.context;

    // Only the part that is seen: a strip that is stretched a lot would be larger than a canvas may be.
    const first = Math.max(0, -x / width);
    const last = Math.min(1, (wide - x) / width);
    if (last > first) {
      c.save();
      c.beginPath();
      c.rect(left, y, wide, row.height);
      c.clip();
      c.imageSmoothingEnabled = false;
      c.drawImage(strip.canvas, first * strip.canvas.width, 0, (last - first) * strip.canvas.width, strip.canvas.height, left + x + first * width, y, (last - first) * width, row.height);
      c.restore();
    }
    c.fillStyle = this.surface;
    c.fillRect(0, y, left, row.height);
    if (strip.most !== null) {
      c.fillStyle = this.muted;
      c.font = "10px system-ui, sans-serif";
      c.textBaseline = "bottom";
      c.textAlign = "right";
      c.fillText(row.lane.kind === "metric" && row.lane.id !== "0" ? bytes(strip.most) : short(Math.round(strip.most * 10) / 10), left - 4, y + row.height - 2);
      c.textAlign = "left";
    }
  }

  // What is chosen, a stretch, and the arrow from what woke it.
  drawMarks(rows, scrolled, marks, length, view, left) {
    const c = this.context;
    const wide = this.width - left;
    const xOf = (at) => left + (Number(at - view.from) / length) * wide;

    if (marks.stretch) {
      c.fillStyle = this.accent;
      c.globalAlpha = 0.15;
      c.fillRect(xOf(marks.stretch.from), AXIS, xOf(marks.stretch.until) - xOf(marks.stretch.from), this.height);
      c.globalAlpha = 1;
    }
    const chosen = marks.chosen && rows.find((row) => row.key === marks.chosen.key);
    if (!chosen) return;
    const y = chosen.top - scrolled + AXIS;
    const [from, until] = [Math.max(left, xOf(marks.chosen.from)), Math.min(this.width, xOf(marks.chosen.until))];
    c.strokeStyle = this.text;
    c.lineWidth = 2;
    c.strokeRect(from, y + 1, Math.max(2, until - from), chosen.height - 2);
    const waker = marks.chosen.by && rows.find((row) => row.lane?.kind === "goroutine" && row.lane.id === marks.chosen.by);
    if (!waker) return;
    const [x, end] = [xOf(marks.chosen.until), waker.top - scrolled + AXIS + waker.height / 2];
    const tip = y + chosen.height / 2;
    c.strokeStyle = this.bad;
    c.beginPath();
    c.moveTo(x, end);
    c.lineTo(x, tip);
    c.moveTo(x - 4, tip + (end < tip ? -6 : 6));
    c.lineTo(x, tip);
    c.lineTo(x + 4, tip + (end < tip ? -6 : 6));
    c.stroke();
  }

  // From the second that the view begins in.
  ticks(view, length, left) {
    const wide = this.width - left;
    const step = niceStep((length / wide) * 110);
    const begin = Number(view.from % 10n ** 9n);
    const found = [];
    for (let n = Math.ceil(begin / step), x; (x = left + ((n * step - begin) / length) * wide) < this.width; n++) found.push({ x, text: tickText(Math.round(n * step), step) });
    return found;
  }

  drawAxis(ticks, left) {
    const c = this.context;

    c.fillStyle = this.raised;
    c.fillRect(0, 0, this.width, AXIS);
    c.fillStyle = this.line;
    c.fillRect(0, AXIS - 1, this.width, 1);
    c.fillRect(left - 1, 0, 1, this.height);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    for (const { x, text } of ticks) {
      c.fillStyle = this.line;
      c.fillRect(x, AXIS - 6, 1, 6);
      c.fillStyle = this.muted;
      c.fillText(text, x + 3, AXIS / 2);
    }
  }
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].find((n) => n * power >= least) * power;
}

// As many digits as tell neighbours apart.
export function tickText(ns, step) {
  if (step >= 1e7) return `+${duration(ns)}`;
  const [unit, name] = step >= 1e3 ? [1e6, "ms"] : [1e3, "µs"];
  return `+${(ns / unit).toFixed(Math.max(0, -Math.floor(Math.log10(step / unit))))} ${name}`;
}
