// SPDX-License-Identifier: Apache-2.0
// One kind of report of a service: its figures with their history, and its tables at the moment that was chosen.
import { askLines } from "/ask.js";
import { count, duration, exactTime } from "/format.js";
import { askHistory, askMoment, heightOf } from "/history.js";
import { ReportView, textOf } from "/report_table.js";
import { Spark, stepOf } from "/spark.js";
import { element, KeyedList, setData, setFigure, setText } from "/view.js";
import { wakeGraph } from "/wake_graph.js";
import { schemaInWords } from "/words.js";

const NOW_MS = 5000; // live figures are asked for so often,
const HISTORY_MS = 60000; // and what was kept so often
const ROWS = 20;
const STATES = "states"; // the table of goroutines whose history is drawn, too

// Of a service the sum of its instances, of an instance its live stream, or its last one; null: there is none.
async function askNow(kind, query) {
  try {
    const reports = await askLines(`/api/v1/report/${encodeURIComponent(kind)}`, query.instance ? query : { ...query, sum: "only" });
    return reports.find((r) => r.ended_wall_ns === 0) ?? reports.at(-1);
  } catch (error) {
    if (error.status === 404) return null; // no stream is known any more
    throw error;
  }
}

class Tile {
  constructor(field, picked) {
    this.field = field;
    this.value = element("dd");
    this.note = element("dd", { className: "note" });
    this.spark = new Spark(`${field.name}, its history`, picked);
    this.picture = element("dd", { className: "picture", hidden: true });
    this.picture.append(this.spark.node);
    this.node = element("dl", { title: field.about }, element("dt", {}, field.name.replace(/_(ns|bytes)$/, "").replaceAll("_", " ")), this.value, this.picture, this.note);
    this.node.dataset.figure = field.name;
  }

  show(report) {
    const value = report?.figures[this.field.name] ?? null;
    const height = heightOf(value);
    const isSpread = this.field.type === "distribution" && value !== null;
    const text = value === null || (isSpread && value.count === 0) ? "–" : isSpread ? duration(height) : textOf(this.field, value, report);
    setFigure(this.value, height ?? "", text);
    const parts = [];
    if (isSpread) parts.push(`${value.p99_ns === null ? "max" : "p99"} of ${count(value.count)}, max ${duration(value.max_ns)}`);
    if (report?.instances > 1) parts.push(`all ${count(report.instances)} instances`);
    setText(this.note, parts.join("; "));
  }

  // history: [{ colour, reports }]
  showHistory(history, from, until) {
    const points = (reports) => reports.map((r) => [r.until_wall_ns, heightOf(r.figures[this.field.name] ?? null)]).filter(([, value]) => typeof value === "number");
    const lines = history.map(({ colour, reports }) => ({ colour, points: points(reports) }));
    this.picture.hidden = lines.every((line) => line.points.length === 0);
    this.spark.show(lines, from, until);
  }
}

/* --- goroutines by state --- */

// Streams summed: of each the stretch that ends in the same step.
function layersOf(history) {
  const sums = new Map(); // step -> Map(state -> mean)
  const ns = Math.max(1, ...history.map(({ reports }) => stepOf(reports.map((r) => [r.until_wall_ns]))));
  for (const { reports } of history)
    for (const report of new Map(reports.map((r) => [Math.round(r.until_wall_ns / ns), r])).values()) {
      const step = Math.round(report.until_wall_ns / ns);
      const states = sums.get(step) ?? new Map();
      for (const row of report.tables[STATES] ?? []) states.set(row.state, (states.get(row.state) ?? 0) + row.mean);
      sums.set(step, states);
    }
  const steps = [...sums.keys()].sort((a, b) => a - b);
  const states = [...new Set([...sums.values()].flatMap((s) => [...s.keys()]))];
  return { times: steps.map((s) => s * ns), layers: states.map((name, colour) => ({ name, colour, values: steps.map((s) => sums.get(s).get(name) ?? 0) })) };
}

class States {
  constructor(picked) {
    this.spark = new Spark("goroutines by state, their history", picked);
    this.names = element("p", { className: "stream-keys" });
    this.node = element("figure", { className: "states-history", hidden: true }, element("figcaption", {}, "By state, on average"), this.names);
    this.node.append(this.spark.node);
  }

  show(history, from, until) {
    const { times, layers } = layersOf(history);
    this.node.hidden = times.length < 2;
    this.spark.showLayers(times, layers, from, until);
    this.names.replaceChildren(...layers.map(({ name, colour }) => {
      const swatch = element("span", { className: "swatch" });
      setData(swatch, "colour", colour % 8);
      return element("span", {}, swatch, name);
    }));
  }
}

/* --- one kind --- */

export class Kind {
  // chosen(): { query, at, last: seconds, colourOf(stream) }; picked(wallNs).
  constructor(schema, chosen, picked, failed) {
    Object.assign(this, { schema, chosen, failed, inSight: false, nowAt: -Infinity, historyAt: -Infinity, asked: "", askedHistory: "", busy: false });
    this.tiles = schema.figures.map((field) => new Tile(field, picked));
    this.states = schema.tables.some((t) => t.name === STATES) ? new States(picked) : null;
    this.views = element("div");
    this.more = element("p", { className: "muted", hidden: true });
    this.graph = element("div", { className: "graph" });
    this.tables = element("details", { className: "tables" }, element("summary", {}, "tables"), this.more, this.graph, this.views);
    this.tables.addEventListener("toggle", () => this.again());
    this.node = element("section", { className: "card kind", id: `kind-${schema.name}` }, element("div", { className: "card-head" }, element("h2", {}, schema.name), element("p", { className: "readout" }, schema.about)),
      element("div", { className: "tiles" }, ...this.tiles.map((t) => t.node)), ...(this.states ? [this.states.node] : []), ...(schema.tables.length > 0 ? [this.tables] : []));
    this.list = new KeyedList(this.views, (r) => r.stream, (r) => this.makeView(r), (node, r) => node.view.show(r));
    new IntersectionObserver(([entry]) => {
      this.inSight = entry.isIntersecting;
      this.refresh();
    }, { rootMargin: "200px" }).observe(this.node);
  }

  makeView(report) {
    const view = new ReportView(schemaInWords(report.program, { ...this.schema, figures: [] }));
    view.node.view = view;
    return view.node;
  }

  // Something else was chosen.
  again() {
    this.nowAt = -Infinity;
    this.refresh();
  }

  async refresh() {
    if (!this.inSight || this.busy || document.hidden) return;
    this.busy = true;
    try {
      await this.refreshHistory();
      await this.refreshNow();
      setData(this.node, "ready", Number(this.node.dataset.ready ?? 0) + 1);
    } catch (error) {
      this.failed(error.message);
    }
    this.busy = false;
    if (this.askedNow() !== this.asked) this.refresh(); // while the answer was on its way
  }

  askedNow() {
    const { query, at } = this.chosen();
    return JSON.stringify([query, at, this.tables.open]);
  }

  async refreshHistory() {
    const { query, last, at, colourOf } = this.chosen();
    const asked = JSON.stringify([query, last]);
    if (asked !== this.askedHistory || performance.now() - this.historyAt >= HISTORY_MS) {
      this.askedHistory = asked;
      this.historyAt = performance.now();
      const until = Date.now() * 1e6;
      const since = exactTime(BigInt(until - last * 1e9));
      const kept = await askHistory(this.schema.name, { ...query, since, figures: 1, ...(this.states ? { table: STATES } : {}) });
      const from = kept.reduce((first, r) => Math.min(first, r.until_wall_ns), until); // a young collector has less
      const streams = Map.groupBy(kept, (r) => r.stream);
      const history = [...streams].map(([stream, reports]) => ({ colour: colourOf(stream), reports }));
      for (const tile of this.tiles) tile.showHistory(history, from, until);
      this.states?.show(history, from, until);
      setData(this.node, "stretches", kept.length);
    }
    for (const spark of [...this.tiles, ...(this.states ? [this.states] : [])].map((t) => t.spark)) spark.point(at);
  }

  async refreshNow() {
    const asked = this.askedNow();
    if (asked === this.asked && performance.now() - this.nowAt < NOW_MS) return;
    this.asked = asked;
    this.nowAt = performance.now();
    const { query, at, window } = this.chosen();
    const report = at === null ? await askNow(this.schema.name, { ...query, window, top: this.tables.open ? ROWS : 1 }) : await askMoment(this.schema.name, { ...query, top: ROWS }, at);
    for (const tile of this.tiles) tile.show(report);
    this.showTables(report);
  }

  showTables(report) {
    if (!this.tables.open) return;
    this.list.show(report === null ? [] : [report]);
    this.more.hidden = report !== null && report.instances <= 1;
    setText(this.more, report === null ? "No report of that moment." : `All ${count(report.instances)} instances together; choose one above.`);
    const pairs = report?.tables.by_pair ?? [];
    this.graph.replaceChildren(...(pairs.length > 0 && "waker" in pairs[0] ? [wakeGraph(pairs)] : []));
  }
}
